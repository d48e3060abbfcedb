//! Explanations: the decision on a question and the line that decides, without acting on it. Must
//! not hold: other decisions than those of `grants`.

mod ask;

use std::net::SocketAddr;

use crate::diagnostic::{Position, Source};
use crate::grants::{
    Capability, Delivery, Denial, EnvSource, FileAccess, Grants, Host, Mount, Reason, Resolved, RuleRef,
};
use crate::settings::accessors;

pub use ask::{ASK_FORMS, Ask, AskTextError};

/// The request of a guest that reads its environment as a whole.
pub(crate) const ENVIRONMENT: &str = "env";

/// The words of requests that are never granted; see [`Network::never_listens`](crate::Network).
const LISTENS: [&str; 2] = [" bind ", " listen "];

/// Bytes of a file's path in a denial: some of the longest paths behind one another.
const FILE_BYTES_MAX: usize = 64 << 10;

accessors! {
    /// An answer: allowed by a rule, or denied.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Explanation {
        /// The question, in its normal form.
        asked: String => &str,
        verdict: Result<RuleRef, Denial>,
        /// Decisions that are made only while a call runs, in sentences without a full stop.
        notes: Vec<String> => &[String],
    }
}

impl Explanation {
    /// True if it is allowed.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        self.verdict.is_ok()
    }

    /// The rule that allows it, with its place in the manifest.
    #[must_use]
    pub fn rule(&self) -> Option<&RuleRef> {
        self.verdict.as_ref().ok()
    }

    /// The denial, which knows the line that would allow it.
    #[must_use]
    pub fn denial(&self) -> Option<&Denial> {
        self.verdict.as_ref().err()
    }

    /// The answer for people, in lines: the verdict with the rule's place, the hint, the notes.
    #[must_use]
    pub fn render(&self, source: &Source<'_>) -> String {
        let mut lines = match &self.verdict {
            Ok(rule) => {
                let Position { line, column } = source.position(rule.span().start);
                vec![
                    format!("allowed: {}", self.asked),
                    format!("  by {rule}"),
                    format!("  at {}:{line}:{column}", source.name),
                ]
            }
            Err(denial) => {
                let hint = denial.hint().map(|hint| format!("  hint: {hint}"));
                std::iter::once(denial.to_string()).chain(hint).collect()
            }
        };
        lines.extend(self.notes.iter().map(|note| format!("  note: {note}")));
        lines.join("\n")
    }
}

impl Grants {
    /// The answer to a question: the rule that allows it, or the denial.
    #[must_use]
    pub fn explain(&self, ask: &Ask) -> Explanation {
        let mut notes = Vec::new();
        let verdict = match ask {
            Ask::Http(ask) => self.explain_http(ask, &mut notes),
            Ask::File { want, path } => self.explain_file(*want, path, &mut notes),
            Ask::Tcp(host, port) => self.explain_socket(Capability::Tcp, host, *port, &mut notes),
            Ask::Udp(host, port) => self.explain_socket(Capability::Udp, host, *port, &mut notes),
            Ask::Lookup(name) => self.network().lookup(name).map(|permit| permit.rule().clone()),
            Ask::Env(name) => self.explain_env(name, &mut notes),
            Ask::Config(key) => self.explain_config(key),
            Ask::Secret(name) => self.explain_secret(name, &mut notes),
            Ask::KeyValue => {
                let open = self.open_keyvalue();
                open.map(|_| RuleRef::new(&format!("[{}]", self.subject().section("keyvalue")), self.keyvalue_span()))
            }
        };
        Explanation { asked: ask.to_string(), verdict, notes }
    }

    fn explain_http(&self, ask: &crate::grants::HttpAsk, notes: &mut Vec<String>) -> Result<RuleRef, Denial> {
        let permit = self.network().http(ask)?;
        match ask.host() {
            Host::Addr(address) => {
                permit.check_address(*address)?;
            }
            Host::Name(name) => notes.push(names_note(name)),
        }
        for secret in self.secrets().iter().filter(|secret| secret.matches(ask)) {
            notes.push(format!("the request carries the secret {:?}", secret.name()));
        }
        if let Some(proxy) = self.network().proxy() {
            notes.push(format!("the request goes through {proxy}"));
        }
        Ok(permit.rule().clone())
    }

    fn explain_file(&self, want: FileAccess, path: &str, notes: &mut Vec<String>) -> Result<RuleRef, Denial> {
        self.file(want, path)?;
        let Some(mount) = self.mount_of(path) else { return Err(self.nothing(Capability::Filesystem, path, "")) };
        if want != FileAccess::Read
            && let Some(quota) = mount.quota()
        {
            let bytes = crate::quantity::show_bytes(quota.bytes);
            notes.push(format!("all files there may have {bytes} together, and be {} at most", quota.files));
        }
        Ok(RuleRef::new(&mount_text(mount), mount.span()))
    }

    fn explain_socket(
        &self,
        capability: Capability,
        host: &Host,
        port: u16,
        notes: &mut Vec<String>,
    ) -> Result<RuleRef, Denial> {
        let network = self.network();
        let tcp = capability == Capability::Tcp;
        let name = match host {
            Host::Addr(address) => {
                let address = SocketAddr::new(*address, port);
                let none = Resolved::default();
                let permit = if tcp { network.tcp(address, &none) } else { network.udp(address, &none) };
                return permit.map(|permit| permit.rule().clone());
            }
            Host::Name(name) => name,
        };
        let rule = network.socket_of_name(capability, host, port)?;
        notes.push(names_note(name));
        Ok(rule)
    }

    fn explain_env(&self, name: &str, notes: &mut Vec<String>) -> Result<RuleRef, Denial> {
        if let Some(variable) = self.env().iter().find(|variable| variable.name() == name) {
            if let EnvSource::Host(host) = variable.source() {
                notes.push(format!("the value is that of the host's variable {host:?}"));
            }
            return Ok(RuleRef::new(name, variable.span()));
        }
        self.exposed(name).ok_or_else(|| self.nothing(Capability::Env, name, "env"))
    }

    fn explain_config(&self, key: &str) -> Result<RuleRef, Denial> {
        let place = self.places.config.clone();
        match self.config().iter().find(|(name, _)| name == key).and(place) {
            Some(span) => Ok(RuleRef::new(key, span)),
            None => self.exposed(key).ok_or_else(|| self.nothing(Capability::Config, key, "config")),
        }
    }

    fn explain_secret(&self, name: &str, notes: &mut Vec<String>) -> Result<RuleRef, Denial> {
        let Some(secret) = self.secrets().iter().find(|secret| secret.name() == name) else {
            return Err(self.nothing(Capability::Secret, name, "secrets"));
        };
        notes.push(match secret.delivery() {
            Delivery::Header { name, target, .. } => format!("it is the header {name:?} of requests for {target}"),
            Delivery::Query { name, target } => format!("it is {name:?} in the query of requests for {target}"),
            Delivery::Expose => "the guest holds it".to_owned(),
        });
        Ok(RuleRef::new(&format!("{name} from {}", secret.source()), secret.span()))
    }

    /// A secret that the guest gets as variable and as setting.
    fn exposed(&self, name: &str) -> Option<RuleRef> {
        let exposed = |secret: &&crate::grants::Secret| secret.name() == name && *secret.delivery() == Delivery::Expose;
        self.secrets().iter().find(exposed).map(|secret| RuleRef::new(name, secret.span()))
    }

    /// The denial of reading a setting that is not there, for observing it.
    #[must_use]
    pub fn no_setting(&self, key: &str) -> Denial {
        self.nothing(Capability::Config, key, "config")
    }

    /// The denial of reading an environment that is empty, for observing it. A guest reads all
    /// variables at once, so nobody sees which it looked for.
    #[must_use]
    pub fn no_environment(&self) -> Denial {
        Denial::new(Capability::Env, ENVIRONMENT.to_owned(), Reason::NoRule, self.subject())
            .allowed_by(&self.subject().section("env"), "NAME = \"VALUE\"".to_owned())
    }

    /// The denial of what a guest asked for in another process, by the text of that process's
    /// denial. Nothing but the text is believed: these grants decide again. Where they would allow
    /// it, or the text asks for nothing, they only repeat that it was denied.
    #[must_use]
    pub fn denied_elsewhere(&self, capability: Capability, asked: &str) -> Denial {
        if capability == Capability::Env && asked == ENVIRONMENT {
            return self.no_environment();
        }
        if capability == Capability::Filesystem
            && let Some(denial) = self.file_elsewhere(asked)
        {
            return denial;
        }
        let again = Ask::parse(asked).ok().and_then(|ask| self.explain(&ask).denial().cloned());
        again.filter(|denial| denial.capability() == capability).unwrap_or_else(|| {
            let listens = LISTENS.iter().any(|verb| asked.contains(verb));
            let reason = if listens { Reason::NeverListens } else { Reason::NoRule };
            Denial::new(capability, asked.to_owned(), reason, self.subject())
        })
    }

    /// The denial of a file. Names of files have any characters, so the text is not read as one
    /// that a person wrote.
    fn file_elsewhere(&self, asked: &str) -> Option<Denial> {
        let (verb, path) = asked.split_once(' ')?;
        let all = [FileAccess::Read, FileAccess::Write, FileAccess::Create, FileAccess::Remove];
        let want = all.into_iter().find(|want| want.name() == verb)?;
        let is_path = path.starts_with('/') && path.len() <= FILE_BYTES_MAX;
        let denial = is_path.then(|| self.file(want, path).err())??;
        (denial.asked() == asked).then_some(denial)
    }

    /// The denial of a name that the manifest does not give.
    fn nothing(&self, capability: Capability, name: &str, table: &str) -> Denial {
        let denial = Denial::new(capability, format!("{} {name}", capability.name()), Reason::NoRule, self.subject());
        let key = crate::names::toml_key(name);
        let line = match capability {
            Capability::Env => format!("{key} = {{ from = {} }}", crate::names::toml_string(&format!("env:{name}"))),
            Capability::Config => format!("{key} = \"VALUE\""),
            _ => format!("{key} = {{ from = {}, expose = true }}", crate::names::toml_string(&format!("env:{name}"))),
        };
        denial.allowed_by(&self.subject().section(table), line)
    }
}

fn names_note(name: &str) -> String {
    format!("each address that {name} leads to must be public, or one that private names with this port")
}

pub(crate) fn mount_text(mount: &Mount) -> String {
    format!("{} = {}", crate::names::toml_string(mount.guest()), mount.access().name())
}
