//! Signatures of certificates and servers, checked: RSA and the two curves that certificates are made with. Nothing is
//! ever signed.

use p256::ecdsa::signature::hazmat::PrehashVerifier;
use rsa::pkcs1::DecodeRsaPublicKey as _;
use rsa::traits::PublicKeyParts as _;
use rsa::{Pkcs1v15Sign, Pss, RsaPublicKey};
use rustls::SignatureScheme;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id};
use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// The shortest RSA key that is taken, in bytes. The longest is 512, by the crate.
const RSA_BYTES_MIN: usize = 256;

/// All that is taken, and what a server may sign with.
pub const SUPPORTED: WebPkiSupportedAlgorithms = WebPkiSupportedAlgorithms {
    all: &[
        &P256_SHA256,
        &P256_SHA384,
        &P384_SHA256,
        &P384_SHA384,
        &PKCS1_SHA256,
        &PKCS1_SHA384,
        &PKCS1_SHA512,
        &PSS_SHA256,
        &PSS_SHA384,
        &PSS_SHA512,
    ],
    mapping: &[
        (SignatureScheme::ECDSA_NISTP256_SHA256, &[&P256_SHA256]),
        (SignatureScheme::ECDSA_NISTP384_SHA384, &[&P384_SHA384]),
        (SignatureScheme::RSA_PSS_SHA256, &[&PSS_SHA256]),
        (SignatureScheme::RSA_PSS_SHA384, &[&PSS_SHA384]),
        (SignatureScheme::RSA_PSS_SHA512, &[&PSS_SHA512]),
        // For the signatures of certificates only; rustls does not take these in a handshake.
        (SignatureScheme::RSA_PKCS1_SHA256, &[&PKCS1_SHA256]),
        (SignatureScheme::RSA_PKCS1_SHA384, &[&PKCS1_SHA384]),
        (SignatureScheme::RSA_PKCS1_SHA512, &[&PKCS1_SHA512]),
    ],
};

#[derive(Clone, Copy, Debug)]
enum Kind {
    P256,
    P384,
    Pkcs1,
    Pss,
}

#[derive(Clone, Copy, Debug)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

#[derive(Debug)]
struct Algorithm {
    kind: Kind,
    hash: Hash,
    key: AlgorithmIdentifier,
    signature: AlgorithmIdentifier,
}

static P256_SHA256: Algorithm = ecdsa(Kind::P256, Hash::Sha256, alg_id::ECDSA_P256, alg_id::ECDSA_SHA256);
static P256_SHA384: Algorithm = ecdsa(Kind::P256, Hash::Sha384, alg_id::ECDSA_P256, alg_id::ECDSA_SHA384);
static P384_SHA256: Algorithm = ecdsa(Kind::P384, Hash::Sha256, alg_id::ECDSA_P384, alg_id::ECDSA_SHA256);
static P384_SHA384: Algorithm = ecdsa(Kind::P384, Hash::Sha384, alg_id::ECDSA_P384, alg_id::ECDSA_SHA384);
static PKCS1_SHA256: Algorithm = rsa(Kind::Pkcs1, Hash::Sha256, alg_id::RSA_PKCS1_SHA256);
static PKCS1_SHA384: Algorithm = rsa(Kind::Pkcs1, Hash::Sha384, alg_id::RSA_PKCS1_SHA384);
static PKCS1_SHA512: Algorithm = rsa(Kind::Pkcs1, Hash::Sha512, alg_id::RSA_PKCS1_SHA512);
static PSS_SHA256: Algorithm = rsa(Kind::Pss, Hash::Sha256, alg_id::RSA_PSS_SHA256);
static PSS_SHA384: Algorithm = rsa(Kind::Pss, Hash::Sha384, alg_id::RSA_PSS_SHA384);
static PSS_SHA512: Algorithm = rsa(Kind::Pss, Hash::Sha512, alg_id::RSA_PSS_SHA512);

const fn ecdsa(kind: Kind, hash: Hash, key: AlgorithmIdentifier, signature: AlgorithmIdentifier) -> Algorithm {
    Algorithm { kind, hash, key, signature }
}

const fn rsa(kind: Kind, hash: Hash, signature: AlgorithmIdentifier) -> Algorithm {
    Algorithm { kind, hash, key: alg_id::RSA_ENCRYPTION, signature }
}

impl SignatureVerificationAlgorithm for Algorithm {
    fn verify_signature(&self, key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), InvalidSignature> {
        let digest = self.hash.of(message);
        let is_right = match self.kind {
            Kind::P256 => is_p256(key, &digest, signature),
            Kind::P384 => is_p384(key, &digest, signature),
            Kind::Pkcs1 => rsa_key(key).is_some_and(|key| key.verify(self.hash.pkcs1(), &digest, signature).is_ok()),
            Kind::Pss => rsa_key(key).is_some_and(|key| key.verify(self.hash.pss(), &digest, signature).is_ok()),
        };
        if is_right { Ok(()) } else { Err(InvalidSignature) }
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.key
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.signature
    }
}

impl Hash {
    fn of(self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(message).to_vec(),
            Self::Sha384 => Sha384::digest(message).to_vec(),
            Self::Sha512 => Sha512::digest(message).to_vec(),
        }
    }

    fn pkcs1(self) -> Pkcs1v15Sign {
        match self {
            Self::Sha256 => Pkcs1v15Sign::new::<Sha256>(),
            Self::Sha384 => Pkcs1v15Sign::new::<Sha384>(),
            Self::Sha512 => Pkcs1v15Sign::new::<Sha512>(),
        }
    }

    /// With a salt as long as the digest (RFC 8446, 4.2.3).
    fn pss(self) -> Pss {
        match self {
            Self::Sha256 => Pss::new::<Sha256>(),
            Self::Sha384 => Pss::new::<Sha384>(),
            Self::Sha512 => Pss::new::<Sha512>(),
        }
    }
}

fn is_p256(key: &[u8], digest: &[u8], signature: &[u8]) -> bool {
    let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(key);
    let signature = p256::ecdsa::Signature::from_der(signature);
    key.is_ok_and(|key| signature.is_ok_and(|signature| key.verify_prehash(digest, &signature).is_ok()))
}

fn is_p384(key: &[u8], digest: &[u8], signature: &[u8]) -> bool {
    let key = p384::ecdsa::VerifyingKey::from_sec1_bytes(key);
    let signature = p384::ecdsa::Signature::from_der(signature);
    key.is_ok_and(|key| signature.is_ok_and(|signature| key.verify_prehash(digest, &signature).is_ok()))
}

fn rsa_key(key: &[u8]) -> Option<RsaPublicKey> {
    RsaPublicKey::from_pkcs1_der(key).ok().filter(|key| key.size() >= RSA_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use p256::ecdsa::signature::hazmat::PrehashSigner as _;
    use rsa::BigUint;
    use rsa::pkcs1::EncodeRsaPublicKey as _;

    const MESSAGE: &[u8] = b"the text that was signed";

    /// A public key, another one, and the signature of the first over the message.
    fn signed(algorithm: &Algorithm) -> [Vec<u8>; 3] {
        let digest = algorithm.hash.of(MESSAGE);
        match algorithm.kind {
            Kind::P256 => {
                let [own, other] = [7, 9].map(|byte| p256::ecdsa::SigningKey::from_slice(&[byte; 32]).unwrap());
                let signature: p256::ecdsa::Signature = own.sign_prehash(&digest).unwrap();
                let [own, other] =
                    [own, other].map(|key| key.verifying_key().to_encoded_point(false).as_bytes().to_vec());
                [own, other, signature.to_der().as_bytes().to_vec()]
            }
            _ => {
                let [own, other] = [7, 9].map(|byte| p384::ecdsa::SigningKey::from_slice(&[byte; 48]).unwrap());
                let signature: p384::ecdsa::Signature = own.sign_prehash(&digest).unwrap();
                let [own, other] =
                    [own, other].map(|key| key.verifying_key().to_encoded_point(false).as_bytes().to_vec());
                [own, other, signature.to_der().as_bytes().to_vec()]
            }
        }
    }

    #[test]
    fn a_signature_holds_for_its_key_and_text_and_for_no_other() {
        for algorithm in [&P256_SHA256, &P256_SHA384, &P384_SHA256, &P384_SHA384] {
            let [own, other, signature] = signed(algorithm);
            assert!(algorithm.verify_signature(&own, MESSAGE, &signature).is_ok(), "{algorithm:?}");
            for (key, text, signature) in [
                (&other, MESSAGE, &signature[..]),
                (&own, &b"another text"[..], &signature),
                (&own, MESSAGE, signature.split_last().unwrap().1),
                (&own, MESSAGE, &[]),
                (&Vec::new(), MESSAGE, &signature),
            ] {
                assert!(algorithm.verify_signature(key, text, signature).is_err(), "{algorithm:?}");
            }
        }
    }

    #[test]
    fn rsa_keys_have_a_length_that_holds() {
        for (bits, is_taken) in [(1024_usize, false), (2040, false), (2048, true), (4096, true), (8192, false)] {
            let modulus = (BigUint::from(1_u8) << (bits - 1)) + BigUint::from(1_u8);
            let key = RsaPublicKey::new_with_max_size(modulus, BigUint::from(65_537_u32), 8192).unwrap();
            assert_eq!(rsa_key(key.to_pkcs1_der().unwrap().as_bytes()).is_some(), is_taken, "{bits}");
        }
        assert!(PSS_SHA256.verify_signature(b"", MESSAGE, b"").is_err());
    }
}
