//! The machinery for guests: the engine, the worker threads, and the code cache.
use std::path::PathBuf;

use tokio::runtime::Runtime;
use toolcell_policy::{Server, Walls};
use toolcell_sandbox::{CACHE_BYTES_MAX, CodeCache, Sandbox, SandboxOptions};

use toolcell_walls::process::Command;

use crate::catalog::WallSetup;
use crate::error::{StartError, StepExt as _};
use crate::open::{CodeCacheOptions, Note};
use crate::workers::Workers;

/// The machinery for guests.
pub struct Machine {
    /// The threads that run guests for clients.
    pub workers: Workers,
    /// Drives timers and sockets, and runs futures of commands.
    pub runtime: Runtime,
    /// The engine.
    pub sandbox: Sandbox,
    /// The means of starting sandbox processes, where the manifest wants them.
    pub walls: Option<WallSetup>,
    /// Remarks on the code cache.
    pub notes: Vec<Note>,
}

impl Machine {
    /// Starts the engine and one worker thread per core. `server` comes from the manifest, if there
    /// is one.
    ///
    /// # Errors
    /// The machine has no memory or threads for it.
    pub fn start(
        code: &CodeCacheOptions,
        server: Option<&Server>,
        sandbox: Option<&Command>,
    ) -> Result<Self, StartError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("toolcell-io")
            .enable_all()
            .build()
            .step("the thread for timers and sockets does not start")?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers =
            Workers::start(cores, runtime.handle().clone()).step("the worker threads for guests do not start")?;
        let mut notes = Vec::new();
        let mut options = SandboxOptions { cache: open_cache(code, &mut notes), ..SandboxOptions::default() };
        if let Some(server) = server {
            options.stack_bytes = server.stack_bytes();
            options.calls_max = server.calls();
        }
        let walls = server.filter(|server| server.walls() != Walls::None).zip(sandbox);
        let walls = walls.map(|(server, program)| WallSetup::new(program.clone(), server));
        let walls = walls.transpose().step("the thread that starts sandbox processes does not start")?;
        let sandbox = Sandbox::new(options).step("the engine does not start")?;
        Ok(Self { workers, runtime, sandbox, walls, notes })
    }
}

/// The cache, unless it is off or unusable. Without it the host still runs, and a note says so.
fn open_cache(code: &CodeCacheOptions, notes: &mut Vec<Note>) -> Option<CodeCache> {
    if code.off {
        return None;
    }
    let (Some(folder), Some(key)) = cache_places(code) else { return None };
    match CodeCache::open(&folder, &key, CACHE_BYTES_MAX) {
        Ok(cache) => {
            let drafts = cache.drafts_removed();
            notes.extend((drafts > 0).then_some(Note::CodeDraftsRemoved(drafts)));
            Some(cache)
        }
        Err(error) => {
            notes.push(Note::CodeNotKept(error));
            None
        }
    }
}

/// Paths of the cache and its key, even if unused: another process of this user may use them.
pub fn cache_places(code: &CodeCacheOptions) -> (Option<PathBuf>, Option<PathBuf>) {
    let usual = || user_folder("XDG_CACHE_HOME", ".cache").map(|at| at.join("code"));
    let key = user_folder("XDG_STATE_HOME", ".local/state").map(|at| at.join("code-cache.key"));
    (code.folder.clone().or_else(usual), key)
}

/// This program's folder among the user's, by the XDG base directory specification. That tells to
/// ignore relative paths in the environment.
pub fn user_folder(variable: &str, otherwise: &str) -> Option<PathBuf> {
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder =
        set.or_else(|| std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(otherwise)))?;
    Some(folder.join("toolcell"))
}
