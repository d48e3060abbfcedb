//! Signing with a key, as `cosign sign --key` does from version 3 on, in no log.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use sigstore_verify::types::pae;
use zeroize::Zeroizing;

use crate::clean::is_plain;
use crate::evidence::Subject;
use crate::key::PublicKey;
use crate::limits::KEY_PEM_BYTES_MAX;
use crate::statement::{COSIGN_SIGN, IN_TOTO, STATEMENT_V1};
use crate::{pem, provider, sealed};

/// The media type of the bundles that are made here.
pub const BUNDLE_MEDIA_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// SubjectPublicKeyInfo of a P-256 key, up to the point (RFC 5480).
const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// SubjectPublicKeyInfo of an Ed25519 key, up to the key (RFC 8410).
const ED25519_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// A private key: ECDSA P-256 or Ed25519.
pub struct SigningKey {
    pair: SigningPair,
    public: PublicKey,
}

/// Why nothing is signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// More than [`KEY_PEM_BYTES_MAX`].
    #[error("a key takes at most {KEY_PEM_BYTES_MAX} bytes of PEM")]
    Size,
    /// No PEM block of a private key in a form that is known.
    #[error(
        "a private key is one PEM block `PRIVATE KEY` (PKCS#8) or `ENCRYPTED SIGSTORE PRIVATE KEY`: \
         `openssl pkcs8 -topk8 -nocrypt` writes the first, `cosign generate-key-pair` the second"
    )]
    Form,
    /// Another algorithm, or a key that does not fit its public half.
    #[error("the private key is neither ECDSA P-256 nor Ed25519")]
    Algorithm,
    /// The key is encrypted, and no password was given.
    #[error("the private key is encrypted, and there is no password")]
    NoPassword,
    /// The key does not open with the password.
    #[error("the password does not open the private key")]
    Password,
    /// The name of the image is not printable ASCII.
    #[error("the name that is signed must be printable ASCII")]
    Name,
    /// The system gave no randomness.
    #[error("the system's randomness cannot be read")]
    Random,
}

enum SigningPair {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// Reads a PEM block `PRIVATE KEY` (PKCS#8, RFC 5958), or one that cosign encrypted.
    ///
    /// An encrypted key costs up to 128 MiB and a second. The password is not looked at otherwise.
    pub fn from_pem(text: &str, password: Option<&[u8]>) -> Result<Self, SignError> {
        if text.len() > KEY_PEM_BYTES_MAX {
            return Err(SignError::Size);
        }
        let block = pem::blocks(text, 1).ok().and_then(|mut blocks| blocks.pop()).ok_or(SignError::Form)?;
        let bytes = Zeroizing::new(block.bytes);
        match block.label.as_str() {
            "PRIVATE KEY" => Self::from_pkcs8(&bytes),
            "ENCRYPTED SIGSTORE PRIVATE KEY" | "ENCRYPTED COSIGN PRIVATE KEY" => {
                Self::from_pkcs8(&sealed::open(&bytes, password.ok_or(SignError::NoPassword)?)?)
            }
            _ => Err(SignError::Form),
        }
    }

    fn from_pkcs8(bytes: &[u8]) -> Result<Self, SignError> {
        let curve = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let (pair, spki) = if let Ok(pair) = EcdsaKeyPair::from_pkcs8(curve, bytes, &SystemRandom::new()) {
            let spki = [&P256_PREFIX[..], pair.public_key().as_ref()].concat();
            (SigningPair::P256(pair), spki)
        } else {
            let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(bytes).map_err(|_| SignError::Algorithm)?;
            let spki = [&ED25519_PREFIX[..], pair.public_key().as_ref()].concat();
            (SigningPair::Ed25519(pair), spki)
        };
        let public = PublicKey::from_der(spki).map_err(|_| SignError::Algorithm)?;
        Ok(Self { pair, public })
    }

    /// The public half, for a rule.
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Signs a subject: the JSON of a Sigstore bundle v0.3, whose DSSE envelope holds an in-toto
    /// statement with cosign's predicate `https://sigstore.dev/cosign/sign/v1`.
    ///
    /// `name` becomes the name of the statement's subject, for people; cosign leaves it out.
    ///
    /// # Errors
    /// [`SignError::Name`] and [`SignError::Random`].
    pub fn sign(&self, subject: &Subject, name: Option<&str>) -> Result<Vec<u8>, SignError> {
        self.attest(subject, name, COSIGN_SIGN, &json!({}))
    }

    /// Signs a statement about a subject, in the form of [`Self::sign`], with this predicate.
    ///
    /// # Errors
    /// [`SignError::Name`] and [`SignError::Random`].
    pub fn attest(
        &self,
        subject: &Subject,
        name: Option<&str>,
        predicate_type: &str,
        predicate: &Value,
    ) -> Result<Vec<u8>, SignError> {
        provider::install();
        let digest = subject.to_string();
        let mut named = json!({"digest": {"sha256": digest.trim_start_matches("sha256:")}});
        if let Some(name) = name {
            if !is_plain(name) {
                return Err(SignError::Name);
            }
            if let Some(members) = named.as_object_mut() {
                members.insert("name".to_owned(), json!(name));
            }
        }
        let statement =
            json!({"_type": STATEMENT_V1, "subject": [named], "predicateType": predicate_type, "predicate": predicate})
                .to_string();
        let signature = self.signature(&pae(IN_TOTO, statement.as_bytes()))?;
        let bundle = json!({
            "mediaType": BUNDLE_MEDIA_TYPE,
            "verificationMaterial": {"publicKey": {"hint": STANDARD.encode(self.public.fingerprint_bytes())}},
            "dsseEnvelope": {
                "payload": STANDARD.encode(&statement),
                "payloadType": IN_TOTO,
                "signatures": [{"sig": STANDARD.encode(signature)}],
            },
        });
        Ok(bundle.to_string().into_bytes())
    }

    fn signature(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        match &self.pair {
            SigningPair::P256(pair) => pair
                .sign(&SystemRandom::new(), message)
                .map(|made| made.as_ref().to_vec())
                .map_err(|_| SignError::Random),
            // Plain Ed25519, not Ed25519ph: `cosign verify` 3.1 accepts no other in DSSE envelopes.
            SigningPair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public)
    }
}
