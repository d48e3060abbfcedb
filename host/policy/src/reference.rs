//! Names of components in registries, and digests.
//!
//! | part | form | example |
//! |---|---|---|
//! | registry | a host name with a dot, an address, or `localhost`; a port may follow | `ghcr.io` |
//! | repository | `a-z 0-9`, between them `.` `_` `__` `-` and `/` | `example/weather` |
//! | tag | 1 to 128 of `A-Z a-z 0-9 _ . -`, not `.` or `-` first | `1.2.0` |
//! | digest | `sha256:` and 64 of `0-9 a-f` | |
//!
//! The grammar is that of the OCI distribution specification 1.1, "Pulling manifests", and of the
//! image specification 1.1, "Digests".
//!
//! One repository has one name, since `[trust]` and `[registries]` compare names. Other spellings
//! are refused, and the error names the accepted one:
//!
//! | written | taken |
//! |---|---|
//! | `ghcr.io:443/a`, `ghcr.io:80/a` | `ghcr.io/a` |
//! | `docker.io/a` | `docker.io/library/a` |
//! | `index.docker.io/a/b`, `registry-1.docker.io/a/b`, `registry.hub.docker.com/a/b` | `docker.io/a/b` |
//! | `[::ffff:10.0.0.1]/a` | `10.0.0.1/a` |
//! | `0x7f000001:5000/a`, `0177.0.0.1:5000/a`, `127.1:5000/a` | `127.0.0.1:5000/a` |
//! | `GHCR.io/a`, `ghcr.io./a` | `ghcr.io/a` |
//!
//! Promise: a server's name has one form.

use std::fmt;
use std::net::Ipv6Addr;

use crate::grants::Host;

/// The longest registry with its repository, in characters: most registries take no longer ones
/// (distribution specification, "Pulling manifests").
pub const REFERENCE_NAME_CHARS_MAX: usize = 255;

/// The longest tag, in characters (the same place).
pub const TAG_CHARS_MAX: usize = 128;

/// Beginning of a reference.
const SCHEME: &str = "oci://";

/// Beginning of a digest, the only algorithm that is taken.
const SHA256: &str = "sha256:";

/// Characters of a SHA-256 digest in hexadecimal form.
const HEX_CHARS: usize = 64;

/// Ports that https and http have without being named.
const DEFAULT_PORTS: [&str; 2] = ["443", "80"];

/// The name of Docker Hub in references.
const HUB: &str = "docker.io";

/// Other hosts of Docker Hub.
const HUB_ALIASES: [&str; 3] = ["index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"];

/// The namespace of Docker Hub's repositories whose names have one part.
const HUB_LIBRARY: &str = "library";

/// A SHA-256 digest: `sha256:` and 64 lower-case hexadecimal characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

/// Name of a component in a registry, with a tag, a digest, both or neither.
///
/// ```
/// use toolcell_policy::Reference;
///
/// let reference = Reference::parse("oci://ghcr.io/example/weather:1.2.0");
/// let reference = reference.map(|reference| (reference.name(), reference.tag().map(str::to_owned)));
/// assert_eq!(reference, Ok(("ghcr.io/example/weather".to_owned(), Some("1.2.0".to_owned()))));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// Why a text is neither a reference nor a digest. The message is a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It has another prefix.
    #[error("a reference begins with \"oci://\"")]
    Scheme,
    /// Nothing after the registry.
    #[error("a reference names a registry and a repository, as in \"oci://ghcr.io/example/weather\"")]
    Repository,
    /// The first part is not a registry, as in short names of Docker Hub.
    #[error("{0:?} is not a registry: write its host, as in \"oci://docker.io/…\" for Docker Hub")]
    NoRegistry(String),
    /// A registry whose host or port has another form.
    #[error("the registry {0:?} is not a host name or address in lower case, with a port if need be")]
    Registry(String),
    /// A repository with another character, or one at a place where it may not be.
    #[error(
        "the repository {0:?} may have a-z and 0-9, and between them one \".\", one or two \"_\", any \"-\" and one \"/\""
    )]
    RepositoryForm(String),
    /// Another spelling of a registry or repository.
    #[error("{written:?} is another spelling of {name:?}: write that, since [trust] and [registries] compare names")]
    Spelling {
        /// As it is written.
        written: String,
        /// The accepted name.
        name: String,
    },
    /// Registry and repository are too long together.
    #[error("the name has {0} characters, at most {REFERENCE_NAME_CHARS_MAX} are allowed")]
    TooLong(usize),
    /// A malformed tag.
    #[error("the tag {0:?} must have 1 to {TAG_CHARS_MAX} of A-Z a-z 0-9 _ . -, and not begin with . or -")]
    Tag(String),
    /// A malformed digest.
    #[error("the digest {0:?} is not \"sha256:\" and 64 of 0-9 a-f")]
    Digest(String),
}

impl Digest {
    /// Reads a digest.
    ///
    /// # Errors
    /// [`ReferenceError::Digest`] where it does not have the form.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let is_hex = |hex: &str| hex.len() == HEX_CHARS && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        match text.strip_prefix(SHA256) {
            Some(hex) if is_hex(hex) => Ok(Self(text.to_owned())),
            _ => Err(ReferenceError::Digest(shown(text))),
        }
    }

    /// The digest with these bytes.
    #[must_use]
    pub fn of_sha256(bytes: [u8; 32]) -> Self {
        let mut text = String::with_capacity(SHA256.len() + HEX_CHARS);
        text.push_str(SHA256);
        for byte in bytes {
            text.extend([byte >> 4, byte & 0xf].into_iter().filter_map(|half| char::from_digit(u32::from(half), 16)));
        }
        Self(text)
    }

    /// The whole text, with `sha256:`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The 64 hexadecimal characters.
    #[must_use]
    pub fn hex(&self) -> &str {
        self.0.strip_prefix(SHA256).unwrap_or_default()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Digest {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Reference {
    /// Reads a reference with its `oci://`.
    ///
    /// # Errors
    /// [`ReferenceError`] says which part does not have the form.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let rest = text.strip_prefix(SCHEME).ok_or(ReferenceError::Scheme)?;
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(Digest::parse(digest)?)),
            None => (rest, None),
        };
        let (registry, rest) = rest.split_once('/').ok_or(ReferenceError::Repository)?;
        let (repository, tag) = match rest.split_once(':') {
            Some((repository, tag)) => (repository, Some(checked_tag(tag)?)),
            None => (rest, None),
        };
        let length = registry.len().saturating_add(1).saturating_add(repository.len());
        if length > REFERENCE_NAME_CHARS_MAX {
            return Err(ReferenceError::TooLong(length));
        }
        check_registry(registry)?;
        check_repository(repository)?;
        if registry == HUB && !repository.contains('/') {
            let name = format!("{HUB}/{HUB_LIBRARY}/{repository}");
            return Err(ReferenceError::Spelling { written: format!("{HUB}/{repository}"), name });
        }
        Ok(Self { registry: registry.to_owned(), repository: repository.to_owned(), tag, digest })
    }

    /// Host of the registry, with its port where the reference has one.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Name of the repository within the registry.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag, if it has one.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, if it has one.
    #[must_use]
    pub const fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Registry and repository: `ghcr.io/example/weather`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// The reference with this digest in place of its own.
    #[must_use]
    pub fn with_digest(mut self, digest: Digest) -> Self {
        self.digest = Some(digest);
        self
    }

    /// The reference with this tag in place of its own.
    ///
    /// # Errors
    /// [`ReferenceError::Tag`] where it does not have the form.
    pub fn with_tag(mut self, tag: &str) -> Result<Self, ReferenceError> {
        self.tag = Some(checked_tag(tag)?);
        Ok(self)
    }

    /// The reference with neither a tag nor a digest.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.tag = None;
        self.digest = None;
        self
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

impl std::str::FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// The beginning of a part, as errors show it.
fn shown(text: &str) -> String {
    const CHARS_SHOWN: usize = 100;
    text.chars().take(CHARS_SHOWN).collect()
}

fn checked_tag(tag: &str) -> Result<String, ReferenceError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    let is_tag = !tag.is_empty() && tag.len() <= TAG_CHARS_MAX && tag.bytes().all(allowed);
    if is_tag && !tag.starts_with(['.', '-']) { Ok(tag.to_owned()) } else { Err(ReferenceError::Tag(shown(tag))) }
}

/// Checks the form of a registry.
pub(crate) fn check_registry(registry: &str) -> Result<(), ReferenceError> {
    let wrong = || ReferenceError::Registry(shown(registry));
    let other = |name: String| ReferenceError::Spelling { written: registry.to_owned(), name };
    let (host, port) = match registry.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']').ok_or_else(wrong)?;
            let parsed: Ipv6Addr = address.parse().map_err(|_| wrong())?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or_else(wrong)?) };
            // Only the normal form, so that settings for the address are found.
            (parsed.to_string() == address).then_some(()).ok_or_else(wrong)?;
            if let Some(mapped) = parsed.to_ipv4_mapped() {
                return Err(other(format!("{mapped}{rest}")));
            }
            (None, port)
        }
        None => match registry.split_once(':') {
            Some((host, port)) => (Some(host), Some(port)),
            None => (Some(registry), None),
        },
    };
    if let Some(host) = host {
        if port.is_none() && !host.contains('.') && host != "localhost" {
            return Err(ReferenceError::NoRegistry(shown(host)));
        }
        // Connections use the host as the URL rules parse it, and rules compare that form.
        let parsed = Host::parse(host).map_err(|_| wrong())?;
        if parsed.to_string() != host {
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            return Err(other(format!("{parsed}{port}")));
        }
        let is_host = parsed.addr().is_some() || host.split('.').all(is_label);
        is_host.then_some(()).ok_or_else(wrong)?;
    }
    let is_port =
        |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && !port.starts_with('0') && port.parse::<u16>().is_ok();
    if !port.is_none_or(is_port) {
        return Err(wrong());
    }
    let unnamed = port.filter(|port| DEFAULT_PORTS.contains(port));
    let bare = unnamed.and_then(|port| registry.strip_suffix(port)?.strip_suffix(':')).unwrap_or(registry);
    // A name without a dot is a registry only with a port.
    let needs_port = |host: &str| !host.contains('.') && host != "localhost";
    match host {
        Some(host) if HUB_ALIASES.contains(&host) || (host == HUB && port.is_some()) => Err(other(HUB.to_owned())),
        Some(host) if needs_port(host) => Ok(()),
        _ if unnamed.is_some() => Err(other(bare.to_owned())),
        _ => Ok(()),
    }
}

/// A label of a host name (RFC 1123, section 2.1).
fn is_label(label: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&label.len()) && label.bytes().all(allowed) && !label.starts_with('-') && !label.ends_with('-')
}

fn check_repository(repository: &str) -> Result<(), ReferenceError> {
    if repository.is_empty() {
        return Err(ReferenceError::Repository);
    }
    let is_name = repository.split('/').all(is_repository_part);
    if is_name { Ok(()) } else { Err(ReferenceError::RepositoryForm(shown(repository))) }
}

/// `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`
fn is_repository_part(part: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let mut separators =
        part.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()).filter(|text| !text.is_empty());
    let is_separator = |text: &str| matches!(text, "." | "_" | "__") || text.bytes().all(|b| b == b'-');
    let ends = [part.bytes().next(), part.bytes().next_back()];
    ends.into_iter().all(|end| end.is_some_and(is_word)) && separators.all(is_separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn references_have_their_parts_and_come_back_as_they_were() {
        let digest = format!("sha256:{HEX}");
        for (text, registry, repository, tag, has_digest) in [
            ("oci://ghcr.io/example/weather", "ghcr.io", "example/weather", None, false),
            ("oci://ghcr.io/example/weather:1.2.0", "ghcr.io", "example/weather", Some("1.2.0"), false),
            ("oci://localhost/a", "localhost", "a", None, false),
            ("oci://localhost:5000/a-b__c.d/e_f", "localhost:5000", "a-b__c.d/e_f", None, false),
            ("oci://registry:5000/a:_T.-x", "registry:5000", "a", Some("_T.-x"), false),
            ("oci://127.0.0.1:1/a---b", "127.0.0.1:1", "a---b", None, false),
            ("oci://[::1]:65535/a", "[::1]:65535", "a", None, false),
            (&format!("oci://ghcr.io/a/b:t@{digest}"), "ghcr.io", "a/b", Some("t"), true),
            (&format!("oci://ghcr.io/a/b@{digest}"), "ghcr.io", "a/b", None, true),
        ] {
            let reference = Reference::parse(text).unwrap();
            assert_eq!((reference.registry(), reference.repository()), (registry, repository), "{text}");
            assert_eq!((reference.tag(), reference.digest().is_some()), (tag, has_digest), "{text}");
            assert_eq!(reference.to_string(), text);
            assert_eq!(reference.name(), format!("{registry}/{repository}"));
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_part_that_is_wrong() {
        use ReferenceError as E;
        let long = format!("oci://a.b/{}", "a".repeat(252));
        let tag = format!("oci://a.b/c:{}", "a".repeat(129));
        let upper = format!("oci://a.b/c@sha256:{}", HEX.to_uppercase());
        for (text, is_expected) in [
            ("ghcr.io/a", (|error| matches!(error, E::Scheme)) as fn(&E) -> bool),
            ("OCI://ghcr.io/a", |error| matches!(error, E::Scheme)),
            ("oci://ghcr.io", |error| matches!(error, E::Repository)),
            ("oci://ghcr.io/", |error| matches!(error, E::Repository)),
            ("oci://ghcr.io/:tag", |error| matches!(error, E::Repository)),
            ("oci://library/busybox", |error| matches!(error, E::NoRegistry(_))),
            ("oci:///a", |error| matches!(error, E::NoRegistry(_))),
            ("oci://Ghcr.io/a", |error| matches!(error, E::Spelling { .. })),
            ("oci://ghcr..io/a", |error| matches!(error, E::Registry(_))),
            ("oci://-ghcr.io/a", |error| matches!(error, E::Registry(_))),
            ("oci://user:pass@ghcr.io/a", |error| matches!(error, E::Digest(_))),
            ("oci://ghcr.io:/a", |error| matches!(error, E::Registry(_))),
            ("oci://ghcr.io:0443/a", |error| matches!(error, E::Registry(_))),
            ("oci://ghcr.io:0/a", |error| matches!(error, E::Registry(_))),
            ("oci://ghcr.io:65536/a", |error| matches!(error, E::Registry(_))),
            ("oci://0177.0.0.1/a", |error| matches!(error, E::Spelling { .. })),
            ("oci://127.1/a", |error| matches!(error, E::Spelling { .. })),
            ("oci://[::1/a", |error| matches!(error, E::Registry(_))),
            ("oci://[0:0::1]/a", |error| matches!(error, E::Registry(_))),
            ("oci://[::1]x/a", |error| matches!(error, E::Registry(_))),
            ("oci://GHCR.IO/a", |error| matches!(error, E::Spelling { .. })),
            ("oci://ghcr.io./a", |error| matches!(error, E::Spelling { .. })),
            ("oci://ghcr%2eio/a", |error| matches!(error, E::NoRegistry(_))),
            ("oci://ghcr.i%6f/a", |error| matches!(error, E::Spelling { .. })),
            ("oci://ghcr.io//a", |error| matches!(error, E::RepositoryForm(_))),
            ("oci://ghcr.io/a%2fb", |error| matches!(error, E::RepositoryForm(_))),
            ("oci://ghcr.io/a/", |error| matches!(error, E::RepositoryForm(_))),
            ("oci://ghcr.io/./a", |error| matches!(error, E::RepositoryForm(_))),
            ("oci://ghcr.io/A", |error| matches!(error, E::RepositoryForm(_))),
            ("oci://ghcr.io/a//b", |error| matches!(error, E::RepositoryForm(_))),
            ("oci://ghcr.io/../b", |error| matches!(error, E::RepositoryForm(_))),
            ("oci://ghcr.io/a..b", |error| matches!(error, E::RepositoryForm(_))),
            ("oci://ghcr.io/a___b", |error| matches!(error, E::RepositoryForm(_))),
            ("oci://ghcr.io/a_-b", |error| matches!(error, E::RepositoryForm(_))),
            ("oci://ghcr.io/a-", |error| matches!(error, E::RepositoryForm(_))),
            ("oci://ghcr.io/é", |error| matches!(error, E::RepositoryForm(_))),
            ("oci://ghcr.io/a?b", |error| matches!(error, E::RepositoryForm(_))),
            ("oci://ghcr.io/a:", |error| matches!(error, E::Tag(_))),
            ("oci://ghcr.io/a:.b", |error| matches!(error, E::Tag(_))),
            ("oci://ghcr.io/a:b/c", |error| matches!(error, E::Tag(_))),
            ("oci://ghcr.io/a@sha256:ab", |error| matches!(error, E::Digest(_))),
            ("oci://ghcr.io/a@sha512:ab", |error| matches!(error, E::Digest(_))),
            (&long, |error| matches!(error, E::TooLong(256))),
            (&tag, |error| matches!(error, E::Tag(_))),
            (&upper, |error| matches!(error, E::Digest(_))),
        ] {
            let error = Reference::parse(text).unwrap_err();
            assert!(is_expected(&error), "{text}: {error}");
        }
        assert!(Reference::parse("oci://library/busybox").unwrap_err().to_string().contains("docker.io/"));
    }

    #[test]
    fn each_other_spelling_of_a_name_is_refused_with_the_one_that_is_taken() {
        for (written, name) in [
            ("ghcr.io:443/acme/x", Some("ghcr.io")),
            ("ghcr.io:80/acme/x", Some("ghcr.io")),
            ("ghcr.io:8443/acme/x", None),
            ("127.0.0.1:443/a", Some("127.0.0.1")),
            ("localhost:80/a", Some("localhost")),
            ("[::1]:443/a", Some("[::1]")),
            ("[::ffff:10.0.0.1]/a", Some("10.0.0.1")),
            ("[::ffff:10.0.0.1]:5000/a", Some("10.0.0.1:5000")),
            ("0x7f000001:5000/a", Some("127.0.0.1:5000")),
            ("0x7f.1:5000/a", Some("127.0.0.1:5000")),
            ("2130706433:5000/a", Some("127.0.0.1:5000")),
            ("0177.0.0.1:5000/a", Some("127.0.0.1:5000")),
            ("127.0.0.1.:5000/a", Some("127.0.0.1:5000")),
            ("127.0.0.0x1/a", Some("127.0.0.1")),
            ("LOCALHOST:5000/a", Some("localhost:5000")),
            ("b\u{fc}cher.example/a", Some("xn--bcher-kva.example")),
            // Without a port it is not a registry.
            ("registry:443/a", None),
            ("registry:80/a", None),
            ("docker.io/library/alpine", None),
            ("docker.io/acme/x", None),
            ("docker.io/alpine", Some("docker.io/library/alpine")),
            ("docker.io/alpine:3", Some("docker.io/library/alpine")),
            ("docker.io:443/library/alpine", Some("docker.io")),
            ("docker.io:5000/library/alpine", Some("docker.io")),
            ("index.docker.io/library/alpine", Some("docker.io")),
            ("registry-1.docker.io/library/alpine", Some("docker.io")),
            ("registry-1.docker.io:443/library/alpine", Some("docker.io")),
            ("registry.hub.docker.com/acme/x", Some("docker.io")),
        ] {
            let found = match Reference::parse(&format!("oci://{written}")) {
                Ok(_) => None,
                Err(ReferenceError::Spelling { name, .. }) => Some(name),
                Err(error) => panic!("{written}: {error}"),
            };
            assert_eq!(found.as_deref(), name, "{written}");
        }
        assert_eq!(
            Reference::parse("oci://ghcr.io:443/acme/x").unwrap_err().to_string(),
            "\"ghcr.io:443\" is another spelling of \"ghcr.io\": write that, since [trust] and [registries] compare names"
        );
    }

    #[test]
    fn parts_are_replaced() {
        let digest = Digest::parse(&format!("sha256:{HEX}")).unwrap();
        assert_eq!((digest.hex(), digest.to_string()), (HEX, format!("sha256:{HEX}")));
        let bytes = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef].repeat(4);
        assert_eq!(Digest::of_sha256(bytes.try_into().unwrap()), digest);
        let reference = Reference::parse("oci://ghcr.io/a:1").unwrap().with_digest(digest.clone());
        assert_eq!(reference.to_string(), format!("oci://ghcr.io/a:1@{digest}"));
        assert_eq!(reference.clone().bare().to_string(), "oci://ghcr.io/a");
        assert_eq!(reference.clone().with_tag("2").unwrap().tag(), Some("2"));
        assert_eq!(reference.with_tag("-2"), Err(ReferenceError::Tag("-2".to_owned())));
    }
}
