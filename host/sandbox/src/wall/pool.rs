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

use super::conduct::{Conduct, SharedEnds, Standing};
use super::disk::Disks;
use super::process::{NotStarted, end_at_start};
use toolcell_wall::encoding;
use toolcell_wall::message::{Settings, ToSandbox};

/// Processes that wait. One is enough for groups that begin one after the other; each takes some
/// megabytes.
const WAITING_MAX: usize = 1;

/// Time without a start after which the next process is started ahead: where a host starts, it has
/// first answers to give.
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
    /// Bytes of all instances made ahead in one process.
    pub prewarm_bytes: u64,
    /// Bytes of memory that all processes together may take, loaders included. Past it the largest
    /// is ended.
    pub memory_bytes_max: u64,
}

/// Is told what an operator should know of sandbox processes.
pub trait PoolNotices: Send + Sync {
    /// A process has started in which these walls do not stand, each by its name with the reason.
    /// Each is told once.
    fn walls_missing(&self, walls: &[(String, String)]);

    /// The standing of a component is another one now. It is named as the group's member is.
    fn standing(&self, component: &str, standing: Standing);
}

/// Starts sandbox processes, and keeps one waiting. Dropping it ends all that it started.
pub struct SandboxPool {
    // First: its processes end before the starter waits for them.
    waiting: Mutex<Waiting>,
    options: PoolOptions,
    refilling: AtomicBool,
    conduct: Conduct,
    shared_ends: OnceLock<Arc<dyn SharedEnds>>,
    notices: OnceLock<Arc<dyn PoolNotices>>,
    walls: Mutex<Option<WallsMissing>>,
    starter: Arc<Starter>,
    pub(super) disks: Disks,
}

/// Walls that do not stand, each by its name with the reason.
#[derive(Default)]
struct WallsMissing {
    /// In the process that was the last to build its walls.
    latest: Vec<(String, String)>,
    /// In any process so far.
    ever: Vec<(String, String)>,
}

struct Waiting {
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
    /// The machine gives no thread to start them.
    pub fn new(options: PoolOptions) -> io::Result<Arc<Self>> {
        let starter = Arc::new(Starter::bounded(options.memory_bytes_max)?);
        let waiting = Mutex::new(Waiting { processes: VecDeque::new(), taken: Instant::now() });
        let refilling = AtomicBool::new(false);
        let conduct = Conduct::default();
        let walls = Mutex::default();
        let shared_ends = OnceLock::new();
        let notices = OnceLock::new();
        Ok(Arc::new(Self {
            waiting,
            options,
            refilling,
            conduct,
            shared_ends,
            notices,
            walls,
            starter,
            disks: Disks::default(),
        }))
    }

    /// The starter of its processes, for others.
    #[must_use]
    pub fn starter(&self) -> &Arc<Starter> {
        &self.starter
    }

    /// From now on ends of its processes count together with those at other hosts.
    pub fn share_ends(&self, ends: Arc<dyn SharedEnds>) {
        // The first one stays: there is one for the life of the process.
        let _ = self.shared_ends.set(ends);
    }

    /// Has these told of all that comes from now on. Returns the walls that did not stand in a
    /// process so far, with the reasons; `None` where no process has built any.
    pub fn notify(&self, notices: Arc<dyn PoolNotices>) -> Option<Vec<(String, String)>> {
        let known = self.walls.lock().unwrap_or_else(PoisonError::into_inner);
        // The first one stays, as above.
        let _ = self.notices.set(notices);
        known.as_ref().map(|known| known.ever.clone())
    }

    /// The walls that do not stand in the process that was the last to build them, with the
    /// reasons; `None` where no process has built any.
    #[must_use]
    pub fn walls_missing(&self) -> Option<Vec<(String, String)>> {
        let known = self.walls.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().map(|known| known.latest.clone())
    }

    /// A process has built its walls, but for these.
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
        self.conduct.of(component, self.shared_ends.get().map(AsRef::as_ref))
    }

    /// A process was ended, and ran a call of this component.
    pub(super) fn ended(&self, component: &str, process: u32) {
        let changed = self.conduct.ended(component, process, self.shared_ends.get().map(AsRef::as_ref));
        if let (Some(standing), Some(notices)) = (changed, self.notices.get()) {
            notices.standing(component, standing);
        }
    }

    /// No end of a process so far counts against a component any more, at any host.
    pub fn forget_ends(&self) {
        self.conduct.forget(self.shared_ends.get().map(AsRef::as_ref));
    }

    /// The settings of its processes.
    #[must_use]
    pub const fn options(&self) -> &PoolOptions {
        &self.options
    }

    /// A process that waited, where one did. Another is started ahead once nobody takes one for a
    /// while.
    pub(super) fn take(self: &Arc<Self>) -> Option<StartedProcess> {
        let waited = {
            let mut waiting = self.lock();
            waiting.taken = Instant::now();
            // One that ended while it waited is no use.
            std::iter::from_fn(|| waiting.processes.pop_front()).find(|started| started.process.end().is_none())
        };
        // After that, so that a task which is about to end sees that one is missing.
        if !self.refilling.swap(true, Ordering::AcqRel) {
            drop(tokio::spawn(refill(Arc::downgrade(self))));
        }
        waited
    }

    /// Starts a process, which then waits for a group: true of a machine that can start any.
    ///
    /// # Errors
    /// One sentence, where none starts.
    pub async fn try_start(&self) -> Result<(), String> {
        let started = self.start().await.map_err(|error| error.to_string())?;
        self.lock().processes.push_back(started);
        Ok(())
    }

    /// A process that starts now.
    pub(super) async fn start(&self) -> Result<StartedProcess, NotStarted> {
        let (process, socket) = self.starter.start(self.options.program.clone()).await?;
        match self.begin(socket) {
            Ok(receiver) => Ok(StartedProcess { process, receiver }),
            Err(NotStarted::Ended(link)) => {
                process.kill();
                let end = process.ended().await;
                Err(NotStarted::Ended(end_at_start(&link, &end)))
            }
            Err(refused) => Err(refused),
        }
    }

    /// Opens the link to a new process, and tells it its settings.
    fn begin(&self, socket: OwnedFd) -> Result<Receiver, NotStarted> {
        let PoolOptions { stack_bytes, calls_max, prewarm_bytes, .. } = &self.options;
        let (sender, mut receiver) = link::open(socket)?;
        // Nothing that a sandbox process could send is wanted.
        receiver.refuse_fds();
        let settings =
            Settings { stack_bytes: *stack_bytes as u64, calls_max: *calls_max as u64, prewarm_bytes: *prewarm_bytes };
        sender.send(&encoding::encode(&ToSandbox::Begin(settings))?, &[])?;
        Ok(receiver)
    }

    /// The time to wait until the next process is started ahead; `None` where enough wait.
    fn wait(&self) -> Option<Duration> {
        let waiting = self.lock();
        let few = waiting.processes.len() < WAITING_MAX;
        few.then(|| QUIET.saturating_sub(waiting.taken.elapsed()))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts processes ahead until enough wait.
async fn refill(pool: Weak<SandboxPool>) {
    loop {
        let Some(this) = pool.upgrade() else { return };
        match this.wait() {
            Some(Duration::ZERO) => match this.start().await {
                Ok(process) => this.lock().processes.push_back(process),
                Err(_) => {
                    // The next group that needs a process tries again, and says why there is none.
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
                // One may have been taken in between, by somebody who saw this task.
                if this.wait().is_none() || this.refilling.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
        }
    }
}
