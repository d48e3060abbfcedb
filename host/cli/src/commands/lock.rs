//! `toolcell lock`: pins the manifest's components as they are now.
use toolcell_server::lock::{self, Lock, LockError, drift};

use crate::args::LockArgs;
use crate::exit::{Exit, Failure};
use crate::lock_text::{differences, report_removed};
use crate::manifest::open_or_report;
use crate::terminal;

/// Writes the lock and prints the differences from before.
pub fn run(args: &LockArgs) -> anyhow::Result<Exit> {
    let (_, ready) = open_or_report(&args.manifest.manifest, &args.code)?;
    let path = lock::path_beside(&args.manifest.manifest);
    report_removed(lock::remove_drafts(&path));
    let before = match lock::read(&path) {
        Ok(before) => before,
        Err(error @ LockError::Foreign { .. }) => return Err(Failure::from(error).into()),
        // This command replaces a damaged lock.
        Err(_) => None,
    };
    let now = Lock::of(&ready.catalog);
    if before.as_ref() == Some(&now) {
        terminal::print(&format!("{}: nothing differs\n", path.display()))?;
        return Ok(Exit::Done);
    }
    let drifts = before.as_ref().map(|before| drift(before, &now)).unwrap_or_default();
    if let Some(other) = drifts.iter().find(|drift| drift.other_signers && !args.allow_signer_change) {
        terminal::eprint(&differences(&drifts));
        let problem = format!("{} is not signed as {} pins it", other.component, path.display());
        return Err(Failure::at_fault(problem, "ask its publisher why; --allow-signer-change pins it").into());
    }
    lock::write(&path, &now).map_err(Failure::from)?;
    terminal::print(&differences(&drifts))?;
    let components = now.components.len();
    let tools = now.tools();
    terminal::print(&format!("{}: pinned components: {components}, tools: {tools}\n", path.display()))?;
    Ok(Exit::Done)
}
