//! A call in a process, from its sending to its report.
use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use toolcell_policy::quantity::show_bytes;
use toolcell_policy::{Denial, Limit, Limits};
use toolcell_walls::link::{POLL_TIME_MAX, SendError};

use super::starved::STARVED_MAX;
use super::{RemoteInstance, SandboxProcess};
use crate::caller::uses::CallUses;
use crate::secrets::{Redactor, answer};
use crate::tape::Tape;
use crate::wall::reuse::ReusedInstance;
use crate::wall::{attention, duties};
use crate::wasi::capabilities::GrantedCapabilities;
use crate::wasi::doors::CallDoors;
use toolcell_wall::caller::{CallerLink, GuestLogLevel};
use toolcell_wall::contract::GuestResult;
use toolcell_wall::denials::CallDenials;
use toolcell_wall::failure::CallFailure;
use toolcell_wall::message::{self, CallId, CallerFacts, InstanceId, KINDS, LEVELS, RunCall, ToSandbox};
use toolcell_wall::rate::MessageRate;
use toolcell_wall::report::{CallReport, LINE_BYTES};
use toolcell_wall::{encoding, weight};

/// Messages about one call that the host accepts each second, after the first [`MESSAGES_AT_ONCE`].
/// One takes about a microsecond, so a hostile call takes a tenth of one thread. An honest process
/// sends half as many at most. A process that sends more is ended.
const MESSAGES_PER_SECOND: u64 = 100_000;

/// Messages about one call that may come at once, in addition to those that its limits allow by
/// their bytes: a tenth of a second's work.
const MESSAGES_AT_ONCE: u64 = 100_000;

/// Time for a process to return a call after its deadline or its caller's cancellation. After that,
/// the process is ended with all calls in it. A guest notices within two ticks of a millisecond;
/// instantiation, which cannot be interrupted, is bounded to a few hundred.
const GIVES_BACK_WITHIN: Duration = Duration::from_secs(2);

/// The report of a call, or why its process returns none.
type Returned = Result<Box<CallReport<GuestResult>>, String>;

/// The component of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CalledComponent {
    /// Its place in the order of loading.
    pub(crate) number: u32,
    /// The instance that runs the call, if it is a caller's own.
    pub(crate) instance: Option<InstanceId>,
}

/// One call of one tool.
pub struct SandboxCall<'a> {
    /// The tool's name, without the manifest's prefix, or the [path](crate::export) of another
    /// export.
    pub tool: &'a str,
    /// A JSON object. The process checks that it conforms to the tool's input schema.
    pub arguments_json: &'a str,
    /// True if the host has brought them into the form of that schema: the guest gets them as they
    /// are.
    pub is_conformed: bool,
    /// The limits of this tool.
    pub limits: &'a Limits,
    /// The capabilities of this tool.
    pub capabilities: &'a Arc<GrantedCapabilities>,
    /// The sender of the call.
    pub caller: Arc<dyn CallerLink>,
    /// The caller's own instance, with the state of earlier calls; `None` if one is made for this
    /// call.
    pub kept: Option<&'a ReusedInstance<RemoteInstance>>,
    /// The tape, if it is recorded or replayed: it then runs in an instance of its own.
    pub tape: Option<&'a Tape>,
    /// Where the call's uses of grants are noted; `None` if its record has none.
    pub uses: Option<Arc<CallUses>>,
}

impl SandboxProcess {
    /// Runs a call in this process.
    pub(crate) async fn call(self: &Arc<Self>, of: CalledComponent, input: SandboxCall<'_>) -> CallReport<GuestResult> {
        let CalledComponent { number: component, instance } = of;
        let SandboxCall { tool, arguments_json, is_conformed, limits, capabilities, caller, tape, uses, .. } = input;
        if let Some(problem) = self.unusable.lock().unwrap_or_else(PoisonError::into_inner).get(&component) {
            return CallReport::not_run(CallFailure::Host { detail: format!("its sandbox process: {problem}") });
        }
        let began = Instant::now();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (done, mut ended) = oneshot::channel();
        let message_bytes_max = self.bounds.message_bytes_max;
        let pending =
            Arc::new(PendingCall { uses, ..PendingCall::new(&caller, capabilities, limits, message_bytes_max, done) });
        {
            let mut calls = self.lock();
            if let Some(reason) = &calls.ended {
                return CallReport::not_run(CallFailure::SandboxEnded { reason: reason.clone() });
            }
            calls.calls.insert(id, Arc::clone(&pending));
        }
        // However this ends, the process is notified that nobody waits.
        let mut guard = GivenCall { process: self, id, ended: false };
        let handed = tape.and_then(|tape| tape.hand(&self.tapes));
        let call = RunCall {
            id,
            component,
            tool: tool.to_owned(),
            arguments_json: arguments_json.to_owned(),
            is_conformed,
            caller: facts(caller.as_ref()),
            deadline_ms: limits.get(Limit::Deadline),
            instance: instance.filter(|_| handed.is_none()),
            tape: handed.as_ref().map(|handed| handed.run),
        };
        let file = handed.and_then(|handed| handed.file);
        if let Err(failure) = self.send_call(call, file.as_deref()) {
            self.lock().calls.remove(&id);
            guard.ended = true;
            tape.iter().for_each(|tape| tape.is_not_sent());
            return CallReport::not_run(failure);
        }
        // Polling is only worthwhile while no other calls run.
        if duties::may_wait()
            && !attention::attends(self)
            && let Some(dispatcher) = self.dispatcher.get().filter(|_| self.load() == 1)
        {
            dispatcher.drive(POLL_TIME_MAX, || pending.is_done.load(Ordering::Acquire));
        }
        let report = match ended.try_recv() {
            Ok(report) => report,
            Err(_) => {
                let runs = limits.deadline().saturating_add(limits.queue_wait());
                // A time that no clock reaches is not a bound.
                began
                    .checked_add(runs.saturating_add(GIVES_BACK_WITHIN))
                    .iter()
                    .for_each(|by| pending.give_back_by(*by));
                self.wait(id, &pending, &mut ended, caller.as_ref()).await
            }
        };
        guard.ended = true;
        drop(guard);
        pending.take_back();
        pending.has_taken_back().await;
        let settled = match pending.doors.get() {
            Some(doors) => doors.settle().await,
            None => Ok(()),
        };
        if report.as_ref().is_ok_and(|report| report.is_long()) {
            // Searching it for secrets takes milliseconds.
            duties::leave().await;
        }
        let mut report = finished(report, settled, &pending, began);
        if tape.is_some() {
            report.outcome = report.outcome.map_err(CallFailure::with_tape);
        }
        report
    }

    fn send_call(&self, call: RunCall, tape: Option<&File>) -> Result<(), CallFailure> {
        let failed =
            |problem: &dyn std::fmt::Display| CallFailure::Host { detail: format!("its sandbox process: {problem}") };
        let bytes = encoding::encode(&ToSandbox::Call(Box::new(call))).map_err(|error| failed(&error))?;
        let tape: Vec<_> = tape.iter().map(|tape| tape.as_fd()).collect();
        self.sender.send(&bytes, &tape).map_err(|error| match error {
            // It has just ended, and the task that reads its link has not noticed yet.
            SendError::Ended(reason) => CallFailure::SandboxEnded { reason: reason.to_string() },
            // The limit allows more than fits into a frame.
            SendError::TooLarge(_) => {
                CallFailure::OverLimit { limit: Limit::Arguments, value: show_bytes(encoding::TAKEN_BYTES) }
            }
            other => failed(&other),
        })
    }

    /// Waits for the end of a call. [`watch`](Self::watch) ends a process that does not return it
    /// in time.
    async fn wait(
        self: &Arc<Self>,
        id: CallId,
        pending: &PendingCall,
        ended: &mut oneshot::Receiver<Returned>,
        caller: &dyn CallerLink,
    ) -> Returned {
        tokio::select! {
            biased;
            report = &mut *ended => return given(report),
            () = caller.cancelled() => {}
        }
        let _ = self.send(&ToSandbox::Cancel(id), &[]);
        pending.give_back_by(Instant::now() + GIVES_BACK_WITHIN);
        given(ended.await)
    }
}

fn given(report: Result<Returned, oneshot::error::RecvError>) -> Returned {
    report.unwrap_or_else(|_| Err("it is gone".to_owned()))
}

/// Notifies the process, when a call is dropped, that nobody waits for it any more.
struct GivenCall<'p> {
    process: &'p Arc<SandboxProcess>,
    id: CallId,
    ended: bool,
}

impl Drop for GivenCall<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let _ = self.process.send(&ToSandbox::Cancel(self.id), &[]);
        if let Some(call) = self.process.lock().calls.get(&self.id) {
            call.take_back();
            // Its messages are ignored from now on. It counts as a call of the process until that
            // returns it, or is ended for not doing so.
            call.give_back_by(Instant::now() + GIVES_BACK_WITHIN);
        }
    }
}

fn facts(caller: &dyn CallerLink) -> CallerFacts {
    CallerFacts {
        name: caller.name().to_owned(),
        log_levels: message::bits(&LEVELS, |level| caller.log_enabled(level)),
        times: caller.notes_requests(),
        asks: message::bits(&KINDS, |kind| caller.supports(kind)),
        sampling_tools: caller.supports_sampling_tools(),
        trace: caller.trace(),
        meta_json: caller.meta_json(),
        extensions_json: caller.extensions_json(),
    }
}

/// A call that a process runs.
pub(super) struct PendingCall {
    pub(super) caller: Arc<dyn CallerLink>,
    pub(super) capabilities: Arc<GrantedCapabilities>,
    pub(super) limits: Limits,
    pub(super) denials: CallDenials,
    /// Made when the call first asks for a door.
    pub(super) doors: OnceLock<CallDoors>,
    /// Where uses of grants are noted.
    pub(super) uses: Option<Arc<CallUses>>,
    pub(super) logged_bytes: AtomicU64,
    pub(super) messages: MessageRate,
    /// The task that asks its caller.
    pub(super) asking: Mutex<Option<JoinHandle<()>>>,
    /// Withdrawn questions, until that is done: the client hears of it before it gets the call's
    /// answer.
    pub(super) taken_back: Mutex<Vec<JoinHandle<()>>>,
    pub(super) done: Mutex<Option<oneshot::Sender<Returned>>>,
    /// Latest end of the call, without the time that it waited for a person. Set once its caller no
    /// longer polls for it: a timer for each call would wake the thread that drives timers.
    gives_back_by: Mutex<Option<Instant>>,
    /// The time that its process had been starved before the call had to end.
    starved: OnceLock<Duration>,
    /// True once the message that ends the call has arrived, so that a polling thread stops.
    pub(super) is_done: AtomicBool,
}

impl PendingCall {
    /// A call under these limits. Messages about it may be as large as `message_bytes_max`.
    pub(super) fn new(
        caller: &Arc<dyn CallerLink>,
        capabilities: &Arc<GrantedCapabilities>,
        limits: &Limits,
        message_bytes_max: u64,
        done: oneshot::Sender<Returned>,
    ) -> Self {
        Self {
            denials: CallDenials::new(Arc::clone(caller)),
            doors: OnceLock::new(),
            uses: None,
            caller: Arc::clone(caller),
            capabilities: Arc::clone(capabilities),
            limits: *limits,
            logged_bytes: AtomicU64::new(0),
            messages: MessageRate::new(
                MESSAGES_AT_ONCE.saturating_add(message::counted(message_bytes_max)),
                MESSAGES_PER_SECOND,
            ),
            asking: Mutex::default(),
            taken_back: Mutex::default(),
            gives_back_by: Mutex::default(),
            starved: OnceLock::new(),
            done: Mutex::new(Some(done)),
            is_done: AtomicBool::new(false),
        }
    }

    pub(super) fn doors(&self) -> &CallDoors {
        self.doors.get_or_init(|| CallDoors::noting(&self.capabilities, &self.limits, &self.caller, self.uses.as_ref()))
    }

    /// The time that it waited for a person, at most what it may wait.
    fn waited(&self) -> Duration {
        let waited = self.doors.get().map_or(Duration::ZERO, |doors| doors.waited().total());
        waited.min(self.limits.ask_wait())
    }

    /// Sets when the process must return the call, unless an earlier time is set. Only the time
    /// that a person takes from now on extends it.
    pub(super) fn give_back_by(&self, end: Instant) {
        let end = end.checked_sub(self.waited()).unwrap_or(end);
        let mut by = self.gives_back_by.lock().unwrap_or_else(PoisonError::into_inner);
        *by = Some(by.map_or(end, |by| by.min(end)));
    }

    /// True if the process was asked to end the call, and its time is over.
    pub(super) fn should_end(&self, now: Instant) -> bool {
        let by = *self.gives_back_by.lock().unwrap_or_else(PoisonError::into_inner);
        let by = by.and_then(|by| by.checked_add(self.waited()));
        by.and_then(|by| by.checked_sub(GIVES_BACK_WITHIN)).is_some_and(|told| told < now)
    }

    /// True if the process still keeps the call too long, not counting the time that it was starved
    /// since it should have ended it. `before` is that time at the previous check, `starved` at
    /// this one.
    pub(super) fn is_late(&self, now: Instant, before: Duration, starved: Duration) -> bool {
        // Nothing counts before the process was asked to end the call.
        let Some(by) = *self.gives_back_by.lock().unwrap_or_else(PoisonError::into_inner) else { return false };
        let more = starved.saturating_sub(*self.starved.get_or_init(|| before)).min(STARVED_MAX);
        by.checked_add(more.saturating_add(self.waited())).is_some_and(|by| by < now)
    }

    pub(super) fn end(&self, report: Returned) {
        self.take_back();
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.is_done.store(true, Ordering::Release);
        // Nobody waits for a call that was dropped.
        if let Some(done) = done {
            drop(done.send(report));
        }
    }

    /// Withdraws its questions, since nobody waits for the answers any more.
    pub(super) fn take_back(&self) {
        let asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(asking) = asking else { return };
        asking.abort();
        self.taken_back.lock().unwrap_or_else(PoisonError::into_inner).push(asking);
    }

    /// Waits until withdrawn questions are gone from the client.
    pub(super) async fn has_taken_back(&self) {
        let taken_back = std::mem::take(&mut *self.taken_back.lock().unwrap_or_else(PoisonError::into_inner));
        for asking in taken_back {
            // It ends at once, since it only waits.
            let _ = asking.await;
        }
    }

    /// The text of a progress report without secrets. A process cuts long ones.
    pub(super) fn shown(&self, mut text: String) -> String {
        let redactor = self.capabilities.redactor();
        if text.len() + char::MAX_LEN_UTF8 > message::PROGRESS_TEXT_BYTES_MAX {
            return answer::beginning(redactor, &text);
        }
        answer::text(redactor, &mut text);
        text
    }

    /// A log line, charged to the call's limit here, too.
    pub(super) fn log(&self, level: GuestLogLevel, message: &str) {
        let bytes = (message.len() as u64).saturating_add(LINE_BYTES);
        let before = self.logged_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) <= self.limits.log_bytes() {
            self.caller.log(level, &self.capabilities.redactor().text(message));
        }
    }
}

/// The report of a call that has ended, checked against its limits again.
fn finished(
    report: Returned,
    settled: Result<(), CallFailure>,
    call: &PendingCall,
    began: Instant,
) -> CallReport<GuestResult> {
    let limits = &call.limits;
    let (mut denials, mut count): (Vec<Denial>, u64) = call.denials.take();
    let mut report = match report {
        Ok(report) => report.taken(limits),
        Err(reason) => CallReport::not_run(CallFailure::SandboxEnded { reason }),
    };
    clean(call.capabilities.redactor(), &mut report);
    report.outcome = weight::hold(report.outcome, limits, &mut report.usage);
    if let Some(doors) = call.doors.get() {
        let (more, number) = doors.denials();
        denials.extend(more);
        count = count.saturating_add(number);
        (report.usage.egress_bytes, report.usage.ingress_bytes) = doors.traffic_bytes();
        // The host knows better than the process why a call of either kind failed.
        let known = doors.state_failure().or_else(|| doors.over().map(|limit| CallFailure::over(limit, limits)));
        report.kept &= settled.is_ok();
        report.outcome = match (report.outcome, settled, known) {
            (Ok(_), Err(failure), _) => Err(failure),
            (
                Err(CallFailure::Trapped { .. } | CallFailure::Exited { .. } | CallFailure::Host { .. }),
                _,
                Some(known),
            ) => Err(known),
            (outcome, ..) => outcome,
        };
    }
    report.usage.duration = began.elapsed();
    report.usage.denials = report.usage.denials.max(count);
    report.denials = denials;
    report
}

/// Removes secrets from all texts of a report, since a process removes none.
fn clean(redactor: &Redactor, report: &mut CallReport<GuestResult>) {
    match &mut report.outcome {
        Ok(result) => answer::result(redactor, result),
        Err(failure) => answer::failure(redactor, failure),
    }
    answer::text(redactor, &mut report.captured.text);
    answer::optional(redactor, &mut report.unfit);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::secrets::{HeldSecret, SecretValue};
    use crate::wasi::capabilities::GrantSources;
    use toolcell_wall::caller::NoCaller;

    const KEY: &str = "sk-live-0123456789";

    /// The capabilities of a tool whose guests hold a secret.
    fn exposed() -> Arc<GrantedCapabilities> {
        let text = "version = 1\n[components.it]\nsource = \"it.wasm\"\n\
                    [components.it.secrets]\nKEY = { from = \"env:KEY\", expose = true }\n";
        let source = toolcell_policy::Source { name: "toolcell.toml", text };
        let manifest = toolcell_policy::parse(&source).unwrap_or_else(|problems| panic!("{problems:?}")).manifest;
        let nowhere = std::path::Path::new("/");
        let sources = GrantSources {
            folder: nowhere,
            variable: &|_| None,
            secret: &|_| Ok(HeldSecret::Fixed(SecretValue::new(KEY.to_owned().into()).unwrap())),
            state_folder: nowhere,
            shared_state: None,
            name_servers: &[],
            observing: false,
        };
        let grants = manifest.component("it").unwrap().tool_grants("tool");
        GrantedCapabilities::prepare(&grants, &sources).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    #[test]
    fn whatever_a_process_reports_its_guests_secrets_stay_with_the_host() {
        let key = || format!("so {KEY}, then");
        let failures = [
            CallFailure::InvalidInput(key()),
            CallFailure::Failed(key()),
            CallFailure::Unfit { problems: key() },
            CallFailure::Trapped { reason: key(), detail: key() },
            CallFailure::Host { detail: key() },
            CallFailure::Asked { refused: Some(key()) },
            CallFailure::SandboxEnded { reason: key() },
            CallFailure::SandboxNotStarted { detail: key() },
        ];
        let caller: Arc<dyn CallerLink> = Arc::new(NoCaller);
        let capabilities = exposed();
        for failure in failures {
            let (done, _ended) = oneshot::channel();
            let call = PendingCall::new(&caller, &capabilities, &Limits::default(), 0, done);
            let mut said = CallReport::not_run(failure);
            said.captured.text = key();
            said.unfit = Some(key());
            let shown = format!("{:?}", finished(Ok(Box::new(said)), Ok(()), &call, Instant::now()));
            assert!(!shown.contains(KEY), "{shown}");
            assert!(shown.matches("redacted:KEY").count() >= 3, "{shown}");
        }
    }

    #[test]
    fn a_starved_process_has_more_time_for_a_call_but_not_without_end() {
        let caller: Arc<dyn CallerLink> = Arc::new(NoCaller);
        let (done, _ended) = oneshot::channel();
        let call = PendingCall::new(&caller, &GrantedCapabilities::sealed("tool"), &Limits::default(), 0, done);
        let start = Instant::now();
        let second = Duration::from_secs(1);
        assert!(!call.should_end(start + 100 * second) && !call.is_late(start + 100 * second, second, second));
        call.give_back_by(start + 5 * second);
        call.give_back_by(start + 9 * second);
        assert!(!call.should_end(start + 5 * second - GIVES_BACK_WITHIN));
        assert!(call.should_end(start + 4 * second));
        // What was before does not count, and what comes after counts up to the bound.
        let before = 50 * second;
        assert!(!call.is_late(start + 5 * second, before, before));
        assert!(call.is_late(start + 6 * second, before, before));
        assert!(!call.is_late(start + 6 * second, before, before + 2 * second));
        assert!(!call.is_late(start + 5 * second + STARVED_MAX, before, before + 100 * second));
        assert!(call.is_late(start + 6 * second + STARVED_MAX, before, before + 100 * second));
    }
}
