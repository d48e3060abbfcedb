//! The host's side of the contract's imports: progress, log, cancellation, request. No WASI, no policy.
use crate::bindings::toolcell::mcp::{cancellation, log, progress, request, types};
use crate::state::CallState;

// Types alone: nothing to call.
impl types::Host for CallState {}

impl progress::Host for CallState {
    fn report(&mut self, progress: f64, total: Option<f64>, message: Option<String>) {
        let message = message.as_deref().map(|message| self.reach().redactor().text(message));
        self.caller.progress(progress, total, message.as_deref());
    }
}

impl log::Host for CallState {
    fn write(&mut self, level: log::Level, message: String) {
        if self.log.charge(message.len()) {
            self.caller.log(level, &self.reach().redactor().text(&message));
        }
    }

    fn enabled(&mut self, level: log::Level) -> bool {
        self.caller.log_enabled(level)
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
}
