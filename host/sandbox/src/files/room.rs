//! The room in a folder or file of the host that tools write to: its quota, and the used amount.
//! All mounts of it share one count, also across sandbox processes.
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use toolcell_policy::Quota;
use toolcell_walls::folder::{Amount, Counts, file, folder};

use super::opened::Opened;

/// The tools of a component are loaded one after the other. Within this time, a shared folder is
/// counted once.
const LOAD_WITHIN: Duration = Duration::from_secs(1);

/// The room of one mount.
#[derive(Clone, Debug)]
pub(super) struct Room {
    shared: Arc<SharedRoom>,
    quota: Quota,
}

/// The count that all mounts of one place share.
#[derive(Debug, Default)]
struct SharedRoom {
    counts: Counts,
    last: Mutex<LastCount>,
}

#[derive(Debug, Default)]
struct LastCount {
    at: Option<Instant>,
    /// The largest number of files that any mount of the place allows. A count stops there.
    files_max: u64,
}

impl Room {
    /// The room of the resolved `path`, counted.
    ///
    /// # Errors
    /// An error of the system, if it cannot be counted.
    pub(super) fn of(path: &Path, quota: Quota, opened: &Opened) -> io::Result<Self> {
        static ROOMS: LazyLock<Mutex<HashMap<PathBuf, Weak<SharedRoom>>>> = LazyLock::new(Mutex::default);
        let shared = {
            let mut rooms = ROOMS.lock().unwrap_or_else(PoisonError::into_inner);
            rooms.retain(|_, room| room.strong_count() > 0);
            match rooms.get(path).and_then(Weak::upgrade) {
                Some(room) => room,
                None => {
                    let room = Arc::new(SharedRoom { counts: Counts::shared(), last: Mutex::default() });
                    rooms.insert(path.to_owned(), Arc::downgrade(&room));
                    room
                }
            }
        };
        shared.count(quota, opened)?;
        Ok(Self { shared, quota })
    }

    /// The most that the mount may hold.
    pub(super) fn quota(&self) -> Quota {
        self.quota
    }

    /// The used amount, if it could be counted.
    pub(super) fn used(&self) -> Option<Amount> {
        self.shared.counts.amount()
    }

    /// Its counts, for a sandbox process.
    pub(super) fn hand_over(&self) -> io::Result<OwnedFd> {
        self.shared.counts.hand_over()
    }
}

impl SharedRoom {
    /// Counts it, unless that was done shortly before.
    fn count(&self, quota: Quota, opened: &Opened) -> io::Result<()> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.files_max = last.files_max.max(quota.files);
        if last.at.is_some_and(|at| at.elapsed() < LOAD_WITHIN) {
            return Ok(());
        }
        let amount = match opened {
            Opened::Folder(root) => match folder(root, last.files_max) {
                // A guest that moves folders all the time must not keep other components from
                // loading. What the guests add is in the counts already.
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && last.at.is_some() => return Ok(()),
                counted => counted?,
            },
            Opened::File(folder, name) => file(folder, name)?,
        };
        last.at = Some(Instant::now());
        self.counts.set(amount, 0);
        Ok(())
    }
}
