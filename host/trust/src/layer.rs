//! Layers of cosign 2 as bundles, so that one way of verifying is enough.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use sigstore_verify::types::Bundle;

use crate::candidate::{Candidate, SignedMessage, from_bundle};
use crate::evidence::{CosignLayer, Subject};
use crate::key::digest;
use crate::limits::{
    CERTIFICATE_PEM_BYTES_MAX, CHAIN_CERTIFICATES_MAX, CHAIN_PEM_BYTES_MAX, EVIDENCE_BYTES_MAX, JSON_VALUES_MAX,
    SIGNATURE_BYTES_MAX,
};
use crate::statement::Statement;
use crate::untrusted::Reason;
use crate::{bundle, json as bounds, pem, statement};

/// The version of bundles that has chains of certificates, and promises without proofs.
const MEDIA_TYPE: &str = "application/vnd.dev.sigstore.bundle+json;version=0.1";

/// Reads a layer and its annotations.
pub(crate) fn read(layer: &CosignLayer, subject: &Subject) -> Result<Candidate, Reason> {
    bounds::check(&layer.payload, JSON_VALUES_MAX)
        .map_err(|error| Reason::malformed(format!("of the payload, {error}")))?;
    let probe: Probe = serde_json::from_slice(&layer.payload)
        .map_err(|error| Reason::malformed(format!("its payload is not a JSON object: {error}")))?;
    if probe.payload_type.is_some() {
        let envelope: Value = serde_json::from_slice(&layer.payload)
            .map_err(|error| Reason::malformed(format!("its payload is not a DSSE envelope: {error}")))?;
        return from_bundle(assemble(layer, "dsseEnvelope", envelope)?, subject);
    }
    statement::simple_signing(&layer.payload, subject).map_err(|reason| reason.of(Statement::Signature))?;
    if layer.signature_base64.len() > 2 * SIGNATURE_BYTES_MAX {
        return Err(Reason::malformed(format!("its signature takes more than {} letters", 2 * SIGNATURE_BYTES_MAX)));
    }
    let message_digest = json!({"algorithm": "SHA2_256", "digest": STANDARD.encode(digest(&layer.payload))});
    let signature = json!({"messageDigest": message_digest, "signature": layer.signature_base64.trim()});
    let bundle = assemble(layer, "messageSignature", signature)?;
    Ok(Candidate { bundle, statement: Statement::Signature, message: SignedMessage::Payload(layer.payload.clone()) })
}

fn assemble(layer: &CosignLayer, content: &str, value: Value) -> Result<Bundle, Reason> {
    let mut material = match &layer.certificate_pem {
        Some(text) => {
            json!({"x509CertificateChain": {"certificates": certificates(text, layer.chain_pem.as_deref())?}})
        }
        None => json!({"publicKey": {"hint": ""}}),
    };
    let entries = layer.bundle_json.as_deref().map(log_entry).transpose()?;
    if let Some(members) = material.as_object_mut() {
        members.insert("tlogEntries".to_owned(), Value::Array(entries.into_iter().collect()));
    }
    let mut whole = json!({"mediaType": MEDIA_TYPE, "verificationMaterial": material});
    if let Some(members) = whole.as_object_mut() {
        members.insert(content.to_owned(), value);
    }
    let bundle: Bundle = serde_json::from_value(whole)
        .map_err(|error| Reason::malformed(format!("its layer and annotations do not fit together: {error}")))?;
    bundle::bounded(&bundle)?;
    Ok(bundle)
}

fn certificates(certificate: &str, chain: Option<&str>) -> Result<Vec<Value>, Reason> {
    let chain = chain.filter(|text| !text.trim().is_empty());
    if certificate.len() > CERTIFICATE_PEM_BYTES_MAX || chain.is_some_and(|text| text.len() > CHAIN_PEM_BYTES_MAX) {
        return Err(Reason::malformed("its certificates take more bytes than are allowed"));
    }
    let mut blocks = pem::blocks(certificate, 1).map_err(Reason::malformed)?;
    if let Some(text) = chain {
        blocks.extend(pem::blocks(text, CHAIN_CERTIFICATES_MAX - 1).map_err(Reason::malformed)?);
    }
    if blocks.iter().any(|block| block.label != "CERTIFICATE") {
        return Err(Reason::malformed("its certificates are something else"));
    }
    Ok(blocks.into_iter().map(|block| json!({"rawBytes": STANDARD.encode(block.bytes)})).collect())
}

/// The log's entry and promise, from the form that Rekor's API has to that of bundles.
fn log_entry(text: &str) -> Result<Value, Reason> {
    let malformed = |error: String| Reason::malformed(format!("its log entry cannot be read: {error}"));
    if text.len() > EVIDENCE_BYTES_MAX {
        return Err(malformed(format!("it takes more than {EVIDENCE_BYTES_MAX} bytes")));
    }
    bounds::check(text.as_bytes(), JSON_VALUES_MAX).map_err(malformed)?;
    let read: RekorBundle = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
    let body = STANDARD.decode(&read.payload.body).map_err(|error| malformed(error.to_string()))?;
    bounds::check(&body, JSON_VALUES_MAX).map_err(malformed)?;
    let kind: BodyKind = serde_json::from_slice(&body).map_err(|error| malformed(error.to_string()))?;
    let id = from_hexadecimal(&read.payload.log_id).ok_or_else(|| malformed("its log has no ID".to_owned()))?;
    Ok(json!({
        "logIndex": read.payload.log_index.to_string(),
        "logId": {"keyId": STANDARD.encode(id)},
        "kindVersion": {"kind": kind.kind, "version": kind.api_version},
        "integratedTime": read.payload.integrated_time.to_string(),
        "inclusionPromise": {"signedEntryTimestamp": read.signed_entry_timestamp},
        "canonicalizedBody": read.payload.body,
    }))
}

fn from_hexadecimal(text: &str) -> Option<[u8; 32]> {
    format!("sha256:{text}").parse::<Subject>().ok().map(|id| *id.as_bytes())
}

#[derive(Deserialize)]
struct Probe {
    #[serde(rename = "payloadType")]
    payload_type: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct RekorBundle {
    #[serde(rename = "SignedEntryTimestamp")]
    signed_entry_timestamp: String,
    #[serde(rename = "Payload")]
    payload: RekorPayload,
}

#[derive(Deserialize)]
struct RekorPayload {
    body: String,
    #[serde(rename = "integratedTime")]
    integrated_time: i64,
    #[serde(rename = "logIndex")]
    log_index: u64,
    #[serde(rename = "logID")]
    log_id: String,
}

#[derive(Deserialize)]
struct BodyKind {
    kind: String,
    #[serde(rename = "apiVersion")]
    api_version: String,
}
