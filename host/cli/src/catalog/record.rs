//! The two audit records of one call: its start, without which it does not run, and its end, which is never missing.
use std::sync::Arc;

use toolcell_audit::{CallFinished, CallStarted, Clipped, Event, Outcome, Sink, SinkError, Usage};
use toolcell_mcp::{Call, Revision};
use toolcell_sandbox::Digest;

use super::Loaded;

/// What is known when a call starts.
pub struct Start<'a> {
    pub id: u64,
    pub generation: u64,
    pub tool: &'a str,
    pub component: &'a Loaded,
}

/// A call that is recorded as started. Dropped before its end, it is recorded as cancelled.
pub struct CallRecord {
    sink: Arc<Sink>,
    id: u64,
    ended: bool,
}

impl CallRecord {
    /// Records the start.
    pub fn begin(sink: &Arc<Sink>, start: &Start<'_>, call: &Call) -> Result<Self, SinkError> {
        if sink.is_enabled() {
            let arguments = call.arguments.get();
            let arguments_digest = Digest::of(arguments.as_bytes()).to_string();
            let context = &call.context;
            sink.record(|| {
                Event::CallStarted(CallStarted {
                    id: start.id,
                    generation: start.generation,
                    era: era(context.revision),
                    revision: context.revision.name(),
                    caller: Clipped("local"),
                    request: Clipped(&context.request_id),
                    trace: context.trace.as_ref().and_then(|trace| trace_id(&trace.traceparent)).map(Clipped),
                    tool: start.tool,
                    component: &start.component.name,
                    component_digest: &start.component.digest,
                    policy_digest: &start.component.policy_digest,
                    arguments_digest: &arguments_digest,
                    arguments_bytes: arguments.len() as u64,
                })
            })?;
        }
        Ok(Self { sink: Arc::clone(sink), id: start.id, ended: false })
    }

    /// Records the end.
    pub fn end(mut self, outcome: Outcome, usage: Usage, detail: &str) {
        self.ended = true;
        self.write(outcome, usage, detail);
    }

    fn write(&self, outcome: Outcome, usage: Usage, detail: &str) {
        let detail = Some(detail).filter(|detail| !detail.is_empty()).map(Clipped);
        let event = || Event::CallFinished(CallFinished { id: self.id, outcome, usage, detail });
        if let Err(error) = self.sink.record(event) {
            tracing::error!(call = self.id, "the end of a call is missing in the audit: {error}");
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

fn era(revision: Revision) -> &'static str {
    if revision.is_modern() { "modern" } else { "legacy" }
}

/// The second of the four fields of a `traceparent`.
fn trace_id(traceparent: &str) -> Option<&str> {
    traceparent.split('-').nth(1)
}

#[cfg(test)]
mod tests {
    use super::trace_id;

    #[test]
    fn the_trace_id_is_the_second_field() {
        assert_eq!(
            trace_id("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            Some("0af7651916cd43dd8448eb211c80319c")
        );
        assert_eq!(trace_id("nonsense"), None);
    }
}
