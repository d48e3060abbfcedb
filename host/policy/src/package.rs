//! Names of packages as WIT and `wkg` write them, and the references that they stand for.
//!
//! | form | meaning |
//! |---|---|
//! | `acme:weather` | the package `weather` of the namespace `acme`, its newest version |
//! | `acme:weather@1.2.0` | this version |
use std::fmt;

use crate::reference::{Reference, ReferenceError};

/// Longest name of a namespace or a package, in characters: as much as a component's.
pub const PACKAGE_LABEL_CHARS_MAX: usize = 64;

/// Longest version, in characters: a tag of a registry has as many.
const VERSION_CHARS_MAX: usize = crate::reference::TAG_CHARS_MAX;

/// A package, perhaps with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageName {
    namespace: String,
    name: String,
    version: Option<String>,
}

/// Why a text is not the name of a package, or does not lead to a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// No single `:` between two names.
    #[error("a package has a namespace and a name, as in \"acme:weather@1.2.0\"")]
    Form,
    /// A namespace or name of another form.
    #[error("{0:?} is not a namespace or package name: words of a-z and 0-9 with \"-\" between them, a letter first")]
    Label(String),
    /// A version of another form.
    #[error("{0:?} is not a version: write three numbers, as in \"1.2.0\", and \"-\" with more if need be")]
    Version(String),
    /// A version with build metadata, which a tag cannot have.
    #[error("the version {0:?} has a \"+\", which no tag of a registry may have")]
    Build(String),
    /// The prefix of a registry's namespaces has a character that no repository has.
    #[error("the prefix {0:?} may have a-z and 0-9, and between them . _ - and /")]
    Prefix(String),
    /// The whole is not a reference.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
}

impl PackageName {
    /// Reads a name such as `acme:weather@1.2.0`. Versions have the form of Semantic Versioning
    /// 2.0.0, without build metadata: the version is the tag.
    ///
    /// # Errors
    /// [`PackageError`] says which part does not have the form.
    pub fn parse(text: &str) -> Result<Self, PackageError> {
        let (path, version) = match text.split_once('@') {
            Some((path, version)) => (path, Some(checked_version(version)?)),
            None => (text, None),
        };
        let (namespace, name) = path.split_once(':').ok_or(PackageError::Form)?;
        for label in [namespace, name] {
            if !is_label(label) {
                return Err(PackageError::Label(shown(label)));
            }
        }
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned(), version })
    }

    /// The namespace: `acme`.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The version, if it has one.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// The package with this version in place of its own.
    ///
    /// # Errors
    /// [`PackageError::Version`] or [`PackageError::Build`] where it does not have the form.
    pub fn with_version(mut self, version: &str) -> Result<Self, PackageError> {
        self.version = Some(checked_version(version)?);
        Ok(self)
    }

    /// Its reference in a registry: `oci://REGISTRY/PREFIXacme/weather:1.2.0`. The prefix is put
    /// before the namespace as it is, as `wkg` does.
    ///
    /// # Errors
    /// [`PackageError`] where registry and prefix make no reference.
    pub fn reference(&self, registry: &str, prefix: &str) -> Result<Reference, PackageError> {
        // Nothing in a prefix may end the repository's name.
        let is_path = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '/');
        if !prefix.chars().all(is_path) || prefix.starts_with('/') {
            return Err(PackageError::Prefix(shown(prefix)));
        }
        let is_host = |c: char| !matches!(c, '/' | '@');
        if !registry.chars().all(is_host) {
            return Err(ReferenceError::Registry(shown(registry)).into());
        }
        let reference = Reference::parse(&format!("oci://{registry}/{prefix}{}/{}", self.namespace, self.name))?;
        match &self.version {
            Some(version) => Ok(reference.with_tag(version)?),
            None => Ok(reference),
        }
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.namespace, self.name)?;
        match &self.version {
            Some(version) => write!(f, "@{version}"),
            None => Ok(()),
        }
    }
}

/// True for a namespace or a name: words of `a-z` and `0-9` with one `-` between them, each with a
/// letter first.
pub(crate) fn is_label(label: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    label.len() <= PACKAGE_LABEL_CHARS_MAX && label.split('-').all(is_word)
}

fn checked_version(version: &str) -> Result<String, PackageError> {
    if version.contains('+') {
        return Err(PackageError::Build(shown(version)));
    }
    let (numbers, pre) = match version.split_once('-') {
        Some((numbers, pre)) => (numbers, Some(pre)),
        None => (version, None),
    };
    let is_number = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) && (part == "0" || !part.starts_with('0'))
    };
    let is_identifier = |part: &str| {
        let is_numeric = part.bytes().all(|b| b.is_ascii_digit());
        let allowed = part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if is_numeric { is_number(part) } else { allowed }
    };
    let is_version = version.len() <= VERSION_CHARS_MAX
        && numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(is_identifier));
    if is_version { Ok(version.to_owned()) } else { Err(PackageError::Version(shown(version))) }
}

/// The beginning of a part, as errors show it.
fn shown(text: &str) -> String {
    const CHARS_SHOWN: usize = 100;
    text.chars().take(CHARS_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_have_a_namespace_a_name_and_perhaps_a_version() {
        for (text, namespace, version) in [
            ("acme:weather", "acme", None),
            ("acme:weather@1.2.0", "acme", Some("1.2.0")),
            ("wasi:http2-x@0.0.1-rc.1-a", "wasi", Some("0.0.1-rc.1-a")),
            ("a-b1:c@10.20.30", "a-b1", Some("10.20.30")),
        ] {
            let package = PackageName::parse(text).unwrap();
            assert_eq!((package.namespace(), package.version()), (namespace, version), "{text}");
            assert_eq!(package.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_no_packages() {
        use PackageError as E;
        let long = format!("acme:{}", "a".repeat(65));
        let version = format!("a:b@1.2.{}", "3".repeat(128));
        for (text, is_expected) in [
            ("weather", (|error| matches!(error, E::Form)) as fn(&E) -> bool),
            ("a:b:c", |error| matches!(error, E::Label(_))),
            (":b", |error| matches!(error, E::Label(_))),
            ("a:", |error| matches!(error, E::Label(_))),
            ("A:b", |error| matches!(error, E::Label(_))),
            ("a:1b", |error| matches!(error, E::Label(_))),
            ("a:b--c", |error| matches!(error, E::Label(_))),
            ("a:b-1", |error| matches!(error, E::Label(_))),
            ("a:../b", |error| matches!(error, E::Label(_))),
            ("a:b/c", |error| matches!(error, E::Label(_))),
            (&long, |error| matches!(error, E::Label(_))),
            ("a:b@", |error| matches!(error, E::Version(_))),
            ("a:b@latest", |error| matches!(error, E::Version(_))),
            ("a:b@1.2", |error| matches!(error, E::Version(_))),
            ("a:b@01.2.3", |error| matches!(error, E::Version(_))),
            ("a:b@1.2.3-", |error| matches!(error, E::Version(_))),
            ("a:b@1.2.3-01", |error| matches!(error, E::Version(_))),
            ("a:b@v1.2.3", |error| matches!(error, E::Version(_))),
            ("a:b@1.2.3@sha256:1", |error| matches!(error, E::Version(_))),
            ("a:b@1.2.3+1", |error| matches!(error, E::Build(_))),
            (&version, |error| matches!(error, E::Version(_))),
        ] {
            let error = PackageName::parse(text).unwrap_err();
            assert!(is_expected(&error), "{text}: {error}");
        }
    }

    #[test]
    fn a_package_stands_for_a_reference_and_a_prefix_for_nothing_else() {
        let package = PackageName::parse("acme:weather@1.2.0").unwrap();
        for (registry, prefix, expected) in [
            ("ghcr.io", "", "oci://ghcr.io/acme/weather:1.2.0"),
            ("ghcr.io", "webassembly/", "oci://ghcr.io/webassembly/acme/weather:1.2.0"),
            ("localhost:5000", "a/b-", "oci://localhost:5000/a/b-acme/weather:1.2.0"),
        ] {
            assert_eq!(package.reference(registry, prefix).unwrap().to_string(), expected);
        }
        for (registry, prefix) in [
            ("ghcr.io", "../"),
            ("ghcr.io", "/"),
            ("ghcr.io", "//evil.example/"),
            ("ghcr.io", "other/thing:tag"),
            ("ghcr.io", "other/thing@sha256:"),
            ("ghcr.io", "a?b="),
            ("ghcr.io", "a#"),
            ("ghcr.io", "a%2f"),
            ("ghcr.io", "a/../"),
            ("ghcr.io", "A/"),
            ("ghcr.io", "a//"),
            ("ghcr.io", "a\n"),
            ("ghcr.io/x", ""),
            ("https://ghcr.io", ""),
            ("user@ghcr.io", ""),
            ("", ""),
            ("Ghcr.io", ""),
        ] {
            assert!(package.reference(registry, prefix).is_err(), "{registry} {prefix}");
        }
        let long = "a/".repeat(200);
        assert!(matches!(
            package.reference("ghcr.io", &long),
            Err(PackageError::Reference(ReferenceError::TooLong(_)))
        ));
    }
}
