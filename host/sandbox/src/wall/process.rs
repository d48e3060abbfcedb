//! The host's end of one sandbox process: its pending calls, what it says, and its end. Must not
//! hold: which process a call goes to.
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use toolcell_policy::quantity::show_bytes;
use toolcell_policy::{Denial, Limit, Limits};
use toolcell_walls::link::{self, Dispatcher, Frame, LOOK_TIME_MAX, Receiver, SendError, Sender};
use toolcell_walls::process::Process;

use super::group::ComponentNotice;
use super::message::{self, Call, CallId, CallerFacts, FromSandbox, KINDS, LEVELS, ToSandbox, WireReport, WireTrace};
use crate::bindings::contract::CallResult;
use crate::caller::denials::Denials;
use crate::caller::{Caller, LogLevel};
use crate::failure::Failure;
use crate::load::start_code::StartCall;
use crate::run::call::{CallInput, CallReport};
use crate::run::redaction;
use crate::run::weight::weigh;
use crate::wasi::capabilities::Capabilities;
use crate::wasi::doors::CallDoors;

/// Time that a process has, past a call's deadline or its caller's cancellation, to give the call
/// back. Then it is ended, with all calls in it. A guest notices within two ticks of a millisecond;
/// instantiation, which cannot be interrupted, is bounded to a few hundred.
const GIVES_BACK_WITHIN: Duration = Duration::from_secs(2);

/// Interval at which a full link is tried again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Messages about calls that have ended. An honest process sends none behind the end of a call.
const STRAYS_MAX: u64 = 1_000;

/// Bytes of a message that count as another message: looking at them costs as much.
const COUNTED_BYTES: usize = 256;

/// Interval at which the host looks at a process's memory. In it a process can fill some gigabytes,
/// which the kernel's own bound holds.
const MEMORY_LOOK_EVERY: Duration = Duration::from_secs(1);

/// Bytes of the name of a host function, with its interface.
const FUNCTION_BYTES_MAX: usize = 512;

/// Progress reports and other small messages of one call that the host looks at: as many as a call
/// sends in an hour at a thousand a second. Past them the process is ended.
const MESSAGES_MAX: u64 = 4_000_000;

/// The report of a call, or why its process gives none.
type Returned = Result<Box<WireReport>, String>;

type Dispatch = Box<dyn Fn(Frame) + Send + Sync>;

/// A sandbox process, as the host sees it. Dropping the last one ends the process.
pub(crate) struct SandboxProcess {
    sender: Sender,
    dispatcher: OnceLock<Dispatcher<Dispatch>>,
    process: Process,
    calls: Mutex<Pending>,
    next: AtomicU64,
    state: watch::Sender<State>,
    /// Components that could not be loaded, with the reason.
    unusable: Mutex<HashMap<u32, String>>,
    bounds: Bounds,
    /// Components that it said nothing is made ahead of.
    noted: AtomicUsize,
    /// Messages about calls that have ended.
    strays: AtomicU64,
}

/// Facts about the components of a process.
pub(crate) struct Bounds {
    /// Bytes of a message, from the limits of the components.
    pub(crate) message_bytes_max: u64,
    /// Told of a component that nothing is made ahead of.
    pub(crate) tell: Vec<ComponentNotice>,
}

/// The component of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CalledComponent {
    /// Its place in the order of loading.
    pub(crate) number: u32,
    /// True if its calls may wait for a person, with their deadline stopped.
    pub(crate) asks: bool,
}

/// The life of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It loads components.
    Starting,
    /// It takes calls. Walls that do not stand, with the reason.
    Ready(Vec<(String, String)>),
    /// It is gone, for this reason.
    Ended(String),
}

#[derive(Default)]
struct Pending {
    calls: HashMap<CallId, Arc<PendingCall>>,
    /// Why there are no more calls.
    ended: Option<String>,
}

/// A call that a process runs.
struct PendingCall {
    caller: Arc<dyn Caller>,
    capabilities: Arc<Capabilities>,
    limits: Limits,
    denials: Denials,
    /// Made when the call first asks for a door.
    doors: OnceLock<CallDoors>,
    logged_bytes: AtomicU64,
    messages: AtomicU64,
    /// The task that asks its caller.
    asking: Mutex<Option<AbortHandle>>,
    done: Mutex<Option<oneshot::Sender<Returned>>>,
    /// The message that ended the call is here: a thread that looks for it stops.
    is_done: AtomicBool,
}

impl SandboxProcess {
    /// A process that was just started, and its link.
    pub(crate) fn new(process: Process, receiver: Receiver, bounds: Bounds) -> Arc<Self> {
        let this = Arc::new(Self {
            sender: receiver.sender().clone(),
            dispatcher: OnceLock::new(),
            process,
            calls: Mutex::default(),
            next: AtomicU64::new(1),
            state: watch::Sender::new(State::Starting),
            unusable: Mutex::default(),
            bounds,
            noted: AtomicUsize::new(0),
            strays: AtomicU64::new(0),
        });
        let weak = Arc::downgrade(&this);
        let dispatch: Dispatch = Box::new(move |frame| {
            if let Some(this) = Weak::upgrade(&weak) {
                this.heard(&frame);
            }
        });
        // It is new, so there is none before.
        let _ = this.dispatcher.set(Dispatcher::new(receiver, dispatch));
        this
    }

    /// Reads the link until it ends. One task does this.
    pub(crate) async fn run(self: Arc<Self>) {
        let Some(dispatcher) = self.dispatcher.get() else { return };
        let broken = dispatcher.run().await;
        // Whatever is wrong with the link, nobody could tell the process to end.
        self.process.kill();
        let ended = self.process.ended().await;
        // No component has run in a process that starts, so its words are this program's.
        let words = if *self.state.borrow() == State::Starting { ended.last_words.trim() } else { "" };
        let words = if words.is_empty() { String::new() } else { format!(": {words}") };
        self.end(&format!("{broken}; {ended}{words}"));
    }

    /// Ends the process once it takes more memory than this. The kernel's own bound holds what the
    /// engine does, not native code that hides what it wrote.
    pub(crate) async fn watch_memory(this: Weak<Self>, bytes_max: u64) {
        loop {
            tokio::time::sleep(MEMORY_LOOK_EVERY).await;
            let Some(this) = this.upgrade().filter(|this| !this.is_ended()) else { return };
            if this.process.memory().is_some_and(|memory| memory.own > bytes_max) {
                this.kill(&format!("its process took more memory than {}", show_bytes(bytes_max)));
            }
        }
    }

    /// Sends a message that begins the process's life.
    pub(crate) fn say(&self, message: &ToSandbox, fds: &[std::os::fd::BorrowedFd<'_>]) -> Result<(), String> {
        let bytes = message::encode(message).map_err(|error| error.to_string())?;
        self.sender.send(&bytes, fds).map_err(|error| error.to_string())
    }

    /// Sends a message once the process has taken enough of those before: a link holds a bounded
    /// number of bytes and of descriptors.
    pub(crate) async fn say_when_taken(
        &self,
        message: &ToSandbox,
        fds: &[std::os::fd::BorrowedFd<'_>],
    ) -> Result<(), String> {
        let bytes = message::encode(message).map_err(|error| error.to_string())?;
        loop {
            match self.sender.send(&bytes, fds) {
                Err(SendError::Full) => tokio::time::sleep(LOOK_AGAIN).await,
                sent => return sent.map_err(|error| error.to_string()),
            }
        }
    }

    /// The state, once it is no longer starting.
    pub(crate) async fn started(&self) -> State {
        let mut state = self.state.subscribe();
        let state = state.wait_for(|state| *state != State::Starting).await;
        state.map_or_else(|_| State::Ended("it is gone".to_owned()), |state| state.clone())
    }

    /// True if it takes no more calls.
    pub(crate) fn is_ended(&self) -> bool {
        self.lock().ended.is_some()
    }

    /// Calls that run in it.
    pub(crate) fn load(&self) -> usize {
        self.lock().calls.len()
    }

    /// Ends the process and every call in it, for this reason.
    pub(crate) fn kill(&self, reason: &str) {
        self.end(reason);
        self.sender.close();
        self.process.kill();
    }

    fn end(&self, reason: &str) {
        let calls = {
            let mut pending = self.lock();
            pending.ended.get_or_insert_with(|| reason.to_owned());
            std::mem::take(&mut pending.calls)
        };
        self.state.send_if_modified(|state| {
            let first = !matches!(state, State::Ended(_));
            if first {
                *state = State::Ended(reason.to_owned());
            }
            first
        });
        calls.into_values().for_each(|call| call.end(Err(reason.to_owned())));
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a message. Anything that is wrong with it ends the process.
    fn heard(self: &Arc<Self>, frame: &Frame) {
        // Checked before anything is decoded, which takes a multiple of the bytes.
        let wrong = if frame.bytes.len() as u64 > self.bounds.message_bytes_max {
            Err("it sent more than any call may answer".to_owned())
        } else {
            message::decode(&frame.bytes)
                .map_err(|error| format!("it sent {error}"))
                .and_then(|said| self.take(said, frame.bytes.len()))
        };
        if let Err(wrong) = wrong {
            self.kill(&format!("its process broke the rules: {wrong}"));
        }
    }

    fn take(self: &Arc<Self>, message: FromSandbox, bytes: usize) -> Result<(), String> {
        if let FromSandbox::NotAhead(component, function) = &message {
            return self.not_ahead(*component, function);
        }
        let Some(id) = message.call() else { return self.take_of_process(message) };
        let Some(call) = self.lock().calls.get(&id).cloned() else {
            let is_stray = id < self.next.load(Ordering::Relaxed);
            let few = self.strays.fetch_add(1, Ordering::Relaxed) < STRAYS_MAX;
            return if is_stray && few { Ok(()) } else { Err("it names no call".to_owned()) };
        };
        let cost = 1 + (bytes / COUNTED_BYTES) as u64;
        if call.messages.fetch_add(cost, Ordering::Relaxed) >= MESSAGES_MAX {
            return Err("it says too much about one call".to_owned());
        }
        match message {
            FromSandbox::Ended(_, report) => {
                self.lock().calls.remove(&id);
                call.end(Ok(report));
            }
            FromSandbox::Instantiated(_) => call.caller.instantiated(),
            FromSandbox::Progress { progress, total, message, .. } => {
                let message = message.as_deref().map(|text| call.capabilities.redactor().text(text));
                call.caller.progress(progress, total, message.as_deref());
            }
            FromSandbox::Log { level, message, .. } => call.log(level, &message),
            FromSandbox::Denied { capability, asked, .. } => {
                let capability = message::capability(capability).ok_or("it names no capability")?;
                call.denials.add(call.capabilities.grants().denied_elsewhere(capability, &asked));
            }
            FromSandbox::Ask(_, asks) => self.ask(id, &call, asks)?,
            FromSandbox::OpenDoor(_, number) => self.open_door(id, &call, number)?,
            FromSandbox::TakeBack(_) => call.take_back(),
            FromSandbox::NotLoaded(..) | FromSandbox::Sealed { .. } | FromSandbox::NotAhead(..) => {}
        }
        Ok(())
    }

    /// Says once of a component that nothing is made ahead of its calls.
    fn not_ahead(&self, component: u32, function: &str) -> Result<(), String> {
        let place = usize::try_from(component).unwrap_or(usize::MAX);
        let tell = self.bounds.tell.get(place).ok_or("it names no component")?;
        if function.len() > FUNCTION_BYTES_MAX || self.noted.fetch_add(1, Ordering::Relaxed) >= self.bounds.tell.len() {
            return Err("it says more of its components than there is".to_owned());
        }
        tell(&StartCall::of(function));
        Ok(())
    }

    fn take_of_process(&self, message: FromSandbox) -> Result<(), String> {
        if *self.state.borrow() != State::Starting {
            return Err("it starts again".to_owned());
        }
        match message {
            FromSandbox::NotLoaded(id, problem) => {
                let mut unusable = self.unusable.lock().unwrap_or_else(PoisonError::into_inner);
                unusable.insert(id, problem);
            }
            FromSandbox::Sealed { missing } => {
                self.state.send_replace(State::Ready(missing));
            }
            _ => {}
        }
        Ok(())
    }

    /// Opens a door for a call. Where there is none to open, the process is told so.
    fn open_door(&self, id: CallId, call: &PendingCall, number: u32) -> Result<(), String> {
        let doors = call.doors();
        let pair = link::pair().ok().map(|(ours, theirs)| {
            doors.serve(ours);
            theirs
        });
        let door: Vec<_> = pair.iter().map(AsFd::as_fd).collect();
        self.say(&ToSandbox::Door(id, number), &door)
    }

    /// Asks the caller. The answers go back to the process.
    fn ask(
        self: &Arc<Self>,
        id: CallId,
        call: &Arc<PendingCall>,
        asks: Vec<crate::caller::asking::Inquiry>,
    ) -> Result<(), String> {
        let mut asking = call.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let asks_already = asking.as_ref().is_some_and(|asking| !asking.is_finished());
        if asks_already || call.doors().charge(&asks).is_err() {
            return Err("it asks more than a call may".to_owned());
        }
        let redactor = call.capabilities.redactor();
        let redacted = |ask: crate::caller::asking::Inquiry| crate::caller::asking::Inquiry {
            key: ask.key,
            question: ask.question.redacted(redactor),
        };
        let asks = asks.into_iter().map(redacted).collect();
        let (this, asked) = (Arc::clone(self), Arc::clone(call));
        let runtime = tokio::runtime::Handle::try_current().map_err(|error| error.to_string())?;
        let task = runtime.spawn(async move {
            let answers = asked.caller.ask(asks).await;
            // A call that has ended wants no answers.
            let _ = this.say(&ToSandbox::Asked(id, answers.into()), &[]);
        });
        *asking = Some(task.abort_handle());
        Ok(())
    }

    /// Runs a call in this process.
    pub(crate) async fn call(self: &Arc<Self>, of: CalledComponent, input: CallInput<'_>) -> CallReport<CallResult> {
        let CalledComponent { number: component, asks } = of;
        let CallInput { tool, arguments_json, limits, capabilities, caller, .. } = input;
        if let Some(problem) = self.unusable.lock().unwrap_or_else(PoisonError::into_inner).get(&component) {
            return CallReport::not_run(Failure::Host { detail: format!("its sandbox process: {problem}") });
        }
        let began = Instant::now();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (done, mut ended) = oneshot::channel();
        let pending = Arc::new(PendingCall {
            denials: Denials::new(Arc::clone(&caller)),
            doors: OnceLock::new(),
            caller: Arc::clone(&caller),
            capabilities: Arc::clone(capabilities),
            limits: *limits,
            logged_bytes: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            asking: Mutex::default(),
            done: Mutex::new(Some(done)),
            is_done: AtomicBool::new(false),
        });
        {
            let mut calls = self.lock();
            if let Some(reason) = &calls.ended {
                return CallReport::not_run(Failure::SandboxEnded { reason: reason.clone() });
            }
            calls.calls.insert(id, Arc::clone(&pending));
        }
        // However this ends, the process is told that nobody waits.
        let mut guard = Given { process: self, id, ended: false };
        let call = Call {
            id,
            component,
            tool: tool.to_owned(),
            arguments_json: arguments_json.to_owned(),
            caller: facts(caller.as_ref()),
        };
        if let Err(problem) = self.say(&ToSandbox::Call(Box::new(call)), &[]) {
            self.lock().calls.remove(&id);
            guard.ended = true;
            return CallReport::not_run(Failure::Host { detail: format!("its sandbox process: {problem}") });
        }
        // Beside other calls the thread has better things to do.
        if let Some(dispatcher) = self.dispatcher.get().filter(|_| self.load() == 1) {
            dispatcher.drive(LOOK_TIME_MAX, || pending.is_done.load(Ordering::Acquire));
        }
        let report = match ended.try_recv() {
            Ok(report) => report,
            Err(_) => {
                let asks = if asks { limits.ask_wait() } else { Duration::ZERO };
                let runs = limits.deadline().saturating_add(asks).saturating_add(limits.queue_wait());
                self.wait((id, runs), &mut ended, caller.as_ref()).await
            }
        };
        guard.ended = true;
        drop(guard);
        pending.take_back();
        let settled = match pending.doors.get() {
            Some(doors) => doors.settle().await,
            None => Ok(()),
        };
        finished(report, settled, &pending, began)
    }

    /// Waits for the end of a call. A process that does not give it back in time is ended.
    async fn wait(
        self: &Arc<Self>,
        (id, runs): (CallId, Duration),
        ended: &mut oneshot::Receiver<Returned>,
        caller: &dyn Caller,
    ) -> Returned {
        let late = tokio::select! {
            biased;
            report = &mut *ended => return given(report),
            () = caller.cancelled() => {
                let _ = self.say(&ToSandbox::Cancel(id), &[]);
                tokio::time::timeout(GIVES_BACK_WITHIN, &mut *ended).await.ok()
            }
            () = tokio::time::sleep(runs + GIVES_BACK_WITHIN) => None,
        };
        match late {
            Some(report) => given(report),
            None => {
                self.kill("it did not stop within its deadline");
                given(ended.await)
            }
        }
    }
}

fn given(report: Result<Returned, oneshot::error::RecvError>) -> Returned {
    report.unwrap_or_else(|_| Err("it is gone".to_owned()))
}

/// Tells the process, when a call is dropped, that nobody waits for it any more.
struct Given<'p> {
    process: &'p Arc<SandboxProcess>,
    id: CallId,
    ended: bool,
}

impl Drop for Given<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let _ = self.process.say(&ToSandbox::Cancel(self.id), &[]);
        if let Some(call) = self.process.lock().calls.get(&self.id) {
            call.take_back();
        }
        // Its messages are heard no more. It counts as a call of the process until that gives it
        // back, or is ended for not doing so.
        let (process, id) = (Arc::clone(self.process), self.id);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn(async move {
                tokio::time::sleep(GIVES_BACK_WITHIN).await;
                if process.lock().calls.contains_key(&id) {
                    process.kill("it did not stop when its call was cancelled");
                }
            }));
        }
    }
}

impl PendingCall {
    fn doors(&self) -> &CallDoors {
        self.doors.get_or_init(|| CallDoors::new(&self.capabilities, &self.limits, &self.caller))
    }

    fn end(&self, report: Returned) {
        self.take_back();
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.is_done.store(true, Ordering::Release);
        // Nobody waits for a call that was dropped.
        if let Some(done) = done {
            drop(done.send(report));
        }
    }

    /// Nobody waits for the answers to its questions any more: they are taken back.
    fn take_back(&self) {
        let asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner).take();
        asking.iter().for_each(AbortHandle::abort);
    }

    /// A log line, charged to the call's limit here as well.
    fn log(&self, level: LogLevel, message: &str) {
        let bytes = message.len() as u64;
        let before = self.logged_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) <= self.limits.log_bytes() {
            self.caller.log(level, &self.capabilities.redactor().text(message));
        }
    }
}

/// The report of a call that has ended, held to its limits once more.
fn finished(
    report: Returned,
    settled: Result<(), Failure>,
    call: &PendingCall,
    began: Instant,
) -> CallReport<CallResult> {
    let limits = &call.limits;
    let (mut denials, mut count): (Vec<Denial>, u64) = call.denials.take();
    let mut report = match report {
        Ok(report) => report.into_report(limits),
        Err(reason) => CallReport::not_run(Failure::SandboxEnded { reason }),
    };
    let redactor = call.capabilities.redactor();
    if let Ok(result) = report.outcome {
        let mut answer = Ok(result);
        redaction::answer(redactor, &mut answer);
        let (bytes, items) = weigh(&answer);
        report.usage.output_bytes = bytes;
        report.outcome = match answer {
            _ if bytes > limits.output_bytes() => Err(Failure::over(Limit::Output, limits)),
            _ if items > limits.output_items() => Err(Failure::over(Limit::OutputItems, limits)),
            answer => answer.map_err(Failure::from),
        };
    }
    if let Err(Failure::InvalidInput(text) | Failure::Failed(text)) = &report.outcome
        && text.len() as u64 > limits.output_bytes()
    {
        report.outcome = Err(Failure::over(Limit::Output, limits));
    }
    if let std::borrow::Cow::Owned(clean) = redactor.text(&report.captured.text) {
        report.captured.text = clean;
    }
    if let Some(doors) = call.doors.get() {
        let (more, number) = doors.denials();
        denials.extend(more);
        count = count.saturating_add(number);
        (report.usage.egress_bytes, report.usage.ingress_bytes) = doors.traffic_bytes();
        // The host knows better than the process why a call of either kind failed.
        let known = doors.state_failure().or_else(|| doors.over().map(|limit| Failure::over(limit, limits)));
        report.outcome = match (report.outcome, settled, known) {
            (Ok(_), Err(failure), _) => Err(failure),
            (Err(Failure::Trapped { .. } | Failure::Exited { .. } | Failure::Host { .. }), _, Some(known)) => {
                Err(known)
            }
            (outcome, ..) => outcome,
        };
    }
    report.usage.duration = began.elapsed();
    report.usage.denials = report.usage.denials.max(count);
    report.denials = denials;
    report
}

fn facts(caller: &dyn Caller) -> CallerFacts {
    CallerFacts {
        name: caller.name().to_owned(),
        log_levels: message::bits(&LEVELS, |level| caller.log_enabled(level)),
        times: caller.notes_requests(),
        asks: message::bits(&KINDS, |kind| caller.supports(kind)),
        trace: caller.trace().map(WireTrace::from),
        meta_json: caller.meta_json(),
    }
}
