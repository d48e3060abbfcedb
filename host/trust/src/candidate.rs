//! Evidence that was read and is about the subject, before anything in it is verified.

use sigstore_verify::Policy;
use sigstore_verify::types::bundle::{TransparencyLogEntry, VerificationMaterialContent};
use sigstore_verify::types::{
    Artifact, ArtifactDigest, Bundle, HashAlgorithm, KindVersion, MediaType, Sha256Hash, SignatureContent,
};
use sigstore_verify::{VerificationResult, Verifier};

use crate::clean::hexadecimal;
use crate::evidence::{Evidence, Subject};
use crate::limits::{EVIDENCE_BYTES_MAX, SBOM_BYTES_MAX};
use crate::statement::Statement;
use crate::statement::{self, IN_TOTO};
use crate::untrusted::Reason;
use crate::{bundle, layer};

/// A signed statement about the subject.
pub(crate) struct Candidate {
    pub(crate) bundle: Bundle,
    pub(crate) statement: Statement,
    pub(crate) message: SignedMessage,
}

/// The message of a message signature. DSSE envelopes hold theirs.
pub(crate) enum SignedMessage {
    /// The manifest, whose digest is known.
    Manifest(Subject),
    /// A simple signing payload about the manifest.
    Payload(Vec<u8>),
}

/// The log's evidence in a bundle.
pub(crate) enum LogEvidence {
    /// No entry.
    None,
    /// Every entry has a proof of its inclusion.
    Proofs,
    /// No entry has a proof, and each has a signed promise with a time: before version 0.2 only.
    Promises,
}

/// Reads evidence and refuses, without any cryptography, what is not about the subject.
pub(crate) fn read(evidence: &Evidence, subject: &Subject) -> Result<Candidate, Reason> {
    at_most(evidence, SBOM_BYTES_MAX)?;
    let candidate = match evidence {
        Evidence::Bundle(json) => from_bundle(bundle::parse(json)?, subject)?,
        Evidence::CosignLayer(of_cosign) => layer::read(of_cosign, subject)?,
    };
    if candidate.statement != Statement::Sbom {
        at_most(evidence, EVIDENCE_BYTES_MAX).map_err(|reason| reason.of(candidate.statement))?;
    }
    Ok(candidate)
}

pub(crate) fn from_bundle(bundle: Bundle, subject: &Subject) -> Result<Candidate, Reason> {
    let statement = match &bundle.content {
        SignatureContent::DsseEnvelope(envelope) => {
            if envelope.payload_type != IN_TOTO {
                return Err(Reason::malformed(format!("its payload is of the unknown type {}", envelope.payload_type)));
            }
            statement::in_toto(envelope.payload.as_bytes(), subject)?
        }
        SignatureContent::MessageSignature(message) => {
            if let Some(digest) = &message.message_digest {
                let bytes = digest.digest.as_bytes();
                if digest.algorithm != HashAlgorithm::Sha2256 || bytes != subject.as_bytes() {
                    let hex = (digest.algorithm == HashAlgorithm::Sha2256).then(|| hexadecimal(bytes));
                    return Err(statement::other_subject(hex.as_deref()).of(Statement::Signature));
                }
            }
            Statement::Signature
        }
        _ => return Err(Reason::malformed("it has neither a message signature nor a DSSE envelope")),
    };
    Ok(Candidate { bundle, statement, message: SignedMessage::Manifest(*subject) })
}

impl Candidate {
    /// Says if the signer is a key, which the bundle does not hold.
    pub(crate) fn is_by_key(&self) -> bool {
        matches!(self.bundle.verification_material.content, VerificationMaterialContent::PublicKey(_))
    }

    pub(crate) fn log_evidence(&self) -> Result<LogEvidence, Reason> {
        let entries = &self.bundle.verification_material.tlog_entries;
        if entries.is_empty() {
            Ok(LogEvidence::None)
        } else if entries.iter().all(|entry| entry.inclusion_proof.is_some()) {
            Ok(LogEvidence::Proofs)
        } else if self.bundle.media_type() == MediaType::Bundle0_1 && entries.iter().all(is_promise_alone) {
            Ok(LogEvidence::Promises)
        } else {
            Err(Reason::invalid(
                "an entry of the transparency log has no proof, which a bundle needs from version 0.2 on",
            ))
        }
    }

    /// Asks the library. `policy` is one of its own; its answer holds for this bundle only.
    pub(crate) fn verify(&self, verifier: &Verifier, policy: &dyn Policy) -> Result<VerificationResult, Reason> {
        verifier
            .verify(self.artifact(), &self.bundle, policy)
            .map_err(|error| Reason::invalid(format!("its verification failed: {error}")))
    }

    fn artifact(&self) -> Artifact<'_> {
        match &self.message {
            SignedMessage::Manifest(subject) => {
                Artifact::Digest(ArtifactDigest::sha256(Sha256Hash::new(*subject.as_bytes())))
            }
            SignedMessage::Payload(payload) => Artifact::Blob(payload),
        }
    }
}

/// Says if the library verifies the entry's promise, and takes its time, without a proof.
fn is_promise_alone(entry: &TransparencyLogEntry) -> bool {
    let first_version =
        matches!(entry.kind_version, KindVersion::HashedRekordV001 | KindVersion::DsseV001 | KindVersion::IntotoV002);
    let is_promised = entry.inclusion_promise.is_some() && entry.integrated_time.is_some();
    first_version && is_promised && entry.inclusion_proof.is_none()
}

fn at_most(evidence: &Evidence, limit: usize) -> Result<(), Reason> {
    let bytes = evidence.bytes();
    if bytes <= limit {
        Ok(())
    } else {
        Err(Reason::malformed(format!("it takes {bytes} bytes; at most {limit} are allowed")))
    }
}
