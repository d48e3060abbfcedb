//! Components that share sandbox processes.
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolcell_policy::{Limits, Quota};

use super::crash_history::Standing;
use super::pool::{SandboxPool, StartedProcess};
use super::process::{
    CalledComponent, ComponentBounds, NotStarted, ProcessClaim, ProcessState, RemoteInstance, SandboxCall,
    SandboxProcess,
};
use super::required::RequiredWalls;
use super::{bound, disk};
use crate::files::{GrantedFiles, Identity, ProcessScratch, ScratchHome, WrittenFolder};
use crate::load::held::HeldComponent;
use crate::secrets::SecretValue;
use crate::wall::duties;
use toolcell_wall::contract::GuestResult;
use toolcell_wall::failure::CallFailure;
use toolcell_wall::load::facts::GuestEngine;
use toolcell_wall::message::{self, HandedSecret, LoadComponent, ToSandbox, ToolSchemas};
use toolcell_wall::report::CallReport;
use toolcell_wall::start_call::StartCall;
use toolcell_wall::tape::TAPE_BYTES_MAX;

/// Time for a process to start and to load its components: a hundred take a tenth of a second. A
/// replacement has the rest of it.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// Processes that one call starts at most, if each one before ended while starting. No component
/// has run in them, so the cause is elsewhere: a person, or the kernel for lack of memory. A
/// waiting process counts, too.
const STARTS_MAX: usize = 3;

/// Called once for a component whose instances cannot be prewarmed, with the reason.
pub type ComponentNotice = Arc<dyn Fn(&StartCall) + Send + Sync>;

/// One component of a group.
#[derive(Clone)]
pub struct GroupMember {
    /// The component.
    pub component: Arc<HeldComponent>,
    /// The name by which other hosts know this component with the same rights.
    pub known_as: String,
    /// The manifest of this component alone ([`toolcell_policy::Excerpts`]).
    pub manifest: String,
    /// The limits of each of its tools.
    pub limits: Vec<Limits>,
    /// The schemas of its tools: arguments and results are checked where they run.
    pub schemas: Arc<[ToolSchemas]>,
    /// Instances that it may keep for callers at once.
    pub kept_max: usize,
    /// Called once if its instances cannot be prewarmed, with the reason.
    pub tell: ComponentNotice,
    /// Values of variables that its manifest takes from the host's environment, by their names
    /// there.
    pub variables: Vec<(String, String)>,
    /// As in [`DEV_SOURCE`](crate::DEV_SOURCE), for a component that `toolcell dev` serves.
    pub dev_source: Option<Arc<str>>,
    /// The files of its tools.
    pub files: GrantedFiles,
    /// Values of the secrets that its guests hold, by their sources in the manifest. The group's
    /// processes have them too.
    pub secrets: Vec<(String, SecretValue)>,
    /// The relay, if its calls may be recorded.
    pub relay: Option<Arc<HeldComponent>>,
}

/// The settings of a group.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// Processes of a group; at least one. A call goes to the one with the fewest calls.
    pub processes: usize,
    /// A process that has had no call for this long is ended.
    pub idle: Duration,
    /// Bytes of memory that no process may exceed, whatever its components may use.
    pub memory_bytes_max: u64,
    /// The walls without which a process runs no call.
    pub required_walls: RequiredWalls,
    /// True if attempts of guests are observed.
    pub observing: bool,
}

/// Ends a process whose start is given up together with the call that needed it.
struct StartsGivenUp(Option<Arc<SandboxProcess>>);

impl Drop for StartsGivenUp {
    fn drop(&mut self) {
        self.0.iter().for_each(|process| process.kill("its start was given up"));
    }
}

/// Components that share sandbox processes. The processes are started when first needed, and ended
/// when no longer needed.
pub struct SandboxGroup {
    members: Vec<GroupMember>,
    options: GroupOptions,
    pool: Arc<SandboxPool>,
    processes: Mutex<Vec<Arc<SandboxProcess>>>,
    /// Single files of its mounts, as its processes have them.
    single_files: Mutex<Vec<Option<Identity>>>,
    /// Processes that hold outdated single files. They end with their calls.
    outdated: Mutex<Vec<Arc<SandboxProcess>>>,
    /// One process starts at a time.
    starting: tokio::sync::Mutex<()>,
    grows: AtomicBool,
    /// Groups of members that run apart.
    apart: Mutex<HashMap<usize, Arc<SandboxGroup>>>,
}

impl Drop for SandboxGroup {
    /// No call runs any more, since each holds its group. This ends the processes even if something
    /// else holds one.
    fn drop(&mut self) {
        let outdated = std::mem::take(&mut *self.outdated.lock().unwrap_or_else(PoisonError::into_inner));
        self.lock().drain(..).chain(outdated).for_each(|process| process.kill("its components are served no more"));
    }
}

impl SandboxGroup {
    /// A group of these components, with no process yet. All are for one engine.
    #[must_use]
    pub fn new(members: Vec<GroupMember>, options: GroupOptions, pool: Arc<SandboxPool>) -> Arc<Self> {
        let mut options = options;
        if members.iter().any(|member| member.files.writes()) {
            // The room in a folder is counted in one process only.
            options.processes = 1;
        }
        let processes = Mutex::default();
        let starting = tokio::sync::Mutex::default();
        let single_files = Mutex::default();
        let outdated = Mutex::default();
        let grows = AtomicBool::new(false);
        let apart = Mutex::default();
        Arc::new(Self { members, options, pool, processes, single_files, outdated, starting, grows, apart })
    }

    /// The engine of its processes. All of its components are for this one.
    fn engine(&self) -> GuestEngine {
        self.members.first().map_or(GuestEngine::Sync, |member| member.component.engine())
    }

    /// Its components.
    #[must_use]
    pub fn members(&self) -> &[GroupMember] {
        &self.members
    }

    /// True if it has a process.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.lock().iter().any(|process| !process.is_ended())
    }

    /// Starts a process if there is none.
    ///
    /// # Errors
    /// A sentence with the reason why no process starts.
    pub async fn start(&self) -> Result<(), String> {
        match self.process(None).await.map_err(|error| error.to_string())?.started().await {
            ProcessState::Starting | ProcessState::Ready(_) => Ok(()),
            ProcessState::Ended(reason) => Err(reason),
        }
    }

    /// The standing of member number `member`.
    #[must_use]
    pub fn standing(&self, member: usize) -> Standing {
        self.members.get(member).map_or(Standing::Good, |member| self.pool.standing(&member.known_as))
    }

    /// Runs one call of member number `member`. One that ended sandboxes before runs apart from the
    /// others, and after more ends not at all for a while.
    pub async fn call_tool(self: &Arc<Self>, member: usize, input: SandboxCall<'_>) -> CallReport<GuestResult> {
        let known_as = self.members.get(member).map_or("", |member| member.known_as.as_str());
        let standing = self.pool.standing(known_as);
        let (report, process) = match standing {
            Standing::Good => self.call_here(member, input).await,
            Standing::Apart => match self.alone(member) {
                // Boxed, since the group of one member is also a group.
                Some(group) => Box::pin(group.call_here(0, input)).await,
                None => self.call_here(member, input).await,
            },
            Standing::HeldBack => return CallReport::not_run(CallFailure::SandboxEnded { reason: standing.reason() }),
        };
        if let (Err(CallFailure::SandboxEnded { .. }), Some(process)) = (&report.outcome, process)
            && process.is_to_blame().await
        {
            self.pool.ended(known_as, process.id());
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
        let group = Self::new(vec![self.members.get(member)?.clone()], options, Arc::clone(&self.pool));
        apart.insert(member, Arc::clone(&group));
        Some(group)
    }

    /// Runs a call. Returns its report, with the process that ran it.
    async fn call_here(
        self: &Arc<Self>,
        member: usize,
        input: SandboxCall<'_>,
    ) -> (CallReport<GuestResult>, Option<ProcessClaim>) {
        let turn = match input.kept {
            Some(kept) => match kept.turn(input.limits.queue_wait(), input.caller.as_ref()).await {
                Ok(turn) => Some(turn),
                Err(failure) => return (CallReport::not_run(failure), None),
            },
            None => None,
        };
        let kept = turn.as_ref().and_then(|(_, kept)| kept.as_ref());
        let process = match self.process(kept).await {
            Ok(process) => process,
            Err(NotStarted::Ended(detail)) => {
                return (CallReport::not_run(CallFailure::SandboxNotStarted { detail }), None);
            }
            Err(NotStarted::Refused(detail)) => return (CallReport::not_run(CallFailure::Host { detail }), None),
        };
        if process.load() > 0 {
            self.grow();
        }
        let number = u32::try_from(member).unwrap_or(u32::MAX);
        let Some((mut lease, kept)) = turn else {
            let report = process.call(CalledComponent { number, instance: None }, input).await;
            return (report, Some(process));
        };
        let instance = kept.filter(|instance| instance.is_in(&process)).unwrap_or_else(|| {
            lease.anew();
            process.instance()
        });
        let report = process.call(CalledComponent { number, instance: Some(instance.id()) }, input).await;
        if report.kept {
            lease.keep(instance);
        }
        (report, Some(process))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<SandboxProcess>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process that keeps this instance, or else the one with the fewest calls.
    fn claim(&self, kept: Option<&RemoteInstance>) -> Option<ProcessClaim> {
        let mut processes = self.lock();
        processes.retain(|process| !process.is_ended());
        let keeps = kept.and_then(|kept| processes.iter().find(|process| kept.is_in(process)));
        keeps.or_else(|| processes.iter().min_by_key(|process| process.load())).and_then(SandboxProcess::claim)
    }

    /// Retires processes that hold an outdated single file of a mount.
    fn renew(&self) {
        let now: Vec<_> = self.members.iter().flat_map(|member| member.files.single_files()).collect();
        let mut known = self.single_files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut outdated = self.outdated.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != now {
            *known = now;
            outdated.append(&mut self.lock());
        }
        outdated.retain(|process| {
            let has_calls = process.load() > 0;
            if !has_calls {
                process.kill("a file of its mounts was replaced");
            }
            has_calls
        });
    }

    async fn process(&self, kept: Option<&RemoteInstance>) -> Result<ProcessClaim, NotStarted> {
        if self.members.iter().any(|member| member.files.has_single_files()) {
            // This accesses the disk.
            duties::leave().await;
            self.renew();
        }
        if let Some(process) = self.claim(kept) {
            return Ok(process);
        }
        let _turn = self.starting.lock().await;
        match self.claim(kept) {
            Some(process) => Ok(process),
            None => self.start_one().await,
        }
    }

    /// Starts another process in addition to the busy ones, up to the maximum.
    fn grow(self: &Arc<Self>) {
        if self.lock().len() >= self.options.processes || self.grows.swap(true, Ordering::AcqRel) {
            return;
        }
        let group = Arc::clone(self);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        drop(runtime.spawn(async move {
            let _turn = group.starting.lock().await;
            if group.lock().len() < group.options.processes {
                // Calls continue in the others.
                let _ = group.start_one().await;
            }
            group.grows.store(false, Ordering::Release);
        }));
    }

    /// Starts a process. If one ends while starting, another is tried before a call is refused.
    async fn start_one(&self) -> Result<ProcessClaim, NotStarted> {
        let until = Instant::now() + STARTS_WITHIN;
        let engine = self.engine();
        let mut waited = self.pool.take(engine);
        let mut starts = 0;
        loop {
            let started = match waited.take() {
                Some(waited) => Ok(waited),
                None => self.pool.start(engine).await.map_err(|error| error.within("cannot start a sandbox process")),
            };
            let begun = match started {
                Ok(started) => self.begin(started, until).await,
                Err(problem) => Err(problem),
            };
            starts += 1;
            match begun {
                Err(NotStarted::Ended(_)) if starts < STARTS_MAX && Instant::now() < until => {}
                begun => return begun,
            }
        }
    }

    /// Adds a started process to the group.
    async fn begin(&self, started: StartedProcess, until: Instant) -> Result<ProcessClaim, NotStarted> {
        let StartedProcess { process, receiver } = started;
        let limits = self.members.iter().flat_map(|member| &member.limits);
        let message_bytes_max = limits.map(message::bytes_max).fold(message::BYTES_MIN, u64::max);
        let tell = self.members.iter().map(|member| Arc::clone(&member.tell)).collect();
        let scratch = self.scratch();
        let scratch =
            scratch.map_err(|error| NotStarted::Refused(format!("there is no room for scratch space: {error}")))?;
        let written = self.pool.disks.watched(self.written(scratch.as_ref()));
        let (written, refused) = disk::refusal(written).await;
        if let Some(problem) = refused {
            return Err(NotStarted::Refused(format!("{problem}; remove what is too much")));
        }
        let process = SandboxProcess::new(process, receiver, ComponentBounds { message_bytes_max, tell, scratch });
        drop(tokio::spawn(Arc::clone(&process).run()));
        if !written.is_empty() {
            drop(tokio::spawn(disk::watch(Arc::downgrade(&process), written)));
        }
        let mut given_up = StartsGivenUp(Some(Arc::clone(&process)));
        let started = tokio::time::timeout_at(until, self.load_all(&process)).await;
        let started = started.unwrap_or_else(|_| Err(NotStarted::Ended("it did not start in time".to_owned())));
        match started.and_then(|()| process.claim().ok_or_else(|| NotStarted::Ended("it ended at once".to_owned()))) {
            Ok(claim) => {
                let memory = self.memory();
                let idle = self.options.idle;
                drop(tokio::spawn(SandboxProcess::watch(Arc::downgrade(&process), memory.resident, memory.rest)));
                drop(tokio::spawn(SandboxProcess::watch_idle(Arc::downgrade(&process), idle)));
                self.lock().push(process);
                given_up.0 = None;
                Ok(claim)
            }
            Err(problem) => {
                process.kill(&problem.to_string());
                Err(problem.within("a sandbox process did not start"))
            }
        }
    }

    /// Scratch space for a new process, where any member has some.
    fn scratch(&self) -> std::io::Result<Option<Arc<ProcessScratch>>> {
        let home = self.members.iter().find_map(|member| member.files.scratch_home());
        home.map(ScratchHome::of_process).transpose()
    }

    /// The folders that a process of the group writes to.
    fn written(&self, scratch: Option<&Arc<ProcessScratch>>) -> Vec<WrittenFolder> {
        let mounts = self.members.iter().flat_map(|member| member.files.written());
        let quotas = self.members.iter().filter_map(|member| member.files.scratch_quota());
        let largest =
            quotas.reduce(|one, other| Quota { bytes: one.bytes.max(other.bytes), files: one.files.max(other.files) });
        let scratch = scratch.zip(largest).map(|(scratch, quota)| WrittenFolder::Scratch(Arc::clone(scratch), quota));
        mounts.chain(scratch).collect()
    }

    /// The length that no file grows past by a process of the group; `None` if it is not bounded.
    fn file_bytes_max(&self) -> Option<u64> {
        let files = self.members.iter().map(|member| &member.files);
        // A tape is a file as well.
        let tape = if self.members.iter().any(|member| member.relay.is_some()) { TAPE_BYTES_MAX } else { 0 };
        files.map(GrantedFiles::file_bytes_max).try_fold(tape, |max: u64, bytes| Some(max.max(bytes?)))
    }

    /// The memory of one of its processes.
    fn memory(&self) -> bound::MemoryBound {
        bound::of(&self.members, self.pool.options(), self.options.memory_bytes_max)
    }

    /// Makes a new process load the group's components, and waits until its walls stand.
    async fn load_all(&self, process: &SandboxProcess) -> Result<(), NotStarted> {
        match self.hand_over(process).await {
            // The process's own end explains more than that of its link.
            Ok(()) | Err(NotStarted::Ended(_)) => {}
            refused => return refused,
        }
        match process.started().await {
            ProcessState::Ended(reason) => Err(NotStarted::Ended(reason)),
            ProcessState::Ready(missing) => {
                self.pool.walls_built(&missing);
                self.options.required_walls.check(&missing).map_err(NotStarted::Refused)
            }
            ProcessState::Starting => Ok(()),
        }
    }

    /// Sends a new process the group's components, and makes it build its walls.
    async fn hand_over(&self, process: &SandboxProcess) -> Result<(), NotStarted> {
        let refused =
            |what: &str, error: io::Error| NotStarted::Refused(format!("{what} cannot be handed over: {error}"));
        for member in &self.members {
            let (code, facts) = member.component.hand_over().map_err(|error| refused("its code", error))?;
            let relay = member.relay.as_ref().map(|relay| relay.hand_over()).transpose();
            let relay = relay.map_err(|error| refused("the code of recordings", error))?;
            let load = LoadComponent {
                manifest: member.manifest.clone(),
                facts,
                variables: member.variables.clone(),
                dev_source: member.dev_source.as_deref().map(str::to_owned),
                secrets: member
                    .secrets
                    .iter()
                    .map(|(source, value)| HandedSecret::new(source, value.reveal()))
                    .collect(),
                observing: self.options.observing,
                relay: relay.as_ref().map(|(_, facts)| *facts),
            };
            let mut descriptors = vec![code.as_fd()];
            descriptors.extend(relay.iter().map(|(code, _)| code.as_fd()));
            process.send_when_taken(&ToSandbox::Load(Box::new(load)), &descriptors).await?;
            for schemas in member.schemas.iter() {
                process.send_when_taken(&ToSandbox::Schemas(Box::new(schemas.clone())), &[]).await?;
            }
            let files = member.files.clone();
            // Opening a single file may wait for its disk.
            let mounts = tokio::task::spawn_blocking(move || files.hand_over()).await;
            let mounts = mounts.map_err(std::io::Error::other).and_then(|mounts| mounts);
            for (mount, fds) in mounts.map_err(|error| refused("its files", error))? {
                let fds: Vec<_> = fds.iter().map(std::os::fd::AsFd::as_fd).collect();
                process.send_when_taken(&ToSandbox::Mount(Box::new(mount)), &fds).await?;
            }
        }
        if let Some(scratch) = process.scratch() {
            process.send_when_taken(&ToSandbox::Scratch, &[scratch.dir().as_fd()]).await?;
        }
        let bound =
            message::Bound { writable_bytes_max: self.memory().writable, file_bytes_max: self.file_bytes_max() };
        process.send_when_taken(&ToSandbox::Seal(bound), &[]).await
    }
}
