//! The run of a started call: its limits, and how the sandbox's report becomes a result.
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use toolcell_audit::{Outcome, Usage};
use toolcell_mcp::{Call, CallContext, CallResult, CheckedResult, McpTool, Patience, ResultContent};
use toolcell_policy::{Capability, Denial, Limits};
use toolcell_sandbox::{CallFailure, CallReport, Captured, Redactor, SandboxCall, contract};
use toolcell_shared::Allowance;

use super::StartedCall;
use super::aside::ScriptAnswer;
use super::blame::OwnWords;
use super::caller::{CallNotifier, Interruptions, McpCaller};
use super::clock::CallClock;
use super::consent::Consenting;
use super::nested::{CallingCall, Lineage};
use super::questions::Questions;
use super::record::log_call;
use super::recording::TapedArguments;
use super::run::NestedRun;
use crate::catalog::{CallTarget, content, pace};
use crate::observing::activity::{CallPhase, LiveCall};
use crate::recordings::{Recording, TapedCall};

/// Key in a result's `_meta` for the call's usage, if the manifest asks for it.
pub const USAGE_KEY: &str = "toolcell/usage";

/// Key in a result's `_meta` for the guest's denials, except for those in the text of an error.
pub const DENIALS_KEY: &str = "toolcell/denials";

pub(super) struct EndedCall {
    pub(super) outcome: Outcome,
    pub(super) usage: Usage,
    pub(super) detail: String,
    pub(super) result: CallResult,
    /// Problems of the structured result, if a sandbox process checks the schema.
    pub(super) unfit: Option<String>,
    pub(super) beside: CallTraces,
}

/// What a call leaves besides its result, for a person who makes it by hand.
#[derive(Debug, Default)]
pub struct CallTraces {
    /// The output of the guest.
    pub printed: Captured,
    /// The lines that it logged, each with its level; only of a call by hand.
    pub logged: String,
    /// Its first denials that may have caused its answer.
    pub denials: Vec<Denial>,
    /// Its other denials, which did not make it fail.
    pub denied_aside: Vec<Denial>,
    /// Its usage, if the guest ran.
    pub usage: Option<Usage>,
    /// The host's number of the call; 0 if it was refused before it began.
    pub id: u64,
    /// Its outcome in the audit, if it began.
    pub outcome: Option<Outcome>,
    /// Its recording, if it was recorded.
    pub recording: Option<Box<Recording>>,
    /// Of what its recording is made, until it is kept.
    pub(crate) taped: Option<Box<TapedCall>>,
}

impl CallTraces {
    /// The usage in the form of a result's `_meta`, if the guest ran.
    #[must_use]
    pub fn usage_json(&self) -> Option<serde_json::Value> {
        self.usage.as_ref().map(usage_json)
    }
}

/// The end of a call, with everything that is measured.
pub struct Measured {
    /// The result, before its structured part is checked.
    pub result: CallResult,
    /// Problems of that part, if a sandbox process checks the schema.
    pub unfit: Option<String>,
    /// Its outcome in the audit.
    pub outcome: Outcome,
    /// Its usage.
    pub usage: Usage,
    /// Bytes of output and logs beyond their limit, besides those in `usage`.
    pub log_dropped_bytes: u64,
}

impl From<EndedCall> for Measured {
    fn from(ending: EndedCall) -> Self {
        let EndedCall { outcome, usage, result, unfit, beside, .. } = ending;
        Self { result, unfit, outcome, usage, log_dropped_bytes: beside.printed.dropped_bytes }
    }
}

impl Measured {
    /// The result, checked against the output schema of its tool.
    pub fn finish(self, tool: &McpTool) -> CheckedResult {
        finish(tool, self.result, self.unfit, &Patience::default())
    }
}

fn finish(tool: &McpTool, result: CallResult, unfit: Option<String>, patience: &Patience) -> CheckedResult {
    if tool.is_checked_elsewhere() { tool.finish_checked(result, unfit) } else { tool.finish(result, patience) }
}

/// How long one call may run, and its other limits.
struct CallTime {
    limits: Limits,
    /// Until the end of this call, or of a call above it.
    left: Duration,
    /// The answer at that end, if a call above it ends before its own deadline.
    late: Option<String>,
}

impl CallTime {
    fn of(started: &StartedCall<'_>, is_task: bool) -> Self {
        let target = started.target;
        // A task holds up no connection.
        let limits = if is_task { target.limits.within(target.limits.task_deadline()) } else { target.limits };
        let lineage = started.lineage.as_deref();
        let left = lineage.map_or(limits.deadline(), |lineage| lineage.time_left().min(limits.deadline()));
        let limits = target.component.policy().returning(&limits.within(left));
        let late = lineage.filter(|_| left < target.limits.deadline()).map(Lineage::out_of_time);
        Self { limits, left, late }
    }
}

/// Runs a call that has its call slot, under the tool's limits.
pub(super) async fn execute(started: &StartedCall<'_>, call: Call) -> EndedCall {
    let time = CallTime::of(started, call.context.task);
    if let Some(text) = time.late.as_ref().filter(|_| time.limits.deadline().is_zero()) {
        return EndedCall::refused(Outcome::Deadline, text.clone());
    }
    let run = match started.run_of(&call).await {
        Ok(run) => run,
        Err(ended) => return *ended,
    };
    let asking = call.context.asking.clone();
    let person = call.context.caller.clone();
    let ended = run_guest(started, call, time, run.as_ref()).await;
    match run.filter(|_| started.lineage.is_none()) {
        Some(run) => started.settled(&run, &asking, &person, ended).await,
        None => ended,
    }
}

/// Runs the guest, and makes its report a result.
async fn run_guest(started: &StartedCall<'_>, call: Call, time: CallTime, run: Option<&Arc<NestedRun>>) -> EndedCall {
    let target = started.target;
    let Some((group, place)) = started.catalog.walled.of_target(target) else {
        return EndedCall::refused(Outcome::HostError, "the tool has no sandbox process".to_owned());
    };
    // A call above it may hold the caller's own instance.
    let kept = target.instances.as_ref().filter(|_| started.lineage.is_none());
    let kept = kept.and_then(|kept| kept.of_caller(call.context.caller.name()));
    let script = ScriptAnswer::of(started, &call.context);
    let logins = started.logins.get().map(|logins| target.capabilities.of_call(logins));
    let capabilities = logins.unwrap_or_else(|| Arc::clone(&target.capabilities));
    let rewritten = started.tool.rewritten(&call.arguments).filter(|_| !started.is_conformed);
    let clock = Arc::new(CallClock::new(time.left));
    let calling = run.map(|run| CallingCall::of(started, &call, &clock, run));
    let Call { arguments, context, .. } = call;
    let revision = context.revision.name();
    let arguments_json = rewritten.as_deref().unwrap_or_else(|| arguments.get());
    let caller = caller_of(started, context, &time.limits, capabilities.redactor(), clock, calling);
    let caller = Arc::new(caller);
    let tape = started.tape();
    let input = SandboxCall {
        tool: &target.name,
        arguments_json,
        is_conformed: started.is_conformed,
        limits: &time.limits,
        capabilities: &capabilities,
        caller: Arc::<McpCaller>::clone(&caller),
        kept: kept.as_deref(),
        tape: tape.as_ref().map(|running| &running.tape),
        uses: started.record.uses(capabilities.grants(), capabilities.redactor()),
    };
    started.live().into_iter().for_each(|live| live.enter(CallPhase::Running));
    let mut report = group.call_tool(place, input).await;
    let given = TapedArguments { text: arguments_json, revision, capabilities: &capabilities };
    let taped = tape.and_then(|tape| started.taped(tape, &report, given));
    if script.is_some() {
        report.outcome = report.outcome.map_err(ScriptAnswer::named);
    }
    started.trace.iter().for_each(|trace| trace.ran(&report.usage));
    caller.ran(&report.captured.text);
    log_captured(&caller, &report.captured);
    let mut ended = EndedCall::of(started, &caller, report).unless_narrowed(target);
    ended.beside.taped = taped;
    if let Some(script) = script {
        if script.takes_long(&ended) {
            toolcell_mcp::leave_thread().await;
        }
        ended = script.shorten(ended);
    }
    caller.ended(ended.outcome).await;
    ended.with_state_outage(&caller).unless_late(time.late)
}

/// What the guest's requests to the host lead to.
fn caller_of(
    started: &StartedCall<'_>,
    context: Box<CallContext>,
    limits: &Limits,
    redactor: &Redactor,
    clock: Arc<CallClock>,
    calling: Option<CallingCall>,
) -> McpCaller {
    let StartedCall { catalog, target, record, .. } = started;
    let denials = record.denials(target, &context.caller, redactor);
    let interruptions = Interruptions::of(started, &context);
    let consenting = target
        .capabilities
        .may_ask()
        .then(|| Consenting::new(catalog, target, &context, record.asks(target), interruptions.clone()));
    let component = target.component.name();
    let notifier = CallNotifier::new(&catalog.services, &catalog.resources, component, context.caller.name());
    McpCaller {
        questions: Questions::new(&context, record.asks(target), limits, interruptions.clone()),
        progress: Mutex::new(Allowance::new(pace(limits.progress()))),
        context,
        denials,
        consenting,
        interruptions,
        live: started.live().map(Arc::clone),
        trace: started.trace.clone(),
        notifier,
        state_away: OnceLock::new(),
        clock,
        lineage: started.lineage.clone(),
        calling,
        logged: started.by_hand.then(Mutex::default),
    }
}

impl EndedCall {
    pub(super) fn refused(outcome: Outcome, text: String) -> Self {
        Self {
            outcome,
            usage: Usage::default(),
            detail: String::new(),
            result: CallResult::error(text),
            unfit: None,
            beside: CallTraces::default(),
        }
    }

    fn of(started: &StartedCall<'_>, caller: &McpCaller, report: CallReport<contract::GuestResult>) -> Self {
        let tool = started.tool;
        let CallReport { outcome, mut usage, captured, denials, unfit, .. } = report;
        if let Err(CallFailure::Unfit { problems }) = outcome {
            // Nothing ran: the answer is the same as for arguments that are checked here.
            let result = tool.refuse_arguments(&problems);
            return Self { detail: problems, result, ..Self::refused(Outcome::InvalidInput, String::new()) };
        }
        let mut words = None;
        if let (Err(failure), false) = (&outcome, denials.is_empty()) {
            words = Some(OwnWords::of_failure(failure, &captured));
        }
        let (outcome, detail, mut result) = match outcome {
            Ok(answer) => match if tool.prompt().is_some() { content::prompt(answer) } else { content::result(answer) }
            {
                Ok(result) if result.is_error => (Outcome::ToolError, String::new(), result),
                Ok(result) => (Outcome::Ok, String::new(), result),
                Err(problem) => (Outcome::InvalidOutput, String::new(), CallResult::error(problem)),
            },
            Err(failure) => {
                if matches!(failure, CallFailure::SandboxEnded { .. }) {
                    log_call!(warn, caller.call_name(), "{failure}");
                }
                if !failure.detail().is_empty() {
                    log_call!(warn, caller.call_name(), "{failure}: {}", failure.detail());
                }
                (failure.outcome(), failure.detail().to_owned(), CallResult::error(failure.to_string()))
            }
        };
        if outcome == Outcome::InvalidOutput {
            usage.output_bytes = 0;
        }
        if started.catalog.settings.tells_usage {
            result.meta.insert(USAGE_KEY.to_owned(), usage_json(&usage));
        }
        let mut beside = CallTraces { usage: Some(usage), logged: caller.take_log(), ..CallTraces::default() };
        if !denials.is_empty() {
            let is_program = started.target.program.is_some();
            let words = words.unwrap_or_else(|| OwnWords::of_answer(&result, &captured, is_program));
            add_denials(&denials, &words, caller.redactor(), &mut result);
            (beside.denials, beside.denied_aside) = denials.into_iter().partition(|denial| words.may_come_of(denial));
        }
        beside.printed = captured;
        Self { outcome, usage, detail, result, unfit, beside }
    }

    /// This end, unless the end came because the tool was narrowed.
    fn unless_narrowed(self, target: &CallTarget) -> Self {
        match target.narrowed_text().filter(|_| self.was_cut_short()) {
            Some(text) => self.cancelled(text),
            None => self,
        }
    }

    /// This end, unless an operator ended the call.
    pub(super) fn unless_stopped(self, live: &LiveCall) -> Self {
        match live.stopped_text().filter(|_| self.was_cut_short()) {
            Some(text) => self.cancelled(text.to_owned()),
            None => self,
        }
    }

    /// True if the host ended the call, or its guest gave up: a guest may notice the cancellation
    /// before the host ends it. A result that it has already returned stays.
    fn was_cut_short(&self) -> bool {
        matches!(self.outcome, Outcome::Cancelled | Outcome::ToolError | Outcome::Trap)
    }

    /// How a cancelled call ends, with the reason.
    fn cancelled(self, why: String) -> Self {
        Self { outcome: Outcome::Cancelled, result: CallResult::error(why.as_str()), detail: why, ..self }
    }

    /// This end, unless the time was that of a call above: with the words for that.
    fn unless_late(self, late: Option<String>) -> Self {
        match late {
            Some(text) if self.outcome == Outcome::Deadline => Self { result: CallResult::error(text), ..self },
            _ => self,
        }
    }

    /// Records in the audit that shared state was unreachable, however the guest handled that
    /// error.
    fn with_state_outage(mut self, caller: &McpCaller) -> Self {
        if let Some(why) = caller.missed_state() {
            let more = if self.detail.is_empty() { String::new() } else { format!("; {}", self.detail) };
            self.detail = format!("state that replicas share was away: {why}{more}");
        }
        self
    }

    /// Checks the result against the tool's output schema. An invalid result is replaced by an
    /// error.
    pub(super) fn checked(mut self, tool: &McpTool, patience: &Patience) -> (Outcome, Usage, String, CheckedResult) {
        let result = finish(tool, self.result, self.unfit, patience);
        if let Some(complaint) = result.complaint() {
            self.outcome = Outcome::InvalidOutput;
            self.usage.output_bytes = 0;
            self.detail = complaint.to_owned();
        }
        (self.outcome, self.usage, self.detail, result)
    }
}

fn usage_json(usage: &Usage) -> serde_json::Value {
    serde_json::json!({
        "fuel": usage.fuel,
        "memory_peak_bytes": usage.memory_peak_bytes,
        "duration_us": u64::try_from(usage.duration.as_micros()).unwrap_or(u64::MAX),
    })
}

/// Writes a guest's output to the operator's log, line by line. It never goes to the client.
fn log_captured(caller: &McpCaller, captured: &Captured) {
    if captured.text.is_empty() && captured.dropped_bytes == 0 {
        return;
    }
    let name = caller.call_name();
    for line in captured.text.lines() {
        log_call!(info, name, "printed: {}", toolcell_mcp::sanitize::line(line));
    }
    if captured.dropped_bytes > 0 {
        log_call!(warn, name, "printed or logged {} bytes past the limit \"log\"", captured.dropped_bytes);
    }
}

/// Adds the denials to the result, without secrets. Those that may have caused an error go into its
/// text, after the tool's own words. The others go into `_meta`.
fn add_denials(denials: &[Denial], words: &OwnWords, redactor: &Redactor, result: &mut CallResult) {
    let mut causes: Vec<String> = Vec::new();
    let mut aside: Vec<String> = Vec::new();
    // Most programs read their environment, and work if it is empty.
    for denial in denials.iter().filter(|denial| denial.capability() != Capability::Env) {
        let is_cause = result.is_error && words.may_come_of(denial);
        let lines = if is_cause { &mut causes } else { &mut aside };
        lines.push(redactor.text(&denial.to_string()).into_owned());
    }
    causes.dedup();
    aside.dedup();
    if !causes.is_empty() {
        result.content.push(ResultContent::text(causes.join("\n")));
    }
    if !aside.is_empty() {
        result.meta.insert(DENIALS_KEY.to_owned(), aside.into());
    }
}
