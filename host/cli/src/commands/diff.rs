//! `toolcell diff`: differences of the manifest's components from the pinned ones, in words.
use serde_json::{Value, json};
use toolcell_server::lock::{self, Drift, Lock, drift};

use crate::args::DiffArgs;
use crate::exit::Exit;
use crate::lock_text::{self, differences};
use crate::manifest::open_or_report;
use crate::terminal;

/// Compares and prints. Ends with 1 if anything differs.
pub fn run(args: &DiffArgs) -> anyhow::Result<Exit> {
    let path = lock::path_beside(&args.manifest.manifest);
    let locked = lock_text::read(&path, &args.manifest.manifest)?;
    let (_, ready) = open_or_report(&args.manifest.manifest, &args.code)?;
    let drifts = drift(&locked, &Lock::of(&ready.catalog));
    if args.json {
        terminal::print(&format!("{:#}\n", json!({"differs": !drifts.is_empty(), "components": list(&drifts)})))?;
    } else if drifts.is_empty() {
        terminal::print(&format!("{}: nothing differs\n", path.display()))?;
    } else {
        terminal::print(&differences(&drifts))?;
    }
    Ok(if drifts.is_empty() { Exit::Done } else { Exit::AtFault })
}

fn list(drifts: &[Drift]) -> Vec<Value> {
    let shown = drifts.iter().map(
        |drift| json!({"component": drift.component, "differences": drift.differences, "only_less": drift.only_less}),
    );
    shown.collect()
}
