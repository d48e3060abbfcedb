//! `toolcell add openapi.json`: from a document to the component of its tools, and what the
//! manifest grants it.
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcell_bridge::{Bridge, BridgeOptions, DOCUMENT_BYTES_MAX, SecretPlace, embedded, read};
use toolcell_mcp::sanitize;
use toolcell_policy::edit::{ComponentEntry, ManifestEdit, ManifestEntry};
use toolcell_sandbox::COMPONENT_BYTES_MAX;
use toolcell_server::download::download;
use toolcell_server::file::read_bounded;
use toolcell_server::machine::Machine;
use toolcell_server::shipped;

use super::source::{FoundComponent, ServedFrom};
use crate::args::AddArgs;
use crate::exit::Failure;
use crate::naming::component_name;
use crate::terminal::Progress;

/// Ends of the names of documents.
const ENDS: [&str; 3] = [".json", ".yaml", ".yml"];

/// Longest prefix made of a component's name, in characters: it leaves 40 for the tool's own name.
const PREFIX_CHARS_MAX: usize = 24;

/// The bridge's file, and that of a clone, whose program is in `target/release`.
const BRIDGE: [&str; 2] = ["toolcell-bridge.wasm", "../../guest-examples/components/bridge.wasm"];

/// A document that became a component.
pub struct AddedDocument {
    bridge: Bridge,
    prefix: String,
    /// Entries for a server that is not public.
    private: Vec<ManifestEntry>,
}

/// True if the source is a document.
pub fn is_document(args: &AddArgs) -> bool {
    let source = args.source.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let is_registry = args.source.starts_with("oci://");
    args.document.openapi
        || (!is_registry && ENDS.iter().any(|end| source.ends_with(end)) && !Path::new(&args.source).is_dir())
}

/// Checks that options for documents are given with one.
pub fn check_options(args: &AddArgs) -> Result<(), Failure> {
    let given = &args.document;
    let is_given = !given.only.is_empty()
        || given.deprecated
        || given.all
        || given.server.is_some()
        || given.client_id.is_some()
        || given.bridge.is_some();
    if is_given && !is_document(args) {
        let problem = "--only, --deprecated, --all, --server, --client-id and --bridge are for OpenAPI documents";
        return Err(Failure::usage(problem, "add --openapi if the source is one"));
    }
    Ok(())
}

/// Reads the document and makes its component.
pub fn find(args: &AddArgs, machine: &Machine) -> Result<FoundComponent, Failure> {
    if args.link {
        return Err(Failure::usage(
            "--link is for files of components",
            "leave it out: a document becomes a component",
        ));
    }
    let source = args.source.as_str();
    let is_address = source.contains("://");
    let bytes = if is_address { downloaded(source, machine)? } else { file(Path::new(source))? };
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::at_fault(format!("{source} is not UTF-8"), "an OpenAPI document is JSON or YAML"))?;
    let name = args.name.clone().unwrap_or_else(|| name_of(source));
    let prefix = args.prefix.clone().unwrap_or_else(|| prefix_of(&name));
    let options = BridgeOptions {
        address: is_address.then(|| source.to_owned()),
        server: args.document.server.clone(),
        only: args.document.only.clone(),
        deprecated: args.document.deprecated,
        all: args.document.all,
        prefix: prefix.clone(),
        name: name.clone(),
        client_id: args.document.client_id.clone(),
    };
    let wrong =
        |error: toolcell_bridge::BridgeError| Failure::at_fault(format!("{source}: {}", error.problem), error.hint);
    let document = read(&text).map_err(wrong)?;
    let bridge = Bridge::of(&document, &options).map_err(wrong)?;
    let private = private(&bridge, &options)?;
    let guest = guest(args)?;
    let bytes = embedded(&guest.bytes, &bridge.definitions.bytes()).map_err(|error| {
        let problem = format!("{} cannot be used: {error}", guest.path.display());
        Failure::at_fault(problem, "`make guests` builds the bridge of this version")
    })?;
    let document = AddedDocument { bridge, prefix, private };
    let found = FoundComponent::of_file(source.to_owned(), bytes, name, ServedFrom::Copy);
    Ok(FoundComponent { document: Some(document), ..found })
}

fn file(path: &Path) -> Result<Vec<u8>, Failure> {
    let hint = "name an OpenAPI document, in JSON or YAML";
    read_bounded(path, DOCUMENT_BYTES_MAX as u64)
        .map_err(|problem| Failure::at_fault(format!("{} {problem}", path.display()), hint))
}

fn downloaded(address: &str, machine: &Machine) -> Result<Vec<u8>, Failure> {
    let progress = Progress::new("downloading", 1);
    let bytes = machine.runtime.block_on(download(address, DOCUMENT_BYTES_MAX));
    drop(progress);
    Ok(bytes?)
}

/// The name of a document's component: its file's, or the host's where that says nothing.
fn name_of(source: &str) -> String {
    let path = source.split(['?', '#']).next().unwrap_or(source);
    let name = component_name(Path::new(path));
    let is_plain = ["openapi", "swagger", "api_docs", "api", "spec"].contains(&name.as_str());
    let host = source.split_once("://").and_then(|(_, rest)| rest.split(['/', ':']).next());
    match host {
        Some(host) if is_plain => {
            let own = host.trim_start_matches("www.").trim_start_matches("api.").split('.').next().unwrap_or(host);
            component_name(Path::new(own))
        }
        _ => name,
    }
}

/// What stands before the name of each tool: the component's name.
fn prefix_of(name: &str) -> String {
    let short: String = name.chars().take(PREFIX_CHARS_MAX).collect();
    format!("{}_", short.replace('-', "_").trim_end_matches('_'))
}

/// Entries for a server that is not public. A document from elsewhere gets none: it would choose
/// what is reached in this network.
fn private(bridge: &Bridge, options: &BridgeOptions) -> Result<Vec<ManifestEntry>, Failure> {
    let origin = &bridge.definitions.origin;
    let entries = ManifestEntry::private_of_right(&format!("GET {origin}/"));
    let is_own = options.server.is_some()
        || options
            .address
            .as_ref()
            .is_none_or(|address| address.to_ascii_lowercase().starts_with(&format!("{origin}/")));
    if entries.is_empty() || is_own {
        return Ok(entries);
    }
    let problem = format!("the document's server {origin} is not public, and the document comes from elsewhere");
    Err(Failure::at_fault(problem, format!("add --server {origin} if that is what you want")))
}

/// The bridge's component, which has no tools by itself.
struct BridgeGuest {
    path: PathBuf,
    bytes: Vec<u8>,
}

fn guest(args: &AddArgs) -> Result<BridgeGuest, Failure> {
    let hint = "`make guests` builds it in a clone; --bridge names it elsewhere";
    let path = match &args.document.bridge {
        Some(path) => path.clone(),
        None => shipped::component(&BRIDGE)
            .ok_or_else(|| Failure::at_fault("the bridge's component is not beside this program", hint))?,
    };
    let bytes = read_bounded(&path, COMPONENT_BYTES_MAX)
        .map_err(|problem| Failure::at_fault(format!("{} {problem}", path.display()), hint))?;
    Ok(BridgeGuest { path, bytes })
}

impl AddedDocument {
    /// Sets the keys of its component: a prefix always, and an approval if a tool changes
    /// something.
    pub fn enter(&self, entry: &mut ComponentEntry) {
        entry.set("prefix", self.prefix.as_str().into());
        if self.bridge.definitions.tools.iter().any(|tool| !tool.hints.read_only) {
            entry.set("approval", "destructive".into());
        }
    }

    /// Adds its grants to the manifest. `Err` is one sentence.
    pub fn grant(&self, component: &str, edit: &mut ManifestEdit) -> Result<(), String> {
        edit.merge(&self.bridge.grants.tables(component))?;
        self.private.iter().try_for_each(|entry| edit.add(component, entry))
    }

    /// What it makes, what that reaches, and what is left out.
    pub fn text(&self) -> String {
        let mut text = format!("  document {}\n", sanitize::line(&self.bridge.title));
        for tool in &self.bridge.definitions.tools {
            let operation = tool.operation();
            let (method, path) = operation.split_once(' ').unwrap_or((&operation, ""));
            let line = format!("{method:<6} {}{path}", self.bridge.definitions.origin);
            text.push_str(&format!("  {}  {}{}\n", sanitize::line(&line), self.prefix, tool.name));
        }
        for secret in &self.bridge.grants.secrets {
            let place = match &secret.place {
                SecretPlace::Header { name, value } if value == "Basic {}" => {
                    format!("header {name}: USER:PASSWORD in base64")
                }
                SecretPlace::Header { name, .. } => format!("header {name}"),
                SecretPlace::Query { name } => format!("query {name}"),
            };
            text.push_str(&sanitize::line(&format!("  secret   {} from {}, {place}", secret.name, secret.from)));
            text.push('\n');
        }
        for left_out in &self.bridge.left_out {
            text.push_str(&sanitize::line(&format!("  left out {} {}", left_out.operation, left_out.reason)));
            text.push('\n');
        }
        for note in &self.bridge.notes {
            text.push_str(&sanitize::line(&format!("  note     {note}")));
            text.push('\n');
        }
        text
    }

    /// The same as JSON.
    pub fn json(&self) -> Value {
        let operations = self.bridge.definitions.tools.iter().map(|tool| {
            json!({
                "tool": format!("{}{}", self.prefix, tool.name),
                "operation": tool.operation(),
                "read_only": tool.hints.read_only,
            })
        });
        let left_out = self.bridge.left_out.iter();
        let left_out = left_out.map(|left| json!({"operation": left.operation, "reason": left.reason}));
        json!({
            "title": self.bridge.title,
            "server": self.bridge.definitions.origin.to_string(),
            "operations": operations.collect::<Vec<_>>(),
            "http": self.bridge.grants.http,
            "secrets": self.bridge.grants.secrets,
            "login": self.bridge.grants.login,
            "left_out": left_out.collect::<Vec<_>>(),
            "notes": self.bridge.notes,
        })
    }

    /// The command that gives a secret its value.
    pub fn secret_command(&self, manifest: &Path) -> Option<String> {
        let secret = self.bridge.grants.secrets.iter().find(|secret| secret.from.starts_with("env:"))?;
        let at = if manifest == Path::new(crate::args::MANIFEST) {
            String::new()
        } else {
            format!(" --manifest {}", manifest.display())
        };
        Some(format!("toolcell secret set {}{at}", secret.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_named_after_its_document_or_its_host() {
        for (source, name) in [
            ("petstore.json", "petstore"),
            ("docs/openapi.yaml", "openapi"),
            ("https://api.example.com/v1/openapi.json?x=y", "example"),
            ("https://www.weather.example/docs/forecast.yml", "forecast"),
        ] {
            assert_eq!(name_of(source), name, "{source}");
        }
        assert_eq!(prefix_of("pet-store"), "pet_store_");
        assert_eq!(prefix_of(&"a".repeat(64)).len(), PREFIX_CHARS_MAX + 1);
    }
}
