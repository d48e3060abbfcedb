//! The audit records of one call: its start, without which it does not run, and its end, which is
//! never missing. A refused call has one record. The operator's log names a call the same way
//! throughout.
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use toolcell_audit::{
    ArgumentsText, CallAsked, CallDenied, CallFinished, CallRefused, CallResumed, CallStarted, Clipped, Event, Outcome,
    Sink, SinkError, Usage,
};
use toolcell_mcp::{Call, CallContext, Caller, McpTool, Revision, sanitize};
use toolcell_policy::{Denial, Grants};
use toolcell_sandbox::{CallUses, ComponentDigest, Redactor};

use super::execute::EndedCall;
use super::nested::Lineage;
use crate::catalog::Services;
use crate::catalog::usage::FurtherUse;
use crate::catalog::{CallTarget, LoadedComponent, Meters};
use crate::observing::activity::DeniedRequest;

/// State known when a call starts.
pub struct CallStart<'a> {
    pub id: u64,
    pub generation: u64,
    pub tool: &'a Arc<McpTool>,
    pub source: CallSource<'a>,
    /// Removes the tool's secrets from recorded texts; `None` if it has none.
    pub redactor: Option<&'a Redactor>,
    /// True if its failures raise alerts.
    pub is_alerting: bool,
    /// Where it comes from, if a tool made it.
    pub lineage: Option<&'a Lineage>,
}

/// The component that a call runs, or what takes its place.
#[derive(Clone, Copy)]
pub struct CallSource<'a> {
    pub name: &'a str,
    /// `sha256:…` of its bytes.
    pub digest: &'a str,
    /// `sha256:…` of its policy.
    pub policy_digest: &'a str,
}

impl<'a> CallSource<'a> {
    pub fn of(component: &'a LoadedComponent) -> Self {
        Self { name: component.name(), digest: &component.digest, policy_digest: &component.policy_digest }
    }
}

/// A call that is recorded as started, and counted when it ends. If dropped before its end, it is
/// recorded as cancelled.
pub struct CallRecord {
    services: Arc<Services>,
    id: u64,
    tool: Arc<McpTool>,
    meters: Arc<Meters>,
    further: FurtherUse,
    /// The grants that it used, once it runs, if uses are recorded.
    uses: OnceLock<RecordedUses>,
    caller: Caller,
    /// True if its failures raise alerts.
    is_alerting: bool,
    /// The file of its recording.
    recording: Option<String>,
    ended: bool,
}

/// The uses of a call, and what takes its secrets out of them.
struct RecordedUses {
    uses: Arc<CallUses>,
    redactor: Redactor,
}

/// The name of a call in the operator's log: the host's own number, as in the audit; the client's
/// request id, which may repeat; the caller; and the tool.
pub struct CallName<'a> {
    /// Number of the call in this process.
    pub call: u64,
    /// The id of the request, as the client wrote it.
    pub request: Cow<'a, str>,
    /// Name of the caller.
    pub caller: Cow<'a, str>,
    /// The tool, as clients see it.
    pub tool: &'a str,
}

/// Longest id of a request in a line of the log, in bytes; a longer one is cut. 128: real ones have
/// at most about 40, and a call may write thousands of lines.
const LOGGED_ID_BYTES_MAX: usize = 128;

/// The id of a request, as the log has it.
fn logged_id(id: &str) -> Cow<'_, str> {
    let kept = id.get(..id.floor_char_boundary(LOGGED_ID_BYTES_MAX)).unwrap_or_default();
    let line = sanitize::line(kept);
    if kept.len() == id.len() { line } else { format!("{line}…").into() }
}

impl<'a> CallName<'a> {
    pub fn new(call: u64, context: &'a CallContext, tool: &'a str) -> Self {
        let request = logged_id(&context.request_id);
        let caller = sanitize::line(context.caller.name());
        Self { call, request, caller, tool }
    }

    /// This name, owned.
    pub fn kept<'b>(self, tool: &'b str) -> CallName<'b> {
        let request = self.request.into_owned().into();
        let caller = self.caller.into_owned().into();
        CallName { call: self.call, request, caller, tool }
    }
}

/// Writes a line about a call: `log_call!(warn, name, "…")`.
macro_rules! log_call {
    ($level:ident, $name:expr, $($text:tt)+) => {{
        let name = &$name;
        tracing::$level!(
            call = name.call,
            request = &*name.request,
            caller = &*name.caller,
            tool = name.tool,
            $($text)+
        )
    }};
}

pub(super) use log_call;

impl CallStart<'_> {
    pub fn name<'a>(&'a self, call: &'a Call) -> CallName<'a> {
        CallName::new(self.id, &call.context, &self.tool.definition().name)
    }
}

impl CallRecord {
    /// Records the start.
    pub fn begin(
        services: &Arc<Services>,
        start: &CallStart<'_>,
        call: &Call,
        meters: &Arc<Meters>,
    ) -> Result<Self, SinkError> {
        let sink = &services.sink;
        if sink.is_enabled() {
            let arguments_digest = digest(call);
            let arguments = kept(sink, start, call);
            sink.record(|| Event::CallStarted(started(start, call, &arguments_digest, arguments.as_deref())))?;
        }
        let services = Arc::clone(services);
        let tool = Arc::clone(start.tool);
        let meters = Arc::clone(meters);
        let caller = call.context.caller.clone();
        let is_alerting = start.is_alerting;
        let further = FurtherUse {
            arguments_bytes: call.arguments.get().len() as u64,
            is_task: call.context.task,
            ..FurtherUse::default()
        };
        let uses = OnceLock::new();
        Ok(Self {
            services,
            id: start.id,
            tool,
            meters,
            further,
            uses,
            caller,
            is_alerting,
            recording: None,
            ended: false,
        })
    }

    /// The host's own number of the call.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The name of its caller.
    pub fn caller(&self) -> &str {
        self.caller.name()
    }

    /// Records of the call's denials, also for the observation and the console, if they are on.
    /// The redactor is that of the call, which knows its caller's secrets.
    pub fn denials(&self, target: &CallTarget, caller: &Caller, redactor: &Redactor) -> DenialRecords {
        let services = Arc::clone(&self.services);
        let tool = Arc::clone(&self.tool);
        let component = Arc::clone(&target.component);
        let redactor = redactor.clone();
        DenialRecords { services, id: self.id, caller: caller.clone(), tool, component, redactor }
    }

    /// Where the call's uses of grants are noted; `None` if they are not recorded, or if it has no
    /// grants that the host sees used. The redactor is that of the call.
    pub fn uses(&self, grants: &Grants, redactor: &Redactor) -> Option<Arc<CallUses>> {
        let may_use = !grants.network().is_empty() || grants.keyvalue().is_some() || !grants.calls().is_empty();
        if !may_use || !self.services.sink.keeps_uses() {
            return None;
        }
        let noted = || RecordedUses { uses: Arc::default(), redactor: redactor.clone() };
        Some(Arc::clone(&self.uses.get_or_init(noted).uses))
    }

    pub fn asks(&self, target: &CallTarget) -> AskRecords {
        let sink = Arc::clone(&self.services.sink);
        let tool = Arc::clone(&self.tool);
        let component = Arc::clone(&target.component);
        AskRecords { sink, id: self.id, tool, component, redactor: target.capabilities.redactor().clone() }
    }

    /// Notes how much of its limits the call used, besides its usage.
    pub fn used(&mut self, ended: &EndedCall) {
        self.further.output_items = ended.result.content.len() as u64;
        self.further.log_dropped_bytes = ended.beside.printed.dropped_bytes;
    }

    /// Notes the file of its recording.
    pub fn recorded_in(&mut self, file: Option<String>) {
        self.recording = file;
    }

    /// Records the end.
    pub fn end(mut self, outcome: Outcome, usage: Usage, detail: &str) {
        self.ended = true;
        self.write(outcome, usage, detail);
    }

    fn write(&self, outcome: Outcome, usage: Usage, detail: &str) {
        self.meters.ended(outcome, &usage, &self.further);
        let name = self.caller.name();
        self.services.caller_figures.ended(name, outcome, &usage, self.further.arguments_bytes);
        let detail = Some(detail).filter(|detail| !detail.is_empty()).map(Clipped);
        let tool = &self.tool.definition().name;
        let texts = self.uses.get().map(|noted| noted.uses.texts()).unwrap_or_default();
        // A use with a secret in it says little without it.
        let is_plain =
            |text: &&String| self.uses.get().is_none_or(|noted| matches!(noted.redactor.text(text), Cow::Borrowed(_)));
        let kept: Vec<Clipped<'_>> = texts.iter().filter(is_plain).map(|text| Clipped(text)).collect();
        let left_out = self.uses.get().map_or(0, |noted| noted.uses.left_out());
        let uses_left_out = left_out.saturating_add((texts.len() - kept.len()) as u64);
        let uses = self.services.sink.keeps_uses().then_some(kept.as_slice());
        let recording = self.recording.as_deref();
        let id = self.id;
        let ended = CallFinished { id, tool, outcome, usage, uses, uses_left_out, detail, recording };
        let event = || Event::CallFinished(ended);
        if let Err(error) = self.services.sink.record(event) {
            tracing::error!(call = self.id, "the end of a call is missing from the audit: {error}");
        }
        if let Some(alerts) = self.services.alerts.as_ref().filter(|_| self.is_alerting) {
            alerts.ended(tool, name, outcome);
        }
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        if !self.ended {
            self.write(Outcome::Cancelled, Usage::default(), "");
        }
    }
}

pub struct DenialRecords {
    services: Arc<Services>,
    id: u64,
    caller: Caller,
    tool: Arc<McpTool>,
    component: Arc<LoadedComponent>,
    /// Takes the call's secrets out of texts.
    pub redactor: Redactor,
}

impl DenialRecords {
    /// The host's own number of the call.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The tool, as clients see it.
    pub fn tool(&self) -> &str {
        &self.tool.definition().name
    }

    /// Text of a denial, without secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor.text(text)
    }

    pub fn write(&self, denial: &Denial) {
        if let Some(observation) = &self.services.observation {
            observation.note(self.component.name(), denial, &self.redactor);
        }
        self.component.denied.count(denial.capability());
        let reason = denial.to_string();
        let asked = self.text(denial.asked());
        let reason = self.text(&reason);
        let allow = denial.allow();
        let line = allow.map(|allow| self.text(allow.line()));
        if let Some(activity) = &self.services.activity {
            activity.figures().denied();
            activity.denials.note(&DeniedRequest {
                call: self.id,
                caller: self.caller.name(),
                tool: &self.tool,
                component: self.component.name(),
                capability: denial.capability().name(),
                asked: &asked,
                reason: &reason,
                allow: allow.map(toolcell_policy::Allow::section).zip(line.as_deref()),
            });
        }
        let event = || {
            Event::CallDenied(CallDenied {
                id: self.id,
                tool: self.tool(),
                component: self.component.name(),
                capability: denial.capability().name(),
                asked: Clipped(&asked),
                reason: Clipped(&reason),
                section: allow.map(|allow| Clipped(allow.section())),
                allow: line.as_deref().map(Clipped),
            })
        };
        if let Err(error) = self.services.sink.record(event) {
            tracing::error!(call = self.id, "a denial is missing from the audit: {error}");
        }
        if let Some(alerts) = &self.services.alerts {
            alerts.denied(self.tool(), self.caller.name());
        }
    }
}

pub struct AskRecords {
    sink: Arc<Sink>,
    id: u64,
    tool: Arc<McpTool>,
    component: Arc<LoadedComponent>,
    redactor: Redactor,
}

impl AskRecords {
    /// The tool, as clients see it.
    pub fn tool(&self) -> &str {
        &self.tool.definition().name
    }

    pub fn write(&self, asked: &str, key: &str, answer: &str, detail: Option<&str>) {
        let key = self.redactor.text(key);
        let detail = detail.map(|detail| self.redactor.text(detail));
        let event = || {
            Event::CallAsked(CallAsked {
                id: self.id,
                tool: self.tool(),
                component: self.component.name(),
                asked,
                key: Clipped(&key),
                answer,
                detail: detail.as_deref().map(Clipped),
            })
        };
        if let Err(error) = self.sink.record(event) {
            tracing::error!(call = self.id, "a question is missing from the audit: {error}");
        }
    }
}

impl AskRecords {
    /// The call goes on, and these calls of other tools do not run again.
    pub fn resumed(&self, calls: usize) {
        let calls = calls as u64;
        let event = || {
            Event::CallResumed(CallResumed { id: self.id, tool: self.tool(), component: self.component.name(), calls })
        };
        if let Err(error) = self.sink.record(event) {
            tracing::error!(call = self.id, "that a call goes on is missing from the audit: {error}");
        }
    }
}

/// Records a call that is refused before anything of it runs. The call is refused even if recording
/// fails.
pub fn refused(sink: &Sink, start: &CallStart<'_>, call: &Call, outcome: Outcome, detail: &str) {
    if !sink.is_enabled() {
        return;
    }
    let arguments_digest = digest(call);
    let arguments = kept(sink, start, call);
    let event = || {
        let call = started(start, call, &arguments_digest, arguments.as_deref());
        Event::CallRefused(CallRefused { call, outcome, detail: Clipped(detail) })
    };
    if let Err(error) = sink.record(event) {
        tracing::error!(call = start.id, "a refused call is missing from the audit: {error}");
    }
}

fn digest(call: &Call) -> String {
    ComponentDigest::of(call.arguments.get().as_bytes()).to_string()
}

/// The arguments without secrets, if the manifest asks to record them.
fn kept<'a>(sink: &Sink, start: &CallStart<'_>, call: &'a Call) -> Option<Cow<'a, str>> {
    let text = call.arguments.get();
    let clean = || start.redactor.map_or(Cow::Borrowed(text), |redactor| redactor.text(text));
    sink.keeps_arguments().then(clean)
}

fn started<'a>(
    start: &CallStart<'a>,
    call: &'a Call,
    arguments_digest: &'a str,
    arguments: Option<&'a str>,
) -> CallStarted<'a> {
    let context = &call.context;
    CallStarted {
        id: start.id,
        generation: start.generation,
        era: era(context.revision),
        revision: context.revision.name(),
        caller: Clipped(context.caller.name()),
        request: Clipped(&context.request_id),
        trace: context.trace.as_ref().and_then(|trace| trace_id(&trace.traceparent)).map(Clipped),
        parent: start.lineage.map(|lineage| lineage.parent),
        root: start.lineage.map(|lineage| lineage.root),
        depth: start.lineage.map(|lineage| lineage.depth),
        tool: &start.tool.definition().name,
        component: start.source.name,
        component_digest: start.source.digest,
        policy_digest: start.source.policy_digest,
        arguments_digest,
        arguments_bytes: call.arguments.get().len() as u64,
        arguments: arguments.map(ArgumentsText),
    }
}

fn era(revision: Revision) -> &'static str {
    if revision.is_modern() { "modern" } else { "legacy" }
}

/// The second of the four fields of a `traceparent`.
fn trace_id(traceparent: &str) -> Option<&str> {
    traceparent.split('-').nth(1)
}

#[cfg(test)]
mod tests {
    use super::{LOGGED_ID_BYTES_MAX, logged_id, trace_id};

    #[test]
    fn the_log_has_the_beginning_of_a_long_id() {
        assert_eq!(logged_id("a\nb"), "a b");
        assert_eq!(logged_id(&"é".repeat(500)), format!("{}…", "é".repeat(LOGGED_ID_BYTES_MAX / 2)));
    }

    #[test]
    fn the_trace_id_is_the_second_field() {
        assert_eq!(
            trace_id("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            Some("0af7651916cd43dd8448eb211c80319c")
        );
        assert_eq!(trace_id("nonsense"), None);
    }
}
