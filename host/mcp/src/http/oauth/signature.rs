//! Checks signatures of tokens with `ring`, behind the interface of `jsonwebtoken`.
//!
//! `jsonwebtoken` leaves cryptography to a provider. Its own needs some thirty more crates, one of
//! them with an unfixed advisory (RUSTSEC-2023-0071). TLS already uses `ring`.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    self as checks, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

/// The provider for this process. It only holds public keys.
static PROVIDER: CryptoProvider =
    CryptoProvider { signer_factory: signer, verifier_factory: verifier, key_utils: KeyUtils::new_unimplemented() };

/// Installs the provider. Later calls have no effect.
pub(super) fn install() {
    // An error means that it is already installed; nothing else installs one.
    let _ = PROVIDER.install_default();
}

/// The host never signs tokens.
fn signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let check = SignatureCheck::of(*algorithm).ok_or(ErrorKind::UnsupportedAlgorithm)?;
    if algorithm.family() != key.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(KeyCheck { algorithm: *algorithm, check, key: key.clone() }))
}

/// The check of one algorithm by `ring`.
enum SignatureCheck {
    Rsa(&'static RsaParameters),
    Curve(&'static dyn VerificationAlgorithm),
}

impl SignatureCheck {
    /// `None` for symmetric keys: every party that can check with one can also sign.
    fn of(algorithm: Algorithm) -> Option<Self> {
        Some(match algorithm {
            Algorithm::RS256 => Self::Rsa(&checks::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => Self::Rsa(&checks::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => Self::Rsa(&checks::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => Self::Rsa(&checks::RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => Self::Rsa(&checks::RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => Self::Rsa(&checks::RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => Self::Curve(&checks::ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => Self::Curve(&checks::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => Self::Curve(&checks::ED25519),
            _ => return None,
        })
    }
}

/// One key with its algorithm.
struct KeyCheck {
    algorithm: Algorithm,
    check: SignatureCheck,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for KeyCheck {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let held = match (&self.check, self.key.kind()) {
            (SignatureCheck::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let key = RsaPublicKeyComponents { n: without_zeros(n), e: without_zeros(e) };
                key.verify(parameters, message, signature)
            }
            (SignatureCheck::Curve(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(*algorithm, point).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        held.map_err(|_| Error::new())
    }
}

impl JwtVerifier for KeyCheck {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// Removes leading zero bytes. Some issuers write one, which RFC 7518 section 6.3.1.1 forbids and
/// `ring` refuses.
fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}
