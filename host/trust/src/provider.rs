//! The cryptography beneath `sigstore-verify`: ring, and p256 and p384 for digests.
//!
//! ring verifies signatures of messages, not of digests. A message signature over a manifest is
//! verified by the manifest's digest alone, which p256 and p384 can do.

use p256::ecdsa::signature::hazmat::PrehashVerifier;
use ring::{digest, signature};
use sigstore_verify::crypto::error::{Error, Result};
use sigstore_verify::crypto::{CryptoProvider, HashContext, SigningScheme, install_default_provider};
use sigstore_verify::types::HashAlgorithm;

/// Makes this crate's provider the library's. A second call changes nothing.
pub(crate) fn install() {
    // An error means that one is there already: this one, of an earlier call.
    let _ = install_default_provider(&RingProvider);
}

#[derive(Debug)]
struct RingProvider;

struct RunningHash(digest::Context);

impl HashContext for RunningHash {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finalize(self: Box<Self>) -> Vec<u8> {
        self.0.finish().as_ref().to_vec()
    }
}

impl CryptoProvider for RingProvider {
    fn hash(&self, algorithm: HashAlgorithm) -> Result<Box<dyn HashContext>> {
        let algorithm = match algorithm {
            HashAlgorithm::Sha2256 => &digest::SHA256,
            HashAlgorithm::Sha2384 => &digest::SHA384,
            HashAlgorithm::Sha2512 => &digest::SHA512,
            other => return Err(Error::UnsupportedAlgorithm(format!("hash {other}"))),
        };
        Ok(Box::new(RunningHash(digest::Context::new(algorithm))))
    }

    fn verify_raw(&self, scheme: SigningScheme, key: &[u8], data: &[u8], signature: &[u8]) -> Result<()> {
        let algorithm: &dyn signature::VerificationAlgorithm = match scheme {
            SigningScheme::EcdsaP256Sha256 => &signature::ECDSA_P256_SHA256_ASN1,
            SigningScheme::EcdsaP256Sha384 => &signature::ECDSA_P256_SHA384_ASN1,
            SigningScheme::EcdsaP384Sha256 => &signature::ECDSA_P384_SHA256_ASN1,
            SigningScheme::EcdsaP384Sha384 => &signature::ECDSA_P384_SHA384_ASN1,
            SigningScheme::Ed25519 => &signature::ED25519,
            SigningScheme::RsaPkcs1Sha256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            SigningScheme::RsaPkcs1Sha384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            SigningScheme::RsaPkcs1Sha512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            SigningScheme::RsaPssSha256 => &signature::RSA_PSS_2048_8192_SHA256,
            SigningScheme::RsaPssSha384 => &signature::RSA_PSS_2048_8192_SHA384,
            SigningScheme::RsaPssSha512 => &signature::RSA_PSS_2048_8192_SHA512,
            other => return Err(Error::UnsupportedAlgorithm(other.name().to_owned())),
        };
        signature::UnparsedPublicKey::new(algorithm, key).verify(data, signature).map_err(|_| invalid(scheme))
    }

    fn verify_prehashed(&self, scheme: SigningScheme, key: &[u8], digest: &[u8], signature: &[u8]) -> Result<()> {
        let verified = match scheme {
            SigningScheme::EcdsaP256Sha256 | SigningScheme::EcdsaP256Sha384 => p256_digest(key, digest, signature),
            SigningScheme::EcdsaP384Sha256 | SigningScheme::EcdsaP384Sha384 => p384_digest(key, digest, signature),
            other => return Err(Error::UnsupportedAlgorithm(format!("{} over a digest", other.name()))),
        };
        verified.ok_or_else(|| invalid(scheme))
    }
}

fn p256_digest(key: &[u8], digest: &[u8], signature: &[u8]) -> Option<()> {
    let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(key).ok()?;
    key.verify_prehash(digest, &p256::ecdsa::Signature::from_der(signature).ok()?).ok()
}

fn p384_digest(key: &[u8], digest: &[u8], signature: &[u8]) -> Option<()> {
    let key = p384::ecdsa::VerifyingKey::from_sec1_bytes(key).ok()?;
    key.verify_prehash(digest, &p384::ecdsa::Signature::from_der(signature).ok()?).ok()
}

fn invalid(scheme: SigningScheme) -> Error {
    Error::Verification(format!("{} signature invalid", scheme.name()))
}
