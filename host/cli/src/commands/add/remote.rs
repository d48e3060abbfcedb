//! `toolcell add --mcp URL`: from the list of another MCP server to the component of its tools,
//! with all its texts shown.
use std::path::Path;

use serde_json::Value;
use toolcell_bridge::lines::{Elicitation, Era, Selection};
use toolcell_bridge::{Bridge, BridgeGrants, RemoteOptions, SecretGrant, ToolDefinition, endpoint};
use toolcell_mcp::sanitize;
use toolcell_policy::edit::{ComponentEntry, ManifestEdit, ManifestEntry};
use toolcell_policy::{AdvisedFault, Manifest};
use toolcell_server::ManifestFile;
use toolcell_server::machine::Machine;
use toolcell_server::remotes::{SecretFields, read};

use super::bridge::{AddedBridge, BridgeKind, component, name_of_host, prefix_of};
use super::source::{FoundComponent, ServedFrom};
use crate::args::AddArgs;
use crate::commands::registries::manifest_of;
use crate::commands::remotes;
use crate::exit::Failure;
use crate::naming::component_name;

/// The name of the component while its secrets are read.
const UNNAMED: &str = "added";

/// Characters of a text within a schema that are shown; the rest is counted.
const TEXT_CHARS_SHOWN: usize = 2_000;

/// Objects inside each other whose texts are shown: as deep as the host takes schemas.
const LEVELS_MAX: usize = 32;

/// Asks the server for its list, and makes its component.
pub fn find(args: &AddArgs, text: &str, folder: &Path, machine: &Machine) -> Result<FoundComponent, Failure> {
    let address = endpoint(&args.source)
        .map_err(|error| Failure::usage(format!("{}: {}", args.source, error.problem), error.hint))?;
    let address = address.as_str();
    let secrets = secrets(args)?;
    let manifest = ManifestFile::unwritten(&args.manifest.manifest, with_secrets(text, address, &secrets)?);
    let passes_elicitation = args.server.elicitation;
    let elicitation = Elicitation { form: passes_elicitation, page: passes_elicitation };
    let read = machine.runtime.block_on(async {
        let fields = fields(&manifest, &secrets, address, folder).await?;
        read(address, &fields, elicitation).await.map_err(Failure::from)
    })?;
    // A server's own name may have the form of a path: `mcp-servers/everything`.
    let last = read.name.rsplit('/').next().unwrap_or_default().replace('.', "_");
    let own = component_name(Path::new(&last));
    let name = args.name.clone().or_else(|| name_of_host(address)).unwrap_or(own);
    let prefix = args.prefix.clone().unwrap_or_else(|| prefix_of(&name));
    let selection = Selection { only: args.bridge.only.clone(), all: args.bridge.all, prefix: prefix.clone() };
    let era = read.list.era;
    let options = RemoteOptions { address: address.to_owned(), selection, secrets, passes_elicitation };
    let bridge = remotes::bridge(read.list, options)
        .map_err(|error| Failure::at_fault(format!("{address}: {}", error.problem), error.hint))?;
    let private = ManifestEntry::private_of_right(&format!("POST {}/", bridge.origin));
    let bytes = component(&bridge, args.bridge.bridge.as_deref())?;
    let found = FoundComponent::of_file(address.to_owned(), bytes, name, ServedFrom::Copy);
    let kind = BridgeKind::Server(era);
    Ok(FoundComponent { bridge: Some(AddedBridge { bridge, prefix, private, kind }), ..found })
}

/// The secrets of `--header`.
fn secrets(args: &AddArgs) -> Result<Vec<SecretGrant>, Failure> {
    let component = args.name.clone().or_else(|| name_of_host(&args.source));
    let component = component.as_deref().unwrap_or("mcp");
    let hint = "write --header Authorization='Bearer env:TOKEN', or file:PATH, keyring:SERVICE/ACCOUNT, oauth:LOGIN";
    let secret = |header: &String| {
        SecretGrant::of_header(component, header, &args.source)
            .ok_or_else(|| Failure::usage("a header needs a name and a secret", hint))
    };
    args.server.headers.iter().map(secret).collect()
}

/// A manifest with a component that has these secrets.
fn with_secrets(text: &str, address: &str, secrets: &[SecretGrant]) -> Result<String, Failure> {
    if secrets.is_empty() {
        return Ok(String::new());
    }
    let wrong = |problem: String| Failure::at_fault(problem, "`toolcell check` shows what is wrong with the manifest");
    let mut edit = ManifestEdit::of(text).map_err(wrong)?;
    edit.insert_component(UNNAMED, &ComponentEntry::new("added.wasm")).map_err(wrong)?;
    let grants =
        BridgeGrants { http: vec![format!("POST {address}")], secrets: secrets.to_vec(), ..BridgeGrants::default() };
    edit.merge(&grants.tables(UNNAMED)).map_err(wrong)?;
    for entry in ManifestEntry::private_of_right(&format!("POST {address}")) {
        edit.add(UNNAMED, &entry).map_err(wrong)?;
    }
    Ok(edit.text())
}

/// The header fields of these secrets.
async fn fields(
    file: &ManifestFile,
    secrets: &[SecretGrant],
    address: &str,
    folder: &Path,
) -> Result<SecretFields, Failure> {
    if secrets.is_empty() {
        return Ok(SecretFields::default());
    }
    let manifest: Manifest = manifest_of(file)?;
    let component = manifest.component(UNNAMED).ok_or_else(|| AdvisedFault::unadvised("its secrets are not read"))?;
    let state = folder.join(manifest.server().state());
    Ok(SecretFields::of(component, address, folder, &state).await?)
}

/// The tools with everything that a model would read of them. Hidden characters are shown as their
/// numbers.
pub fn tools_text(bridge: &Bridge, prefix: &str, era: Era) -> String {
    let spoken = match era {
        Era::Modern => "modern requests",
        Era::Session => "a session for each call",
    };
    let mut shown = ShownTexts::default();
    shown.line("  server  ", &format!("{} with {spoken}", bridge.title));
    for rule in &bridge.grants.http {
        shown.line("  reaches ", rule);
    }
    if bridge.grants.passes_elicitation {
        shown.line("  passes  ", "on what the server asks the person in the middle of a call");
    }
    for tool in &bridge.definitions.tools {
        shown.tool(tool, prefix);
    }
    if shown.hidden > 0 {
        let note =
            format!("characters that nobody sees, in {} texts: shown as \\u…, and taken out for models", shown.hidden);
        shown.line("  note    ", &note);
    }
    shown.text
}

/// Texts of a server, made visible.
#[derive(Default)]
struct ShownTexts {
    text: String,
    /// Texts with hidden characters.
    hidden: usize,
}

impl ShownTexts {
    fn line(&mut self, before: &str, text: &str) {
        self.hidden += usize::from(text.chars().any(sanitize::is_hidden));
        let text = sanitize::escaped(text);
        let lines = text.lines().flat_map(|line| line.split('\t')).map(str::trim_end);
        let mut before = before;
        let blank = " ".repeat(before.len());
        for line in lines.filter(|line| !line.is_empty()) {
            self.text.push_str(&format!("{before} {line}\n"));
            before = &blank;
        }
    }

    fn tool(&mut self, tool: &ToolDefinition, prefix: &str) {
        let says = match (tool.hints.read_only, tool.hints.destructive) {
            (Some(true), _) => "says that it only reads",
            (_, Some(false)) => "says that it destroys nothing",
            _ => "may change anything",
        };
        let remote = tool.operation();
        let remote = if remote == tool.name { String::new() } else { format!(", there {remote}") };
        self.line("  tool    ", &format!("{prefix}{}: {says}{remote}", tool.name));
        if let Some(title) = &tool.title {
            self.line("             ", title);
        }
        self.line("             ", &tool.description);
        for schema in [Some(&tool.input), tool.output.as_ref()].into_iter().flatten() {
            self.schema(schema, "", 0);
        }
    }

    /// Every text of a schema, with its place.
    fn schema(&mut self, schema: &Value, place: &str, level: usize) {
        let within = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") };
        match schema {
            Value::String(text) if !place.is_empty() => {
                let cut: String = text.chars().take(TEXT_CHARS_SHOWN).collect();
                let left = text.len() - cut.len();
                let left = if left > 0 { format!(" … and {left} bytes more") } else { String::new() };
                self.line("               ", &format!("{place}: {cut}{left}"));
            }
            _ if level >= LEVELS_MAX => {}
            Value::Object(members) => {
                for (name, member) in members.iter().filter(|(name, member)| is_shown(name, member)) {
                    self.schema(member, &within(name), level + 1);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.schema(item, place, level + 1)),
            _ => {}
        }
    }
}

/// False for keywords whose texts are not the author's words. A property may have their names: then
/// its value is an object.
fn is_shown(name: &str, member: &Value) -> bool {
    member.is_object() || !["type", "format", "required", "$schema", "$id", "$ref", "$anchor"].contains(&name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_text_of_a_tool_is_shown_with_what_nobody_sees() {
        let mut shown = ShownTexts::default();
        shown.line("  a ", "one\u{202e}\n\n\u{1b}[31mtwo\u{200b}");
        shown.schema(
            &json!({"type": "object", "required": ["x"], "properties": {
                "type": {"type": "string", "description": "A kind.", "enum": ["p", "q"]},
            }}),
            "",
            0,
        );
        let lines: Vec<&str> = shown.text.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "a  one\\u202e",
                "\\u001b[31mtwo\\u200b",
                "properties/type/description: A kind.",
                "properties/type/enum: p",
                "properties/type/enum: q",
            ]
        );
        assert_eq!(shown.hidden, 1);
    }
}
