//! One generation of tools: what the manifest and the components came to, and how a call of one of them runs.
//!
//! This is where the protocol (`toolcell_mcp`), the sandbox and the audit meet; none of them knows the others.
mod admission;
mod build;
mod caller;
mod content;
mod definition;
mod rate;
mod record;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolcell_audit::{Outcome, Sink, Usage};
use toolcell_mcp::{Call, CallResult, ToolList};
use toolcell_policy::{Limit, Limits};
use toolcell_sandbox::{CallInput, CallReport, Captured, CodeOrigin, Failure, Inspection, ToolComponent, contract};

use admission::Admission;
pub use build::{Builder, Built, PROGRESS_AFTER, folder_of, read_bounded};
use caller::McpCaller;
use record::{CallRecord, Start};

/// Who calls, where the transport has one caller.
const LOCAL: &str = "local";

/// The key under which a result's `_meta` carries what the call used.
pub const USAGE_KEY: &str = "toolcell/usage";

/// An immutable generation. Calls hold it by `Arc` until they end, whatever is swapped in meanwhile.
pub struct Catalog {
    tools: ToolList,
    entries: Vec<Entry>,
    components: Vec<Arc<Loaded>>,
    sink: Arc<Sink>,
    calls: Arc<AtomicU64>,
}

/// A loaded component and what the manifest says of it.
pub struct Loaded {
    name: String,
    component: ToolComponent,
    digest: String,
    policy_digest: String,
}

/// One tool: beside the definition that clients see, what it takes to run it.
struct Entry {
    component: Arc<Loaded>,
    /// The tool's own name, without the manifest's prefix.
    name: String,
    limits: Limits,
    admission: Admission,
}

/// What one call came to, for the audit.
struct Ending {
    outcome: Outcome,
    usage: Usage,
    detail: String,
    result: CallResult,
}

impl Loaded {
    /// The component's name in the manifest.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `sha256:…` of its bytes.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// `sha256:…` of what the manifest says of it.
    pub fn policy_digest(&self) -> &str {
        &self.policy_digest
    }

    /// Where its code came from.
    pub fn code_origin(&self) -> CodeOrigin {
        self.component.code_origin()
    }

    /// What it is, exports and imports.
    pub fn inspection(&self) -> &Inspection {
        self.component.inspection()
    }
}

impl Catalog {
    /// The components, in the manifest's order.
    pub fn components(&self) -> &[Arc<Loaded>] {
        &self.components
    }

    /// The component and the limits of tool number `index`.
    pub fn tool_source(&self, index: usize) -> Option<(&Loaded, &Limits)> {
        self.entries.get(index).map(|entry| (entry.component.as_ref(), &entry.limits))
    }

    /// The names of one component's tools, as clients see them.
    pub fn tools_of(&self, component: &Arc<Loaded>) -> Vec<&str> {
        let own = self.entries.iter().map(|entry| Arc::ptr_eq(&entry.component, component));
        let named = self.tools.tools().iter().zip(own).filter(|(_, own)| *own);
        named.map(|(tool, _)| tool.definition().name.as_str()).collect()
    }

    /// How many calls were started, over all generations.
    pub fn calls_started(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    async fn run(&self, call: Call) -> CallResult {
        let Some(entry) = self.entries.get(call.tool) else {
            // The index comes from this catalog's own list.
            return CallResult::error("the host has no such tool");
        };
        let id = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let cancellation = call.context.cancellation.clone();
        let Some(name) = self.tools.tools().get(call.tool).map(|tool| tool.definition().name.as_str()) else {
            return CallResult::error("the host has no such tool");
        };
        let start = Start { id, generation: self.tools.generation(), tool: name, component: &entry.component };
        let record = match CallRecord::begin(&self.sink, &start, &call) {
            Ok(record) => record,
            Err(error) => {
                tracing::error!(tool = name, "refused: the audit cannot be written: {error}");
                return CallResult::error("refused: the host cannot record the call in its audit");
            }
        };
        let ending = match entry.admission.enter(LOCAL, &cancellation).await {
            Ok(_place) => run_admitted(entry, name, call).await,
            Err(refusal) => Ending::refused(refusal.outcome(), refusal.to_string()),
        };
        record.end(ending.outcome, ending.usage, &ending.detail);
        ending.result
    }
}

/// Runs a call that has its place, under the tool's limits.
async fn run_admitted(entry: &Entry, name: &str, call: Call) -> Ending {
    let Call { arguments, context, .. } = call;
    if arguments.get().len() as u64 > entry.limits.arguments_bytes() {
        let failure = Failure::over(Limit::Arguments, &entry.limits);
        return Ending::refused(Outcome::LimitExceeded, failure.to_string());
    }
    let input = CallInput {
        tool: &entry.name,
        arguments_json: arguments.get(),
        limits: &entry.limits,
        caller: Arc::new(McpCaller::new(name, &entry.limits, context)),
    };
    let report = entry.component.component.call_tool(input).await;
    log_captured(name, &report.captured);
    Ending::of(name, report)
}

impl Ending {
    fn refused(outcome: Outcome, text: String) -> Self {
        Self { outcome, usage: Usage::default(), detail: String::new(), result: CallResult::error(text) }
    }

    fn of(tool: &str, report: CallReport<contract::CallResult>) -> Self {
        let CallReport { outcome, mut usage, .. } = report;
        let (outcome, detail, mut result) = match outcome {
            Ok(answer) => match content::result(answer) {
                Ok(result) if result.is_error => (Outcome::ToolError, String::new(), result),
                Ok(result) => (Outcome::Ok, String::new(), result),
                Err(problem) => (Outcome::InvalidOutput, String::new(), CallResult::error(problem)),
            },
            Err(failure) => {
                if !failure.detail().is_empty() {
                    tracing::warn!(tool, "{failure}: {}", failure.detail());
                }
                (failure.outcome(), failure.detail().to_owned(), CallResult::error(failure.to_string()))
            }
        };
        if outcome == Outcome::InvalidOutput {
            usage.output_bytes = 0;
        }
        result.meta.insert(USAGE_KEY.to_owned(), usage_json(&usage));
        Self { outcome, usage, detail, result }
    }
}

impl toolcell_mcp::Catalog for Catalog {
    fn tools(&self) -> &ToolList {
        &self.tools
    }

    async fn call(self: Arc<Self>, call: Call) -> CallResult {
        self.run(call).await
    }
}

fn usage_json(usage: &Usage) -> serde_json::Value {
    serde_json::json!({
        "fuel": usage.fuel,
        "memory_peak_bytes": usage.memory_peak_bytes,
        "duration_us": u64::try_from(usage.duration.as_micros()).unwrap_or(u64::MAX),
    })
}

/// What a guest printed goes to the operator's log, line by line, never to the wire.
fn log_captured(tool: &str, captured: &Captured) {
    for line in captured.text.lines() {
        tracing::info!(tool, "printed: {}", toolcell_mcp::sanitize::line(line));
    }
    if captured.dropped_bytes > 0 {
        tracing::warn!(tool, "printed or logged {} bytes past the limit \"log\"", captured.dropped_bytes);
    }
}
