//! The host's end of a load: one process compiles, another lists.
use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolcell_policy::Limits;
use toolcell_schema::SchemaFindings;
use toolcell_walls::process::{Program, Starter};
use toolcell_walls::{background, memory_file};

use super::kept::{KeptLoads, LIST};
use super::listing::{ListJob, ListName, ListingResult};
use super::run::{LoadBounds, LoaderRun};
use crate::load::cache::CodeCache;
use crate::load::held::{CodeElsewhere, CodeOrigin, HeldComponent};
use crate::wall::required::RequiredWalls;
use toolcell_wall::digest::ComponentDigest;
use toolcell_wall::encoding::encode;
use toolcell_wall::failure::{CallFailure, clipped};
use toolcell_wall::load::engine_name::EngineName;
use toolcell_wall::load::facts::{CodeFacts, ComponentFacts, SourceFacts};
use toolcell_wall::load::inspection::Inspection;
use toolcell_wall::load::message::{
    self, ANSWER_BYTES_MAX, CompileSettings, ExternNames, FACTS_BYTES_MAX, FromLoader, LISTING_BYTES_MAX, LinkSettings,
    ListReport, MESSAGE_BYTES_MAX, ToLoader,
};
use toolcell_wall::load::{COMPONENT_BYTES_MAX, FUNCTIONS_BYTES_MAX};
use toolcell_wall::message::ToSandbox;
use toolcell_wall::report::{CallReport, ListedBeside};
use toolcell_wall::sections::is_module;
use toolcell_walls::link::FRAME_BYTES_MAX;

type Result<T> = std::result::Result<T, NotLoaded>;

/// Time past the deadline of listing in which a loader must answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Time for a loader to start if its component is already compiled.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// The settings of loaders.
#[derive(Clone, Debug)]
pub struct LoaderOptions {
    /// The program that becomes a loader, or threads in its place.
    pub program: Program,
    /// Bytes of WebAssembly stack per call, as in [`GroupOptions`](crate::GroupOptions).
    pub stack_bytes: usize,
    /// The folder that keeps loads from one start to the next.
    pub cache: Option<Arc<CodeCache>>,
    /// The walls without which nothing is loaded.
    pub required_walls: RequiredWalls,
}

/// Loads components in processes that can be killed. This process never reads a component.
pub struct Loader {
    options: LoaderOptions,
    starter: Arc<Starter>,
    kept: Option<Arc<KeptLoads>>,
}

/// What a load needs besides the bytes.
#[derive(Clone, Copy, Debug)]
pub struct LoadJob<'a> {
    /// The digest of the bytes.
    pub digest: ComponentDigest,
    /// The component's place: its functions are reused for its next version and for no other
    /// component.
    pub component: &'a str,
    /// The longest that compiling and linking may take.
    pub time: Duration,
    /// Bytes of memory that a loader may take.
    pub memory_bytes_max: u64,
    /// Bytes of memory that a call may take: listing is one.
    pub call_memory_bytes: u64,
    /// True if everything else on the machine has priority. If the machine is never idle, such a
    /// load runs out of time.
    pub gives_way: bool,
}

/// Why a component was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum NotLoaded {
    /// It is not a usable component.
    #[error("{message}")]
    Refused {
        /// Why, in one sentence without a full stop.
        message: String,
        /// Advice.
        hint: String,
        /// Its exports and imports, if it is a component that compiles.
        inspection: Option<Box<Inspection>>,
    },
    /// It took too long.
    #[error("loading it takes too long")]
    TooLate,
    /// It took too much memory.
    #[error("loading it takes too much memory")]
    TooMuchMemory,
    /// The process that loaded it is gone.
    #[error("the process that loads it was ended: {reason}")]
    Ended {
        /// Why, in one sentence without a full stop.
        reason: String,
    },
    /// Walls are missing.
    #[error("{0}")]
    Walls(String),
    /// The machine has no room or no process left for it.
    #[error("{0}")]
    Failed(String),
}

impl NotLoaded {
    pub(super) fn broke(what: &str) -> Self {
        Self::Ended { reason: format!("it broke the rules: {what}") }
    }

    fn too_large(bytes: u64) -> Self {
        let message = format!("the file has {bytes} bytes; a component may have {COMPONENT_BYTES_MAX}");
        let hint = "build it with optimizations and without debug information".to_owned();
        Self::Refused { message, hint, inspection: None }
    }

    fn out_of_turn() -> Self {
        Self::broke("it sent a message out of its turn")
    }
}

/// A process that has linked a component and can list its tools.
pub struct Lister(pub(super) LoaderRun);

/// A process that compiles, and has read nothing of a component yet.
struct StartedCompiler {
    run: LoaderRun,
    engines: EngineName,
    /// True if its engines were unknown until now, so that code kept for them can now be found.
    is_news: bool,
}

// A frame holds the largest message of a loader.
const _: () = assert!(MESSAGE_BYTES_MAX <= FRAME_BYTES_MAX);

/// The list of this loader, or of an earlier one.
fn listing_of(listing: ListReport, limits: &Limits) -> ListingResult {
    let ListReport { report, beside, schemas } = listing.taken(limits);
    ListingResult::Report(Box::new(report), beside, schemas)
}

impl Loader {
    /// A loader of components, with no process yet.
    #[must_use]
    pub fn new(options: LoaderOptions, starter: Arc<Starter>) -> Self {
        let has_walls = matches!(options.program, Program::Process(_));
        let kept = options.cache.as_ref();
        let kept = kept.map(|cache| Arc::new(KeptLoads::new(Arc::clone(cache), options.stack_bytes, has_walls)));
        Self { kept, options, starter }
    }

    /// True if its code is kept. It may still turn out to be invalid.
    #[must_use]
    pub fn is_compiled(&self, bytes: &[u8], digest: ComponentDigest) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.has(source_facts(digest, bytes)))
    }

    /// The component of these bytes, if an earlier load left it. It starts no process.
    #[must_use]
    pub fn find(&self, bytes: &[u8], digest: ComponentDigest) -> Option<HeldComponent> {
        self.kept.as_ref()?.find(source_facts(digest, bytes))
    }

    /// Loads a component. Unless it was kept, the process that has linked it comes with it.
    ///
    /// # Errors
    /// [`NotLoaded`]. No process is left then.
    pub async fn load(&self, bytes: &[u8], job: &LoadJob<'_>) -> Result<(HeldComponent, Option<Lister>)> {
        if bytes.len() as u64 > COMPONENT_BYTES_MAX {
            return Err(NotLoaded::too_large(bytes.len() as u64));
        }
        let until = Instant::now() + job.time;
        let from = source_facts(job.digest, bytes);
        if let Some(held) = self.find_kept(from, job.gives_way, until).await? {
            return Ok((held, None));
        }
        let compiler = self.start_compiler(job, until).await?;
        if compiler.is_news
            && let Some(held) = self.find_kept(from, job.gives_way, until).await?
        {
            compiler.run.end().await;
            return Ok((held, None));
        }
        let source = in_memory(bytes)?;
        let engines = compiler.engines;
        let (file, facts) = self.compile(compiler, &source, from, job, until).await?;
        let name = self.kept.as_ref().map(|kept| kept.name(engines, facts.engine, from));
        let file = self.keep_code(file, name.clone(), job.gives_way, until).await?;
        let memory_bytes_max = job.memory_bytes_max.saturating_add(job.call_memory_bytes);
        let link = self.link_settings(facts, memory_bytes_max, job.gives_way);
        let (shown, lister) = self.link(&file, &source, link, until).await?;
        if let (Some(kept), Some(name)) = (&self.kept, &name) {
            kept.keep_facts(name, &facts, &shown);
        }
        let code = CodeElsewhere { file, facts, origin: CodeOrigin::Compiled, name };
        Ok((HeldComponent::new(code, shown), Some(lister)))
    }

    /// The component of these bytes, if an earlier load left it.
    async fn find_kept(&self, source: SourceFacts, gives_way: bool, until: Instant) -> Result<Option<HeldComponent>> {
        let Some(kept) = self.kept.clone() else { return Ok(None) };
        aside(gives_way, until, move || kept.find(source)).await
    }

    /// Keeps code for the next start, under this name. Returns the kept file, or the code itself.
    async fn keep_code(&self, file: File, name: Option<String>, gives_way: bool, until: Instant) -> Result<File> {
        let Some((kept, name)) = self.kept.clone().zip(name) else { return Ok(file) };
        let keep = move || kept.keep_code(&name, &file).unwrap_or(file);
        aside(gives_way, until, keep).await
    }

    /// Starts a process that compiles. After that, the name of its engines is known.
    async fn start_compiler(&self, job: &LoadJob<'_>, until: Instant) -> Result<StartedCompiler> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let settings = ToSandbox::Compile(CompileSettings {
            stack_bytes: self.options.stack_bytes as u64,
            threads: u32::try_from(threads).unwrap_or(1),
            gives_way: job.gives_way,
            memory_bytes_max: job.memory_bytes_max,
        });
        let (run, engines) = self.start(&settings, &[], job.memory_bytes_max, until).await?;
        let engines = engines.ok_or_else(NotLoaded::out_of_turn)?;
        let is_news = self.kept.as_ref().is_some_and(|kept| kept.engine().learn(engines));
        Ok(StartedCompiler { run, engines, is_news })
    }

    /// Compiles in a process, which is then ended. Returns the code, which nobody can change any
    /// more, and what the process says of it: a lie harms only the processes that map the code.
    async fn compile(
        &self,
        compiler: StartedCompiler,
        source: &File,
        from: SourceFacts,
        job: &LoadJob<'_>,
        until: Instant,
    ) -> Result<(File, CodeFacts)> {
        let code = empty()?;
        let made = empty()?;
        let StartedCompiler { mut run, engines, .. } = compiler;
        let handed = self.kept.as_ref().and_then(|kept| kept.functions(engines, job.component));
        let mut files = vec![source.as_fd(), code.as_fd(), made.as_fd()];
        files.extend(handed.iter().map(|(file, _)| file.as_fd()));
        let functions_bytes = handed.as_ref().map(|(_, bytes)| *bytes);
        let code_bytes_max = message::file_bytes_max(job.memory_bytes_max);
        run.send(&ToLoader::Compile { functions_bytes }, &files)?;
        let bounds = LoadBounds {
            until,
            answer_bytes_max: ANSWER_BYTES_MAX,
            memory_bytes_max: job.memory_bytes_max,
            files: &[(&code, code_bytes_max), (&made, FUNCTIONS_BYTES_MAX)],
        };
        let answer = run.receive(&bounds).await?;
        // Once the process is gone, nothing changes the code. A process that gives way needs a core
        // to end.
        tokio::time::timeout_at(until.into(), run.end()).await.map_err(|_| NotLoaded::TooLate)?;
        match answer {
            FromLoader::Compiled { cost, engine, functions } => {
                if functions {
                    self.keep_functions(engines, job, made, until).await?;
                }
                sealed(&code, code_bytes_max)?;
                Ok((code, CodeFacts { source: from, engine, cost }))
            }
            other => Err(refusal(other, from)),
        }
    }

    /// Keeps functions for the next version. Without them it is compiled from scratch.
    async fn keep_functions(&self, engines: EngineName, job: &LoadJob<'_>, made: File, until: Instant) -> Result<()> {
        match self.kept.clone() {
            Some(kept) if sealed(&made, FUNCTIONS_BYTES_MAX).is_ok() => {
                let component = job.component.to_owned();
                aside(job.gives_way, until, move || kept.keep_functions(engines, &component, &made)).await
            }
            _ => Ok(()),
        }
    }

    /// Starts a process whose walls stand. Also returns the name of its engines, if it compiles.
    async fn start(
        &self,
        first: &ToSandbox,
        fds: &[BorrowedFd<'_>],
        memory_bytes_max: u64,
        until: Instant,
    ) -> Result<(LoaderRun, Option<EngineName>)> {
        let mut run = LoaderRun::start(&self.starter, &self.options.program, first, fds).await?;
        let bounds = LoadBounds { until, answer_bytes_max: ANSWER_BYTES_MAX, memory_bytes_max, files: &[] };
        match run.receive(&bounds).await? {
            FromLoader::Ready { missing, engine } => match self.options.required_walls.check(&missing) {
                Ok(()) => Ok((run, engine)),
                Err(problem) => Err(NotLoaded::Walls(problem)),
            },
            other => Err(failure(other)),
        }
    }

    fn link_settings(&self, facts: CodeFacts, memory_bytes_max: u64, gives_way: bool) -> LinkSettings {
        LinkSettings { stack_bytes: self.options.stack_bytes as u64, memory_bytes_max, gives_way, facts }
    }

    /// Makes a process map this code and link it.
    async fn link(
        &self,
        code: &File,
        source: &File,
        settings: LinkSettings,
        until: Instant,
    ) -> Result<(ComponentFacts, Lister)> {
        let LinkSettings { memory_bytes_max, facts, .. } = settings;
        let first = ToSandbox::Link(Box::new(settings));
        let (mut run, _) = self.start(&first, &[code.as_fd()], memory_bytes_max, until).await?;
        run.send(&ToLoader::Link, &[source.as_fd()])?;
        let bounds = LoadBounds { until, answer_bytes_max: FACTS_BYTES_MAX, memory_bytes_max, files: &[] };
        match run.receive(&bounds).await? {
            FromLoader::Linked(facts) => Ok((*facts, Lister(run))),
            other => Err(refusal(other, facts.source)),
        }
    }

    /// The tools of a component that was loaded from these bytes, listed under these limits. The
    /// process that linked it lists them; without one, another process does.
    ///
    /// A failure of the process counts as one of listing.
    pub async fn list(
        &self,
        component: &HeldComponent,
        lister: Option<Lister>,
        bytes: &[u8],
        job: &ListJob<'_>,
    ) -> ListingResult {
        if let Some(listing) = self.find_list(component, job) {
            return listing;
        }
        let kept = self.list_kept_as(component, job);
        let listed = self.listed(component, lister, bytes, job).await;
        let failure = match listed {
            Ok(FromLoader::Listed(listing)) => {
                if let Some((kept, name)) = kept.filter(|_| listing.is_whole()) {
                    kept.keep_listing(&name, &listing);
                }
                return listing_of(*listing, job.limits);
            }
            Ok(FromLoader::NotWit(problem)) => return ListingResult::NotWit(clipped(problem)),
            Ok(FromLoader::Failed(problem)) => CallFailure::Failed(clipped(problem)),
            Ok(_) => CallFailure::SandboxEnded { reason: NotLoaded::out_of_turn().to_string() },
            Err(NotLoaded::Ended { reason }) => CallFailure::SandboxEnded { reason },
            Err(NotLoaded::TooLate) => {
                CallFailure::SandboxEnded { reason: "it did not stop within its deadline".to_owned() }
            }
            Err(NotLoaded::TooMuchMemory) => {
                CallFailure::SandboxEnded { reason: "its process took more memory than it may".to_owned() }
            }
            Err(other) => CallFailure::SandboxEnded { reason: other.to_string() },
        };
        ListingResult::Report(
            Box::new(CallReport::not_run(failure)),
            ListedBeside::default(),
            SchemaFindings::default(),
        )
    }

    /// The list that [`list`](Self::list) would return, if an earlier load left it.
    #[must_use]
    pub fn find_list(&self, component: &HeldComponent, job: &ListJob<'_>) -> Option<ListingResult> {
        let (kept, name) = self.list_kept_as(component, job)?;
        kept.listing(&name).map(|listing| listing_of(listing, job.limits))
    }

    /// The place of a list, if lists are kept.
    fn list_kept_as(&self, component: &HeldComponent, job: &ListJob<'_>) -> Option<(&KeptLoads, ListName)> {
        let code = component.code().name.as_deref()?;
        Some((self.kept.as_deref()?, ListName::of(LIST, code, job)?))
    }

    async fn listed(
        &self,
        component: &HeldComponent,
        lister: Option<Lister>,
        bytes: &[u8],
        job: &ListJob<'_>,
    ) -> Result<FromLoader> {
        let ListJob { limits, written, schemas, .. } = *job;
        let memory_bytes_max = job.memory_bytes_max.saturating_add(limits.memory_bytes());
        let Lister(mut run) = match lister {
            Some(lister) => lister,
            None => {
                let code = component.code();
                let until = Instant::now() + STARTS_WITHIN;
                let source = in_memory(bytes)?;
                let settings = self.link_settings(code.facts, memory_bytes_max, false);
                self.link(&code.file, &source, settings, until).await?.1
            }
        };
        let written = encode(written).map_err(|error| NotLoaded::Failed(error.to_string()))?;
        let list = ToLoader::List { limits: message::limits_by_key(limits), schemas };
        run.send(&list, &[in_memory(&written)?.as_fd()])?;
        let runs = limits.deadline().saturating_add(limits.queue_wait()).saturating_add(ANSWERS_WITHIN);
        let until = Instant::now() + runs + schemas.time;
        let answer =
            run.receive(&LoadBounds { until, answer_bytes_max: LISTING_BYTES_MAX, memory_bytes_max, files: &[] }).await;
        run.end().await;
        answer
    }
}

/// Does work whose time grows with the code, on a thread of its own if it gives way. A late one is
/// left behind: it writes drafts that are not needed.
async fn aside<T: Send + 'static>(
    gives_way: bool,
    until: Instant,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    if !gives_way {
        return Ok(work());
    }
    let failed =
        |error: &dyn std::fmt::Display| NotLoaded::Failed(format!("cannot start a thread to keep its code: {error}"));
    let (done, result) = tokio::sync::oneshot::channel();
    let work = move || {
        background::give_way();
        // The caller may have stopped waiting.
        drop(done.send(work()));
    };
    // The thread is never joined: to end, it needs a core, which others may keep busy.
    let thread = std::thread::Builder::new().name("toolcell-load".to_owned()).spawn(work);
    drop(thread.map_err(|error| failed(&error))?);
    let result = tokio::time::timeout_at(until.into(), result).await.map_err(|_| NotLoaded::TooLate)?;
    result.map_err(|error| failed(&error))
}

/// The refusal of these bytes, from an answer other than the expected one.
fn refusal(answer: FromLoader, of: SourceFacts) -> NotLoaded {
    match answer {
        FromLoader::Refused { message, hint, shown } => {
            let told = |shown: Box<ExternNames>| Box::new(Inspection::new(of, shown.exports, shown.imports));
            NotLoaded::Refused { message: clipped(message), hint: clipped(hint), inspection: shown.map(told) }
        }
        other => failure(other),
    }
}

/// The failure of a process whose answer is neither the expected one nor a refusal.
fn failure(answer: FromLoader) -> NotLoaded {
    match answer {
        FromLoader::Failed(problem) => NotLoaded::Ended { reason: clipped(problem) },
        _ => NotLoaded::out_of_turn(),
    }
}

/// Facts about the bytes with this digest.
pub(super) fn source_facts(digest: ComponentDigest, bytes: &[u8]) -> SourceFacts {
    SourceFacts { digest, size_bytes: bytes.len() as u64, adapted: is_module(bytes) }
}

fn in_memory(bytes: &[u8]) -> Result<File> {
    memory_file::sealed(bytes).map_err(|error| no_room(&error))
}

fn empty() -> Result<File> {
    memory_file::empty().map_err(|error| no_room(&error))
}

fn no_room(error: &std::io::Error) -> NotLoaded {
    NotLoaded::Failed(format!("there is no memory for its code: {error}"))
}

/// Takes a file that a loader wrote.
fn sealed(file: &File, bytes_max: u64) -> Result<()> {
    memory_file::seal(file).map_err(|error| no_room(&error))?;
    let bytes = file.metadata().map_err(|error| no_room(&error))?.len();
    if bytes > bytes_max { Err(NotLoaded::broke("it wrote too much")) } else { Ok(()) }
}
