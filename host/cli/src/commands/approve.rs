//! `toolcell approve`: pins one component as it is now, so that servers lift its quarantine.
use std::path::Path;

use serde_json::Value;
use toolcell_server::catalog::Catalog;
use toolcell_server::control::{Request, Unreachable, ask_all, served};
use toolcell_server::lock::{self, Approval, Lock, drift};
use toolcell_server::reload::LOCK_UNWRITABLE;

use crate::args::ApproveArgs;
use crate::commands::registries::read_manifest;
use crate::commands::reload;
use crate::commands::replay::{HeldAgainst, NewVersion, component_bytes, recordings_of};
use crate::exit::{Exit, Failure};
use crate::lock_text::{self, differences, report_removed};
use crate::manifest::open_or_report;
use crate::terminal;

/// Lets the processes that serve pinned components approve; without any, writes the lock here.
pub fn run(args: &ApproveArgs) -> anyhow::Result<Exit> {
    match answers(args) {
        Ok(Some(answers)) if answers.iter().any(is_unwritable) => {
            // A service may only read its configuration. The user who runs this command may be able
            // to write it.
            let pinned = pin_here(args)?;
            if !matches!(pinned, Exit::Done) {
                return Ok(pinned);
            }
            let answers = ask_all(&args.control, &args.manifest.manifest, &Request::Reload).map_err(Failure::from)?;
            reload::show(&answers, false)
        }
        Ok(Some(answers)) => reload::show(&answers, false),
        Ok(None) | Err(Unreachable::Nobody(_)) => pin_here(args),
        Err(error) => Err(Failure::from(error).into()),
    }
}

/// How recorded calls of a component end with it as it is now, if there are some.
fn recorded(args: &ApproveArgs, path: &Path, component: &str) -> anyhow::Result<Option<HeldAgainst>> {
    let Ok((_, manifest)) = read_manifest(path) else { return Ok(None) };
    let recordings = recordings_of(&manifest, path).join(component);
    // One of toolcell itself, or none that is there any more.
    let Ok(bytes) = component_bytes(path, component) else { return Ok(None) };
    NewVersion { recordings: &recordings, bytes: &bytes, code: &args.code }.against_recordings()
}

/// Loads the components here, and pins the one that is meant.
fn pin_here(args: &ApproveArgs) -> anyhow::Result<Exit> {
    let manifest = served(&args.manifest.manifest);
    let (_, ready) = open_or_report(manifest, &args.code)?;
    pin(args, manifest, &ready.catalog)
}

/// True if a process was asked to approve, but cannot write the lock.
fn is_unwritable(answer: &Value) -> bool {
    answer.pointer("/problems/0/code").is_some_and(|code| code == LOCK_UNWRITABLE)
}

/// Answers of the processes; `None` if none of them serves by the lock or has something
/// quarantined.
fn answers(args: &ApproveArgs) -> Result<Option<Vec<Value>>, Unreachable> {
    let ask = |request| ask_all(&args.control, &args.manifest.manifest, &request);
    let holds = |status: &Value| status["quarantined"].as_array().is_some_and(|held| !held.is_empty());
    if ask(Request::Status)?.iter().all(|status| status["locked"] == false && !holds(status)) {
        return Ok(None);
    }
    ask(Request::Approve(approval(args))).map(Some)
}

fn approval(args: &ApproveArgs) -> Approval {
    let name = args.name.clone();
    let digest = args.digest.clone();
    Approval { name, digest, allow_signer_change: args.allow_signer_change }
}

fn pin(args: &ApproveArgs, manifest: &Path, catalog: &Catalog) -> anyhow::Result<Exit> {
    let approval = &approval(args);
    let path = lock::path_beside(manifest);
    report_removed(lock::remove_drafts(&path));
    let mut locked = lock_text::read(&path, manifest)?;
    let now = Lock::of(catalog);
    let name = approval.name.as_str();
    let found = now.component_named(name).or_else(|| locked.component_named(name)).map(str::to_owned);
    let Some(component) = found else {
        let problem = format!("no component and no tool is called {name:?}");
        return Err(Failure::usage(problem, "`toolcell list` shows both").into());
    };
    let drifts: Vec<_> = drift(&locked, &now).into_iter().filter(|drift| drift.component == component).collect();
    let digest = now.components.get(&component).map_or("", |now| now.digest.as_str());
    approval
        .check(&component, digest)
        .map_err(|problem| Failure::at_fault(problem, "`toolcell diff` shows how it differs now"))?;
    if drifts.is_empty() {
        terminal::print(&format!("{component}: nothing differs\n"))?;
        return Ok(Exit::Done);
    }
    match now.components.get(&component) {
        Some(pinned) => {
            approval
                .check_signers(&component, locked.components.get(&component), pinned)
                .map_err(|problem| Failure::at_fault(problem, "`toolcell diff` shows who signed it now"))?;
            locked.components.insert(component.clone(), pinned.clone());
        }
        None => drop(locked.components.remove(&component)),
    }
    lock::write(&path, &locked).map_err(Failure::from)?;
    let recorded = recorded(args, manifest, &component)?;
    let recorded = recorded.map(|recorded| recorded.text).unwrap_or_default();
    terminal::print(&format!("{}{recorded}{component}: pinned in {}\n", differences(&drifts), path.display()))?;
    Ok(Exit::Done)
}
