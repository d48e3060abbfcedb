//! Traces of calls, sent to a collector by OTLP (OpenTelemetry). Must not hold: the attributes of a
//! call's spans.
//!
//! A call never waits for the collector: its spans go into a bounded queue. Spans beyond the bound
//! are dropped and counted. A trace of the client is continued, and the guest's own requests can
//! continue the host's.
mod call;
mod span_queue;

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
use toolcell_outbound::{OutboundBounds, OutboundClient};
use toolcell_policy::TracesPolicy;

use crate::error::StartError;
pub use call::{CallTrace, TracedCall};
pub use span_queue::SpanCounters;
use span_queue::SpanQueue;

/// Bounds of sending one batch. Collectors answer with a few bytes.
const BOUNDS: OutboundBounds =
    OutboundBounds { connect: Duration::from_secs(2), whole: Duration::from_secs(5), body_bytes: 64 * 1024 };

/// Time that an ending process waits for queued spans.
const FLUSH_TIME: Duration = Duration::from_secs(2);

/// Starts spans and sends them.
pub struct Traces {
    tracer: SdkTracer,
    provider: SdkTracerProvider,
    /// Counters of spans by outcome.
    pub sent: Arc<SpanCounters>,
    /// Transport of clients by OpenTelemetry's name: `pipe` or `tcp`.
    transport: &'static str,
}

/// Sends to the collector. The thread that exports spans blocks in it, so it has a runtime of its
/// own.
struct CollectorClient {
    client: OutboundClient,
    runtime: Runtime,
}

impl CollectorClient {
    fn new(endpoint: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let client = OutboundClient::new([endpoint], BOUNDS)?;
        Ok(Self { client, runtime: Builder::new_current_thread().enable_all().build()? })
    }
}

impl fmt::Debug for CollectorClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectorClient").finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        Ok(self.runtime.block_on(self.client.send(request))?)
    }
}

impl Traces {
    /// Starts sending sampled spans to the collector.
    pub fn start(policy: &TracesPolicy, transport: &'static str) -> Result<Arc<Self>, StartError> {
        let wrong = |error: &dyn std::error::Error| StartError::refused(format!("traces cannot be sent: {error}"));
        let sender = CollectorClient::new(policy.endpoint()).map_err(|error| wrong(error.as_ref()))?;
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(sender)
            .with_endpoint(policy.endpoint())
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(BOUNDS.whole)
            .build()
            .map_err(|error| wrong(&error))?;
        let sent = Arc::<SpanCounters>::default();
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name(policy.service().to_owned()).with_attribute(version);
        let provider = SdkTracerProvider::builder()
            .with_span_processor(SpanQueue::new(exporter, policy.endpoint(), &sent))
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(policy.sample()))))
            .with_resource(resource.build())
            .build();
        let scope = InstrumentationScope::builder("toolcell").with_version(env!("CARGO_PKG_VERSION")).build();
        let tracer = provider.tracer_with_scope(scope);
        Ok(Arc::new(Self { tracer, provider, sent, transport }))
    }

    /// Sends the queued spans, within a bounded time.
    pub fn end(&self) {
        if let Err(error) = self.provider.shutdown_with_timeout(FLUSH_TIME) {
            tracing::warn!("not all traces were sent: {error}");
        }
    }
}
