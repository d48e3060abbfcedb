//! Compiling within a time. Must not hold: what is compiled, or how the manifest puts the time.
//!
//! A compiler cannot be stopped. Each component gets a thread of its own, which is joined where it is done in time; where
//! it is not, the thread is left behind, and what it comes to is thrown away. How many may be left behind is bounded.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use toolcell_sandbox::{LoadError, Sandbox, ToolComponent, in_background as background};

/// Compilations that took too long and still run. Each keeps a core busy and holds memory: past these nothing is
/// compiled until one of them is done.
const LEFT_BEHIND_MAX: usize = 4;

/// Bytes of a component from which on it is compiled where nobody else wants a core, while calls are served. A smaller one is
/// compiled within a quarter of a second; it is not kept waiting by whatever else keeps the machine busy.
const BACKGROUND_BYTES_MIN: usize = 256 << 10;

/// How long such a component may take, and how much longer for each MiB of it: twice what it takes one core of its own. It is begun
/// anew as others are where that is not enough.
const BACKGROUND_FIRST: Duration = Duration::from_secs(4);
const BACKGROUND_PER_MIB: Duration = Duration::from_secs(2);

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
    #[error("not compiled: no thread starts: {}", crate::file::plain(.0))]
    NoThread(std::io::Error),
}

impl Compiler {
    pub fn new(sandbox: Sandbox) -> Self {
        Self { sandbox, left_behind: Arc::default() }
    }

    /// Compiles and links these bytes, in at most this time. Where calls are served meanwhile, they go first.
    pub fn compile(&self, bytes: Vec<u8>, time: Duration, is_beside_calls: bool) -> Result<ToolComponent, NotCompiled> {
        let bytes: Arc<[u8]> = bytes.into();
        if !is_beside_calls || bytes.len() < BACKGROUND_BYTES_MIN {
            return self.attempt(&bytes, time, false);
        }
        let patience = BACKGROUND_FIRST + BACKGROUND_PER_MIB * u32::try_from(bytes.len() >> 20).unwrap_or(u32::MAX);
        match self.attempt(&bytes, patience.min(time), true) {
            // The machine has no time to spare: tools that keep it busy must not keep new code out.
            Err(NotCompiled::TooLate) => self.attempt(&bytes, time, false),
            done => done,
        }
    }

    fn attempt(&self, bytes: &Arc<[u8]>, time: Duration, in_background: bool) -> Result<ToolComponent, NotCompiled> {
        let running = self.left_behind.load(Ordering::Acquire);
        if running >= LEFT_BEHIND_MAX {
            return Err(NotCompiled::LeftBehind { running });
        }
        // Without room, so that what is sent is either received here or known to the sender to be lost.
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
