//! The part of the manifest's JSON Schema that says what one tool is. Must not hold: reading.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::reach::{RawToolMount, RawToolNetwork};
use super::{RawDuration, RawLimits};

/// One tool of a component.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Tool")]
pub(super) struct RawTool {
    /// A name for people; wins over the component's.
    #[schemars(length(min = 1, max = 128), extend("examples" = ["Query JSON"]))]
    title: Option<String>,
    /// What the tool does, for models; wins over what the component says. A program's tools need one.
    #[schemars(extend("examples" = ["Runs a jq filter over a JSON text."]))]
    description: Option<String>,
    /// The tool only reads; wins over what the component says. Says what clients are told (`readOnlyHint`) and which calls
    /// `approval = "destructive"` asks about.
    #[schemars(extend("examples" = [true]))]
    read_only: Option<bool>,
    /// The tool may destroy something (`destructiveHint`); where nobody says otherwise, a tool may. Wins over the component's.
    #[schemars(extend("examples" = [false]))]
    destructive: Option<bool>,
    /// A second call with the same arguments changes nothing more (`idempotentHint`). Wins over the component's.
    #[schemars(extend("examples" = [true]))]
    idempotent: Option<bool>,
    /// The tool deals with an open world, such as the web (`openWorldHint`). Wins over the component's.
    #[schemars(extend("examples" = [false]))]
    open_world: Option<bool>,
    /// The arguments of a program's tool: each with a description (`city = "where"`), a type and a description
    /// (`days = "integer: how many"`), or a JSON Schema; `"days?"` for one that a call may leave out. With
    /// `type = "object"` the table is a JSON Schema as it is.
    #[schemars(extend("examples" = [{"filter": "a jq filter", "compact?": "boolean: print one line"}]))]
    input: Option<Map<String, Value>>,
    /// The program's arguments, each a template that gives one argument: `{name}`, `{name?}` (left out without a value),
    /// `{name?TEXT}` (TEXT where there is a value other than false), `{name...}` (one argument for each item of a list),
    /// `{name!}` (may begin with `-`), `{*}` (all arguments as JSON), `{{` and `}}` for braces. A list within the list is
    /// given together or not at all.
    #[schemars(length(max = 256), extend("examples" = [["{compact?-c}", ["--indent", "{indent?}"], "--", "{filter}"]]))]
    args: Option<Vec<RawArg>>,
    /// The program's standard input, a template; the component's `stdin` by default.
    #[schemars(extend("examples" = ["{text}"]))]
    stdin: Option<String>,
    /// A table: variables that each call of a program sets, by name, each a template, beside the component's. A list: the
    /// component's environment variables that this tool has.
    #[schemars(extend("examples" = [{"LANG": "{lang}"}, ["UNITS"]]))]
    env: Option<RawToolEnv>,
    /// Files that are there before a program runs, by their paths directly in scratch space of the call, each a template.
    #[schemars(extend("maxProperties" = 32, "propertyNames" = {"pattern": "^/"}, "examples" = [{"/in/table.csv": "{table}"}]))]
    files: Option<BTreeMap<String, String>>,
    /// What of a program's run is the answer: standard output as text or as one JSON value, or bytes.
    #[schemars(extend("default" = "text", "examples" = ["json", {"file": "/out/chart.png", "type": "image/png"}]))]
    output: Option<RawOutput>,
    /// The JSON Schema of what the program prints. Only with `output = "json"`.
    #[schemars(extend("examples" = [{"type": "object", "properties": {"words": {"type": "integer"}}}]))]
    output_schema: Option<Map<String, Value>>,
    /// The exit codes that are no failure.
    #[schemars(length(min = 1, max = 256), extend("default" = [0], "examples" = [[0, 1]]))]
    exit_codes: Option<Vec<RawExitCode>>,
    /// Limits of each call of this tool; they win over the component's.
    limits: Option<RawLimits>,
    /// The component's mounts that this tool has, each as it is there or with less; `{}` for none.
    #[schemars(extend("propertyNames" = {"pattern": "^/"}))]
    filesystem: Option<BTreeMap<String, RawToolMount>>,
    /// The rules that this tool has, each within one of the component's; `{}` for none.
    network: Option<RawToolNetwork>,
    /// The component's settings that this tool has.
    #[schemars(extend("examples" = [["theme"]]))]
    config: Option<Vec<String>>,
    /// False takes the component's state away.
    #[schemars(extend("examples" = [false]))]
    keyvalue: Option<bool>,
    /// The component's secrets that this tool's requests carry.
    #[schemars(extend("examples" = [["API_KEY"]]))]
    secrets: Option<Vec<String>>,
    /// Which calls of this tool a person confirms; wins over the component's.
    #[schemars(extend("enum" = ["never", "destructive", "always"], "examples" = ["always"]))]
    approval: Option<String>,
    /// How long a confirmation holds for further calls of this tool; wins over the component's.
    #[schemars(extend("examples" = ["10m"]))]
    remember: Option<RawDuration>,
}

// One template, or some that are given together or not at all.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
enum RawArg {
    One(String),
    Together(Vec<String>),
}

// Variables that a call sets, or the names of those that the tool keeps.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
enum RawToolEnv {
    Set(BTreeMap<String, String>),
    Kept(Vec<String>),
}

// What of a run is the answer.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
enum RawOutput {
    Stdout(RawStdout),
    Media(RawMedia),
}

// How standard output is read.
#[derive(JsonSchema)]
#[schemars(inline, rename_all = "lowercase")]
enum RawStdout {
    Text,
    Json,
}

/// Bytes that are the answer: an image, a sound, or any other kind as a resource.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Media")]
struct RawMedia {
    /// The file that holds them after the run, in the guest's tree; standard output by default.
    #[schemars(regex(pattern = "^/"), extend("examples" = ["/out/chart.png"]))]
    file: Option<String>,
    /// The media type of the bytes.
    #[schemars(extend("examples" = ["image/png"]))]
    r#type: String,
}

// How a program ended.
#[derive(JsonSchema)]
#[schemars(transparent, inline)]
struct RawExitCode(#[schemars(range(max = 255))] u64);
