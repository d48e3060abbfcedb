//! A thread of this process instead of a process, when there are no walls.

use std::{
    fmt, io,
    os::fd::OwnedFd,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
    time::{Duration, Instant},
};

use rustix::net::{Shutdown, shutdown};
use tokio::sync::Notify;

use super::{Command, End};
use crate::link;

/// Threads that were asked to end [long ago](LEFT_BEHIND_AFTER), and still compute. Each keeps a
/// core busy, and holds memory. At this number no more are started.
const LEFT_BEHIND_MAX: usize = 4;

/// A thread that runs guests reads its link within milliseconds. One that compiles does not.
const LEFT_BEHIND_AFTER: Duration = Duration::from_secs(2);

/// The work of a thread: it serves this socket until the other end closes it, or returns why it
/// ended earlier.
type Main = dyn Fn(OwnedFd) -> Result<(), String> + Send + Sync;

/// Threads that replace processes. All of them do the same work.
#[derive(Clone)]
pub struct Threads {
    main: Arc<Main>,
    running: Arc<Mutex<Vec<Weak<RunningThread>>>>,
}

/// The other end of a link.
#[derive(Clone, Debug)]
pub enum Program {
    /// A process, which can be killed.
    Process(Command),
    /// A thread of this process. It ends when it next reads its link.
    Thread(Threads),
}

impl Program {
    /// The same with threads [counted separately](Threads::counted_apart); a process is unchanged.
    #[must_use]
    pub fn counted_apart(&self) -> Self {
        match self {
            Self::Process(command) => Self::Process(command.clone()),
            Self::Thread(threads) => Self::Thread(threads.counted_apart()),
        }
    }
}

impl From<Command> for Program {
    fn from(command: Command) -> Self {
        Self::Process(command)
    }
}

impl Threads {
    /// Threads that do this.
    pub fn new(main: impl Fn(OwnedFd) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { main: Arc::new(main), running: Arc::default() }
    }

    /// Other threads for the same work, counted separately: those left behind here do not prevent
    /// starts there.
    #[must_use]
    pub fn counted_apart(&self) -> Self {
        Self { main: Arc::clone(&self.main), running: Arc::default() }
    }

    /// Starts one. Returns it with this end of its link.
    pub(super) fn start(&self) -> io::Result<(Arc<RunningThread>, OwnedFd)> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|thread| thread.strong_count() > 0);
        let left = running.iter().filter_map(Weak::upgrade).filter(|thread| thread.is_left_behind()).count();
        if left >= LEFT_BEHIND_MAX {
            return Err(io::Error::other(format!("{left} threads that were asked to end still run")));
        }
        let (ours, theirs) = link::pair()?;
        let thread = Arc::new(RunningThread {
            link: ours.try_clone()?,
            told: OnceLock::new(),
            end: OnceLock::new(),
            ended: Notify::new(),
        });
        let main = Arc::clone(&self.main);
        let own = Arc::clone(&thread);
        let work = move || {
            let done = catch_unwind(AssertUnwindSafe(|| main(theirs)));
            own.ends(done.unwrap_or_else(|_| Err("it panicked".to_owned())));
        };
        std::thread::Builder::new().name("toolcell-sandbox".to_owned()).spawn(work)?;
        running.push(Arc::downgrade(&thread));
        Ok((thread, ours))
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Threads")
    }
}

/// One thread. It holds this value until it has ended.
#[derive(Debug)]
pub(super) struct RunningThread {
    /// This end of its link, to shut both directions down.
    link: OwnedFd,
    /// When it was asked to end.
    told: OnceLock<Instant>,
    pub(super) end: OnceLock<End>,
    pub(super) ended: Notify,
}

impl RunningThread {
    /// Asks it to end. It does when it next reads its link.
    pub(super) fn ask_to_end(&self) {
        if self.end.get().is_none() && self.told.set(Instant::now()).is_ok() {
            // An error means that it is already closed.
            let _ = shutdown(&self.link, Shutdown::Both);
        }
    }

    fn is_left_behind(&self) -> bool {
        self.end.get().is_none() && self.told.get().is_some_and(|told| told.elapsed() > LEFT_BEHIND_AFTER)
    }

    fn ends(&self, done: Result<(), String>) {
        let last_words = done.err().unwrap_or_default();
        // It ends once.
        let _ = self.end.set(End { status: None, last_words, made_room: None, is_thread: true });
        self.ended.notify_waiters();
    }
}
