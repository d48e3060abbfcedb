//! `toolcell lock`: pins the manifest's components as they are now.
use toolcell_server::lock::{self, Lock, LockError, drift};

use crate::args::LockArgs;
use crate::exit::Exit;
use crate::lock_text::{differences, lock_at_fault, report_removed};
use crate::manifest::open_or_report;
use crate::terminal;

/// Writes the lock and prints the differences from before.
pub fn run(args: &LockArgs) -> anyhow::Result<Exit> {
    let Some((_, ready)) = open_or_report(&args.manifest.manifest, &args.code)? else { return Ok(Exit::AtFault) };
    let path = lock::path_beside(&args.manifest.manifest);
    report_removed(lock::remove_drafts(&path));
    let before = match lock::read(&path) {
        Ok(before) => before,
        Err(error @ LockError::Foreign { .. }) => return Ok(lock_at_fault(&error)),
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
        terminal::error(&problem, Some("ask its publisher why; --allow-signer-change pins it"));
        return Ok(Exit::AtFault);
    }
    if let Err(error) = lock::write(&path, &now) {
        return Ok(lock_at_fault(&error));
    }
    terminal::print(&differences(&drifts))?;
    let components = now.components.len();
    let tools = now.tools();
    terminal::print(&format!("{}: pinned components: {components}, tools: {tools}\n", path.display()))?;
    Ok(Exit::Done)
}
