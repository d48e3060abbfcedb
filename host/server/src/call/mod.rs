//! One call, from the protocol to the sandbox and back. Each step is a function here or a file of
//! this folder, and runs once, in the order in which [`Catalog::run`] names them. Must not hold:
//! how tools are loaded, or how guests run.
//!
//! Here the protocol (`toolcell_mcp`), the sandbox and the audit meet; none of them knows the
//! others.
mod allowing;
mod approval;
mod arguments;
mod aside;
mod blame;
mod caller;
mod clock;
mod complete;
mod consent;
mod execute;
mod login;
mod nested;
mod once;
mod operators;
mod questions;
mod reading;
mod record;
mod recording;
mod replaying;
mod run;
mod settling;
mod shown;
mod text;

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use toolcell_audit::Outcome;
use toolcell_mcp::{
    ArgumentProblems, Call, CallResult, CallTerms, Caller, Cancellation, CheckedResult, Completing, Completions,
    DeclaredResource, FolderChild, HostContents, HostReading, McpTool, NotRead, Patience, ResourceEntry, Skill,
    ToolList, TraceContext,
};
use toolcell_policy::Limit;
use toolcell_sandbox::{CallFailure, CallLogins};
use toolcell_shared::Place;

use crate::catalog::{CallPermit, CallTarget, Catalog, LARGE_BYTES, QueueRefusal, take_rates, targets};
use crate::observing::activity::{Activity, LiveCall, TrackedCall, TreePlace};
use crate::observing::traces::{CallTrace, TracedCall};
pub(crate) use execute::DENIALS_KEY;
pub use execute::{CallTraces, Measured, USAGE_KEY};
use execute::{EndedCall, execute};
use nested::Lineage;
use record::{CallName, CallRecord, CallSource, CallStart, log_call};
pub use replaying::Replayed;

/// Bytes of a message besides arguments and answers: metadata, and the state of a round of
/// questions. 1 MiB is more than clients send. Arguments somewhat over their limit still reach the
/// check that names the limit.
const MESSAGE_BYTES_BESIDE: usize = 1024 * 1024;

/// A call that is recorded as started.
struct StartedCall<'a> {
    catalog: &'a Arc<Catalog>,
    target: &'a CallTarget,
    tool: &'a McpTool,
    record: CallRecord,
    /// Trace of the call, if it is sampled.
    trace: Option<Arc<CallTrace>>,
    /// The call in the console, if there is one.
    live: Option<TrackedCall>,
    /// True if a person makes it by hand, and gets its log lines.
    by_hand: bool,
    /// True if it is recorded, whatever the manifest says.
    records: bool,
    /// Where it comes from, if a tool made it.
    lineage: Option<Arc<Lineage>>,
    /// The secrets of its caller's logins, once it has them.
    logins: OnceLock<CallLogins>,
    /// True if rules were checked on its arguments: the guest gets them unchanged.
    is_conformed: bool,
}

/// Why a call has not begun.
struct NotBegun {
    outcome: Outcome,
    /// The answer.
    text: String,
}

impl NotBegun {
    fn host_error(text: &str) -> Self {
        Self { outcome: Outcome::HostError, text: text.to_owned() }
    }
}

/// Who makes a call.
enum CallOrigin {
    /// A client, or an operator in its place.
    Client,
    /// A person, by hand.
    Person,
    /// A person, by hand, who wants a recording.
    PersonRecording,
    /// A tool, in the middle of its own call.
    Tool(Arc<Lineage>),
}

impl toolcell_mcp::ServedCatalog for Catalog {
    fn tools(&self) -> &ToolList {
        &self.tools
    }

    fn view(&self, caller: &Caller) -> Option<Arc<ToolList>> {
        self.visibility.view(caller, &self.entries, &self.tools)
    }

    fn tells_callers_apart(&self) -> bool {
        self.visibility.tells_apart()
    }

    fn offers_resources(&self) -> bool {
        self.skills.offered
            || !self.resources.all().is_empty()
            || targets(&self.entries).any(|target| target.may_embed())
    }

    fn origin(&self, tool: usize) -> &str {
        self.target(tool).map_or("", |target| target.component.name())
    }

    fn resources(&self) -> &[DeclaredResource] {
        self.resources.all()
    }

    fn reader(&self, uri: &str) -> Option<&DeclaredResource> {
        let held = self.resources.held(uri).map(|(declared, _)| declared);
        held.or_else(|| self.resources.reader(uri).map(|(declared, _)| declared))
    }

    fn entries(&self, folder: &DeclaredResource, after: Option<&str>, most: usize) -> Vec<ResourceEntry> {
        self.resources.folder_of(folder).map(|folder| folder.entries(after, most)).unwrap_or_default()
    }

    async fn read(self: Arc<Self>, reading: HostReading) -> Result<HostContents, NotRead> {
        self.read_by_host(&reading).await
    }

    fn component_of(&self, uri: &str) -> Option<&str> {
        self.resources.reader(uri).map(|(_, origin)| origin.component.name())
    }

    fn reads_with(&self, uri: &str) -> Option<String> {
        let held = self.resources.held(uri).map(|(_, file)| file.digest.clone());
        held.or_else(|| self.resources.reader(uri).map(|(_, origin)| origin.identity()))
    }

    fn offers_skills(&self) -> bool {
        self.skills.offered
    }

    fn skills(&self) -> &[Skill] {
        self.skills.all()
    }

    fn folder(&self, uri: &str, entries: &ToolList) -> Option<Vec<FolderChild>> {
        self.skills.folder(uri, entries)
    }

    fn view_meta(&self, uri: &str) -> Option<toolcell_mcp::Map> {
        self.apps.meta_of(uri)
    }

    fn offers_apps(&self) -> bool {
        !self.apps.all().is_empty()
    }

    fn terms(&self, tool: usize) -> CallTerms {
        let Some(target) = self.target(tool) else { return CallTerms::default() };
        let component = &target.component;
        let can_ask = target.limits.asks() > 0;
        let may_ask = component.inspection().asks() && can_ask;
        // A guest's questions and permission requests are compared with the round that brings the
        // answer: an answer counts if the question is the same.
        let asks = may_ask || target.approval.is_some() || (target.capabilities.may_ask() && can_ask);
        // Calls that it makes may need a person.
        let asks = asks || !target.capabilities.grants().calls().is_empty();
        // Its caller may have to log in.
        let asks = asks || login::logins_of(target).next().is_some();
        CallTerms {
            asks: asks.then(|| format!("{} {}", component.name(), target.approved_as)),
            arguments_bytes_max: Some(target.limits.arguments_bytes()),
        }
    }

    fn refuse_long(&self, call: &Call) -> CallResult {
        let over = |target: &Arc<CallTarget>| CallFailure::over(Limit::Arguments, &target.limits).to_string();
        let text = self.target(call.tool).map(over).unwrap_or_default();
        self.record_refused(call, None, Outcome::LimitExceeded, &text);
        CallResult::error(text)
    }

    fn message_bytes_max(&self) -> Option<usize> {
        let longest = |target: &Arc<CallTarget>| {
            let answers = target.limits.asks().saturating_mul(target.limits.answer_bytes());
            target.limits.arguments_bytes().saturating_add(answers as u64)
        };
        let of_texts = self.texts().map(|text| text.limits.arguments_bytes());
        let longest = targets(&self.entries).map(longest).chain(of_texts).max().unwrap_or_default();
        Some(usize::try_from(longest).unwrap_or(usize::MAX).saturating_add(MESSAGE_BYTES_BESIDE))
    }

    fn arguments_refused(&self, call: &Call, problems: &ArgumentProblems) {
        // A check that was cancelled says nothing about the arguments.
        let outcome = if call.context.cancellation.is_cancelled() { Outcome::Cancelled } else { Outcome::InvalidInput };
        self.record_refused(call, None, outcome, &problems.to_string());
    }

    async fn call(self: Arc<Self>, call: Call) -> CheckedResult {
        match self.text_of(call.tool) {
            Some(text) => self.get_text(text, call).await,
            None => self.run(call, CallOrigin::Client).await.0,
        }
    }

    async fn complete(self: Arc<Self>, call: Call, completing: Completing) -> Result<Completions, String> {
        self.complete_argument(call, completing).await
    }
}

impl Catalog {
    /// Runs a call without waiting for a slot or counting against the rate, for commands that
    /// measure a tool as its only caller. Every other limit applies.
    pub async fn measure(self: &Arc<Self>, mut call: Call) -> Measured {
        let mut started = match self.begin(&mut call, None) {
            Ok(started) => started,
            Err(NotBegun { outcome, text }) => return EndedCall::refused(outcome, text).into(),
        };
        let ended = match too_large(started.target, &call) {
            Some(failure) => EndedCall::refused(Outcome::LimitExceeded, failure.to_string()),
            None => execute(&started, call).await,
        };
        started.record.used(&ended);
        started.record.end(ended.outcome, ended.usage, &ended.detail);
        ended.into()
    }

    /// Runs a call that a person makes by hand: it needs no further approval. Also returns the
    /// tool's output and denials.
    pub async fn call_by_hand(self: &Arc<Self>, call: Call) -> (CheckedResult, CallTraces) {
        self.run_bounded(call, CallOrigin::Person).await
    }

    /// [`call_by_hand`](Self::call_by_hand), with a recording of the call. The manifest must be
    /// opened with [`OpenOptions::recording`](crate::OpenOptions::records).
    pub async fn call_recorded(self: &Arc<Self>, call: Call) -> (CheckedResult, CallTraces) {
        self.run_bounded(call, CallOrigin::PersonRecording).await
    }

    /// Runs a call that an operator makes in the console, as one of a client: it is checked, waits
    /// and is approved like any other.
    pub(crate) async fn call_as_operator(self: &Arc<Self>, call: Call) -> (CheckedResult, CallTraces) {
        self.run_bounded(call, CallOrigin::Client).await
    }

    /// Runs a call unless its arguments are too large, which is checked elsewhere for a client.
    async fn run_bounded(self: &Arc<Self>, call: Call, origin: CallOrigin) -> (CheckedResult, CallTraces) {
        if let Some(failure) = self.target(call.tool).and_then(|target| too_large(target, &call)) {
            self.record_refused(&call, None, Outcome::LimitExceeded, &failure.to_string());
            return (CheckedResult::error(failure.to_string()), CallTraces::default());
        }
        self.run(call, origin).await
    }

    /// Records the start, asks for approval, waits for a slot, runs the guest, checks its result,
    /// records the end.
    async fn run(self: &Arc<Self>, mut call: Call, origin: CallOrigin) -> (CheckedResult, CallTraces) {
        let by_hand = matches!(origin, CallOrigin::Person | CallOrigin::PersonRecording);
        let records = matches!(origin, CallOrigin::PersonRecording);
        let lineage = match origin {
            CallOrigin::Tool(lineage) => Some(lineage),
            CallOrigin::Client | CallOrigin::Person | CallOrigin::PersonRecording => None,
        };
        let turn = match self.turn_for_rules(&call, lineage.as_deref()).await {
            Ok(turn) => turn,
            Err(refusal) => {
                let text = refusal.to_string();
                self.record_refused(&call, lineage.as_deref(), refusal.outcome(), &text);
                let traces = CallTraces { outcome: Some(refusal.outcome()), ..CallTraces::default() };
                return (CheckedResult::error(text), traces);
            }
        };
        let begun = self.begin(&mut call, lineage);
        drop(turn);
        let started = match begun {
            Ok(started) => StartedCall { by_hand, records, ..started },
            Err(NotBegun { outcome, text }) => {
                let traces = CallTraces { outcome: Some(outcome), ..CallTraces::default() };
                return (CheckedResult::error(text), traces);
            }
        };
        let cancellation = call.context.cancellation.clone();
        let tool = &started.tool.definition().name;
        let name = tracing::enabled!(tracing::Level::DEBUG).then(|| started.call_name(&call).kept(tool));
        let ended = if by_hand { started.run_logged_in(call).await } else { started.run_once(call).await };
        started.finish(ended, &cancellation, name).await
    }

    /// Checks the rules on its arguments, numbers the call and records its start. `Err` is the
    /// answer to a call that must not run.
    fn begin(self: &Arc<Self>, call: &mut Call, lineage: Option<Arc<Lineage>>) -> Result<StartedCall<'_>, NotBegun> {
        let is_conformed = self.hold_to_rules(call).map_err(|text| {
            self.record_refused(call, lineage.as_deref(), Outcome::NotAllowed, &text);
            NotBegun { outcome: Outcome::NotAllowed, text }
        })?;
        let trace = self.trace(call).map(|(trace, on)| {
            call.context.trace = Some(on);
            Arc::new(trace)
        });
        let (target, start) =
            self.start(call, lineage.as_deref()).ok_or_else(|| NotBegun::host_error("the host has no such tool"))?;
        if let Some(trace) = &trace {
            trace.is_numbered(start.id);
        }
        let record = CallRecord::begin(&self.services, &start, call, &target.meters).map_err(|error| {
            self.services.tally.count(Outcome::HostError);
            trace.iter().for_each(|trace| trace.end(Outcome::HostError));
            target.meters.outcomes.count(Outcome::HostError);
            log_call!(error, start.name(call), "refused: the audit cannot be written: {error}");
            NotBegun::host_error("refused: the host cannot record the call in its audit")
        })?;
        let caller = call.context.caller.name();
        let component = target.component.name();
        let place = lineage.as_ref().map(|lineage| TreePlace { root: lineage.root, depth: lineage.depth });
        let track = |activity: &Arc<Activity>| {
            activity.running.track(start.id, caller, start.tool, component, &target.limits, place)
        };
        let live = self.services.activity.as_ref().map(track);
        let tool = &target.tool;
        Ok(StartedCall {
            catalog: self,
            target,
            tool,
            record,
            trace,
            live,
            by_hand: false,
            records: false,
            lineage,
            is_conformed,
            logins: OnceLock::new(),
        })
    }

    /// Begins the call's trace, if calls are traced.
    fn trace(&self, call: &Call) -> Option<(CallTrace, TraceContext)> {
        let traces = self.services.traces.as_ref()?;
        let target = self.target(call.tool)?;
        let subject = TracedCall {
            tool: &target.tool.definition().name,
            component: target.component.name(),
            generation: self.tools.generation(),
        };
        traces.begin(&subject, &call.context)
    }

    /// The target of the call, and the record of its start. `None` if the index is not in this
    /// catalog's list.
    fn start<'c: 'l, 'l>(
        &'c self,
        call: &Call,
        lineage: Option<&'l Lineage>,
    ) -> Option<(&'c CallTarget, CallStart<'l>)> {
        let target = self.target(call.tool)?;
        let id = self.services.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let source = CallSource::of(&target.component);
        let start = CallStart {
            id,
            generation: self.tools.generation(),
            tool: &target.tool,
            source,
            redactor: Some(target.capabilities.redactor()),
            is_alerting: true,
            lineage,
        };
        Some((target, start))
    }

    /// Counts and records a call that is refused before anything of it runs.
    fn record_refused(&self, call: &Call, lineage: Option<&Lineage>, outcome: Outcome, detail: &str) {
        self.services.tally.count(outcome);
        self.services.activity.iter().for_each(|activity| activity.figures().ended(None, outcome.is_error()));
        if let Some((target, start)) = self.start(call, lineage) {
            log_call!(debug, start.name(call), "refused: {}", outcome.name());
            target.meters.outcomes.count(outcome);
            if let Some((trace, _)) = self.trace(call) {
                trace.is_numbered(start.id);
                trace.end(outcome);
            }
            record::refused(&self.services.sink, &start, call, outcome, detail);
        }
    }
}

impl StartedCall<'_> {
    fn name(&self) -> &str {
        &self.tool.definition().name
    }

    fn call_name<'a>(&'a self, call: &'a Call) -> CallName<'a> {
        CallName::new(self.record.id(), &call.context, self.name())
    }

    /// Runs the call unless it ran before under its key.
    async fn run_once(&self, call: Call) -> EndedCall {
        let once = match self.once(&call).await {
            Ok(once) => once,
            Err(ended) => return *ended,
        };
        let ended = self.run_unless_stopped(call).await;
        if let Some(once) = once {
            once.ended(&ended).await;
        }
        ended
    }

    /// Runs the call until an operator ends it. A guest that already runs is ended by its own
    /// cancellation.
    async fn run_unless_stopped(&self, call: Call) -> EndedCall {
        let Some(live) = self.live() else { return self.run_approved(call).await };
        tokio::select! {
            biased;
            ended = self.run_approved(call) => ended.unless_stopped(live),
            () = live.stopped_while_waiting() => {
                EndedCall::refused(Outcome::Cancelled, String::new()).unless_stopped(live)
            }
        }
    }

    /// The call in the console, if there is one.
    fn live(&self) -> Option<&Arc<LiveCall>> {
        self.live.as_ref().map(TrackedCall::call)
    }

    /// Runs a call that needs no approval, once its caller has logged in.
    async fn run_logged_in(&self, call: Call) -> EndedCall {
        match self.log_in(&call).await {
            Ok(()) => self.run_in_turn(call).await,
            Err(ended) => *ended,
        }
    }

    /// Runs the call once its caller has logged in, if it needs no approval, or once a person
    /// confirms it. It holds no slot while it waits for that.
    async fn run_approved(&self, call: Call) -> EndedCall {
        if let Err(ended) = self.log_in(&call).await {
            return *ended;
        }
        let approved = match self.target.approval {
            None => None,
            Some(approval) => match self.approve(&call, approval).await {
                Ok(approved) => Some(approved),
                Err(ended) => return *ended,
            },
        };
        // The operator who ended it has seen that it does not run.
        if self.live().is_some_and(|live| live.is_stopped()) {
            return EndedCall::refused(Outcome::Cancelled, String::new());
        }
        let ended = self.run_in_turn(call).await;
        if let Some(approved) = approved {
            approved.ended(ended.outcome).await;
        }
        ended
    }

    /// Counts it against its rates, waits for a slot of its caller, then for one of its tool, and
    /// runs the guest.
    async fn run_in_turn(&self, call: Call) -> EndedCall {
        let cancellation = call.context.cancellation.clone();
        let caller = call.context.caller.clone();
        let since = self.trace.as_ref().map(|_| SystemTime::now());
        let refused = |refusal: QueueRefusal| EndedCall::refused(refusal.outcome(), refusal.to_string());
        let rights = self.catalog.visibility.rights(&caller);
        let queues = &self.catalog.services.caller_queues;
        let state = self.catalog.services.state.as_ref();
        let admission = &self.target.admission;
        let taken = take_rates(state, caller.name(), rights.rates(), admission);
        // Both are taken with one request, since the state may be on another machine. A call that
        // may wait for its caller's other calls takes no slot of its tool meanwhile; nor does one
        // that may make calls.
        let bytes = call.arguments.get().len();
        let levels = self.levels_beneath();
        let waits_first = rights.bounds_calls() || bytes >= LARGE_BYTES || levels > 0;
        let asked = async {
            if waits_first {
                return taken.await.map(|()| None);
            }
            let (taken, place) = tokio::join!(taken, admission.place(state));
            taken.and(Ok(place?))
        };
        let asked = tokio::select! {
            biased;
            asked = asked => asked,
            () = cancellation.cancelled() => Err(QueueRefusal::Cancelled),
        };
        let place = match asked {
            Ok(place) => place,
            Err(refusal) => return refused(refusal),
        };
        let of_caller = async {
            let lineage = self.lineage.as_deref();
            let limits = &self.target.limits;
            let turn = if lineage.is_some_and(|lineage| lineage.holds_turn) {
                None
            } else {
                queues.turn(caller.name(), bytes, limits, &cancellation).await?
            };
            // The client's call has a place of its caller for all that is beneath it.
            let place = if lineage.is_some() {
                None
            } else {
                Some(queues.enter(caller.name(), &rights, limits, state, &cancellation).await?)
            };
            let calling = self.catalog.services.calling_places.enter(levels, limits, &cancellation).await?;
            Ok::<_, QueueRefusal>((turn, place, calling))
        };
        let _of_caller = match of_caller.await {
            Ok(held) => held,
            Err(refusal) => return refused(refusal),
        };
        let place = match place {
            None if waits_first => match admission.place(state).await {
                Ok(place) => place,
                Err(away) => return refused(away.into()),
            },
            place => place,
        };
        let entered = self.wait_unless_narrowed(place, &cancellation).await;
        if let Some((trace, since)) = self.trace.as_ref().zip(since) {
            trace.waited(since);
        }
        match entered {
            Ok(_of_tool) => execute(self, call).await,
            Err(refusal) => refused(refusal),
        }
    }

    async fn wait_unless_narrowed(
        &self,
        place: Option<Place>,
        cancellation: &Cancellation,
    ) -> Result<CallPermit<'_>, QueueRefusal> {
        let permit = self.target.admission.enter(self.catalog.services.state.as_ref(), place, cancellation);
        let Some(narrowed) = &self.target.narrowed else { return permit.await };
        tokio::select! {
            biased;
            permit = permit => permit,
            () = narrowed.cancellation.cancelled() => {
                Err(QueueRefusal::Narrowed(narrowed.text(self.target.component.name())))
            }
        }
    }

    /// Checks the result; counts and records the end.
    async fn finish(
        mut self,
        mut ended: EndedCall,
        cancellation: &Cancellation,
        name: Option<CallName<'_>>,
    ) -> (CheckedResult, CallTraces) {
        self.record.used(&ended);
        let mut beside = std::mem::take(&mut ended.beside);
        // The number of steps bounds a check: to a tenth of a second of one core.
        let patience = Patience { until: None, given_up: Some(cancellation.given_up()) };
        if self.tool.finishing_takes_long(&ended.result) {
            toolcell_mcp::leave_thread().await;
        }
        let (mut outcome, usage, detail, result) = ended.checked(self.tool, &patience);
        // Nobody reads the answer to a cancelled call, even if the guest noticed and ended by
        // itself.
        if cancellation.is_cancelled() {
            outcome = Outcome::Cancelled;
        }
        let recording = self.keep_recording(&mut beside, outcome);
        self.record.recorded_in(recording);
        self.catalog.services.tally.count(outcome);
        if let Some(name) = name {
            log_call!(debug, name, "ended: {} after {} us", outcome.name(), usage.duration.as_micros());
        }
        self.trace.iter().for_each(|trace| trace.end(outcome));
        if let Some(mut live) = self.live {
            live.ended(outcome);
        }
        (beside.id, beside.outcome) = (self.record.id(), Some(outcome));
        self.record.end(outcome, usage, &detail);
        (result.blaming_arguments(outcome == Outcome::InvalidInput), beside)
    }
}

/// The failure if arguments exceed the tool's limit.
fn too_large(target: &CallTarget, call: &Call) -> Option<CallFailure> {
    let bytes = call.arguments.get().len() as u64;
    (bytes > target.limits.arguments_bytes()).then(|| CallFailure::over(Limit::Arguments, &target.limits))
}
