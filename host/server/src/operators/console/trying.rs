//! Calls from the console: a tool is tried with all of its limits, as the caller `console`.
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use toolcell_audit::Outcome;
use toolcell_console::model::{TryResult, TryState};
use toolcell_console::{form, page};
use toolcell_mcp::{Call, CallContext, CallResult, Caller, Cancellation, Executor as _, ServedCatalog as _};

use super::form::Fields;
use super::gather::as_content;
use super::listen::ConnectionTime;
use super::reply::{self, Reply};
use super::service::{Console, Visit};
use crate::call::DENIALS_KEY;
use crate::catalog::Catalog;

/// The caller of these calls, for rules of `[callers]`.
const CALLER: &str = "console";

/// Time for the answer in addition to the call's own limits.
const BESIDE: Duration = Duration::from_secs(15);

/// Cancels the call when the person leaves.
#[derive(Default)]
pub(super) struct CancelledOnDrop(Cancellation);

impl CancelledOnDrop {
    pub(super) fn cancellation(&self) -> Cancellation {
        self.0.clone()
    }
}

impl Drop for CancelledOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Console {
    /// Calls the tool with these fields, and shows the result.
    pub(super) async fn try_tool(
        self: &Arc<Self>,
        visit: &Visit,
        name: &str,
        fields: Fields,
        time: &ConnectionTime,
        cancellation: Cancellation,
    ) -> Reply {
        let wanted = name.to_owned();
        let mut view = match self.aside(move |console| console.sources.tool(&wanted)).await {
            Ok(Some(view)) => view,
            Ok(None) => return reply::problem(StatusCode::NOT_FOUND, "There is no such tool.", None),
            Err(reply) => return reply,
        };
        let mut tried = TryState { fields: fields.all().to_vec(), ..TryState::default() };
        let came = match form::arguments(&view.input_schema, fields.all()) {
            Ok(arguments) => self.call(name, arguments, time, cancellation).await,
            Err(problem) => Err(problem),
        };
        let recorded = match &came {
            Ok(result) => Ok(result.outcome.as_str()),
            Err(problem) => Err(problem.as_str()),
        };
        self.record(&visit.session, "try", name, recorded);
        match came {
            Ok(result) => tried.result = Some(result),
            Err(problem) => tried.problem = Some(problem),
        }
        view.tried = tried;
        // The call may have been one of those that are recorded.
        view.recording = self.sources.recording_named(name).unwrap_or(view.recording);
        let frame = self.frame(visit, true);
        let made = self.aside(move |_| reply::page(StatusCode::OK, page::tool(&frame, &view))).await;
        made.unwrap_or_else(|reply| reply)
    }

    /// Runs one call on the threads of guests. `Err` is one sentence.
    async fn call(
        &self,
        name: &str,
        arguments: String,
        time: &ConnectionTime,
        cancellation: Cancellation,
    ) -> Result<TryResult, String> {
        let catalog = self.sources.catalog();
        let caller = Caller::new(CALLER, []);
        let is_seen = catalog.view(&caller).is_none_or(|view| view.find(name).is_some());
        let found = catalog.tools().find(name).map(|(index, _)| index).filter(|_| is_seen);
        let index = found.ok_or("No rule of [callers] lets the caller \"console\" call this tool.")?;
        let (_, limits) = catalog.tool_source(index).ok_or("There is no such tool.")?;
        let waits = [limits.queue_wait(), limits.ask_wait(), limits.deadline(), BESIDE];
        time.extend(waits.into_iter().fold(Duration::ZERO, Duration::saturating_add));
        let arguments = RawValue::from_string(arguments).map_err(|_| "The arguments are not JSON.")?;
        let context = Box::new(CallContext::outside(CALLER, caller, cancellation));
        let (tell, told) = oneshot::channel();
        let began = Instant::now();
        self.executor.run(Box::pin(async move {
            let ended = run(&catalog, Call { tool: index, arguments, context }).await;
            // The person may have left.
            let _ = tell.send(ended);
        }));
        let (mut result, began_call) = told.await.map_err(|_| "The call was not run.")?;
        result.took = began.elapsed();
        result.call = began_call;
        Ok(result)
    }
}

/// Denials of the call, as a client gets them: without secrets.
fn denials(result: &CallResult) -> Vec<String> {
    let told = result.meta.get(DENIALS_KEY).and_then(serde_json::Value::as_array);
    told.into_iter().flatten().filter_map(serde_json::Value::as_str).map(str::to_owned).collect()
}

/// The result and the number of a call.
async fn run(catalog: &Arc<Catalog>, call: Call) -> (TryResult, u64) {
    let (result, beside) = catalog.call_as_operator(call).await;
    let outcome = beside.outcome.unwrap_or(Outcome::InvalidInput);
    let shown = TryResult {
        outcome: outcome.name().to_owned(),
        good: outcome == Outcome::Ok,
        content: as_content(&result),
        structured: result.structured.as_ref().map(|value| value.get().to_owned()),
        denials: denials(&result),
        log: beside.printed.text,
        ..TryResult::default()
    };
    (shown, beside.id)
}
