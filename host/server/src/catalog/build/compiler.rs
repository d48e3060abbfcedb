//! Compiling within a time limit. Must not hold: what is compiled, or how the manifest gives the
//! time.
//!
//! A compiler cannot be stopped, so each component gets a thread of its own. A thread that is done
//! in time is joined. One that is late is left behind, and its result is dropped. The number of
//! threads left behind is bounded.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

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

/// Interval at which a compilation that goes on is told.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// A compilation that takes long.
#[derive(Clone, Copy, Debug)]
pub struct Compiling<'a> {
    /// The component's name.
    pub component: &'a str,
    /// Bytes of the component.
    pub bytes: usize,
    /// Time since it began.
    pub elapsed: Duration,
}

impl std::fmt::Display for Compiling<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const MEGABYTE: usize = 1_000_000;
        let (megabytes, seconds) = (self.bytes.div_ceil(MEGABYTE), self.elapsed.as_secs());
        write!(f, "compiling {}, {megabytes} MB, {seconds} s…", self.component)
    }
}

/// Input of a compilation besides the bytes.
pub struct Compilation<'a> {
    /// The component's name.
    pub component: &'a str,
    /// The longest that it may take.
    pub time: Duration,
    /// True if calls are served meanwhile. They go first.
    pub serves_meanwhile: bool,
    /// Called every five seconds.
    pub tell: &'a dyn Fn(Compiling<'_>),
}

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

    /// True if compiling these bytes would take long, and they were not compiled before.
    pub fn takes_long(&self, bytes: &[u8]) -> bool {
        bytes.len() >= BACKGROUND_BYTES_MIN && !ToolComponent::is_compiled(&self.sandbox, bytes)
    }

    /// Compiles and links these bytes.
    pub fn compile(&self, bytes: Vec<u8>, compilation: &Compilation<'_>) -> Result<ToolComponent, NotCompiled> {
        let began = Instant::now();
        let bytes: Arc<[u8]> = bytes.into();
        let Compilation { component, time, serves_meanwhile, tell } = *compilation;
        let tell = || tell(Compiling { component, bytes: bytes.len(), elapsed: began.elapsed() });
        if !serves_meanwhile || bytes.len() < BACKGROUND_BYTES_MIN {
            return self.attempt(&bytes, time, false, &tell);
        }
        let patience = BACKGROUND_FIRST + BACKGROUND_PER_MIB * u32::try_from(bytes.len() >> 20).unwrap_or(u32::MAX);
        match self.attempt(&bytes, patience.min(time), true, &tell) {
            // Tools that keep all cores busy must not keep new code out.
            Err(NotCompiled::TooLate) => self.attempt(&bytes, time, false, &tell),
            done => done,
        }
    }

    fn attempt(
        &self,
        bytes: &Arc<[u8]>,
        time: Duration,
        in_background: bool,
        tell: &dyn Fn(),
    ) -> Result<ToolComponent, NotCompiled> {
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
        match patiently(&compiled, time, TOLD_EVERY, tell) {
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

/// Waits for at most this time, and tells every so often that it waits.
fn patiently<T>(result: &Receiver<T>, time: Duration, every: Duration, tell: &dyn Fn()) -> Result<T, RecvTimeoutError> {
    let mut left = time;
    while left > every {
        match result.recv_timeout(every) {
            Err(RecvTimeoutError::Timeout) => tell(),
            done => return done,
        }
        left -= every;
    }
    result.recv_timeout(left)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    use super::{Compiling, patiently};

    const EVERY: Duration = Duration::from_millis(1);

    #[test]
    fn a_long_wait_is_told_until_the_result_is_there() {
        let ((sender, receiver), told) = (channel(), Cell::new(0));
        let tell = || {
            told.set(told.get() + 1);
            if told.get() == 3 {
                sender.send("done").unwrap();
            }
        };
        assert_eq!(patiently(&receiver, Duration::from_secs(600), EVERY, &tell), Ok("done"));
        assert_eq!(told.get(), 3);
    }

    #[test]
    fn a_wait_ends_with_its_time_and_a_short_one_tells_nothing() {
        let ((_sender, receiver), told) = (channel::<()>(), Cell::new(0));
        let tell = || told.set(told.get() + 1);
        assert_eq!(patiently(&receiver, 4 * EVERY, EVERY, &tell), Err(RecvTimeoutError::Timeout));
        assert_eq!(told.get(), 3);
        assert_eq!(patiently(&receiver, EVERY, EVERY, &tell), Err(RecvTimeoutError::Timeout));
        assert_eq!(told.get(), 3);
    }

    #[test]
    fn a_long_compilation_is_told_with_name_size_and_time() {
        let told = |bytes, seconds: u64| {
            let elapsed = std::time::Duration::from_millis(seconds * 1_000 + 999);
            Compiling { component: "statistics", bytes, elapsed }.to_string()
        };
        assert_eq!(told(33_600_000, 12), "compiling statistics, 34 MB, 12 s…");
        assert_eq!(told(1, 5), "compiling statistics, 1 MB, 5 s…");
    }
}
