//! Rules: who may sign, and what must be signed.

use toolcell_policy::IdentityPattern;

use crate::key::PublicKey;
use crate::signer::SignerIdentity;

/// Who may sign a component, and which statements about it they must have signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustRule {
    /// Those who may sign. Nobody, if it is empty. At most
    /// [`SIGNED_BY_MAX`](crate::limits::SIGNED_BY_MAX) are looked at.
    pub signed_by: Vec<SignerRule>,
    /// The statements without which nothing is trusted.
    pub require: Requirements,
}

/// One who may sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignerRule {
    /// An identity that Sigstore's certificate authority confirmed.
    Keyless {
        /// The OpenID Connect issuer that confirmed it, exactly as in the certificate.
        issuer: String,
        /// The subject alternative names that are meant.
        identity: IdentityPattern,
    },
    /// The holder of the private key.
    Key(PublicKey),
}

/// Statements that must be signed by somebody of `signed_by`. None is required by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// A signature of the manifest. A provenance is one too: who signs it says that it was built.
    pub signature: bool,
    /// A SLSA provenance, v0.2 or v1.
    pub provenance: bool,
    /// An SBOM in SPDX or CycloneDX.
    pub sbom: bool,
}

impl SignerRule {
    /// True if the rule means this signer.
    pub fn allows(&self, signer: &SignerIdentity) -> bool {
        match (self, signer) {
            (Self::Keyless { issuer, identity }, SignerIdentity::Keyless { issuer: found, identity: name }) => {
                issuer == found && identity.matches(name)
            }
            (Self::Key(key), SignerIdentity::Key { fingerprint }) => key.fingerprint() == *fingerprint,
            _ => false,
        }
    }
}
