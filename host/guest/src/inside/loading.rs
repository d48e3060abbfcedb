//! The main of a loader: compiling in one process, linking and listing in another.
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuilder};
use toolcell_walls::kernel::{self, Access, Entered, Folder, Rights};
use toolcell_walls::link::{FRAME_BYTES_MAX, Frame, Receiver, SendError, Sender};
use wasmtime::Engine;

use crate::engine;
use crate::inside::{InsideError, RunPlace, closed, missing};
use crate::load::compile::{self, CompiledComponent};
use crate::load::component::{Mapped, ToolComponent};
use crate::load::error::LoadError;
use crate::load::functions::handed::HandedFunctions;
use crate::load::inspect::{ComponentNames, component_names};
use crate::load::precompiled;
use crate::load::sandbox::SandboxError;
use crate::run::listing::RawListing;
use crate::shape::typed::Descriptions;
use toolcell_wall::encoding::{decode, encode};
use toolcell_wall::failure::clipped;
use toolcell_wall::load::definitions::SchemaLimits;
use toolcell_wall::load::descriptions::WrittenDescriptions;
use toolcell_wall::load::engine_name::EngineName;
use toolcell_wall::load::facts::GuestEngine;
use toolcell_wall::load::message::{
    self, ANSWER_BYTES_MAX, CompileSettings, ExternNames, FromLoader, LinkSettings, ListReport, ToLoader,
};
use toolcell_wall::pool_sizes::SandboxOptions;
use toolcell_walls::background;

/// Bytes of names that are shown of a component that is not compiled. The message of a refusal may
/// be twice as long.
const SHOWN_BYTES_MAX: usize = ANSWER_BYTES_MAX / 2;

/// Descriptors that a loader may have open: a few of its own, and files from the host.
const FILES_MAX: u64 = 128;

/// The link to the host.
pub(crate) struct HostLink<'p> {
    pub(crate) peer: OwnedFd,
    pub(crate) sender: Sender,
    pub(crate) frames: Receiver,
    pub(crate) place: &'p RunPlace,
}

impl HostLink<'_> {
    fn send(&self, message: &FromLoader) -> Result<(), InsideError> {
        Ok(self.sender.send(&encode(message)?, &[])?)
    }

    fn seal(&self, entered: Option<Entered>, engine: Option<EngineName>) -> Result<(), InsideError> {
        self.send(&FromLoader::Ready { missing: missing(entered), engine })
    }

    /// The next task, with its files; `None` once the host closes the link.
    async fn next(&mut self) -> Result<Option<(ToLoader, Vec<File>)>, InsideError> {
        let Some(Frame { bytes, fds }) = closed(self.frames.receive().await)? else { return Ok(None) };
        Ok(Some((decode(&bytes)?, fds.into_iter().map(File::from).collect())))
    }

    fn enter(&self, memory_bytes_max: u64, file_bytes_max: u64, code: Option<BorrowedFd<'_>>) -> Option<Entered> {
        if !self.place.has_walls() {
            return None;
        }
        let folders: Vec<_> = code.map(|descriptor| Folder { descriptor, access: Access::Read }).into_iter().collect();
        Some(kernel::enter(&Rights {
            link: Some(self.peer.as_fd()),
            folders: &folders,
            memory_bytes_max,
            files_max: FILES_MAX,
            file_bytes_max: Some(file_bytes_max),
            threads_max: None,
            without: &[],
        }))
    }
}

/// Compiles one component. The process is sealed before it gets a byte of it.
pub(crate) async fn compile(settings: CompileSettings, mut link: HostLink<'_>) -> Result<(), InsideError> {
    give_way(settings.gives_way);
    let entered = link.enter(settings.memory_bytes_max, message::file_bytes_max(settings.memory_bytes_max), None);
    let threads = threads(&settings)?;
    let functions: Arc<HandedFunctions> = Arc::default();
    let compilers = Compilers::new(&settings, &functions).map_err(SandboxError::Engine)?;
    link.seal(entered, Some(compilers.name()))?;
    let Some((ToLoader::Compile { functions_bytes }, files)) = link.next().await? else {
        return Err(InsideError::Message("there is nothing to compile".to_owned()));
    };
    let answer = threads.install(|| compiled(&compilers, &functions, functions_bytes, files));
    link.send(&answer.unwrap_or_else(|error| FromLoader::Failed(format!("it has no room for the code: {error}"))))?;
    // Waits for the host to end this process.
    while link.next().await?.is_some() {}
    Ok(())
}

/// Lowers the priority of the process below everything else, if the host asks for that. Threads
/// that start later inherit it, and none can undo it.
fn give_way(gives_way: bool) {
    if gives_way {
        background::give_way();
    }
}

/// The pool of threads that compile, with all of them started.
fn threads(settings: &CompileSettings) -> Result<ThreadPool, InsideError> {
    let threads = ThreadPoolBuilder::new()
        .num_threads(usize::try_from(settings.threads).unwrap_or(1))
        .thread_name(|_| "toolcell-compile".to_owned())
        .build()
        .map_err(|error| InsideError::Threads(io::Error::other(error)))?;
    // Behind the seal, no thread can start or change its priority.
    threads.broadcast(|_| ());
    Ok(threads)
}

/// Engines that compile for those of sandbox processes. How instances get their memory does not
/// change the code.
struct Compilers {
    sync: Engine,
    concurrent: Engine,
}

impl Compilers {
    fn new(settings: &CompileSettings, functions: &Arc<HandedFunctions>) -> wasmtime::Result<Self> {
        let stack_bytes = usize::try_from(settings.stack_bytes).unwrap_or(usize::MAX);
        let compiler = |engine| {
            let mut config = engine::config(engine, stack_bytes);
            config.enable_incremental_compilation(Arc::clone(functions) as _)?;
            Engine::new(&config)
        };
        Ok(Self { sync: compiler(GuestEngine::Sync)?, concurrent: compiler(GuestEngine::Async)? })
    }

    fn name(&self) -> EngineName {
        precompiled::engine_name([&self.sync, &self.concurrent])
    }

    fn of(&self, engine: GuestEngine) -> &Engine {
        match engine {
            GuestEngine::Sync => &self.sync,
            GuestEngine::Async => &self.concurrent,
        }
    }
}

fn compiled(
    compilers: &Compilers,
    functions: &HandedFunctions,
    functions_bytes: Option<u64>,
    files: Vec<File>,
) -> io::Result<FromLoader> {
    let mut files = files.into_iter();
    let mut file = || files.next().ok_or_else(|| io::Error::other("a file is missing"));
    let bytes = read(&file()?)?;
    let code_file = file()?;
    let functions_file = file()?;
    if let Some(bytes) = functions_bytes {
        functions.take(file()?, bytes);
    }
    let CompiledComponent { cost, engine, code } = match compile::compile(|engine| compilers.of(engine), &bytes) {
        Ok(compiled) => compiled,
        Err(error) => {
            let is_known =
                matches!(error, LoadError::Imports { .. } | LoadError::Mismatch { .. } | LoadError::NotATool { .. });
            let shown = is_known.then(|| component_names(&bytes)).flatten();
            let shown = shown.filter(|names| names.bytes() <= SHOWN_BYTES_MAX);
            let shown = shown.map(|ComponentNames { exports, imports }| ExternNames { exports, imports });
            return Ok(refused(&error, shown));
        }
    };
    (&code_file).write_all(&code)?;
    // Without them the next version is compiled from scratch.
    let functions = functions.hand_back(&functions_file).unwrap_or(false);
    Ok(FromLoader::Compiled { cost, engine, functions })
}

/// Links one component and lists its tools. Its code is mapped before the seal, and runs behind it.
pub(crate) async fn list(settings: LinkSettings, fds: Vec<OwnedFd>, mut link: HostLink<'_>) -> Result<(), InsideError> {
    give_way(settings.gives_way);
    let code = fds.into_iter().next().map(File::from);
    let code = code.ok_or_else(|| InsideError::Message("its code did not come with it".to_owned()))?;
    // This process writes no files.
    let entered = link.enter(settings.memory_bytes_max, 0, Some(code.as_fd()));
    let sandbox = link.place.started(SandboxOptions {
        stack_bytes: usize::try_from(settings.stack_bytes).unwrap_or(usize::MAX),
        calls_max: 1,
        engine: settings.facts.engine,
    })?;
    let mapped = Mapped::of(&sandbox, &code, &settings.facts);
    // No thread starts after the seal, so this starts the one for blocking work.
    drop(tokio::task::spawn_blocking(|| ()).await);
    link.seal(entered, None)?;
    let Some((ToLoader::Link, files)) = link.next().await? else {
        return Err(InsideError::Message("there is nothing to link".to_owned()));
    };
    let bytes = content(&files)?;
    let mapped = match mapped {
        Ok(mapped) => mapped,
        Err(error) => return finish(&mut link, &refused(&error, None)).await,
    };
    let inspection = mapped.inspection();
    let component = match mapped.link(&bytes) {
        Ok(component) => component,
        Err(error) => {
            let exports = inspection.exports().to_vec();
            let imports = inspection.imports().to_vec();
            return finish(&mut link, &refused(&error, Some(ExternNames { exports, imports }))).await;
        }
    };
    link.send(&FromLoader::Linked(Box::new(component.facts())))?;
    while let Some((ToLoader::List { limits, schemas }, files)) = link.next().await? {
        let answer = listed(&component, &limits, schemas, decode(&content(&files)?)?).await;
        match link.send(&answer) {
            Err(InsideError::NotSent(SendError::TooLarge(_))) => link.send(&too_large())?,
            told => told?,
        }
    }
    Ok(())
}

/// The refusal of a component, with the names that are shown of it.
fn refused(error: &LoadError, shown: Option<ExternNames>) -> FromLoader {
    let shown = shown.map(Box::new);
    FromLoader::Refused { message: clipped(error.to_string()), hint: error.hint().to_owned(), shown }
}

/// Sends the last message, then waits for the host to end the process.
async fn finish(link: &mut HostLink<'_>, message: &FromLoader) -> Result<(), InsideError> {
    link.send(message)?;
    while link.next().await?.is_some() {}
    Ok(())
}

/// Lists the tools, and compiles their schemas to find their problems.
async fn listed(
    component: &ToolComponent,
    limits: &[(String, u64)],
    schemas: SchemaLimits,
    written: WrittenDescriptions,
) -> FromLoader {
    match Descriptions::read(written) {
        Ok(descriptions) => {
            let found = component.list_checked(&message::limits(limits), &descriptions, &schemas).await;
            let RawListing { report, beside, schemas } = found;
            FromLoader::Listed(Box::new(ListReport::new(report, beside, schemas)))
        }
        Err(error) => FromLoader::NotWit(error.to_string()),
    }
}

/// The answer if the tools do not fit into a message.
fn too_large() -> FromLoader {
    let mebibytes = FRAME_BYTES_MAX >> 20;
    FromLoader::Failed(format!("its list of tools is larger than {mebibytes} MiB"))
}

/// The content of the first file that the host sent.
fn content(files: &[File]) -> Result<Vec<u8>, InsideError> {
    let content = files.first().map(read).transpose();
    let content = content.map_err(|error| InsideError::Message(format!("its file cannot be read: {error}")))?;
    content.ok_or_else(|| InsideError::Message("its file did not come with it".to_owned()))
}

/// The whole content of a file, independent of its cursor.
fn read(file: &File) -> io::Result<Vec<u8>> {
    let mut content = vec![0; usize::try_from(file.metadata()?.len()).unwrap_or_default()];
    file.read_exact_at(&mut content, 0)?;
    Ok(content)
}
