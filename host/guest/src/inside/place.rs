//! The place where guests run: a process with walls, or a thread without.
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Runtime;
use toolcell_walls::process::Threads;

use super::{InsideError, serve};
use crate::load::sandbox::{Sandbox, SandboxError, StillSandbox};
use toolcell_wall::pool_sizes::SandboxOptions;

/// Longer than any process runs: a century.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// The place where guests run.
pub(crate) enum Place {
    /// A process, which puts walls around itself.
    Process,
    /// A thread of the host, without walls. All such threads share one engine.
    Thread(Arc<SharedEngine>),
}

/// An engine that starts at the first need.
pub(crate) struct SharedEngine {
    options: SandboxOptions,
    started: Mutex<Option<Sandbox>>,
}

/// An engine, and whether its clock goes.
pub(super) enum Starting {
    Still(Box<StillSandbox>),
    Started(Sandbox),
}

impl Starting {
    /// Starts the clock, where it does not go yet.
    pub(super) fn start(self) -> Result<Sandbox, SandboxError> {
        match self {
            Self::Still(sandbox) => sandbox.start(),
            Self::Started(sandbox) => Ok(sandbox),
        }
    }
}

impl Place {
    /// The engine: of a process, one with these options and no thread yet.
    pub(super) fn sandbox(&self, options: SandboxOptions) -> Result<Starting, SandboxError> {
        match self {
            Self::Process => StillSandbox::new(options).map(Box::new).map(Starting::Still),
            Self::Thread(engine) => engine.get().map(Starting::Started),
        }
    }

    /// As [`sandbox`](Self::sandbox), with the clock of the engine going.
    pub(crate) fn started(&self, options: SandboxOptions) -> Result<Sandbox, SandboxError> {
        self.sandbox(options)?.start()
    }

    /// True if walls are put up before a component is looked at.
    pub(crate) fn has_walls(&self) -> bool {
        matches!(self, Self::Process)
    }
}

impl SharedEngine {
    fn get(&self) -> Result<Sandbox, SandboxError> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sandbox) = &*started {
            return Ok(sandbox.clone());
        }
        let sandbox = Sandbox::new(self.options)?;
        Ok(started.insert(sandbox).clone())
    }
}

/// Serves calls on this link until the host closes it: the work of a sandbox process. It must not
/// have started a thread: some walls are a thread's, and inherited.
///
/// # Errors
/// [`InsideError`].
pub fn run_sandbox_process(socket: OwnedFd) -> Result<(), InsideError> {
    run(socket, &Place::Process)
}

/// Threads that serve calls as sandbox processes do, without walls. An engine with these options is
/// shared by all of them.
#[must_use]
pub fn sandbox_threads(options: SandboxOptions) -> Threads {
    let engine = Arc::new(SharedEngine { options, started: Mutex::default() });
    Threads::new(move |socket| run(socket, &Place::Thread(Arc::clone(&engine))).map_err(|error| in_one_line(&error)))
}

/// An error with its causes.
fn in_one_line(error: &InsideError) -> String {
    let first: &dyn std::error::Error = error;
    let causes: Vec<String> =
        std::iter::successors(Some(first), |error| error.source()).map(ToString::to_string).collect();
    causes.join(": ")
}

fn run(socket: OwnedFd, place: &Place) -> Result<(), InsideError> {
    let runtime = runtime().map_err(InsideError::Threads)?;
    runtime.block_on(serve(socket, place))
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // A guest that computes has the thread for a tick: what comes is looked for after each.
        .event_interval(1)
        // One thread for what blocks, which never ends: behind the walls no other starts.
        .max_blocking_threads(1)
        .thread_keep_alive(FOREVER)
        .build()
}
