//! The host's side of the contract's imports: progress, log, cancellation, request, asking,
//! calling, updates. No WASI, no policy.
use toolcell_wall::asking::{AskResult, EndedByAsking};
use toolcell_wall::nested::WantedCall;

use super::Convert;
use crate::bindings::toolcell::mcp::{asking, calling, cancellation, log, progress, request, types, updates};
use crate::run::calling::CallingFailed;
use crate::wasi::state::CallState;

/// The end of a call, as the guest gets it.
type CallEnd = Result<calling::Called, calling::NotCalled>;

// Only types, no functions.
impl types::Host for CallState {}

/// Fuel of each byte of a message: the host searches it for secrets, and makes it safe to show.
const BYTE_FUEL: u64 = 8;

impl CallState {
    /// Takes the fuel that a message costs.
    fn spend_message(&mut self, message: &str) -> wasmtime::Result<()> {
        self.spend((message.len() as u64).saturating_mul(BYTE_FUEL))
    }
}

impl progress::Host for CallState {
    async fn report(&mut self, progress: f64, total: Option<f64>, message: Option<String>) -> wasmtime::Result<()> {
        self.spend_message(message.as_deref().unwrap_or_default())?;
        self.caller.progress(progress, total, message.as_deref());
        Ok(())
    }
}

impl log::Host for CallState {
    async fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        if self.log.charge(&message) {
            self.spend_message(&message)?;
            self.caller.log(level.convert(), &message);
        }
        Ok(())
    }

    fn enabled(&mut self, level: log::Level) -> bool {
        self.caller.log_enabled(level.convert())
    }
}

/// Longest address of a resource whose updates are announced: clients cannot subscribe to a longer
/// one.
const UPDATED_URI_BYTES_MAX: usize = 2_048;

impl updates::Host for CallState {
    async fn updated(&mut self, uri: String) -> wasmtime::Result<()> {
        self.spend_message(&uri)?;
        if uri.len() <= UPDATED_URI_BYTES_MAX {
            self.caller.updated(&uri);
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
        self.caller.trace().convert()
    }

    fn meta_json(&mut self) -> String {
        self.caller.meta_json()
    }

    fn extensions_json(&mut self) -> String {
        self.caller.extensions_json()
    }
}

impl calling::Host for CallState {
    fn stand_at(&mut self, places: Vec<Option<calling::Place>>) {
        self.calling().0.stand_at(places.convert());
    }

    async fn run_began(&mut self) -> wasmtime::Result<u64> {
        self.when_run_began().await
    }

    async fn call(&mut self, tool: String, arguments_json: String) -> wasmtime::Result<CallEnd> {
        let ends = self.call_tools(vec![wanted(tool, arguments_json)]).await?;
        ends.into_iter().next().map(Convert::convert).ok_or_else(|| CallingFailed.into())
    }

    async fn call_all(&mut self, calls: Vec<calling::Wanted>) -> wasmtime::Result<Vec<CallEnd>> {
        let calls = calls.into_iter().map(|call| wanted(call.tool, call.arguments_json));
        Ok(self.call_tools(calls.collect()).await?.convert())
    }

    async fn find(&mut self, words: String, limit: u32) -> wasmtime::Result<Vec<calling::Found>> {
        Ok(self.find_tools(words, limit).await?.convert())
    }

    async fn describe(&mut self, tool: String) -> wasmtime::Result<Option<types::Tool>> {
        Ok(self.describe_tool(tool).await?.convert())
    }
}

/// A call whose place is not known yet.
const fn wanted(tool: String, arguments_json: String) -> WantedCall {
    WantedCall { tool, arguments_json, place: None }
}

impl asking::Host for CallState {
    fn supports(&mut self, kind: asking::Kind) -> bool {
        self.asking.may_ask() && self.caller.supports(kind.convert())
    }

    fn supports_sampling_tools(&mut self) -> bool {
        self.asking.may_ask() && self.caller.supports_sampling_tools()
    }

    async fn ask(
        &mut self,
        asks: Vec<asking::Inquiry>,
    ) -> wasmtime::Result<Result<Vec<asking::Answer>, asking::Refusal>> {
        let asks = asks.convert();
        if let Err(refusal) = self.asking.charge(&asks) {
            return Ok(Err(refusal.convert()));
        }
        let Self { asking, caller, .. } = self;
        match asking.wait_for(async { caller.ask(asks).await }).await {
            None => Ok(Err(asking::Refusal::TimedOut)),
            Some(AskResult::Answered(answers)) => Ok(answers.convert()),
            Some(AskResult::Ended(refused)) => Err(wasmtime::Error::new(EndedByAsking { refused })),
        }
    }
}
