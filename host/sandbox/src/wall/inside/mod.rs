//! The end in a sandbox process: components loaded, calls run. Must not hold: the walls, or what
//! the host does about a message.
//!
//! One thread does everything: it reads the link, and guests are tasks on it, which yield at each
//! tick of the epoch clock.
mod caller;
mod component;

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolcell_walls::kernel::{self, Entered, Folder, Rights};
use toolcell_walls::link::{self, Frame, LinkError, SendError, Sender};

use super::message::{self, Call, CallId, FromSandbox, Load, MessageError, Settings, ToSandbox};
use crate::load::sandbox::{Sandbox, SandboxError, SandboxOptions};
use crate::load::start_code::StartCall;
use crate::run::call::CallInput;
use crate::run::warm::{Spawn, WarmBudget, WarmSetup};
use caller::RemoteCaller;
use component::Loaded;

/// Why a sandbox process ends before the host lets it go.
#[derive(Debug, thiserror::Error)]
pub enum InsideError {
    /// Its standard input is no link to a host.
    #[error("this command is started by the host, with a socket as its input")]
    NoLink(#[source] std::io::Error),
    /// The host's end is broken.
    #[error("the link to the host: {0}")]
    Link(#[from] LinkError),
    /// The host does not take what is said to it.
    #[error("the link to the host: {0}")]
    NotSent(#[from] SendError),
    /// The host said something that is no message, or not at its time.
    #[error("the host's message: {0}")]
    Message(String),
    /// The engine does not start.
    #[error(transparent)]
    Engine(#[from] SandboxError),
}

impl From<MessageError> for InsideError {
    fn from(error: MessageError) -> Self {
        Self::Message(error.to_string())
    }
}

/// Descriptors that a process may have: its own few, one or two of each component, and those of
/// files and doors of its calls.
const FILES_MAX: u64 = 16_384;

/// Serves calls on this link until the host closes it.
///
/// The process must not have started a thread: some walls are a thread's, and inherited. Nothing
/// that a component decides is looked at before they stand.
///
/// # Errors
/// [`InsideError`].
pub async fn serve(socket: OwnedFd) -> Result<(), InsideError> {
    let peer = socket.try_clone().map_err(InsideError::NoLink)?;
    let (link, mut frames) = link::join(socket).await.map_err(InsideError::NoLink)?;
    let Some(Frame { bytes, .. }) = closed(frames.receive().await)? else { return Ok(()) };
    let ToSandbox::Begin(settings) = message::decode(&bytes)? else {
        return Err(InsideError::Message("a link begins with settings".to_owned()));
    };
    let mut loads = Vec::new();
    loop {
        let Some(Frame { bytes, fds }) = closed(frames.receive().await)? else { return Ok(()) };
        match message::decode(&bytes)? {
            ToSandbox::Load(load) => loads.push((load, fds)),
            ToSandbox::Seal => break,
            _ => return Err(InsideError::Message("out of its turn".to_owned())),
        }
    }
    let entered = enter(&settings, peer.as_fd(), &loads);
    let mut inside = Inside::new(&settings, link)?;
    for (load, fds) in loads {
        inside.load(&load, fds)?;
    }
    // No thread starts after the seal: this one does what blocks, from now on.
    drop(tokio::task::spawn_blocking(|| ()).await);
    let report = entered.seal();
    let missing = report.missing().map(|(wall, reason)| (wall.to_string(), reason.to_owned())).collect();
    inside.tell(&FromSandbox::Sealed { missing })?;
    while let Some(Frame { bytes, fds }) = closed(frames.receive().await)? {
        inside.take(message::decode(&bytes)?, fds)?;
    }
    Ok(())
}

/// Builds the walls that stand before code is mapped. They let the process open the code that it is
/// given, and nothing else.
fn enter(settings: &Settings, link: BorrowedFd<'_>, loads: &[(Box<Load>, Vec<OwnedFd>)]) -> Entered {
    let code = loads.iter().filter_map(|(_, fds)| fds.first());
    let folders: Vec<Folder<'_>> =
        code.map(|code| Folder { descriptor: code.as_fd(), access: kernel::Access::Read }).collect();
    kernel::enter(&Rights {
        link: Some(link),
        folders: &folders,
        memory_bytes_max: settings.memory_bytes_max,
        files_max: FILES_MAX,
        file_bytes_max: None,
        threads_max: None,
        without: &[],
    })
}

/// The frame; none once the host has closed the link.
fn closed(frame: Result<Frame, LinkError>) -> Result<Option<Frame>, LinkError> {
    match frame {
        Ok(frame) => Ok(Some(frame)),
        Err(LinkError::Closed) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The state of a sandbox process.
struct Inside {
    sandbox: Sandbox,
    warm: WarmSetup,
    link: Sender,
    components: Vec<Option<Arc<Loaded>>>,
    /// Their names, in the order of loading.
    names: Arc<Mutex<Vec<String>>>,
    calls: Arc<Calls>,
}

/// The calls that run.
#[derive(Default)]
struct Calls(Mutex<HashMap<CallId, Arc<RemoteCaller>>>);

impl Calls {
    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, Arc<RemoteCaller>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn new(settings: &Settings, link: Sender) -> Result<Self, InsideError> {
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let sandbox = Sandbox::new(SandboxOptions {
            cache: None,
            stack_bytes: number(settings.stack_bytes),
            calls_max: number(settings.calls_max),
            outside: true,
        })?;
        let spawn: Spawn = Arc::new(|work| drop(tokio::spawn(work)));
        let names: Arc<Mutex<Vec<String>>> = Arc::default();
        let (told, named) = (link.clone(), Arc::clone(&names));
        let tell = Arc::new(move |component: &str, call: &StartCall| {
            let named = named.lock().unwrap_or_else(PoisonError::into_inner);
            let place = named.iter().position(|name| name == component).and_then(|place| u32::try_from(place).ok());
            let message = place.map(|place| FromSandbox::NotAhead(place, call.function().to_owned()));
            // A host that does not take it says nothing of it.
            let bytes = message.and_then(|message| message::encode(&message).ok());
            let _ = bytes.map(|bytes| told.send(&bytes, &[]));
        });
        let warm = WarmSetup { budget: WarmBudget::new(settings.prewarm_bytes), spawn, tell };
        let (components, calls) = (Vec::new(), Arc::default());
        Ok(Self { sandbox, warm, link, components, names, calls })
    }

    fn take(&mut self, message: ToSandbox, fds: Vec<OwnedFd>) -> Result<(), InsideError> {
        match message {
            ToSandbox::Call(call) => {
                self.call(*call);
                Ok(())
            }
            ToSandbox::Door(call, door) => {
                let caller = self.calls.lock().get(&call).cloned();
                // A call that has ended opens no door.
                if let Some(caller) = caller {
                    caller.door(door, fds.into_iter().next());
                }
                Ok(())
            }
            ToSandbox::Cancel(call) => {
                let caller = self.calls.lock().get(&call).cloned();
                caller.iter().for_each(|caller| caller.cancel());
                Ok(())
            }
            ToSandbox::Asked(call, asked) => {
                let caller = self.calls.lock().get(&call).cloned();
                if let Some(caller) = caller {
                    caller.answer(asked);
                }
                Ok(())
            }
            _ => Err(InsideError::Message("out of its turn".to_owned())),
        }
    }

    /// Loads a component. The host is told of one that cannot be used; its calls are refused.
    fn load(&mut self, load: &Load, fds: Vec<OwnedFd>) -> Result<(), InsideError> {
        let code = fds.into_iter().next().map(File::from);
        let loaded = match code {
            Some(code) => Loaded::new(&self.sandbox, load, &code),
            None => Err("its code did not come with it".to_owned()),
        };
        let id = u32::try_from(self.components.len()).unwrap_or(u32::MAX);
        let name = loaded.as_ref().map(|loaded| loaded.name().to_owned()).unwrap_or_default();
        self.names.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        match loaded {
            Ok(loaded) => self.components.push(Some(Arc::new(loaded))),
            Err(problem) => {
                self.components.push(None);
                self.tell(&FromSandbox::NotLoaded(id, problem))?;
            }
        }
        Ok(())
    }

    /// Begins a call: a task of its own.
    fn call(&self, call: Call) {
        let Call { id, component, tool, arguments_json, caller } = call;
        let caller = Arc::new(RemoteCaller::new(id, caller, self.link.clone()));
        self.calls.lock().insert(id, Arc::clone(&caller));
        let place = usize::try_from(component).unwrap_or(usize::MAX);
        let loaded = self.components.get(place).cloned().flatten();
        let tool = loaded.map(|loaded| (loaded.tool(&tool, &self.warm), loaded));
        let calls = Arc::clone(&self.calls);
        drop(tokio::spawn(async move {
            let report = match &tool {
                Some((Ok(tool), loaded)) => {
                    let input = CallInput {
                        tool: tool.name(),
                        arguments_json: &arguments_json,
                        program: tool.program(),
                        limits: tool.limits(),
                        capabilities: tool.capabilities(),
                        caller: Arc::<RemoteCaller>::clone(&caller),
                        source: tool.source(),
                    };
                    loaded.component().call_tool(input).await
                }
                Some((Err(problem), _)) => component::not_run(problem),
                None => component::not_run("the component is not loaded"),
            };
            calls.lock().remove(&id);
            caller.end(report);
        }));
    }

    fn tell(&self, message: &FromSandbox) -> Result<(), InsideError> {
        Ok(self.link.send(&message::encode(message)?, &[])?)
    }
}
