//! Disks that a sandbox process may write to. Its own count of a quota binds guests, but not native
//! code in it, so the host counts from outside.
//!
//! Promise: folders are bounded behind walls too.
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use toolcell_policy::quantity::show_bytes;
use toolcell_walls::folder::Amount;

use super::process::SandboxProcess;
use crate::files::WrittenFolder;

/// How often the host counts while calls run.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// How often it counts while none runs.
const POLL_WHEN_IDLE_EVERY: Duration = Duration::from_secs(10);

/// Counting takes at most this fraction of the time.
const PART_OF_THE_TIME: u32 = 50;

/// Bytes that a folder may hold past the quota, since other programs may write there, too.
const SLACK_BYTES: u64 = 256 << 20;

/// Names past the quota.
const SLACK_FILES: u64 = 10_000;

/// Entries that a folder may have when the process starts. One with more is not counted.
const FILES_AT_FIRST_MAX: u64 = 1_000_000;

/// Counts in a row during which folders in a folder were moved. An honest component moves folders
/// that are nested deeply now and then; one that always does hides what it writes.
const MOVED_MAX: u32 = 20;

/// The folders that processes write to, with the growth that those caused. It survives a process,
/// so the next one may only add what is left.
#[derive(Default)]
pub(super) struct Disks(Mutex<HashMap<FolderId, SharedGrowth>>);

/// The device and number of a folder.
type FolderId = (u64, u64);

type SharedGrowth = Arc<Mutex<Growth>>;

/// The growth of one folder.
#[derive(Default)]
struct Growth {
    /// Amount that is not from these processes; `None` before the first count.
    before: Option<Amount>,
    /// Amount at the last count.
    last: Amount,
    /// Processes that are watched.
    processes: usize,
    /// Counts in a row that could not end, since folders were moved meanwhile.
    moved: u32,
    /// The last count exceeded the bound.
    is_over: bool,
}

impl Disks {
    /// The folders with their growth so far.
    pub(super) fn watched(&self, folders: Vec<WrittenFolder>) -> Vec<WatchedFolder> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut growth = |folder: &WrittenFolder| match (folder, folder.identity()) {
            (WrittenFolder::Mount { .. }, Ok(identity)) => Arc::clone(known.entry(identity).or_default()),
            // A process has its scratch space for itself.
            _ => Arc::default(),
        };
        folders.into_iter().map(|folder| WatchedFolder { growth: growth(&folder), folder }).collect()
    }
}

/// Why no process may start, if a folder already holds too much. Only folders that were over their
/// bound are counted again.
pub(super) async fn refusal(folders: Vec<WatchedFolder>) -> (Vec<WatchedFolder>, Option<String>) {
    if folders.iter().all(|folder| !folder.lock().is_over) {
        return (folders, None);
    }
    let looked = tokio::task::spawn_blocking(move || {
        let found = folders.iter().filter(|folder| folder.lock().is_over).find_map(|folder| folder.check(0));
        (folders, found)
    });
    looked.await.unwrap_or_else(|_| (Vec::new(), Some("its folders cannot be counted".to_owned())))
}

/// Ends the process once a folder that it writes to has grown by more than its quota and a slack.
/// No honest process does that, whatever the folder held before.
pub(super) async fn watch(process: Weak<SandboxProcess>, mut folders: Vec<WatchedFolder>) {
    let mut wait = Duration::ZERO;
    let mut calls = 0;
    let mut is_first = true;
    loop {
        tokio::time::sleep(wait).await;
        let running = process.upgrade().filter(|process| !process.is_ended());
        let has_ended = running.is_none();
        let now = running.map_or(0, |process| process.load() as u64);
        // A call that has ended may still be removing its scratch space.
        let calls_at_most = now.saturating_add(calls).saturating_add(1);
        calls = now;
        let began = Instant::now();
        let looked = tokio::task::spawn_blocking(move || {
            if is_first {
                folders.iter().for_each(WatchedFolder::begin);
            }
            let mut found = None;
            for folder in &folders {
                found = folder.check(calls_at_most).or(found);
                if has_ended {
                    folder.end();
                }
            }
            (folders, found)
        });
        let Ok((back, found)) = looked.await else { return };
        (folders, is_first) = (back, false);
        if has_ended {
            return;
        }
        if let (Some(problem), Some(process)) = (found, process.upgrade()) {
            // Counts what it wrote until then.
            process.kill(&problem);
            continue;
        }
        let least = if now == 0 { POLL_WHEN_IDLE_EVERY } else { POLL_EVERY };
        wait = least.max(began.elapsed() * PART_OF_THE_TIME);
    }
}

/// A folder of a process.
pub(super) struct WatchedFolder {
    folder: WrittenFolder,
    growth: SharedGrowth,
}

impl WatchedFolder {
    fn lock(&self) -> MutexGuard<'_, Growth> {
        self.growth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process begins to write to it. Before that, all growth came from others.
    fn begin(&self) {
        let mut growth = self.lock();
        growth.processes += 1;
        let Growth { before: Some(before), last, processes: 1, .. } = *growth else { return };
        if let Ok(Some(now)) = self.folder.count(last.files.max(FILES_AT_FIRST_MAX)) {
            growth.before = Some(Amount {
                bytes: before.bytes.saturating_add(now.bytes.saturating_sub(last.bytes)),
                files: before.files.saturating_add(now.files.saturating_sub(last.files)),
            });
        }
    }

    /// A process has ended and was counted for the last time.
    fn end(&self) {
        let mut growth = self.lock();
        growth.processes = growth.processes.saturating_sub(1);
    }

    /// Counts it. Returns a sentence if it is too large.
    fn check(&self, calls: u64) -> Option<String> {
        let quota = self.folder.quota(calls);
        let mut growth = self.lock();
        let before = growth.before.unwrap_or(Amount { bytes: 0, files: FILES_AT_FIRST_MAX });
        let bytes_max = before.bytes.saturating_add(quota.bytes).saturating_add(SLACK_BYTES);
        let files_max = before.files.saturating_add(quota.files).saturating_add(SLACK_FILES);
        let counted = match self.folder.count(files_max) {
            Ok(counted) => counted,
            Err(error) => return self.uncounted(&mut growth, &error),
        };
        growth.moved = 0;
        let found = match (counted, growth.before) {
            (Some(now), Some(before)) if now.bytes <= bytes_max => {
                let bytes = before.bytes.min(now.bytes);
                let files = before.files.min(now.files);
                (growth.before, growth.last) = (Some(Amount { bytes, files }), now);
                None
            }
            (Some(now), None) => {
                (growth.before, growth.last) = (Some(now), now);
                None
            }
            (None, None) => None,
            (_, Some(_)) => Some(format!(
                "{} grew by more than its quota of {} and {} files",
                self.folder.shown(),
                show_bytes(quota.bytes),
                quota.files
            )),
        };
        growth.is_over = found.is_some();
        found
    }

    /// What cannot be read now may be readable later. Returns a sentence if folders were moved
    /// during every count of late.
    fn uncounted(&self, growth: &mut Growth, error: &io::Error) -> Option<String> {
        if error.kind() != io::ErrorKind::ResourceBusy {
            return None;
        }
        growth.moved = growth.moved.saturating_add(1);
        (growth.moved > MOVED_MAX)
            .then(|| format!("{} cannot be counted: folders in it are always moved meanwhile", self.folder.shown()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use cap_std::ambient_authority;
    use cap_std::fs::Dir;
    use toolcell_policy::Quota;

    use super::*;

    const QUOTA: Quota = Quota { bytes: 1 << 20, files: 10 };

    fn watched(folder: &tempfile::TempDir) -> WatchedFolder {
        watched_on(&Disks::default(), folder)
    }

    fn watched_on(disks: &Disks, folder: &tempfile::TempDir) -> WatchedFolder {
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        let mount = WrittenFolder::Mount { guest: "/out".to_owned(), dir: Arc::new(dir), quota: QUOTA };
        disks.watched(vec![mount]).remove(0)
    }

    fn grow(folder: &tempfile::TempDir, name: &str, bytes: u64) {
        std::fs::File::create(folder.path().join(name)).unwrap().set_len(bytes).unwrap();
    }

    #[test]
    fn a_folder_may_grow_by_its_quota_whatever_was_in_it_and_not_by_much_more() {
        let folder = tempfile::tempdir().unwrap();
        grow(&folder, "theirs", 1 << 40);
        let watched = watched(&folder);
        assert_eq!(watched.check(0), None, "what was there before");
        grow(&folder, "ours", QUOTA.bytes + SLACK_BYTES);
        assert_eq!(watched.check(0), None);
        grow(&folder, "one byte more", 1);
        let problem = watched.check(0).unwrap();
        assert_eq!(problem, "the folder /out grew by more than its quota of 1MiB and 10 files");
        std::fs::remove_file(folder.path().join("theirs")).unwrap();
        assert_eq!(watched.check(0), None, "it shrank");
        grow(&folder, "theirs", 1 << 40);
        assert!(watched.check(0).is_some(), "and grew again");
    }

    #[test]
    fn names_are_counted_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let watched = watched(&folder);
        assert_eq!(watched.check(0), None);
        for name in 0..=QUOTA.files + SLACK_FILES {
            grow(&folder, &name.to_string(), 0);
        }
        assert!(watched.check(0).is_some());
    }

    #[test]
    fn folders_that_are_always_moved_hide_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let watched = watched(&folder);
        let moved = || watched.uncounted(&mut watched.lock(), &io::ErrorKind::ResourceBusy.into());
        let unreadable = || watched.uncounted(&mut watched.lock(), &io::ErrorKind::PermissionDenied.into());
        for _ in 0..3 {
            assert!((0..MOVED_MAX).all(|_| moved().is_none() && unreadable().is_none()));
            assert_eq!(watched.check(0), None, "a count that ends begins anew");
        }
        assert!((0..MOVED_MAX).all(|_| moved().is_none()));
        assert_eq!(moved().unwrap(), "the folder /out cannot be counted: folders in it are always moved meanwhile");
    }

    #[test]
    fn depth_hides_nothing_and_is_not_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join(["d"; 100].join("/"));
        std::fs::create_dir_all(&deep).unwrap();
        let watched = watched(&folder);
        assert_eq!(watched.check(0), None, "another program made them");
        std::fs::create_dir_all(deep.join(["d"; 100].join("/"))).unwrap();
        assert_eq!(watched.check(0), None, "a guest made more of them");
        let file = std::fs::File::create(deep.join("large")).unwrap();
        file.set_len(QUOTA.bytes + SLACK_BYTES + 1).unwrap();
        assert!(watched.check(0).is_some());
    }

    #[test]
    fn one_process_after_the_other_may_add_the_quota_once_and_others_do_not_count() {
        let disks = Disks::default();
        let folder = tempfile::tempdir().unwrap();
        let before = 1 << 40;
        let others = 1 << 41;
        grow(&folder, "theirs", before);
        let first = watched_on(&disks, &folder);
        first.begin();
        assert_eq!(first.check(0), None);
        grow(&folder, "ours", QUOTA.bytes + SLACK_BYTES);
        assert_eq!(first.check(0), None);
        first.end();
        grow(&folder, "theirs later", others);
        let second = watched_on(&disks, &folder);
        second.begin();
        assert_eq!(second.check(0), None);
        grow(&folder, "ours again", 1);
        assert!(second.check(0).is_some());
        second.end();
    }

    #[tokio::test]
    async fn a_folder_that_stays_over_its_bound_refuses_the_next_process() {
        let disks = Disks::default();
        let folder = tempfile::tempdir().unwrap();
        let watched = watched_on(&disks, &folder);
        assert_eq!(watched.check(0), None);
        grow(&folder, "large", QUOTA.bytes + SLACK_BYTES + 1);
        assert_eq!(refusal(vec![watched_on(&disks, &folder)]).await.1, None, "nobody has counted yet");
        let problem = watched.check(0).unwrap();
        let (folders, refused) = refusal(vec![watched]).await;
        assert_eq!(refused.unwrap(), problem);
        std::fs::remove_file(folder.path().join("large")).unwrap();
        assert_eq!(refusal(folders).await.1, None, "it was tidied");
    }
}
