//! `toolcell store export` and `toolcell store import`: a manifest's components in one file, for a
//! machine without a network.
use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};

use serde_json::json;
use toolcell_policy::Digest;
use toolcell_server::registries;

use super::super::registries::read_manifest;
use super::{of_store, open};
use crate::args::{StoreExportArgs, StoreImportArgs};
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Writes the components of the manifest, or of the whole store.
pub(super) fn export(args: &StoreExportArgs) -> anyhow::Result<Exit> {
    let written = write(args)?;
    let file = args.file.display();
    if args.json {
        let digests: Vec<String> = written.iter().map(ToString::to_string).collect();
        terminal::print(&format!("{:#}\n", json!({"ok": true, "file": args.file, "components": digests})))?;
    } else {
        terminal::eprint(&format!("{file}: written, with components: {}\n", written.len()));
    }
    Ok(Exit::Done)
}

fn write(args: &StoreExportArgs) -> Result<Vec<Digest>, Failure> {
    let manifest = args.manifest.manifest.as_path();
    let store = open(&args.store, manifest)?;
    let digests: Vec<Digest> = if manifest.exists() {
        registries::digests(&read_manifest(manifest)?.1).into_iter().collect()
    } else {
        store.list().map_err(of_store)?.into_iter().map(|one| one.digest).collect()
    };
    if digests.is_empty() {
        let problem = format!("{} names no component of a registry", manifest.display());
        return Err(Failure::at_fault(problem, "name another manifest with --manifest"));
    }
    let wrong = |error: std::io::Error| {
        let problem = format!("{} cannot be written: {error}", args.file.display());
        Failure::at_fault(problem, "name a new file in an existing folder")
    };
    let file = File::create_new(&args.file).map_err(wrong)?;
    let mut writer = BufWriter::new(file);
    let exported = store.export(&digests, &mut writer).map_err(of_store);
    let flushed = exported.and_then(|()| writer.flush().map_err(wrong));
    if flushed.is_err() {
        // A partial archive must not remain.
        let _ = std::fs::remove_file(&args.file);
    }
    flushed.map(|()| digests)
}

/// Imports the content of an archive, each file by its digest.
pub(super) fn import(args: &StoreImportArgs) -> anyhow::Result<Exit> {
    let store = open(&args.store, &args.manifest.manifest)?;
    let file = File::open(&args.file).map_err(|error| {
        let problem = format!("{} cannot be read: {error}", args.file.display());
        Failure::at_fault(problem, "`toolcell store export` writes one")
    })?;
    let imported = store.import(BufReader::new(file)).map_err(of_store)?;
    let digests: Vec<String> = imported.components.iter().map(ToString::to_string).collect();
    if args.json {
        let answer = json!({"ok": true, "components": digests, "attached": imported.attached});
        terminal::print(&format!("{answer:#}\n"))?;
    } else {
        digests.iter().try_for_each(|digest| terminal::print(&format!("{digest}\n")))?;
        terminal::eprint(&format!("components: {}, attached to them: {}\n", digests.len(), imported.attached));
    }
    Ok(Exit::Done)
}
