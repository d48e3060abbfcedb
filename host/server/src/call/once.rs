//! Requests with an idempotency key: a client may send one again, and gets the first answer instead
//! of a second run.
use std::time::Duration;

use serde::Deserialize;
use toolcell_audit::Outcome;
use toolcell_mcp::{Call, CallResult};
use toolcell_shared::{Begun, Claim, REQUEST_ANSWER_BYTES_MAX, Request, SharedState};

use super::StartedCall;
use super::execute::EndedCall;

/// The key of a request, in its `_meta`.
const REQUEST_KEY: &str = "toolcell/requestKey";

/// The last part of it, which JSON writers never escape. A request without it is not parsed for the
/// key.
const ITS_END: &str = "requestKey";

/// The longest key, in bytes: a UUID has 36.
const KEY_BYTES_MAX: usize = 128;

/// How long an answer is kept. A client that lost its connection sends again at once.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// How long after its limits a request counts as running, if its replica reports nothing.
const RUNS_ON: Duration = Duration::from_secs(10);

/// A running request with a key.
pub(super) struct Once<'a> {
    state: &'a dyn SharedState,
    request: Claim,
}

#[derive(Deserialize)]
struct Keyed {
    #[serde(rename = "toolcell/requestKey")]
    key: Option<serde_json::Value>,
}

impl StartedCall<'_> {
    /// Begins the request, if it has a key. `Err` is the answer if it must not run.
    pub(super) async fn once(&self, call: &Call) -> Result<Option<Once<'_>>, Box<EndedCall>> {
        let Some(key) =
            key(&call.context.meta_json).map_err(|text| Box::new(EndedCall::refused(Outcome::InvalidInput, text)))?
        else {
            return Ok(None);
        };
        let state = self.catalog.services.state.as_ref();
        let caller = call.context.caller.name();
        let name = [self.name(), &key].join("\n");
        let request = Request { caller, name: &name, what: call.arguments.get() };
        let begun = state.begin(&request, self.runs_at_most()).await;
        let (outcome, text) = match begun {
            Ok(Begun::Now(request)) => return Ok(Some(Once { state, request })),
            Ok(Begun::Ended(answer)) => return Err(Box::new(again(&answer))),
            Ok(Begun::Runs) => (Outcome::Busy, "this request runs already; try again".to_owned()),
            Ok(Begun::NoRoom) => (
                Outcome::Busy,
                "too many requests with keys are kept for this caller, or for all; try again later".to_owned(),
            ),
            Ok(Begun::Other) => {
                let text = format!("this {REQUEST_KEY} was used with other arguments; take a new one");
                (Outcome::InvalidInput, text)
            }
            Err(away) => (Outcome::StateAway, away.to_string()),
        };
        Err(Box::new(EndedCall::refused(outcome, text)))
    }

    fn runs_at_most(&self) -> Duration {
        let limits = &self.target.limits;
        [limits.queue_wait(), limits.ask_wait(), RUNS_ON].into_iter().fold(limits.deadline(), Duration::saturating_add)
    }
}

impl Once<'_> {
    /// Keeps the tool's answer. A request that ended without one may run again.
    pub(super) async fn ended(self, ended: &EndedCall) {
        let is_answer = matches!(ended.outcome, Outcome::Ok | Outcome::ToolError) && ended.unfit.is_none();
        let answer = if is_answer { written(&ended.result) } else { String::new() };
        if let Err(away) = self.state.end(self.request, &answer, KEPT_FOR).await {
            tracing::warn!("the answer to a request with a key is not kept: {}", away.internal());
        }
    }
}

fn written(result: &CallResult) -> String {
    let answer = serde_json::to_string(result).ok().filter(|answer| answer.len() <= REQUEST_ANSWER_BYTES_MAX);
    answer.unwrap_or_else(|| {
        let text = "this request was answered before, and the answer was too large to be kept";
        serde_json::to_string(&CallResult::error(text)).unwrap_or_default()
    })
}

/// The kept answer of an earlier request.
fn again(answer: &str) -> EndedCall {
    match serde_json::from_str(answer) {
        Ok(result) => EndedCall { result, ..EndedCall::refused(Outcome::Repeated, String::new()) },
        Err(error) => EndedCall::refused(Outcome::HostError, format!("the kept answer cannot be read: {error}")),
    }
}

/// The key in this `_meta`, if any. `Err` says why it is malformed.
fn key(meta_json: &str) -> Result<Option<String>, String> {
    if !meta_json.contains(ITS_END) {
        return Ok(None);
    }
    match serde_json::from_str::<Keyed>(meta_json).ok().and_then(|keyed| keyed.key) {
        None => Ok(None),
        Some(serde_json::Value::String(key)) if (1..=KEY_BYTES_MAX).contains(&key.len()) => Ok(Some(key)),
        Some(_) => Err(format!("{REQUEST_KEY} must be a text of 1 to {KEY_BYTES_MAX} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_short_text() {
        for (meta, expected) in [
            ("{}", Ok(None)),
            (r#"{"a/requestKey": 1}"#, Ok(None)),
            (r#"{"toolcell/requestKey": "k"}"#, Ok(Some("k"))),
            (r#"{"toolcell\/requestKey": "é\n"}"#, Ok(Some("é\n"))),
            (r#"{"toolcell/requestKey": ""}"#, Err(())),
            (r#"{"toolcell/requestKey": 7}"#, Err(())),
        ] {
            assert_eq!(key(meta).map_err(drop), expected.map(|key: Option<&str>| key.map(str::to_owned)), "{meta}");
        }
        let with = |chars| format!(r#"{{"toolcell/requestKey": "{}"}}"#, "x".repeat(chars));
        assert!(key(&with(KEY_BYTES_MAX)).is_ok() && key(&with(KEY_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_kept_answer_is_the_answer_and_a_large_one_is_an_error() {
        let mut result = CallResult::text("é\u{0}\"");
        result.structured = serde_json::value::RawValue::from_string("{\"n\": 1.50}".to_owned()).ok();
        result.meta.insert("a".to_owned(), 1.into());
        let ended = again(&written(&result));
        assert_eq!(format!("{:?}", ended.result), format!("{result:?}"));
        assert_eq!(ended.outcome, Outcome::Repeated);
        let large = again(&written(&CallResult::text("x".repeat(REQUEST_ANSWER_BYTES_MAX))));
        assert!(large.result.is_error && format!("{:?}", large.result).contains("too large to be kept"));
    }
}
