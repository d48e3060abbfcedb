//! From what tools tried to the lines that would allow it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;

use crate::diagnostic::visible;
use crate::edit::ManifestEntry;
use crate::explain::{Ask, ENVIRONMENT};
use crate::grants::{ANY_FOLDER, AddressClass, Denial, FileAccess, Host, HostPort, HttpAsk, HttpRule};
use crate::names::{toml_key, toml_string};

/// The most attempts to look at: as many as a long observation records.
pub const ATTEMPTS_MAX: usize = 100_000;

/// The most paths of one host that are suggested singly; more become the folder they have in
/// common.
const PATHS_MAX: usize = 8;

/// Something that a tool of a component tried and was denied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    component: String,
    asked: String,
    private: Option<String>,
    /// The mount that leads there and can only be read.
    mount: Option<KnownMount>,
}

/// A mount that a manifest has: the guest's path, and the host's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct KnownMount {
    guest: String,
    host: String,
}

/// The needs of a component.
#[derive(Default)]
struct Needs {
    files: BTreeMap<String, NeededMount>,
    /// The methods of each path, by scheme, host and port.
    http: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
    tcp: BTreeSet<String>,
    udp: BTreeSet<String>,
    lookups: BTreeSet<String>,
    private: BTreeSet<String>,
    env: BTreeSet<String>,
    /// It read its environment, and found nothing there.
    environment: bool,
    config: BTreeSet<String>,
    secrets: BTreeSet<String>,
    keyvalue: bool,
    unknown: BTreeSet<String>,
}

/// The need of one mount.
#[derive(Default)]
struct NeededMount {
    writes: bool,
    /// The path of the host, where the manifest has the mount.
    host: Option<String>,
}

impl Attempt {
    /// An attempt as audit records tell it: the component, [`Denial::asked`], and
    /// [`crate::Allow::line`] where there is one.
    #[must_use]
    pub fn new(component: &str, asked: &str, allow_line: Option<&str>) -> Self {
        let private = allow_line.and_then(|line| line.strip_prefix("private = [\"")?.strip_suffix("\"]"));
        let private = private.filter(|entry| crate::PrivateRule::parse(entry, 0..0).is_ok());
        let mount = allow_line.and_then(|line| ManifestEntry::of_line("filesystem", line)).and_then(KnownMount::of);
        Self { component: component.to_owned(), asked: asked.to_owned(), private: private.map(str::to_owned), mount }
    }

    /// The component that tried it.
    #[must_use]
    pub fn component(&self) -> &str {
        &self.component
    }

    /// The attempt, as records tell it.
    #[must_use]
    pub fn asked(&self) -> &str {
        &self.asked
    }

    /// The reason why no rule for it is proposed, though one could be written.
    fn unwise(&self) -> Option<&'static str> {
        let named = match Ask::parse(&self.asked) {
            Ok(Ask::Http(ask)) => ask.host().addr(),
            Ok(Ask::Tcp(host, _) | Ask::Udp(host, _)) => host.addr(),
            _ => None,
        };
        let private = self.private.as_deref().and_then(HostPort::parse).and_then(|private| private.host().addr());
        [named, private].into_iter().flatten().find_map(|address| match class_of(address)? {
            AddressClass::Metadata => Some(
                "that is the address of a machine's metadata, which gives out its credentials; write a rule by hand if \
                 that is meant",
            ),
            AddressClass::LinkLocal => {
                Some("that is an address of this link alone, as metadata have; write a rule by hand if that is meant")
            }
            _ => None,
        })
    }

    /// An attempt from its denial.
    #[must_use]
    pub fn of(denial: &Denial) -> Self {
        let line = denial.allow().map(crate::Allow::line);
        Self::new(denial.subject().component(), denial.asked(), line)
    }
}

impl KnownMount {
    fn of(entry: ManifestEntry) -> Option<Self> {
        let host = entry.text("path").filter(|host| *host != ANY_FOLDER && entry.key.starts_with('/'))?.to_owned();
        Some(Self { guest: entry.key, host })
    }
}

/// The tables that would allow what was tried, and little else: TOML to add to a manifest. Attempts
/// past [`ATTEMPTS_MAX`] are left out. Comments tell of attempts without a suggestion; words in
/// capitals are for a person to fill in.
#[must_use]
pub fn suggest(attempts: &[Attempt]) -> String {
    let mut components: BTreeMap<&str, Needs> = BTreeMap::new();
    for attempt in attempts.iter().take(ATTEMPTS_MAX) {
        if crate::names::check_component(&attempt.component).is_ok() {
            components.entry(&attempt.component).or_default().add(attempt);
        }
    }
    let tables: Vec<String> = components.into_iter().map(|(name, needs)| needs.tables(name)).collect();
    tables.join("\n")
}

/// The class of an address, or of the one that it stands for.
fn class_of(address: IpAddr) -> Option<AddressClass> {
    match AddressClass::of(address)? {
        class @ (AddressClass::V4Mapped | AddressClass::Nat64) => {
            AddressClass::carried(address).map_or(Some(class), AddressClass::of)
        }
        class => Some(class),
    }
}

impl Needs {
    fn add(&mut self, attempt: &Attempt) {
        if attempt.asked == ENVIRONMENT {
            self.environment = true;
            return;
        }
        if let Some(why) = attempt.unwise() {
            self.unknown.insert(visible(&format!("{}: {why}", attempt.asked)));
            return;
        }
        self.private.extend(attempt.private.clone());
        if attempt.asked.ends_with('…') {
            // Its end was cut off: no rule can be made of the rest.
            self.unknown.insert(visible(&attempt.asked));
            return;
        }
        match Ask::parse(&attempt.asked) {
            Ok(Ask::Http(ask)) if ask.path().contains('*') => {
                // A guest that asks for a star gets no pattern of it.
                self.unknown.insert(visible(&format!("{} alone, as a star in a rule is a pattern", attempt.asked)));
            }
            Ok(Ask::Http(ask)) => self.add_request(&ask),
            Ok(Ask::File { want, path }) => {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let mount = if folder.is_empty() { path.clone() } else { folder.to_owned() };
                let known = attempt.mount.as_ref();
                let needed = self.files.entry(known.map_or(mount, |known| known.guest.clone())).or_default();
                needed.writes |= want != FileAccess::Read;
                needed.host = known.map(|known| known.host.clone()).or(needed.host.take());
            }
            Ok(Ask::Tcp(host, port)) => {
                self.add_private(&host, port);
                self.tcp.insert(format!("{host}:{port}"));
            }
            Ok(Ask::Udp(host, port)) => {
                self.add_private(&host, port);
                self.udp.insert(format!("{host}:{port}"));
            }
            Ok(Ask::Lookup(name)) => drop(self.lookups.insert(name)),
            Ok(Ask::Env(name)) => drop(self.env.insert(name)),
            Ok(Ask::Config(key)) => drop(self.config.insert(key)),
            Ok(Ask::Secret(name)) => drop(self.secrets.insert(name)),
            Ok(Ask::KeyValue) => self.keyvalue = true,
            Err(_) => drop(self.unknown.insert(visible(&attempt.asked))),
        }
    }

    fn add_request(&mut self, ask: &HttpAsk) {
        self.add_private(ask.host(), ask.port());
        let host = format!("{}://{}", ask.scheme().name(), ask.authority());
        // These cannot be rules themselves: an ambiguous path, or a method without a name.
        let exact = format!("{} {host}{}", ask.method(), ask.path());
        let is_rule = HttpRule::parse(&exact, 0..0).is_ok_and(|rule| rule.matches(ask));
        let named = HttpRule::parse(&format!("{} {host}", ask.method()), 0..0).is_ok();
        let path = if is_rule || !named { ask.path() } else { "" };
        let path =
            if HttpRule::parse(&format!("{host}{path}"), 0..0).is_ok_and(|rule| rule.matches(ask)) { path } else { "" };
        let methods = self.http.entry(host).or_default().entry(path.to_owned()).or_default();
        methods.insert(if named { ask.method().to_owned() } else { String::new() });
    }

    /// An address that is not public and that the guest named itself, or this machine by its name.
    fn add_private(&mut self, host: &Host, port: u16) {
        self.private.extend(crate::grants::missing_private(host, port, &[]));
    }

    fn tables(&self, component: &str) -> String {
        let mut text = String::new();
        let mut table = |name: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                let between = if text.is_empty() { "" } else { "\n" };
                // Writing into a String cannot fail.
                let _ = writeln!(text, "{between}[components.{component}.{name}]\n{}", lines.join("\n"));
            }
        };
        table("filesystem", self.mounts());
        table("network", self.network());
        table("env", self.env.iter().map(|name| from(name, "")).collect());
        table("config", self.config.iter().map(|key| format!("{} = \"VALUE\"", toml_key(key))).collect());
        table("secrets", self.secrets.iter().map(|name| from(name, ", expose = true")).collect());
        table("keyvalue", if self.keyvalue { vec!["quota = \"1MiB\"".to_owned()] } else { Vec::new() });
        if self.environment && self.env.is_empty() {
            let _ = writeln!(
                text,
                "# {component} read its environment, which is empty. Nobody sees the names it looked for.\n\
                 # [components.{component}.env]\n# NAME = \"VALUE\""
            );
        }
        for asked in &self.unknown {
            let _ = writeln!(text, "# {component}: nothing allows {asked}");
        }
        text
    }

    /// A folder within another one is part of it.
    fn mounts(&self) -> Vec<String> {
        let within = |path: &str, folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let is_inner = |path: &str| self.files.keys().any(|folder| within(path, folder));
        let mut lines = Vec::new();
        // A mount that the manifest has stays one, whatever is around it.
        for (path, needed) in self.files.iter().filter(|(path, needed)| needed.host.is_some() || !is_inner(path)) {
            let writes = |other: &str, inner: &NeededMount| inner.writes && (other == path || within(other, path));
            let write = self.files.iter().any(|(other, inner)| writes(other, inner));
            let access = if write { "write" } else { "read" };
            let host = needed.host.as_deref().unwrap_or_else(|| path.trim_start_matches('/'));
            let host = if host.is_empty() { "." } else { host };
            // What is written need not be there before.
            let create = if write && needed.host.is_none() { ", create = true" } else { "" };
            let guest = toml_string(path);
            let host = toml_string(host);
            lines.push(format!("{guest} = {{ path = {host}, access = \"{access}\"{create} }}"));
        }
        lines
    }

    fn network(&self) -> Vec<String> {
        let http: Vec<String> = self.http.iter().flat_map(|(host, paths)| requests(host, paths)).collect();
        let tcp: BTreeSet<String> = self.tcp.iter().cloned().collect();
        let udp: BTreeSet<String> = self.udp.iter().cloned().collect();
        let named =
            |name: &str| tcp.iter().chain(&udp).any(|rule| rule.rsplit_once(':').is_some_and(|(host, _)| host == name));
        let lookups = self.lookups.iter().filter(|name| !named(name));
        let mut lines: Vec<String> =
            lookups.map(|name| format!("# {name} was looked up: a rule for it and its port allows that")).collect();
        for (key, rules) in [
            ("http", http),
            ("tcp", tcp.iter().cloned().collect()),
            ("udp", udp.iter().cloned().collect()),
            ("private", self.private.iter().cloned().collect()),
        ] {
            match rules.as_slice() {
                [] => {}
                [only] => lines.push(format!("{key} = [{}]", toml_string(only))),
                many => {
                    let many = many.iter().map(|rule| format!("    {},\n", toml_string(rule))).collect::<String>();
                    lines.push(format!("{key} = [\n{many}]"));
                }
            }
        }
        lines
    }
}

fn from(name: &str, more: &str) -> String {
    format!("{} = {{ from = {}{more} }}", toml_key(name), toml_string(&format!("env:{name}")))
}

/// The rules of one host: a rule for each path, or for the folder of all of them where they are
/// many.
fn requests(host: &str, paths: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let every = |methods: &BTreeSet<String>| {
        let methods = methods.iter().map(String::as_str).collect::<Vec<_>>();
        // An attempt with a method without a name needs a rule for every method.
        if methods.contains(&"") { String::new() } else { format!("{} ", methods.join(",")) }
    };
    if let Some(methods) = paths.get("") {
        let all: BTreeSet<String> = paths.values().flatten().chain(methods).cloned().collect();
        return vec![format!("{}{host}", every(&all))];
    }
    if paths.len() > PATHS_MAX {
        let all: BTreeSet<String> = paths.values().flatten().cloned().collect();
        let folder = common_folder(paths.keys().map(String::as_str));
        return vec![format!("{}{host}{folder}/*", every(&all))];
    }
    paths.iter().map(|(path, methods)| format!("{}{host}{path}", every(methods))).collect()
}

/// `/v1` of `/v1/a/b` and `/v1/c`.
fn common_folder<'p>(mut paths: impl Iterator<Item = &'p str>) -> String {
    let folder = |path: &'p str| path.rsplit_once('/').map_or("", |(folder, _)| folder).split('/').collect::<Vec<_>>();
    let mut common = paths.next().map(folder).unwrap_or_default();
    for path in paths {
        let same = common.iter().zip(folder(path)).take_while(|(one, other)| *one == other).count();
        common.truncate(same);
    }
    common.join("/")
}
