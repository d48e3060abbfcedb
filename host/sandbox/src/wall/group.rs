//! Components that share sandbox processes. Must not hold: what is said to a process.
use std::collections::HashMap;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use toolcell_policy::Limits;
use toolcell_walls::link;
use toolcell_walls::process::{Command, Starter};

use super::conduct::{Conduct, Standing};
use super::message::{self, Load, Settings, ToSandbox};
use super::process::{Bounds, CalledComponent, SandboxProcess, State};
use crate::bindings::contract::CallResult;
use crate::failure::Failure;
use crate::load::component::ToolComponent;
use crate::load::start_code::StartCall;
use crate::run::call::{CallInput, CallReport};

/// Time for a process to start and to load its components: a hundred take a tenth of a second.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// Is told once of a component that nothing is made ahead of, and why.
pub type ComponentNotice = Arc<dyn Fn(&StartCall) + Send + Sync>;

/// One component of a group.
#[derive(Clone)]
pub struct GroupMember {
    /// The component.
    pub component: Arc<ToolComponent>,
    /// The manifest of this component alone ([`toolcell_policy::Excerpts`]).
    pub manifest: String,
    /// The limits of the component and of its tools.
    pub limits: Vec<Limits>,
    /// Is told once that nothing is made ahead of its calls, and why.
    pub tell: ComponentNotice,
    /// Values of variables that its manifest takes from the host's environment, by their names
    /// there.
    pub variables: Vec<(String, String)>,
}

/// The settings of sandbox processes.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// The program that becomes a sandbox process.
    pub program: Command,
    /// Processes of a group; at least one. Calls go to the one with the fewest.
    pub processes: usize,
    /// Bytes of WebAssembly stack per call.
    pub stack_bytes: usize,
    /// Calls at once in one process.
    pub calls_max: usize,
    /// Bytes of all instances made ahead in one process.
    pub prewarm_bytes: u64,
    /// Bytes of memory that one process may take, held by the kernel.
    pub memory_bytes_max: u64,
    /// True if attempts of guests are observed.
    pub observing: bool,
}

/// Components that share sandbox processes. They are started when first needed.
pub struct SandboxGroup {
    members: Vec<GroupMember>,
    options: GroupOptions,
    starter: Arc<Starter>,
    processes: Mutex<Vec<Arc<SandboxProcess>>>,
    /// One process starts at a time.
    starting: tokio::sync::Mutex<()>,
    grows: AtomicBool,
    conduct: Conduct,
    /// Groups of members that run apart.
    apart: Mutex<HashMap<usize, Arc<SandboxGroup>>>,
}

impl Drop for SandboxGroup {
    /// No call runs any more: each holds its group. The processes end, whoever listens to one.
    fn drop(&mut self) {
        self.lock().drain(..).for_each(|process| process.kill("its components are served no more"));
    }
}

impl SandboxGroup {
    /// A group of these components, with no process yet.
    #[must_use]
    pub fn new(members: Vec<GroupMember>, options: GroupOptions, starter: Arc<Starter>) -> Arc<Self> {
        let (processes, starting) = (Mutex::default(), tokio::sync::Mutex::default());
        let (grows, conduct, apart) = (AtomicBool::new(false), Conduct::default(), Mutex::default());
        Arc::new(Self { members, options, starter, processes, starting, grows, conduct, apart })
    }

    /// Its components.
    #[must_use]
    pub fn members(&self) -> &[GroupMember] {
        &self.members
    }

    /// Starts a process, where there is none. Returns the walls that do not stand in it, by name,
    /// with the reasons.
    ///
    /// # Errors
    /// One sentence, where no process starts.
    pub async fn start(&self) -> Result<Vec<(String, String)>, String> {
        match self.process().await?.started().await {
            State::Ready(missing) => Ok(missing),
            State::Starting => Ok(Vec::new()),
            State::Ended(reason) => Err(reason),
        }
    }

    /// Runs one call of member number `member`. One that ended sandboxes before runs apart from the
    /// others, and after more of it not at all for a while.
    pub async fn call_tool(self: &Arc<Self>, member: usize, input: CallInput<'_>) -> CallReport<CallResult> {
        let report = match self.conduct.of(member) {
            Standing::Good => self.call_here(member, input).await,
            Standing::Apart => match self.alone(member) {
                // Boxed, since the group of one member is a group as well.
                Some(group) => Box::pin(group.call_here(0, input)).await,
                None => self.call_here(member, input).await,
            },
            Standing::HeldBack => return CallReport::not_run(Failure::SandboxEnded { reason: Conduct::held_back() }),
        };
        if matches!(report.outcome, Err(Failure::SandboxEnded { .. })) {
            self.conduct.ended(member);
        }
        report
    }

    /// A group of this member alone, with one process.
    fn alone(&self, member: usize) -> Option<Arc<Self>> {
        if self.members.len() == 1 {
            return None;
        }
        let mut apart = self.apart.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = apart.get(&member) {
            return Some(Arc::clone(group));
        }
        let options = GroupOptions { processes: 1, ..self.options.clone() };
        let group = Self::new(vec![self.members.get(member)?.clone()], options, Arc::clone(&self.starter));
        apart.insert(member, Arc::clone(&group));
        Some(group)
    }

    async fn call_here(self: &Arc<Self>, member: usize, input: CallInput<'_>) -> CallReport<CallResult> {
        let process = match self.process().await {
            Ok(process) => process,
            Err(detail) => return CallReport::not_run(Failure::Host { detail }),
        };
        if process.load() > 0 {
            self.grow();
        }
        let asks = self.members.get(member).is_some_and(|member| member.component.inspection().asks());
        let asks = asks || input.capabilities.may_ask();
        process.call(CalledComponent { number: u32::try_from(member).unwrap_or(u32::MAX), asks }, input).await
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<SandboxProcess>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process with the fewest calls.
    fn idlest(&self) -> Option<Arc<SandboxProcess>> {
        let mut processes = self.lock();
        processes.retain(|process| !process.is_ended());
        processes.iter().min_by_key(|process| process.load()).cloned()
    }

    async fn process(&self) -> Result<Arc<SandboxProcess>, String> {
        if let Some(process) = self.idlest() {
            return Ok(process);
        }
        let _turn = self.starting.lock().await;
        match self.idlest() {
            Some(process) => Ok(process),
            None => self.start_one().await,
        }
    }

    /// Starts another process beside those that have work, up to the most there may be.
    fn grow(self: &Arc<Self>) {
        if self.lock().len() >= self.options.processes || self.grows.swap(true, Ordering::AcqRel) {
            return;
        }
        let group = Arc::clone(self);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        drop(runtime.spawn(async move {
            let _turn = group.starting.lock().await;
            if group.lock().len() < group.options.processes {
                // Calls go on in the others.
                let _ = group.start_one().await;
            }
            group.grows.store(false, Ordering::Release);
        }));
    }

    async fn start_one(&self) -> Result<Arc<SandboxProcess>, String> {
        let failed = |error: std::io::Error| format!("no sandbox process starts: {error}");
        let (process, socket) = self.starter.start(self.options.program.clone()).await.map_err(failed)?;
        let (_, mut receiver) = link::open(socket).map_err(failed)?;
        // Nothing that a sandbox process could send is wanted.
        receiver.refuse_fds();
        let limits = self.members.iter().flat_map(|member| &member.limits);
        let message_bytes_max = limits.map(message::bytes_max).max().unwrap_or_default();
        let tell = self.members.iter().map(|member| Arc::clone(&member.tell)).collect();
        let process = SandboxProcess::new(process, receiver, Bounds { message_bytes_max, tell });
        drop(tokio::spawn(Arc::clone(&process).run()));
        let watched = Arc::downgrade(&process);
        drop(tokio::spawn(SandboxProcess::watch_memory(watched, self.options.memory_bytes_max)));
        let started = tokio::time::timeout(STARTS_WITHIN, self.load_all(&process)).await;
        match started.unwrap_or_else(|_| Err("it did not start in time".to_owned())) {
            Ok(()) => {
                self.lock().push(Arc::clone(&process));
                Ok(process)
            }
            Err(reason) => {
                process.kill(&reason);
                Err(format!("a sandbox process did not start: {reason}"))
            }
        }
    }

    /// Has a new process load the group's components, and waits until its walls stand.
    async fn load_all(&self, process: &SandboxProcess) -> Result<(), String> {
        let options = &self.options;
        process.say(
            &ToSandbox::Begin(Settings {
                stack_bytes: options.stack_bytes as u64,
                calls_max: options.calls_max as u64,
                prewarm_bytes: options.prewarm_bytes,
                memory_bytes_max: options.memory_bytes_max,
            }),
            &[],
        )?;
        for member in &self.members {
            let code = member.component.hand_over();
            let (code, facts) = code.map_err(|error| format!("its code cannot be handed over: {error}"))?;
            let load = Load {
                manifest: member.manifest.clone(),
                facts,
                variables: member.variables.clone(),
                observing: options.observing,
            };
            process.say_when_taken(&ToSandbox::Load(Box::new(load)), &[code.as_fd()]).await?;
        }
        process.say_when_taken(&ToSandbox::Seal, &[]).await?;
        match process.started().await {
            State::Ended(reason) => Err(reason),
            State::Starting | State::Ready(_) => Ok(()),
        }
    }
}
