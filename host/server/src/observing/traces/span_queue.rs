//! The bounded queue of spans for the collector, with counters by outcome. Batching, the sending
//! thread and the encoding are OpenTelemetry's own. It does not report spans that it drops, so this
//! queue prevents it from dropping any.
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use opentelemetry::Context;
use opentelemetry_otlp::SpanExporter as Otlp;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor};
use parking_lot::Mutex;

/// Spans in the queue. Each takes a kilobyte or two; a thousand calls have as many spans.
const QUEUE_MAX: usize = 4_096;

/// Spans sent in one batch.
const BATCH_MAX: usize = 512;

/// How long a span waits for its batch to fill.
const BATCH_TIME: Duration = Duration::from_secs(1);

/// Interval between warnings that the collector accepts nothing.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

/// Counters of spans by outcome.
#[derive(Debug, Default)]
pub struct SpanCounters {
    waiting: AtomicUsize,
    taken: AtomicU64,
    dropped: AtomicU64,
    refused: AtomicU64,
}

impl SpanCounters {
    /// Spans in the queue.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Spans that the collector took.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Spans dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Spans that were sent and that the collector refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Accepts spans while the queue has room.
pub struct SpanQueue {
    batches: BatchSpanProcessor,
    sent: Arc<SpanCounters>,
}

impl SpanQueue {
    pub fn new(exporter: Otlp, endpoint: &str, sent: &Arc<SpanCounters>) -> Self {
        let counted = CountingExporter {
            exporter,
            sent: Arc::clone(sent),
            endpoint: endpoint.to_owned(),
            warned: Mutex::default(),
        };
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE_MAX)
            .with_max_export_batch_size(BATCH_MAX)
            .with_scheduled_delay(BATCH_TIME);
        Self { batches: BatchSpanProcessor::new(counted, config.build()), sent: Arc::clone(sent) }
    }
}

impl fmt::Debug for SpanQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpanQueue").field("sent", &self.sent).finish_non_exhaustive()
    }
}

impl SpanProcessor for SpanQueue {
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

/// Counts spans that the collector accepts or refuses.
struct CountingExporter {
    exporter: Otlp,
    sent: Arc<SpanCounters>,
    endpoint: String,
    warned: Mutex<Option<Instant>>,
}

impl CountingExporter {
    fn report(&self, error: &dyn fmt::Display) {
        let mut warned = self.warned.lock();
        if warned.is_none_or(|warned| warned.elapsed() >= WARN_INTERVAL) {
            *warned = Some(Instant::now());
            tracing::warn!("{} does not accept traces; calls continue without them: {error}", self.endpoint);
        }
    }
}

impl fmt::Debug for CountingExporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountingExporter").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl SpanExporter for CountingExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        self.sent.waiting.fetch_sub(count, Ordering::Relaxed);
        let taken = self.exporter.export(batch).await;
        let counter = match &taken {
            Ok(()) => &self.sent.taken,
            Err(error) => {
                self.report(error);
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
