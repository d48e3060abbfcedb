//! `toolcell update`: pins what the tags of registries lead to now, and what other MCP servers
//! list, once a person has seen it.
mod bridged;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toolcell_mcp::sanitize;
use toolcell_policy::edit::ManifestEdit;
use toolcell_policy::{AdvisedFault, Manifest, Reference};
use toolcell_server::catalog::folder_of;
use toolcell_server::lock::{self, Drift, Lock, drift};
use toolcell_server::registries::{self, Pulled, Registries};
use toolcell_server::{ManifestFile, OpenOptions, Ready, shell};

use super::registries::{json_of, left_out_lines, manifest_of, pull, signers};
use super::remotes;
use super::replay::{HeldAgainst, NewVersion, recordings_of};
use crate::args::UpdateArgs;
use crate::edit::{self, Screen, agree};
use crate::exit::{Exit, Failure, reported};
use crate::manifest::open_file_or_report;
use crate::terminal;

/// A component whose tag has moved.
struct Moved {
    name: String,
    from: Reference,
    to: Reference,
    pulled: Pulled,
    /// Why the previous version cannot be read, if it is missing or no longer trusted.
    unread: Option<String>,
}

/// Answers of registries about components.
#[derive(Default)]
struct TagChecks {
    moved: Vec<Moved>,
    /// Components whose registry does not answer, or that cannot be pulled.
    failed: Vec<FailedUpdate>,
    /// Components whose pinned versions cannot be read.
    unread: BTreeSet<String>,
    /// Bridges that have the tools of their servers' lists now.
    bridged: Vec<bridged::BridgeChange>,
}

/// A component that cannot be updated.
struct FailedUpdate {
    name: String,
    source: String,
    fault: AdvisedFault,
}

/// The pinned and the new version of a component.
struct UpdateChange<'m> {
    moved: &'m Moved,
    drift: Option<Drift>,
    imports: Vec<String>,
    /// How recorded calls end with the new version, if there are some.
    recorded: Option<HeldAgainst>,
}

/// Checks, shows, asks and writes.
pub fn run(args: &UpdateArgs) -> anyhow::Result<Exit> {
    reported(update(args), args.json)
}

fn update(args: &UpdateArgs) -> anyhow::Result<Exit> {
    let path = args.manifest.manifest.as_path();
    let (file, mut edit) = edit::read(path)?;
    let manifest = manifest_of(&file)?;
    let folder = folder_of(path);
    let mut bridges = remotes::of_manifest(&manifest, &folder);
    bridges.retain(|bridge| args.name.as_deref().is_none_or(|wanted| wanted == bridge.component.name()));
    let is_bridge = args.name.is_some() && !bridges.is_empty();
    if is_bridge && args.tag.is_some() {
        return Err(Failure::usage("a bridge follows its server, and no tag", "leave --tag out").into());
    }
    let bridged = bridged::update(args, &file, &manifest, &bridges)?;
    let mut checks = if is_bridge { TagChecks::default() } else { check_tags(args, &manifest)? };
    checks.bridged = bridged.changes;
    checks.failed.extend(bridged.failed);
    for one in &checks.moved {
        edit.set_source(&one.name, &one.to.to_string());
    }
    if !checks.moved.is_empty() {
        return pin(args, &file, &edit, &checks);
    }
    if args.json {
        terminal::print(&format!("{:#}\n", checks.json(&[])))?;
    } else if checks.failed.is_empty() && checks.bridged.is_empty() {
        let nothing = if bridges.is_empty() { "no tag has moved" } else { "nothing is new" };
        terminal::eprint(&format!("{}: {nothing}\n", file.name()));
    }
    Ok(checks.exit())
}

/// Looks up where the tags lead, and pulls new versions. Without a name, a failure does not stop
/// the others.
fn check_tags(args: &UpdateArgs, manifest: &Manifest) -> Result<TagChecks, Failure> {
    let folder = folder_of(&args.manifest.manifest);
    let registries = Registries::open(manifest, &folder)?;
    let wanted: Vec<_> = registries::components(manifest)
        .filter(|(name, _)| args.name.as_deref().is_none_or(|wanted| wanted == *name))
        .collect();
    if let (Some(name), true) = (&args.name, wanted.is_empty()) {
        let problem = format!("the manifest has no component {name:?} that comes from a registry or another server");
        return Err(Failure::usage(problem, "`toolcell list` shows the components"));
    }
    let mut checks = TagChecks::default();
    for (name, from) in wanted {
        let Some(tag) = args.tag.as_deref().or(from.tag()) else {
            if args.name.is_some() {
                let problem = format!("{name}: {from} does not follow a tag");
                return Err(Failure::usage(problem, "name one with --tag"));
            }
            continue;
        };
        let asked =
            from.clone().bare().with_tag(tag).map_err(|error| {
                Failure::usage(format!("{name}: {error}"), "a tag is 1 to 128 of A-Z a-z 0-9 _ . -")
            })?;
        match check_tag(&registries, from, asked) {
            Ok(None) => {}
            Ok(Some((to, pulled))) => {
                let unread = registries.read(from).err().map(|fault| fault.problem);
                checks.moved.push(Moved { name: name.to_owned(), from: from.clone(), to, pulled, unread });
            }
            Err(fault) if args.name.is_some() => return Err(fault.into()),
            Err(fault) => {
                if !args.json {
                    terminal::error(&format!("{name}: {from}: {}", fault.problem), fault.hint());
                }
                checks.failed.push(FailedUpdate { name: name.to_owned(), source: from.to_string(), fault });
            }
        }
    }
    let unread = registries::components(manifest).filter(|(_, reference)| registries.read(reference).is_err());
    checks.unread = unread.map(|(name, _)| name.to_owned()).collect();
    Ok(checks)
}

/// Where a tag leads; pulls a new version.
fn check_tag(
    registries: &Registries<'_>,
    from: &Reference,
    asked: Reference,
) -> Result<Option<(Reference, Pulled)>, AdvisedFault> {
    let digest = registries.resolve(&asked)?;
    let to = asked.with_digest(digest);
    if to == *from {
        return Ok(None);
    }
    let pulled = pull(registries, &to)?;
    Ok(Some((to, pulled)))
}

impl TagChecks {
    /// The text without components that cannot be read, so that the others can be compared.
    fn readable(&self, text: &str, keeps: impl Fn(&str) -> bool) -> String {
        let Ok(mut edit) = ManifestEdit::of(text) else { return text.to_owned() };
        for name in self.unread.iter().filter(|name| !keeps(name)) {
            edit.remove_component(name);
        }
        edit.text()
    }

    /// True if any tag has moved.
    fn moves(&self, name: &str) -> bool {
        self.moved.iter().any(|moved| moved.name == name)
    }

    fn exit(&self) -> Exit {
        if self.failed.is_empty() { Exit::Done } else { Exit::AtFault }
    }

    /// A failure, with the planned changes and earlier failures.
    fn beside(&self, failure: Failure, changes: &[UpdateChange<'_>]) -> Failure {
        let failure = failure.with("changes", changes_json(changes));
        if self.failed.is_empty() { failure } else { failure.with("failed", self.failed_json()) }
    }

    fn failed_json(&self) -> Value {
        let failed = self.failed.iter().map(|FailedUpdate { name, source, fault }| {
            json!({"name": name, "source": source, "problem": fault.problem, "hint": fault.hint().map(shell::named)})
        });
        failed.collect()
    }

    /// The answer, with what was updated.
    fn json(&self, changes: &[UpdateChange<'_>]) -> Value {
        let bridged = self.bridged.iter().map(bridged::BridgeChange::json);
        let updated: Vec<Value> = bridged.chain(changes.iter().map(UpdateChange::json)).collect();
        let mut json = json!({"ok": self.failed.is_empty(), "updated": updated});
        if let (Some(first), Some(members)) = (self.failed.first(), json.as_object_mut()) {
            members.insert("problem".to_owned(), format!("{}: {}", first.name, first.fault.problem).into());
            members.insert("hint".to_owned(), json!(first.fault.hint().map(shell::named)));
            members.insert("failed".to_owned(), self.failed_json());
        }
        json
    }
}

/// Shows how the components differ, and writes lock and manifest if the person agrees.
fn pin(args: &UpdateArgs, file: &ManifestFile, edit: &ManifestEdit, checks: &TagChecks) -> anyhow::Result<Exit> {
    let moved = checks.moved.as_slice();
    let options = || OpenOptions { code: args.code.options(), ..OpenOptions::default() };
    let at_fault = |what: &str| Failure::at_fault(format!("{} {what}, and stays as it is", file.name()), "");
    // A version that cannot be read any more must not prevent comparing others.
    let before = ManifestFile::unwritten(file.path(), checks.readable(file.text(), |_| false));
    let Some((_, ready)) = open_file_or_report(before, options())? else {
        return Err(at_fault("cannot be loaded as it is").into());
    };
    let was = Lock::of(&ready.catalog);
    let imported = imports(&ready, moved);
    // Two engines would need twice the memory.
    drop(ready);
    let after = checks.readable(&edit.text(), |name| checks.moves(name));
    let Some((_, ready)) = open_file_or_report(ManifestFile::unwritten(file.path(), after), options())? else {
        return Err(at_fault("would have these problems").into());
    };
    let now = Lock::of(&ready.catalog);
    let imports = imports(&ready, moved);
    drop(ready);
    let path = lock::path_beside(file.path());
    let locked = lock::read(&path).map_err(Failure::from)?;
    let drifts = drift(locked.as_ref().unwrap_or(&was), &now);
    let mut changes = Vec::with_capacity(moved.len());
    for moved in moved {
        changes.push(UpdateChange {
            moved,
            drift: drifts.iter().find(|drift| drift.component == moved.name).cloned(),
            imports: difference(imported.get(&moved.name), imports.get(&moved.name)),
            recorded: recorded(args, file, moved)?,
        });
    }
    if !args.json {
        changes.iter().try_for_each(|change| terminal::print(&change.text()))?;
    }
    let others = changes.iter().find(|change| change.drift.as_ref().is_some_and(|drift| drift.other_signers));
    if let Some(change) = others.filter(|_| !args.allow_signer_change) {
        let problem = format!("{} is not signed as the lock pins it", change.moved.name);
        let failure = Failure::at_fault(problem, "ask its publisher why; --allow-signer-change takes it");
        return Err(checks.beside(failure, &changes).into());
    }
    let screen = if args.json { Screen::Stderr } else { Screen::Stdout };
    if let Err(error) = agree(file, &edit.text(), args.consent.consent(), screen) {
        return Err(checks.beside(error.downcast()?, &changes).into());
    }
    write(file, edit, moved, locked.as_ref(), &now)?;
    if args.json {
        terminal::print(&format!("{:#}\n", checks.json(&changes)))?;
    } else {
        let pinned = if locked.is_some() { " and its lock pin" } else { " pins" };
        terminal::eprint(&format!("{}{pinned} what is new: {}\n", file.name(), moved.len()));
    }
    Ok(checks.exit())
}

/// How recorded calls of a component end with its new version.
fn recorded(args: &UpdateArgs, file: &ManifestFile, moved: &Moved) -> anyhow::Result<Option<HeldAgainst>> {
    let manifest = manifest_of(file)?;
    let recordings = recordings_of(&manifest, file.path()).join(&moved.name);
    NewVersion { recordings: &recordings, bytes: &moved.pulled.component.bytes, code: &args.code }.against_recordings()
}

fn changes_json(changes: &[UpdateChange<'_>]) -> Value {
    changes.iter().map(UpdateChange::json).collect()
}

/// Writes the lock, if there is one, and finally the manifest.
fn write(
    file: &ManifestFile,
    edit: &ManifestEdit,
    moved: &[Moved],
    locked: Option<&Lock>,
    now: &Lock,
) -> Result<(), Failure> {
    let path = lock::path_beside(file.path());
    if let Some(before) = locked {
        let mut after = before.clone();
        for Moved { name, .. } in moved {
            after.components.extend(now.components.get(name).map(|pinned| (name.clone(), pinned.clone())));
        }
        lock::write(&path, &after)?;
    }
    edit::write(file, &edit.text()).inspect_err(|_| {
        // If this fails, the lock pins a version that the manifest does not name, which is not
        // served.
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

/// Added and removed imports, a line each.
fn difference(was: Option<&BTreeSet<String>>, now: Option<&BTreeSet<String>>) -> Vec<String> {
    let none = BTreeSet::new();
    let was = was.unwrap_or(&none);
    let now = now.unwrap_or(&none);
    let more = now.difference(was).map(|import| format!("imports now {import}"));
    more.chain(was.difference(now).map(|import| format!("imports no longer {import}"))).collect()
}

impl UpdateChange<'_> {
    fn text(&self) -> String {
        let style = terminal::stdout_style();
        let Moved { name, from, to, pulled, unread } = self.moved;
        let mut text = format!("{}\n  was {from}\n  is  {to}\n", terminal::bold(name, style));
        if let Some(problem) = unread {
            text.push_str(&format!("  the one before is served no longer: {}\n", sanitize::line(problem)));
        }
        let differences = self.drift.iter().flat_map(|drift| &drift.differences);
        let left_out = left_out_lines(&pulled.left_out);
        for line in signers(pulled).iter().chain(&left_out).chain(&self.imports).chain(differences) {
            text.push_str(&format!("  {}\n", sanitize::line(line)));
        }
        self.recorded.iter().for_each(|recorded| text.push_str(&recorded.text));
        text.push('\n');
        text
    }

    fn json(&self) -> Value {
        let Moved { name, from, to, pulled, unread } = self.moved;
        let mut json = json_of(to, pulled);
        if let Some(members) = json.as_object_mut() {
            members.insert("name".to_owned(), name.as_str().into());
            members.insert("was".to_owned(), from.to_string().into());
            members.insert("was_problem".to_owned(), json!(unread));
            members.insert("imports".to_owned(), json!(self.imports));
            let differences = self.drift.as_ref().map(|drift| drift.differences.clone()).unwrap_or_default();
            members.insert("differences".to_owned(), json!(differences));
            members.extend(self.recorded.iter().map(|recorded| ("recorded".to_owned(), recorded.json.clone())));
        }
        json
    }
}
