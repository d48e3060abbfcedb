//! The thread that watches folders whose files are resources, and reports changes.
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use toolcell_mcp::ResourceNews;

use super::Folder;
use crate::files::inotify::{self, Inotify};
use crate::files::{Watch, on_network, wait_readable};

/// Quiet time after a change before the files are scanned.
const DEBOUNCE: Duration = Duration::from_millis(25);

/// Longest wait for quiet.
const DEBOUNCE_MAX: Duration = Duration::from_millis(250);

/// Pause after a scan, as a multiple of the time that it took. 9: a folder that always changes
/// costs a tenth of a core.
const REST: u32 = 9;

/// Interval of scans if changes are not reported: on network filesystems, and for a missing folder.
const POLL_EVERY: Duration = Duration::from_secs(2);

/// Folders that are watched. More of them are polled. 4,096: half of what Linux grants a user at
/// least.
const FOLDERS_MAX: usize = 4_096;

/// Scans at once until no new folder is found.
const ROUNDS_MAX: usize = 4;

/// The source of the folders, and the receiver of changes.
pub struct FolderChanges {
    /// The folders of the current generation.
    pub folders: Box<dyn Fn() -> Vec<Arc<Folder>> + Send>,
    /// Called with changes.
    pub tell: Box<dyn Fn(ResourceNews) + Send>,
}

/// The watching thread; it ends when dropped.
pub struct FolderWatch {
    waker: FolderWaker,
    thread: Option<JoinHandle<()>>,
}

/// Watches until dropped.
#[derive(Clone)]
pub struct FolderWaker(Arc<Waker>);

struct Waker {
    pipe: PipeWriter,
    stops: AtomicBool,
}

impl FolderWaker {
    /// The set of folders has changed.
    pub fn wake(&self) {
        let _ = (&self.0.pipe).write(&[1]);
    }
}

impl FolderWatch {
    /// Starts watching the folders.
    pub fn start(watch: Watch, changes: FolderChanges) -> io::Result<Self> {
        let (woken, pipe) = io::pipe()?;
        let waker = FolderWaker(Arc::new(Waker { pipe, stops: AtomicBool::new(false) }));
        if watch == Watch::Off {
            return Ok(Self { waker, thread: None });
        }
        let tree = match watch {
            Watch::Poll => None,
            _ => Tree::new().ok(),
        };
        let watching =
            WatchingFolders { changes, tree, asks_network: watch == Watch::Auto, waker: waker.clone(), woken };
        let thread = std::thread::Builder::new().name("toolcell-folders".to_owned()).spawn(move || watching.run())?;
        Ok(Self { waker, thread: Some(thread) })
    }

    pub fn waker(&self) -> FolderWaker {
        self.waker.clone()
    }
}

impl Drop for FolderWatch {
    fn drop(&mut self) {
        self.waker.0.stops.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct WatchingFolders {
    changes: FolderChanges,
    /// `None`: the folders are polled.
    tree: Option<Tree>,
    asks_network: bool,
    waker: FolderWaker,
    woken: PipeReader,
}

impl WatchingFolders {
    fn run(mut self) {
        let mut known: Vec<Arc<Folder>> = Vec::new();
        let mut first = Some(Instant::now());
        let mut last = Instant::now();
        let mut not_before = Instant::now();
        loop {
            let now = Instant::now();
            let due = first.map(|first| (last + DEBOUNCE).min(first + DEBOUNCE_MAX).max(not_before));
            if due.is_some_and(|due| due <= now) {
                first = None;
                self.follow(&mut known);
                let polls = self.rescan(&known);
                not_before = Instant::now() + now.elapsed() * REST;
                if polls {
                    (first, last) = (Some(Instant::now() + POLL_EVERY), Instant::now() + POLL_EVERY);
                }
                continue;
            }
            let noticed = self.wait(due.map(|due| due.saturating_duration_since(now)));
            if self.waker.0.stops.load(Ordering::Acquire) {
                return;
            }
            if noticed {
                let now = Instant::now();
                // A later poll is due at once.
                first = Some(first.map_or(now, |first| first.min(now)));
                last = now;
            }
        }
    }

    /// Takes the folders of the current generation, and reports differences in those that were
    /// known.
    fn follow(&self, known: &mut Vec<Arc<Folder>>) {
        let now = (self.changes.folders)();
        for folder in &now {
            let before = known.iter().find(|known| known.is_like(folder) && !Arc::ptr_eq(known, folder));
            if let Some(before) = before {
                self.notify(folder.index().news_since(&before.index()));
            }
        }
        *known = now;
    }

    /// Rescans all files, until no new folder is found. Returns true if they must be polled.
    fn rescan(&mut self, known: &[Arc<Folder>]) -> bool {
        let mut polls = self.tree.is_none() && !known.is_empty();
        for _ in 0..ROUNDS_MAX {
            let mut folders = BTreeSet::new();
            for folder in known {
                let (before, now) = folder.rescan();
                self.notify(now.news_since(&before));
                polls |= now.folders.is_empty();
                folders.extend(now.folders.iter().cloned());
            }
            polls |= folders.len() > FOLDERS_MAX;
            let Some(tree) = &mut self.tree else { break };
            let new = tree.follow(folders.into_iter().take(FOLDERS_MAX).collect());
            polls |= new.is_err();
            let new = new.unwrap_or_default();
            polls |= self.asks_network && new.iter().any(|folder| on_network(folder));
            if new.is_empty() {
                break;
            }
        }
        polls
    }

    fn notify(&self, news: ResourceNews) {
        if !news.is_empty() {
            (self.changes.tell)(news);
        }
    }

    /// Waits for a change, at most this long.
    fn wait(&mut self, timeout: Option<Duration>) -> bool {
        let fds = [Some(self.woken.as_fd()), self.tree.as_ref().map(|tree| tree.inotify.fd())];
        let [woken, events] = wait_readable(fds, timeout);
        if woken {
            let _ = self.woken.read(&mut [0; 64]);
        }
        if events && let Some(tree) = &mut self.tree {
            tree.drain();
        }
        woken || events
    }
}

/// inotify over whole folders.
struct Tree {
    inotify: Inotify,
    watched: BTreeMap<PathBuf, i32>,
}

impl Tree {
    fn new() -> rustix::io::Result<Self> {
        Ok(Self { inotify: Inotify::new()?, watched: BTreeMap::new() })
    }

    /// Watches these folders and no others. Returns those that were not watched before.
    fn follow(&mut self, wanted: BTreeSet<PathBuf>) -> rustix::io::Result<Vec<PathBuf>> {
        let others: Vec<PathBuf> = self.watched.keys().filter(|known| !wanted.contains(*known)).cloned().collect();
        for folder in others {
            if let Some(watch) = self.watched.remove(&folder) {
                self.inotify.remove(watch);
            }
        }
        let mut new = Vec::new();
        for folder in wanted {
            if !self.watched.contains_key(&folder)
                && let Some(watch) = self.inotify.add(&folder, inotify::Watching::Writes)?
            {
                self.watched.insert(folder.clone(), watch);
                new.push(folder);
            }
        }
        Ok(new)
    }

    /// Reads the events. Folders that moved or are gone must be watched anew.
    fn drain(&mut self) {
        let mut gone = BTreeSet::new();
        self.inotify.take(|event| {
            if event.gone || event.ended {
                gone.insert(event.watch);
            }
        });
        for watch in &gone {
            self.inotify.remove(*watch);
        }
        self.watched.retain(|_, watch| !gone.contains(watch));
    }
}
