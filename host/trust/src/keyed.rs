//! Evidence signed with a key that a rule names.

use std::time::SystemTime;

use sigstore_verify::PublicKeyVerificationPolicy;
use sigstore_verify::crypto::{SigningScheme, verify_signature_prehashed};
use sigstore_verify::types::bundle::TransparencyLogEntry;
use sigstore_verify::types::{HashAlgorithm, Sha256Hash, SignatureBytes, SignatureContent};

use crate::candidate::{Candidate, LogEvidence, SignedMessage};
use crate::clean::hexadecimal;
use crate::key::PublicKey;
use crate::root::TrustedRoot;
use crate::rule::{SignerRule, TrustRule};
use crate::signer::{SignerIdentity, Strength, VerifiedSigner};
use crate::untrusted::{Reason, Weight};
use crate::verify::not_after;

/// Verifies the evidence with the first key of the rule that made its signature.
///
/// A key needs no log and no timestamp. Those that are there must be valid: nobody signs with a
/// log entry that does not fit.
pub(crate) fn verify(
    candidate: &Candidate,
    rule: &TrustRule,
    root: &TrustedRoot,
    now: SystemTime,
) -> Result<VerifiedSigner, Reason> {
    let key = signing_key(candidate, rule)?;
    let material = &candidate.bundle.verification_material;
    let policy = PublicKeyVerificationPolicy::new(key.der().clone());
    let log_evidence = candidate.log_evidence()?;
    let has_timestamps = !material.timestamp_verification_data.rfc3161_timestamps.is_empty();
    let mut strength = Strength::default();
    let policy = match log_evidence {
        LogEvidence::None if !has_timestamps => None,
        LogEvidence::None => Some(policy.skip_tlog_unsafe()),
        LogEvidence::Proofs => Some(policy),
        LogEvidence::Promises => {
            for entry in &material.tlog_entries {
                promise(entry, root, now)?;
            }
            strength.timestamp = true;
            Some(policy.skip_tlog_unsafe())
        }
    };
    if let Some(policy) = policy {
        let result = candidate.verify(&root.verifier, &policy)?;
        not_after(result.verified_timestamps().iter().map(|time| time.as_second()), now)?;
        strength.log_entry = !material.tlog_entries.is_empty();
        strength.timestamp |= !result.verified_timestamps().is_empty();
    }
    Ok(VerifiedSigner { identity: SignerIdentity::Key { fingerprint: key.fingerprint() }, strength })
}

fn signing_key<'a>(candidate: &Candidate, rule: &'a TrustRule) -> Result<&'a PublicKey, Reason> {
    let keys = rule.signed_by.iter().filter_map(|signer| match signer {
        SignerRule::Key(key) => Some(key),
        SignerRule::Keyless { .. } => None,
    });
    let keys: Vec<_> = keys.collect();
    if keys.is_empty() {
        return Err(Reason::new(Weight::OtherSigner, "it is signed with a key, but signed_by has no keys"));
    }
    let mut reason = None;
    for key in &keys {
        match is_by(key, candidate) {
            Ok(true) => return Ok(key),
            Ok(false) => {}
            Err(other) => reason = Some(other),
        }
    }
    let text = format!("it is not signed by any of the keys in signed_by ({})", keys.len());
    Err(reason.unwrap_or_else(|| Reason::new(Weight::OtherSigner, text)))
}

fn is_by(key: &PublicKey, candidate: &Candidate) -> Result<bool, Reason> {
    let message = match &candidate.bundle.content {
        SignatureContent::DsseEnvelope(envelope) => {
            let scheme = key.algorithm().default_signing_scheme();
            return Ok(key.verifies(scheme, &envelope.pae(), &envelope.signature.sig));
        }
        SignatureContent::MessageSignature(message) => message,
        _ => return Ok(false),
    };
    let Ok(scheme) = key.algorithm().resolve_signing_scheme(HashAlgorithm::Sha2256) else { return Ok(false) };
    match &candidate.message {
        // cosign 2 hashes with SHA-256 for each curve, cosign 3 with the curve's own.
        SignedMessage::Payload(payload) => Ok([scheme, key.algorithm().default_signing_scheme()]
            .into_iter()
            .any(|scheme| key.verifies(scheme, payload, &message.signature))),
        SignedMessage::Manifest(_) if scheme == SigningScheme::Ed25519 => Err(Reason::invalid(
            "a message signature by an Ed25519 key needs the manifest's bytes: sign a DSSE statement, as cosign 3 does",
        )),
        SignedMessage::Manifest(subject) => {
            Ok(verify_signature_prehashed(key.der(), subject.as_bytes(), &message.signature, scheme).is_ok())
        }
    }
}

/// Verifies the log's promise (Rekor's signed entry timestamp), which the library does not do for
/// keys without a proof. That the entry is about this signature is its work.
fn promise(entry: &TransparencyLogEntry, root: &TrustedRoot, now: SystemTime) -> Result<(), Reason> {
    let invalid = || Reason::invalid("the promise of the transparency log is not valid");
    let (Some(promise), Some(time)) = (&entry.inclusion_promise, entry.integrated_time) else { return Err(invalid()) };
    let id = Sha256Hash::try_from(entry.log_id.key_id.as_bytes()).map_err(|_| invalid())?;
    let key = root.log_keys.key_at(&id, time).ok_or_else(|| {
        Reason::invalid(format!(
            "the trusted root knows no transparency log {} of that time",
            hexadecimal(id.as_bytes())
        ))
    })?;
    // Canonical JSON (RFC 8785): sorted members, and texts that need no escapes.
    let signed = format!(
        r#"{{"body":"{}","integratedTime":{},"logID":"{}","logIndex":{}}}"#,
        entry.canonicalized_body.to_base64(),
        time.as_second(),
        hexadecimal(id.as_bytes()),
        entry.log_index.get(),
    );
    let signature = SignatureBytes::new(promise.signed_entry_timestamp.as_bytes().to_vec());
    key.verify(signed.as_bytes(), &signature).map_err(|_| invalid())?;
    not_after(std::iter::once(time.as_second()), now)
}
