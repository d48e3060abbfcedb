//! Bridges whose servers list other tools now: shown in words, and taken once a person agrees.
//!
//! The new component is placed next to the old one while it is compared. Then the lock is written,
//! and the file of the old one is replaced last.
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcell_bridge::ToolDefinition;
use toolcell_mcp::sanitize;
use toolcell_policy::edit::ManifestEdit;
use toolcell_policy::{AdvisedFault, Manifest};
use toolcell_server::catalog::folder_of;
use toolcell_server::file::write_whole;
use toolcell_server::lock::{self, Drift, Lock, LockPath, drift};
use toolcell_server::{ManifestFile, OpenOptions};

use super::FailedUpdate;
use crate::args::UpdateArgs;
use crate::commands::add::bridge::component;
use crate::commands::add::texts::changed_tools;
use crate::commands::remotes::KnownBridge;
use crate::edit::agrees_or_reports;
use crate::exit::Failure;
use crate::manifest::open_file_or_report;
use crate::naming::relative;
use crate::terminal;

/// What became of the bridges.
#[derive(Default)]
pub struct BridgedUpdate {
    pub changes: Vec<BridgeChange>,
    pub failed: Vec<FailedUpdate>,
}

/// A bridge with other tools.
pub struct BridgeChange {
    name: String,
    url: String,
    differences: Vec<String>,
    /// The tools that are new or changed, with the prefix of their names.
    tools: Vec<ToolDefinition>,
    prefix: String,
    /// Tools of the list that are not taken, with the reason.
    left_out: Vec<String>,
}

/// A new component beside the old one. It is removed again, unless it took its place.
struct StagedBridge<'b> {
    bridge: &'b KnownBridge<'b>,
    path: PathBuf,
    tools: Vec<ToolDefinition>,
    left_out: Vec<String>,
}

/// Reads the lists again, and shows, asks and writes what is new.
pub fn update(
    args: &UpdateArgs,
    file: &ManifestFile,
    manifest: &Manifest,
    bridges: &[KnownBridge<'_>],
) -> anyhow::Result<BridgedUpdate> {
    let folder = folder_of(file.path());
    let mut update = BridgedUpdate::default();
    let mut staged = Vec::new();
    for bridge in bridges {
        match bridge.changed(manifest, &folder) {
            Ok(None) => {}
            Ok(Some(now)) => {
                let left_out = now.left_out.iter().map(|left| format!("left out: {} {}", left.operation, left.reason));
                let bytes = component(&now, args.bridge.as_deref())?;
                let path = bridge.path.with_extension("new.wasm");
                let tools = bridge.new_or_changed(&now);
                let one = StagedBridge { bridge, path, tools, left_out: left_out.collect() };
                one.write(&bytes)?;
                staged.push(one);
            }
            Err(fault) if args.name.is_some() => return Err(Failure::from(fault).into()),
            Err(fault) => update.failed.push(failed(args, bridge, fault)),
        }
    }
    if !staged.is_empty() {
        update.changes = take(args, file, &folder, staged)?;
    }
    Ok(update)
}

fn failed(args: &UpdateArgs, bridge: &KnownBridge<'_>, fault: AdvisedFault) -> FailedUpdate {
    let name = bridge.component.name().to_owned();
    if !args.json {
        terminal::error(&format!("{name}: {}", fault.problem), fault.hint());
    }
    FailedUpdate { name, source: bridge.server.url.clone(), fault }
}

/// Compares the new components with the pinned ones, asks, and puts them in their place.
fn take(
    args: &UpdateArgs,
    file: &ManifestFile,
    folder: &Path,
    staged: Vec<StagedBridge<'_>>,
) -> anyhow::Result<Vec<BridgeChange>> {
    let path = lock::path_beside(file.path());
    let locked = lock::read(&path).map_err(Failure::from)?;
    let was = match &locked {
        Some(locked) => locked.clone(),
        None => loaded(args, file, file.text())?,
    };
    let now = with_new(args, file, folder, &staged)?;
    let drifts = drift(&was, &now);
    let changes: Vec<BridgeChange> = staged.iter().map(|staged| staged.change(&drifts)).collect();
    if !args.json {
        changes.iter().try_for_each(|change| terminal::print(&change.text()))?;
    }
    let names = changes.iter().map(|change| change.name.as_str()).collect::<Vec<_>>().join(", ");
    let question = format!("Take the new tools of {names}?");
    if let Err(error) = agrees_or_reports(file.name(), &question, args.consent.consent()) {
        let failure: Failure = error.downcast()?;
        return Err(failure.with("changes", changes.iter().map(BridgeChange::json).collect()).into());
    }
    place(&path, locked.as_ref(), &now, staged)?;
    if !args.json {
        terminal::eprint(&format!("{}: {names} has the tools of now\n", file.name()));
    }
    Ok(changes)
}

/// What the manifest would pin with the new components.
fn with_new(
    args: &UpdateArgs,
    file: &ManifestFile,
    folder: &Path,
    staged: &[StagedBridge<'_>],
) -> anyhow::Result<Lock> {
    let wrong = |problem: String| Failure::at_fault(problem, "");
    let mut edit = ManifestEdit::of(file.text()).map_err(wrong)?;
    for staged in staged {
        edit.set_source(staged.bridge.component.name(), &relative(folder, &staged.path)?);
    }
    let mut now = loaded(args, file, &edit.text())?;
    let before = ManifestEdit::of(file.text()).map_err(wrong)?;
    for staged in staged {
        let name = staged.bridge.component.name();
        if let (Some(pinned), Some(source)) = (now.components.get_mut(name), before.source(name)) {
            source.clone_into(&mut pinned.source);
        }
    }
    Ok(now)
}

fn loaded(args: &UpdateArgs, file: &ManifestFile, text: &str) -> anyhow::Result<Lock> {
    let options = OpenOptions { code: args.code.options(), ..OpenOptions::default() };
    match open_file_or_report(ManifestFile::unwritten(file.path(), text.to_owned()), options)? {
        Some((_, ready)) => Ok(Lock::of(&ready.catalog)),
        None => {
            Err(Failure::at_fault(format!("{} would have these problems, and stays as it is", file.name()), "").into())
        }
    }
}

/// Writes the lock, if there is one, and finally the components.
fn place(path: &LockPath, locked: Option<&Lock>, now: &Lock, staged: Vec<StagedBridge<'_>>) -> Result<(), Failure> {
    if let Some(before) = locked {
        let mut after = before.clone();
        for staged in &staged {
            let name = staged.bridge.component.name();
            after.components.extend(now.components.get(name).map(|pinned| (name.to_owned(), pinned.clone())));
        }
        lock::write(path, &after)?;
    }
    for staged in staged {
        staged.take_place().inspect_err(|_| {
            // If this fails, the lock pins tools that no file has, which are not served.
            let _ = locked.map(|before| lock::write(path, before));
        })?;
    }
    Ok(())
}

impl StagedBridge<'_> {
    fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        write_whole(&self.path, bytes).map_err(|error| self.unwritable(&error))
    }

    fn change(&self, drifts: &[Drift]) -> BridgeChange {
        let name = self.bridge.component.name();
        let drift = drifts.iter().find(|drift| drift.component == name);
        BridgeChange {
            name: name.to_owned(),
            url: self.bridge.server.url.clone(),
            differences: drift.map(|drift| drift.differences.clone()).unwrap_or_default(),
            tools: self.tools.clone(),
            prefix: self.bridge.server.selection.prefix.clone(),
            left_out: self.left_out.clone(),
        }
    }

    fn take_place(self) -> Result<(), Failure> {
        fs::rename(&self.path, &self.bridge.path).map_err(|error| self.unwritable(&error))
    }

    fn unwritable(&self, error: &std::io::Error) -> Failure {
        let problem = format!("{} cannot be written: {error}", self.path.display());
        Failure::at_fault(problem, "is the folder writable, and the disk not full?")
    }
}

impl Drop for StagedBridge<'_> {
    fn drop(&mut self) {
        // It is gone if it took its place.
        let _ = fs::remove_file(&self.path);
    }
}

impl BridgeChange {
    fn text(&self) -> String {
        let mut text = format!("{}\n  lists {}\n", terminal::bold(&self.name, terminal::stdout_style()), self.url);
        for line in self.differences.iter().chain(&self.left_out) {
            text.push_str(&format!("  {}\n", sanitize::line(line)));
        }
        text.push_str(&changed_tools(&self.tools, &self.prefix));
        text.push('\n');
        text
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "source": self.url,
            "differences": self.differences,
            "tools": self.tools,
            "left_out": self.left_out,
        })
    }
}
