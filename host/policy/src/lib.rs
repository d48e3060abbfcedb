//! Manifest text → validated policy.
//!
//! Holds the manifest's keys, its meaning with every default filled in, and its diagnostics. Must
//! not hold: files, clocks, the process environment, threads, an async runtime, WebAssembly. All of
//! it is pure functions, so that reading a manifest works the same everywhere and tests need no
//! setup.
//!
//! ```
//! use toolcell_policy::{Source, parse};
//!
//! let source = Source {
//!     name: "toolcell.toml",
//!     text: "version = 1\n[components.echo]\nsource = \"echo.wasm\"\nlimits = { deadline = \"5s\" }\n",
//! };
//! let parsed = parse(&source).map_err(|problems| problems.len());
//! let manifest = parsed.map(|parsed| parsed.manifest);
//! let echo = manifest.as_ref().ok().and_then(|manifest| manifest.component("echo"));
//! assert_eq!(echo.map(|echo| echo.limits().deadline().as_secs()), Some(5));
//! ```
#![forbid(unsafe_code)]

mod advised;
mod canonical;
mod capabilities;
mod diagnostic;
pub mod edit;
mod evidence;
mod excerpt;
mod expect;
mod explain;
mod exports;
mod grants;
mod identity;
mod imports;
mod limits;
mod manifest;
mod metadata;
pub mod names;
mod package;
mod parse;
mod program;
mod proposal;
pub mod quantity;
mod read;
mod reference;
mod render;
mod requested_permissions;
pub mod rights;
mod schema;
mod settings;
pub mod shell;
mod suggest;
mod table;
mod words;

pub use advised::AdvisedFault;
pub use capabilities::ReachRow;
pub use diagnostic::{Diagnostic, Position, Severity, Source, Span};
pub use evidence::{
    Evidence, Finding, Fuzzed, GrantUse, NEIGHBOURS_MAX, Narrowed, Seen, WideRequest, WideRule, fuzz, narrow,
};
pub use excerpt::{Excerpts, to_replay};
pub use expect::{EXPECTATIONS_MAX, Expectation, ExpectationResult, parse_expectations};
pub use explain::{Ask, AskTextError, Explanation};
pub use grants::{
    ANY_FOLDER, Access, AddressClass, AddressPermit, Allow, AskError, Askable, CaFile, CallRule, Capability, Delivery,
    Denial, EnvSource, EnvVar, FILES_DEFAULT, FileAccess, FilePermit, Grants, Host, HostError, HostPattern, HostPort,
    HttpAsk, HttpPermit, HttpRule, KeyValue, LookupPermit, MethodSet, Mount, MountKind, Network, PathPattern,
    PortRange, PrivateRule, ProxyScheme, ProxyUrl, QUOTA_BYTES_DEFAULT, Quota, Reason, Resolved, RuleError, RuleRef,
    Scheme, Secret, SecretProgram, SecretSource, SecretTemplate, SocketRule, SocketTarget, Subject, Ungranted,
};
pub use identity::{IDENTITY_PATTERN_BYTES_MAX, IdentityPattern, PatternError};
pub use limits::{
    INSTANCES_MAX, Limit, LimitPlace, Limits, LoadLimit, LoadLimits, MEMORIES_MAX, OutOfRange, Spec, TABLES_MAX, Unit,
};
pub use manifest::{
    APPS_MAX, AlertsPolicy, AppRule, Approval, ApprovalPolicy, ApproveIn, ArgumentCondition, ArgumentConditions,
    ArgumentRule, AuditArguments, AuditPolicy, CALLED_IF, CODE, Callable, CallerRates, CallerRule, Callers,
    CallingTool, ClientAuth, ComponentPolicy, ConsolePolicy, DESCRIPTIONS_MAX, Description, Discovery, EXPORTS_MAX,
    ExportedFunctions, Fsync, Hints, HttpLimit, HttpLimits, HttpPolicy, HttpTool, IconRule, InstancePolicy,
    IssuerLimit, IssuerLimits, IssuerPolicy, ListenAddress, LogWord, LoginLimit, LoginLimits, LoginOwner, LoginPolicy,
    LoginUse, LoginsPolicy, LoopbackRedirect, Manifest, MetricsPolicy, MountFiles, NamedExport, OauthPolicy,
    PROMPT_BYTES_MAX, PROMPTS_MAX, PackageRegistry, PausedPolicy, PromptRule, PromptSource, PromptText,
    PromptTextError, RESOURCES_MAX, RatesWhileAway, RecordRule, RecordShare, RecordingsPolicy, RegistryPolicy,
    Required, ResourceRule, Rights, SCOPE_BYTES_MAX, SCRIPT_RESULT_BYTES, Server, SharedServer, SignerPolicy,
    SkillsPolicy, SourceRef, StartRule, StateEntries, StatePolicy, TaskRule, TasksPolicy, TlsFiles, ToolArguments,
    ToolName, ToolPattern, ToolPolicy, ToolView, TracesPolicy, TrustPolicy, TypedPolicy, UriTemplate, WALL_NAMES, Wall,
    Walls, check_calls, is_caller_scope, is_later_wasi, is_login_endpoint, is_login_issuer, is_loopback, is_scope,
};
pub use metadata::{METADATA_BYTES_MAX, Metadata, Suggested, Suggestion};
pub use package::{PACKAGE_LABEL_CHARS_MAX, PackageError, PackageName};
pub use parse::{COMPONENTS_MAX, DIAGNOSTICS_MAX, MANIFEST_BYTES_MAX, Parsed, parse};
pub use program::{ARGUMENTS_MAX, ExpandError, INVOCATION_BYTES_MAX, Invocation, Output, Program};
pub use proposal::{PeakUsage, Proposal, ProposedLimit};
pub use reference::{Digest, REFERENCE_NAME_CHARS_MAX, Reference, ReferenceError, TAG_CHARS_MAX};
pub use render::{Style, render_all};
pub use requested_permissions::{REQUESTED_PERMISSIONS_BYTES_MAX, RequestedPermissions};
pub use rights::{is_secret_query, secret_header_fault};
pub use schema::json_schema;
pub use suggest::{ATTEMPTS_MAX, Attempt, suggest};
