//! Compiling within a time limit. Must not hold: what is compiled, or how the manifest gives the
//! time.
//!
//! With walls, a loader compiles: a process, which is killed when it is late.
//!
//! Without them a compiler cannot be stopped, so each component gets a thread of its own. A thread
//! that is done in time is joined. One that is late is left behind, and its result is dropped. The
//! number of threads left behind is bounded.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use toolcell_policy::Limits;
use toolcell_sandbox::{
    Digest, HeldComponent, Lister, Listing, LoadError, LoadJob, Loader, NotLoaded, SchemaLimits, ToolComponent,
    WrittenDescriptions, in_background as background,
};

use crate::machine::LazySandbox;

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
    /// The digest of the bytes.
    pub digest: Digest,
    /// The component's name.
    pub component: &'a str,
    /// Its file: functions that a loader made serve later versions of it.
    pub source: &'a str,
    /// The longest that it may take.
    pub time: Duration,
    /// Bytes of memory that a loader may take, and that a call may take beside them.
    pub memory_bytes: (u64, u64),
    /// True if calls are served meanwhile. They go first.
    pub serves_meanwhile: bool,
    /// Called every five seconds.
    pub tell: &'a dyn Fn(Compiling<'_>),
}

/// Compiles components, each in a process or on a thread of its own.
pub struct Compiler {
    sandbox: Arc<LazySandbox>,
    loader: Option<Arc<Loader>>,
    left_behind: Arc<AtomicUsize>,
}

/// A component that was compiled. Where a loader did it, its process may still be there to list
/// tools.
pub type Compiled = (HeldComponent, Option<OpenLister>);

/// A process that can list tools, with what drives its link.
pub struct OpenLister {
    lister: Lister,
    runtime: Runtime,
    /// True if it lets every other thread of the machine go first.
    gives_way: bool,
}

/// Drives the links of one load. The server's own runtime may end before a load does.
fn runtime() -> Result<Runtime, NotLoaded> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| NotLoaded::Failed(format!("its loader cannot be waited for: {error}")))
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
    /// It panicked, outside of the engine's compiler.
    #[error("loading it met a fault of the host, which its standard error shows")]
    Panicked,
    /// Too many late compilations still run.
    #[error("not compiled: {running} others that took too long still run")]
    LeftBehind { running: usize },
    /// A loader did not load it.
    #[error(transparent)]
    NotLoaded(#[from] NotLoaded),
    /// The engine does not start.
    #[error("not compiled: {0}")]
    NoEngine(String),
    /// The system gave no thread to compile on.
    #[error("not compiled: no thread starts: {}", crate::file::plain(.0))]
    NoThread(std::io::Error),
}

impl Compiler {
    pub fn new(sandbox: Arc<LazySandbox>, loader: Option<Arc<Loader>>) -> Self {
        Self { sandbox, loader, left_behind: Arc::default() }
    }

    /// True if components are compiled in loaders, and run in sandbox processes.
    pub fn has_loader(&self) -> bool {
        self.loader.is_some()
    }

    /// True if compiling these bytes, here or in a loader, would take long, and they were not
    /// compiled before.
    pub fn takes_long(&self, bytes: &[u8], digest: Digest) -> bool {
        let is_compiled = || match &self.loader {
            Some(loader) => loader.is_compiled(bytes, digest),
            None => self.sandbox.get().is_ok_and(|sandbox| ToolComponent::is_compiled(sandbox, bytes, digest)),
        };
        bytes.len() >= BACKGROUND_BYTES_MIN && !is_compiled()
    }

    /// Compiles and links these bytes.
    pub fn compile(&self, bytes: &Arc<[u8]>, compilation: &Compilation<'_>) -> Result<Compiled, NotCompiled> {
        let began = Instant::now();
        let Compilation { component, time, serves_meanwhile, tell, .. } = *compilation;
        let tell = || tell(Compiling { component, bytes: bytes.len(), elapsed: began.elapsed() });
        let attempt = |time: Duration, in_background: bool| match &self.loader {
            Some(loader) => self.load(loader, bytes, compilation, (time, in_background), &tell),
            None => self
                .attempt((bytes, compilation.digest), time, in_background, &tell)
                .map(|here| (HeldComponent::here(here), None)),
        };
        if !serves_meanwhile || bytes.len() < BACKGROUND_BYTES_MIN {
            return match self.find(bytes, compilation.digest)? {
                Some(kept) => Ok((kept, None)),
                None => attempt(time, false),
            };
        }
        let patience = BACKGROUND_FIRST + BACKGROUND_PER_MIB * u32::try_from(bytes.len() >> 20).unwrap_or(u32::MAX);
        match attempt(patience.min(time), true) {
            // Tools that keep all cores busy must not keep new code out.
            Err(NotCompiled::TooLate) => attempt(time, false),
            done => done,
        }
    }

    /// The component of these bytes, if an earlier load compiled it. No thread and no process
    /// starts for it.
    fn find(&self, bytes: &[u8], digest: Digest) -> Result<Option<HeldComponent>, NotCompiled> {
        if let Some(loader) = &self.loader {
            return Ok(loader.find(bytes, digest));
        }
        let sandbox = self.sandbox.get().map_err(|error| NotCompiled::NoEngine(error.to_string()))?;
        let found = ToolComponent::find(sandbox, bytes, digest).map_err(NotCompiled::Refused)?;
        Ok(found.map(HeldComponent::here))
    }

    fn load(
        &self,
        loader: &Loader,
        bytes: &[u8],
        compilation: &Compilation<'_>,
        (time, gives_way): (Duration, bool),
        tell: &dyn Fn(),
    ) -> Result<Compiled, NotCompiled> {
        let (memory_bytes_max, call_memory_bytes) = compilation.memory_bytes;
        let Compilation { digest, source: component, .. } = *compilation;
        let job = LoadJob { digest, component, time, memory_bytes_max, call_memory_bytes, gives_way };
        let runtime = runtime()?;
        let loaded = runtime.block_on(async {
            let load = loader.load(bytes, &job);
            tokio::pin!(load);
            loop {
                match tokio::time::timeout(TOLD_EVERY, &mut load).await {
                    Ok(loaded) => return loaded,
                    Err(_) => tell(),
                }
            }
        });
        match loaded {
            Ok((component, lister)) => {
                let open = lister.map(|lister| OpenLister { lister, runtime, gives_way });
                Ok((component, open))
            }
            Err(NotLoaded::TooLate) => Err(NotCompiled::TooLate),
            Err(error) => Err(error.into()),
        }
    }

    /// The tools of a component that a loader loaded from these bytes.
    pub fn list(
        &self,
        (component, open): (&HeldComponent, Option<OpenLister>),
        bytes: &[u8],
        limits: (&Limits, u64),
        described: (&WrittenDescriptions, SchemaLimits),
    ) -> Result<Listing, NotCompiled> {
        let loader = self.loader.as_ref().ok_or_else(|| NotCompiled::NoEngine("there is no loader".to_owned()))?;
        if let Some(listing) = loader.find_list(component, limits.0, described) {
            return Ok(listing);
        }
        let list = |lister| loader.list((component, lister), bytes, limits, described);
        let (lister, runtime) = match open {
            Some(OpenLister { lister, runtime, gives_way: true }) => {
                let patience = BACKGROUND_FIRST.min(described.1.time);
                let listing = runtime.block_on(async { tokio::time::timeout(patience, list(Some(lister))).await });
                match listing {
                    Ok(listing) if listing.is_complete() => return Ok(listing),
                    // It had no core in its time. Another process does not wait for one.
                    _ => (None, runtime),
                }
            }
            Some(OpenLister { lister, runtime, gives_way: false }) => (Some(lister), runtime),
            None => (None, runtime()?),
        };
        Ok(runtime.block_on(list(lister)))
    }

    fn attempt(
        &self,
        (bytes, digest): (&Arc<[u8]>, Digest),
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
        let sandbox = self.sandbox.get().map_err(|error| NotCompiled::NoEngine(error.to_string()))?.clone();
        let left_behind = Arc::clone(&self.left_behind);
        let bytes = Arc::clone(bytes);
        let thread = std::thread::Builder::new()
            .name("toolcell-compile".to_owned())
            .spawn(move || {
                let load = || ToolComponent::load_known(&sandbox, &bytes, digest);
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
            // The thread panicked, which no other component pays for.
            Err(RecvTimeoutError::Disconnected) => {
                drop(thread.join());
                Err(NotCompiled::Panicked)
            }
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
