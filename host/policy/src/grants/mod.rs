//! The grants of a component or of one of its tools, and the decisions they make. Each decision is
//! a value: a permit that the acting code needs, or a denial with the line that would allow it.
//! Must not hold: how grants are read, acting on them, or a secret's value.

mod address;
mod calls;
mod denial;
mod files;
mod host;
mod http;
mod keyvalue;
mod network;
mod path;
mod ports;
mod private;
mod proxy;
mod readings;
mod rule;
mod secret;
mod sockets;
mod ungranted;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::Span;
use crate::manifest::{CODE, LoginOwner, LoginPolicy};
use crate::settings::accessors;

pub use address::AddressClass;
pub use calls::CallRule;
pub use denial::{Allow, Capability, Denial, Reason};
pub use files::{
    ANY_FOLDER, Access, FILES_DEFAULT, FileAccess, FilePermit, Mount, MountKind, QUOTA_BYTES_DEFAULT, Quota,
};
pub use host::{Host, HostError, HostPattern, HostPort};
pub use http::{AskError, HttpAsk, HttpPermit, HttpRule, MethodSet, Scheme};
pub use keyvalue::KeyValue;
pub use network::{AddressPermit, CaFile, Network};
pub use path::PathPattern;
pub use ports::PortRange;
pub use private::PrivateRule;
pub use proxy::{ProxyScheme, ProxyUrl};
pub use rule::{RuleError, RuleRef};
pub use secret::{Delivery, Secret, SecretProgram, SecretSource, SecretTemplate};
pub use sockets::{LookupPermit, Resolved, SocketRule, SocketTarget};
pub use ungranted::{Askable, Ungranted};

pub(crate) use files::{MOUNT_FILES, MOUNT_QUOTA, SCRATCH, no_mount};
pub(crate) use http::{is_token, split_port};
pub(crate) use keyvalue::KEYVALUE;
pub(crate) use private::{check as check_address, missing as missing_private};

accessors! {
    /// Everything a component, or one of its tools, may reach. [`Grants::sealed`] may reach
    /// nothing.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Grants {
        /// The subject of denials.
        pub(crate) subject: Arc<Subject> => &Arc<Subject>,
        /// Folders and files, the longest guest path first: the first mount whose path leads to a
        /// file is the file's.
        pub(crate) files: Vec<Mount> => &[Mount],
        /// Hosts, addresses and names.
        pub(crate) network: Network => &Network,
        /// Environment variables, in the order of the manifest. Exposed secrets come as well: see
        /// [`Delivery::Expose`].
        pub(crate) env: Vec<EnvVar> => &[EnvVar],
        /// Command-line arguments.
        pub(crate) args: Vec<String> => &[String],
        /// Standard input; `None`: closed.
        pub(crate) stdin: Option<String> => Option<&str>,
        /// Runtime configuration (`wasi:config`), in the order of the manifest. Exposed secrets
        /// come as well.
        pub(crate) config: Vec<(String, String)> => &[(String, String)],
        /// Secrets, without their values.
        pub(crate) secrets: Vec<Secret> => &[Secret],
        /// State between calls (`wasi:keyvalue`).
        pub(crate) keyvalue: Option<KeyValue> => Option<&KeyValue>,
        /// Tools that a call may call.
        pub(crate) calls: Vec<CallRule> => &[CallRule],
        /// The answer to requests without a rule.
        pub(crate) ungranted: Ungranted => Ungranted,
        /// The place of each section that grants something.
        pub(crate) places: BTreeMap<&'static str, Span>,
        /// The component's grants, if these are narrowed for a tool: a denial distinguishes what
        /// the tool's table removes from what is not granted at all.
        pub(crate) wider: Option<Arc<Grants>>,
    }
}

accessors! {
    /// The subject of a denial.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    pub struct Subject {
        /// The component's name in the manifest.
        component: String => &str,
        /// The tool's own name, without prefix; `None`: the component itself, as while its tools
        /// are listed.
        tool: Option<String> => Option<&str>,
    }
}

accessors! {
    /// One environment variable of the guest.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct EnvVar {
        /// The name the guest sees.
        pub(crate) name: String => &str,
        /// The source of the value.
        pub(crate) source: EnvSource => &EnvSource,
        /// Its place in the manifest.
        pub(crate) span: Span => Span,
    }
}

/// The source of a variable's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvSource {
    /// The manifest.
    Text(String),
    /// The host's variable of this name; a load error where that is missing.
    Host(String),
}

impl Subject {
    /// A component, or one of its tools by the tool's own name, without prefix.
    #[must_use]
    pub fn new(component: &str, tool: Option<&str>) -> Self {
        Self { component: component.to_owned(), tool: tool.map(str::to_owned) }
    }

    /// The header of the component's table: `components.weather`.
    pub(crate) fn table(&self) -> String {
        if self.component == CODE { CODE.to_owned() } else { format!("components.{}", self.component) }
    }

    /// The header of one of the component's tables: `components.weather.network`.
    pub(crate) fn section(&self, table: &str) -> String {
        format!("{}.{table}", self.table())
    }

    /// The header of the tool's table; the component's without a tool.
    pub(crate) fn narrowed_section(&self, table: &str) -> String {
        match &self.tool {
            Some(tool) => format!("components.{}.tools.{tool}.{table}", self.component),
            None => self.section(table),
        }
    }
}

impl std::fmt::Display for Subject {
    /// `tool "forecast"` or `component "weather"`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.tool {
            Some(tool) => write!(formatter, "tool {tool:?}"),
            None => write!(formatter, "component {:?}", self.component),
        }
    }
}

impl Grants {
    /// No grants.
    #[must_use]
    pub fn sealed(component: &str, tool: Option<&str>) -> Self {
        let subject = Arc::new(Subject::new(component, tool));
        Self {
            files: Vec::new(),
            network: Network::sealed(Arc::clone(&subject)),
            env: Vec::new(),
            args: Vec::new(),
            stdin: None,
            config: Vec::new(),
            secrets: Vec::new(),
            keyvalue: None,
            calls: Vec::new(),
            ungranted: Ungranted::Deny,
            places: BTreeMap::new(),
            wider: None,
            subject,
        }
    }

    /// The logins of each caller that its secrets are from.
    pub fn caller_logins(&self) -> impl Iterator<Item = &Arc<LoginPolicy>> {
        self.secrets.iter().filter_map(|secret| match secret.source() {
            SecretSource::Login(login) if login.owner() == LoginOwner::Caller => Some(login),
            _ => None,
        })
    }

    /// A copy of the grants for another subject of denials.
    #[must_use]
    pub(crate) fn of(&self, subject: &Arc<Subject>) -> Self {
        let mut grants = self.clone();
        grants.subject = Arc::clone(subject);
        grants.network = grants.network.of(subject);
        for mount in &mut grants.files {
            mount.subject = Arc::clone(subject);
        }
        grants
    }

    /// True if both reach the same; the subjects may differ.
    #[must_use]
    pub fn reaches_like(&self, other: &Self) -> bool {
        let named_as = |grants: &Self| Self { wider: None, places: BTreeMap::new(), ..grants.of(&other.subject) };
        named_as(self) == named_as(other)
    }

    /// The place of a section that grants something.
    pub(crate) fn place(&self, section: &str) -> Option<Span> {
        self.places.get(section).cloned()
    }

    /// Where the manifest grants state between calls; its start if it does not.
    #[must_use]
    pub fn keyvalue_span(&self) -> Span {
        self.place("keyvalue").unwrap_or_default()
    }

    /// Where the manifest says what happens to requests without a rule, if it does.
    #[must_use]
    pub fn ungranted_span(&self) -> Option<Span> {
        self.place("ungranted")
    }

    /// The state between calls, or the denial of opening a store.
    ///
    /// # Errors
    ///
    /// [`Denial`]: it is not granted.
    pub fn open_keyvalue(&self) -> Result<&KeyValue, Denial> {
        self.keyvalue.as_ref().ok_or_else(|| {
            let granted = self.wider.as_ref().is_some_and(|wider| wider.keyvalue.is_some());
            let denial = Denial::new(Capability::KeyValue, "keyvalue".to_owned(), Reason::NoRule, &self.subject);
            if granted {
                let tool = self.subject.tool().unwrap_or_default();
                return denial
                    .allowed_by(&self.subject.section(&format!("tools.{tool}")), "keyvalue = true".to_owned());
            }
            denial.allowed_by(&self.subject.section("keyvalue"), "quota = \"1MiB\"".to_owned())
        })
    }

    /// True if nothing is granted, and nothing can be.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.canonical().is_null()
    }

    /// The permit for an access at a guest path, by the mount that it belongs to. A path with `..`
    /// belongs to none: resolve it first.
    ///
    /// # Errors
    ///
    /// [`Denial`]: no mount leads there, or the mount does not allow it.
    pub fn file(&self, want: FileAccess, path: &str) -> Result<FilePermit, Denial> {
        match self.mount_of(path) {
            Some(mount) => mount.open(want, mount.rest_of(path).unwrap_or_default()),
            None => {
                let wider = self.wider.as_ref().is_some_and(|wider| wider.file(want, path).is_ok());
                Err(no_mount(&self.subject, want, path, wider))
            }
        }
    }

    /// The mount of a guest path: the longest that leads to it.
    pub(crate) fn mount_of(&self, path: &str) -> Option<&Mount> {
        let resolved = !path.split('/').any(|part| part == "..");
        self.files.iter().find(|mount| resolved && mount.rest_of(path).is_some())
    }
}
