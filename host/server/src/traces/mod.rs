//! Traces of calls, sent to a collector by OTLP (OpenTelemetry). Must not hold: what the spans of a call say.
//!
//! A call never waits for the collector: its spans go into a queue with an end, past which they are dropped and counted. The
//! client's trace is continued where it sent one, and the guest's own requests can continue the host's.
mod call;
mod outlet;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use tokio::runtime::{Builder, Runtime};
use toolcell_policy::TracesPolicy;

use crate::error::StartError;
use crate::outgoing::{Bounds, Outgoing};
pub use call::{CallTrace, Subject};
use outlet::Outlet;
pub use outlet::Sent;

/// What sending one batch may take. Collectors answer with a few bytes.
const BOUNDS: Bounds = Bounds { connect: Duration::from_secs(2), whole: Duration::from_secs(5), body_bytes: 64 * 1024 };

/// How long a process that ends waits for what is still to be sent.
const FLUSH_TIME: Duration = Duration::from_secs(2);

/// Where spans begin.
pub struct Traces {
    tracer: SdkTracer,
    provider: SdkTracerProvider,
    sent: Arc<Sent>,
    /// How clients are connected, as OpenTelemetry names it: `pipe` or `tcp`.
    transport: &'static str,
}

/// Sends to the collector. The thread that exports spans waits in it, so it has a runtime of its own.
struct Sender {
    outgoing: Outgoing,
    runtime: Runtime,
}

impl Sender {
    fn new(endpoint: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let outgoing = Outgoing::new([endpoint], BOUNDS)?;
        Ok(Self { outgoing, runtime: Builder::new_current_thread().enable_all().build()? })
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        Ok(self.runtime.block_on(self.outgoing.send(request))?)
    }
}

impl Traces {
    /// Sends what is sampled to the collector from now on.
    pub fn start(policy: &TracesPolicy, transport: &'static str) -> Result<Arc<Self>, StartError> {
        let wrong = |error: &dyn std::error::Error| StartError::refused(format!("traces cannot be sent: {error}"));
        let sender = Sender::new(policy.endpoint()).map_err(|error| wrong(error.as_ref()))?;
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(sender)
            .with_endpoint(policy.endpoint())
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(BOUNDS.whole)
            .build()
            .map_err(|error| wrong(&error))?;
        let sent = Arc::<Sent>::default();
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name(policy.service().to_owned()).with_attribute(version);
        let provider = SdkTracerProvider::builder()
            .with_span_processor(Outlet::new(exporter, policy.endpoint(), &sent))
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(policy.sample()))))
            .with_resource(resource.build())
            .build();
        let scope = InstrumentationScope::builder("toolcell").with_version(env!("CARGO_PKG_VERSION")).build();
        let tracer = provider.tracer_with_scope(scope);
        Ok(Arc::new(Self { tracer, provider, sent, transport }))
    }

    /// What became of the spans.
    pub fn sent(&self) -> &Arc<Sent> {
        &self.sent
    }

    /// Sends what is still to be sent, for a while.
    pub fn end(&self) {
        if let Err(error) = self.provider.shutdown_with_timeout(FLUSH_TIME) {
            tracing::warn!("not all traces were sent: {error}");
        }
    }
}
