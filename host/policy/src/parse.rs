//! From text to a checked manifest: bounds, syntax, version, then every table.

use toml::Spanned;
use toml::de::{DeTable, Error};

use crate::diagnostic::{Diagnostic, Severity, Source};
use crate::limits::{LIMITS, LOAD, PlacedLimits};
use crate::manifest::alerts::{ALERTS, AlertsPolicy};
use crate::manifest::apps::{self, APP, APPS_MAX};
use crate::manifest::audit::AUDIT;
use crate::manifest::code::SCRIPTS;
use crate::manifest::console::CONSOLE;
use crate::manifest::http::HTTP;
use crate::manifest::login::{self, LOGIN, LOGINS_MAX};
use crate::manifest::login_pages::LOGINS;
use crate::manifest::packages::{self, PACKAGES_MAX};
use crate::manifest::paused::PAUSED;
use crate::manifest::prompts::{self, PROMPT, PROMPTS_MAX};
use crate::manifest::recordings::RECORDINGS;
use crate::manifest::registries::{self, REGISTRIES_MAX, REGISTRY};
use crate::manifest::server::SERVER;
use crate::manifest::skills::{self, SKILLS};
use crate::manifest::state::STATE;
use crate::manifest::tasks::TASKS;
use crate::manifest::telemetry::{METRICS, TRACES};
use crate::manifest::trust::{self, TRUST, TRUST_MAX};
use crate::manifest::{
    AuditPolicy, ConsolePolicy, HttpPolicy, LoginsPolicy, Manifest, MetricsPolicy, PausedPolicy, RecordingsPolicy,
    Server, StatePolicy, TasksPolicy, TracesPolicy,
};
use crate::manifest::{discovery, wall};
use crate::read::callers::{CALLER, RULES_MAX};
use crate::read::component::COMPONENT;
use crate::read::{Problems, Section, callers, component, enclosure, limits};
use crate::table::table;

/// The longest manifest, in bytes: a thousand components with a kilobyte each.
pub const MANIFEST_BYTES_MAX: usize = 1 << 20;

/// The most components in one manifest: the sandbox keeps code for each, and a client's model reads
/// all their tools.
pub const COMPONENTS_MAX: usize = 1_000;

/// Problems that are reported at once; one more says how many are left out. Nobody fixes more in
/// one go.
pub const DIAGNOSTICS_MAX: usize = 200;

/// The longest text, in bytes, for which all syntax errors are reported: for a longer one only the
/// first, since the parser records every error before they can be counted.
const RECOVERY_BYTES_MAX: usize = 64 << 10;

/// The only version of the manifest's format.
const VERSION: i128 = 1;

table! {
    /// The components that are served as tools, and their rights. Relative paths are relative to
    /// this file; sizes and durations are texts with a unit.
    pub(crate) ROOT "" {
        /// The version of this format.
        "version" required: UpTo(1), {"const": 1, "examples": [1]};
        /// The server's name and texts for clients, and the bounds of a connection and of the
        /// process.
        "server": Table(&SERVER), {};
        /// The server over HTTP: with `serve --http`.
        "http": Table(&HTTP), {};
        /// The address at which Prometheus reads the server's figures.
        "metrics": Table(&METRICS), {};
        /// The address of the operators' page, where they look and decide.
        "console": Table(&CONSOLE), {};
        /// The collector of traces by OTLP, and the part of the calls that is traced.
        "traces": Table(&TRACES), {};
        /// Alerts on repeated failure or denial, and where they go.
        "alerts": Table(&ALERTS), {};
        /// The server that keeps what several replicas share: rates, approvals, state of tools.
        "state": Table(&STATE), {};
        /// The number, the size and the life of tasks.
        "tasks": Table(&TASKS), {};
        /// Scripts that call tools: the tool `run_code`, and `describe_tools`.
        "code": Table(&SCRIPTS), {};
        /// The number and the size of runs that wait for a person between two rounds.
        "paused": Table(&PAUSED), {};
        /// Limits of components that set none.
        "defaults": Table(&DEFAULTS), {};
        /// Authorization servers at which a person logs in, by name, for secrets with
        /// `from = "oauth:NAME"`.
        "oauth": Named(&Table(&LOGIN)),
            {"propertyNames": {"pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}, "maxProperties": LOGINS_MAX};
        /// The address at which callers log in with a browser, for logins of each caller.
        "logins": Table(&LOGINS), {};
        /// The record of calls, denials and loads.
        "audit": Table(&AUDIT), {};
        /// The folder of recordings, and how many are kept there. `record` of components and tools
        /// says which calls are recorded.
        "recordings": Table(&RECORDINGS), {};
        /// Who may see and call which tools; without this table everybody all of them. `default` is
        /// for callers without a rule, who otherwise see none. `local`, the caller over stdio, sees
        /// all unless a rule is for it.
        "callers": Named(&Table(&CALLER)),
            {"propertyNames": {"pattern": "^[A-Za-z0-9_.@-]{1,64}$"}, "maxProperties": RULES_MAX};
        /// Prompts with a fixed text, by name. A component may have others.
        "prompts": Named(&Table(&PROMPT)),
            {"propertyNames": {"pattern": "^[A-Za-z0-9_-]{1,64}$"}, "maxProperties": PROMPTS_MAX};
        /// The folder of skills: instructions for agents, and their files.
        "skills": Table(&SKILLS), {};
        /// Views that clients show for results of tools, by address: `ui://NAME/PATH`.
        "apps": Named(&Table(&APP)),
            {"propertyNames": {"pattern": "^ui://[A-Za-z0-9._~/-]+$"}, "maxProperties": APPS_MAX};
        /// Registries of components that are not reached as public ones are, by their host.
        "registries": Named(&Table(&REGISTRY)), {"maxProperties": REGISTRIES_MAX};
        /// The registries of namespaces, for `toolcell add NAMESPACE:NAME@VERSION`: by namespace,
        /// the host that says where its packages are.
        "packages": Named(&Text),
            {"propertyNames": {"pattern": "^[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*$"}, "maxProperties": PACKAGES_MAX,
             "examples": [{"acme": "registry.example.com"}]};
        /// Who must have signed components of registries, by the beginning of their names, such as
        /// `ghcr.io/acme/`.
        "trust": Named(&Table(&TRUST)), {"maxProperties": TRUST_MAX};
        /// The components, by name: 1 to 64 of `a-z`, `0-9`, `_` and `-`, a letter or a digit
        /// first.
        "components": Named(&Table(&COMPONENT)),
            {"propertyNames": {"pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}, "maxProperties": COMPONENTS_MAX};
    }
    other names {
        "component" => "components", "tools" => "components", "limits" => "defaults.limits", "caller" => "callers",
        "login" => "oauth", "prompt" => "prompts", "task" => "tasks", "runs" => "paused", "alert" => "alerts", "alerting" => "alerts",
        "skill" => "skills", "app" => "apps", "scripts" => "code", "code_mode" => "code",
        "recording" => "recordings", "records" => "recordings", "views" => "apps", "ui" => "apps", "registry" => "registries", "namespaces" => "packages", "trusted" => "trust", "signers" => "trust",
    }
}

table! {
    /// Limits of components that set none.
    pub(crate) DEFAULTS "Defaults" {
        /// Limits of every call.
        "limits": Table(&LIMITS), {};
        /// Limits of loading every component.
        "load": Table(&LOAD), {};
    }
}

/// A usable manifest, and its warnings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The manifest.
    pub manifest: Manifest,
    /// Problems of [`Severity::Warning`], in the order of the file.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a manifest. The text is TOML 1.1, at most [`MANIFEST_BYTES_MAX`] long and nested at most
/// 80 deep.
///
/// # Errors
/// Every problem of the manifest at once, warnings included, in the order of the file. A text that
/// is not TOML, or has another version of the format, is not checked further.
pub fn parse(source: &Source<'_>) -> Result<Parsed, Vec<Diagnostic>> {
    let read = |root: &Section<'_>, problems: &mut Problems| {
        is_of_this_version(root, problems).then(|| read(root, source.text, problems))
    };
    match document(source.text, MANIFEST_BYTES_MAX, "manifest::too_large", "the manifest has", read)? {
        (Some(manifest), warnings) => Ok(Parsed { manifest, warnings }),
        (None, problems) => Err(problems),
    }
}

/// Reads a text of at most `bytes_max`; `named` and `code` are the words for a longer one. With
/// what was read, the warnings.
///
/// # Errors
/// Every problem at once, if one of them is an error.
pub(crate) fn document<T>(
    text: &str,
    bytes_max: usize,
    code: &'static str,
    named: &str,
    read: impl FnOnce(&Section<'_>, &mut Problems) -> T,
) -> Result<(T, Vec<Diagnostic>), Vec<Diagnostic>> {
    if text.len() > bytes_max {
        let message = format!("{named} {} bytes, at most {bytes_max} are allowed", text.len());
        return Err(vec![Diagnostic::error(code, message)]);
    }
    let table = parse_toml(text)?;
    let mut problems = Problems::default();
    let read = read(&Section::root(&table), &mut problems);
    let found = problems.into_sorted();
    if found.iter().any(|problem| problem.severity() == Severity::Error) { Err(found) } else { Ok((read, found)) }
}

fn read(root: &Section<'_>, text: &str, problems: &mut Problems) -> Manifest {
    root.check_keys(&ROOT, problems);
    let table = |key: &str, problems: &mut Problems| root.get(key).and_then(|entry| entry.section(problems));
    let section = table("server", problems);
    let server = Server::read(section.as_ref(), problems);
    wall::check_without(&server, section.as_ref(), problems);
    let http = HttpPolicy::read_from(root, problems);
    let metrics = table("metrics", problems).map(|section| MetricsPolicy::read(Some(&section), problems));
    let console = ConsolePolicy::read_from(root, http.as_ref(), problems);
    let traces = TracesPolicy::read_from(root, problems);
    let alerts = AlertsPolicy::read_from(root, problems);
    let state = StatePolicy::read_from(root, &server, problems);
    let tasks = TasksPolicy::read(table("tasks", problems).as_ref(), problems);
    let paused = PausedPolicy::read(table("paused", problems).as_ref(), problems);
    let mut defaults = component::Defaults::default();
    if let Some(section) = root.get("defaults").and_then(|entry| entry.table(&DEFAULTS, problems)) {
        defaults.limits = limits::read(&section, &defaults.limits, problems);
        defaults.load = limits::read_load(&section, &defaults.load, problems);
    }
    defaults.logins = login::read_all(root, problems);
    login::check_exchanges(root, http.as_ref(), &defaults.logins, problems);
    let audit = AuditPolicy::read(table("audit", problems).as_ref(), problems);
    let mut components = component::read_all(root, &defaults, problems);
    components.extend(component::read_code(root, &defaults, problems).map(|code| discovery::pinned(code, &server)));
    let prompts = prompts::read(root, problems);
    let skills = skills::read(root, problems);
    let apps = apps::read(root, problems);
    let packages = packages::read(root, problems);
    let registries = registries::read(root, problems);
    let trust = trust::read(root, problems);
    let callers = callers::read(root, http.as_ref(), &components, problems);
    login::check_used(root, &components, problems);
    let login_pages = LoginsPolicy::read_from(root, &defaults.logins, &components, problems);
    let recordings = RecordingsPolicy::read_from(root, &components, problems);
    if let Some((recordings, skills)) = recordings.as_ref().zip(skills.as_ref()) {
        recordings.check_skills(root, skills, problems);
    }
    let named = enclosure::ServerFiles { server: &server, audit: &audit, recordings: recordings.as_ref() };
    enclosure::check(&named, &components, problems);
    wall::check(&server, &components, problems);
    discovery::check(&server, &components, problems);
    apps::check(&apps, &components, problems);
    let component::Defaults { limits: PlacedLimits { limits: defaults, .. }, logins, .. } = defaults;
    let text = text.into();
    Manifest {
        server,
        http,
        metrics,
        console,
        traces,
        alerts,
        state,
        tasks,
        paused,
        logins,
        login_pages,
        audit,
        recordings,
        callers,
        defaults,
        text,
        prompts,
        skills,
        apps,
        registries,
        packages,
        trust,
        components,
    }
}

/// False if the text belongs to a version that this program does not know.
fn is_of_this_version(root: &Section<'_>, problems: &mut Problems) -> bool {
    let Some(entry) = root.get("version") else {
        let problem = Diagnostic::error("manifest::missing", "the manifest has no version");
        problems.add(problem.hint(format!("begin it with version = {VERSION}")));
        return true;
    };
    match entry.integer(problems) {
        Some(VERSION) | None => true,
        Some(_) => {
            problems.add(
                Diagnostic::error("manifest::version", "unknown version of the manifest's format")
                    .at(entry.span)
                    .label(format!("this program reads version {VERSION}")),
            );
            false
        }
    }
}

fn parse_toml(text: &str) -> Result<Spanned<DeTable<'_>>, Vec<Diagnostic>> {
    if text.len() > RECOVERY_BYTES_MAX {
        return DeTable::parse(text).map_err(|error| vec![syntax_problem(&error)]);
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(table);
    }
    let mut problems = Problems::default();
    errors.iter().for_each(|error| problems.add(syntax_problem(error)));
    Err(problems.into_sorted())
}

fn syntax_problem(error: &Error) -> Diagnostic {
    let message = error.message().trim().replace('\n', ", ");
    let problem = Diagnostic::error("manifest::syntax", format!("not TOML: {message}"));
    match error.span() {
        Some(span) => problem.at(span),
        None => problem,
    }
}
