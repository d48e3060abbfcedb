//! One process: killing it, its end, its memory.

use std::{
    fmt, io,
    num::NonZero,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::process::{Pid, Signal};
use tokio::sync::Notify;

use super::{Child, thread::RunningThread};

/// The end of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Its exit code, or the signal that ended it. Unknown if this process was started with SIGCHLD
    /// ignored, since the kernel then reaps.
    pub status: Option<ExitStatus>,
    /// The end of what it wrote to standard error, with `�` in place of invalid UTF-8. Do not trust
    /// it: it may contain control characters.
    pub last_words: String,
    /// Set if it was ended because all processes of its starter together exceeded this many bytes
    /// of memory, and it had the most.
    pub made_room: Option<u64>,
    /// True if it was a thread of this process. Its last words are the reason then.
    pub is_thread: bool,
}

/// Memory of a process, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// All its resident pages, including those shared with others.
    pub resident: u64,
    /// Pages of its own, of shared memory, in swap, and of page tables, and files in memory that
    /// [it fills](Process::holds_beside): about what is freed when it ends.
    pub own: u64,
}

/// A process, or a thread instead. Dropping it kills the process, which the
/// [`Starter`](super::Starter) reaps, or asks the thread to end.
#[derive(Debug)]
pub struct Process(pub(super) Runs);

#[derive(Debug)]
pub(super) enum Runs {
    Process(Arc<Running>),
    Thread(Arc<RunningThread>),
}

/// A child that the starter's thread reaps.
#[derive(Debug)]
pub(super) struct Running {
    pid: Pid,
    /// A child that was not reaped keeps its id, so a thread that holds this lock and finds it
    /// running signals and reads no other process.
    child: Mutex<Child>,
    /// Readable once it has ended. Not every system has it.
    pidfd: Option<OwnedFd>,
    /// Bytes of files in memory that it fills.
    beside: AtomicU64,
    /// Set if it was ended to make room: the bound that all processes together exceeded.
    made_room: OnceLock<u64>,
    end: OnceLock<End>,
    ended: Notify,
}

impl Process {
    /// Its id; for a thread, that of this process.
    pub fn pid(&self) -> u32 {
        self.child().map_or_else(std::process::id, |child| child.pid.as_raw_pid().cast_unsigned())
    }

    /// Kills it at once, whatever it does. It may not have ended when this returns. A thread ends
    /// when it next reads its link.
    pub fn kill(&self) {
        match &self.0 {
            Runs::Process(child) => child.kill(),
            Runs::Thread(thread) => thread.ask_to_end(),
        }
    }

    /// Waits until it has ended and was reaped. Any number of tasks may wait.
    pub async fn ended(&self) -> End {
        let (ended, end) = match &self.0 {
            Runs::Process(child) => (&child.ended, &child.end),
            Runs::Thread(thread) => (&thread.ended, &thread.end),
        };
        loop {
            let told = ended.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if let Some(end) = end.get() {
                return end.clone();
            }
            told.await;
        }
    }

    /// Its end, if it has ended.
    pub fn end(&self) -> Option<&End> {
        match &self.0 {
            Runs::Process(child) => child.end.get(),
            Runs::Thread(thread) => thread.end.get(),
        }
    }

    /// The memory that it uses now. `None` once it has ended, for a thread, and if the system does
    /// not report it.
    pub fn memory(&self) -> Option<Memory> {
        self.child()?.memory()
    }

    /// Sets how many bytes the files in memory have that it fills. They count as its own.
    pub fn holds_beside(&self, bytes: u64) {
        if let Some(child) = self.child() {
            child.beside.store(bytes, Ordering::Relaxed);
        }
    }

    /// The total time that its threads have waited for a processor so far. `None` once it has
    /// ended, for a thread, and if the system does not report it.
    pub fn waited(&self) -> Option<Duration> {
        let child = self.child()?;
        let running = matches!(child.lock().try_wait(), Ok(None));
        // Without the lock: many threads take long to read, and it can be killed meanwhile. If
        // another process got the id, the time is that one's, and nothing is done to it.
        running.then(|| waited_by(child.pid)).flatten()
    }

    /// The total time that its threads ran so far, to ten milliseconds. `None` for a thread, and if
    /// the system does not report it.
    pub fn ran(&self) -> Option<Duration> {
        ran_by(self.child()?.pid)
    }

    fn child(&self) -> Option<&Running> {
        match &self.0 {
            Runs::Process(child) => Some(child),
            Runs::Thread(_) => None,
        }
    }
}

/// Ticks per second in the kernel's process times (`USER_HZ`).
const TICKS_PER_SECOND: u64 = 100;

/// The time that the process ran, in user and kernel mode: the 14th and 15th field of `stat`. Its
/// name, the second field, may contain anything but ends with the last bracket.
fn ran_by(pid: Pid) -> Option<Duration> {
    let line = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let ticks = |field: Option<&str>| field?.parse::<u64>().ok();
    let ticks = ticks(fields.next())?.saturating_add(ticks(fields.next())?);
    Some(Duration::from_millis(ticks.saturating_mul(1_000 / TICKS_PER_SECOND)))
}

/// Threads of a process that are read at most, in addition to one for each processor. A sandbox
/// process has a few. A compromised one chooses the number, and each costs a read four times a
/// second.
const FURTHER_THREADS_MAX: usize = 64;

/// `schedstat` of each thread has the nanoseconds that it ran, and those that it waited to run.
fn waited_by(pid: Pid) -> Option<Duration> {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_pid())).ok()?.flatten();
    let threads = threads.take(processors.saturating_add(FURTHER_THREADS_MAX));
    let waited = threads.filter_map(|thread| {
        // A thread may end meanwhile.
        let line = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        line.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
    });
    Some(waited.fold(Duration::ZERO, Duration::saturating_add))
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl End {
    /// The signal that ended it.
    pub fn signal(&self) -> Option<i32> {
        self.status?.signal()
    }
}

impl Running {
    pub(super) fn new(child: Child) -> Self {
        Self {
            pid: child.pid(),
            pidfd: pidfd(child.pid()),
            child: Mutex::new(child),
            beside: AtomicU64::new(0),
            made_room: OnceLock::new(),
            end: OnceLock::new(),
            ended: Notify::new(),
        }
    }

    pub(super) fn kill(&self) {
        let child = self.lock();
        #[cfg(target_os = "linux")]
        if let Some(pidfd) = &self.pidfd {
            use rustix::process::{Signal, pidfd_send_signal};
            // An error means that it has already ended.
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
            return;
        }
        child.kill();
    }

    pub(super) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Reaps it if it has ended; the child remembers the status.
    pub(super) fn reap(&self) -> io::Result<Option<ExitStatus>> {
        self.lock().try_wait()
    }

    /// The memory that it uses now. `None` once it has ended, or is ended to make room.
    pub(super) fn memory(&self) -> Option<Memory> {
        let mut child = self.lock();
        let running = matches!(child.try_wait(), Ok(None)) && self.made_room.get().is_none();
        let memory = running.then(|| Memory::of(self.pid)).flatten()?;
        let own = memory.own.saturating_add(self.beside.load(Ordering::Relaxed));
        Some(Memory { own, ..memory })
    }

    /// Ends it, since all processes together use more memory than this.
    pub(super) fn make_room(&self, bytes_max: u64) {
        // It ends once.
        let _ = self.made_room.set(bytes_max);
        self.kill();
    }

    pub(super) fn set_end(&self, status: Option<ExitStatus>, last_words: String) {
        // It ends once.
        let _ = self.end.set(End { status, last_words, made_room: self.made_room.get().copied(), is_thread: false });
        self.ended.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    #[cfg(target_os = "linux")]
    fn of(pid: Pid) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_pid())).ok()?)
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_: Pid) -> Option<Self> {
        None
    }

    /// Reads `/proc/PID/status`.
    #[cfg(target_os = "linux")]
    fn parse(status: &str) -> Option<Self> {
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kilobytes: u64 = line.trim_end_matches("kB").trim().parse().ok()?;
            kilobytes.checked_mul(1024)
        };
        let own = [bytes("RssAnon:"), bytes("RssShmem:"), bytes("VmSwap:"), bytes("VmPTE:")];
        Some(Self { resident: bytes("VmRSS:")?, own: own.into_iter().flatten().sum() })
    }
}

impl End {
    /// True if it was ended by a signal that a process never gets for its own actions: a person
    /// sent it, or the kernel for lack of memory. A caller that killed the process itself knows
    /// better.
    #[must_use]
    pub fn is_from_outside(&self) -> bool {
        let sent = [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT].map(Signal::as_raw);
        let signal = self.status.and_then(|status| status.signal());
        self.made_room.is_none() && signal.is_some_and(|signal| sent.contains(&signal))
    }
}

impl fmt::Display for End {
    /// One line, without the last words.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(bytes_max) = self.made_room {
            let mebibytes = bytes_max >> 20;
            return write!(
                formatter,
                "all processes of components together took more memory than {mebibytes} MiB, and its process the most"
            );
        }
        match self.status {
            None if self.is_thread => formatter.write_str("its thread ended"),
            Some(status) => write!(formatter, "{status}"),
            None => formatter.write_str("ended for an unknown reason"),
        }
    }
}

#[cfg(target_os = "linux")]
fn pidfd(pid: Pid) -> Option<OwnedFd> {
    use rustix::process::{PidfdFlags, pidfd_open};
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn pidfd(_: Pid) -> Option<OwnedFd> {
    None
}
