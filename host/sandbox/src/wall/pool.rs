//! Sandbox processes that have started and belong to no group yet. Must not hold: components.
//!
//! Starting a program and setting up the engine take longer than loading most components. A process
//! that waits here has done both, so a new group, or the next process of one, begins sooner.
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use toolcell_walls::link::{self, Receiver};
use toolcell_walls::process::{Command, Process, Starter};

use super::conduct::SharedEnds;
use super::message::{self, Settings, ToSandbox};
use super::process::{NotStarted, end_at_start};

/// Processes that wait. One is enough for groups that begin one after the other; each takes some
/// megabytes.
const WAITING_MAX: usize = 1;

/// Time without a start after which the next process is started ahead: where a host starts, it has
/// first answers to give.
const QUIET: Duration = Duration::from_millis(250);

/// The settings of all sandbox processes.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// The program that becomes a sandbox process.
    pub program: Command,
    /// Bytes of WebAssembly stack per call.
    pub stack_bytes: usize,
    /// Calls at once in one process.
    pub calls_max: usize,
    /// Bytes of all instances made ahead in one process.
    pub prewarm_bytes: u64,
}

/// Starts sandbox processes, and keeps one waiting. Dropping it ends all that it started.
pub struct SandboxPool {
    // First: its processes end before the starter waits for them.
    waiting: Mutex<Waiting>,
    options: PoolOptions,
    refilling: AtomicBool,
    shared_ends: OnceLock<Arc<dyn SharedEnds>>,
    starter: Arc<Starter>,
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
        let starter = Arc::new(Starter::new()?);
        let waiting = Mutex::new(Waiting { processes: VecDeque::new(), taken: Instant::now() });
        let (refilling, shared_ends) = (AtomicBool::new(false), OnceLock::new());
        Ok(Arc::new(Self { waiting, options, refilling, shared_ends, starter }))
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

    /// The ends that hosts count together.
    pub(super) fn shared_ends(&self) -> Option<&dyn SharedEnds> {
        self.shared_ends.get().map(AsRef::as_ref)
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
        sender.send(&message::encode(&ToSandbox::Begin(settings))?, &[])?;
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
