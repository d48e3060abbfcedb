//! The host's end of one sandbox process, and its life. Must not hold: which process a call goes
//! to.
//!
//! | file | holds |
//! |---|---|
//! | `not_started.rs` | why one does not start |
//! | `calling.rs` | a call in it, from its sending to its report |
//! | `receiving.rs` | what it says |
//! | `starved.rs` | the time in which it had no processor |
mod calling;
mod not_started;
mod receiving;
mod starved;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use toolcell_policy::quantity::show_bytes;
use toolcell_walls::link::{Dispatcher, Frame, Receiver, SendError, Sender};
use toolcell_walls::process::{End, Process};
use zeroize::Zeroizing;

use super::group::ComponentNotice;
use crate::files::ProcessScratch;
use crate::tape::KeptTapes;
use toolcell_wall::encoding;
use toolcell_wall::message::{CallId, InstanceId, ToSandbox};

pub(crate) use calling::CalledComponent;
use calling::PendingCall;
pub use calling::SandboxCall;
pub(crate) use not_started::NotStarted;
pub(super) use not_started::end_at_start;
use starved::Starved;

/// Interval at which a full link is tried again.
const RETRY_EVERY: Duration = Duration::from_millis(1);

/// How often the host looks for calls that a process keeps too long: short compared to
/// `GIVES_BACK_WITHIN`.
const POLL_EVERY: Duration = Duration::from_millis(250);

/// Number of these intervals after which it also checks the process's memory. In that second a
/// process can fill some gigabytes, up to the kernel's own bound.
const MEMORY_POLL_EVERY: u32 = 4;

/// Time without a call after which a process that holds memory of its last calls is ended. A new
/// one replaces it with the next call, in about ten milliseconds.
const MEMORY_RESTS: Duration = Duration::from_secs(2);

/// Time without a call after which a process should not compute any more. Prewarming instances
/// takes milliseconds.
const RESTS_AFTER: Duration = Duration::from_secs(2);

/// Why a process is ended that computes while idle.
const COMPUTES: &str = "it computed without a call";

/// Time for a process to be gone after its link is. Its own end explains more than one set by the
/// host.
const GONE_WITHIN: Duration = Duration::from_millis(100);

/// Follows the end of a process that this host did not end.
const FROM_OUTSIDE: &str = "sent from outside: by a person, or by the kernel for want of memory";

/// Why a process is ended that keeps a call past its deadline.
const LATE: &str = "it did not stop within its deadline";

/// Why a process is ended that had no call for long.
const IDLE: &str = "no call came for a long time";

/// Why a process is ended that kept memory of finished calls.
const HOLDS_MEMORY: &str = "it held memory of calls that were over";

pub(super) type Dispatch = Box<dyn Fn(Frame) + Send + Sync>;

/// A sandbox process, on the host's side. Dropping the last one ends the process.
pub(crate) struct SandboxProcess {
    sender: Sender,
    dispatcher: OnceLock<Arc<Dispatcher<Dispatch>>>,
    process: Process,
    calls: Mutex<Pending>,
    next: AtomicU64,
    state: watch::Sender<ProcessState>,
    /// Components that could not be loaded, with the reason.
    unusable: Mutex<HashMap<u32, String>>,
    bounds: ComponentBounds,
    /// Components that it reported as not prewarmable.
    noted: AtomicUsize,
    /// Messages about calls that have ended.
    strays: AtomicU64,
    /// Instances that it keeps for callers.
    kept: AtomicUsize,
    /// Tapes that it keeps for recorded calls.
    tapes: Arc<KeptTapes>,
    /// True if the host ended it.
    killed: AtomicBool,
}

/// A process that a call is going to. It is not ended for being idle.
pub(crate) struct ProcessClaim(Arc<SandboxProcess>);

/// An instance in a process, kept for one caller. Dropping it makes the process drop the instance.
pub struct RemoteInstance {
    process: Weak<SandboxProcess>,
    id: InstanceId,
}

/// Facts about the components of a process.
pub(crate) struct ComponentBounds {
    /// Bytes of a message, from the limits of the components.
    pub(crate) message_bytes_max: u64,
    /// Called for a component whose instances cannot be prewarmed.
    pub(crate) tell: Vec<ComponentNotice>,
    /// Scratch space of its calls, removed when it has ended.
    pub(crate) scratch: Option<Arc<ProcessScratch>>,
}

/// The life of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProcessState {
    /// It is loading components.
    Starting,
    /// It accepts calls. Missing walls, with the reasons.
    Ready(Vec<(String, String)>),
    /// It is gone, for this reason.
    Ended(String),
}

struct Pending {
    calls: HashMap<CallId, Arc<PendingCall>>,
    /// Why there are no more calls.
    ended: Option<String>,
    /// Calls that are going to it, those that run included.
    claims: usize,
    /// The time of the last change of `claims`.
    used: Instant,
}

impl SandboxProcess {
    /// A process that was just started, and its link.
    pub(crate) fn new(process: Process, receiver: Receiver, bounds: ComponentBounds) -> Arc<Self> {
        let this = Arc::new(Self {
            sender: receiver.sender().clone(),
            dispatcher: OnceLock::new(),
            process,
            calls: Mutex::new(Pending { calls: HashMap::new(), ended: None, claims: 0, used: Instant::now() }),
            next: AtomicU64::new(1),
            state: watch::Sender::new(ProcessState::Starting),
            unusable: Mutex::default(),
            bounds,
            noted: AtomicUsize::new(0),
            strays: AtomicU64::new(0),
            kept: AtomicUsize::new(0),
            tapes: Arc::default(),
            killed: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&this);
        let dispatch: Dispatch = Box::new(move |frame| {
            if let Some(this) = Weak::upgrade(&weak) {
                this.receive(&frame);
            }
        });
        // It is new, so there is no earlier one.
        let _ = this.dispatcher.set(Arc::new(Dispatcher::new(receiver, dispatch)));
        this
    }

    pub(super) fn dispatcher(&self) -> Option<&Arc<Dispatcher<Dispatch>>> {
        self.dispatcher.get()
    }

    /// Reads the link until it ends. One task does this.
    pub(crate) async fn run(self: Arc<Self>) {
        let Some(dispatcher) = self.dispatcher.get() else { return };
        let broken = dispatcher.run().await;
        if tokio::time::timeout(GONE_WITHIN, self.process.ended()).await.is_err() {
            // Whatever is wrong with the link, the process can no longer be asked to end.
            self.killed.store(true, Ordering::Release);
            self.process.kill();
        }
        let ended = self.process.ended().await;
        if let Some(scratch) = self.bounds.scratch.clone() {
            drop(tokio::task::spawn_blocking(move || scratch.remove()));
        }
        let starts = *self.state.borrow() == ProcessState::Starting;
        self.end(&match ended.made_room {
            _ if starts => end_at_start(&broken, &ended),
            Some(_) => ended.to_string(),
            None if self.is_from_outside(&ended) => format!("{ended}, {FROM_OUTSIDE}"),
            None => format!("{broken}; {ended}"),
        });
    }

    /// Ends the process if it takes more memory than this, keeps a call past its deadline, computes
    /// while idle, or holds more than `rest_bytes` in addition to what it holds now. The kernel's
    /// own bound on memory holds for what the engine does, but not for native code that hides what
    /// it wrote.
    pub(crate) async fn watch(this: Weak<Self>, bytes_max: u64, rest_bytes: u64) {
        let own = |this: &Self| this.process.memory().map_or(0, |memory| memory.own);
        let Some(rest_bytes_max) = this.upgrade().map(|this| own(&this).saturating_add(rest_bytes)) else { return };
        let mut starved = Starved::new(POLL_EVERY, Instant::now());
        let mut polls = 0;
        let mut ran = None;
        loop {
            tokio::time::sleep(POLL_EVERY).await;
            let Some(this) = this.upgrade().filter(|this| !this.is_ended()) else { return };
            let now = Instant::now();
            let should_end: Vec<Arc<PendingCall>> =
                this.lock().calls.values().filter(|call| call.should_end(now)).cloned().collect();
            let waited = if should_end.is_empty() { None } else { this.process.waited() };
            let before = starved.total();
            starved.check(now, waited);
            if should_end.iter().any(|call| call.is_late(now, before, starved.total())) {
                this.kill(LATE);
            }
            polls += 1;
            if polls == MEMORY_POLL_EVERY {
                polls = 0;
                let before = std::mem::replace(&mut ran, this.process.ran());
                // Half of the time between two checks.
                let much = POLL_EVERY * MEMORY_POLL_EVERY / 2;
                if ran.zip(before).is_some_and(|(now, before)| now.saturating_sub(before) > much) {
                    this.end_if_idle(RESTS_AFTER, COMPUTES);
                }
                let own = own(&this);
                if own > bytes_max {
                    this.kill(&format!("its process took more memory than {}", show_bytes(bytes_max)));
                } else if own > rest_bytes_max {
                    // Its allocator keeps what is between used pieces.
                    this.end_if_idle(MEMORY_RESTS, HOLDS_MEMORY);
                }
            }
        }
    }

    /// Scratch space of its calls.
    pub(crate) fn scratch(&self) -> Option<&ProcessScratch> {
        self.bounds.scratch.as_deref()
    }

    /// Ends the process once no call went to it for this long, and no instance is kept in it.
    pub(crate) async fn watch_idle(this: Weak<Self>, idle: Duration) {
        let mut wait = idle;
        loop {
            tokio::time::sleep(wait).await;
            let Some(this) = this.upgrade().filter(|this| !this.is_ended()) else { return };
            let Some(more) = this.end_if_idle(idle, IDLE) else { return };
            wait = more;
        }
    }

    /// Sends a message at the start of the process's life.
    pub(crate) fn send(&self, message: &ToSandbox, fds: &[std::os::fd::BorrowedFd<'_>]) -> Result<(), String> {
        let bytes = encoding::encode(message).map_err(|error| error.to_string())?;
        self.sender.send(&bytes, fds).map_err(|error| error.to_string())
    }

    /// Sends a message once the process has read enough of those before: a link holds a bounded
    /// number of bytes and of descriptors.
    pub(crate) async fn send_when_taken(
        &self,
        message: &ToSandbox,
        fds: &[std::os::fd::BorrowedFd<'_>],
    ) -> Result<(), NotStarted> {
        let bytes = Zeroizing::new(encoding::encode(message)?);
        loop {
            match self.sender.send(&bytes, fds) {
                Err(SendError::Full) => tokio::time::sleep(RETRY_EVERY).await,
                sent => return Ok(sent?),
            }
        }
    }

    /// The state, once the process is no longer starting.
    pub(crate) async fn started(&self) -> ProcessState {
        let mut state = self.state.subscribe();
        let state = state.wait_for(|state| *state != ProcessState::Starting).await;
        state.map_or_else(|_| ProcessState::Ended("it is gone".to_owned()), |state| state.clone())
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.pid()
    }

    /// True if something outside ended it, so that its end tells nothing about components.
    fn is_from_outside(&self, ended: &End) -> bool {
        ended.is_from_outside() && !self.killed.load(Ordering::Acquire)
    }

    /// True if its end counts against the components whose calls it ran. To be asked after a call
    /// of it has ended with it.
    pub(crate) async fn is_to_blame(&self) -> bool {
        let ended = tokio::time::timeout(2 * GONE_WITHIN, self.process.ended()).await;
        !ended.is_ok_and(|ended| self.is_from_outside(&ended))
    }

    /// True if it accepts no more calls.
    pub(crate) fn is_ended(&self) -> bool {
        self.lock().ended.is_some()
    }

    /// Calls that run in it.
    pub(crate) fn load(&self) -> usize {
        self.lock().calls.len()
    }

    /// Claims it for a call; `None` if it accepts no more.
    pub(crate) fn claim(self: &Arc<Self>) -> Option<ProcessClaim> {
        let mut pending = self.lock();
        if pending.ended.is_some() {
            return None;
        }
        pending.claims += 1;
        drop(pending);
        Some(ProcessClaim(Arc::clone(self)))
    }

    /// Ends the process if it keeps no instance, and no call went to it for this long. Returns the
    /// time until that may be the case.
    pub(crate) fn end_if_idle(&self, idle: Duration, reason: &str) -> Option<Duration> {
        {
            let mut pending = self.lock();
            let rested = pending.used.elapsed();
            if pending.claims > 0 || !pending.calls.is_empty() || self.kept.load(Ordering::Acquire) > 0 {
                return Some(idle);
            }
            if rested < idle {
                return Some(idle.saturating_sub(rested));
            }
            // From now on no call claims it.
            pending.ended.get_or_insert_with(|| reason.to_owned());
        }
        self.kill(reason);
        None
    }

    /// A new instance for a caller.
    pub(crate) fn instance(self: &Arc<Self>) -> RemoteInstance {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.kept.fetch_add(1, Ordering::AcqRel);
        RemoteInstance { process: Arc::downgrade(self), id }
    }

    /// Ends the process and every call in it, for this reason.
    pub(crate) fn kill(&self, reason: &str) {
        self.killed.store(true, Ordering::Release);
        self.end(reason);
        self.sender.close();
        self.process.kill();
    }

    fn end(&self, reason: &str) {
        let calls = {
            let mut pending = self.lock();
            pending.ended.get_or_insert_with(|| reason.to_owned());
            std::mem::take(&mut pending.calls)
        };
        self.state.send_if_modified(|state| {
            let first = !matches!(state, ProcessState::Ended(_));
            if first {
                *state = ProcessState::Ended(reason.to_owned());
            }
            first
        });
        calls.into_values().for_each(|call| call.end(Err(reason.to_owned())));
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::ops::Deref for ProcessClaim {
    type Target = Arc<SandboxProcess>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Drop for ProcessClaim {
    fn drop(&mut self) {
        let mut pending = self.0.lock();
        pending.claims = pending.claims.saturating_sub(1);
        pending.used = Instant::now();
    }
}

impl RemoteInstance {
    /// Its number there.
    pub(crate) const fn id(&self) -> InstanceId {
        self.id
    }

    /// True if this process keeps it.
    pub(crate) fn is_in(&self, process: &Arc<SandboxProcess>) -> bool {
        std::ptr::eq(self.process.as_ptr(), Arc::as_ptr(process))
    }
}

impl Drop for RemoteInstance {
    fn drop(&mut self) {
        let Some(process) = self.process.upgrade() else { return };
        // A process that cannot be reached accepts no calls either.
        let _ = process.send(&ToSandbox::Forget(self.id), &[]);
        process.kept.fetch_sub(1, Ordering::AcqRel);
    }
}
