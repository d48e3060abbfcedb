//! `toolcell add --mcp URL`: from the list of another MCP server to the component of its tools,
//! with all its texts shown.
use std::path::Path;

use toolcell_bridge::lines::{Elicitation, Era, Selection};
use toolcell_bridge::{Bridge, BridgeGrants, RemoteOptions, SecretGrant, endpoint};
use toolcell_policy::edit::{ComponentEntry, ManifestEdit, ManifestEntry};
use toolcell_policy::{AdvisedFault, Manifest};
use toolcell_server::ManifestFile;
use toolcell_server::machine::Machine;
use toolcell_server::remotes::{SecretFields, read};

use super::bridge::{AddedBridge, BridgeKind, component, name_of_host, prefix_of};
use super::source::{FoundComponent, ServedFrom};
use super::texts::ShownTexts;
use crate::args::AddArgs;
use crate::commands::registries::manifest_of;
use crate::commands::remotes;
use crate::exit::Failure;
use crate::naming::component_name;

/// The name of the component while its secrets are read.
const UNNAMED: &str = "added";

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
    shown.ended()
}
