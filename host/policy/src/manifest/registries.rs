//! The sections `[registries."HOST"]`: how a registry of components is reached.

use crate::diagnostic::Diagnostic;
use crate::grants::{HostPort, SecretSource};
use crate::read::{Entry, Problems, Section, paths, texts};
use crate::reference::{REFERENCE_NAME_CHARS_MAX, Reference, ReferenceError, check_registry};
use crate::rights::source_of_host;
use crate::settings::accessors;
use crate::table::table;

/// Most registries with a table. A team has its own and some public ones.
pub(crate) const REGISTRIES_MAX: usize = 64;

/// The longest name of a registry, in bytes: a name of a host has at most 253, and a port follows.
const HOST_BYTES_MAX: usize = 260;

accessors! {
    /// One `[registries."HOST"]`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RegistryPolicy {
        /// Its host, and its port where one is named.
        pub(crate) host: String => &str,
        /// True if it may have an address that the internet does not reach. False by default.
        pub(crate) private: bool => bool,
        /// True if it is spoken to without TLS. False by default; a registry on this machine is
        /// asked either way.
        pub(crate) plain_http: bool => bool,
        /// Certificate authorities that vouch for it, in PEM, relative to the manifest.
        pub(crate) authorities: Option<String> => Option<&str>,
        /// The host, and port, that is asked in its place. The beginning of a path may follow.
        pub(crate) mirror: Option<String> => Option<&str>,
        /// The user whose password follows.
        pub(crate) user: Option<String> => Option<&str>,
        /// The source of the password or token.
        pub(crate) password: Option<SecretSource> => Option<&SecretSource>,
    }
}

table! {
    /// The way to one registry of `oci://` sources. Without a table: HTTPS, a public address, and
    /// the credentials that Docker or Podman has for it.
    pub(crate) REGISTRY "Registry" {
        /// True: the registry may have a private address or one of this machine, and no address of
        /// it is refused.
        "private": Flag, {"default": false, "examples": [true]};
        /// True: the registry is reached without TLS, so that others on the way read what is
        /// pulled. A password is sent so only to this machine, which may do without TLS anyway.
        "plain_http": Flag, {"default": false, "examples": [true]};
        /// Certificate authorities of the registry, in PEM, relative to this file; by default the
        /// machine's.
        "authorities": Text, {"minLength": 1, "examples": ["tls/ca.pem"]};
        /// A host, and port, that is asked instead, and the beginning of its repositories there.
        /// Digests hold as before.
        "mirror": Text, {"minLength": 1, "maxLength": REFERENCE_NAME_CHARS_MAX,
            "examples": ["mirror.example.com/ghcr"]};
        /// The user whose password follows.
        "user": Text, {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "examples": ["ci"]};
        /// The source of the password or token: `env:NAME`, `file:PATH` or
        /// `keyring:SERVICE/ACCOUNT`.
        "password": Text, {"minLength": 1, "examples": ["env:REGISTRY_TOKEN"]};
    }
    other names {
        "username" => "user", "token" => "password", "ca" => "authorities", "certificate" => "authorities",
        "insecure" => "plain_http", "http" => "plain_http",
    }
}

/// The registries, in the order of the file.
pub(crate) fn read(root: &Section<'_>, problems: &mut Problems) -> Vec<RegistryPolicy> {
    let Some(entry) = root.get("registries") else { return Vec::new() };
    let entries = entry.entries(REGISTRIES_MAX, "registries::too_many", "registries", problems);
    entries.iter().filter_map(|entry| read_one(entry, problems)).collect()
}

fn read_one(entry: &Entry<'_>, problems: &mut Problems) -> Option<RegistryPolicy> {
    let is_known = is_registry(entry.key);
    if !is_known {
        let problem = match check_registry(entry.key) {
            Err(error @ ReferenceError::Spelling { .. }) => error.to_string(),
            _ => format!("{:?} is not a registry host", entry.key),
        };
        let problem = entry.key_error("registries::host", problem);
        problems.add(problem.hint("write its host, and its port where it has one: \"registry.example.com:5000\""));
    }
    let section = entry.table(&REGISTRY, problems)?;
    let flag = |key: &str, problems: &mut Problems| section.get(key).and_then(|entry| entry.boolean(problems));
    let private = flag("private", problems);
    let plain_http = flag("plain_http", problems);
    let authorities = section.get("authorities").and_then(|entry| paths::host_path(&entry, problems));
    let mirror = section.get("mirror").and_then(|entry| read_mirror(&entry, problems));
    let user = section.get("user").and_then(|entry| texts::line(&entry, "registries::user", problems));
    let password = section.get("password").and_then(|entry| source_of_host(&entry, problems));
    for (one, other) in [("user", "password"), ("password", "user")] {
        if let (Some(said), None) = (section.get(one), section.get(other)) {
            let problem = said.key_error("registries::user", format!("{one} has no effect without {other}"));
            problems.add(problem.hint(format!("add {other}; a token is the password of some user")));
        }
    }
    if let Some(said) = section.get("authorities").filter(|_| plain_http == Some(true)) {
        let problem = said.key_error("registries::tls", "authorities can never apply: the registry has no TLS");
        problems.add(problem.hint("remove authorities, or plain_http"));
    }
    if let Some(said) = section.get("plain_http").filter(|_| plain_http == Some(true) && password.is_some()) {
        let problem =
            Diagnostic::warning("registries::tls", "the password is not sent without TLS, but to this machine");
        problems.add(problem.at(said.span).hint("give the registry TLS, and remove plain_http"));
    }
    is_known.then(|| RegistryPolicy {
        host: entry.key.to_owned(),
        private: private.unwrap_or_default(),
        plain_http: plain_http.unwrap_or_default(),
        authorities,
        mirror,
        user,
        password,
    })
}

/// True for a host as `oci://` references name it: in lower case, with a port or not.
pub(super) fn is_registry(text: &str) -> bool {
    let is_spelling = matches!(check_registry(text), Err(ReferenceError::Spelling { .. }));
    text.len() <= HOST_BYTES_MAX && HostPort::parse(text).is_some_and(|host| host.to_string() == text) && !is_spelling
}

fn read_mirror(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    // The host must make a valid reference with a repository after it.
    let whole = format!("{text}/a/a");
    if !text.contains('@') && Reference::parse(&format!("oci://{whole}")).is_ok_and(|read| read.name() == whole) {
        return Some(text.to_owned());
    }
    let problem = entry.error("registries::mirror", format!("{text:?} is not a registry host with an optional path"));
    let hint = "write a host, its port and the beginning of a path: \"mirror.example.com:5000/ghcr\"";
    problems.refuse(problem.hint(hint))
}
