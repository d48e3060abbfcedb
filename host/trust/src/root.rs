//! Trusted roots: the authorities and logs of one Sigstore instance.

use std::fmt;

use sigstore_verify::Verifier;
use sigstore_verify::crypto::Keyring;

use crate::clean::{clean, hexadecimal};
use crate::key::digest;
use crate::limits::{CHAIN_CERTIFICATES_MAX, JSON_VALUES_MAX, ROOT_AUTHORITIES_MAX, ROOT_BYTES_MAX};
use crate::{json, provider};

/// Sigstore's public instance. The file is `trusted_root.json` of the crate sigstore-trust-root
/// 0.15.1, which has it from `https://tuf-repo-cdn.sigstore.dev`. Its digest is
/// [`PUBLIC_GOOD_DIGEST`].
const PUBLIC_GOOD: &[u8] = include_bytes!("root/public_good.json");

/// SHA-256 of the embedded trusted root.
#[cfg(test)]
const PUBLIC_GOOD_DIGEST: &str = "sha256:6494e21ea73fa7ee769f85f57d5a3e6a08725eae1e38c755fc3517c9e6bc0b66";

const MEDIA_TYPES: [&str; 3] = [
    "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    "application/vnd.dev.sigstore.trustedroot+json;version=0.2",
    "application/vnd.dev.sigstore.trustedroot.v0.2+json",
];

/// The certificate authorities, transparency logs and timestamp authorities that are trusted.
///
/// It also says what evidence must have. A keyless signature needs an entry of a log if the root
/// names logs, and its certificate a timestamp of a certificate log if the root names those.
pub struct TrustedRoot {
    pub(crate) verifier: Verifier,
    pub(crate) log_keys: Keyring,
    pub(crate) has_logs: bool,
    pub(crate) has_certificate_logs: bool,
    digest: [u8; 32],
}

/// Why a text is not a trusted root.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootError {
    /// More than [`ROOT_BYTES_MAX`].
    #[error("a trusted root takes at most {ROOT_BYTES_MAX} bytes")]
    Size,
    /// No JSON of a trusted root, or more of something than the limits allow.
    #[error("this is not a Sigstore trusted root, version 0.1 or 0.2 (`trusted_root.json`): {0}")]
    Form(String),
    /// A key or certificate in it cannot be used.
    #[error("the trusted root names a key or certificate that cannot be used: {0}")]
    Material(String),
}

impl TrustedRoot {
    /// Reads a `trusted_root.json` (`dev.sigstore.trustroot.v1.TrustedRoot` of protobuf-specs).
    pub fn from_json(text: &[u8]) -> Result<Self, RootError> {
        provider::install();
        if text.len() > ROOT_BYTES_MAX {
            return Err(RootError::Size);
        }
        json::check(text, JSON_VALUES_MAX).map_err(RootError::Form)?;
        let form = |error: serde_json::Error| RootError::Form(clean(&error.to_string()));
        let root: sigstore_verify::trust_root::TrustedRoot = serde_json::from_slice(text).map_err(form)?;
        if !MEDIA_TYPES.contains(&root.media_type.as_str()) {
            return Err(RootError::Form("its mediaType is another".to_owned()));
        }
        let authorities = root.certificate_authorities.iter().map(|authority| &authority.cert_chain);
        let chains = authorities.chain(root.timestamp_authorities.iter().map(|authority| &authority.cert_chain));
        let lists =
            [root.tlogs.len(), root.ctlogs.len(), root.certificate_authorities.len(), root.timestamp_authorities.len()];
        if lists.into_iter().any(|length| length > ROOT_AUTHORITIES_MAX) {
            return Err(RootError::Form(format!("it names more than {ROOT_AUTHORITIES_MAX} authorities or logs")));
        }
        if chains.into_iter().any(|chain| chain.certificates.len() > CHAIN_CERTIFICATES_MAX) {
            return Err(RootError::Form(format!("it has a chain of more than {CHAIN_CERTIFICATES_MAX} certificates")));
        }
        let material = |error: String| RootError::Material(clean(&error));
        Ok(Self {
            verifier: Verifier::new(&root).map_err(|error| material(error.to_string()))?,
            log_keys: root.rekor_keys().map_err(|error| material(error.to_string()))?,
            has_logs: !root.tlogs.is_empty(),
            has_certificate_logs: !root.ctlogs.is_empty(),
            digest: digest(text),
        })
    }

    /// Sigstore's public instance, as it was when this crate was built. Sigstore seldom adds keys
    /// or authorities; signatures made with those need a newer root by [`Self::from_json`].
    pub fn public_good() -> Result<Self, RootError> {
        Self::from_json(PUBLIC_GOOD)
    }

    /// `sha256:` and the SHA-256 of the JSON text, for a lock.
    pub fn digest(&self) -> String {
        format!("sha256:{}", hexadecimal(&self.digest))
    }
}

impl fmt::Debug for TrustedRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustedRoot").field("digest", &self.digest()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_root_is_the_one_named() {
        let root = TrustedRoot::public_good().unwrap();
        assert_eq!(root.digest(), PUBLIC_GOOD_DIGEST);
        assert!(root.has_logs && root.has_certificate_logs);
    }

    #[test]
    fn roots_are_bounded() {
        assert_eq!(TrustedRoot::from_json(&vec![b' '; ROOT_BYTES_MAX + 1]).unwrap_err(), RootError::Size);
        let log = r#"{"baseUrl":"","hashAlgorithm":"SHA2_256","publicKey":{"rawBytes":"","keyDetails":""},"logId":{"keyId":""}}"#;
        let many = format!(
            r#"{{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1","tlogs":[{}]}}"#,
            vec![log; 65].join(",")
        );
        assert_eq!(
            TrustedRoot::from_json(many.as_bytes()).unwrap_err(),
            RootError::Form("it names more than 64 authorities or logs".to_owned())
        );
        assert!(matches!(TrustedRoot::from_json(b"{}"), Err(RootError::Form(_))));
        let deep = "[".repeat(100_000);
        assert_eq!(
            TrustedRoot::from_json(deep.as_bytes()).unwrap_err(),
            RootError::Form("its JSON is nested deeper than 64".to_owned())
        );
    }
}
