//! `toolcell lock`: pins what the manifest's components are now.
use crate::args::LockArgs;
use crate::commands::diff;
use crate::exit::Exit;
use crate::lock::{self, Lock, LockError, drift};
use crate::project::{Ready, open_or_say};
use crate::terminal;

/// Writes the lock and says what is other than before.
pub fn run(args: &LockArgs) -> anyhow::Result<Exit> {
    let Some((_, ready)) = open_or_say(&args.manifest.manifest, &args.code)? else { return Ok(Exit::AtFault) };
    let path = lock::path_beside(&args.manifest.manifest);
    say_removed(lock::remove_drafts(&path));
    // One that is damaged is what this command mends.
    let before = lock::read(&path).ok().flatten();
    let now = Lock::of(&ready.catalog);
    if before.as_ref() == Some(&now) {
        terminal::print(&format!("{}: nothing differs\n", path.display()))?;
        return Ok(Exit::Done);
    }
    if let Err(error) = lock::write(&path, &now) {
        return Ok(at_fault(&error));
    }
    if let Some(before) = before {
        terminal::print(&diff::page(&drift(&before, &now)))?;
    }
    let (components, tools) = (now.components.len(), now.tools());
    terminal::print(&format!("{}: pinned components: {components}, tools: {tools}\n", path.display()))?;
    Ok(Exit::Done)
}

/// Says that a writer was stopped half-way before.
pub fn say_removed(drafts: usize) {
    if drafts > 0 {
        terminal::say("note: a draft of the lock file, left by a process that was stopped, was removed\n");
    }
}

/// Says what is wrong with a lock.
pub fn at_fault(error: &LockError) -> Exit {
    terminal::error(&error.to_string(), Some(error.hint()));
    Exit::AtFault
}

/// The lock that alone is served; says why there is none.
pub fn locked_or_say(manifest: &std::path::Path) -> Option<Lock> {
    let path = lock::path_beside(manifest);
    match lock::read(&path) {
        Ok(Some(locked)) => return Some(locked),
        Ok(None) => {
            let problem = format!("there is no {}, and --locked serves nothing else", path.display());
            terminal::error(&problem, Some("write it with `toolcell lock`, read it, and keep it in version control"));
        }
        Err(error) => drop(at_fault(&error)),
    }
    None
}

/// True if what was opened may be served as the lock has it; says why not.
pub fn holds_or_say(manifest: &std::path::Path, locked: &Lock, ready: &Ready) -> bool {
    let withheld = &ready.withheld;
    let is_withheld = |drift: &lock::Drift| withheld.iter().any(|held| held.name == drift.component);
    let unread =
        withheld.iter().map(|held| lock::withheld(locked, &held.name, (&held.digest, held.bytes.len() as u64)));
    let drifts = drift(locked, &Lock::of(&ready.catalog)).into_iter().filter(|drift| !is_withheld(drift));
    let drifts: Vec<_> = unread.chain(drifts).collect();
    if drifts.is_empty() {
        return true;
    }
    let path = lock::path_beside(manifest);
    terminal::error(&format!("what would be served is not what {} pins", path.display()), None);
    terminal::say(&diff::page(&drifts));
    terminal::say("\nhint: `toolcell approve NAME` pins one of them as it is now, `toolcell lock` all\n");
    false
}
