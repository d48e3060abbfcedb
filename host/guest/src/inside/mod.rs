//! The end in a sandbox process: components loaded, calls run. Must not hold: the walls, or what
//! the host does about a message.
//!
//! One thread does everything: it reads the link and begins each call at once. A guest that waits
//! or computes longer becomes a task, which yields at each tick of the epoch clock.
//!
//! | file | holds |
//! |---|---|
//! | `place.rs` | the place: a process with walls, or a thread |
//! | `component.rs` | a component with the policy of its tools |
//! | `caller.rs` | the sender of a call, reached by messages |
//! | `checks.rs`, `check_thread.rs` | values against schemas, and the thread for long checks |
//! | `loading.rs` | the main of a loader |
mod caller;
mod check_thread;
mod checks;
mod component;
mod loading;
mod place;

use std::collections::HashMap;
use std::fs::File;
use std::future::poll_fn;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use toolcell_policy::{Access, Limits};
use toolcell_wall::mounts::MountFacts;
use toolcell_walls::kernel::{self, Entered, Folder, Rights};
use toolcell_walls::link::{self, Frame, LinkError, Receiver, SendError, Sender};

use crate::load::sandbox::{Sandbox, SandboxError};
use crate::run::call::{CallInput, GuestEnd, InstanceSource, KeptInstance};
use crate::run::warm::{PrewarmBudget, PrewarmSetup, Spawn};
use crate::wasi::files::{HandedFiles, ScratchFolder};
use caller::RemoteCaller;
use check_thread::CheckThread;
use checks::GivenArguments;
use component::{HandedCode, HandedParts, LoadedTool, ReadyComponent};
use loading::HostLink;
pub(crate) use place::RunPlace;
pub use place::{run_sandbox_process, sandbox_threads};
use toolcell_wall::contract::GuestResult;
use toolcell_wall::encoding::{self, EncodingError};
use toolcell_wall::message::{
    Bound, CallId, FromSandbox, InstanceId, LoadComponent, RunCall, RunTape, ToSandbox, ToolSchemas,
};
use toolcell_wall::pool_sizes::SandboxOptions;
use toolcell_wall::report::CallReport;
use toolcell_wall::start_call::StartCall;

/// Why a sandbox process ends before the host lets it go.
#[derive(Debug, thiserror::Error)]
pub enum InsideError {
    /// Its standard input is not a link to a host.
    #[error("this command is started by the host, with a socket as its input")]
    NoLink(#[source] std::io::Error),
    /// The link to the host failed.
    #[error("the link to the host: {0}")]
    Link(#[from] LinkError),
    /// The host does not accept its messages.
    #[error("the link to the host: {0}")]
    NotSent(#[from] SendError),
    /// The host sent something that is not a message, or sent it at the wrong time.
    #[error("the host's message: {0}")]
    Message(String),
    /// The engine does not start.
    #[error(transparent)]
    Engine(#[from] SandboxError),
    /// The threads that compile or check do not start.
    #[error("the threads that compile or check do not start: {0}")]
    Threads(#[source] std::io::Error),
}

impl From<EncodingError> for InsideError {
    fn from(error: EncodingError) -> Self {
        Self::Message(error.to_string())
    }
}

/// Descriptors that a process may have: its own few, one or two of each component, and those of
/// files and doors of its calls.
const FILES_MAX: u64 = 16_384;

/// While more calls wait, the host is woken for finished replies only this often. A wake-up takes
/// as long as a short call.
const REPORT_EVERY: Duration = Duration::from_micros(100);

/// While more calls wait, earlier calls get their turn this often: once per tick.
const YIELDS_EVERY: Duration = Duration::from_millis(1);

/// Serves calls on this link until the host closes it.
///
/// The process must not have started a thread before: some walls belong to a thread, and new
/// threads inherit them. Nothing that a component controls is read before the walls stand.
async fn serve(socket: OwnedFd, place: &RunPlace) -> Result<(), InsideError> {
    let peer = socket.try_clone().map_err(InsideError::NoLink)?;
    let (link, mut frames) = link::join(socket).await.map_err(InsideError::NoLink)?;
    #[cfg(feature = "drill")]
    if place.has_walls() {
        crate::drill::serves(&link, peer.as_fd());
    }
    let Some(Frame { bytes, fds }) = closed(frames.receive().await)? else { return Ok(()) };
    let settings = match encoding::decode(&bytes)? {
        ToSandbox::Begin(settings) => settings,
        ToSandbox::Compile(settings) => {
            return loading::compile(settings, HostLink { peer, sender: link, frames, place }).await;
        }
        ToSandbox::Link(settings) => {
            return loading::list(*settings, fds, HostLink { peer, sender: link, frames, place }).await;
        }
        _ => return Err(InsideError::Message("a link begins with settings".to_owned())),
    };
    // The walls need a process without threads, and without anything of a component.
    let sandbox = place.sandbox(SandboxOptions {
        stack_bytes: usize::try_from(settings.stack_bytes).unwrap_or(usize::MAX),
        calls_max: usize::try_from(settings.calls_max).unwrap_or(usize::MAX),
        engine: settings.engine,
    })?;
    let mut loads = Vec::<HandedComponent>::new();
    let mut scratch = None;
    let bound = loop {
        let Some(Frame { bytes, fds }) = closed(frames.receive().await)? else { return Ok(()) };
        match (encoding::decode(&bytes)?, loads.last_mut()) {
            (ToSandbox::Load(load), _) => {
                loads.push(HandedComponent { load, code: fds, mounts: Vec::new(), schemas: Vec::new() });
            }
            (ToSandbox::Mount(mount), Some(handed)) => handed.mounts.push((*mount, fds)),
            (ToSandbox::Schemas(schemas), Some(handed)) => handed.schemas.push(*schemas),
            (ToSandbox::Scratch, _) => scratch = fds.into_iter().next(),
            (ToSandbox::Seal(bound), _) => break bound,
            _ => return Err(InsideError::Message("out of its turn".to_owned())),
        }
    };
    let entered = place.has_walls().then(|| enter(bound, peer.as_fd(), &loads, scratch.as_ref()));
    let mut inside = SandboxState::new(sandbox.start()?, settings.prewarm_bytes, link);
    let scratch = scratch.map(ScratchFolder::handed);
    let checks = CheckThread::start().map_err(InsideError::Threads)?;
    for handed in loads {
        inside.load(handed, scratch.clone(), checks.clone())?;
    }
    // No thread starts after the seal, so this starts those for blocking and for long work.
    drop(tokio::task::spawn_blocking(|| ()).await);
    drop(checks.run(|| ()).await);
    inside.send(&FromSandbox::Sealed { missing: missing(entered) })?;
    inside.serve(&mut frames).await
}

/// A component with everything that came with it.
struct HandedComponent {
    load: Box<LoadComponent>,
    code: Vec<OwnedFd>,
    mounts: Vec<(MountFacts, Vec<OwnedFd>)>,
    schemas: Vec<ToolSchemas>,
}

impl HandedComponent {
    /// The files of its code, and its folders.
    fn rights(&self) -> impl Iterator<Item = Folder<'_>> {
        let code = self.code.iter().map(|code| Folder { descriptor: code.as_fd(), access: kernel::Access::Read });
        let folders = self.mounts.iter().filter_map(|(mount, fds)| {
            let access = match mount.folder_rights()? {
                Access::Read => kernel::Access::Read,
                Access::Write => kernel::Access::Write,
            };
            Some(Folder { descriptor: fds.first()?.as_fd(), access })
        });
        code.chain(folders)
    }
}

/// Builds the walls that must stand before code is mapped. The process can still open the code and
/// the folders that it is given, and nothing else.
fn enter(bound: Bound, link: BorrowedFd<'_>, loads: &[HandedComponent], scratch: Option<&OwnedFd>) -> Entered {
    let scratch = scratch.map(|folder| Folder { descriptor: folder.as_fd(), access: kernel::Access::Write });
    let folders: Vec<Folder<'_>> = loads.iter().flat_map(HandedComponent::rights).chain(scratch).collect();
    #[cfg(not(feature = "drill"))]
    let without = Vec::new();
    #[cfg(feature = "drill")]
    let without = crate::drill::without();
    kernel::enter(&Rights {
        link: Some(link),
        folders: &folders,
        memory_bytes_max: bound.writable_bytes_max,
        files_max: FILES_MAX,
        file_bytes_max: bound.file_bytes_max,
        threads_max: None,
        without: &without,
    })
}

/// Builds the last walls. Returns the missing ones by name, each with the reason.
pub(super) fn missing(entered: Option<Entered>) -> Vec<(String, String)> {
    let Some(report) = entered.map(Entered::seal) else { return Vec::new() };
    report.missing().map(|(wall, reason)| (wall.to_string(), reason.to_owned())).collect()
}

/// The value; `None` once the host has closed the link.
pub(super) fn closed<T>(frame: Result<T, LinkError>) -> Result<Option<T>, LinkError> {
    match frame {
        Ok(frame) => Ok(Some(frame)),
        Err(LinkError::Closed) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The state of a sandbox process.
struct SandboxState {
    sandbox: Sandbox,
    warm: PrewarmSetup,
    link: Sender,
    components: Vec<Option<Arc<ReadyComponent>>>,
    /// Their names, in the order of loading.
    names: Arc<Mutex<Vec<String>>>,
    calls: Arc<Calls>,
    /// The instances kept for callers, by the numbers that the host gave them.
    instances: HashMap<InstanceId, Arc<KeptInstance>>,
    /// Tapes that are kept for recorded calls, by the numbers that the host gave them.
    tapes: HashMap<u32, Arc<File>>,
}

/// The calls that run.
#[derive(Default)]
struct Calls(Mutex<HashMap<CallId, Arc<RemoteCaller>>>);

impl Calls {
    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, Arc<RemoteCaller>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SandboxState {
    fn new(sandbox: Sandbox, prewarm_bytes: u64, link: Sender) -> Self {
        let spawn: Spawn = Arc::new(|work| drop(tokio::spawn(work)));
        let names: Arc<Mutex<Vec<String>>> = Arc::default();
        let told = link.clone();
        let named = Arc::clone(&names);
        let tell = Arc::new(move |component: &str, call: &StartCall| {
            let named = named.lock().unwrap_or_else(PoisonError::into_inner);
            let place = named.iter().position(|name| name == component).and_then(|place| u32::try_from(place).ok());
            let message = place.map(|place| FromSandbox::NotAhead(place, call.function().to_owned()));
            // A report that the host does not accept is dropped.
            let bytes = message.and_then(|message| encoding::encode(&message).ok());
            let _ = bytes.map(|bytes| told.send(&bytes, &[]));
        });
        let warm = PrewarmSetup { budget: PrewarmBudget::new(prewarm_bytes), spawn, notify: tell };
        let components = Vec::new();
        let calls = Arc::default();
        let instances = HashMap::new();
        let tapes = HashMap::new();
        Self { sandbox, warm, link, components, names, calls, instances, tapes }
    }

    /// Takes messages until the host closes the link.
    async fn serve(&mut self, frames: &mut Receiver) -> Result<(), InsideError> {
        let mut told = Instant::now();
        let mut yielded = Instant::now();
        loop {
            let now = Instant::now();
            // Wakes the host once for the replies to several short calls.
            if closed(frames.has_more())?.unwrap_or_default() && now - told < REPORT_EVERY {
                self.link.wake_later();
            } else {
                self.link.wake();
                told = now;
            }
            // A run of new calls still lets the earlier ones have their turn.
            if now - yielded >= YIELDS_EVERY {
                tokio::task::yield_now().await;
                yielded = Instant::now();
            }
            let Some(Frame { bytes, fds }) = closed(frames.receive().await)? else { return Ok(()) };
            self.take(encoding::decode(&bytes)?, fds).await?;
        }
    }

    async fn take(&mut self, message: ToSandbox, fds: Vec<OwnedFd>) -> Result<(), InsideError> {
        match message {
            ToSandbox::Call(call) => self.call(*call, fds.into_iter().next().map(File::from)).await,
            // If a call runs in it, that call is its last.
            ToSandbox::Forget(instance) => drop(self.instances.remove(&instance)),
            ToSandbox::Door(call, door) => {
                let caller = self.calls.lock().get(&call).cloned();
                // The call may have ended before its door opened.
                if let Some(caller) = caller {
                    caller.door(door, fds.into_iter().next());
                }
            }
            ToSandbox::Cancel(call) => {
                let caller = self.calls.lock().get(&call).cloned();
                caller.iter().for_each(|caller| caller.cancel());
            }
            ToSandbox::Asked(call, asked) => {
                let caller = self.calls.lock().get(&call).cloned();
                if let Some(caller) = caller {
                    caller.answer(asked);
                }
            }
            _ => return Err(InsideError::Message("out of its turn".to_owned())),
        }
        Ok(())
    }

    /// Loads a component. If that fails, the host is notified, and calls of it are refused.
    fn load(
        &mut self,
        handed: HandedComponent,
        scratch: Option<Arc<ScratchFolder>>,
        checks: CheckThread,
    ) -> Result<(), InsideError> {
        let HandedComponent { load, code, mounts, schemas } = handed;
        let files = HandedFiles::new(mounts, scratch);
        let mut code = code.into_iter().map(File::from);
        let own = code.next().ok_or_else(|| "its code did not come with it".to_owned());
        let handed = |own| HandedCode { own, relay: load.relay.zip(code.next()) };
        let loaded = own.map(handed).and_then(|code| {
            ReadyComponent::new(&self.sandbox, &load, &code, HandedParts { files: files?, schemas, checks })
        });
        let id = u32::try_from(self.components.len()).unwrap_or(u32::MAX);
        let name = loaded.as_ref().map(|loaded| loaded.name().to_owned()).unwrap_or_default();
        self.names.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        match loaded {
            Ok(loaded) => self.components.push(Some(Arc::new(loaded))),
            Err(problem) => {
                self.components.push(None);
                self.send(&FromSandbox::NotLoaded(id, problem))?;
            }
        }
        Ok(())
    }

    /// Runs a call until it first waits or its first tick is over. The rest becomes a task.
    async fn call(&mut self, call: RunCall, file: Option<File>) {
        let RunCall { id, component, tool, arguments_json, is_conformed, caller, deadline_ms, instance, .. } = call;
        let tape = call.tape.map(|tape| (tape.does, self.tape(tape, file)));
        let arguments = GivenArguments { text: arguments_json, is_conformed };
        let deadline = Duration::from_millis(deadline_ms);
        #[cfg(feature = "drill")]
        crate::drill::begins(id);
        let kept = instance.map(|id| Arc::clone(self.instances.entry(id).or_default()));
        let place = usize::try_from(component).unwrap_or(usize::MAX);
        let loaded = self.components.get(place).cloned().flatten();
        let tool = loaded.map(|loaded| (loaded.tool(&tool, &self.warm), loaded));
        let limits = match &tool {
            Some((Ok(tool), _)) => tool.limits,
            _ => Limits::default(),
        };
        let caller = Arc::new(RemoteCaller::new(id, caller, self.link.clone(), &limits));
        self.calls.lock().insert(id, Arc::clone(&caller));
        let calls = Arc::clone(&self.calls);
        let mut work = Box::pin(async move {
            let end = match &tool {
                Some((Ok(tool), loaded)) => match tape.map(|(does, file)| loaded.taped(does, file?)).transpose() {
                    Ok(taped) => {
                        let source = match (taped.as_ref().and_then(Option::as_ref), kept.as_deref()) {
                            (Some(taped), _) => InstanceSource::Taped(taped),
                            (None, Some(kept)) => InstanceSource::Reused(kept),
                            (None, None) => tool.source(),
                        };
                        run(loaded, tool, source, arguments, deadline, &caller).await
                    }
                    Err(problem) => component::not_run(&problem).into(),
                },
                Some((Err(problem), _)) => component::not_run(problem).into(),
                None => component::not_run("the component is not loaded").into(),
            };
            calls.lock().remove(&id);
            caller.end(end).await;
        });
        let begun = poll_fn(|context| Poll::Ready(work.as_mut().poll(context).is_ready()));
        // Without tokio's budget, however many calls ran before this one.
        if !tokio::task::unconstrained(begun).await {
            // A task is polled at its start, so no wake-up is lost.
            drop(tokio::spawn(work));
        }
    }

    /// The file of a call's tape: the one that came with it, or one that was kept.
    fn tape(&mut self, tape: RunTape, file: Option<File>) -> Result<Arc<File>, String> {
        let file = file.map(Arc::new);
        if let Some((number, file)) = tape.kept.zip(file.as_ref()) {
            self.tapes.insert(number, Arc::clone(file));
        }
        let kept = || self.tapes.get(&tape.kept?).cloned();
        file.or_else(kept).ok_or_else(|| "its tape did not come with it".to_owned())
    }

    fn send(&self, message: &FromSandbox) -> Result<(), InsideError> {
        Ok(self.link.send(&encoding::encode(message)?, &[])?)
    }
}

/// Runs a call between the checks of its arguments and of its result.
async fn run(
    loaded: &ReadyComponent,
    tool: &LoadedTool,
    source: InstanceSource<'_>,
    arguments: GivenArguments,
    deadline: Duration,
    caller: &Arc<RemoteCaller>,
) -> GuestEnd<GuestResult> {
    let limits = &tool.limits.within(deadline);
    let arguments = match tool.checks.arguments(arguments, limits, caller).await {
        Ok(arguments) => arguments,
        // Nothing ran in its instance.
        Err(failure) => {
            let kept = matches!(source, InstanceSource::Reused(place) if place.has_one());
            return CallReport { kept, ..CallReport::not_run(failure) }.into();
        }
    };
    #[cfg(feature = "drill")]
    let opened = &crate::drill::limits(limits);
    #[cfg(not(feature = "drill"))]
    let opened = limits;
    let input = CallInput {
        tool: &tool.export,
        arguments_json: &arguments,
        program: tool.program(),
        limits: opened,
        capabilities: &tool.capabilities,
        caller: Arc::<RemoteCaller>::clone(caller),
        source,
    };
    let mut end = loaded.component().call_tool(input).await;
    tool.checks.result(&mut end.report, limits, caller).await;
    end
}
