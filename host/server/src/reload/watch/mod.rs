//! Watching files for changes, through inotify or by polling. Must not hold: the effect of a
//! change.
//!
//! inotify watches folders with a mask of our own instead of a crate's: otherwise each audit record
//! next to the manifest would wake the host. A file counts as written when it is closed, which
//! skips half-written ones. Links, renames and removals count at once.
mod native;

use std::io::{self, PipeReader, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::driver::Orders;
use super::files::WatchedFiles;
use super::path_entries;
use crate::files::file_stamp::Stamps;
use crate::files::{Watch, WatchingThread, blocking_files, on_network, wait_readable};
use native::WatchedEntries;

/// Quiet time after a change before files are examined. Related changes (a build that writes
/// several files, an editor that renames twice) come within it.
const DEBOUNCE: Duration = Duration::from_millis(25);

/// Longest wait for quiet: a folder that is never quiet is examined this often.
const DEBOUNCE_MAX: Duration = Duration::from_millis(250);

/// Interval of polls. A change counts when two polls agree on it.
const POLL_EVERY: Duration = Duration::from_millis(500);

/// Files to watch, and the pipe that becomes readable when the set of files changes.
pub struct WatchInput {
    /// The files.
    pub files: WatchedFiles,
    /// Receives a byte each time the set of files changes.
    pub set_changed: PipeReader,
}

/// State of the thread.
struct WatchThread {
    files: WatchedFiles,
    /// Real path of the manifest's folder.
    base: PathBuf,
    orders: Orders,
    set_changed: PipeReader,
    stopped: PipeReader,
    watch: Watch,
}

/// Watches these files, if files are watched.
pub fn watch(watch: Watch, watched: WatchInput, base: PathBuf, orders: Orders) -> io::Result<Option<WatchingThread>> {
    if watch == Watch::Off {
        return Ok(None);
    }
    let WatchInput { files, set_changed } = watched;
    let run = move |stopped| WatchThread { files, base, orders, set_changed, stopped, watch }.watch();
    WatchingThread::start("toolcell-watch", run).map(Some)
}

/// Times of the first and the last change.
struct PendingChange {
    first: Instant,
    last: Instant,
}

impl PendingChange {
    /// Time at which the files are examined.
    fn due(&self) -> Instant {
        (self.last + DEBOUNCE).min(self.first + DEBOUNCE_MAX)
    }
}

/// Reasons for the end of a wait.
struct WatchWakeup {
    stopped: bool,
    set_changed: bool,
    events: bool,
}

impl WatchThread {
    fn watch(mut self) {
        if self.watch != Watch::Poll {
            match WatchedEntries::new() {
                Ok(native) => {
                    let Some(why) = self.watch_natively(native) else { return };
                    tracing::warn!("files are polled twice a second from now on: {why}");
                }
                Err(error) => tracing::warn!("the kernel does not watch files ({error}): they are polled"),
            }
        }
        self.watch_by_polling();
    }

    /// Watches until it is stopped (`None`) or cannot continue (the reason).
    fn watch_natively(&mut self, mut native: WatchedEntries) -> Option<String> {
        let mut noticed = Some(PendingChange { first: Instant::now(), last: Instant::now() });
        loop {
            let now = Instant::now();
            if noticed.as_ref().is_some_and(|noticed| noticed.due() <= now) {
                noticed = None;
                if let Err(why) = self.follow(&mut native) {
                    return Some(why);
                }
                if !self.files.changed().is_empty() {
                    self.orders.files();
                }
            }
            let timeout = noticed.as_ref().map(|noticed| noticed.due().saturating_duration_since(now));
            let woken = self.wait(Some(native.fd()), timeout);
            if woken.stopped {
                return None;
            }
            // Always read the events: unread ones would wake the next wait at once.
            if (woken.events && native.noticed()) || woken.set_changed {
                let now = Instant::now();
                noticed.get_or_insert(PendingChange { first: now, last: now }).last = now;
            }
        }
    }

    /// Watches the entries that the paths lead through now.
    fn follow(&self, native: &mut WatchedEntries) -> Result<(), String> {
        let base = self.base.clone();
        // A path that hangs is watched once it responds, the others from now on.
        let looked = blocking_files::each(self.files.paths(), move |path| path_entries::of(path, &base));
        let steps = looked.into_iter().filter_map(|(_, steps)| steps).flatten();
        let folders = native.follow(steps).map_err(|error| format!("a folder cannot be watched: {error}"))?;
        let asked = if self.watch == Watch::Auto { folders } else { Vec::new() };
        let networks = blocking_files::each(asked, on_network).into_iter();
        match networks.filter(|(_, holds)| *holds == Some(true)).map(|(folder, _)| folder).next() {
            Some(folder) => Err(format!("{} is on a network filesystem", folder.display())),
            None => Ok(()),
        }
    }

    fn watch_by_polling(&mut self) {
        let mut last = Stamps::new();
        let mut told = Stamps::new();
        loop {
            let changed = self.files.changed();
            if changed == last && changed != told {
                told.clone_from(&changed);
                if !changed.is_empty() {
                    self.orders.files();
                }
            }
            last = changed;
            if self.wait(None, Some(POLL_EVERY)).stopped {
                return;
            }
        }
    }

    fn wait(&mut self, events: Option<BorrowedFd<'_>>, timeout: Option<Duration>) -> WatchWakeup {
        let fds = [Some(self.stopped.as_fd()), Some(self.set_changed.as_fd()), events];
        let [stopped, set_changed, events] = wait_readable(fds, timeout);
        if set_changed && !stopped {
            let _ = self.set_changed.read(&mut [0; 64]);
        }
        WatchWakeup { stopped, set_changed, events }
    }
}
