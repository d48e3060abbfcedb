//! Reads `[components.NAME]` and the tools in it.

use std::sync::Arc;

use super::arguments::{self, CONDITIONS_MAX, ConditionsOf};
use super::program::{OUTPUT, TEMPLATES_MAX};
use super::scratch::FILES_MAX;
use super::{Entry, Problems, Section, limits, program, texts};
use crate::diagnostic::{Diagnostic, Span};
use crate::grants::Grants;
use crate::limits::{LIMITS, LOAD, LoadLimits, PlacedLimits};
use crate::manifest::LoginPolicy;
use crate::manifest::approval::{ApprovalPolicy, REMEMBER};
use crate::manifest::code::{CODE, SCRIPTS};
use crate::manifest::http_tool::{self, HTTP_TOOL};
use crate::manifest::instance::{INSTANCE_IDLE, INSTANCE_LIFETIME, PREWARM};
use crate::manifest::resources::RESOURCE;
use crate::manifest::{Approval, ComponentPolicy, DESCRIPTIONS_MAX, EXPORTS_MAX, RESOURCES_MAX, SourceRef, ToolPolicy};
use crate::manifest::{
    InstancePolicy, RecordRule, TaskRule, approval, apps, code, discovery, hints, instance, recordings, resources,
    tasks, typed, wall, wasi,
};
use crate::names::{self, NameError};
use crate::parse::COMPONENTS_MAX;
use crate::reference::Reference;
use crate::rights;
use crate::table::{Keys, table};
use crate::words::Word as _;

table! {
    /// One component: a WebAssembly file whose tools are served.
    pub(crate) COMPONENT "Component" {
        /// The component's file, relative to the manifest, or its place in a registry with the
        /// digest that `toolcell add` and `toolcell update` write.
        "source": Text, {"minLength": 1, "examples": [
            "components/weather.wasm",
            "oci://ghcr.io/acme/weather:1.2.0@sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
        ]};
        /// One request over HTTP, which is the component's only tool, in place of `source`. Its
        /// rule stands in `network`.
        "http_tool": Table(&HTTP_TOOL), {};
        /// Stands before the name of each of the component's tools.
        "prefix": Text, {"pattern": "^[A-Za-z0-9_-]{1,63}$", "examples": ["wx_"]};
        /// The `.wit` file or folder, relative to the manifest, whose comments describe the
        /// component's functions and types.
        "wit": Text, {"minLength": 1, "examples": ["wit/"]};
        /// True turns off the warning of each function that cannot be a tool, such as one with a
        /// resource.
        "skip_unsupported": Flag, {"default": false, "examples": [true]};
        /// The functions that are tools, and their names. Each key is a function as in WIT, with
        /// its interface: `acme:weather/days.get-forecast`, or `get-forecast` of the world; with a
        /// version (`acme:weather/days@1.0.0.get-forecast`) where there are two. By default all
        /// functions are tools.
        "exports": Named(&Text), {"minProperties": 1, "maxProperties": EXPORTS_MAX,
            "examples": [{"acme:weather/days.get-forecast": "forecast"}]};
        /// Descriptions of functions and types, by their names in WIT: `get-forecast`,
        /// `get-forecast.city` (a parameter), `place`, `place.lat` (a field, a case or a label).
        /// They win over those in `.wit` files and in the component.
        "describe": Named(&Text), {"maxProperties": DESCRIPTIONS_MAX};
        /// Limits of each call of the component's tools; they win over `defaults.limits`.
        "limits": Table(&LIMITS), {};
        /// Limits of loading the component; they win over `defaults.load`.
        "load": Table(&LOAD), {};
        /// Instances kept ready for each tool in use; 0 for none. Given up after ten seconds
        /// without a call. Not with `instance = "per-caller"`.
        "prewarm": Limit(&PREWARM), {"examples": [0, 16]};
        /// The sandbox processes of its calls: `"own"`, or a name that components share, along with
        /// their rights there. By default components without grants share processes, and each other
        /// one has its own.
        "wall": Text, {"pattern": "^[a-z0-9][a-z0-9_-]{0,63}$", "examples": ["own", "reports"]};
        /// True lets the component import WASI 0.3 besides 0.2. The same grants and limits hold;
        /// its code in the engine is newer, and less tried.
        "wasi": Words(&["0.3"]), {"examples": ["0.3"]};
        /// Calls of a tool that share an instance: none, or those of one caller, one after the
        /// other.
        "instance": Words(&["per-call", "per-caller"]), {"default": "per-call", "examples": ["per-caller"]};
        /// The longest wait of a caller's instance for its next call. Only with `instance =
        /// "per-caller"`.
        "instance_idle": Limit(&INSTANCE_IDLE), {"examples": ["30s"]};
        /// The greatest age of a caller's instance. Only with `instance = "per-caller"`.
        "instance_lifetime": Limit(&INSTANCE_LIFETIME), {"examples": ["10m"]};
    }
    and Keys::These(rights::args::KEYS);
    and Keys::These(rights::stdin::KEYS);
    and Keys::OfRights(|right| right.keys);
    {
        /// Calls of its tools that a person confirms through the client: none, those that may
        /// destroy something as far as the tool says, or each.
        "approval": Words(ApprovalPolicy::WORDS),
            {"default": "never", "examples": ["destructive"]};
        /// Calls of its tools that become tasks, for clients that can take one: those that run
        /// longer than this time (at most an hour), `"always"` each, `"never"` none.
        "task": Text, {"default": "never", "examples": ["2s", "always"]};
        /// Calls of its tools that go into the folder of `[recordings]`: `"errors"` those that
        /// fail, `"2.5%"` a random part, `"all"` each, `"never"` none. With `"errors"` each call is
        /// recorded, and takes the time for that. Not with `instance = "per-caller"`.
        "record": Text, {"default": "never", "examples": ["errors", "1%", "all"]};
        /// True lists the component's tools with `discovery = "search"` in `[server]`.
        "listed": Flag, {"default": false, "examples": [true]};
        /// The time for which a confirmation holds for further calls of the same tool by the same
        /// caller. By default for one call. Only with `approval`.
        "remember": Optional(&REMEMBER), {"examples": ["10m"]};
    }
    and Keys::These(rights::ungranted::KEYS);
    {
        /// Resources that clients may list and read, by address or template: `{name}` stands for
        /// one or more characters but `/`, `?` and `#`, `{+name}` for any.
        "resources": Named(&Table(&RESOURCE)),
            {"propertyNames": {"pattern": "^[A-Za-z][A-Za-z0-9+.-]*:"}, "maxProperties": RESOURCES_MAX};
        /// Single tools, by the tool's own name, without prefix.
        "tools": Named(&Table(&TOOL)), {"propertyNames": {"pattern": "^[A-Za-z0-9_-]{1,64}$"}};
    }
    other names {
        "path" => "source", "file" => "source", "wasm" => "source", "fs" => "filesystem", "files" => "filesystem",
        "http" => "network", "environment" => "env", "arguments" => "args", "tool" => "tools",
        "skip-unsupported" => "skip_unsupported", "functions" => "exports", "descriptions" => "describe", "docs" => "describe",
        "kv" => "keyvalue", "key_value" => "keyvalue", "secret" => "secrets", "resource" => "resources", "recording" => "record", "records" => "record",
    }
}

table! {
    /// One tool of a component.
    pub(crate) TOOL "Tool" {
        /// A name for people; wins over the component's.
        "title": Text, {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "examples": ["Query JSON"]};
        /// A description for models; wins over the component's. A program's tools
        /// need one.
        "description": Text, {"examples": ["Runs a jq filter over a JSON text."]};
        /// True: the tool only reads (`readOnlyHint`). Wins over the component's. Decides which
        /// calls `approval = "destructive"` asks about.
        "read_only": Flag, {"examples": [true]};
        /// The tool may destroy something (`destructiveHint`), as it may without a hint. Wins over
        /// the component's.
        "destructive": Flag, {"examples": [false]};
        /// A second call with the same arguments changes nothing more (`idempotentHint`). Wins over
        /// the component's.
        "idempotent": Flag, {"examples": [true]};
        /// The tool deals with an open world, such as the web (`openWorldHint`). Wins over the
        /// component's.
        "open_world": Flag, {"examples": [false]};
        /// The arguments of a program's tool: each with a description (`city = "where"`), a type
        /// and a description (`days = "integer: how many"`), or a JSON Schema; `"days?"` is
        /// optional. With `type = "object"` the table is a JSON Schema.
        "input": Any, {"examples": [{"filter": "a jq filter", "compact?": "boolean: print one line"}]};
        /// The program's arguments, each a template of one argument: `{name}`, `{name?}` (left out
        /// without a value), `{name?TEXT}` (TEXT where there is a value other than false),
        /// `{name...}` (one for each item of a list), `{name!}` (may begin with `-`), `{*}` (all
        /// arguments as JSON), `{{` and `}}` for braces. A list within the list is given together
        /// or not at all.
        "args": List(&Either(&[(Text, ""), (List(&Text), "")])),
            {"maxItems": TEMPLATES_MAX, "examples": [["{compact?-c}", ["--indent", "{indent?}"], "--", "{filter}"]]};
        /// The program's standard input, a template; the component's `stdin` by default.
        "stdin": Text, {"examples": ["{text}"]};
    }
    and Keys::These(rights::env::KEYS_OF_TOOL);
    {
        /// Files for the program, by their paths directly in scratch space of the call, each a
        /// template.
        "files": Named(&Text),
            {"maxProperties": FILES_MAX, "propertyNames": {"pattern": "^/"}, "examples": [{"/in/table.csv": "{table}"}]};
        /// The answer: standard output as text or as one JSON value, or bytes.
        "output": Either(&[(Words(&["text", "json"]), ""), (Table(&OUTPUT), "")]),
            {"default": "text", "examples": ["json", {"file": "/out/chart.png", "type": "image/png"}]};
        /// The JSON Schema of what the program prints. Only with `output = "json"`.
        "output_schema": Any,
            {"examples": [{"type": "object", "properties": {"words": {"type": "integer"}}}]};
        /// The exit codes that do not count as a failure.
        "exit_codes": List(&UpTo(255)),
            {"minItems": 1, "maxItems": 256, "default": [0], "examples": [[0, 1]]};
        /// Limits of each call of this tool; they win over the component's.
        "limits": Table(&LIMITS), {};
    }
    and Keys::OfRights(|right| right.keys_of_tool);
    {
        /// Calls of this tool that a person confirms; wins over the component's.
        "approval": Words(ApprovalPolicy::WORDS), {"examples": ["always"]};
        /// Calls of this tool that become tasks; wins over the component's.
        "task": Text, {"examples": ["2s", "always"]};
        /// Calls of this tool that are recorded; wins over the component's.
        "record": Text, {"examples": ["never", "errors"]};
        /// True lists this tool where clients search for tools. Wins over the component's.
        "listed": Flag, {"examples": [true]};
        /// The view that clients show for its results: an address of `[apps]`. Its results then
        /// need a text.
        "app": Text, {"pattern": "^ui://", "examples": ["ui://chart/view"]};
        /// Who calls it in clients with MCP Apps: the model, views, or both, which is the default.
        "visibility": List(&Words(&["model", "app"])), {"minItems": 1, "maxItems": 2, "examples": [["app"]]};
        /// The time for which a confirmation holds for further calls of this tool; wins over the
        /// component's.
        "remember": Within(&REMEMBER), {"examples": ["10m"]};
        /// Conditions on every call, by argument: a pattern (`*` for any characters but `/`, `**`
        /// for any), several, or a JSON Schema. A named argument must be there, unless its table
        /// has `optional = true`.
        "arguments": Any, {"maxProperties": CONDITIONS_MAX,
            "examples": [{"repo": "sandbox-*", "amount": {"maximum": 1500, "optional": true}}]};
    }
    and Keys::These(rights::ungranted::KEYS_OF_TOOL);
    other names {
        "fs" => "filesystem", "input_files" => "files", "environment" => "env",
        "argv" => "args", "command" => "args", "input_schema" => "input", "inputSchema" => "input",
        "parameters" => "input", "outputSchema" => "output_schema", "schema" => "output_schema",
        "exit_code" => "exit_codes", "stdout" => "output", "readOnlyHint" => "read_only", "readonly" => "read_only",
        "destructiveHint" => "destructive", "idempotentHint" => "idempotent", "openWorldHint" => "open_world",
    }
}

/// Limits of components that set none, and the logins that secrets may name.
#[derive(Default)]
pub(crate) struct Defaults {
    pub(crate) limits: PlacedLimits,
    pub(crate) load: LoadLimits,
    pub(crate) logins: Vec<Arc<LoginPolicy>>,
}

/// The part of its component that a tool inherits.
struct Inherited<'c> {
    limits: &'c PlacedLimits,
    grants: &'c Arc<Grants>,
    approval: Approval,
    task: TaskRule,
    record: RecordRule,
    instance: InstancePolicy,
}

/// All components, in the order of the file. Those with problems are reported and left out.
pub(crate) fn read_all(root: &Section<'_>, defaults: &Defaults, problems: &mut Problems) -> Vec<ComponentPolicy> {
    let Some(entry) = root.get("components") else {
        problems.add(none());
        return Vec::new();
    };
    let Some(section) = entry.section(problems) else { return Vec::new() };
    if section.len() == 0 {
        problems.add(none().at(entry.key_span.clone()));
    }
    if section.len() > COMPONENTS_MAX {
        let message = format!("{} components, at most {COMPONENTS_MAX} are allowed", section.len());
        problems.add(entry.key_error("components::too_many", message));
        return Vec::new();
    }
    section.entries().into_iter().filter_map(|entry| read(&entry, defaults, problems)).collect()
}

/// The component that `[code]` stands for, if there is that section.
pub(crate) fn read_code(root: &Section<'_>, defaults: &Defaults, problems: &mut Problems) -> Option<ComponentPolicy> {
    let entry = root.get(CODE)?;
    let section = entry.table(&SCRIPTS, problems)?;
    let source = match section.get("engine") {
        Some(engine) => {
            let text = engine.string(problems)?;
            if let Some(problem) = path_problem("engine", text, "\"components/toolcell-code.wasm\"") {
                return problems.refuse(problem.at(engine.span));
            }
            Some((SourceRef::File(text.to_owned()), engine.span))
        }
        None => Some((SourceRef::Shipped, entry.key_span.clone())),
    };
    let limits = code::limits(&defaults.limits);
    of_section(&entry, &section, source, Inheritance { limits: &limits, defaults }, problems)
}

fn none() -> Diagnostic {
    Diagnostic::warning("components::none", "no components: there will be no tools")
        .hint("add [components.NAME] with source = \"FILE.wasm\"")
}

fn read(entry: &Entry<'_>, defaults: &Defaults, problems: &mut Problems) -> Option<ComponentPolicy> {
    if let Err(error) = names::check_component(entry.key) {
        problems.add(
            name_problem("components::name", "component name", entry, &entry.key_span, error)
                .hint("component names are 1 to 64 of a-z, 0-9, _ and -, and start with a letter or a digit"),
        );
    }
    if entry.key == CODE {
        let message = format!("the name {CODE:?} is that of [{CODE}]");
        problems.add(entry.key_error("components::name", message).hint("give the component another name"));
    }
    let section = entry.table(&COMPONENT, problems)?;
    let source = read_source(entry, &section, problems);
    of_section(entry, &section, source, Inheritance { limits: &defaults.limits, defaults }, problems)
}

/// What a component's section inherits.
struct Inheritance<'d> {
    limits: &'d PlacedLimits,
    defaults: &'d Defaults,
}

/// The component of a section whose keys are known.
fn of_section(
    entry: &Entry<'_>,
    section: &Section<'_>,
    source: Option<(SourceRef, Span)>,
    inheritance: Inheritance<'_>,
    problems: &mut Problems,
) -> Option<ComponentPolicy> {
    let Inheritance { limits, defaults } = inheritance;
    let prefix = section.get("prefix").and_then(|entry| read_prefix(&entry, problems));
    let typed = typed::read(section, problems);
    let limits = limits::read(section, limits, problems);
    let load = limits::read_load(section, &defaults.load, problems);
    let (instance, prewarm) = instance::read(section, problems);
    let (wall, wall_span) = wall::read(section, problems);
    let wasi = wasi::read(section, problems);
    let grants = rights::read(entry.key, section, &defaults.logins, problems);
    let approval = approval::read(section, Approval::default(), problems);
    let task = tasks::read(section, TaskRule::default(), problems);
    let record = recordings::read(section, RecordRule::default(), instance, problems);
    let listed = discovery::listed(section, problems);
    let resources = resources::read(section, &grants, problems);
    let inherited = Inherited { limits: &limits, grants: &grants, approval, task, record, instance };
    let tools = read_tools(entry.key, section, &inherited, problems);
    let (source, source_span) = source?;
    let name = entry.key.to_owned();
    let name_span = entry.key_span.clone();
    Some(ComponentPolicy {
        name,
        name_span,
        source,
        source_span,
        prefix,
        typed,
        limits: limits.limits,
        limit_places: limits.places,
        load,
        instance,
        prewarm,
        wall,
        wall_span,
        wasi,
        grants,
        approval,
        listed,
        task,
        record,
        resources,
        tools,
    })
}

fn read_source(component: &Entry<'_>, section: &Section<'_>, problems: &mut Problems) -> Option<(SourceRef, Span)> {
    if let Some(tool) = section.get("http_tool") {
        if section.get("source").is_some() {
            let message = format!("component {:?} has a source and an http_tool", component.key);
            return problems.refuse(tool.key_error("components::source", message).hint("leave one of the two out"));
        }
        let span = tool.key_span.clone();
        return http_tool::read(&tool, problems).map(|tool| (SourceRef::HttpTool(Arc::new(tool)), span));
    }
    let Some(entry) = section.get("source") else {
        let message = format!("component {:?} has no source", component.key);
        return problems.refuse(
            component
                .key_error("manifest::missing", message)
                .hint("add source = \"FILE.wasm\", a path relative to the manifest"),
        );
    };
    let text = entry.string(problems)?;
    match source_of(component.key, text) {
        Ok(source) => Some((source, entry.span)),
        Err(problem) => problems.refuse(problem.at(entry.span)),
    }
}

/// The source that a component's text names.
fn source_of(component: &str, text: &str) -> Result<SourceRef, Diagnostic> {
    if !text.starts_with("oci://") {
        let problem = path_problem("source", text, "\"components/weather.wasm\"");
        return problem.map_or_else(|| Ok(SourceRef::File(text.to_owned())), Err);
    }
    let wrong = |message: String| Diagnostic::error("components::source", message);
    let reference = Reference::parse(text).map_err(|error| wrong(format!("source: {error}")))?;
    if reference.digest().is_some() {
        return Ok(SourceRef::Registry(reference));
    }
    let problem = wrong("source has no digest, so what will run is not pinned".to_owned());
    let hint = format!("remove the entry; `toolcell add {text} --name {component}` adds it again with its digest");
    Err(problem.hint(hint))
}

/// The problem of a text that cannot be the relative path of a file.
pub(crate) fn path_problem(key: &str, text: &str, example: &str) -> Option<Diagnostic> {
    let error = |message: &str| Diagnostic::error("components::source", format!("{key} must {message}"));
    let relative = format!("write a path relative to the manifest, such as {example}");
    let drive = text.as_bytes().get(1) == Some(&b':');
    if text.contains("://") {
        Some(error("be a file, not an address").hint(relative))
    } else if text.is_empty() || text.ends_with(['/', '\\']) {
        Some(error("name a file").hint(relative))
    } else if text.starts_with(['/', '\\']) || drive {
        Some(error("be relative to the manifest, not an absolute path").hint(relative))
    } else if text.chars().any(char::is_control) {
        Some(error("not contain control characters"))
    } else {
        None
    }
}

fn read_prefix(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let prefix = entry.string(problems)?;
    if let Err(error) = names::check_prefix(prefix) {
        let hint = match error {
            NameError::Empty => "leave the key out for tools without a prefix",
            _ => "a prefix is 1 to 63 of A-Z, a-z, 0-9, _ and -",
        };
        let message = format!("prefix {error}");
        return problems.refuse(entry.error("components::prefix", message).hint(hint));
    }
    Some(prefix.to_owned())
}

fn read_tools(
    component: &str,
    section: &Section<'_>,
    inherited: &Inherited<'_>,
    problems: &mut Problems,
) -> Vec<ToolPolicy> {
    let section = section.get("tools").and_then(|entry| entry.section(problems));
    let entries = section.map(|section| section.entries()).unwrap_or_default();
    entries.into_iter().filter_map(|entry| read_tool(component, &entry, inherited, problems)).collect()
}

fn read_tool(
    component: &str,
    entry: &Entry<'_>,
    inherited: &Inherited<'_>,
    problems: &mut Problems,
) -> Option<ToolPolicy> {
    if let Err(error) = names::check_tool(entry.key) {
        problems.add(
            name_problem("tools::name", "tool name", entry, &entry.key_span, error)
                .hint("tool names are 1 to 64 of A-Z, a-z, 0-9, _ and -"),
        );
    }
    let section = entry.table(&TOOL, problems)?;
    let limits = limits::read(&section, inherited.limits, problems);
    let grants = rights::narrow(entry.key, &section, inherited.grants, problems);
    let title = section.get("title").and_then(|entry| texts::line(&entry, "tools::text", problems));
    let description = section.get("description").and_then(|entry| texts::lines(&entry, "tools::text", problems));
    let hints = hints::read(&section, problems);
    let program = program::read(entry, &section, &grants, problems).map(Arc::new);
    let approval = approval::read(&section, inherited.approval, problems);
    let task = tasks::read(&section, inherited.task, problems);
    let record = recordings::read(&section, inherited.record, inherited.instance, problems);
    let listed = discovery::listed(&section, problems);
    let view = apps::read_tool(&section, problems);
    let arguments = section.get("arguments").and_then(|arguments| {
        let component_key = names::toml_key(component);
        let section = format!("components.{component_key}.tools.{}.arguments", names::toml_key(entry.key));
        arguments::read(&arguments, ConditionsOf { section, component, tool: entry.key }, problems)
    });
    let name = entry.key.to_owned();
    let name_span = entry.key_span.clone();
    Some(ToolPolicy {
        name,
        name_span,
        title,
        description,
        hints,
        program,
        limits: limits.limits,
        limit_places: limits.places,
        grants,
        approval,
        listed,
        task,
        record,
        view,
        arguments: arguments.map(Arc::new),
    })
}

fn name_problem(code: &'static str, what: &str, entry: &Entry<'_>, span: &Span, error: NameError) -> Diagnostic {
    Diagnostic::error(code, format!("{what} {:?} {error}", entry.key)).at(span.clone())
}
