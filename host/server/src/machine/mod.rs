//! The machinery for guests: what runs and loads them, the worker threads, and the code cache. Also
//! what the host needs of the operating system.
pub(crate) mod descriptors;
pub(crate) mod memory;
pub(crate) mod peer;
mod sandboxes;
pub(crate) mod service_manager;
pub mod shell;
pub(crate) mod socket_paths;
pub mod workers;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Runtime;
use toolcell_policy::{Server, Walls};
use toolcell_sandbox::{
    CACHE_BYTES_MAX, CacheError, CodeCache, GuestEngine, Loader, LoaderOptions, RequiredWalls, SandboxOptions,
    check_address_space,
};
use toolcell_walls::process::{Command, Program, Starter, Threads};

use crate::error::{StartError, StepExt as _};
pub use sandboxes::SandboxSetup;
pub(crate) use sandboxes::without as walls_in_words;
use workers::Workers;

/// Advice if walls are required and sandbox processes cannot start.
const NO_SANDBOX_HINT: &str = "with walls = \"none\" calls run in threads of the host";

/// Advice if the manifest asks for threads, and this program does not provide them.
const NO_THREADS_HINT: &str = "with walls = \"best\" calls run in sandbox processes";

/// Makes the component through which recorded guests of this engine with these imports reach the
/// host, or says in one sentence why it cannot.
pub type MakeRelay = fn(GuestEngine, &[String]) -> Result<Vec<u8>, String>;

/// The means of running guests. This crate has no engine: the binary provides them.
#[derive(Clone, Debug, Default)]
pub struct GuestRunners {
    /// The program that becomes a sandbox process. Without it, only a manifest with `walls =
    /// "none"` can be opened.
    pub process: Option<Command>,
    /// Makes threads instead, for a manifest with `walls = "none"`.
    pub threads: Option<fn(SandboxOptions) -> Threads>,
    /// Makes the component through which recorded guests reach the host. Without it no call is
    /// recorded.
    pub relay: Option<MakeRelay>,
}

/// Folder of compiled code.
#[derive(Clone, Debug, Default)]
pub struct CodeCacheOptions {
    /// This folder; `None`: the user's cache folder.
    pub folder: Option<PathBuf>,
    /// True turns the cache off.
    pub off: bool,
}

/// A remark on the start that needs no action.
#[derive(Debug)]
pub enum Note {
    /// This many drafts of interrupted processes were removed from the cache.
    CodeDraftsRemoved(usize),
    /// Compiled code is not cached, for this reason.
    CodeNotKept(CacheError),
}

/// The machinery for guests.
pub struct Machine {
    /// The threads that drive calls for clients.
    pub workers: Workers,
    /// Drives timers and sockets, and runs futures of commands.
    pub runtime: Runtime,
    /// Loads components.
    pub loader: Arc<Loader>,
    /// The means of running components; none without a manifest.
    pub sandboxes: Option<SandboxSetup>,
    /// Remarks on the code cache.
    pub notes: Vec<Note>,
}

impl Machine {
    /// Starts one worker thread per core. `server` comes from the manifest, if there is one;
    /// without one, components are only loaded, behind the walls that the machine supports.
    ///
    /// # Errors
    /// The machine has no memory or threads for it.
    pub fn start(code: &CodeCacheOptions, server: Option<&Server>, guests: &GuestRunners) -> Result<Self, StartError> {
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
        let mut options = SandboxOptions::default();
        if let Some(server) = server {
            options.stack_bytes = server.stack_bytes();
            options.calls_max = server.calls();
        }
        check_space(&options, server.is_some())?;
        let program = program(server.map(Server::walls), guests, options)?;
        let sandboxes = server.map(|server| SandboxSetup::new(program.clone(), server));
        let sandboxes = sandboxes.transpose().step("the thread that starts sandbox processes does not start")?;
        let loader = match &sandboxes {
            Some(sandboxes) => sandboxes.loader(cache),
            None => {
                let starter = Starter::bounded(memory::for_sandboxes())
                    .step("the thread that starts sandbox processes does not start")?;
                let stack_bytes = options.stack_bytes;
                let loading = LoaderOptions { program, stack_bytes, cache, required_walls: RequiredWalls::Best };
                Loader::new(loading, Arc::new(starter))
            }
        };
        Ok(Self { workers, runtime, loader: Arc::new(loader), sandboxes, notes })
    }
}

impl Machine {
    /// Checks that sandbox processes start at all, after something failed to load or run: if none
    /// starts, the component is not at fault.
    ///
    /// # Errors
    /// None starts.
    pub(crate) fn check_sandboxes(&self) -> Result<(), StartError> {
        let Some(sandboxes) = &self.sandboxes else { return Ok(()) };
        self.runtime.block_on(sandboxes.pool.try_start()).step("cannot start a sandbox process")
    }
}

/// The program that runs components: a process, or threads with `walls = "none"`.
fn program(walls: Option<Walls>, guests: &GuestRunners, options: SandboxOptions) -> Result<Program, StartError> {
    if walls == Some(Walls::None) {
        let message = "walls are off, but this program cannot run calls in threads";
        let threads = guests.threads.ok_or_else(|| StartError::refused(message).hint_if(Some(NO_THREADS_HINT)))?;
        return Ok(Program::Thread(threads(options)));
    }
    let message = "walls are on, but this program cannot start itself as a sandbox process";
    let process = guests.process.clone();
    process.map(Program::Process).ok_or_else(|| StartError::refused(message).hint_if(Some(NO_SANDBOX_HINT)))
}

/// Checks that the processes that run components get enough address space. Their limit is that of
/// this process. Without a manifest they are loaders, which run one call at a time.
fn check_space(options: &SandboxOptions, has_manifest: bool) -> Result<(), StartError> {
    let calls_max = if has_manifest { options.calls_max } else { 1 };
    check_address_space(&SandboxOptions { calls_max, ..*options }).step("the engine does not start")
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

/// This program's folder among the user's, by the XDG base directory specification. It requires
/// that relative paths in the environment are ignored.
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
    fn a_program_without_sandbox_processes_starts_where_no_walls_are_wanted() {
        let code = CodeCacheOptions { off: true, ..CodeCacheOptions::default() };
        let guests = GuestRunners { threads: Some(toolcell_guest::sandbox_threads), ..GuestRunners::default() };
        for (walls, starts) in [("required", false), ("best", false), ("none", true)] {
            let text = format!("version = 1\n[server]\nwalls = \"{walls}\"\n[components.a]\nsource = \"a.wasm\"\n");
            let manifest = parse(&Source { name: "test", text: &text }).unwrap().manifest;
            match Machine::start(&code, Some(manifest.server()), &guests) {
                Ok(machine) => assert!(
                    starts && machine.sandboxes.is_some_and(|sandboxes| sandboxes.log().starts_with("walls: none")),
                    "{walls}"
                ),
                Err(error) => assert!(!starts && error.to_string().contains("walls are on"), "{walls}: {error}"),
            }
        }
    }
}
