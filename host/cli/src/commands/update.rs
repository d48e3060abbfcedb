//! `toolcell update`: pins what the tags of registries lead to now, once a person has seen it.
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toolcell_mcp::sanitize;
use toolcell_policy::edit::ManifestEdit;
use toolcell_policy::{Manifest, Reference};
use toolcell_server::catalog::folder_of;
use toolcell_server::lock::{self, Drift, Lock, drift};
use toolcell_server::registries::{self, Pulled, Registries};
use toolcell_server::{ManifestFile, OpenOptions, Ready};

use super::registries::{failed, json_of, left_out_lines, manifest_of, pull, signers};
use crate::args::UpdateArgs;
use crate::edit::{self, Screen, agree};
use crate::exit::{Exit, Failure};
use crate::manifest::open_file_or_say;
use crate::terminal;

/// A component whose tag leads to something else now.
struct Moved {
    name: String,
    from: Reference,
    to: Reference,
    pulled: Pulled,
}

/// A component as it is pinned and as it would be.
struct Change<'m> {
    moved: &'m Moved,
    drift: Option<Drift>,
    imports: Vec<String>,
}

/// Looks, shows, asks and writes.
pub fn run(args: &UpdateArgs) -> anyhow::Result<Exit> {
    match update(args)? {
        Ok(exit) => Ok(exit),
        Err(failure) => failure.tell(args.json),
    }
}

fn update(args: &UpdateArgs) -> anyhow::Result<Result<Exit, Failure>> {
    let path = args.manifest.manifest.as_path();
    let read = edit::read(path).and_then(|(file, edit)| {
        let manifest = manifest_of(&file)?;
        let moved = look(args, &manifest)?;
        Ok((file, edit, moved))
    });
    let (file, mut edit, moved) = match read {
        Ok(read) => read,
        Err(failure) => return Ok(Err(failure)),
    };
    for one in &moved {
        edit.set_source(&one.name, &one.to.to_string());
    }
    if moved.is_empty() {
        if args.json {
            terminal::print(&format!("{:#}\n", json!({"ok": true, "updated": []})))?;
        } else {
            terminal::say(&format!("{}: nothing leads elsewhere\n", file.name()));
        }
        return Ok(Ok(Exit::Done));
    }
    pin(args, &file, &edit, &moved)
}

/// Asks registries where the tags lead, and pulls what is new.
fn look(args: &UpdateArgs, manifest: &Manifest) -> Result<Vec<Moved>, Failure> {
    let folder = folder_of(&args.manifest.manifest);
    let registries = Registries::open(manifest, &folder).map_err(failed)?;
    let wanted: Vec<_> = registries::components(manifest)
        .filter(|(name, _)| args.name.as_deref().is_none_or(|wanted| wanted == *name))
        .collect();
    if let (Some(name), true) = (&args.name, wanted.is_empty()) {
        let problem = format!("the manifest has no component {name:?} that comes from a registry");
        return Err(Failure::usage(problem, "`toolcell list` shows the components"));
    }
    let mut moved = Vec::new();
    for (name, from) in wanted {
        let Some(tag) = args.tag.as_deref().or(from.tag()) else {
            if args.name.is_some() {
                let problem = format!("{name}: {from} follows no tag");
                return Err(Failure::usage(problem, "name one with --tag"));
            }
            continue;
        };
        let asked =
            from.clone().bare().with_tag(tag).map_err(|error| {
                Failure::usage(format!("{name}: {error}"), "a tag is 1 to 128 of A-Z a-z 0-9 _ . -")
            })?;
        let digest = registries.resolve(&asked).map_err(failed)?;
        let to = asked.with_digest(digest);
        if to != *from {
            let pulled = pull(&registries, &to).map_err(failed)?;
            moved.push(Moved { name: name.to_owned(), from: from.clone(), to, pulled });
        }
    }
    Ok(moved)
}

/// Shows how the components differ, and writes lock and manifest once that is wanted.
fn pin(
    args: &UpdateArgs,
    file: &ManifestFile,
    edit: &ManifestEdit,
    moved: &[Moved],
) -> anyhow::Result<Result<Exit, Failure>> {
    let options = || OpenOptions { code: args.code.options(), ..OpenOptions::default() };
    let at_fault = |what: &str| Failure::at_fault(format!("{} {what}, and stays as it is", file.name()), "");
    let before = ManifestFile::unwritten(file.path(), file.text().to_owned());
    let Some((_, ready)) = open_file_or_say(before, options())? else {
        return Ok(Err(at_fault("cannot be loaded as it is")));
    };
    let (was, imported) = (Lock::of(&ready.catalog), imports(&ready, moved));
    // Two engines would need twice the memory.
    drop(ready);
    let Some((_, ready)) = open_file_or_say(ManifestFile::unwritten(file.path(), edit.text()), options())? else {
        return Ok(Err(at_fault("would have these problems")));
    };
    let (now, imports) = (Lock::of(&ready.catalog), imports(&ready, moved));
    drop(ready);
    let path = lock::path_beside(file.path());
    let locked = match lock::read(&path) {
        Ok(locked) => locked,
        Err(error) => return Ok(Err(Failure::at_fault(error.to_string(), error.hint()))),
    };
    let drifts = drift(locked.as_ref().unwrap_or(&was), &now);
    let changes: Vec<Change<'_>> = moved
        .iter()
        .map(|moved| Change {
            moved,
            drift: drifts.iter().find(|drift| drift.component == moved.name).cloned(),
            imports: difference(imported.get(&moved.name), imports.get(&moved.name)),
        })
        .collect();
    if !args.json {
        changes.iter().try_for_each(|change| terminal::print(&change.text()))?;
    }
    let others = changes.iter().find(|change| change.drift.as_ref().is_some_and(|drift| drift.other_signers));
    if let Some(change) = others.filter(|_| !args.allow_signer_change) {
        let problem = format!("{} is not signed as the lock pins it", change.moved.name);
        let failure = Failure::at_fault(problem, "ask its publisher why; --allow-signer-change takes it");
        return Ok(Err(failure.with("changes", changes_json(&changes))));
    }
    let screen = if args.json { Screen::Stderr } else { Screen::Stdout };
    if let Err(failure) = agree(file, &edit.text(), args.consent.consent(), screen)? {
        return Ok(Err(failure.with("changes", changes_json(&changes))));
    }
    if let Err(failure) = write(file, edit, moved, locked.as_ref(), &now) {
        return Ok(Err(failure));
    }
    if args.json {
        let updated = changes_json(&changes);
        terminal::print(&format!("{:#}\n", json!({"ok": true, "updated": updated})))?;
    } else {
        let pinned = if locked.is_some() { " and its lock pin" } else { " pins" };
        terminal::say(&format!("{}{pinned} what is new: {}\n", file.name(), moved.len()));
    }
    Ok(Ok(Exit::Done))
}

fn changes_json(changes: &[Change<'_>]) -> Value {
    changes.iter().map(Change::json).collect()
}

/// Writes the lock, if there is one, and at last the manifest.
fn write(
    file: &ManifestFile,
    edit: &ManifestEdit,
    moved: &[Moved],
    locked: Option<&Lock>,
    now: &Lock,
) -> Result<(), Failure> {
    let path = lock::path_beside(file.path());
    let wrong = |error: lock::LockError| Failure::at_fault(error.to_string(), error.hint());
    if let Some(before) = locked {
        let mut after = before.clone();
        for Moved { name, .. } in moved {
            after.components.extend(now.components.get(name).map(|pinned| (name.clone(), pinned.clone())));
        }
        lock::write(&path, &after).map_err(wrong)?;
    }
    edit::write(file, &edit.text()).inspect_err(|_| {
        // What cannot be written back pins what the manifest does not name, and is not served.
        let _ = locked.map(|before| lock::write(&path, before));
    })
}

/// The imports of each of these components.
fn imports(ready: &Ready, moved: &[Moved]) -> BTreeMap<String, BTreeSet<String>> {
    let component = |moved: &Moved| {
        let loaded = ready.catalog.component(&moved.name)?;
        Some((moved.name.clone(), loaded.inspection().imports().iter().map(ToString::to_string).collect()))
    };
    moved.iter().filter_map(component).collect()
}

/// Imports that come and go, a line each.
fn difference(was: Option<&BTreeSet<String>>, now: Option<&BTreeSet<String>>) -> Vec<String> {
    let none = BTreeSet::new();
    let (was, now) = (was.unwrap_or(&none), now.unwrap_or(&none));
    let more = now.difference(was).map(|import| format!("imports now {import}"));
    more.chain(was.difference(now).map(|import| format!("imports no longer {import}"))).collect()
}

impl Change<'_> {
    fn text(&self) -> String {
        let style = terminal::stdout_style();
        let Moved { name, from, to, pulled } = self.moved;
        let mut text = format!("{}\n  was {from}\n  is  {to}\n", terminal::bold(name, style));
        let differences = self.drift.iter().flat_map(|drift| &drift.differences);
        let left_out = left_out_lines(&pulled.left_out);
        for line in signers(pulled).iter().chain(&left_out).chain(&self.imports).chain(differences) {
            text.push_str(&format!("  {}\n", sanitize::line(line)));
        }
        text.push('\n');
        text
    }

    fn json(&self) -> Value {
        let Moved { name, from, to, pulled } = self.moved;
        let mut json = json_of(to, pulled);
        if let Some(members) = json.as_object_mut() {
            members.insert("name".to_owned(), name.as_str().into());
            members.insert("was".to_owned(), from.to_string().into());
            members.insert("imports".to_owned(), json!(self.imports));
            let differences = self.drift.as_ref().map(|drift| drift.differences.clone()).unwrap_or_default();
            members.insert("differences".to_owned(), json!(differences));
        }
        json
    }
}
