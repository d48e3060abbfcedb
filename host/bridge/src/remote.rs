//! From the list of another MCP server to tools, and what they reach.
use std::collections::BTreeSet;

use serde_json::Value;
use toolcell_bridge_lines::{
    BridgeServer, Era, FORMAT, Head, Hints, MirroredParameter, RemoteCall, RemoteServer, Selection,
};

use crate::definitions::{Definitions, ToolCall, ToolDefinition};
use crate::embed::extracted;
use crate::grants::{BridgeGrants, SecretGrant};
use crate::limits::{
    DEFINITIONS_BYTES_MAX, MIRRORED_LEVELS_MAX, MIRRORED_MAX, OPERATIONS_DEFAULT, OPERATIONS_MAX,
    REMOTE_ICON_BYTES_MAX, REMOTE_ICONS_MAX, REMOTE_NAME_BYTES_MAX, REMOTE_TEXT_BYTES_MAX, TITLE_BYTES_MAX,
};
use crate::names::{Names, clipped, of_remote, prefix_of, shown, tool_chars_max, without_prefix};
use crate::parameters::is_header;
use crate::served::served;
use crate::server::{Base, Origin};
use crate::{Bridge, BridgeError, LeftOut};

/// Names that an error lists: some lines of a terminal.
const NAMES_SHOWN_MAX: usize = 20;

/// What a server says of itself and its tools.
#[derive(Clone, Debug)]
pub struct RemoteList {
    /// Its name and version, for people.
    pub title: String,
    /// How it is spoken to.
    pub era: Era,
    /// True if it names sessions.
    pub names_sessions: bool,
    /// Its tools, as `tools/list` has them.
    pub tools: Vec<Value>,
}

/// What a person asks for, next to the list.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// The address of the server.
    pub address: String,
    /// The tools that a person wants.
    pub selection: Selection,
    /// Secrets that the host adds to requests.
    pub secrets: Vec<SecretGrant>,
    /// True if the server may ask the person in the middle of a call.
    pub passes_elicitation: bool,
}

/// The address of a server's endpoint in its usual form.
///
/// # Errors
/// It is not one, or has a query, in which keys would be embedded.
pub fn endpoint(address: &str) -> Result<String, BridgeError> {
    Endpoint::of(address).map(|endpoint| endpoint.url)
}

/// The server of a bridge's component; `None` if it is not a bridge to another MCP server.
#[must_use]
pub fn remote_server(component: &[u8]) -> Option<RemoteServer> {
    let lines = extracted(component)?;
    let first = lines.split(|byte| *byte == b'\n').next()?;
    match serde_json::from_slice(first).ok()? {
        Head { format: FORMAT, server: BridgeServer::Mcp(server) } => Some(server),
        Head { .. } => None,
    }
}

impl Bridge {
    /// The tools of another server. `check` says why the host cannot serve one, as the end of a
    /// sentence: then its patterns and the schema of its answers are left out, or all of it.
    ///
    /// # Errors
    /// The address is not that of a server, the list is larger than a bound, or no tool is left.
    pub fn of_remote(
        list: RemoteList,
        options: RemoteOptions,
        check: impl Fn(&ToolDefinition) -> Result<(), String>,
    ) -> Result<Self, BridgeError> {
        let endpoint = Endpoint::of(&options.address)?;
        let mut left_out = Vec::new();
        let mut notes = Vec::new();
        let mut tools = Vec::new();
        for tool in selected(&list, &options.selection, &mut left_out)? {
            let operation = clipped(&tool.operation(), REMOTE_NAME_BYTES_MAX);
            match served(tool, &check) {
                Ok((tool, open)) => {
                    notes.extend(open.iter().map(|note| format!("{}: {note}", tool.name)));
                    tools.push(tool);
                }
                Err(reason) => left_out.push(LeftOut { operation, reason }),
            }
        }
        if tools.is_empty() {
            let first = left_out.first().map(|first| format!("{} {}", first.operation, first.reason));
            return Err(BridgeError::new("the server has no tool that can be taken", first.unwrap_or_default()));
        }
        let methods = if list.names_sessions { "DELETE,POST" } else { "POST" };
        let mut secrets = options.secrets;
        secrets.iter_mut().for_each(|secret| secret.target.clone_from(&endpoint.url));
        let http = vec![format!("{methods} {}", endpoint.url)];
        let passes_elicitation = options.passes_elicitation;
        let grants = BridgeGrants { http, secrets, passes_elicitation, ..BridgeGrants::default() };
        if endpoint.origin.scheme == "http" {
            notes.push(format!("requests to {} are not encrypted", endpoint.origin));
        }
        let server = RemoteServer {
            url: endpoint.url,
            era: list.era,
            names_sessions: list.names_sessions,
            selection: options.selection,
        };
        let definitions = Definitions { server: BridgeServer::Mcp(server), tools };
        if definitions.bytes().len() > DEFINITIONS_BYTES_MAX {
            let problem = format!("the definitions of its tools have more than {DEFINITIONS_BYTES_MAX} bytes");
            return Err(BridgeError::new(problem, "choose fewer with --only TOOL"));
        }
        let title = clipped(&list.title, TITLE_BYTES_MAX);
        Ok(Self { title, origin: endpoint.origin, definitions, grants, left_out, notes })
    }
}

/// The address of a server's endpoint.
struct Endpoint {
    origin: Origin,
    url: String,
}

impl Endpoint {
    fn of(address: &str) -> Result<Self, BridgeError> {
        let hint = "name the address of its endpoint, such as https://mcp.example.com/mcp";
        let base = Base::parse(address).map_err(|problem| BridgeError::new(problem, hint))?;
        // A slash at the end may lead elsewhere, so it stays.
        let path = if address.ends_with('/') { format!("{}/", base.path) } else { base.path };
        let path = if path.is_empty() { "/".to_owned() } else { path };
        Ok(Self { url: format!("{}{path}", base.origin), origin: base.origin })
    }
}

/// The tools that a person wants, and those that nobody can have.
fn selected(
    list: &RemoteList,
    selection: &Selection,
    left_out: &mut Vec<LeftOut>,
) -> Result<Vec<ToolDefinition>, BridgeError> {
    let name_of = |written: &Value| written.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut written: Vec<(String, &Value)> = list.tools.iter().map(|written| (name_of(written), written)).collect();
    // Another order of the same tools is the same list.
    written.sort_by(|one, other| one.0.cmp(&other.0));
    let mut names = Names::default();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let mut tools = Vec::new();
    for (name, written) in &written {
        let name = name.as_str();
        let operation = clipped(name, REMOTE_NAME_BYTES_MAX);
        let leave_out = |reason: &str| left_out.push(LeftOut { operation, reason: reason.to_owned() });
        if name.is_empty() || name.len() > REMOTE_NAME_BYTES_MAX {
            leave_out("has no proper name");
            continue;
        }
        let own = names.unique(&of_remote(name), tool_chars_max(&selection.prefix));
        if !known.insert(name) {
            leave_out("is in the list twice");
            continue;
        }
        if !selection.only.is_empty() && !selection.only.iter().any(|word| is_named(word, name, &own, selection)) {
            continue;
        }
        match tool(written, name, own) {
            Ok(tool) => tools.push(tool),
            Err(reason) => leave_out(reason),
        }
    }
    check_selection(selection, &known, &tools)?;
    Ok(tools)
}

/// True if this word of `--only` names the tool: by its name there, its own, or that of clients.
fn is_named(word: &str, name: &str, own: &str, selection: &Selection) -> bool {
    word == name || without_prefix(word, &selection.prefix).contains(&own)
}

fn check_selection(selection: &Selection, known: &BTreeSet<&str>, tools: &[ToolDefinition]) -> Result<(), BridgeError> {
    let is_tool = |word: &str| {
        let words = without_prefix(word, &selection.prefix);
        tools.iter().any(|tool| words.contains(&tool.name.as_str()))
    };
    let is_known = |word: &str| known.contains(word) || is_tool(word);
    if let Some(word) = selection.only.iter().find(|word| !is_known(word)) {
        let names: Vec<String> = known.iter().take(NAMES_SHOWN_MAX).map(|name| shown(name)).collect();
        let rest = if known.len() > names.len() { ", …" } else { "" };
        let problem = format!("the server has no tool {}", shown(word));
        return Err(BridgeError::new(problem, format!("its tools are {}{rest}", names.join(", "))));
    }
    let count = tools.len();
    let most = if selection.all { OPERATIONS_MAX } else { OPERATIONS_DEFAULT };
    if count > most {
        let problem = format!("the server has {count} tools, and {most} are taken at most");
        let all = if count > OPERATIONS_MAX { "" } else { "; --all takes them all" };
        return Err(BridgeError::new(problem, format!("choose some with --only TOOL{all}")));
    }
    Ok(())
}

/// One tool of the list. `Err` says why it cannot be taken, as the end of a sentence.
fn tool(written: &Value, name: &str, own: String) -> Result<ToolDefinition, &'static str> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    if written.get("execution").and_then(|execution| text(execution, "taskSupport")).as_deref() == Some("required") {
        return Err("runs only as a task");
    }
    let visibility = written.get("_meta").and_then(|meta| meta.get("ui")?.get("visibility")?.as_array());
    if visibility.is_some_and(|who| !who.is_empty() && who.iter().all(|who| who.as_str() == Some("app"))) {
        return Err("is for views alone");
    }
    let input =
        written.get("inputSchema").filter(|schema| schema.is_object()).ok_or("has no schema of its arguments")?;
    let hints = written.get("annotations").unwrap_or(&Value::Null);
    let hint = |key: &str| hints.get(key).and_then(Value::as_bool);
    let title = text(written, "title").or_else(|| text(hints, "title")).filter(|title| !title.is_empty());
    Ok(ToolDefinition {
        name: own,
        title: title.map(|title| prefix_of(&title, TITLE_BYTES_MAX).to_owned()),
        description: prefix_of(&text(written, "description").unwrap_or_default(), REMOTE_TEXT_BYTES_MAX).to_owned(),
        input: input.clone(),
        output: written.get("outputSchema").filter(|schema| schema.is_object()).cloned(),
        hints: Hints {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        },
        icons: icons(written),
        call: ToolCall::Remote(RemoteCall { remote: name.to_owned(), mirrored: mirrored(input) }),
    })
}

/// Icons that the host takes.
fn icons(written: &Value) -> Option<Value> {
    let is_taken = |icon: &&Value| {
        let source = icon.get("src").and_then(Value::as_str).unwrap_or_default();
        source.len() <= REMOTE_ICON_BYTES_MAX && (source.starts_with("https://") || source.starts_with("data:"))
    };
    let icons = written.get("icons")?.as_array()?.iter().filter(is_taken).take(REMOTE_ICONS_MAX);
    let icons: Vec<Value> = icons.cloned().collect();
    (!icons.is_empty()).then_some(Value::Array(icons))
}

/// Arguments that headers repeat. The host checks the declarations as it does those of its own.
fn mirrored(input: &Value) -> Vec<MirroredParameter> {
    let mut found = Vec::new();
    search(input, &mut Vec::new(), &mut found);
    found
}

fn search(schema: &Value, path: &mut Vec<String>, found: &mut Vec<MirroredParameter>) {
    if path.len() >= MIRRORED_LEVELS_MAX {
        return;
    }
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        path.push(name.clone());
        let header = property.get("x-mcp-header").and_then(Value::as_str);
        if let Some(header) = header
            .filter(|header| found.len() < MIRRORED_MAX && header.len() <= REMOTE_NAME_BYTES_MAX && is_header(header))
        {
            found.push(MirroredParameter { header: header.to_owned(), path: path.clone() });
        }
        search(property, path, found);
        path.pop();
    }
}
