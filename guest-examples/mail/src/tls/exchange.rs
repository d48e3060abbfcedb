//! Key exchanges: X25519, and P-256 for servers without it. Holds what rustls asks for, and no arithmetic.

use p256::elliptic_curve::sec1::ToEncodedPoint as _;
use rustls::crypto::{ActiveKeyExchange, GetRandomFailed, SharedSecret, SupportedKxGroup};
use rustls::{Error, NamedGroup, PeerMisbehaved};

use crate::random;

/// Bytes of a private key, of both groups.
const KEY_BYTES: usize = 32;

/// The number of times that a random number is drawn anew for P-256: one in 2³² is not a private key.
const DRAWS_MAX: usize = 4;

#[derive(Debug)]
pub struct X25519;

#[derive(Debug)]
pub struct P256;

impl SupportedKxGroup for X25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let secret = x25519_dalek::StaticSecret::from(drawn()?);
        let public = x25519_dalek::PublicKey::from(&secret);
        Ok(Box::new(X25519Begun { secret, public }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct X25519Begun {
    secret: x25519_dalek::StaticSecret,
    public: x25519_dalek::PublicKey,
}

impl ActiveKeyExchange for X25519Begun {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let peer: [u8; KEY_BYTES] = peer.try_into().map_err(|_| PeerMisbehaved::InvalidKeyShare)?;
        let shared = self.secret.diffie_hellman(&x25519_dalek::PublicKey::from(peer));
        // A peer of small order leaves nothing secret (RFC 7748, 6.1).
        if !shared.was_contributory() {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        Ok(SharedSecret::from(&shared.as_bytes()[..]))
    }

    fn pub_key(&self) -> &[u8] {
        self.public.as_bytes()
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

impl SupportedKxGroup for P256 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        for _ in 0..DRAWS_MAX {
            if let Ok(secret) = p256::SecretKey::from_slice(&drawn()?) {
                let public = secret.public_key().to_encoded_point(false).as_bytes().to_vec();
                return Ok(Box::new(P256Begun { secret, public }));
            }
        }
        Err(GetRandomFailed.into())
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::secp256r1
    }
}

struct P256Begun {
    secret: p256::SecretKey,
    public: Vec<u8>,
}

impl ActiveKeyExchange for P256Begun {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        // TLS 1.3 has points in their long form only (RFC 8446, 4.2.8.2).
        let is_long = peer.first() == Some(&4);
        let peer = p256::PublicKey::from_sec1_bytes(peer).ok().filter(|_| is_long);
        let peer = peer.ok_or(PeerMisbehaved::InvalidKeyShare)?;
        let shared = p256::ecdh::diffie_hellman(self.secret.to_nonzero_scalar(), peer.as_affine());
        Ok(SharedSecret::from(shared.raw_secret_bytes().as_slice()))
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::secp256r1
    }
}

fn drawn() -> Result<[u8; KEY_BYTES], Error> {
    let mut bytes = [0; KEY_BYTES];
    if random::fill(&mut bytes) { Ok(bytes) } else { Err(GetRandomFailed.into()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn both_ends_come_to_one_secret() {
        for group in [&X25519 as &dyn SupportedKxGroup, &P256] {
            let one = group.start().unwrap();
            let other = group.start().unwrap();
            let of_one = one.pub_key().to_vec();
            let of_other = other.pub_key().to_vec();
            assert_ne!(of_one, of_other);
            let shared = one.complete(&of_other).unwrap();
            assert_eq!(shared.secret_bytes(), other.complete(&of_one).unwrap().secret_bytes());
        }
    }

    #[test]
    fn points_that_give_the_secret_away_are_refused() {
        for peer in [vec![0; 32], vec![0; 31], [vec![1], vec![0; 31]].concat()] {
            assert!(X25519.start().unwrap().complete(&peer).is_err());
        }
        let short = p256::SecretKey::from_slice(&[7; 32]).unwrap().public_key().to_encoded_point(true);
        for peer in [vec![0], vec![4; 65], vec![4; 64], short.as_bytes().to_vec()] {
            assert!(P256.start().unwrap().complete(&peer).is_err());
        }
    }
}
