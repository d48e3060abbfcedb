//! `toolcell remove NAME`: removes a component from the manifest and the lock.
use std::path::Path;

use toolcell_policy::edit::ManifestEdit;
use toolcell_server::ManifestFile;
use toolcell_server::catalog::folder_of;
use toolcell_server::lock::{self, Lock};

use crate::args::RemoveArgs;
use crate::edit::{self, Screen, agree};
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Folder of components, next to the manifest.
const COMPONENTS: &str = "components/";

/// Takes it out.
pub fn run(args: &RemoveArgs) -> anyhow::Result<Exit> {
    let name = args.component.as_str();
    let (file, mut edit) = edit::read(&args.manifest.manifest)?;
    edit::check_known(&file, &edit, name)?;
    let locked = edited_lock(file.path())?;
    let deleted = if args.delete_file { Some(deletable(name, &edit)?) } else { None };
    edit.remove_component(name);
    agree(&file, &edit.text(), args.consent.consent(), Screen::Stdout)?;
    Ok(write(&file, &edit, name, locked, deleted)?)
}

fn write(
    file: &ManifestFile,
    edit: &ManifestEdit,
    name: &str,
    locked: Option<Lock>,
    deleted: Option<String>,
) -> Result<Exit, Failure> {
    edit::write(file, &edit.text())?;
    let mut said = format!("{}: {name} is removed", file.name());
    if let Some(mut locked) = locked
        && locked.components.remove(name).is_some()
    {
        write_lock(file.path(), &locked)?;
        said.push_str(", and its lock");
    }
    if let Some(source) = deleted {
        std::fs::remove_file(folder_of(file.path()).join(&source)).map_err(|error| {
            Failure::at_fault(format!("{source} cannot be deleted: {error}"), "the manifest names it no longer")
        })?;
        said.push_str(&format!("; {source} is deleted"));
    }
    terminal::eprint(&format!("{said}\n"));
    Ok(Exit::Done)
}

/// The component's file, if nothing else names it and it is in the folder of components.
fn deletable(name: &str, edit: &ManifestEdit) -> Result<String, Failure> {
    let hint = "leave --delete-file out, and delete it yourself";
    let source = edit.source(name).unwrap_or_default();
    let is_plain = source.strip_prefix(COMPONENTS).is_some_and(|file| !file.is_empty() && !file.contains('/'));
    if !is_plain {
        return Err(Failure::at_fault(format!("{source:?} is not in {COMPONENTS} next to the manifest"), hint));
    }
    let others = edit.components();
    if let Some(other) = others.iter().find(|other| *other != name && edit.source(other) == Some(source)) {
        return Err(Failure::at_fault(format!("{source:?} is the file of {other} as well"), hint));
    }
    Ok(source.to_owned())
}

pub(super) fn edited_lock(manifest: &Path) -> Result<Option<Lock>, Failure> {
    Ok(lock::read(&lock::path_beside(manifest))?)
}

pub(super) fn write_lock(manifest: &Path, locked: &Lock) -> Result<(), Failure> {
    Ok(lock::write(&lock::path_beside(manifest), locked)?)
}
