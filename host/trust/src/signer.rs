//! Signers that were verified, in a form that a lock can keep.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Who signed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SignerIdentity {
    /// The holder of a certificate of Fulcio.
    Keyless {
        /// The OpenID Connect issuer: extension 1.3.6.1.4.1.57264.1.8 of the certificate, or .1.1.
        issuer: String,
        /// The e-mail address or URI of the certificate's subject alternative name.
        identity: String,
    },
    /// The holder of a private key.
    Key {
        /// `sha256:` and the SHA-256 of the public key's SubjectPublicKeyInfo in hexadecimal.
        fingerprint: String,
    },
}

/// Evidence about a signature beyond the signature itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strength {
    /// A transparency log holds the signature: its promise or proof was verified.
    pub log_entry: bool,
    /// A log or a timestamp authority (RFC 3161) says when the signature existed.
    pub timestamp: bool,
}

/// A signer, and the most that is known of its signatures.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifiedSigner {
    /// Who signed.
    pub identity: SignerIdentity,
    /// That of the strongest of several signatures of the same signer: a log entry counts for more
    /// than a timestamp.
    pub strength: Strength,
}

/// Who signed what about a subject: allowed signers only, sorted, each once a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verified {
    /// Who signed the manifest itself.
    pub signers: Vec<VerifiedSigner>,
    /// Who signed a SLSA provenance.
    pub provenance: Vec<VerifiedSigner>,
    /// Who signed an SBOM.
    pub sbom: Vec<VerifiedSigner>,
}

impl fmt::Display for SignerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keyless { issuer, identity } => write!(f, "{identity} (issuer {issuer})"),
            Self::Key { fingerprint } => write!(f, "key {fingerprint}"),
        }
    }
}

impl fmt::Display for VerifiedSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let strength = match (self.strength.log_entry, self.strength.timestamp) {
            (true, true) => "in a transparency log, with a timestamp",
            (true, false) => "in a transparency log",
            (false, true) => "with a timestamp, in no log",
            (false, false) => "in no log",
        };
        write!(f, "{}, {strength}", self.identity)
    }
}

/// Adds a signer to a sorted list, or strengthens the one that is there.
pub(crate) fn add(signers: &mut Vec<VerifiedSigner>, signer: &VerifiedSigner) {
    match signers.binary_search_by(|known| known.identity.cmp(&signer.identity)) {
        Ok(at) => {
            if let Some(known) = signers.get_mut(at) {
                known.strength = known.strength.max(signer.strength);
            }
        }
        Err(at) => signers.insert(at, signer.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_strength_has_its_own_words() {
        let words = |log_entry, timestamp| {
            let identity = SignerIdentity::Key { fingerprint: "f".to_owned() };
            VerifiedSigner { identity, strength: Strength { log_entry, timestamp } }.to_string()
        };
        assert_eq!(words(true, true), "key f, in a transparency log, with a timestamp");
        assert_eq!(words(true, false), "key f, in a transparency log");
        assert_eq!(words(false, true), "key f, with a timestamp, in no log");
        assert_eq!(words(false, false), "key f, in no log");
    }

    #[test]
    fn strengths_of_several_signatures_are_not_put_together() {
        let signer = |log_entry, timestamp| VerifiedSigner {
            identity: SignerIdentity::Key { fingerprint: "f".to_owned() },
            strength: Strength { log_entry, timestamp },
        };
        let mut signers = Vec::new();
        for strength in [(false, true), (true, false), (false, false)] {
            add(&mut signers, &signer(strength.0, strength.1));
        }
        assert_eq!(signers, [signer(true, false)], "one has an entry, another one a timestamp");
    }
}
