//! Compiling within a time. Must not hold: what is compiled, or how the manifest puts the time.
//!
//! A compiler cannot be stopped. Each component gets a thread of its own, which is joined where it is done in time; where
//! it is not, the thread is left behind, and what it comes to is thrown away. How many may be left behind is bounded.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use toolcell_sandbox::{LoadError, Sandbox, ToolComponent};

/// Compilations that took too long and still run. Each keeps a core busy and holds memory: past these nothing is
/// compiled until one of them is done.
const LEFT_BEHIND_MAX: usize = 4;

/// Compiles components, each on a thread of its own.
pub struct Compiler {
    sandbox: Sandbox,
    left_behind: Arc<AtomicUsize>,
}

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub enum NotCompiled {
    /// The compiler, or the linker, does not take it.
    #[error(transparent)]
    Refused(LoadError),
    /// It was not done in time.
    #[error("compiling it takes too long")]
    TooLate,
    /// Too many others were not done in time, and still run.
    #[error("not compiled: {running} others that took too long still run")]
    LeftBehind { running: usize },
    /// There is no thread to compile on.
    #[error("not compiled: no thread starts: {}", super::plain(.0))]
    NoThread(std::io::Error),
}

impl Compiler {
    /// The sandbox that it compiles for.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    pub fn new(sandbox: Sandbox) -> Self {
        Self { sandbox, left_behind: Arc::default() }
    }

    /// Compiles and links these bytes, in at most this time.
    pub fn compile(&self, bytes: Vec<u8>, time: Duration) -> Result<ToolComponent, NotCompiled> {
        let running = self.left_behind.load(Ordering::Acquire);
        if running >= LEFT_BEHIND_MAX {
            return Err(NotCompiled::LeftBehind { running });
        }
        // Without room, so that what is sent is either received here or known to the sender to be lost.
        let (done, compiled) = sync_channel(0);
        let (sandbox, left_behind) = (self.sandbox.clone(), Arc::clone(&self.left_behind));
        let thread = std::thread::Builder::new()
            .name("toolcell-compile".to_owned())
            .spawn(move || {
                let component = ToolComponent::load(&sandbox, &bytes);
                if done.send(component).is_err() {
                    left_behind.fetch_sub(1, Ordering::AcqRel);
                }
            })
            .map_err(NotCompiled::NoThread)?;
        match compiled.recv_timeout(time) {
            Ok(component) => {
                // What it came to is here: the thread has nothing left to do, not even to fail.
                drop(thread.join());
                component.map_err(NotCompiled::Refused)
            }
            Err(RecvTimeoutError::Timeout) => {
                // Counted before the receiver is dropped, so that the thread takes off only what was added.
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
