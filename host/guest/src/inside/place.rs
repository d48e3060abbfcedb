//! The place where guests run: a process with walls, or a thread without.
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Runtime;
use toolcell_walls::process::Threads;

use super::{InsideError, serve};
use crate::load::sandbox::{Sandbox, SandboxError, StillSandbox};
use toolcell_wall::load::facts::GuestEngine;
use toolcell_wall::pool_sizes::SandboxOptions;

/// Longer than any process runs: a century.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// The place where guests run.
pub(crate) enum RunPlace {
    /// A process, which puts walls around itself.
    Process,
    /// A thread of the host, without walls. All such threads share one engine of each kind.
    Thread(Arc<SharedEngines>),
}

/// The engines of a host without walls. Each starts at the first need.
pub(crate) struct SharedEngines {
    options: SandboxOptions,
    started: Mutex<BTreeMap<GuestEngine, Sandbox>>,
}

/// An engine; its clock may not run yet.
pub(super) enum Starting {
    Still(Box<StillSandbox>),
    Started(Sandbox),
}

impl Starting {
    /// Starts the clock, unless it already runs.
    pub(super) fn start(self) -> Result<Sandbox, SandboxError> {
        match self {
            Self::Still(sandbox) => sandbox.start(),
            Self::Started(sandbox) => Ok(sandbox),
        }
    }
}

impl RunPlace {
    /// The engine. In a process it is made with these options, and without a thread yet.
    pub(super) fn sandbox(&self, options: SandboxOptions) -> Result<Starting, SandboxError> {
        match self {
            Self::Process => StillSandbox::new(options).map(Box::new).map(Starting::Still),
            Self::Thread(engines) => engines.get(options.engine).map(Starting::Started),
        }
    }

    /// As [`sandbox`](Self::sandbox), with the clock running.
    pub(crate) fn started(&self, options: SandboxOptions) -> Result<Sandbox, SandboxError> {
        self.sandbox(options)?.start()
    }

    /// True if walls are built before a component is read.
    pub(crate) fn has_walls(&self) -> bool {
        matches!(self, Self::Process)
    }
}

impl SharedEngines {
    fn get(&self, engine: GuestEngine) -> Result<Sandbox, SandboxError> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sandbox) = started.get(&engine) {
            return Ok(sandbox.clone());
        }
        let sandbox = Sandbox::new(SandboxOptions { engine, ..self.options })?;
        Ok(started.entry(engine).or_insert(sandbox).clone())
    }
}

/// Serves calls on this link until the host closes it: the main of a sandbox process. The process
/// must not have started a thread: some walls belong to a thread, and new threads inherit them.
///
/// # Errors
/// [`InsideError`].
pub fn run_sandbox_process(socket: OwnedFd) -> Result<(), InsideError> {
    run(socket, &RunPlace::Process)
}

/// Threads that serve calls as sandbox processes do, without walls. All share one engine of each
/// kind, with these options.
#[must_use]
pub fn sandbox_threads(options: SandboxOptions) -> Threads {
    let engines = Arc::new(SharedEngines { options, started: Mutex::default() });
    Threads::new(move |socket| {
        run(socket, &RunPlace::Thread(Arc::clone(&engines))).map_err(|error| in_one_line(&error))
    })
}

/// An error with its causes.
fn in_one_line(error: &InsideError) -> String {
    let first: &dyn std::error::Error = error;
    let causes: Vec<String> =
        std::iter::successors(Some(first), |error| error.source()).map(ToString::to_string).collect();
    causes.join(": ")
}

fn run(socket: OwnedFd, place: &RunPlace) -> Result<(), InsideError> {
    let runtime = runtime().map_err(InsideError::Threads)?;
    runtime.block_on(serve(socket, place))
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // A guest that computes keeps the thread for a tick, so events are polled after each.
        .event_interval(1)
        // One thread for blocking work, which never ends: behind the walls no other can start.
        .max_blocking_threads(1)
        .thread_keep_alive(FOREVER)
        .build()
}
