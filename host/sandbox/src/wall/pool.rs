//! Sandbox processes that have started and belong to no group yet.
//!
//! Starting a program and setting up the engine take longer than loading most components. A process
//! that waits here has done both, so a new group, or the next process of one, begins sooner.
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use toolcell_walls::kernel::Wall;
use toolcell_walls::link::{self, Receiver};
use toolcell_walls::process::{Process, Program, Starter};

use super::crash_history::{CrashHistory, SharedEnds, Standing};
use super::disk::Disks;
use super::process::{NotStarted, end_at_start};
use toolcell_wall::encoding;
use toolcell_wall::load::facts::GuestEngine;
use toolcell_wall::message::{ProcessSettings, ToSandbox};

/// Processes that wait. One is enough for groups that begin one after the other; each takes some
/// megabytes.
const WAITING_MAX: usize = 1;

/// The engine of a process that waits: that of most components.
const WAITING_ENGINE: GuestEngine = GuestEngine::Sync;

/// Time without a start after which the next process is started in advance. A host that has just
/// started is busy with its first answers.
const QUIET: Duration = Duration::from_millis(250);

/// The settings of all sandbox processes.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// The program that becomes a sandbox process, or threads in their place.
    pub program: Program,
    /// Bytes of WebAssembly stack per call.
    pub stack_bytes: usize,
    /// Calls at once in one process.
    pub calls_max: usize,
    /// Bytes of all prewarmed instances in one process.
    pub prewarm_bytes: u64,
    /// Bytes of memory that all processes together may take, including loaders. Beyond it the
    /// largest is ended.
    pub memory_bytes_max: u64,
}

/// Receives what an operator should know about sandbox processes.
pub trait PoolNotices: Send + Sync {
    /// A process has started without these walls, each by its name with the reason. Each wall is
    /// reported once.
    fn walls_missing(&self, walls: &[(String, String)]);

    /// The standing of a component has changed. The name is that of the group's member.
    fn standing(&self, component: &str, standing: Standing);
}

/// Starts sandbox processes, and keeps one waiting. Dropping it ends all that it started.
pub struct SandboxPool {
    // First: its processes end before the starter waits for them.
    waiting: Mutex<WaitingStart>,
    options: PoolOptions,
    refilling: AtomicBool,
    crash_history: CrashHistory,
    shared_ends: OnceLock<Arc<dyn SharedEnds>>,
    notices: OnceLock<Arc<dyn PoolNotices>>,
    walls: Mutex<Option<WallsMissing>>,
    starter: Arc<Starter>,
    pub(super) disks: Disks,
}

/// Missing walls, each by its name with the reason.
#[derive(Default)]
struct WallsMissing {
    /// Those of the process that most recently built its walls.
    latest: Vec<(String, String)>,
    /// Those of any process so far.
    ever: Vec<(String, String)>,
}

struct WaitingStart {
    processes: VecDeque<StartedProcess>,
    taken: Instant,
}

/// A process that has its settings, and waits for components.
pub(super) struct StartedProcess {
    pub(super) process: Process,
    pub(super) receiver: Receiver,
}

impl SandboxPool {
    /// A pool with no process yet.
    ///
    /// # Errors
    /// The machine has no thread left to start them.
    pub fn new(options: PoolOptions) -> io::Result<Arc<Self>> {
        let starter = Arc::new(Starter::bounded(options.memory_bytes_max)?);
        Ok(Arc::new(Self {
            waiting: Mutex::new(WaitingStart { processes: VecDeque::new(), taken: Instant::now() }),
            options,
            refilling: AtomicBool::new(false),
            crash_history: CrashHistory::default(),
            shared_ends: OnceLock::new(),
            notices: OnceLock::new(),
            walls: Mutex::default(),
            starter,
            disks: Disks::default(),
        }))
    }

    /// The starter of its processes, for others.
    #[must_use]
    pub fn starter(&self) -> &Arc<Starter> {
        &self.starter
    }

    /// From now on, counts ends of its processes together with those at other hosts.
    pub fn share_ends(&self, ends: Arc<dyn SharedEnds>) {
        // The first one stays: there is one for the life of the process.
        let _ = self.shared_ends.set(ends);
    }

    /// Sends all further notices to these. Returns the walls that were missing in any process so
    /// far, with the reasons; `None` if no process has built any.
    pub fn notify(&self, notices: Arc<dyn PoolNotices>) -> Option<Vec<(String, String)>> {
        let known = self.walls.lock().unwrap_or_else(PoisonError::into_inner);
        // The first one stays, as above.
        let _ = self.notices.set(notices);
        known.as_ref().map(|known| known.ever.clone())
    }

    /// The walls that are missing in the process that most recently built them, with the reasons;
    /// `None` if no process has built any.
    #[must_use]
    pub fn walls_missing(&self) -> Option<Vec<(String, String)>> {
        let known = self.walls.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().map(|known| known.latest.clone())
    }

    /// Notes that a process has built its walls, except for these.
    pub(super) fn walls_built(&self, missing: &[(String, String)]) {
        if matches!(self.options.program, Program::Thread(_)) {
            return;
        }
        let mut known = self.walls.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        known.latest = missing.iter().take(Wall::ALL.len()).cloned().collect();
        let more = missing.iter().filter(|(wall, _)| known.ever.iter().all(|(other, _)| other != wall));
        let more: Vec<_> = more.take(Wall::ALL.len().saturating_sub(known.ever.len())).cloned().collect();
        known.ever.extend_from_slice(&more);
        if let Some(notices) = self.notices.get().filter(|_| !more.is_empty()) {
            notices.walls_missing(&more);
        }
    }

    /// The standing of a component, by the name that a group's member has.
    pub(super) fn standing(&self, component: &str) -> Standing {
        self.crash_history.of(component, self.shared_ends.get().map(AsRef::as_ref))
    }

    /// Notes that a process was ended that ran a call of this component.
    pub(super) fn ended(&self, component: &str, process: u32) {
        let changed = self.crash_history.ended(component, process, self.shared_ends.get().map(AsRef::as_ref));
        if let (Some(standing), Some(notices)) = (changed, self.notices.get()) {
            notices.standing(component, standing);
        }
    }

    /// Forgets all ends of processes so far, at every host.
    pub fn forget_ends(&self) {
        self.crash_history.forget(self.shared_ends.get().map(AsRef::as_ref));
    }

    /// The settings of its processes.
    #[must_use]
    pub const fn options(&self) -> &PoolOptions {
        &self.options
    }

    /// A waiting process with this engine, if there is one. Another is started once none was taken
    /// for a while.
    pub(super) fn take(self: &Arc<Self>, engine: GuestEngine) -> Option<StartedProcess> {
        if engine != WAITING_ENGINE {
            return None;
        }
        let waited = {
            let mut waiting = self.lock();
            waiting.taken = Instant::now();
            // Skip those that ended while waiting.
            std::iter::from_fn(|| waiting.processes.pop_front()).find(|started| started.process.end().is_none())
        };
        // Set after that, so that a task which is about to end notices the missing process.
        if !self.refilling.swap(true, Ordering::AcqRel) {
            drop(tokio::spawn(refill(Arc::downgrade(self))));
        }
        waited
    }

    /// Starts a process that then waits for a group, to check that the machine can start any.
    ///
    /// # Errors
    /// A sentence with the reason why none starts.
    pub async fn try_start(&self) -> Result<(), String> {
        let started = self.start(WAITING_ENGINE).await.map_err(|error| error.to_string())?;
        self.lock().processes.push_back(started);
        Ok(())
    }

    /// A process that starts now.
    pub(super) async fn start(&self, engine: GuestEngine) -> Result<StartedProcess, NotStarted> {
        let (process, socket) = self.starter.start(self.options.program.clone()).await?;
        match self.begin(socket, engine) {
            Ok(receiver) => Ok(StartedProcess { process, receiver }),
            Err(NotStarted::Ended(link)) => {
                process.kill();
                let end = process.ended().await;
                Err(NotStarted::Ended(end_at_start(&link, &end)))
            }
            Err(refused) => Err(refused),
        }
    }

    /// Opens the link to a new process, and sends its settings.
    fn begin(&self, socket: OwnedFd, engine: GuestEngine) -> Result<Receiver, NotStarted> {
        let PoolOptions { stack_bytes, calls_max, prewarm_bytes, .. } = &self.options;
        let (sender, mut receiver) = link::open(socket)?;
        // A sandbox process must not send descriptors.
        receiver.refuse_fds();
        let settings = ProcessSettings {
            stack_bytes: *stack_bytes as u64,
            calls_max: *calls_max as u64,
            prewarm_bytes: *prewarm_bytes,
            engine,
        };
        sender.send(&encoding::encode(&ToSandbox::Begin(settings))?, &[])?;
        Ok(receiver)
    }

    /// The time until the next process is to be started; `None` if enough wait.
    fn wait(&self) -> Option<Duration> {
        let waiting = self.lock();
        let few = waiting.processes.len() < WAITING_MAX;
        few.then(|| QUIET.saturating_sub(waiting.taken.elapsed()))
    }

    fn lock(&self) -> MutexGuard<'_, WaitingStart> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts processes until enough wait.
async fn refill(pool: Weak<SandboxPool>) {
    loop {
        let Some(this) = pool.upgrade() else { return };
        match this.wait() {
            Some(Duration::ZERO) => match this.start(WAITING_ENGINE).await {
                Ok(process) => this.lock().processes.push_back(process),
                Err(_) => {
                    // The next group that needs a process tries again, and reports the error.
                    this.refilling.store(false, Ordering::Release);
                    return;
                }
            },
            Some(wait) => {
                drop(this);
                tokio::time::sleep(wait).await;
            }
            None => {
                this.refilling.store(false, Ordering::Release);
                // One may have been taken meanwhile by a caller who saw this task running.
                if this.wait().is_none() || this.refilling.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
        }
    }
}
