//! `toolcell store`: managing pulled components. Must not hold: the layout of the store.
mod archive;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;
use toolcell_mcp::sanitize;
use toolcell_policy::quantity::show_bytes;
use toolcell_registry::{Fault, Listed, Store, StoreError};
use toolcell_server::catalog::folder_of;
use toolcell_server::{registries, shell};

use super::registries::read_manifest;
use crate::args::{Consent, MANIFEST, StoreArg, StoreArgs, StoreCommand, StoreGcArgs, StoreListArgs};
use crate::edit::agrees_or_reports;
use crate::exit::{Exit, Failure, reported};
use crate::terminal;

pub fn run(args: &StoreArgs) -> anyhow::Result<Exit> {
    match &args.command {
        StoreCommand::Ls(args) => reported(list(args), args.json),
        StoreCommand::Verify(args) => reported(verify(args), args.json),
        StoreCommand::Gc(args) => reported(gc(args), args.json),
        StoreCommand::Export(args) => reported(archive::export(args), args.json),
        StoreCommand::Import(args) => reported(archive::import(args), args.json),
    }
}

/// A problem with the store as a failure.
fn of_store(error: StoreError) -> Failure {
    Failure::at_fault(error.to_string(), error.hint().unwrap_or_default())
}

/// The store: the named one, or the manifest's, or the user's.
fn open(named: &StoreArg, manifest: &Path) -> Result<Store, Failure> {
    Store::open(&folder(named, manifest)?).map_err(of_store)
}

fn folder(named: &StoreArg, manifest: &Path) -> Result<PathBuf, Failure> {
    if let Some(store) = &named.store {
        return Ok(store.clone());
    }
    // Without a manifest in this folder, the user's store is used.
    if manifest == Path::new(MANIFEST) && !manifest.exists() {
        return Ok(registries::user_store());
    }
    let (_, read) = read_manifest(manifest)?;
    Ok(registries::store_folder(read.server(), &folder_of(manifest)))
}

fn list(args: &StoreListArgs) -> anyhow::Result<Exit> {
    let store = open(&args.store, &args.manifest.manifest)?;
    let listed = store.list().map_err(of_store)?;
    if args.json {
        let components: Vec<_> = listed.iter().map(json_of).collect();
        let answer = json!({"ok": true, "store": store.root(), "components": components});
        terminal::print(&format!("{answer:#}\n"))?;
        return Ok(Exit::Done);
    }
    for one in &listed {
        terminal::print(&line_of(one))?;
    }
    if listed.is_empty() {
        terminal::eprint(&format!("{} is empty\n", store.root().display()));
    }
    Ok(Exit::Done)
}

fn json_of(listed: &Listed) -> serde_json::Value {
    json!({
        "digest": listed.digest.to_string(), "names": listed.names, "size_bytes": listed.bytes,
        "attached": listed.attached,
    })
}

fn line_of(listed: &Listed) -> String {
    let size = listed.bytes.map_or_else(|| "cannot be read".to_owned(), show_bytes);
    let names = sanitize::line(&listed.names.join(", ")).into_owned();
    format!("{}  {size}, {} attached  {names}\n", listed.digest, listed.attached)
}

fn verify(args: &StoreListArgs) -> anyhow::Result<Exit> {
    let store = open(&args.store, &args.manifest.manifest)?;
    let faults = store.verify().map_err(of_store)?;
    if args.json {
        let faults = faults
            .iter()
            .map(|fault| json!({"digest": fault.digest.as_ref().map(ToString::to_string), "problem": fault.text}));
        let answer = json!({"ok": faults.len() == 0, "store": store.root(), "faults": faults.collect::<Vec<_>>()});
        terminal::print(&format!("{answer:#}\n"))?;
    } else if faults.is_empty() {
        terminal::print(&format!("{}: each file is what its digest says\n", store.root().display()))?;
    } else {
        for Fault { text, .. } in &faults {
            terminal::error(&sanitize::line(text), None);
        }
        let mended = "`toolcell store gc` removes what no manifest names, `toolcell pull` fetches the rest anew";
        let hint = faults.iter().find_map(|fault| fault.hint).unwrap_or(mended);
        terminal::eprint(&format!("\nhint: {}\n", shell::named(hint)));
    }
    Ok(if faults.is_empty() { Exit::Done } else { Exit::AtFault })
}

fn gc(args: &StoreGcArgs) -> anyhow::Result<Exit> {
    let (store, keep, gone) = plan(args)?;
    if !args.json {
        for one in &gone {
            terminal::print(&format!("remove  {}", line_of(one)))?;
        }
        terminal::print(&format!("keep    {} that manifests name\n", keep.len()))?;
    }
    let consent = if gone.is_empty() { Consent::Given } else { args.consent.consent() };
    let name = store.root().display().to_string();
    agrees_or_reports(&name, "Remove them?", consent)?;
    let removed = store.gc(&keep).map_err(of_store)?;
    if args.json {
        let answer = json!({
            "ok": true, "store": store.root(), "kept": keep.len(),
            "removed": {"components": removed.components, "files": removed.files, "bytes": removed.bytes},
        });
        terminal::print(&format!("{answer:#}\n"))?;
    } else {
        let components = removed.components;
        let files = removed.files;
        let bytes = show_bytes(removed.bytes);
        terminal::eprint(&format!("{name}: removed components: {components}, files: {files}, {bytes}\n"));
    }
    Ok(Exit::Done)
}

/// The store, the digests to keep, and the components to remove.
fn plan(args: &StoreGcArgs) -> Result<(Store, BTreeSet<toolcell_policy::Digest>, Vec<Listed>), Failure> {
    let own = args.manifest.manifest.as_path();
    let store = open(&args.store, own)?;
    let own = own.exists().then(|| own.to_owned());
    let mut keep = BTreeSet::new();
    for path in own.iter().chain(&args.keep) {
        keep.extend(registries::digests(&read_manifest(path)?.1));
    }
    let mut listed = store.list().map_err(of_store)?;
    listed.retain(|one| !keep.contains(&one.digest));
    Ok((store, keep, listed))
}
