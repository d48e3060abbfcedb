//! `toolcell search`: entries of a registry of MCP servers that hold components.
use std::path::Path;

use serde_json::{Value, json};
use toolcell_mcp::sanitize;
use toolcell_registry::{FoundPackage, FoundServer, Hint, MCP_REGISTRY, SEARCH_WORD_CHARS_MAX, SearchResult};
use toolcell_server::catalog::folder_of;
use toolcell_server::registries::{self, SearchFault};
use toolcell_server::{ManifestFile, shell};

use super::registries::{EMPTY, manifest_of};
use crate::args::{MANIFEST, SearchArgs};
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Searches and prints what was found.
pub fn run(args: &SearchArgs) -> anyhow::Result<Exit> {
    match search(args) {
        Ok(result) => print(args, &result).map(|()| Exit::Done),
        Err(failure) => failure.report(args.json),
    }
}

fn search(args: &SearchArgs) -> Result<SearchResult, Failure> {
    let chars = args.word.chars().count();
    if chars == 0 || chars > SEARCH_WORD_CHARS_MAX {
        let problem = format!("the word has {chars} characters, 1 to {SEARCH_WORD_CHARS_MAX} are allowed");
        return Err(Failure::usage(problem, "write a part of a server's name"));
    }
    let path = args.manifest.manifest.as_path();
    let file = match path == Path::new(MANIFEST) && !path.exists() {
        true => ManifestFile::unwritten(path, EMPTY.to_owned()),
        false => ManifestFile::read(path)
            .map_err(|problem| Failure::at_fault(problem, "name the manifest with --manifest"))?,
    };
    let manifest = manifest_of(&file)?;
    let address = args.registry.as_deref().unwrap_or(MCP_REGISTRY);
    registries::search(&manifest, &folder_of(path), address, &args.word).map_err(|fault| match fault {
        SearchFault::Address(fault) => Failure::usage(fault.problem.as_str(), fault.hint().unwrap_or_default()),
        SearchFault::Registry(fault) => fault.into(),
        SearchFault::Unreached(problem) => Failure::of_machine(
            format!("{problem}: a search needs a network"),
            "is this machine connected? `toolcell store ls` shows what is here; --registry URL asks another registry",
        ),
    })
}

/// The packages of an entry that are shown.
fn shown<'s>(args: &SearchArgs, server: &'s FoundServer) -> Vec<&'s FoundPackage> {
    server.packages.iter().filter(|package| args.all || package.hint == Hint::Component).collect()
}

fn print(args: &SearchArgs, result: &SearchResult) -> anyhow::Result<()> {
    let found = result.servers.iter().map(|server| (server, shown(args, server)));
    let found: Vec<_> = found.filter(|(_, packages)| !packages.is_empty()).collect();
    let unsaid = result.servers.len().saturating_sub(found.len());
    if args.json {
        let servers: Vec<Value> = found.iter().map(|(server, packages)| json_of(server, packages)).collect();
        let answer = json!({
            "ok": true, "servers": servers, "looked_at": result.looked_at, "not_shown": unsaid,
            "complete": result.is_complete,
        });
        terminal::print(&format!("{answer:#}\n"))?;
        return Ok(());
    }
    for (server, packages) in &found {
        terminal::print(&text_of(server, packages))?;
    }
    let registry = sanitize::line(args.registry.as_deref().unwrap_or(MCP_REGISTRY)).into_owned();
    if found.is_empty() {
        let word = sanitize::line(&args.word).into_owned();
        terminal::eprint(&format!("{registry}: no entry with {word:?} in its name says that it holds a component\n"));
    }
    if unsaid > 0 {
        terminal::eprint(&format!("\nhint: OCI packages that do not say what they are: {unsaid}; --all shows them\n"));
    }
    if !result.is_complete {
        let problem = format!("{registry}: {} entries were looked at, and there are more", result.looked_at);
        terminal::warning(&format!("{problem}; search for a longer word\n"));
    }
    Ok(())
}

fn text_of(server: &FoundServer, packages: &[&FoundPackage]) -> String {
    let line = |text: &str| sanitize::line(text).into_owned();
    let name = terminal::bold(&line(&server.name), terminal::stdout_style());
    let deprecated = if server.is_deprecated { "  deprecated" } else { "" };
    let mut text = format!("{name} {}{deprecated}\n", line(&server.version));
    if !server.description.is_empty() {
        text.push_str(&format!("  {}\n", line(&server.description)));
    }
    for FoundPackage { reference, hint } in packages {
        let said = if *hint == Hint::Component { "" } else { "  (may be an image)" };
        text.push_str(&format!("  toolcell add {reference}{}{said}\n", shell::named_words()));
    }
    text
}

fn json_of(server: &FoundServer, packages: &[&FoundPackage]) -> Value {
    let packages: Vec<Value> = packages
        .iter()
        .map(|package| {
            json!({"source": package.reference.to_string(), "says_component": package.hint == Hint::Component})
        })
        .collect();
    // JSON does not escape all control characters.
    let line = |text: &str| sanitize::line(text).into_owned();
    json!({
        "name": line(&server.name), "title": server.title.as_deref().map(line),
        "description": line(&server.description), "version": line(&server.version),
        "deprecated": server.is_deprecated, "packages": packages,
    })
}
