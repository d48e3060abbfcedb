//! Public keys that rules name.

use std::fmt;

use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest, Sha512};
use sigstore_verify::crypto::{KeyAlgorithm, SigningScheme, VerificationKey, verify_signature};
use sigstore_verify::types::{DerPublicKey, SignatureBytes};

use crate::clean::hexadecimal;
use crate::limits::KEY_PEM_BYTES_MAX;
use crate::{pem, provider};

/// A public key: ECDSA P-256, ECDSA P-384 or Ed25519.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    der: DerPublicKey,
    algorithm: KeyAlgorithm,
    fingerprint: [u8; 32],
}

/// Why a text is not a public key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// More than [`KEY_PEM_BYTES_MAX`].
    #[error("a key takes at most {KEY_PEM_BYTES_MAX} bytes of PEM")]
    Size,
    /// No PEM block `PUBLIC KEY`.
    #[error("a public key is one PEM block `PUBLIC KEY`, as `cosign generate-key-pair` writes to cosign.pub")]
    Pem,
    /// Another algorithm, or a point that is not on its curve.
    #[error("the key is not ECDSA P-256, ECDSA P-384 or Ed25519")]
    Algorithm,
}

impl PublicKey {
    /// Reads a PEM block `PUBLIC KEY` (RFC 7468, section 13; SubjectPublicKeyInfo of RFC 5280).
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        if text.len() > KEY_PEM_BYTES_MAX {
            return Err(KeyError::Size);
        }
        let block = pem::blocks(text, 1).ok().and_then(|mut blocks| blocks.pop()).ok_or(KeyError::Pem)?;
        if block.label != "PUBLIC KEY" {
            return Err(KeyError::Pem);
        }
        Self::from_der(block.bytes)
    }

    pub(crate) fn from_der(bytes: Vec<u8>) -> Result<Self, KeyError> {
        provider::install();
        let fingerprint = digest(&bytes);
        let der = DerPublicKey::new(bytes);
        let algorithm = KeyAlgorithm::from_spki(&der).map_err(|_| KeyError::Algorithm)?;
        let key = VerificationKey::from_spki(&der).map_err(|_| KeyError::Algorithm)?;
        let sound = match algorithm {
            KeyAlgorithm::EcdsaP256 => p256::ecdsa::VerifyingKey::from_sec1_bytes(key.as_bytes()).is_ok(),
            KeyAlgorithm::EcdsaP384 => p384::ecdsa::VerifyingKey::from_sec1_bytes(key.as_bytes()).is_ok(),
            KeyAlgorithm::Ed25519 => VerifyingKey::try_from(key.as_bytes()).is_ok(),
            _ => false,
        };
        if sound { Ok(Self { der, algorithm, fingerprint }) } else { Err(KeyError::Algorithm) }
    }

    /// `sha256:` and the SHA-256 of the key's SubjectPublicKeyInfo in hexadecimal.
    pub fn fingerprint(&self) -> String {
        format!("sha256:{}", hexadecimal(&self.fingerprint))
    }

    pub(crate) fn fingerprint_bytes(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    pub(crate) fn der(&self) -> &DerPublicKey {
        &self.der
    }

    pub(crate) fn algorithm(&self) -> KeyAlgorithm {
        self.algorithm
    }

    /// Says if the key made the signature. Ed25519 keys may have used Ed25519ph, as those of cosign
    /// do. No signature is valid as both, for their messages begin differently (RFC 8032, 5.1).
    pub(crate) fn verifies(&self, scheme: SigningScheme, message: &[u8], signature: &SignatureBytes) -> bool {
        verify_signature(&self.der, message, signature, scheme).is_ok()
            || (scheme == SigningScheme::Ed25519 && self.verifies_prehashed(message, signature).is_some())
    }

    fn verifies_prehashed(&self, message: &[u8], signature: &SignatureBytes) -> Option<()> {
        let bytes = VerificationKey::from_spki(&self.der).ok()?;
        let key = VerifyingKey::try_from(bytes.as_bytes()).ok()?;
        let signature = Signature::from_slice(signature.as_bytes()).ok()?;
        key.verify_prehashed_strict(Sha512::new_with_prefix(message), None, &signature).ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}", self.fingerprint())
    }
}

/// The SHA-256 digest of some bytes.
pub(crate) fn digest(bytes: &[u8]) -> [u8; 32] {
    let mut digest = [0; 32];
    digest.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref());
    digest
}
