//! Payloads: the statements that are signed, and the subject they are about.
//!
//! A payload says what it is about; others verify that it was signed.

use std::fmt;

use serde::Deserialize;

use crate::evidence::Subject;
use crate::json;
use crate::limits::{JSON_VALUES_MAX, STATEMENT_VALUES_MAX};
use crate::untrusted::{Reason, Weight};

/// The predicate of `cosign sign`, from version 3 on.
pub const COSIGN_SIGN: &str = "https://sigstore.dev/cosign/sign/v1";
/// The payload type of in-toto statements in a DSSE envelope.
pub(crate) const IN_TOTO: &str = "application/vnd.in-toto+json";
/// The type of an in-toto statement, version 1.
pub(crate) const STATEMENT_V1: &str = "https://in-toto.io/Statement/v1";
const STATEMENT_V0_1: &str = "https://in-toto.io/Statement/v0.1";
const PROVENANCE: [&str; 2] = ["https://slsa.dev/provenance/v1", "https://slsa.dev/provenance/v0.2"];
const SBOMS: [&str; 2] = ["https://spdx.dev/Document", "https://cyclonedx.org/bom"];
/// `critical.type` of a simple signing payload by cosign.
const SIMPLE_SIGNING: &str = "cosign container image signature";

/// A kind of signed statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Statement {
    /// A signature of the manifest.
    Signature,
    /// A SLSA provenance.
    Provenance,
    /// An SBOM.
    Sbom,
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

/// Reads an in-toto statement, v0.1 or v1, about the subject. Several subjects may be named.
pub(crate) fn in_toto(payload: &[u8], subject: &Subject) -> Result<Statement, Reason> {
    json::check(payload, STATEMENT_VALUES_MAX)
        .map_err(|error| Reason::malformed(format!("of the statement, {error}")))?;
    let read: InToto = serde_json::from_slice(payload)
        .map_err(|error| Reason::malformed(format!("its payload is not an in-toto statement: {error}")))?;
    if read.statement_type != STATEMENT_V1 && read.statement_type != STATEMENT_V0_1 {
        return Err(Reason::malformed(format!("its statement is of the unknown type {}", read.statement_type)));
    }
    let statement = by_predicate(&read.predicate_type)?;
    let text = subject.to_string();
    let wanted = text.trim_start_matches("sha256:");
    let mut digests = read.subject.iter().filter_map(|named| named.digest.sha256.as_deref());
    if digests.clone().any(|digest| digest == wanted) {
        return Ok(statement);
    }
    Err(other_subject(digests.next()).of(statement))
}

/// Reads a simple signing payload about the subject. The name of the image in it is not looked at:
/// the digest alone says what runs.
pub(crate) fn simple_signing(payload: &[u8], subject: &Subject) -> Result<(), Reason> {
    json::check(payload, JSON_VALUES_MAX).map_err(|error| Reason::malformed(format!("of the payload, {error}")))?;
    let read: SimpleSigning = serde_json::from_slice(payload)
        .map_err(|error| Reason::malformed(format!("its payload is not in the simple signing format: {error}")))?;
    if read.critical.kind != SIMPLE_SIGNING {
        return Err(Reason::malformed(format!("its payload is of the unknown type {}", read.critical.kind)));
    }
    let digest = read.critical.image.digest;
    if digest != subject.to_string() {
        return Err(other_subject(digest.strip_prefix("sha256:")));
    }
    Ok(())
}

/// The reason for evidence about another digest, given in hexadecimal.
pub(crate) fn other_subject(digest: Option<&str>) -> Reason {
    let found = digest.map_or_else(|| "something without a SHA-256 digest".to_owned(), |hex| format!("sha256:{hex}"));
    Reason::new(Weight::OtherSubject, format!("it is about {found}"))
}

fn by_predicate(predicate: &str) -> Result<Statement, Reason> {
    let is_sbom =
        |base: &&str| predicate.strip_prefix(*base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if predicate == COSIGN_SIGN {
        Ok(Statement::Signature)
    } else if PROVENANCE.contains(&predicate) {
        Ok(Statement::Provenance)
    } else if SBOMS.iter().any(is_sbom) {
        Ok(Statement::Sbom)
    } else {
        let text = format!("its predicate {predicate} is neither a signature, a provenance nor an SBOM");
        Err(Reason::new(Weight::Ignored, text))
    }
}

#[derive(Deserialize)]
struct InToto {
    #[serde(rename = "_type")]
    statement_type: String,
    subject: Vec<InTotoSubject>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
}

#[derive(Deserialize)]
struct InTotoSubject {
    digest: Digests,
}

#[derive(Deserialize)]
struct Digests {
    sha256: Option<String>,
}

#[derive(Deserialize)]
struct SimpleSigning {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(predicate: &str, digests: &str) -> String {
        format!(r#"{{"_type":"{STATEMENT_V1}","subject":[{digests}],"predicateType":"{predicate}","predicate":{{}}}}"#)
    }

    #[test]
    fn predicates_say_what_is_stated() {
        let subject = Subject::new([0xab; 32]);
        let named = format!(r#"{{"digest":{{"sha256":"{}"}}}}"#, "ab".repeat(32));
        for (predicate, expected) in [
            (COSIGN_SIGN, Some(Statement::Signature)),
            ("https://slsa.dev/provenance/v1", Some(Statement::Provenance)),
            ("https://slsa.dev/provenance/v0.2", Some(Statement::Provenance)),
            ("https://slsa.dev/provenance/v1evil", None),
            ("https://slsa.dev/provenance/v0.1", None),
            ("https://spdx.dev/Document", Some(Statement::Sbom)),
            ("https://spdx.dev/Document/v2.3", Some(Statement::Sbom)),
            ("https://spdx.dev/Documents", None),
            ("https://cyclonedx.org/bom/v1.6", Some(Statement::Sbom)),
            ("https://in-toto.io/attestation/vulns/v0.1", None),
        ] {
            assert_eq!(in_toto(statement(predicate, &named).as_bytes(), &subject).ok(), expected, "{predicate}");
        }
    }

    #[test]
    fn one_of_several_subjects_is_enough_and_another_digest_is_not() {
        let subject = Subject::new([0xab; 32]);
        let digest = |byte: &str| format!(r#"{{"name":"n","digest":{{"sha256":"{}"}}}}"#, byte.repeat(32));
        let both = statement(COSIGN_SIGN, &format!("{},{}", digest("cd"), digest("ab")));
        assert_eq!(in_toto(both.as_bytes(), &subject), Ok(Statement::Signature));
        for (digests, said) in [
            (digest("cd"), format!("it is about sha256:{}", "cd".repeat(32))),
            (digest("AB"), format!("it is about sha256:{}", "AB".repeat(32))),
            (String::new(), "it is about something without a SHA-256 digest".to_owned()),
            (r#"{"digest":{"sha512":"ab"}}"#.to_owned(), "it is about something without a SHA-256 digest".to_owned()),
        ] {
            let reason = in_toto(statement(COSIGN_SIGN, &digests).as_bytes(), &subject).unwrap_err();
            assert_eq!((reason.weight, reason.text), (Weight::OtherSubject, said));
        }
    }

    #[test]
    fn members_that_are_there_twice_are_refused() {
        let subject = Subject::new([0xab; 32]);
        let twice = format!(r#"{{"digest":{{"sha256":"{}","sha256":"00"}}}}"#, "ab".repeat(32));
        let reason = in_toto(statement(COSIGN_SIGN, &twice).as_bytes(), &subject).unwrap_err();
        assert_eq!(reason.weight, Weight::Malformed);
        assert!(reason.text.contains("duplicate field `sha256`"), "{}", reason.text);
    }
}
