//! From evidence and a rule to the signers that count.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::evidence::{Evidence, Subject};
use crate::limits::{EVIDENCE_MAX, EVIDENCE_TOTAL_BYTES_MAX, SIGNED_BY_MAX};
use crate::root::TrustedRoot;
use crate::rule::TrustRule;
use crate::signer::{self, Verified, VerifiedSigner};
use crate::statement::Statement;
use crate::untrusted::{Reason, Refusal, Untrusted, Weight};
use crate::{candidate, keyed, keyless};

impl TrustRule {
    /// Verifies who signed the subject, and that the rule is content with them.
    ///
    /// Without a requirement, but with somebody in `signed_by`, a signature is required. Evidence
    /// that does not count harms nothing: one good signature is enough.
    ///
    /// Costs at most the hashing of [`EVIDENCE_TOTAL_BYTES_MAX`] for each key of the rule, and for
    /// each of [`EVIDENCE_MAX`] pieces of evidence about the subject one verification of
    /// certificates, log entries and timestamps.
    ///
    /// # Errors
    /// [`Untrusted`] says which requirement is not met, what was found instead, and for each piece
    /// of evidence why it does not count.
    pub fn verify(
        &self,
        subject: &Subject,
        evidence: &[Evidence],
        root: &TrustedRoot,
        now: SystemTime,
    ) -> Result<Verified, Untrusted> {
        let mut verified = Verified::default();
        let mut reasons = Vec::new();
        let mut bytes = 0usize;
        let mut pieces: Vec<(usize, &Evidence)> = evidence.iter().enumerate().take(EVIDENCE_MAX).collect();
        // Small ones first: large ones that say nothing must not take their room.
        pieces.sort_by_key(|(_, piece)| piece.bytes());
        for (at, piece) in pieces {
            bytes = bytes.saturating_add(piece.bytes());
            let outcome = if bytes > EVIDENCE_TOTAL_BYTES_MAX {
                Err(Reason::new(
                    Weight::Ignored,
                    format!("all evidence takes more than {EVIDENCE_TOTAL_BYTES_MAX} bytes"),
                ))
            } else {
                // A panic would be a bug of a library or of this crate. Its evidence counts as
                // invalid.
                let run = || self.examine(subject, piece, root, now);
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
                    .unwrap_or_else(|_| Err(Reason::invalid("the verifier failed on it")))
            };
            match outcome {
                Ok((statement, signer)) => note(&mut verified, statement, &signer),
                Err(reason) => reasons.push((at, reason)),
            }
        }
        reasons.sort_by_key(|(at, _)| *at);
        if let Some(more) = evidence.len().checked_sub(EVIDENCE_MAX).filter(|more| *more > 0) {
            let text = format!("{more} more pieces of evidence were not looked at; at most {EVIDENCE_MAX} are");
            reasons.push((EVIDENCE_MAX, Reason::new(Weight::Ignored, text)));
        }
        match self.required().into_iter().find(|statement| signers(&verified, *statement).is_empty()) {
            None => Ok(verified),
            Some(missing) => Err(self.untrusted(subject, missing, &verified, reasons)),
        }
    }

    fn examine(
        &self,
        subject: &Subject,
        piece: &Evidence,
        root: &TrustedRoot,
        now: SystemTime,
    ) -> Result<(Statement, VerifiedSigner), Reason> {
        if self.signed_by.len() > SIGNED_BY_MAX {
            return Err(Reason::new(Weight::Invalid, format!("signed_by names more than {SIGNED_BY_MAX} signers")));
        }
        let candidate = candidate::read(piece, subject)?;
        let verify = if candidate.is_by_key() { keyed::verify } else { keyless::verify };
        let signer = verify(&candidate, self, root, now).map_err(|reason| reason.of(candidate.statement))?;
        Ok((candidate.statement, signer))
    }

    fn required(&self) -> Vec<Statement> {
        let any = self.require.signature || self.require.provenance || self.require.sbom;
        [
            (self.require.signature || (!any && !self.signed_by.is_empty()), Statement::Signature),
            (self.require.provenance, Statement::Provenance),
            (self.require.sbom, Statement::Sbom),
        ]
        .into_iter()
        .filter_map(|(required, statement)| required.then_some(statement))
        .collect()
    }

    fn untrusted(
        &self,
        subject: &Subject,
        missing: Statement,
        verified: &Verified,
        reasons: Vec<(usize, Reason)>,
    ) -> Untrusted {
        let is_about = |reason: &Reason| match reason.statement {
            Some(statement) => {
                statement == missing || (missing, statement) == (Statement::Signature, Statement::Provenance)
            }
            None => true,
        };
        let about: Vec<_> = reasons.iter().map(|(_, reason)| reason).filter(|reason| is_about(reason)).collect();
        // Of those that say the same much, the first.
        let telling = about.iter().rev().max_by_key(|reason| reason.weight);
        let mut because = match telling {
            _ if self.signed_by.is_empty() => "signed_by is empty".to_owned(),
            Some(reason) => reason.text.clone(),
            None => instead(verified),
        };
        if about.len() > 1 && !self.signed_by.is_empty() {
            because.push_str(&format!(" ({} more do not count either)", about.len() - 1));
        }
        let summary = format!("{subject} has no {missing} that counts: {because}");
        let refusals =
            reasons.into_iter().map(|(evidence, reason)| Refusal { evidence, reason: reason.text }).collect();
        Untrusted { summary, refusals }
    }
}

/// Refuses times, in seconds since 1970, that lie after `now`.
pub(crate) fn not_after(mut times: impl Iterator<Item = i64>, now: SystemTime) -> Result<(), Reason> {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let now = i64::try_from(seconds).unwrap_or(i64::MAX);
    match times.find(|time| *time > now) {
        Some(later) => {
            Err(Reason::invalid(format!("it was signed {} seconds from now: is the clock right?", later - now)))
        }
        None => Ok(()),
    }
}

fn note(verified: &mut Verified, statement: Statement, signer: &VerifiedSigner) {
    match statement {
        Statement::Signature => signer::add(&mut verified.signers, signer),
        Statement::Provenance => signer::add(&mut verified.provenance, signer),
        Statement::Sbom => signer::add(&mut verified.sbom, signer),
    }
}

/// Those who vouch for this. A provenance names the digest of what was built, and is signed: where
/// nothing else is, it stands for a signature.
fn signers(verified: &Verified, statement: Statement) -> &[VerifiedSigner] {
    match statement {
        Statement::Signature if verified.signers.is_empty() => &verified.provenance,
        Statement::Signature => &verified.signers,
        Statement::Provenance => &verified.provenance,
        Statement::Sbom => &verified.sbom,
    }
}

/// What was found instead of a missing statement, for the error message.
fn instead(verified: &Verified) -> String {
    let lists =
        [("a signature", &verified.signers), ("a provenance", &verified.provenance), ("an SBOM", &verified.sbom)];
    let found: Vec<_> = lists
        .into_iter()
        .filter_map(|(noun, list)| list.first().map(|signer| format!("{noun} by {}", signer.identity)))
        .collect();
    if found.is_empty() {
        "nothing was found next to it".to_owned()
    } else {
        format!("only {} was found", found.join(" and "))
    }
}
