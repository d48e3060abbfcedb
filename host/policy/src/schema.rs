//! The manifest's JSON Schema, for editors: what each key is, with an example. Must not hold: reading. The types here
//! are never filled; a test proves that they and the reader know the same keys.
#![allow(dead_code, reason = "the types exist for their schema alone")]

mod callers;
mod http;
mod oauth;
mod reach;
mod telemetry;
mod tool;

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// The JSON Schema (draft 2020-12) of `toolcell.toml`.
#[must_use]
pub fn json_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(as_toml_has_it));
    SchemaGenerator::new(settings).into_root_schema_for::<RawManifest>().to_value()
}

use callers::RawCaller;
use http::RawHttp;
use reach::{RawEnvVar, RawKeyValue, RawMount, RawNetwork, RawSecret};
use telemetry::{RawMetrics, RawTraces};
use tool::RawTool;

/// TOML has no null, and JSON Schema no names for Rust's integers.
fn as_toml_has_it(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    object.shift_remove("format");
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(choices)) = object.get_mut("anyOf") else { return };
    choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
    if let [Value::Object(only)] = choices.as_slice() {
        let only = only.clone();
        object.shift_remove("anyOf");
        object.extend(only);
    }
}

/// Which components are served as tools, and what each may use. Relative paths are relative to this file; sizes and
/// durations are texts with a unit.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Manifest", title = "toolcell manifest")]
struct RawManifest {
    /// The version of this format.
    #[schemars(extend("const" = 1, "examples" = [1]))]
    version: u32,
    /// What the server says of itself, and the bounds of a connection and of the process.
    server: Option<RawServer>,
    /// How the server is reached over HTTP: with `serve --http`.
    http: Option<RawHttp>,
    /// Where the server's figures are read, as Prometheus reads them.
    metrics: Option<RawMetrics>,
    /// Where traces of calls are sent by OTLP, and of which.
    traces: Option<RawTraces>,
    /// What holds for components that say nothing of their own.
    defaults: Option<RawDefaults>,
    /// How calls, denials and loads are recorded.
    audit: Option<RawAudit>,
    /// Who may see and call which tools; everybody all of them without this table. `default` is for whoever no other rule is
    /// for: without it they see none. The caller over stdio, `local`, sees all where no rule is for it.
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z0-9_.@-]{1,64}$"}, "maxProperties" = 200))]
    callers: Option<BTreeMap<String, RawCaller>>,
    /// The components, by name: 1 to 64 of `a-z`, `0-9`, `_` and `-`, a letter or a digit first.
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}, "maxProperties" = 1000))]
    components: Option<BTreeMap<String, RawComponent>>,
}

/// What the server says of itself, and the bounds of a connection and of the process.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Server")]
struct RawServer {
    /// The server's name, for clients.
    #[schemars(length(min = 1, max = 128), extend("default" = "toolcell", "examples" = ["acme-tools"]))]
    name: Option<String>,
    /// A name for people.
    #[schemars(length(min = 1, max = 128), extend("examples" = ["Tools of Acme"]))]
    title: Option<String>,
    /// What the model should know before it uses the tools.
    #[schemars(extend("examples" = ["Ask for the weather before planning a trip."]))]
    instructions: Option<String>,
    /// Tools on one page of a listing.
    #[schemars(range(min = 1, max = 1000), extend("default" = 500, "examples" = [50]))]
    page_size: Option<u64>,
    /// The longest line of input, as a size: `4KiB` to `256MiB`.
    #[schemars(extend("default" = "16MiB", "examples" = ["4MiB"]))]
    line_max: Option<RawSize>,
    /// Calls of one connection that run at once.
    #[schemars(range(min = 1, max = 10_000), extend("default" = 64, "examples" = [16]))]
    in_flight_max: Option<u64>,
    /// Calls of one connection that are read and wait to run; then reading stops until one is done.
    #[schemars(range(max = 100_000), extend("default" = 1024, "examples" = [128]))]
    pending_max: Option<u64>,
    /// Calls of all tools that run at once in the process; each takes address space for its memories.
    #[schemars(range(min = 1, max = 4096), extend("default" = 256, "examples" = [32]))]
    calls: Option<u64>,
    /// WebAssembly stack of each call: `64KiB` to `1MiB`. A tool that recurses deeper is ended.
    #[schemars(extend("default" = "512KiB", "examples" = ["1MiB"]))]
    stack: Option<RawSize>,
    /// Memory that all instances kept ready (`prewarm`) have together: `1MiB` to `64GiB`.
    #[schemars(extend("default" = "64MiB", "examples" = ["256MiB"]))]
    prewarm_memory: Option<RawSize>,
    /// The name servers that look names up for tools, with port 53 where none is named; the system's by default.
    #[schemars(length(max = 8), extend("examples" = [["192.0.2.53", "127.0.0.1:5300"]]))]
    dns: Option<Vec<String>>,
    /// The folder of what tools keep between calls, relative to this file. Made when it is first needed.
    #[schemars(length(min = 1), extend("default" = ".toolcell", "examples" = ["/var/lib/toolcell"]))]
    state: Option<String>,
    /// Whether calls end whose tool may reach less after the manifest changed; else they run on as they began.
    #[schemars(extend("default" = true, "examples" = [false]))]
    narrow_cancels: Option<bool>,
    /// Where the key is that seals what clients of 2026-07-28 hand back between two rounds of a call; at least 32 bytes.
    /// Made at each start by default: several processes that answer the same clients need the same.
    #[schemars(length(min = 1), extend("examples" = ["env:TOOLCELL_STATE_KEY", "file:state.key"]))]
    state_key: Option<String>,
}

/// How calls, denials and loads are recorded.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Audit")]
struct RawAudit {
    /// The file, relative to this one; `serve --audit FILE` wins. No audit without either.
    #[schemars(length(min = 1), extend("examples" = ["audit.jsonl"]))]
    file: Option<String>,
    /// Where one file ends and the next begins: `64KiB` to `64GiB`.
    #[schemars(extend("default" = "64MiB", "examples" = ["1GiB"]))]
    rotate: Option<RawSize>,
    /// Full files that are kept beside the one being written.
    #[schemars(range(max = 1000), extend("default" = 8, "examples" = [30]))]
    keep: Option<u64>,
    /// When a record is on the disk: when the operating system writes it, or before the call goes on.
    #[schemars(extend("enum" = ["never", "always"], "default" = "never", "examples" = ["always"]))]
    fsync: Option<String>,
    /// Whether a call that cannot be recorded is refused.
    #[schemars(extend("default" = true, "examples" = [false]))]
    required: Option<bool>,
    /// What is recorded of a call's arguments: their digest, or their text besides, clipped.
    #[schemars(extend("enum" = ["digest", "values"], "default" = "digest", "examples" = ["values"]))]
    arguments: Option<String>,
}

/// What holds for components that say nothing of their own.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Defaults")]
struct RawDefaults {
    /// Limits of every call.
    limits: Option<RawLimits>,
    /// Limits of loading every component.
    load: Option<RawLoad>,
}

/// How the resources of one address are read: by a call of a tool.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Resource")]
struct RawResource {
    /// The tool that reads them, by its own name, without prefix. What it embeds, or else its texts, pictures and sounds, is
    /// what they hold.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{1,64}$"), extend("examples" = ["notebook_read"]))]
    tool: String,
    /// The argument of the tool that is given the address.
    #[schemars(length(min = 1, max = 128), extend("default" = "uri", "examples" = ["note"]))]
    argument: Option<String>,
    /// A name for programs; the last part of the address by default.
    #[schemars(length(min = 1, max = 128), extend("examples" = ["index"]))]
    name: Option<String>,
    /// A name for people.
    #[schemars(length(min = 1, max = 128), extend("examples" = ["Index of the notes"]))]
    title: Option<String>,
    /// What it is.
    #[schemars(extend("examples" = ["All notes, with a line on each."]))]
    description: Option<String>,
    /// What kind of data it is.
    #[schemars(length(max = 127), extend("examples" = ["text/markdown"]))]
    mime_type: Option<String>,
}

/// One component: a WebAssembly file whose tools are served.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Component")]
struct RawComponent {
    /// The component's file, relative to the manifest.
    #[schemars(length(min = 1), extend("examples" = ["components/weather.wasm"]))]
    source: String,
    /// Stands before the name of each of the component's tools.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{1,63}$"), extend("examples" = ["wx_"]))]
    prefix: Option<String>,
    /// The `.wit` file or folder, relative to the manifest, whose comments describe the component's functions and types.
    #[schemars(length(min = 1), extend("examples" = ["wit/"]))]
    wit: Option<String>,
    /// Whether functions that cannot be tools (those with resources, streams or futures) are left out. By default they
    /// are an error.
    #[schemars(extend("default" = false, "examples" = [true]))]
    skip_unsupported: Option<bool>,
    /// What functions and types are, by their names as in WIT: `get-forecast`, `get-forecast.city` (a parameter),
    /// `place`, `place.lat` (a field, a case or a label). These texts win over those in `.wit` files and in the component.
    #[schemars(extend("maxProperties" = 4096))]
    describe: Option<BTreeMap<String, String>>,
    /// Limits of each call of the component's tools; they win over `defaults.limits`.
    limits: Option<RawLimits>,
    /// Limits of loading the component; they win over `defaults.load`.
    load: Option<RawLoad>,
    /// Instances kept ready for each tool in use, so that a call does not wait for instantiation; 0 for none. A tool's
    /// are given up after ten seconds without a call. Not with `instance = "per-caller"`.
    #[schemars(range(max = 64), extend("default" = 4, "examples" = [0, 16]))]
    prewarm: Option<u64>,
    /// Which calls of a tool share an instance: none, or those of one caller, one after the other.
    #[schemars(extend("enum" = ["per-call", "per-caller"], "default" = "per-call", "examples" = ["per-caller"]))]
    instance: Option<String>,
    /// How long a caller's instance waits for the next call before it is given up: `1s` to `24h`. Only with
    /// `instance = "per-caller"`.
    #[schemars(extend("default" = "5m", "examples" = ["30s"]))]
    instance_idle: Option<RawDuration>,
    /// How old a caller's instance becomes at most: `1s` to `24h`. Only with `instance = "per-caller"`.
    #[schemars(extend("default" = "1h", "examples" = ["10m"]))]
    instance_lifetime: Option<RawDuration>,
    /// Command-line arguments; none by default.
    #[schemars(length(max = 256), extend("examples" = [["--fast"]]))]
    args: Option<Vec<String>>,
    /// Standard input; closed by default.
    #[schemars(extend("examples" = ["text"]))]
    stdin: Option<String>,
    /// Folders and files, by their path in the guest's tree. The longest path that leads to a file is its mount.
    #[schemars(extend("propertyNames" = {"pattern": "^/"}, "maxProperties" = 64))]
    filesystem: Option<BTreeMap<String, RawMount>>,
    /// Hosts and addresses.
    network: Option<RawNetwork>,
    /// Environment variables, by name.
    #[schemars(extend("propertyNames" = {"pattern": "^[^=\\s]+$"}, "maxProperties" = 256))]
    env: Option<BTreeMap<String, RawEnvVar>>,
    /// Settings (`wasi:config`), by name.
    #[schemars(extend("propertyNames" = {"pattern": "^[^=\\s]+$"}, "maxProperties" = 256))]
    config: Option<BTreeMap<String, String>>,
    /// State between calls (`wasi:keyvalue`); the table alone grants it.
    keyvalue: Option<RawKeyValue>,
    /// Secrets, by name.
    #[schemars(extend("propertyNames" = {"pattern": "^[^=\\s]+$"}, "maxProperties" = 64))]
    secrets: Option<BTreeMap<String, RawSecret>>,
    /// Which calls of its tools a person confirms through the client before they run: none, those that may destroy
    /// something as far as the tool says, or each.
    #[schemars(extend("enum" = ["never", "destructive", "always"], "default" = "never", "examples" = ["destructive"]))]
    approval: Option<String>,
    /// How long a confirmation holds for further calls of the same tool by the same caller: `1s` to `12h`; for one call
    /// where the key is missing. Only with `approval`.
    #[schemars(extend("examples" = ["10m"]))]
    remember: Option<RawDuration>,
    /// Resources that clients may list and read, by address, or by a template of addresses: `{name}` stands for one or more
    /// characters but `/`, `?` and `#`, `{+name}` for any.
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z][A-Za-z0-9+.-]*:"}, "maxProperties" = 64))]
    resources: Option<BTreeMap<String, RawResource>>,
    /// Single tools, by the tool's own name, without prefix.
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z0-9_-]{1,64}$"}))]
    tools: Option<BTreeMap<String, RawTool>>,
}

/// Limits of a call. The most specific wins: built-in default, `defaults.limits`, the component's, the tool's.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Limits")]
struct RawLimits {
    /// Computing budget, about one unit per instruction.
    #[schemars(range(min = 1, max = 1_000_000_000_000_000_u64), extend("default" = 10_000_000_000_u64, "examples" = [500_000_000]))]
    fuel: Option<u64>,
    /// Wall clock from start to end, waits included: `1ms` to `1h`.
    #[schemars(extend("default" = "30s", "examples" = ["5s"]))]
    deadline: Option<RawDuration>,
    /// All memories and tables together: `64KiB` to `4GiB`. How many there are is fixed: at most 64 instances,
    /// 64 memories and 128 tables in a call.
    #[schemars(extend("default" = "64MiB", "examples" = ["128MiB"]))]
    memory: Option<RawSize>,
    /// The result as it goes to the client: `1B` to `64MiB`.
    #[schemars(extend("default" = "1MiB", "examples" = ["256KiB"]))]
    output: Option<RawSize>,
    /// Pieces of content in the result.
    #[schemars(range(min = 1, max = 10_000), extend("default" = 256, "examples" = [16]))]
    output_items: Option<u64>,
    /// Standard output, standard error and log lines together: `0B` to `16MiB`. What exceeds it is dropped.
    #[schemars(extend("default" = "64KiB", "examples" = ["1MiB"]))]
    log: Option<RawSize>,
    /// Strings and lists handed to the host, the result included: `4KiB` to `1GiB`.
    #[schemars(extend("default" = "16MiB", "examples" = ["32MiB"]))]
    host_data: Option<RawSize>,
    /// Open resources (streams, timers, files, pollables).
    #[schemars(range(min = 16, max = 100_000), extend("default" = 1000, "examples" = [100]))]
    handles: Option<u64>,
    /// Random bytes of one request: `32B` to `64MiB`.
    #[schemars(extend("default" = "64KiB", "examples" = ["4KiB"]))]
    random: Option<RawSize>,
    /// The arguments as JSON text: `2B` to `64MiB`.
    #[schemars(extend("default" = "1MiB", "examples" = ["64KiB"]))]
    arguments: Option<RawSize>,
    /// Calls of one tool that run at once.
    #[schemars(range(min = 1, max = 1000), extend("default" = 16, "examples" = [4]))]
    concurrency: Option<u64>,
    /// Calls of one tool that wait for a place; more are answered "busy".
    #[schemars(range(max = 10_000), extend("default" = 64, "examples" = [0]))]
    queue: Option<u64>,
    /// How long a call waits for a place before it is answered "busy": `1ms` to `10m`.
    #[schemars(extend("default" = "5s", "examples" = ["500ms"]))]
    queue_wait: Option<RawDuration>,
    /// Calls of one tool by one caller: `1/h` to `1000000/s`. All of them may come at once; then the allowance comes
    /// back evenly.
    #[schemars(extend("default" = "600/min", "examples" = ["10/s", "5/h"]))]
    rate: Option<RawRate>,
    /// Progress reports of one call that reach the caller: `1/h` to `1000000/s`. What exceeds it is dropped silently,
    /// the last report included.
    #[schemars(extend("default" = "20/s", "examples" = ["5/s"]))]
    progress: Option<RawRate>,
    /// HTTP requests.
    #[schemars(range(max = 10_000), extend("default" = 64, "examples" = [4]))]
    http_requests: Option<u64>,
    /// HTTP requests that run at once; more wait.
    #[schemars(range(min = 1, max = 256), extend("default" = 8, "examples" = [1]))]
    http_concurrency: Option<u64>,
    /// Header fields and bodies of all HTTP requests together: `0B` to `4GiB`.
    #[schemars(extend("default" = "8MiB", "examples" = ["64KiB"]))]
    egress: Option<RawSize>,
    /// Header fields and bodies of all HTTP responses together: `0B` to `16GiB`.
    #[schemars(extend("default" = "32MiB", "examples" = ["1MiB"]))]
    ingress: Option<RawSize>,
    /// Looking up a host, connecting to it and TLS: `1ms` to `10m`.
    #[schemars(extend("default" = "5s", "examples" = ["2s"]))]
    http_connect: Option<RawDuration>,
    /// From the request sent to the response's first byte: `1ms` to `1h`.
    #[schemars(extend("default" = "15s", "examples" = ["5s"]))]
    http_first_byte: Option<RawDuration>,
    /// One HTTP request in all: `1ms` to `1h`.
    #[schemars(extend("default" = "30s", "examples" = ["10s"]))]
    http_time: Option<RawDuration>,
    /// Header fields of one request or response.
    #[schemars(range(min = 1, max = 1000), extend("default" = 100, "examples" = [50]))]
    http_headers: Option<u64>,
    /// Names and values of the header fields of one request or response: `1KiB` to `1MiB`.
    #[schemars(extend("default" = "32KiB", "examples" = ["8KiB"]))]
    http_header_bytes: Option<RawSize>,
    /// TCP and UDP sockets, those already closed included.
    #[schemars(range(max = 1000), extend("default" = 16, "examples" = [1]))]
    sockets: Option<u64>,
    /// Name look-ups.
    #[schemars(range(max = 10_000), extend("default" = 64, "examples" = [1]))]
    lookups: Option<u64>,
    /// Questions to the person, the model or the client behind the caller.
    #[schemars(range(max = 64), extend("default" = 8, "examples" = [0, 2]))]
    asks: Option<u64>,
    /// One question: `256B` to `1MiB`.
    #[schemars(extend("default" = "16KiB", "examples" = ["4KiB"]))]
    ask_bytes: Option<RawSize>,
    /// One answer as JSON: `256B` to `1MiB`.
    #[schemars(extend("default" = "64KiB", "examples" = ["4KiB"]))]
    answer_bytes: Option<RawSize>,
    /// How long a call waits for answers, all its questions together: `1s` to `24h`. The deadline stands still meanwhile.
    #[schemars(extend("default" = "5m", "examples" = ["30s"]))]
    ask_wait: Option<RawDuration>,
}

/// Limits of loading a component. The most specific wins: built-in default, `defaults.load`, the component's. A component
/// that exceeds one is an error of the manifest, and nothing is served. Listing its tools counts as a call under its
/// `limits`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Load")]
struct RawLoad {
    /// The component's file: `1KiB` to `128MiB`.
    #[schemars(extend("default" = "128MiB", "examples" = ["8MiB"]))]
    component_size: Option<RawSize>,
    /// Wall clock of making native code of it: `1ms` to `1h`. A compiler cannot be stopped: its work is thrown away once
    /// it is done.
    #[schemars(extend("default" = "2m", "examples" = ["30s"]))]
    compile_time: Option<RawDuration>,
    /// Tools it may list.
    #[schemars(range(min = 1, max = 10_000), extend("default" = 1000, "examples" = [50]))]
    tools: Option<u64>,
    /// All that it says of one tool (name, title, description, schemas, icons and meta): `64B` to `4MiB`.
    #[schemars(extend("default" = "256KiB", "examples" = ["16KiB"]))]
    definition: Option<RawSize>,
}

/// A whole number of bytes with its unit: `64MiB`, `512KiB`, `10 MB`.
#[derive(JsonSchema)]
#[schemars(transparent, rename = "Size")]
struct RawSize(#[schemars(regex(pattern = r"^[0-9]+(_[0-9]+)* *(B|KiB|MiB|GiB|kB|KB|MB|GB)$"))] String);

/// Whole numbers with their units, largest first: `1m30s`, `250ms`.
#[derive(JsonSchema)]
#[schemars(transparent, rename = "Duration")]
struct RawDuration(
    #[schemars(regex(
        pattern = r"^(?=[0-9])([0-9]+(_[0-9]+)* *h *)?([0-9]+(_[0-9]+)* *m *)?([0-9]+(_[0-9]+)* *s *)?([0-9]+(_[0-9]+)* *ms)?$"
    ))]
    String,
);

/// A whole number in a second, a minute or an hour: `10/s`, `600/min`, `5/h`.
#[derive(JsonSchema)]
#[schemars(transparent, rename = "Rate")]
struct RawRate(#[schemars(regex(pattern = r"^[0-9]+(_[0-9]+)* */ *(s|min|h)$"))] String);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use std::collections::BTreeSet;

    use super::*;
    use crate::grants::{KeyValue, Mount};
    use crate::limits::{Limit, LoadLimit, Spec, Unit};
    use crate::manifest::{AuditPolicy, Callers, HttpPolicy, InstancePolicy, IssuerPolicy, Server};
    use crate::read::keys;

    /// The schema of one of the raw types, from the definitions or the root.
    fn definition(name: &str) -> Value {
        let schema = json_schema();
        if name.is_empty() { schema } else { schema["$defs"][name].clone() }
    }

    #[test]
    fn schema_and_reader_know_the_same_keys() {
        for (name, keys) in [
            ("", &keys::ROOT),
            ("Server", &keys::SERVER),
            ("Defaults", &keys::DEFAULTS),
            ("Component", &keys::COMPONENT),
            ("Tool", &keys::TOOL),
            ("Media", &keys::OUTPUT),
            ("Limits", &keys::LIMITS),
            ("Load", &keys::LOAD),
            ("Audit", &keys::AUDIT),
            ("Mount", &keys::MOUNT),
            ("ToolMount", &keys::MOUNT_OF_TOOL),
            ("Network", &keys::NETWORK),
            ("ToolNetwork", &keys::NETWORK_OF_TOOL),
            ("KeyValue", &keys::KEYVALUE),
            ("Secret", &keys::SECRET),
            ("Http", &keys::HTTP),
            ("Metrics", &keys::METRICS),
            ("Traces", &keys::TRACES),
            ("Caller", &keys::CALLER),
            ("Oauth", &keys::OAUTH),
            ("Issuer", &keys::ISSUER),
        ] {
            let definition = definition(name);
            let in_schema: BTreeSet<&str> =
                definition["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            let in_reader: BTreeSet<&str> = keys.now.iter().copied().collect();
            assert_eq!(in_schema, in_reader, "{name}");
            assert_eq!(definition["additionalProperties"], Value::Bool(false), "{name}");
            for later in keys.later {
                assert!(!in_reader.contains(later), "{later} is both read and not supported yet");
            }
        }
    }

    #[test]
    fn schema_and_limits_agree_on_defaults_and_bounds() {
        assert_eq!(keys::LIMITS.now, Limit::ALL.map(|limit| limit.spec().key));
        assert_eq!(keys::LOAD.now, LoadLimit::ALL.map(|limit| limit.spec().key));
        let specs: [(&str, Vec<&Spec>); 10] = [
            ("Limits", Limit::ALL.iter().map(|limit| limit.spec()).collect()),
            ("Load", LoadLimit::ALL.iter().map(|limit| limit.spec()).collect()),
            ("Server", Server::LIMITS.to_vec()),
            ("Component", InstancePolicy::LIMITS.to_vec()),
            ("Audit", AuditPolicy::LIMITS.to_vec()),
            ("KeyValue", KeyValue::LIMITS.to_vec()),
            ("Mount", Mount::LIMITS.to_vec()),
            ("Http", HttpPolicy::LIMITS.to_vec()),
            ("Caller", Callers::LIMITS.to_vec()),
            ("Issuer", IssuerPolicy::LIMITS.to_vec()),
        ];
        for (name, specs) in specs {
            let definition = definition(name);
            for spec in specs {
                agrees(&definition["properties"][spec.key], spec);
            }
        }
    }

    fn agrees(property: &Value, spec: &Spec) {
        if spec.unit == Unit::Count {
            assert_eq!(property["default"].as_u64(), Some(spec.default), "{}", spec.key);
            assert_eq!(property["minimum"].as_u64(), Some(spec.min), "{}", spec.key);
            assert_eq!(property["maximum"].as_u64(), Some(spec.max), "{}", spec.key);
            return;
        }
        let description = property["description"].as_str().unwrap();
        assert_eq!(property["default"].as_str(), Some(spec.show(spec.default).as_str()), "{}", spec.key);
        let bounds = format!("`{}` to `{}`", spec.show(spec.min), spec.show(spec.max));
        assert!(description.contains(&bounds), "{}: {description:?} lacks {bounds:?}", spec.key);
    }

    #[test]
    fn every_key_is_described_and_every_plain_one_has_an_example() {
        for name in [
            "",
            "Server",
            "Component",
            "Tool",
            "Media",
            "Limits",
            "Load",
            "Audit",
            "Mount",
            "Network",
            "KeyValue",
            "Secret",
            "Http",
        ] {
            for (key, property) in definition(name)["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{name} {key}");
                let is_table = property.get("$ref").is_some() || property["type"] == "object";
                assert!(is_table || property["examples"].is_array(), "{name} {key}");
            }
        }
    }

    #[test]
    fn the_schema_names_nothing_that_toml_or_editors_do_not_know() {
        let text = json_schema().to_string();
        for foreign in ["null", "uint64", "\"Raw"] {
            assert!(!text.contains(foreign), "{foreign}");
        }
    }
}
