//! What runs guests: the engine, the worker threads, and where compiled code is kept.
use std::path::PathBuf;

use anyhow::Context as _;
use tokio::runtime::Runtime;
use toolcell_policy::Server;
use toolcell_sandbox::{CACHE_BYTES_MAX, CacheError, CodeCache, Sandbox, SandboxOptions};

use crate::args::CodeCacheArgs;
use crate::terminal;
use crate::workers::Workers;

/// What runs guests.
pub struct Machine {
    /// The threads that run guests for clients.
    pub workers: Workers,
    /// Drives timers and sockets, and runs what a command itself waits for.
    pub runtime: Runtime,
    /// The engine.
    pub sandbox: Sandbox,
}

impl Machine {
    /// Starts the engine and one worker thread per core. `server` is the manifest's, where there is one.
    pub fn start(code: &CodeCacheArgs, server: Option<&Server>) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("toolcell-io")
            .enable_all()
            .build()
            .context("the thread for timers and sockets does not start")?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers =
            Workers::start(cores, runtime.handle().clone()).context("the worker threads for guests do not start")?;
        let mut options = SandboxOptions { cache: open_cache(code), ..SandboxOptions::default() };
        if let Some(server) = server {
            options.stack_bytes = server.stack_bytes();
            options.calls_max = server.calls();
        }
        let sandbox = Sandbox::new(options)?;
        Ok(Self { workers, runtime, sandbox })
    }
}

/// The cache, unless it is off or cannot be used; the latter is said, and the host runs without one.
fn open_cache(code: &CodeCacheArgs) -> Option<CodeCache> {
    if code.no_code_cache {
        return None;
    }
    let (Some(folder), Some(key)) = cache_places(code) else { return None };
    match CodeCache::open(&folder, &key, CACHE_BYTES_MAX) {
        Ok(cache) => {
            say_removed(cache.drafts_removed());
            Some(cache)
        }
        Err(error) => {
            say_unusable(&error);
            None
        }
    }
}

/// Where the cache and its key are, used or not: another process of this user may use them.
pub fn cache_places(code: &CodeCacheArgs) -> (Option<PathBuf>, Option<PathBuf>) {
    let usual = || user_folder("XDG_CACHE_HOME", ".cache").map(|at| at.join("code"));
    let key = user_folder("XDG_STATE_HOME", ".local/state").map(|at| at.join("code-cache.key"));
    (code.code_cache.clone().or_else(usual), key)
}

/// Says that a process was stopped while it kept code.
fn say_removed(drafts: usize) {
    if drafts > 0 {
        terminal::say(&format!(
            "note: drafts of compiled code, left by a process that was stopped, were removed: {drafts}\n"
        ));
    }
}

fn say_unusable(error: &CacheError) {
    terminal::warning(&format!("compiled code is not kept: {error}"));
}

/// This program's folder among the user's, by the XDG base directory specification; relative paths in the environment
/// are ignored, as it asks.
pub fn user_folder(variable: &str, otherwise: &str) -> Option<PathBuf> {
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder =
        set.or_else(|| std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(otherwise)))?;
    Some(folder.join("toolcell"))
}
