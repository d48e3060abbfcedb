//! The cryptography of rustls, put together: two cipher suites and two key exchanges, which every server of TLS 1.3 has
//! one of. Holds no arithmetic of its own.

use std::sync::Arc;

use rustls::crypto::tls13::HkdfUsingHmac;
use rustls::crypto::{CipherSuiteCommon, CryptoProvider, GetRandomFailed, KeyProvider, SecureRandom};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::SigningKey;
use rustls::{CipherSuite, Error, SupportedCipherSuite, Tls13CipherSuite};

use super::{cipher, exchange, hash, signature};
use crate::random;

/// The provider.
pub fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![SupportedCipherSuite::Tls13(&CHACHA20), SupportedCipherSuite::Tls13(&AES_128)],
        kx_groups: vec![&exchange::X25519, &exchange::P256],
        signature_verification_algorithms: signature::SUPPORTED,
        secure_random: &HostRandom,
        key_provider: &NoKeys,
    }
}

static CHACHA20: Tls13CipherSuite = Tls13CipherSuite {
    common: CipherSuiteCommon {
        suite: CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        hash_provider: &hash::Sha256,
        // RFC 8446, 5.5: more records than a connection can have.
        confidentiality_limit: u64::MAX,
    },
    hkdf_provider: &HkdfUsingHmac(&hash::HmacSha256),
    aead_alg: &cipher::ChaCha20Poly1305,
    quic: None,
};

static AES_128: Tls13CipherSuite = Tls13CipherSuite {
    common: CipherSuiteCommon {
        suite: CipherSuite::TLS13_AES_128_GCM_SHA256,
        hash_provider: &hash::Sha256,
        // RFC 8446, 5.5.
        confidentiality_limit: 1 << 24,
    },
    hkdf_provider: &HkdfUsingHmac(&hash::HmacSha256),
    aead_alg: &cipher::Aes128Gcm,
    quic: None,
};

#[derive(Debug)]
struct HostRandom;

impl SecureRandom for HostRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        if random::fill(bytes) { Ok(()) } else { Err(GetRandomFailed) }
    }
}

/// The client shows no certificate of its own, so it needs no private keys.
#[derive(Debug)]
struct NoKeys;

impl KeyProvider for NoKeys {
    fn load_private_key(&self, _key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        Err(Error::General("this client has no private keys".to_owned()))
    }
}
