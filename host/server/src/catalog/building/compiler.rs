//! Compiling within a time limit.
//!
//! A loader compiles: a process, which is killed when it is late. Without walls it is a thread,
//! which is left behind.
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use toolcell_sandbox::{ComponentDigest, HeldComponent, ListJob, Lister, ListingResult, LoadJob, Loader, NotLoaded};

/// Size from which a component is compiled at low priority while calls are served. A smaller one
/// compiles within a quarter of a second, so it does not wait for a busy machine.
const BACKGROUND_BYTES_MIN: usize = 256 << 10;

/// Time for a compilation at low priority, and extra time for each MiB: twice what it takes on a
/// core of its own. If that is not enough, it starts again at normal priority.
const BACKGROUND_FIRST: Duration = Duration::from_secs(4);
const BACKGROUND_PER_MIB: Duration = Duration::from_secs(2);

/// How often a running compilation is reported.
const REPORT_EVERY: Duration = Duration::from_secs(5);

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
        let megabytes = self.bytes.div_ceil(MEGABYTE);
        let seconds = self.elapsed.as_secs();
        write!(f, "compiling {}, {megabytes} MB, {seconds} s…", self.component)
    }
}

/// Input of a compilation besides the bytes.
pub struct Compilation<'a> {
    /// The digest of the bytes.
    pub digest: ComponentDigest,
    /// Its file: later versions of it reuse compiled functions.
    pub component: &'a str,
    /// Its file: functions that a loader made serve later versions of it.
    pub source: &'a str,
    /// The longest that it may take.
    pub time: Duration,
    /// Bytes of memory that a loader may take, and that a call may take in addition.
    pub memory_bytes: (u64, u64),
    /// True if calls are served meanwhile. They have priority.
    pub serves_meanwhile: bool,
    /// Called every five seconds.
    pub tell: &'a dyn Fn(Compiling<'_>),
}

/// Compiles components, each in a loader of its own.
pub struct Compiler {
    loader: Arc<Loader>,
}

/// A compiled component. Its loader may still run, to list tools.
pub type Compiled = (HeldComponent, Option<OpenLister>);

/// A process that can list tools, and the runtime of its link.
pub struct OpenLister {
    lister: Lister,
    runtime: Runtime,
    /// True if it runs at low priority.
    gives_way: bool,
}

/// Drives the links of one load. It is not the server's runtime, which may end before a load does.
fn runtime() -> Result<Runtime, NotLoaded> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| NotLoaded::Failed(format!("its loader cannot be waited for: {error}")))
}

impl Compiler {
    pub fn new(loader: Arc<Loader>) -> Self {
        Self { loader }
    }

    /// True if compiling these bytes takes long and has not been done before.
    pub fn takes_long(&self, bytes: &[u8], digest: ComponentDigest) -> bool {
        bytes.len() >= BACKGROUND_BYTES_MIN && !self.loader.is_compiled(bytes, digest)
    }

    /// Compiles and links these bytes.
    pub fn compile(&self, bytes: &[u8], compilation: &Compilation<'_>) -> Result<Compiled, NotLoaded> {
        let began = Instant::now();
        let Compilation { component, time, serves_meanwhile, tell, .. } = *compilation;
        let tell = || tell(Compiling { component, bytes: bytes.len(), elapsed: began.elapsed() });
        let attempt = |time: Duration, gives_way: bool| self.load(bytes, compilation, time, gives_way, &tell);
        if !serves_meanwhile || bytes.len() < BACKGROUND_BYTES_MIN {
            return match self.loader.find(bytes, compilation.digest) {
                Some(kept) => Ok((kept, None)),
                None => attempt(time, false),
            };
        }
        let patience = BACKGROUND_FIRST + BACKGROUND_PER_MIB * u32::try_from(bytes.len() >> 20).unwrap_or(u32::MAX);
        match attempt(patience.min(time), true) {
            // Tools that keep all cores busy must not block new code.
            Err(NotLoaded::TooLate) => attempt(time, false),
            done => done,
        }
    }

    fn load(
        &self,
        bytes: &[u8],
        compilation: &Compilation<'_>,
        time: Duration,
        gives_way: bool,
        tell: &dyn Fn(),
    ) -> Result<Compiled, NotLoaded> {
        let (memory_bytes_max, call_memory_bytes) = compilation.memory_bytes;
        let Compilation { digest, source: component, .. } = *compilation;
        let job = LoadJob { digest, component, time, memory_bytes_max, call_memory_bytes, gives_way };
        let runtime = runtime()?;
        let loaded = runtime.block_on(async {
            let load = self.loader.load(bytes, &job);
            tokio::pin!(load);
            loop {
                match tokio::time::timeout(REPORT_EVERY, &mut load).await {
                    Ok(loaded) => return loaded,
                    Err(_) => tell(),
                }
            }
        });
        let (component, lister) = loaded?;
        Ok((component, lister.map(|lister| OpenLister { lister, runtime, gives_way })))
    }

    /// The tools of a component that a loader loaded from these bytes.
    pub fn list(
        &self,
        component: &HeldComponent,
        open: Option<OpenLister>,
        bytes: &[u8],
        job: &ListJob<'_>,
    ) -> Result<ListingResult, NotLoaded> {
        let loader = &self.loader;
        if let Some(listing) = loader.find_list(component, job) {
            return Ok(listing);
        }
        let list = |lister| loader.list(component, lister, bytes, job);
        let (lister, runtime) = match open {
            Some(OpenLister { lister, runtime, gives_way: true }) => {
                let patience = BACKGROUND_FIRST.min(job.schemas.time);
                let listing = runtime.block_on(async { tokio::time::timeout(patience, list(Some(lister))).await });
                match listing {
                    Ok(listing) if listing.is_complete() => return Ok(listing),
                    // It got no core in time. Another process is not limited by its priority.
                    _ => (None, runtime),
                }
            }
            Some(OpenLister { lister, runtime, gives_way: false }) => (Some(lister), runtime),
            None => (None, runtime()?),
        };
        Ok(runtime.block_on(list(lister)))
    }
}

#[cfg(test)]
mod tests {
    use super::Compiling;

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
