//! Sigstore bundles (protobuf-specs, `dev.sigstore.bundle.v1`): read, with everything counted.

use sigstore_verify::types::bundle::{TransparencyLogEntry, VerificationMaterialContent};
use sigstore_verify::types::{Bundle, SignatureContent};

use crate::json;
use crate::limits::{
    CERTIFICATE_BYTES_MAX, CHAIN_CERTIFICATES_MAX, CHECKPOINT_BYTES_MAX, IDENTITY_BYTES_MAX, JSON_VALUES_MAX,
    LOG_ENTRIES_MAX, LOG_PROOF_HASHES_MAX, SIGNATURE_BYTES_MAX, TIMESTAMP_BYTES_MAX, TIMESTAMPS_MAX,
};
use crate::untrusted::Reason;

/// Reads a bundle, v0.1 to v0.3, whose every list and text is within the limits.
pub(crate) fn parse(text: &[u8]) -> Result<Bundle, Reason> {
    json::check(text, JSON_VALUES_MAX).map_err(Reason::malformed)?;
    let text = std::str::from_utf8(text).map_err(|_| Reason::malformed("it is not UTF-8"))?;
    let bundle =
        Bundle::from_json(text).map_err(|error| Reason::malformed(format!("it is not a Sigstore bundle: {error}")))?;
    bounded(&bundle)?;
    Ok(bundle)
}

/// Refuses a bundle with more of something than the limits allow.
pub(crate) fn bounded(bundle: &Bundle) -> Result<(), Reason> {
    let material = &bundle.verification_material;
    match &material.content {
        VerificationMaterialContent::Certificate(one) => {
            at_most(one.raw_bytes.len(), CERTIFICATE_BYTES_MAX, "bytes of a certificate")?;
        }
        VerificationMaterialContent::X509CertificateChain { certificates } => {
            at_most(certificates.len(), CHAIN_CERTIFICATES_MAX, "certificates in its chain")?;
            for one in certificates {
                at_most(one.raw_bytes.len(), CERTIFICATE_BYTES_MAX, "bytes of a certificate")?;
            }
        }
        VerificationMaterialContent::PublicKey(key) => at_most(key.hint.len(), IDENTITY_BYTES_MAX, "bytes of a hint")?,
        _ => return Err(Reason::malformed("it has neither a certificate nor a key")),
    }
    at_most(material.tlog_entries.len(), LOG_ENTRIES_MAX, "log entries")?;
    material.tlog_entries.iter().try_for_each(bounded_entry)?;
    let timestamps = &material.timestamp_verification_data.rfc3161_timestamps;
    at_most(timestamps.len(), TIMESTAMPS_MAX, "timestamps")?;
    for timestamp in timestamps {
        at_most(timestamp.signed_timestamp.len(), TIMESTAMP_BYTES_MAX, "bytes of a timestamp")?;
    }
    let signature = match &bundle.content {
        SignatureContent::MessageSignature(message) => message.signature.len(),
        SignatureContent::DsseEnvelope(envelope) => envelope.signature.sig.len(),
        _ => return Err(Reason::malformed("it has neither a message signature nor a DSSE envelope")),
    };
    at_most(signature, SIGNATURE_BYTES_MAX, "bytes of a signature")
}

fn bounded_entry(entry: &TransparencyLogEntry) -> Result<(), Reason> {
    if let Some(promise) = &entry.inclusion_promise {
        at_most(promise.signed_entry_timestamp.len(), SIGNATURE_BYTES_MAX, "bytes of a log's promise")?;
    }
    let Some(proof) = &entry.inclusion_proof else { return Ok(()) };
    at_most(proof.hashes.len(), LOG_PROOF_HASHES_MAX, "hashes in a log's proof")?;
    at_most(proof.checkpoint.envelope().len(), CHECKPOINT_BYTES_MAX, "bytes of a log's checkpoint")
}

fn at_most(count: usize, limit: usize, noun: &str) -> Result<(), Reason> {
    if count <= limit {
        Ok(())
    } else {
        Err(Reason::malformed(format!("it has {count} {noun}; at most {limit} are allowed")))
    }
}
