//! The run of a started call: its limits, and the result made of the sandbox's report. Must not
//! hold: the content of a catalog.
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolcell_audit::{Outcome, Usage};
use toolcell_mcp::{Call, CallResult, Cancellation, CheckedResult, Content, Patience, Tool};
use toolcell_policy::{Capability, Denial, Limits};
use toolcell_sandbox::{CallInput, CallReport, Captured, Failure, Redactor, contract};

use super::StartedCall;
use super::caller::McpCaller;
use super::consent::Consenting;
use super::name::log_call;
use crate::catalog::{CallTarget, NARROWED, content};

/// Key in a result's `_meta` for the call's usage.
pub const USAGE_KEY: &str = "toolcell/usage";

/// Key in a result's `_meta` for the guest's denials, if the result is not an error.
const DENIALS_KEY: &str = "toolcell/denials";

/// Least time to check a result, for calls that used up their deadline or waited for a person
/// longer. Any check takes about as much of one core at most.
const CHECKED_WITHIN: Duration = Duration::from_millis(100);

/// End of one call, for the audit.
pub(super) struct EndedCall {
    pub(super) outcome: Outcome,
    pub(super) usage: Usage,
    pub(super) detail: String,
    pub(super) result: CallResult,
    pub(super) beside: Beside,
}

/// Traces of a call besides its result, for a person who makes it by hand.
#[derive(Debug, Default)]
pub struct Beside {
    /// The output of the guest.
    pub printed: Captured,
    /// Its first denials.
    pub denials: Vec<Denial>,
}

/// End of a measured call.
pub struct Measured {
    /// The result, before its structured part is checked.
    pub result: CallResult,
    /// Its outcome in the audit.
    pub outcome: Outcome,
    /// Its usage.
    pub usage: Usage,
    /// Bytes of output and logs beyond their limit, besides those in `usage`.
    pub log_dropped_bytes: u64,
}

impl From<EndedCall> for Measured {
    fn from(ending: EndedCall) -> Self {
        let EndedCall { outcome, usage, result, beside, .. } = ending;
        Self { result, outcome, usage, log_dropped_bytes: beside.printed.dropped_bytes }
    }
}

/// Runs a call that has its call slot, under the tool's limits.
pub(super) async fn execute(started: &StartedCall<'_>, call: Call) -> EndedCall {
    let target = started.target;
    let Call { arguments, context, .. } = call;
    let source = target.instances.for_caller(context.caller.name());
    let (denials, asks) =
        (started.record.denials(target, started.catalog.observation.as_ref()), started.record.asks(target));
    let consenting = target
        .capabilities
        .may_ask()
        .then(|| Consenting::new(&started.catalog.approvals, target, &context, started.record.asks(target)));
    let caller = McpCaller::new(&target.limits, context, denials, asks).consenting(consenting);
    let caller = Arc::new(caller.narrowed_by(target.narrowed.clone()).traced(started.trace.clone()));
    let input = CallInput {
        tool: &target.name,
        arguments_json: arguments.get(),
        program: target.program.as_deref(),
        limits: &target.limits,
        capabilities: &target.capabilities,
        caller: Arc::<McpCaller>::clone(&caller),
        source: source.source(),
    };
    let report = match started.catalog.walled.of_target(target) {
        Some((group, place)) => group.call_tool(place, input).await,
        None => target.component.component.call_tool(input).await,
    };
    started.trace.iter().for_each(|trace| trace.ran(&report.usage));
    log_captured(&caller, &report.captured);
    let ended = EndedCall::of(&caller, report, target.capabilities.redactor()).unless_narrowed(target);
    caller.ended(ended.outcome);
    ended
}

impl EndedCall {
    pub(super) fn refused(outcome: Outcome, text: String) -> Self {
        let result = CallResult::error(text);
        let (usage, detail, beside) = Default::default();
        Self { outcome, usage, detail, result, beside }
    }

    fn of(caller: &McpCaller, report: CallReport<contract::CallResult>, redactor: &Redactor) -> Self {
        let CallReport { outcome, mut usage, captured, denials, spent } = report;
        crate::workers::drop_later(Box::new(spent));
        let (outcome, detail, mut result) = match outcome {
            Ok(answer) => match content::result(answer) {
                Ok(result) if result.is_error => (Outcome::ToolError, String::new(), result),
                Ok(result) => (Outcome::Ok, String::new(), result),
                Err(problem) => (Outcome::InvalidOutput, String::new(), CallResult::error(problem)),
            },
            Err(failure) => {
                if matches!(failure, Failure::SandboxEnded { .. }) {
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
        result.meta.insert(USAGE_KEY.to_owned(), usage_json(&usage));
        tell_denials(&denials, redactor, &mut result);
        Self { outcome, usage, detail, result, beside: Beside { printed: captured, denials } }
    }

    /// This end, unless narrowing the tool caused it.
    fn unless_narrowed(self, target: &CallTarget) -> Self {
        let narrowed = target.narrowed.as_ref().is_some_and(Cancellation::is_cancelled);
        if !narrowed || self.outcome != Outcome::Cancelled {
            return self;
        }
        let (detail, result) = (NARROWED.to_owned(), CallResult::error(NARROWED));
        Self { detail, result, ..self }
    }

    /// Time to check its result: the rest of its deadline, ended early by its caller's
    /// cancellation.
    pub(super) fn patience(&self, limits: &Limits, cancellation: &Cancellation) -> Patience {
        let left = limits.deadline().saturating_sub(self.usage.duration).max(CHECKED_WITHIN);
        Patience { until: Instant::now().checked_add(left), cancellation: Some(cancellation.clone()) }
    }

    /// Checks the result against the tool's output schema. An invalid result is replaced by an
    /// error.
    pub(super) fn checked(mut self, tool: &Tool, patience: &Patience) -> (Outcome, Usage, String, CheckedResult) {
        let result = tool.finish(self.result, patience);
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

/// Adds the denials to the result, without secrets that they may name. An error's text gets them,
/// since they are its likely cause. Any other result gets them in `_meta`, as the tool got along
/// without.
fn tell_denials(denials: &[Denial], redactor: &Redactor, result: &mut CallResult) {
    // Most programs read their environment, and never mind that it is empty.
    let told = denials.iter().filter(|denial| denial.capability() != Capability::Env);
    let mut lines: Vec<String> = told.map(|denial| redactor.text(&denial.to_string()).into_owned()).collect();
    lines.dedup();
    if lines.is_empty() {
        return;
    }
    if result.is_error {
        result.content.push(Content::text(lines.join("\n")));
    } else {
        result.meta.insert(DENIALS_KEY.to_owned(), lines.into());
    }
}
