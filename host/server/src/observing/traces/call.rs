//! Spans of requests. A tool call has spans for the client's request, the wait for a slot, the
//! instantiation, and the run. Names and attributes follow OpenTelemetry's conventions for MCP;
//! others begin with `toolcell.`.
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId,
    TraceState, Tracer as _,
};
use opentelemetry::{Context, KeyValue, Value};
use toolcell_audit::{Outcome, Usage};
use toolcell_mcp::{CallContext, Method, ObservedRequest, RequestDetails, TraceContext};
use toolcell_sandbox::Requested;

use super::Traces;

/// Method of every tool call.
const METHOD: &str = Method::CallTool.name();

/// Bytes of an attribute's text that a client can influence.
const TEXT_BYTES_MAX: usize = 256;

/// Trace of a sampled call.
pub struct CallTrace {
    traces: Arc<Traces>,
    context: Context,
    admitted: OnceLock<SystemTime>,
    instantiated: OnceLock<SystemTime>,
    ended: OnceLock<()>,
}

/// What is known of a traced call at its start.
pub struct TracedCall<'a> {
    /// The tool, as clients see it.
    pub tool: &'a str,
    /// The component's name in the manifest.
    pub component: &'a str,
    /// Generation of the catalog that serves the call.
    pub generation: u64,
}

impl Traces {
    /// Begins the trace of a call, or continues its client's; `None` if it is not sampled. Also
    /// returns the context of the host's span, so that the guest's requests can continue it.
    pub fn begin(self: &Arc<Self>, subject: &TracedCall<'_>, call: &CallContext) -> Option<(CallTrace, TraceContext)> {
        let parent = call.trace.as_ref().and_then(remote);
        let parent = parent.map_or_else(Context::new, |parent| Context::new().with_remote_span_context(parent));
        let mut span = SpanBuilder::from_name(format!("{METHOD} {}", subject.tool))
            .with_kind(SpanKind::Server)
            .start_with_context(&self.tracer, &parent);
        if !span.is_recording() {
            return None;
        }
        span.set_attributes(self.attributes(subject, call));
        let on = local(span.span_context(), call.trace.as_ref());
        let [admitted, instantiated] = [const { OnceLock::new() }; 2];
        let traces = Arc::clone(self);
        let context = parent.with_span(span);
        Some((CallTrace { traces, context, admitted, instantiated, ended: OnceLock::new() }, on))
    }

    /// Records the whole span of a request that calls no existing tool.
    pub fn request(&self, request: &ObservedRequest<'_>, details: &RequestDetails<'_>) {
        let method = Method::label(request.method);
        let parent = details.trace.as_ref().and_then(remote);
        let parent = parent.map_or_else(Context::new, |parent| Context::new().with_remote_span_context(parent));
        let mut attributes = vec![
            KeyValue::new("mcp.method.name", method),
            KeyValue::new("jsonrpc.request.id", cut(&details.id).to_owned()),
            KeyValue::new("network.transport", self.transport),
            KeyValue::new("toolcell.era", if request.is_modern { "modern" } else { "legacy" }),
            KeyValue::new("toolcell.caller", cut(details.caller.name()).to_owned()),
        ];
        let code = request.error.map(|error| error.number().to_string());
        attributes.extend(code.clone().map(|code| KeyValue::new("error.type", code.clone())));
        attributes.extend(code.clone().map(|code| KeyValue::new("rpc.response.status_code", code)));
        let mut span = SpanBuilder::from_name(method)
            .with_kind(SpanKind::Server)
            .with_start_time(details.began)
            .with_attributes(attributes)
            .start_with_context(&self.tracer, &parent);
        if let Some(code) = code {
            span.set_status(Status::error(code));
        }
        span.end();
    }

    fn attributes(&self, subject: &TracedCall<'_>, call: &CallContext) -> Vec<KeyValue> {
        let client = call.client.as_ref().map(|client| format!("{} {}", cut(&client.name), cut(&client.version)));
        let mut attributes = vec![
            KeyValue::new("mcp.method.name", METHOD),
            KeyValue::new("mcp.protocol.version", call.revision.name()),
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("gen_ai.tool.name", subject.tool.to_owned()),
            KeyValue::new("jsonrpc.request.id", cut(&call.request_id).to_owned()),
            KeyValue::new("network.transport", self.transport),
            KeyValue::new("toolcell.era", if call.revision.is_modern() { "modern" } else { "legacy" }),
            KeyValue::new("toolcell.caller", cut(call.caller.name()).to_owned()),
            KeyValue::new("toolcell.component", subject.component.to_owned()),
            KeyValue::new("toolcell.generation", number(subject.generation)),
        ];
        attributes.extend(client.map(|client| KeyValue::new("toolcell.client", client)));
        attributes
    }
}

impl CallTrace {
    /// Sets the host's number of the call, as in the audit and the log.
    pub fn is_numbered(&self, id: u64) {
        self.context.span().set_attribute(KeyValue::new("toolcell.call", number(id)));
    }

    /// Records a wait for a slot that began at this time and ends now.
    pub fn waited(&self, since: SystemTime) {
        let now = SystemTime::now();
        let _ = self.admitted.set(now);
        self.child("queue", since, now, []);
    }

    /// The instance is made: the guest runs from now on.
    pub fn instantiated(&self) {
        let _ = self.instantiated.set(SystemTime::now());
    }

    /// Records an HTTP request of the guest. Of its target, only the server is recorded, since
    /// paths may be private.
    pub fn requested(&self, request: &Requested<'_>) {
        let ask = request.ask;
        let method = ask.method().to_owned();
        let mut attributes = vec![
            KeyValue::new("http.request.method", method.clone()),
            KeyValue::new("url.scheme", ask.scheme().name()),
            KeyValue::new("server.address", ask.host().to_string()),
            KeyValue::new("server.port", i64::from(ask.port())),
        ];
        let failed = match request.came {
            Ok(status) => {
                attributes.push(KeyValue::new("http.response.status_code", i64::from(status)));
                (status >= 400).then(|| status.to_string())
            }
            Err(kind) => Some(kind.to_owned()),
        };
        attributes.extend(failed.clone().map(|kind| KeyValue::new("error.type", kind)));
        let mut span = SpanBuilder::from_name(method)
            .with_kind(SpanKind::Client)
            .with_start_time(request.began)
            .with_attributes(attributes)
            .start_with_context(&self.traces.tracer, &self.context);
        if let Some(kind) = failed {
            span.set_status(Status::error(kind));
        }
        span.end();
    }

    /// The guest's run has ended.
    pub fn ran(&self, usage: &Usage) {
        let Some(admitted) = self.admitted.get() else { return };
        let now = SystemTime::now();
        let runs = self.instantiated.get();
        self.child("instantiate", *admitted, *runs.unwrap_or(&now), []);
        if let Some(since) = runs {
            let used = [
                KeyValue::new("toolcell.fuel", number(usage.fuel)),
                KeyValue::new("toolcell.memory_peak_bytes", number(usage.memory_peak_bytes)),
            ];
            self.child("run", *since, now, used);
        }
    }

    /// Ends the trace with this outcome.
    pub fn end(&self, outcome: Outcome) {
        if self.ended.set(()).is_err() {
            return;
        }
        let span = self.context.span();
        span.set_attribute(KeyValue::new("toolcell.outcome", outcome.name()));
        if !matches!(outcome, Outcome::Ok | Outcome::InputRequired) {
            span.set_attribute(KeyValue::new("error.type", outcome.name()));
            span.set_status(Status::error(outcome.name()));
        }
        span.end();
    }

    fn child<const COUNT: usize>(
        &self,
        name: &'static str,
        since: SystemTime,
        until: SystemTime,
        attributes: [KeyValue; COUNT],
    ) {
        let span = SpanBuilder::from_name(name).with_start_time(since).with_attributes(attributes);
        let mut span = self.traces.tracer.build_with_context(span, &self.context);
        span.end_with_timestamp(until);
    }
}

impl Drop for CallTrace {
    /// A call that is dropped was cancelled.
    fn drop(&mut self) {
        self.end(Outcome::Cancelled);
    }
}

/// The client's span. Malformed contexts were already removed, but the trace state may still be
/// malformed.
fn remote(trace: &TraceContext) -> Option<SpanContext> {
    let mut fields = trace.traceparent.split('-').skip(1);
    let trace_id = TraceId::from_hex(fields.next()?).ok()?;
    let span_id = SpanId::from_hex(fields.next()?).ok()?;
    let flags = u8::from_str_radix(fields.next()?, 16).ok()?;
    let state = trace.tracestate.as_deref().and_then(|state| state.parse().ok()).unwrap_or(TraceState::NONE);
    let context = SpanContext::new(trace_id, span_id, TraceFlags::new(flags) & TraceFlags::SAMPLED, true, state);
    context.is_valid().then_some(context)
}

/// The host's span, with the trace state and baggage of its client.
fn local(span: &SpanContext, client: Option<&TraceContext>) -> TraceContext {
    let kept = client.map(|client| (client.tracestate.clone(), client.baggage.clone()));
    let (tracestate, baggage) = kept.unwrap_or_default();
    let flags = span.trace_flags().to_u8();
    let traceparent = format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id());
    TraceContext { traceparent, tracestate, baggage }
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default()
}

fn number(value: u64) -> Value {
    Value::I64(i64::try_from(value).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(traceparent: &str, tracestate: Option<&str>) -> TraceContext {
        let tracestate = tracestate.map(str::to_owned);
        TraceContext { traceparent: traceparent.to_owned(), tracestate, baggage: Some("a=b".to_owned()) }
    }

    #[test]
    fn the_clients_span_is_the_parent_as_far_as_it_is_one() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let read = remote(&context(parent, Some("x=1"))).unwrap();
        assert_eq!(read.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(read.span_id().to_string(), "b7ad6b7169203331");
        assert!(read.is_sampled() && read.is_remote());
        assert_eq!(read.trace_state().header(), "x=1");
        let odd = remote(&context(parent, Some("no state"))).unwrap();
        assert_eq!(odd.trace_state().header(), "", "a state that is none is left out");
        let not_sampled = remote(&context("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-fe", None)).unwrap();
        assert!(!not_sampled.is_sampled());
        for wrong in ["", "00", "00-x-y-z", "00-00000000000000000000000000000000-b7ad6b7169203331-01"] {
            assert_eq!(remote(&context(wrong, None)), None, "{wrong}");
        }
    }

    #[test]
    fn what_goes_on_names_the_hosts_span_and_keeps_the_rest() {
        let parent = context("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Some("x=1"));
        let span = SpanContext::new(
            remote(&parent).unwrap().trace_id(),
            SpanId::from_hex("00000000000000ff").unwrap(),
            TraceFlags::SAMPLED,
            false,
            TraceState::NONE,
        );
        let on = local(&span, Some(&parent));
        assert_eq!(on.traceparent, "00-0af7651916cd43dd8448eb211c80319c-00000000000000ff-01");
        assert_eq!((on.tracestate.as_deref(), on.baggage.as_deref()), (Some("x=1"), Some("a=b")));
    }
}
