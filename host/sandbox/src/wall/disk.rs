//! Disks that a sandbox process may write to. Its own count of a quota binds the guests, not native
//! code in it: so the host counts from outside. Must not hold: the count that guests are held to.
use std::sync::Weak;
use std::time::{Duration, Instant};

use toolcell_policy::quantity::show_bytes;

use super::process::SandboxProcess;
use crate::wasi::files::{Amount, WrittenFolder};

/// Interval at which the host counts, while calls run.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Interval of it while none runs.
const LOOK_WHEN_IDLE_EVERY: Duration = Duration::from_secs(10);

/// Counting takes at most this part of the time.
const PART_OF_THE_TIME: u32 = 50;

/// Bytes past the quota that a folder may come to hold: other programs may write there as well.
const SLACK_BYTES: u64 = 256 << 20;

/// Names past the quota.
const SLACK_FILES: u64 = 10_000;

/// Names that a folder may hold when the process starts: one with more is not counted.
const FILES_AT_FIRST_MAX: u64 = 1_000_000;

/// Ends the process once a folder that it writes to has grown by more than its quota and a slack.
/// No honest process makes one grow so, whatever it held before.
pub(crate) async fn watch(process: Weak<SandboxProcess>, folders: Vec<WrittenFolder>) {
    let mut folders: Vec<Watched> = folders.into_iter().map(Watched::new).collect();
    let (mut wait, mut calls) = (Duration::ZERO, 0);
    loop {
        tokio::time::sleep(wait).await;
        let now = match process.upgrade().filter(|process| !process.is_ended()) {
            Some(process) => process.load() as u64,
            None => return,
        };
        // A call that has ended may still be leaving its scratch space.
        let calls_at_most = now.saturating_add(calls).saturating_add(1);
        calls = now;
        let began = Instant::now();
        let looked = tokio::task::spawn_blocking(move || {
            let found = folders.iter_mut().find_map(|folder| folder.look(calls_at_most));
            (folders, found)
        });
        let Ok((back, found)) = looked.await else { return };
        folders = back;
        if let (Some(problem), Some(process)) = (found, process.upgrade()) {
            process.kill(&problem);
            return;
        }
        let least = if now == 0 { LOOK_WHEN_IDLE_EVERY } else { LOOK_EVERY };
        wait = least.max(began.elapsed() * PART_OF_THE_TIME);
    }
}

/// A folder, with the least that it held since the process began.
struct Watched {
    folder: WrittenFolder,
    least: Option<Amount>,
}

impl Watched {
    fn new(folder: WrittenFolder) -> Self {
        Self { folder, least: None }
    }

    /// Counts it; a sentence on what is wrong, where anything is.
    fn look(&mut self, calls: u64) -> Option<String> {
        let quota = self.folder.quota(calls);
        let before = self.least.unwrap_or(Amount { bytes: 0, files: FILES_AT_FIRST_MAX });
        let bytes_max = before.bytes.saturating_add(quota.bytes).saturating_add(SLACK_BYTES);
        let files_max = before.files.saturating_add(quota.files).saturating_add(SLACK_FILES);
        match (self.folder.measure(files_max), self.least) {
            (Ok(Some(now)), Some(least)) if now.bytes <= bytes_max => {
                let (bytes, files) = (least.bytes.min(now.bytes), least.files.min(now.files));
                self.least = Some(Amount { bytes, files });
                None
            }
            (Ok(Some(now)), None) => {
                self.least = Some(now);
                None
            }
            (Ok(_), Some(_)) => Some(format!(
                "a folder that it writes to grew by more than its quota of {} and {} files",
                show_bytes(quota.bytes),
                quota.files
            )),
            // What cannot be read now may be later.
            (Ok(None), None) | (Err(_), _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use cap_std::ambient_authority;
    use cap_std::fs::Dir;
    use toolcell_policy::Quota;

    use super::*;

    const QUOTA: Quota = Quota { bytes: 1 << 20, files: 10 };

    fn watched(folder: &tempfile::TempDir) -> Watched {
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        Watched::new(WrittenFolder::Mount(Arc::new(dir), QUOTA))
    }

    fn grow(folder: &tempfile::TempDir, name: &str, bytes: u64) {
        std::fs::File::create(folder.path().join(name)).unwrap().set_len(bytes).unwrap();
    }

    #[test]
    fn a_folder_may_grow_by_its_quota_whatever_was_in_it_and_not_by_much_more() {
        let folder = tempfile::tempdir().unwrap();
        grow(&folder, "theirs", 1 << 40);
        let mut watched = watched(&folder);
        assert_eq!(watched.look(0), None, "what was there before");
        grow(&folder, "ours", QUOTA.bytes + SLACK_BYTES);
        assert_eq!(watched.look(0), None);
        grow(&folder, "one byte more", 1);
        assert!(watched.look(0).unwrap().contains("grew by more than its quota of 1MiB"));
        std::fs::remove_file(folder.path().join("theirs")).unwrap();
        assert_eq!(watched.look(0), None, "it shrank");
        grow(&folder, "theirs", 1 << 40);
        assert!(watched.look(0).is_some(), "and grew again");
    }

    #[test]
    fn names_are_counted_as_well_and_depth_hides_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut watched = watched(&folder);
        assert_eq!(watched.look(0), None);
        for name in 0..=QUOTA.files + SLACK_FILES {
            grow(&folder, &name.to_string(), 0);
        }
        assert!(watched.look(0).is_some());
        let folder = tempfile::tempdir().unwrap();
        let mut watched = self::watched(&folder);
        assert_eq!(watched.look(0), None);
        std::fs::create_dir_all(folder.path().join(["d"; 100].join("/"))).unwrap();
        assert!(watched.look(0).is_some());
    }
}
