//! A manifest that has been checked: every default filled in, every limit resolved for every tool.
//! Must not hold: how it was written, beyond the places that later problems point at.

pub(crate) mod alerts;
pub(crate) mod approval;
pub(crate) mod apps;
pub(crate) mod arguments;
pub(crate) mod audit;
pub(crate) mod call_graph;
pub(crate) mod callers;
pub(crate) mod code;
pub(crate) mod console;
pub(crate) mod discovery;
pub(crate) mod hints;
pub(crate) mod http;
pub(crate) mod http_tool;
pub(crate) mod icons;
pub(crate) mod instance;
pub(crate) mod login;
pub(crate) mod login_pages;
mod login_use;
pub(crate) mod oauth;
pub(crate) mod packages;
pub(crate) mod paused;
pub(crate) mod prompts;
pub(crate) mod recordings;
pub(crate) mod registries;
pub(crate) mod resources;
pub(crate) mod server;
pub(crate) mod skills;
pub(crate) mod state;
pub(crate) mod tasks;
pub(crate) mod telemetry;
pub(crate) mod trust;
pub(crate) mod typed;
pub(crate) mod wall;
pub(crate) mod wasi;

use std::sync::Arc;

use crate::diagnostic::Span;
use crate::grants::{Grants, Subject};
use crate::limits::{Limit, LimitPlace, LimitPlaces, Limits, LoadLimits};
use crate::names::{self, NameError};
use crate::program::Program;
use crate::reference::Reference;
use crate::settings::accessors;

pub use alerts::AlertsPolicy;
pub use approval::{Approval, ApprovalPolicy, ApproveIn};
pub use apps::{APPS_MAX, AppRule, ToolView};
pub use arguments::{ArgumentCondition, ArgumentConditions};
pub use audit::{AuditArguments, AuditPolicy, Fsync};
pub use call_graph::{CallingTool, check_calls};
pub use callers::{
    Callable, CallerRates, CallerRule, Callers, IF as CALLED_IF, Rights, SCOPE_BYTES_MAX, ToolName, ToolPattern,
    is_caller_scope,
};
pub use code::{CODE, SCRIPT_RESULT_BYTES};
pub use console::ConsolePolicy;
pub use discovery::Discovery;
pub use hints::Hints;
pub use http::{HttpLimit, HttpLimits, HttpPolicy, ListenAddress, TlsFiles};
pub use http_tool::HttpTool;
pub use icons::IconRule;
pub use instance::InstancePolicy;
pub use login::{
    ClientAuth, LoginLimit, LoginLimits, LoginOwner, LoginPolicy, LoopbackRedirect, is_login_endpoint, is_login_issuer,
    is_scope,
};
pub use login_pages::LoginsPolicy;
pub use login_use::LoginUse;
pub use oauth::{IssuerLimit, IssuerLimits, IssuerPolicy, OauthPolicy, is_loopback};
pub use packages::PackageRegistry;
pub use paused::PausedPolicy;
pub use prompts::{ArgumentRule, PROMPT_BYTES_MAX, PROMPTS_MAX, PromptRule, PromptSource, PromptText, PromptTextError};
pub use recordings::{RecordRule, RecordShare, RecordingsPolicy};
pub use registries::RegistryPolicy;
pub use resources::{MountFiles, RESOURCES_MAX, ResourceRule, StateEntries, ToolArguments, UriTemplate};
pub use server::{LogWord, Server, StartRule, Walls};
pub use skills::SkillsPolicy;
pub use state::{RatesWhileAway, SharedServer, StatePolicy};
pub use tasks::{TaskRule, TasksPolicy};
pub use telemetry::{MetricsPolicy, TracesPolicy};
pub use trust::{Required, SignerPolicy, TrustPolicy};
pub use typed::{DESCRIPTIONS_MAX, Description, EXPORTS_MAX, ExportedFunctions, NamedExport, TypedPolicy};
pub use wall::{NAMES as WALL_NAMES, Wall};
pub use wasi::is_later_wasi;

accessors! {
    /// A checked manifest. Only [`crate::parse`] makes one.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Manifest {
        /// The section `[server]`.
        pub(crate) server: Server => &Server,
        /// The section `[http]`, if the manifest has one.
        pub(crate) http: Option<HttpPolicy> => Option<&HttpPolicy>,
        /// The section `[metrics]`, if the manifest has one.
        pub(crate) metrics: Option<MetricsPolicy> => Option<&MetricsPolicy>,
        /// The section `[console]`, if the manifest has one.
        pub(crate) console: Option<ConsolePolicy> => Option<&ConsolePolicy>,
        /// The section `[traces]`, if the manifest has one.
        pub(crate) traces: Option<TracesPolicy> => Option<&TracesPolicy>,
        /// The section `[alerts]`, if the manifest has one.
        pub(crate) alerts: Option<AlertsPolicy> => Option<&AlertsPolicy>,
        /// The section `[state]`, if the manifest has one.
        pub(crate) state: Option<StatePolicy> => Option<&StatePolicy>,
        /// The section `[tasks]`.
        pub(crate) tasks: TasksPolicy => &TasksPolicy,
        /// The section `[paused]`.
        pub(crate) paused: PausedPolicy => &PausedPolicy,
        /// The sections `[oauth.NAME]`, in the order of the file.
        pub(crate) logins: Vec<Arc<LoginPolicy>> => &[Arc<LoginPolicy>],
        /// The section `[logins]`, if the manifest has one.
        pub(crate) login_pages: Option<LoginsPolicy> => Option<&LoginsPolicy>,
        /// The section `[audit]`.
        pub(crate) audit: AuditPolicy => &AuditPolicy,
        /// The folder of recordings; `None` if no call is recorded, and the manifest has no section
        /// `[recordings]`.
        pub(crate) recordings: Option<RecordingsPolicy> => Option<&RecordingsPolicy>,
        /// Who may see and call which tools.
        pub(crate) callers: Callers => &Callers,
        pub(crate) defaults: Limits,
        /// The text that it was read from.
        pub(crate) text: Arc<str> => &Arc<str>,
        /// The prompts of the manifest itself, in the order of the file.
        pub(crate) prompts: Vec<PromptRule> => &[PromptRule],
        /// The section `[skills]`, if the manifest has one.
        pub(crate) skills: Option<SkillsPolicy> => Option<&SkillsPolicy>,
        /// The views of tools' results, in the order of the file.
        pub(crate) apps: Vec<AppRule> => &[AppRule],
        /// The registries that are reached in another way, in the order of the file.
        pub(crate) registries: Vec<RegistryPolicy> => &[RegistryPolicy],
        /// The registries of packages' namespaces, in the order of the file.
        pub(crate) packages: Vec<PackageRegistry> => &[PackageRegistry],
        /// Who must have signed components, in the order of the file.
        pub(crate) trust: Vec<TrustPolicy> => &[TrustPolicy],
        /// The components, in the order of the file. Names are unique.
        pub(crate) components: Vec<ComponentPolicy> => &[ComponentPolicy],
    }
}

accessors! {
    /// One component: its source, its limits and its grants.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ComponentPolicy {
        /// The component's name: [`names::check_component`] holds.
        pub(crate) name: String => &str,
        /// The place of its name in the manifest.
        pub(crate) name_span: Span => Span,
        /// The source of its bytes.
        pub(crate) source: SourceRef => &SourceRef,
        /// Its place in the manifest.
        pub(crate) source_span: Span => Span,
        /// The prefix of each of its tools' names.
        pub(crate) prefix: Option<String> => Option<&str>,
        /// Texts for its functions, where these are its tools.
        pub(crate) typed: TypedPolicy => &TypedPolicy,
        /// The limits of its tools where the manifest says nothing about a tool, and of listing its
        /// tools at load.
        pub(crate) limits: Limits => &Limits,
        pub(crate) limit_places: LimitPlaces,
        /// The limits of loading it.
        pub(crate) load: LoadLimits => &LoadLimits,
        /// The calls of one of its tools that share an instance; [`InstancePolicy::PerCall`] by
        /// default.
        pub(crate) instance: InstancePolicy => InstancePolicy,
        /// Instances kept ready for each of its tools that is in use, so that a call does not wait
        /// for instantiation: 0 to 64, 4 by default, none where calls share instances. A tool's are
        /// given up after ten seconds without a call.
        pub(crate) prewarm: usize => usize,
        /// The group of sandbox processes that its calls run in.
        pub(crate) wall: Wall => &Wall,
        pub(crate) wall_span: Span,
        /// The place of `wasi = "0.3"`, if the manifest has it.
        pub(crate) wasi: Option<Span>,
        /// The component's grants; its tools may reach no more.
        pub(crate) grants: Arc<Grants> => &Arc<Grants>,
        /// The approval of tools that have no table of their own.
        pub(crate) approval: Approval => Approval,
        pub(crate) listed: discovery::ListsTools,
        /// The calls that become tasks, of tools that have no table of their own.
        pub(crate) task: TaskRule => TaskRule,
        /// The calls that are recorded, of tools that have no table of their own.
        pub(crate) record: RecordRule => RecordRule,
        /// Resources that its tools read, in the order of the file.
        pub(crate) resources: Vec<ResourceRule> => &[ResourceRule],
        /// The tools the manifest says something of, in the order of the file. The component may
        /// have others, and may lack some of these: the loader, which knows its exports, reports
        /// that at [`ToolPolicy::name_span`].
        pub(crate) tools: Vec<ToolPolicy> => &[ToolPolicy],
    }
}

/// The source of a component's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceRef {
    /// A path relative to the manifest's folder, as it was written.
    File(String),
    /// A component of a registry, which has a digest. Its bytes are in the store.
    Registry(Reference),
    /// The engine of scripts that comes with this program.
    Shipped,
    /// The bridge that comes with this program, with this request in it.
    HttpTool(Arc<HttpTool>),
}

accessors! {
    /// The policy of one tool that has a table of its own.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ToolPolicy {
        /// The tool's own name, without prefix.
        pub(crate) name: String => &str,
        /// The place of its name in the manifest.
        pub(crate) name_span: Span => Span,
        /// A name for people; wins over the one that the component gives.
        pub(crate) title: Option<String> => Option<&str>,
        /// A description for models; wins over the component's.
        pub(crate) description: Option<String> => Option<&str>,
        /// The tool's behaviour; each value here wins over the component's.
        pub(crate) hints: Hints => &Hints,
        /// The program that the tool runs, if its table describes one.
        pub(crate) program: Option<Arc<Program>> => Option<&Arc<Program>>,
        /// The tool's limits.
        pub(crate) limits: Limits => &Limits,
        pub(crate) limit_places: LimitPlaces,
        /// The tool's grants.
        pub(crate) grants: Arc<Grants> => &Arc<Grants>,
        /// The calls of it that a person confirms.
        pub(crate) approval: Approval => Approval,
        pub(crate) listed: discovery::ListsTools,
        /// The calls of it that become tasks.
        pub(crate) task: TaskRule => TaskRule,
        /// The calls of it that are recorded.
        pub(crate) record: RecordRule => RecordRule,
        /// The view of its results, and who calls it.
        pub(crate) view: ToolView => &ToolView,
        /// Conditions on its arguments, for all of its callers.
        pub(crate) arguments: Option<Arc<ArgumentConditions>> => Option<&Arc<ArgumentConditions>>,
    }
}

impl Manifest {
    /// The limits of components without limits of their own: built-in defaults under
    /// `[defaults.limits]`.
    #[must_use]
    pub const fn default_limits(&self) -> &Limits {
        &self.defaults
    }

    /// The logins and keys of which each caller has one, by name.
    #[must_use]
    pub fn caller_logins(&self) -> Vec<Arc<LoginPolicy>> {
        login::of_callers(&self.logins, &self.components)
    }

    /// Which callers may use which of them.
    #[must_use]
    pub fn login_use(&self) -> LoginUse {
        LoginUse::of(self)
    }

    /// The login of a name.
    #[must_use]
    pub fn login(&self, name: &str) -> Option<&Arc<LoginPolicy>> {
        self.logins.iter().find(|login| login.name() == name)
    }

    /// The registry of a namespace of packages.
    #[must_use]
    pub fn package_registry(&self, namespace: &str) -> Option<&str> {
        self.packages.iter().find(|entry| entry.namespace() == namespace).map(PackageRegistry::registry)
    }

    /// Who must have signed a component of a registry: the rule with the longest beginning of its
    /// name. `None`: nobody.
    #[must_use]
    pub fn trust_of(&self, reference: &Reference) -> Option<&TrustPolicy> {
        trust::of(&self.trust, reference)
    }

    /// The component of a name.
    #[must_use]
    pub fn component(&self, name: &str) -> Option<&ComponentPolicy> {
        self.components.iter().find(|component| component.name == name)
    }
}

impl ComponentPolicy {
    /// The limits of one tool, by the tool's own name, without prefix.
    #[must_use]
    pub fn tool_limits(&self, tool: &str) -> &Limits {
        self.tool(tool).map_or(&self.limits, ToolPolicy::limits)
    }

    /// The place of one limit of one tool, by the tool's own name, without prefix: that of the most
    /// specific table that sets it. `None`: its built-in default holds.
    #[must_use]
    pub fn tool_limit_place(&self, tool: &str, limit: Limit) -> Option<&LimitPlace> {
        self.tool(tool).map_or(&self.limit_places, |tool| &tool.limit_places).of(limit)
    }

    /// The calls of one tool that a person confirms, by the tool's own name, without prefix.
    #[must_use]
    pub fn tool_approval(&self, tool: &str) -> Approval {
        self.tool(tool).map_or(self.approval, |tool| tool.approval)
    }

    /// The calls of one tool that become tasks, by the tool's own name, without prefix.
    #[must_use]
    pub fn tool_task(&self, tool: &str) -> TaskRule {
        self.tool(tool).map_or(self.task, |tool| tool.task)
    }

    /// The calls of one tool that are recorded, by the tool's own name, without prefix.
    #[must_use]
    pub fn tool_record(&self, tool: &str) -> RecordRule {
        self.tool(tool).map_or(self.record, |tool| tool.record)
    }

    /// True if any call of the component may be recorded.
    #[must_use]
    pub fn may_be_recorded(&self) -> bool {
        let of_tools = self.tools.iter().map(|tool| tool.record);
        of_tools.chain([self.record]).any(|rule| rule != RecordRule::Never)
    }

    /// True if one tool is listed where clients search for tools, by the tool's own name, without
    /// prefix.
    #[must_use]
    pub fn is_listed(&self, tool: &str) -> bool {
        let own = self.tool(tool).and_then(|tool| tool.listed.as_ref());
        own.or(self.listed.as_ref()).is_some_and(|(listed, _)| *listed)
    }

    /// The grants of one tool, by the tool's own name, without prefix: the component's grants, less
    /// what the manifest takes away. Denials name the tool.
    #[must_use]
    pub fn tool_grants(&self, tool: &str) -> Arc<Grants> {
        match self.tool(tool) {
            Some(policy) => Arc::clone(policy.grants()),
            None => Arc::new(self.grants.of(&Arc::new(Subject::new(&self.name, Some(tool))))),
        }
    }

    /// The table of one tool, by the tool's own name, without prefix.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolPolicy> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The export behind a tool, by the tool's own name: the function that `exports` maps to this
    /// name, as written there; else the tool's name.
    #[must_use]
    pub fn export_of<'a>(&'a self, tool: &'a str) -> &'a str {
        self.typed.function_of(tool).unwrap_or(tool)
    }

    /// The name a client sees for one of the component's tools.
    ///
    /// # Errors
    /// [`NameError`] where the name does not have the form of a tool's.
    pub fn exposed_name(&self, tool: &str) -> Result<String, NameError> {
        names::exposed(self.prefix(), tool)
    }
}

impl std::fmt::Display for SourceRef {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => formatter.write_str(path),
            Self::Registry(reference) => reference.fmt(formatter),
            Self::Shipped => formatter.write_str("the engine of scripts"),
            Self::HttpTool(tool) => write!(formatter, "http_tool {} {}", tool.method(), tool.url()),
        }
    }
}
