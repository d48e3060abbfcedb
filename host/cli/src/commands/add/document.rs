//! `toolcell add openapi.json`: from a document to the component of its tools, and what the
//! manifest grants it.
use std::path::Path;

use toolcell_bridge::{Bridge, BridgeOptions, DOCUMENT_BYTES_MAX, read};
use toolcell_policy::edit::ManifestEntry;
use toolcell_server::download::download;
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
    let is_address = source.contains("://");
    let bytes = if is_address { downloaded(source, machine)? } else { file(Path::new(source))? };
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::at_fault(format!("{source} is not UTF-8"), "an OpenAPI document is JSON or YAML"))?;
    let name = args.name.clone().unwrap_or_else(|| name_of(source));
    let prefix = args.prefix.clone().unwrap_or_else(|| prefix_of(&name));
    let options = BridgeOptions {
        address: is_address.then(|| source.to_owned()),
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
    let bridge = Bridge::of(&document, &options, remotes::check()).map_err(wrong)?;
    let private = private(&bridge, &options)?;
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
    if is_plain { name_of_host(source).unwrap_or(name) } else { name }
}

/// Entries for a server that is not public. A document from elsewhere gets none: it would choose
/// what is reached in this network.
fn private(bridge: &Bridge, options: &BridgeOptions) -> Result<Vec<ManifestEntry>, Failure> {
    let origin = &bridge.origin;
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
