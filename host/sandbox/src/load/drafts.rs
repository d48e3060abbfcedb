//! Drafts: files that a process writes under another name before it renames them, and the leftovers
//! of a process that was stopped halfway.
use std::fs;
use std::path::Path;

/// The suffix of a draft's name. Before it come the name of the finished file and the id of the
/// process that writes it.
pub(crate) const SUFFIX: &str = ".new";

/// Removes the drafts in this folder whose names begin with `begin` and whose writers are gone.
/// Returns their number.
///
/// A writer in another process namespace looks gone. It then fails to rename its draft, as on a
/// full disk.
pub fn remove_abandoned(folder: &Path, begin: &str) -> usize {
    let Ok(listing) = fs::read_dir(folder) else { return 0 };
    let abandoned = listing.flatten().filter(|entry| {
        let writer = entry.file_name().to_str().and_then(|name| writer(name, begin));
        writer.is_some_and(|process| !is_alive(process))
    });
    abandoned.filter(|entry| fs::remove_file(entry.path()).is_ok()).count()
}

/// The process in `BEGIN….PROCESS.new` or `BEGIN….PROCESS-NUMBER.new`.
fn writer(name: &str, begin: &str) -> Option<i32> {
    let (_, writer) = name.strip_suffix(SUFFIX).filter(|name| name.starts_with(begin))?.rsplit_once('.')?;
    let (process, number) = writer.split_once('-').unwrap_or((writer, "0"));
    number.parse::<u64>().ok()?;
    process.parse().ok()
}

fn is_alive(process: i32) -> bool {
    let Some(process) = rustix::process::Pid::from_raw(process) else { return false };
    rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_drafts_of_processes_that_are_gone_go() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::process::id();
        // No process has the id 2000000000: it is past Linux's range.
        let stays = ["a.cwasm".to_owned(), format!("a.{own}-1.new"), "a.new".to_owned(), "b.2000000000.new".to_owned()];
        let goes = ["a.2000000000-7.new".to_owned(), "a.2000000000.new".to_owned()];
        for name in stays.iter().chain(&goes) {
            fs::write(folder.path().join(name), "half").unwrap();
        }
        assert_eq!(remove_abandoned(folder.path(), "a"), goes.len());
        assert!(stays.iter().all(|name| folder.path().join(name).exists()));
        assert!(goes.iter().all(|name| !folder.path().join(name).exists()));
    }
}
