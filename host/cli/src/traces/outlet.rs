//! The way of spans to the collector: a queue with an end, and counts of what became of them. The batches, the thread that
//! sends them and their encoding are OpenTelemetry's own; it does not tell how many it drops, so that none get so far that it
//! would have to.
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry::Context;
use opentelemetry_otlp::SpanExporter as Otlp;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor};

/// Spans that wait to be sent. Each takes a kilobyte or two; a thousand calls have as many.
const QUEUE_MAX: usize = 4_096;

/// Spans that are sent at once.
const BATCH_MAX: usize = 512;

/// How long a span waits for others to be sent with.
const BATCH_TIME: Duration = Duration::from_secs(1);

/// How often it is said that the collector takes nothing.
const MISSING_REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// What became of spans.
#[derive(Debug, Default)]
pub struct Sent {
    waiting: AtomicUsize,
    taken: AtomicU64,
    dropped: AtomicU64,
    refused: AtomicU64,
}

impl Sent {
    /// Those that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Those that the collector took.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Those for which the queue had no room.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Those that were sent, and the collector did not take.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Lets as many spans through as the queue has room for.
pub struct Outlet {
    batches: BatchSpanProcessor,
    sent: Arc<Sent>,
}

impl Outlet {
    pub fn new(exporter: Otlp, endpoint: &str, sent: &Arc<Sent>) -> Self {
        let counted =
            Counted { exporter, sent: Arc::clone(sent), endpoint: endpoint.to_owned(), told: Mutex::default() };
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE_MAX)
            .with_max_export_batch_size(BATCH_MAX)
            .with_scheduled_delay(BATCH_TIME);
        Self { batches: BatchSpanProcessor::new(counted, config.build()), sent: Arc::clone(sent) }
    }
}

impl fmt::Debug for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outlet").field("sent", &self.sent).finish_non_exhaustive()
    }
}

impl SpanProcessor for Outlet {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.sent.waiting.fetch_add(1, Ordering::Relaxed) < QUEUE_MAX {
            return self.batches.on_end(span);
        }
        self.sent.waiting.fetch_sub(1, Ordering::Relaxed);
        self.sent.dropped.fetch_add(1, Ordering::Relaxed);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// Counts what the collector takes.
struct Counted {
    exporter: Otlp,
    sent: Arc<Sent>,
    endpoint: String,
    told: Mutex<Option<Instant>>,
}

impl Counted {
    fn tell(&self, error: &dyn fmt::Display) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= MISSING_REPORT_INTERVAL) {
            *told = Some(Instant::now());
            tracing::warn!("{} takes no traces, and calls go on without: {error}", self.endpoint);
        }
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl SpanExporter for Counted {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        self.sent.waiting.fetch_sub(count, Ordering::Relaxed);
        let taken = self.exporter.export(batch).await;
        let counter = match &taken {
            Ok(()) => &self.sent.taken,
            Err(error) => {
                self.tell(error);
                &self.sent.refused
            }
        };
        counter.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
        taken
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
