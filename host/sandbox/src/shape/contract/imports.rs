//! The host's side of the contract's imports: progress, log, cancellation, request, asking,
//! updates. No WASI, no policy.
use crate::bindings::toolcell::mcp::{asking, cancellation, log, progress, request, types, updates};
use crate::caller::asking::{Answer, Asked, EndedByAsking, Inquiry, Kind, Refusal};
use crate::engine::duties;
use crate::wasi::state::CallState;

// Types alone: nothing to call.
impl types::Host for CallState {}

/// Bytes of a message up to which it is read through for secrets wherever the guest runs.
const SHORT_BYTES: usize = 4096;

/// Fuel of each byte of a message: it is read for secrets, and made safe to show.
const BYTE_FUEL: u64 = 8;

impl CallState {
    /// Takes the fuel that a message costs, and leaves a thread that it would keep for long.
    async fn spend_message(&mut self, message: &str) -> wasmtime::Result<()> {
        self.spend((message.len() as u64).saturating_mul(BYTE_FUEL))?;
        if message.len() > SHORT_BYTES {
            duties::leave().await;
        }
        Ok(())
    }
}

impl progress::Host for CallState {
    async fn report(&mut self, progress: f64, total: Option<f64>, message: Option<String>) -> wasmtime::Result<()> {
        self.spend_message(message.as_deref().unwrap_or_default()).await?;
        let message = message.as_deref().map(|message| self.capabilities().redactor().text(message));
        self.caller.progress(progress, total, message.as_deref());
        Ok(())
    }
}

impl log::Host for CallState {
    async fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        if self.log.charge(&message) {
            self.spend_message(&message).await?;
            self.caller.log(level, &self.capabilities().redactor().text(&message));
        }
        Ok(())
    }

    fn enabled(&mut self, level: log::Level) -> bool {
        self.caller.log_enabled(level)
    }
}

/// Longest address whose change is told: the longest that can be watched. Others have no listener.
const UPDATED_URI_BYTES_MAX: usize = 2_048;

impl updates::Host for CallState {
    async fn updated(&mut self, uri: String) -> wasmtime::Result<()> {
        self.spend_message(&uri).await?;
        if uri.len() <= UPDATED_URI_BYTES_MAX {
            self.caller.updated(&self.capabilities().redactor().text(&uri));
        }
        Ok(())
    }
}

impl cancellation::Host for CallState {
    fn is_cancelled(&mut self) -> bool {
        self.caller.is_cancelled()
    }
}

impl request::Host for CallState {
    fn trace(&mut self) -> Option<request::TraceContext> {
        self.caller.trace().map(|trace| request::TraceContext {
            traceparent: trace.traceparent,
            tracestate: trace.tracestate,
            baggage: trace.baggage,
        })
    }

    fn meta_json(&mut self) -> String {
        self.caller.meta_json()
    }

    fn extensions_json(&mut self) -> String {
        self.caller.extensions_json()
    }
}

impl asking::Host for CallState {
    fn supports(&mut self, kind: Kind) -> bool {
        self.asking.may_ask() && self.caller.supports(kind)
    }

    fn supports_sampling_tools(&mut self) -> bool {
        self.asking.may_ask() && self.caller.supports_sampling_tools()
    }

    async fn ask(&mut self, asks: Vec<Inquiry>) -> wasmtime::Result<Result<Vec<Answer>, Refusal>> {
        if let Err(refusal) = self.asking.charge(&asks) {
            return Ok(Err(refusal));
        }
        let redactor = self.capabilities().redactor();
        let asks: Vec<Inquiry> =
            asks.into_iter().map(|ask| Inquiry { key: ask.key, question: ask.question.redacted(redactor) }).collect();
        let Self { asking, caller, .. } = self;
        match asking.wait_for(async { caller.ask(asks).await }).await {
            None => Ok(Err(Refusal::TimedOut)),
            Some(Asked::Answered(answers)) => Ok(answers),
            Some(Asked::Ended(refused)) => Err(wasmtime::Error::new(EndedByAsking { refused })),
        }
    }
}
