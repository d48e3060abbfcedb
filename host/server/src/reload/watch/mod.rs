//! Seeing that a file was replaced or written to: told by the kernel, or by looking again and again. Must not hold: what is
//! done about it.
//!
//! Natively it is inotify on folders, with a mask of our own, and not a crate for it: a host that writes its audit beside its
//! manifest would else be woken by every record. A file counts as written when it is closed, so half-written ones are not
//! looked at; links, renames and removals count at once.
mod native;
mod network;

use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::driver::Orders;
use super::files::Files;
use super::trail;
use crate::aside;
use crate::stamp::Stamps;
use native::Native;

/// How long it must be quiet after a change before it is looked at: what belongs together (a build that writes several
/// files, an editor that renames twice) comes within this.
const DEBOUNCE: Duration = Duration::from_millis(25);

/// A folder that is never quiet is looked at as often as this all the same.
const DEBOUNCE_MAX: Duration = Duration::from_millis(250);

/// How often files are looked at where the kernel does not tell. A change is taken up when it looks the same twice.
const POLL_EVERY: Duration = Duration::from_millis(500);

/// How changes are seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watch {
    /// Through inotify. Network filesystems are polled.
    #[default]
    Auto,
    /// Through inotify alone.
    Native,
    /// By a look twice a second, which works everywhere.
    Poll,
    /// Not at all: only SIGHUP and `toolcell reload` make the host look.
    Off,
}

/// The thread that watches; it ends when this is dropped.
pub struct Watcher {
    thread: Option<JoinHandle<()>>,
    stop: Option<PipeWriter>,
}

/// What the thread has.
struct Eye {
    files: Files,
    /// The manifest's folder, without links.
    base: PathBuf,
    orders: Orders,
    others: PipeReader,
    stopped: PipeReader,
    watch: Watch,
}

impl Watcher {
    /// Watches the files of the other half of `others`.
    pub fn start(
        watch: Watch,
        (files, others): (Files, PipeReader),
        base: PathBuf,
        orders: Orders,
    ) -> io::Result<Self> {
        if watch == Watch::Off {
            return Ok(Self { thread: None, stop: None });
        }
        let (stopped, stop) = io::pipe()?;
        let eye = Eye { files, base, orders, others, stopped, watch };
        let thread = std::thread::Builder::new().name("toolcell-watch".to_owned()).spawn(move || eye.watch())?;
        Ok(Self { thread: Some(thread), stop: Some(stop) })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // The thread sees the other end close.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// When something was noticed: first, and last.
struct Noticed {
    first: Instant,
    last: Instant,
}

impl Noticed {
    /// When it is to be looked at.
    fn due(&self) -> Instant {
        (self.last + DEBOUNCE).min(self.first + DEBOUNCE_MAX)
    }
}

/// Why a wait ended.
struct Woken {
    stopped: bool,
    others: bool,
    events: bool,
}

impl Eye {
    fn watch(mut self) {
        if self.watch != Watch::Poll {
            match Native::new() {
                Ok(native) => {
                    let Some(why) = self.watch_natively(native) else { return };
                    tracing::warn!("files are looked at twice a second from now on: {why}");
                }
                Err(error) => tracing::warn!("the kernel does not watch files ({error}): they are polled"),
            }
        }
        self.watch_by_polling();
    }

    /// Watches until it is to stop (`None`) or cannot go on (why).
    fn watch_natively(&mut self, mut native: Native) -> Option<String> {
        let mut noticed = Some(Noticed { first: Instant::now(), last: Instant::now() });
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
            // Events are read in any case: what was read is gone.
            if (woken.events && native.noticed()) || woken.others {
                let now = Instant::now();
                noticed.get_or_insert(Noticed { first: now, last: now }).last = now;
            }
        }
    }

    /// Watches what the paths lead through now.
    fn follow(&self, native: &mut Native) -> Result<(), String> {
        let base = self.base.clone();
        // What does not answer is watched once it does: everything else is watched all the same.
        let looked = aside::each(self.files.paths(), move |path| trail::of(path, &base));
        let steps = looked.into_iter().filter_map(|(_, steps)| steps).flatten();
        let folders = native.follow(steps).map_err(|error| format!("a folder cannot be watched: {error}"))?;
        let asked = if self.watch == Watch::Auto { folders } else { Vec::new() };
        let networks = aside::each(asked, network::holds).into_iter();
        match networks.filter(|(_, holds)| *holds == Some(true)).map(|(folder, _)| folder).next() {
            Some(folder) => Err(format!("{} is on a network filesystem", folder.display())),
            None => Ok(()),
        }
    }

    fn watch_by_polling(&mut self) {
        let (mut last, mut told) = (Stamps::new(), Stamps::new());
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

    fn wait(&mut self, events: Option<BorrowedFd<'_>>, timeout: Option<Duration>) -> Woken {
        let stopped = self.stopped.as_fd();
        let mut fds = vec![
            PollFd::from_borrowed_fd(stopped, PollFlags::IN),
            PollFd::from_borrowed_fd(self.others.as_fd(), PollFlags::IN),
        ];
        fds.extend(events.map(|events| PollFd::from_borrowed_fd(events, PollFlags::IN)));
        // One more millisecond: the poll must not end just before the time and spin.
        let timeout = timeout.and_then(|time| Timespec::try_from(time + Duration::from_millis(1)).ok());
        // An interrupted poll is a spurious wake-up: the caller looks again.
        let _ = poll(&mut fds, timeout.as_ref());
        let ready = |place: usize| fds.get(place).is_some_and(|fd| !fd.revents().is_empty());
        let woken = Woken { stopped: ready(0), others: ready(1), events: ready(2) };
        drop(fds);
        if woken.others && !woken.stopped {
            let _ = self.others.read(&mut [0; 64]);
        }
        woken
    }
}
