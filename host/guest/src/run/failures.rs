//! Errors of the engine and of host functions → the failure of a call.
use toolcell_policy::{Limit, Limits};
use wasmtime::Trap;
use wasmtime_wasi::I32Exit;

use crate::recording::EndOfReplay;
use crate::run::calling::CallingFailed;
use crate::shape::program;
use crate::wasi::keyvalue::StateFailed;
use crate::wasi::state::CallState;
use toolcell_wall::asking::EndedByAsking;
use toolcell_wall::failure::{CallFailure, LimitReached};

/// Why an async guest cannot go on.
const DEADLOCK: &str =
    "it waits for ever: each of its tasks waits for something that no other task and no host function will do";

/// Why an async guest has no answer.
const NO_RESULT: &str = "its async function ended without a result (it did not call task.return)";

/// The failure of a call that ended with this error. `state` knows which limits refused the guest
/// something before.
pub(crate) fn sort(error: &wasmtime::Error, state: &CallState, limits: &Limits) -> CallFailure {
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return CallFailure::Exited { status: exit.0 };
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return sort_trap(*trap, error, state, limits);
    }
    if let Some(EndOfReplay(end)) = error.downcast_ref() {
        return CallFailure::Replayed(end.clone());
    }
    if let Some(ended) = error.downcast_ref::<EndedByAsking>() {
        return ended.into();
    }
    if let Some(LimitReached(limit)) = error.downcast_ref() {
        return CallFailure::over(*limit, limits);
    }
    if let Some(failed) = error.downcast_ref::<StateFailed>() {
        return failed.into();
    }
    if let Some(failed) = error.downcast_ref::<CallingFailed>() {
        return failed.into();
    }
    if state.limiter.refused() {
        return CallFailure::over(Limit::Memory, limits);
    }
    sort_text(error, limits)
}

/// Sorts errors whose types wasmtime keeps private. A fixture in tests/ triggers each, so a changed
/// text is noticed.
fn sort_text(error: &wasmtime::Error, limits: &Limits) -> CallFailure {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    let says = |words: &str| causes.iter().any(|cause| cause.contains(words));
    if says("fuel allocated for hostcalls has been exhausted") {
        return CallFailure::over(Limit::HostData, limits);
    }
    if says("store handle limit exceeded") || says("resource table has no free keys") {
        return CallFailure::over(Limit::Handles, limits);
    }
    if says("requested len") {
        return CallFailure::over(Limit::Random, limits);
    }
    if says("total size of fields exceeds limit") || says("too many fields in the field map") {
        return CallFailure::over(Limit::HttpHeaderBytes, limits);
    }
    if says("resource limit exceeded") {
        return CallFailure::Parts;
    }
    CallFailure::Trapped { reason: reason(causes.last().map_or("", String::as_str)), detail: format!("{error:?}") }
}

fn sort_trap(trap: Trap, error: &wasmtime::Error, state: &CallState, limits: &Limits) -> CallFailure {
    match trap {
        Trap::OutOfFuel => CallFailure::over(Limit::Fuel, limits),
        Trap::StackOverflow => CallFailure::StackOverflow,
        _ if state.limiter.refused() => CallFailure::over(Limit::Memory, limits),
        _ => {
            let mut reason = match trap {
                Trap::AsyncDeadlock => DEADLOCK.to_owned(),
                Trap::NoAsyncResult => NO_RESULT.to_owned(),
                // wasmtime appends a longer explanation to some traps; the first line names them.
                _ => reason(&trap.to_string()),
            };
            // Runtimes print the reason before they trap.
            let said = program::plain(&state.last_words());
            if !said.is_empty() {
                reason = format!("{reason}; it last printed:\n{said}");
            }
            CallFailure::Trapped { reason, detail: format!("{error:?}") }
        }
    }
}

/// The first line of a trap's text, without the words that every trap begins with.
fn reason(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("wasm trap: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn a_trap_is_named_once() {
        assert_eq!(reason("wasm trap: integer divide by zero\nmore"), "integer divide by zero");
    }
}
