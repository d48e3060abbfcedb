//! Compiling within a time limit. Must not hold: what is compiled, or how the manifest gives the
//! time.
//!
//! A compiler cannot be stopped, so each component gets a thread of its own. A thread that is done
//! in time is joined. One that is late is left behind, and its result is dropped. The number of
//! threads left behind is bounded.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use toolcell_sandbox::{LoadError, Sandbox, ToolComponent, in_background as background};

/// Most late compilations that may still run. Each keeps a core busy and holds memory. At this
/// number, nothing is compiled until one of them ends.
const LEFT_BEHIND_MAX: usize = 4;

/// Size from which a component is compiled at low priority while calls are served. A smaller one
/// compiles within a quarter of a second, so it does not wait for a busy machine.
const BACKGROUND_BYTES_MIN: usize = 256 << 10;

/// Time for a compilation at low priority, and extra time for each MiB: twice what it takes on a
/// core of its own. If that is not enough, it starts again at normal priority.
const BACKGROUND_FIRST: Duration = Duration::from_secs(4);
const BACKGROUND_PER_MIB: Duration = Duration::from_secs(2);

/// Compiles components, each on a thread of its own.
pub struct Compiler {
    sandbox: Sandbox,
    left_behind: Arc<AtomicUsize>,
}

/// Reason why there is no compiled component.
#[derive(Debug, thiserror::Error)]
pub enum NotCompiled {
    /// The compiler, or the linker, refused it.
    #[error(transparent)]
    Refused(LoadError),
    /// It was not done in time.
    #[error("compiling it takes too long")]
    TooLate,
    /// Too many late compilations still run.
    #[error("not compiled: {running} others that took too long still run")]
    LeftBehind { running: usize },
    /// The system gave no thread to compile on.
    #[error("not compiled: no thread starts: {}", crate::file::plain(.0))]
    NoThread(std::io::Error),
}

impl Compiler {
    pub fn new(sandbox: Sandbox) -> Self {
        Self { sandbox, left_behind: Arc::default() }
    }

    /// Compiles and links these bytes, in at most this time. Calls that are served meanwhile go
    /// first.
    pub fn compile(
        &self,
        bytes: Vec<u8>,
        time: Duration,
        serves_meanwhile: bool,
    ) -> Result<ToolComponent, NotCompiled> {
        let bytes: Arc<[u8]> = bytes.into();
        if !serves_meanwhile || bytes.len() < BACKGROUND_BYTES_MIN {
            return self.attempt(&bytes, time, false);
        }
        let patience = BACKGROUND_FIRST + BACKGROUND_PER_MIB * u32::try_from(bytes.len() >> 20).unwrap_or(u32::MAX);
        match self.attempt(&bytes, patience.min(time), true) {
            // Tools that keep all cores busy must not keep new code out.
            Err(NotCompiled::TooLate) => self.attempt(&bytes, time, false),
            done => done,
        }
    }

    fn attempt(&self, bytes: &Arc<[u8]>, time: Duration, in_background: bool) -> Result<ToolComponent, NotCompiled> {
        let running = self.left_behind.load(Ordering::Acquire);
        if running >= LEFT_BEHIND_MAX {
            return Err(NotCompiled::LeftBehind { running });
        }
        // No buffer: the result is either received here, or its sender learns that it is lost.
        let (done, compiled) = sync_channel(0);
        let (sandbox, left_behind) = (self.sandbox.clone(), Arc::clone(&self.left_behind));
        let bytes = Arc::clone(bytes);
        let thread = std::thread::Builder::new()
            .name("toolcell-compile".to_owned())
            .spawn(move || {
                let load = || ToolComponent::load(&sandbox, &bytes);
                let component = if in_background { background(load) } else { load() };
                if done.send(component).is_err() {
                    left_behind.fetch_sub(1, Ordering::AcqRel);
                }
            })
            .map_err(NotCompiled::NoThread)?;
        match compiled.recv_timeout(time) {
            Ok(component) => {
                // The result is here: the thread has nothing left to do, not even to fail.
                drop(thread.join());
                component.map_err(NotCompiled::Refused)
            }
            Err(RecvTimeoutError::Timeout) => {
                // Counted before the receiver is dropped, so that the thread subtracts only what
                // was added.
                self.left_behind.fetch_add(1, Ordering::AcqRel);
                Err(NotCompiled::TooLate)
            }
            // The thread panicked.
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => Err(NotCompiled::TooLate),
            },
        }
    }
}
