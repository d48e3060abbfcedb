//! From denied requests to the lines that would allow them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;

use crate::diagnostic::visible;
use crate::edit::ManifestEntry;
use crate::explain::{Ask, ENVIRONMENT};
use crate::grants::{ANY_FOLDER, AddressClass, Capability, Denial, FileAccess, HostPort};
use crate::manifest::CODE;
use crate::names::check_tool;
use crate::rights::{self, ALL, Narrowing};

/// Attempts that are processed: as many as a long observation records.
pub const ATTEMPTS_MAX: usize = 100_000;

/// A denied request of a component's tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    component: String,
    asked: String,
    private: Option<String>,
    /// The read-only mount that leads there.
    mount: Option<KnownMount>,
}

/// An existing mount: the guest's path, and the host's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct KnownMount {
    guest: String,
    host: String,
}

/// The needs of a component.
#[derive(Default)]
pub(crate) struct Needs {
    pub(crate) files: BTreeMap<String, NeededMount>,
    /// The methods of each path, by scheme, host and port.
    pub(crate) http: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
    /// Names, targets of sockets and private addresses.
    named: BTreeMap<Capability, BTreeSet<String>>,
    /// True if it read its environment, and found nothing.
    environment: bool,
    unknown: BTreeSet<String>,
}

#[derive(Default)]
pub(crate) struct NeededMount {
    pub(crate) writes: bool,
    /// The path of the host, if the manifest has the mount.
    pub(crate) host: Option<String>,
}

impl Attempt {
    /// An attempt from an audit record: the component, [`Denial::asked`], and
    /// [`crate::Allow::line`] if there is one.
    #[must_use]
    pub fn new(component: &str, asked: &str, allow_line: Option<&str>) -> Self {
        let private = allow_line.and_then(|line| line.strip_prefix("private = [\"")?.strip_suffix("\"]"));
        let private = private.filter(|entry| crate::PrivateRule::parse(entry, 0..0).is_ok());
        let mount = allow_line.and_then(|line| ManifestEntry::of_line("filesystem", line)).and_then(KnownMount::of);
        Self { component: component.to_owned(), asked: asked.to_owned(), private: private.map(str::to_owned), mount }
    }

    /// The component that asked.
    #[must_use]
    pub fn component(&self) -> &str {
        &self.component
    }

    /// The attempt, as records tell it.
    #[must_use]
    pub fn asked(&self) -> &str {
        &self.asked
    }

    /// Why no rule is proposed although one could be written.
    fn unwise(&self) -> Option<&'static str> {
        let ask = Ask::parse(&self.asked).ok();
        let named = ask.as_ref().and_then(Ask::target).and_then(|(host, _)| host.addr());
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

/// The tables that would allow the attempts, and little else: TOML to add to a manifest. Attempts
/// past [`ATTEMPTS_MAX`] are left out. Comments list attempts without a suggestion; words in
/// capitals are placeholders.
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

/// The private addresses that a request needs besides its rule.
pub(crate) fn private_addresses(asked: &str) -> Vec<String> {
    let mut needs = Needs::default();
    needs.add(&Attempt::new("", asked, None));
    needs.names(Capability::Private).iter().cloned().collect()
}

/// Why no rule allows this and nothing else, as the rest of a sentence. A star that a guest names
/// must not become a pattern.
fn without_rule(ask: &Ask) -> Option<&'static str> {
    match ask {
        Ask::Http(ask) => ask.own_rule().err(),
        Ask::Named(Capability::Call, name) => check_tool(name).is_err().then_some("no tool can have this name"),
        _ => None,
    }
}

/// The class of an address, or of the one that it contains.
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
        self.named.entry(Capability::Private).or_default().extend(attempt.private.clone());
        if attempt.asked.ends_with('…') {
            // Its end was cut off, so no rule can be made.
            self.unknown.insert(visible(&attempt.asked));
            return;
        }
        let Ok(ask) = Ask::parse(&attempt.asked) else {
            self.unknown.insert(visible(&attempt.asked));
            return;
        };
        if let Some(why) = without_rule(&ask) {
            self.unknown.insert(visible(&format!("{} alone, as {why}", attempt.asked)));
            return;
        }
        if let Some((host, port)) = ask.target() {
            // The guest named an address that is not public, or this machine.
            let missing = crate::grants::missing_private(host, port, &[]);
            self.named.entry(Capability::Private).or_default().extend(missing);
        }
        match ask {
            Ask::Http(ask) => rights::need_request(self, &ask),
            Ask::File { want, path } => {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let mount = if folder.is_empty() { path.clone() } else { folder.to_owned() };
                let known = attempt.mount.as_ref();
                let needed = self.files.entry(known.map_or(mount, |known| known.guest.clone())).or_default();
                needed.writes |= want != FileAccess::Read;
                needed.host = known.map(|known| known.host.clone()).or(needed.host.take());
            }
            Ask::Socket(capability, host, port) => {
                self.named.entry(capability).or_default().insert(format!("{host}:{port}"));
            }
            Ask::Named(capability, name) => drop(self.named.entry(capability).or_default().insert(name)),
            // A guest asks for no call of itself.
            Ask::Call(_) => {}
        }
    }

    /// The names of a capability that were tried.
    pub(crate) fn names(&self, capability: Capability) -> &BTreeSet<String> {
        static NONE: BTreeSet<String> = BTreeSet::new();
        self.named.get(&capability).unwrap_or(&NONE)
    }

    fn tables(&self, component: &str) -> String {
        let mut text = String::new();
        for right in ALL {
            let lines = (right.needed)(right, self);
            if !lines.is_empty() {
                let between = if text.is_empty() { "" } else { "\n" };
                // Writing into a String cannot fail.
                let below = if right.narrowing == Some(Narrowing::List) { "" } else { right.section };
                let table = [component, below].join(".");
                let table = table.trim_end_matches('.');
                let above = if component == CODE { "" } else { "components." };
                let _ = writeln!(text, "{between}[{above}{table}]\n{}", lines.join("\n"));
            }
        }
        if self.environment && self.names(Capability::Env).is_empty() {
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
}
