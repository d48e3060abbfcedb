//! `toolcell rename OLD NEW`: gives a component another name in the manifest and in the lock.
use toolcell_policy::edit::ManifestEdit;
use toolcell_policy::{Manifest, names, parse};
use toolcell_server::ManifestFile;
use toolcell_server::catalog::folder_of;
use toolcell_server::lock::Lock;

use super::remove::{edited_lock, write_lock};
use crate::args::RenameArgs;
use crate::edit::{self, Screen, agree};
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Renames it, and reports what keeps the old name.
pub fn run(args: &RenameArgs) -> anyhow::Result<Exit> {
    let old = args.component.as_str();
    let new = args.name.as_str();
    let (file, mut edit) = edit::read(&args.manifest.manifest)?;
    edit::check_known(&file, &edit, old)?;
    check_free(new, &edit)?;
    let locked = edited_lock(file.path())?;
    edit.rename_component(old, new);
    agree(&file, &edit.text(), args.consent.consent(), Screen::Stdout)?;
    let kept = parse(&file.source()).map(|parsed| kept(&parsed.manifest, &file, old, new)).unwrap_or_default();
    let exit = write(&file, &edit, old, new, locked)?;
    kept.iter().for_each(|kept| terminal::eprint(&format!("note: {kept}\n")));
    Ok(exit)
}

fn check_free(name: &str, edit: &ManifestEdit) -> Result<(), Failure> {
    if let Err(problem) = names::check_component(name) {
        let hint = "a component's name is 1 to 64 of a-z 0-9 _ -, and begins with a letter or a digit";
        return Err(Failure::usage(format!("the name {name:?} {problem}"), hint));
    }
    if edit.components().iter().any(|other| other == name) {
        return Err(Failure::at_fault(format!("the manifest has a component {name:?} already"), "choose another name"));
    }
    Ok(())
}

fn write(
    file: &ManifestFile,
    edit: &ManifestEdit,
    old: &str,
    new: &str,
    locked: Option<Lock>,
) -> Result<Exit, Failure> {
    edit::write(file, &edit.text())?;
    let mut said = format!("{}: {old} is called {new}", file.name());
    if let Some(mut locked) = locked
        && let Some(pinned) = locked.components.remove(old)
    {
        locked.components.insert(new.to_owned(), pinned);
        write_lock(file.path(), &locked)?;
        said.push_str(", and so it is in its lock");
    }
    terminal::eprint(&format!("{said}\n"));
    Ok(Exit::Done)
}

/// Everything outside of manifest and lock that uses the old name.
fn kept(manifest: &Manifest, file: &ManifestFile, old: &str, new: &str) -> Vec<String> {
    let mut kept = Vec::new();
    let state = format!("{}/{old}.redb", manifest.server().state());
    if folder_of(file.path()).join(&state).exists() {
        kept.push(format!(
            "its state stays in {state}, where {new} does not look; to take it along, stop what serves, and move it to {new}.redb"
        ));
    }
    if manifest.audit().file().is_some() {
        kept.push(format!("records of the audit keep the name {old}"));
    }
    kept
}
