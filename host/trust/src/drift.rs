//! The difference between the signers that a lock pins and those found later.

use std::fmt;

use crate::signer::{SignerIdentity, Verified, VerifiedSigner};

/// A kind of signed statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Statement {
    /// A signature of the manifest.
    Signature,
    /// A SLSA provenance.
    Provenance,
    /// An SBOM.
    Sbom,
}

/// One thing that was pinned and is not found any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignerChange {
    /// Others signed instead of the pinned signer.
    Replaced {
        /// The statement they signed.
        statement: Statement,
        /// The pinned signer.
        pinned: SignerIdentity,
        /// All who were not pinned.
        found: Vec<SignerIdentity>,
    },
    /// The pinned signer's statement is not there, and nobody else's is in its place.
    Lost {
        /// The statement that is not there.
        statement: Statement,
        /// The pinned signer.
        pinned: SignerIdentity,
    },
    /// The signature was in a transparency log, and now is in none.
    LogEntryLost {
        /// The statement that is weaker.
        statement: Statement,
        /// The pinned signer.
        pinned: SignerIdentity,
    },
    /// The signature had a time that somebody vouched for, and now has none.
    TimestampLost {
        /// The statement that is weaker.
        statement: Statement,
        /// The pinned signer.
        pinned: SignerIdentity,
    },
}

/// All that was pinned and is not found. More than was pinned is no drift.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignerDrift {
    /// The changes: signatures first, then provenance, then SBOMs.
    pub changes: Vec<SignerChange>,
}

/// Compares what a lock pins with what was found for the present subject.
pub fn compare(pinned: &Verified, found: &Verified) -> SignerDrift {
    let mut changes = Vec::new();
    lost(Statement::Signature, &pinned.signers, &found.signers, &mut changes);
    lost(Statement::Provenance, &pinned.provenance, &found.provenance, &mut changes);
    lost(Statement::Sbom, &pinned.sbom, &found.sbom, &mut changes);
    SignerDrift { changes }
}

impl SignerDrift {
    /// True if nothing of what was pinned is missing.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

impl fmt::Display for SignerDrift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, change) in self.changes.iter().enumerate() {
            write!(f, "{}{change}", if at == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl fmt::Display for SignerChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replaced { statement, pinned, found } => {
                write!(f, "{statement} by {} instead of {pinned}", listed(found))
            }
            Self::Lost { statement, pinned } => write!(f, "no {statement} by {pinned} any more"),
            Self::LogEntryLost { statement, pinned } => {
                write!(f, "{statement} by {pinned} is in no transparency log any more")
            }
            Self::TimestampLost { statement, pinned } => write!(f, "{statement} by {pinned} has no timestamp any more"),
        }
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signature => "signature",
            Self::Provenance => "provenance",
            Self::Sbom => "SBOM",
        })
    }
}

fn lost(statement: Statement, pinned: &[VerifiedSigner], found: &[VerifiedSigner], changes: &mut Vec<SignerChange>) {
    let not_pinned = |signer: &&VerifiedSigner| !pinned.iter().any(|known| known.identity == signer.identity);
    let others: Vec<_> = found.iter().filter(not_pinned).map(|signer| signer.identity.clone()).collect();
    for signer in pinned {
        let pinned = signer.identity.clone();
        match found.iter().find(|present| present.identity == signer.identity) {
            None if others.is_empty() => changes.push(SignerChange::Lost { statement, pinned }),
            None => changes.push(SignerChange::Replaced { statement, pinned, found: others.clone() }),
            Some(present) if signer.strength.log_entry && !present.strength.log_entry => {
                changes.push(SignerChange::LogEntryLost { statement, pinned });
            }
            Some(present) if signer.strength.timestamp && !present.strength.timestamp => {
                changes.push(SignerChange::TimestampLost { statement, pinned });
            }
            Some(_) => {}
        }
    }
}

fn listed(signers: &[SignerIdentity]) -> String {
    signers.iter().map(SignerIdentity::to_string).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signer::Strength;

    fn signer(name: &str, log_entry: bool, timestamp: bool) -> VerifiedSigner {
        let identity = SignerIdentity::Key { fingerprint: name.to_owned() };
        VerifiedSigner { identity, strength: Strength { log_entry, timestamp } }
    }

    fn signed(signers: Vec<VerifiedSigner>) -> Verified {
        Verified { signers, ..Verified::default() }
    }

    #[test]
    fn more_than_was_pinned_is_no_drift() {
        let (a, weak, b) = (signer("a", true, true), signer("a", false, false), signer("b", true, true));
        let everything =
            Verified { signers: vec![a.clone(), b.clone()], provenance: vec![b.clone()], sbom: vec![b.clone()] };
        for pinned in [Verified::default(), signed(vec![a.clone()]), signed(vec![weak]), everything.clone()] {
            assert!(compare(&pinned, &everything).is_empty(), "{pinned:?}");
        }
    }

    #[test]
    fn every_loss_is_named() {
        let (a, b) = (signer("a", true, true), signer("b", true, true));
        for (pinned, found, said) in [
            (signed(vec![a.clone()]), signed(vec![b.clone()]), "signature by key b instead of key a"),
            (signed(vec![a.clone(), b.clone()]), signed(vec![a.clone()]), "no signature by key b any more"),
            (signed(vec![a.clone()]), signed(vec![]), "no signature by key a any more"),
            (
                signed(vec![a.clone()]),
                signed(vec![signer("a", false, true)]),
                "signature by key a is in no transparency log any more",
            ),
            (
                signed(vec![signer("a", false, true)]),
                signed(vec![signer("a", false, false)]),
                "signature by key a has no timestamp any more",
            ),
            (
                Verified { provenance: vec![a.clone()], ..Verified::default() },
                Verified::default(),
                "no provenance by key a any more",
            ),
            (
                Verified { sbom: vec![a.clone()], ..Verified::default() },
                Verified::default(),
                "no SBOM by key a any more",
            ),
        ] {
            assert_eq!(compare(&pinned, &found).to_string(), said);
        }
    }

    #[test]
    fn what_is_pinned_reads_back_as_it_was_written() {
        let keyless = SignerIdentity::Keyless { issuer: "https://i".to_owned(), identity: "a@b".to_owned() };
        let mut verified = signed(vec![signer("a", true, false)]);
        verified.provenance.push(VerifiedSigner { identity: keyless, strength: Strength::default() });
        let text = serde_json::to_string(&verified).unwrap();
        assert_eq!(
            text,
            r#"{"signers":[{"identity":{"key":{"fingerprint":"a"}},"strength":{"log_entry":true,"timestamp":false}}],"provenance":[{"identity":{"keyless":{"issuer":"https://i","identity":"a@b"}},"strength":{"log_entry":false,"timestamp":false}}],"sbom":[]}"#
        );
        assert_eq!(serde_json::from_str::<Verified>(&text).unwrap(), verified);
    }
}
