//! Verifies offline who signed the OCI manifest of a component.
//!
//! [`TrustRule::verify`] takes the manifest's digest, the [`Evidence`] that a registry keeps next
//! to it, and a [`TrustedRoot`]. It answers with the signers that the rule allows, in a form that a
//! lock can pin, or says for each piece of evidence why it does not count. [`SigningKey`] makes the
//! evidence that `cosign sign --key` makes.
//!
//! Signatures, certificates, log entries and timestamps are verified by `sigstore-verify`. This
//! crate bounds what reaches it, binds the result to the subject, and decides who may sign.
//!
//! Must not hold: network, files, a clock, the manifest's text. Times are arguments. The library
//! also reads the system's clock, only to refuse a log entry or trust in a key from the future.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bundle;
mod candidate;
mod clean;
mod evidence;
mod json;
mod key;
mod keyed;
mod keyless;
mod layer;
pub mod limits;
mod pem;
mod provider;
mod root;
mod rule;
mod sealed;
mod sign;
mod signer;
mod statement;
mod untrusted;
mod verify;

pub use evidence::{CosignLayer, Evidence, Subject, SubjectError};
pub use key::{KeyError, PublicKey};
pub use root::{RootError, TrustedRoot};
pub use rule::{Requirements, SignerRule, TrustRule};
pub use sign::{BUNDLE_MEDIA_TYPE, SignError, SigningKey};
pub use signer::{SignerIdentity, Strength, Verified, VerifiedSigner};
pub use statement::COSIGN_SIGN;
pub use toolcell_policy::{IdentityPattern, PatternError};
pub use untrusted::{Refusal, Untrusted};
