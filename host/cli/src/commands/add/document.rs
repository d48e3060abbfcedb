//! `toolcell add openapi.json`: from a document to the component of its tools, and what the
//! manifest grants it.
use std::path::Path;

use toolcell_bridge::{Bridge, BridgeOptions, DOCUMENT_BYTES_MAX, read};
use toolcell_policy::edit::ManifestEntry;
use toolcell_server::download::{Downloaded, download};
use toolcell_server::file::read_bounded;
use toolcell_server::machine::Machine;

use super::bridge::{AddedBridge, BridgeKind, component, name_of_host, prefix_of};
use super::source::{FoundComponent, ServedFrom};
use crate::args::AddArgs;
use crate::commands::remotes;
use crate::exit::Failure;
use crate::naming::component_name;
use crate::terminal::Progress;

/// Ends of the names of documents.
const ENDS: [&str; 3] = [".json", ".yaml", ".yml"];

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
    let is_given = given.deprecated || given.server.is_some() || given.client_id.is_some();
    if is_given && !is_document(args) {
        let problem = "--deprecated, --server and --client-id are for OpenAPI documents";
        return Err(Failure::usage(problem, "add --openapi if the source is one"));
    }
    let is_given = !args.bridge.only.is_empty() || args.bridge.all || args.bridge.bridge.is_some();
    if is_given && !is_document(args) && !args.server.mcp {
        let problem = "--only, --all and --bridge are for OpenAPI documents and other MCP servers";
        return Err(Failure::usage(problem, "add --openapi or --mcp if the source is one"));
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
    let document = WrittenDocument::of(source, machine)?;
    let text = String::from_utf8(document.bytes)
        .map_err(|_| Failure::at_fault(format!("{source} is not UTF-8"), "an OpenAPI document is JSON or YAML"))?;
    let name = args.name.clone().unwrap_or_else(|| name_of(source));
    let prefix = args.prefix.clone().unwrap_or_else(|| prefix_of(&name));
    let options = BridgeOptions {
        address: document.address,
        server: args.document.server.clone(),
        only: args.bridge.only.clone(),
        deprecated: args.document.deprecated,
        all: args.bridge.all,
        prefix: prefix.clone(),
        name: name.clone(),
        client_id: args.document.client_id.clone(),
    };
    let wrong =
        |error: toolcell_bridge::BridgeError| Failure::at_fault(format!("{source}: {}", error.problem), error.hint);
    let document = read(&text).map_err(wrong)?;
    let mut bridge = Bridge::of(&document, &options, remotes::check()).map_err(wrong)?;
    bridge.notes.splice(0..0, document_elsewhere(source, &options));
    let private = private(&bridge, source, &options)?;
    let bytes = component(&bridge, args.bridge.bridge.as_deref())?;
    let kind = BridgeKind::Document;
    let found = FoundComponent::of_file(source.to_owned(), bytes, name, ServedFrom::Copy);
    Ok(FoundComponent { bridge: Some(AddedBridge { bridge, prefix, private, kind }), ..found })
}

fn file(path: &Path) -> Result<Vec<u8>, Failure> {
    let hint = "name an OpenAPI document, in JSON or YAML";
    read_bounded(path, DOCUMENT_BYTES_MAX as u64)
        .map_err(|problem| Failure::at_fault(format!("{} {problem}", path.display()), hint))
}

/// A document as it was read.
struct WrittenDocument {
    bytes: Vec<u8>,
    /// Where it was, behind all redirects, unless it is a file. Relative servers refer to that
    /// (RFC 3986, section 5.1.3).
    address: Option<String>,
}

impl WrittenDocument {
    fn of(source: &str, machine: &Machine) -> Result<Self, Failure> {
        if !source.contains("://") {
            return Ok(Self { bytes: file(Path::new(source))?, address: None });
        }
        let progress = Progress::new("downloading", 1);
        let downloaded = machine.runtime.block_on(download(source, DOCUMENT_BYTES_MAX));
        drop(progress);
        let Downloaded { bytes, address } = downloaded?;
        Ok(Self { bytes, address: Some(address) })
    }
}

/// A note on a document whose address redirects to another host.
fn document_elsewhere(source: &str, options: &BridgeOptions) -> Option<String> {
    let address = options.address.as_deref().filter(|address| origin_of(address) != origin_of(source))?;
    Some(format!("{source} redirects to {address}, where the document is"))
}

/// The scheme, host and port of an address, in lower case.
fn origin_of(address: &str) -> String {
    address.split('/').take(3).collect::<Vec<_>>().join("/").to_ascii_lowercase()
}

/// The name of a document's component: its file's, or the host's where that says nothing.
fn name_of(source: &str) -> String {
    let path = source.split(['?', '#']).next().unwrap_or(source);
    let name = component_name(Path::new(path));
    let is_plain = ["openapi", "swagger", "api_docs", "api", "spec"].contains(&name.as_str());
    if is_plain { name_of_host(source).unwrap_or(name) } else { name }
}

/// Entries for a server that is not public. A document from elsewhere gets none: it would choose
/// what is reached in this network. The address that a person named counts, and no redirect.
fn private(bridge: &Bridge, source: &str, options: &BridgeOptions) -> Result<Vec<ManifestEntry>, Failure> {
    let origin = &bridge.origin;
    let entries = ManifestEntry::private_of_right(&format!("GET {origin}/"));
    let is_own = options.server.is_some() || options.address.is_none() || origin_of(source) == origin.to_string();
    if entries.is_empty() || is_own {
        return Ok(entries);
    }
    let problem = format!("the document's server {origin} is not public, and the document comes from elsewhere");
    Err(Failure::at_fault(problem, format!("add --server {origin} if that is what you want")))
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
    }
}
