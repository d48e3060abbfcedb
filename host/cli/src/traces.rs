//! Traces of calls, sent to a collector by OTLP (OpenTelemetry). Must not hold: what the spans of a call say.
//!
//! A call never waits for the collector: its spans go into a queue with an end, past which they are dropped and counted. The
//! client's trace is continued where it sent one, and the guest's own requests can continue the host's.
mod call;
mod outlet;

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{Protocol, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use reqwest::blocking::Client;
use toolcell_policy::TracesPolicy;

use crate::exit::AtFault;
pub use call::{CallTrace, Subject};
use outlet::Outlet;
pub use outlet::Sent;

/// How long the collector has to take what it is sent.
const EXPORT_TIME: Duration = Duration::from_secs(5);

/// How long it has to be connected to.
const CONNECT_TIME: Duration = Duration::from_secs(2);

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

/// What sends to this endpoint: over TLS, where the machine's roots prove it.
fn client(endpoint: &str) -> reqwest::Result<Client> {
    // Where one is there already, it is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .timeout(EXPORT_TIME)
        .connect_timeout(CONNECT_TIME)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy();
    // A machine without roots may have a collector all the same.
    let client = if endpoint.starts_with("https:") { client } else { client.tls_certs_only([]) };
    client.build()
}

impl Traces {
    /// Sends what is sampled to the collector from now on.
    pub fn start(policy: &TracesPolicy, transport: &'static str) -> Result<Arc<Self>, AtFault> {
        let wrong = |error: &dyn std::error::Error| AtFault::new(format!("traces cannot be sent: {error}"));
        let client = client(policy.endpoint());
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(client.map_err(|error| wrong(&error))?)
            .with_endpoint(policy.endpoint())
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(EXPORT_TIME)
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
