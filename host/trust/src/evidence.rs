//! The subject of a verification, and what a registry keeps as evidence about it.

use std::fmt;
use std::str::FromStr;

use crate::clean::hexadecimal;

/// The SHA-256 digest of the OCI manifest that is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject([u8; 32]);

/// The text is not a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is `sha256:` and 64 hexadecimal letters in lower case")]
pub struct SubjectError;

/// One piece of evidence, as a registry gave it. Nothing in it is trusted before it is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The JSON of a Sigstore bundle, v0.1 to v0.3: a referrer of type
    /// `application/vnd.dev.sigstore.bundle.v0.3+json`, for example.
    Bundle(Vec<u8>),
    /// One layer of a `.sig` or `.att` tag of cosign 2.
    CosignLayer(CosignLayer),
}

/// One layer of a `.sig` or `.att` tag of cosign 2, and the layer's annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CosignLayer {
    /// The layer: a simple signing payload, or a DSSE envelope for `.att` tags.
    pub payload: Vec<u8>,
    /// `dev.cosignproject.cosign/signature`. Empty for a DSSE envelope, which holds its own.
    pub signature_base64: String,
    /// `dev.sigstore.cosign/certificate`. Without it the layer is signed with a key.
    pub certificate_pem: Option<String>,
    /// `dev.sigstore.cosign/chain`, from the issuer of the certificate on.
    pub chain_pem: Option<String>,
    /// `dev.sigstore.cosign/bundle`: the entry of the log and its promise, as JSON.
    pub bundle_json: Option<String>,
}

impl Subject {
    /// The digest by its bytes.
    pub fn new(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// The digest's bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", hexadecimal(&self.0))
    }
}

impl FromStr for Subject {
    type Err = SubjectError;

    fn from_str(text: &str) -> Result<Self, SubjectError> {
        let digest = toolcell_policy::Digest::parse(text).map_err(|_| SubjectError)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digest.hex().as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(pair).map_err(|_| SubjectError)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| SubjectError)?;
        }
        Ok(Self(bytes))
    }
}

impl Evidence {
    /// Bytes of the evidence with everything that comes with it.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Bundle(json) => json.len(),
            Self::CosignLayer(layer) => {
                let optional = [&layer.certificate_pem, &layer.chain_pem, &layer.bundle_json];
                let annotations: usize = optional.into_iter().flatten().map(String::len).sum();
                layer.payload.len() + layer.signature_base64.len() + annotations
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_as_they_are_written() {
        let text = format!("sha256:{}", "0123456789abcdef".repeat(4));
        assert_eq!(text.parse::<Subject>().unwrap().to_string(), text);
        for wrong in [
            "",
            "sha256:",
            "sha512:00",
            &text[..70],
            &text.to_uppercase(),
            &text.replace('0', "g"),
            &format!("{text}0"),
        ] {
            assert_eq!(wrong.parse::<Subject>(), Err(SubjectError), "{wrong}");
        }
    }
}
