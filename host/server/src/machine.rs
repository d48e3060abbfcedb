//! The machinery for guests: the engine, the worker threads, and the code cache.
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::runtime::Runtime;
use toolcell_policy::{Server, Walls};
use toolcell_sandbox::{
    CACHE_BYTES_MAX, CodeCache, Loader, LoaderOptions, RequiredWalls, Sandbox, SandboxError, SandboxOptions,
    check_address_space,
};

use toolcell_walls::process::{Command, Starter};

use crate::catalog::WallSetup;
use crate::error::{StartError, StepExt as _};
use crate::machine_memory;
use crate::open::{CodeCacheOptions, Note};
use crate::workers::Workers;

/// The step of starting the engine.
const ENGINE_STEP: &str = "the engine does not start";

/// Advice where walls are required and there are no sandbox processes.
const NO_SANDBOX_HINT: &str = "with walls = \"none\" calls run in the host's own process";

/// The machinery for guests.
pub struct Machine {
    /// The threads that run guests for clients.
    pub workers: Workers,
    /// Drives timers and sockets, and runs futures of commands.
    pub runtime: Runtime,
    sandbox: Arc<LazySandbox>,
    /// Loads components behind walls, where the manifest wants them.
    pub loader: Option<Arc<Loader>>,
    /// The means of starting sandbox processes, where the manifest wants them.
    pub walls: Option<WallSetup>,
    /// Remarks on the code cache.
    pub notes: Vec<Note>,
}

/// The engine of this process. Where components are loaded behind walls it never starts.
pub struct LazySandbox {
    options: SandboxOptions,
    started: OnceLock<Sandbox>,
    starting: Mutex<()>,
}

impl LazySandbox {
    fn new(options: SandboxOptions) -> Self {
        Self { options, started: OnceLock::new(), starting: Mutex::default() }
    }

    /// The engine, which starts at the first need.
    ///
    /// # Errors
    /// [`SandboxError`] where the machine cannot run it.
    pub fn get(&self) -> Result<&Sandbox, SandboxError> {
        let _turn = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sandbox) = self.started.get() {
            return Ok(sandbox);
        }
        let sandbox = Sandbox::new(self.options.clone())?;
        Ok(self.started.get_or_init(|| sandbox))
    }
}

impl Machine {
    /// The engine of this process.
    ///
    /// # Errors
    /// The machine cannot run it.
    pub fn sandbox(&self) -> Result<&Sandbox, StartError> {
        self.sandbox.get().step(ENGINE_STEP)
    }

    /// The engine, once it is needed.
    pub(crate) fn lazy_sandbox(&self) -> Arc<LazySandbox> {
        Arc::clone(&self.sandbox)
    }

    /// Starts one worker thread per core, and the engine unless components run behind walls.
    /// `server` comes from the manifest, if there is one; without one, components are loaded behind
    /// the walls that the machine gives. `sandbox` is the program of sandbox processes.
    ///
    /// # Errors
    /// The machine has no memory or threads for it.
    pub fn start(
        code: &CodeCacheOptions,
        server: Option<&Server>,
        sandbox: Option<&Command>,
    ) -> Result<Self, StartError> {
        if sandbox.is_none() && server.is_some_and(|server| server.walls() == Walls::Required) {
            let message = "the manifest requires walls, and this program does not start itself as a sandbox process";
            return Err(StartError::refused(message).hint_if(Some(NO_SANDBOX_HINT)));
        }
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
        let cache = open_cache(code, &mut notes).map(Arc::new);
        let mut options = SandboxOptions { cache: cache.clone(), ..SandboxOptions::default() };
        if let Some(server) = server {
            options.stack_bytes = server.stack_bytes();
            options.calls_max = server.calls();
        }
        check_space(&options, server.is_some())?;
        let walls = server.filter(|server| server.walls() != Walls::None).zip(sandbox);
        let walls = walls.map(|(server, program)| WallSetup::new(program.clone(), server));
        let walls = walls.transpose().step("the thread that starts sandbox processes does not start")?;
        let loader = match (&walls, server, sandbox) {
            (Some(walls), ..) => Some(walls.loader(cache)),
            (None, None, Some(program)) => {
                let starter = Starter::bounded(machine_memory::for_sandboxes())
                    .step("the thread that starts sandbox processes does not start")?;
                let stack_bytes = options.stack_bytes;
                let loading =
                    LoaderOptions { program: program.clone(), stack_bytes, cache, required_walls: RequiredWalls::Best };
                Some(Loader::new(loading, Arc::new(starter)))
            }
            _ => None,
        };
        let loader =
            loader.transpose().map_err(|error| StartError::refused(format!("the engine does not start: {error}")))?;
        let sandbox = Arc::new(LazySandbox::new(options));
        if loader.is_none() {
            sandbox.get().step(ENGINE_STEP)?;
        }
        Ok(Self { workers, runtime, sandbox, loader: loader.map(Arc::new), walls, notes })
    }
}

/// Checks that the processes that run components get the address space that they need: as much as
/// this one. Without a manifest they are loaders, which run one call at a time.
fn check_space(options: &SandboxOptions, has_manifest: bool) -> Result<(), StartError> {
    let calls_max = if has_manifest { options.calls_max } else { 1 };
    check_address_space(&SandboxOptions { calls_max, ..options.clone() }).step(ENGINE_STEP)
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

#[cfg(test)]
mod tests {
    use toolcell_policy::{Source, parse};

    use super::*;

    #[test]
    fn a_program_without_sandbox_processes_does_not_start_where_walls_are_required() {
        let code = CodeCacheOptions { off: true, ..CodeCacheOptions::default() };
        for (walls, starts) in [("required", false), ("best", true), ("none", true)] {
            let text = format!("version = 1\n[server]\nwalls = \"{walls}\"\n[components.a]\nsource = \"a.wasm\"\n");
            let manifest = parse(&Source { name: "test", text: &text }).unwrap().manifest;
            match Machine::start(&code, Some(manifest.server()), None) {
                Ok(machine) => assert!(starts && machine.walls.is_none(), "{walls}"),
                Err(error) => assert!(!starts && error.to_string().contains("requires walls"), "{walls}: {error}"),
            }
        }
    }
}
