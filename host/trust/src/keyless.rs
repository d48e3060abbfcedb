//! Evidence signed with a certificate of Fulcio.

use std::time::SystemTime;

use sigstore_verify::VerificationPolicy;
use sigstore_verify::crypto::{CertificateInfo, parse_certificate_info};

use crate::candidate::{Candidate, LogEvidence};
use crate::clean::is_plain;
use crate::root::TrustedRoot;
use crate::rule::TrustRule;
use crate::signer::{SignerIdentity, Strength, VerifiedSigner};
use crate::untrusted::{Reason, Weight};
use crate::verify::not_after;

/// Verifies the evidence if its certificate names somebody whom the rule allows.
///
/// The names are compared before anything is verified, which costs little, and taken again from
/// the certificate that was verified.
pub(crate) fn verify(
    candidate: &Candidate,
    rule: &TrustRule,
    root: &TrustedRoot,
    now: SystemTime,
) -> Result<VerifiedSigner, Reason> {
    let certificate =
        candidate.bundle.signing_certificate().ok_or_else(|| Reason::malformed("it has no certificate"))?;
    let claimed = parse_certificate_info(certificate)
        .map_err(|error| Reason::malformed(format!("its certificate cannot be read: {error}")))?;
    let identity = identity_of(&claimed)?;
    if !rule.signed_by.iter().any(|signer| signer.allows(&identity)) {
        let text = format!("its certificate names {identity}, which signed_by does not allow");
        return Err(Reason::new(Weight::OtherSigner, text));
    }
    let (policy, log_entry) = policy(candidate, root)?;
    let result = candidate.verify(&root.verifier, &policy)?;
    let verified = result.certificate().filter(|_| result.certificate_verified());
    if verified.map(identity_of) != Some(Ok(identity.clone())) {
        return Err(Reason::invalid("its certificate was not verified"));
    }
    if root.has_certificate_logs && !result.sct_verified() {
        return Err(Reason::invalid("its certificate is in no certificate log"));
    }
    not_after(result.verified_timestamps().iter().map(|time| time.as_second()), now)?;
    Ok(VerifiedSigner { identity, strength: Strength { log_entry, timestamp: true } })
}

/// The library's policy for a bundle, and whether it verifies an entry of a log.
///
/// Promises are verified under each policy, as the times they hold decide over the certificate.
fn policy(candidate: &Candidate, root: &TrustedRoot) -> Result<(VerificationPolicy, bool), Reason> {
    let any = VerificationPolicy::any_identity();
    let (policy, log_entry) = match candidate.log_evidence()? {
        LogEvidence::Proofs => (any, true),
        LogEvidence::Promises => (any.skip_tlog_unsafe(), true),
        LogEvidence::None if root.has_logs => {
            return Err(Reason::invalid("it has no entry of a transparency log, which a certificate needs"));
        }
        LogEvidence::None => (any.skip_tlog_unsafe(), false),
    };
    Ok((if root.has_certificate_logs { policy } else { policy.skip_sct() }, log_entry))
}

fn identity_of(certificate: &CertificateInfo) -> Result<SignerIdentity, Reason> {
    let (Some(name), Some(issuer)) = (&certificate.identity, &certificate.issuer) else {
        return Err(Reason::malformed("its certificate names no e-mail address or URI, or no issuer"));
    };
    if !is_plain(name.as_str()) || !is_plain(issuer) {
        return Err(Reason::malformed("its certificate names an identity or issuer that is not printable ASCII"));
    }
    Ok(SignerIdentity::Keyless { issuer: issuer.clone(), identity: name.as_str().to_owned() })
}
