//! The sections `[trust."PREFIX"]`: who must have signed components from there.

use crate::diagnostic::{Diagnostic, Span};
use crate::identity::{IDENTITY_PATTERN_BYTES_MAX, IdentityPattern, is_plain};
use crate::read::{Entry, Problems, Section, paths};
use crate::reference::{Reference, ReferenceError};
use crate::settings::accessors;
use crate::table::table;
use crate::words::{Word as _, quoted, words};

/// Most rules of trust: some for each registry with a table.
pub(crate) const TRUST_MAX: usize = 256;

/// Most signers of one rule. Each costs a comparison with each signature.
const SIGNERS_MAX: usize = 16;

accessors! {
    /// One `[trust."PREFIX"]`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct TrustPolicy {
        /// The beginning of the repositories that it is for, or one repository.
        pub(crate) prefix: String => &str,
        /// Its place in the manifest.
        pub(crate) span: Span => Span,
        /// Those whose signature counts; at least one.
        pub(crate) signed_by: Vec<SignerPolicy> => &[SignerPolicy],
        /// Things that one of them must have signed; at least one.
        pub(crate) require: Vec<Required> => &[Required],
        /// The trusted root of keyless signatures, relative to the manifest; that of the public
        /// service by default.
        pub(crate) root: Option<String> => Option<&str>,
    }
}

/// Somebody whose signature counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignerPolicy {
    /// A person or a workflow that logged in at this issuer with such an identity.
    Keyless {
        /// The issuer, exactly.
        issuer: String,
        /// The identities.
        identity: IdentityPattern,
        /// Its place in the manifest.
        span: Span,
    },
    /// The holder of a key.
    Key {
        /// The file of the public key in PEM, relative to the manifest.
        path: String,
        /// Its place in the manifest.
        span: Span,
    },
}

words! {
    /// A thing that must be there, and signed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Required {
        /// A signature of the component's manifest.
        Signature "signature",
        /// The record of how it was built (SLSA provenance).
        Provenance "provenance",
        /// The list of its parts (SPDX or CycloneDX).
        Sbom "sbom",
    }
}

impl TrustPolicy {
    /// The files that it names, as they were written: keys, and the trusted root.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let keys = self.signed_by.iter().filter_map(|signer| match signer {
            SignerPolicy::Key { path, .. } => Some(path.as_str()),
            SignerPolicy::Keyless { .. } => None,
        });
        keys.chain(self.root())
    }
}

table! {
    /// Who must have signed components from repositories that begin with this. The longest
    /// beginning holds. Without a table a component is pinned by its digest, and nobody vouches for
    /// it.
    pub(crate) TRUST "Trust" {
        /// Those whose signature counts; one of them is enough.
        "signed_by" required: List(&Table(&SIGNER)),
            {"minItems": 1, "maxItems": SIGNERS_MAX, "examples": [[{"key": "keys/acme.pub"}]]};
        /// What one of them must have signed: the component, the record of its build, the list of
        /// its parts.
        "require": List(&Words(Required::WORDS)),
            {"minItems": 1, "maxItems": 3, "default": ["signature"], "examples": [["signature", "provenance"]]};
        /// The trusted root of keyless signatures, relative to this file: the certificates and logs
        /// that count. By default that of Sigstore's public service.
        "root": Text, {"minLength": 1, "examples": ["keys/trusted_root.json"]};
    }
    other names {
        "signers" => "signed_by", "signer" => "signed_by", "keys" => "signed_by", "requires" => "require",
        "trusted_root" => "root", "roots" => "root",
    }
}

table! {
    /// Somebody whose signature counts: an identity and its issuer, or a key.
    pub(crate) SIGNER "Signer" {
        /// The issuer of the identity, exactly.
        "issuer": Text, {"minLength": 1, "maxLength": IDENTITY_PATTERN_BYTES_MAX,
            "examples": ["https://token.actions.githubusercontent.com"]};
        /// The identity. `*` stands for any text without `/`; as its last character also for one
        /// with. In a URL it may stand after the host only, elsewhere before an `@`.
        "identity": Text, {"minLength": 1, "maxLength": IDENTITY_PATTERN_BYTES_MAX,
            "examples": ["https://github.com/acme/tools/.github/workflows/release.yml@refs/tags/*"]};
        /// The file of a public key in PEM, relative to this one: ECDSA with P-256 or P-384,
        /// or Ed25519.
        "key": Text, {"minLength": 1, "examples": ["keys/acme.pub"]};
    }
    other names { "subject" => "identity", "san" => "identity", "public_key" => "key", "file" => "key" }
}

/// The rules, in the order of the file.
pub(crate) fn read(root: &Section<'_>, problems: &mut Problems) -> Vec<TrustPolicy> {
    let Some(entry) = root.get("trust") else { return Vec::new() };
    let entries = entry.entries(TRUST_MAX, "trust::too_many", "rules of trust", problems);
    entries.iter().filter_map(|entry| read_one(entry, problems)).collect()
}

/// The rule for a repository: the one with the longest beginning.
pub(crate) fn of<'t>(rules: &'t [TrustPolicy], reference: &Reference) -> Option<&'t TrustPolicy> {
    let name = reference.name();
    let is_for = |rule: &&TrustPolicy| {
        let prefix = rule.prefix.as_str();
        if prefix.ends_with('/') { name.starts_with(prefix) } else { name == prefix }
    };
    rules.iter().filter(is_for).max_by_key(|rule| rule.prefix.len())
}

fn read_one(entry: &Entry<'_>, problems: &mut Problems) -> Option<TrustPolicy> {
    let is_known = is_prefix(entry.key);
    if !is_known {
        let problem = match spelling(entry.key) {
            Some(spelling) => entry.key_error("trust::prefix", spelling),
            None => entry.key_error("trust::prefix", format!("{:?} is not a repository prefix", entry.key)),
        };
        let hint = "write \"ghcr.io/acme/\" for all below, or \"ghcr.io/acme/tools\" for one repository";
        problems.add(problem.hint(hint));
    }
    let section = entry.table(&TRUST, problems)?;
    let root = section.get("root").map(|entry| paths::host_path(&entry, problems));
    let require = match section.get("require") {
        Some(entry) => read_require(&entry, problems),
        None => Some(vec![Required::Signature]),
    };
    let Some(signers) = section.get("signed_by") else {
        let problem = entry.key_error("manifest::missing", format!("[trust.{:?}] names no signer", entry.key));
        return problems.refuse(problem.hint("add signed_by = [{ key = \"FILE.pub\" }], or an issuer and an identity"));
    };
    let read = signers.sections(SIGNERS_MAX, problems)?;
    if read.is_empty() {
        let problem = signers.error("trust::signer", "nobody's signature would count");
        return problems.refuse(problem.hint("name a key, or an issuer and an identity"));
    }
    let found: Vec<_> = read.iter().map(|(signer, span)| read_signer(signer, span, problems)).collect();
    let signed_by = found.into_iter().collect::<Option<Vec<_>>>()?;
    // It is invalid, present, or absent.
    let root = root.map_or(Some(None), |root| root.map(Some))?;
    let prefix = entry.key.to_owned();
    let span = entry.key_span.clone();
    is_known.then_some(TrustPolicy { prefix, span, signed_by, require: require?, root })
}

/// True for a registry with the beginning of a repository's path, up to a `/`, or for one
/// repository.
fn is_prefix(text: &str) -> bool {
    let path = text.strip_suffix('/').unwrap_or(text);
    if path.contains('@') {
        return false;
    }
    let whole = |path: &str| Reference::parse(&format!("oci://{path}")).is_ok_and(|reference| reference.name() == path);
    // A registry alone is a prefix, and may need two parts after it to make a valid reference.
    whole(path) || (text.ends_with('/') && whole(&format!("{path}/a/a")))
}

/// The problem of a prefix with another spelling of a registry or repository: no source has it, so
/// the rule would have no effect.
fn spelling(text: &str) -> Option<String> {
    let written = if text.ends_with('/') { format!("oci://{text}a/a") } else { format!("oci://{text}") };
    match Reference::parse(&written) {
        Err(error @ ReferenceError::Spelling { .. }) => Some(error.to_string()),
        _ => None,
    }
}

fn read_require(entry: &Entry<'_>, problems: &mut Problems) -> Option<Vec<Required>> {
    let words = entry.strings(3, problems)?;
    if words.is_empty() {
        let problem = entry.error("trust::require", "nothing would be required");
        return problems.refuse(problem.hint("write [\"signature\"], or remove the whole rule"));
    }
    let mut require = Vec::new();
    for (word, span) in words {
        let Some(required) = Required::of(word) else {
            let message = format!("require knows {}, not {word:?}", quoted(Required::WORDS, "and"));
            return problems.refuse(Diagnostic::error("trust::require", message).at(span));
        };
        require.push(required);
    }
    require.sort();
    require.dedup();
    Some(require)
}

fn read_signer(signer: &Section<'_>, span: &Span, problems: &mut Problems) -> Option<SignerPolicy> {
    signer.check_keys(&SIGNER, problems);
    let issuer = signer.get("issuer").map(|entry| read_issuer(&entry, problems));
    let identity = signer.get("identity").map(|entry| read_identity(&entry, problems));
    match (signer.get("key"), issuer, identity) {
        (Some(key), None, None) => {
            Some(SignerPolicy::Key { path: paths::host_path(&key, problems)?, span: span.clone() })
        }
        (None, Some(issuer), Some(identity)) => {
            Some(SignerPolicy::Keyless { issuer: issuer?, identity: identity?, span: span.clone() })
        }
        _ => {
            let problem = Diagnostic::error("trust::signer", "a signer is a key, or an issuer with an identity");
            let hint = "write { key = \"FILE.pub\" }, or { issuer = \"https://…\", identity = \"…\" }";
            problems.refuse(problem.at(span.clone()).hint(hint))
        }
    }
}

fn read_issuer(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    if is_plain(text) {
        return Some(text.to_owned());
    }
    let message = format!("an issuer has 1 to {IDENTITY_PATTERN_BYTES_MAX} printable ASCII characters");
    problems.refuse(entry.error("trust::signer", message))
}

fn read_identity(entry: &Entry<'_>, problems: &mut Problems) -> Option<IdentityPattern> {
    IdentityPattern::parse(entry.string(problems)?)
        .map_err(|error| problems.add(entry.error("trust::signer", error.to_string())))
        .ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn rule(prefix: &str) -> TrustPolicy {
        TrustPolicy { prefix: prefix.to_owned(), span: 0..0, signed_by: Vec::new(), require: Vec::new(), root: None }
    }

    #[test]
    fn the_longest_beginning_holds_and_ends_where_a_name_ends() {
        let rules = ["ghcr.io/", "ghcr.io/acme/", "ghcr.io/acme/tools", "localhost:5000/a/"].map(rule);
        for (reference, prefix) in [
            ("oci://ghcr.io/acme/tools:1", Some("ghcr.io/acme/tools")),
            ("oci://ghcr.io/acme/tools/more:1", Some("ghcr.io/acme/")),
            ("oci://ghcr.io/acme/toolset", Some("ghcr.io/acme/")),
            ("oci://ghcr.io/acmex/tools", Some("ghcr.io/")),
            ("oci://ghcr.io.example.com/acme/tools", None),
            ("oci://localhost:5000/a/b", Some("localhost:5000/a/")),
            ("oci://localhost:50/a/b", None),
        ] {
            let found = of(&rules, &Reference::parse(reference).unwrap()).map(TrustPolicy::prefix);
            assert_eq!(found, prefix, "{reference}");
        }
    }

    #[test]
    fn a_prefix_is_a_registry_with_a_path_or_not() {
        for (text, is) in [
            ("ghcr.io/", true),
            ("docker.io/", true),
            ("docker.io/library/", true),
            ("docker.io/acme/", true),
            ("docker.io/library/alpine", true),
            ("docker.io/alpine", false),
            ("index.docker.io/", false),
            ("registry-1.docker.io/library/", false),
            ("ghcr.io:443/acme/", false),
            ("ghcr.io:80/acme/tools", false),
            ("registry:443/acme/", true),
            ("GHCR.IO/acme/", false),
            ("ghcr.io./acme/", false),
            ("ghcr.io//acme/", false),
            ("ghcr.io/acme%2f", false),
            ("ghcr.io/acme/", true),
            ("ghcr.io/acme/tools", true),
            ("localhost:5000/a/", true),
            ("ghcr.io", false),
            ("", false),
            ("/", false),
            ("ghcr.io//", false),
            ("ghcr.io/Acme/", false),
            ("ghcr.io/acme/tools:1", false),
            ("ghcr.io/acme/*", false),
            ("https://ghcr.io/acme/", false),
        ] {
            assert_eq!(is_prefix(text), is, "{text}");
        }
    }
}
