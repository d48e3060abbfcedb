//! Getting a prompt of the manifest itself: rates, records and limits as for any call, but no
//! guest.
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use toolcell_audit::{Outcome, Usage};
use toolcell_mcp::{Call, CallResult, CheckedResult, Patience, PromptParts, Role};
use toolcell_policy::Limit;
use toolcell_sandbox::CallFailure;

use super::record::{CallRecord, CallSource, CallStart, log_call};
use crate::catalog::{Catalog, TEXTS, TextPrompt, take_rates};

impl Catalog {
    /// Records the start, counts against the rates, puts the arguments into the text, records the
    /// end.
    pub(super) async fn get_text(&self, text: &TextPrompt, call: Call) -> CheckedResult {
        let id = self.services.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let source = CallSource { name: TEXTS, digest: &text.digest, policy_digest: &text.digest };
        let generation = self.tools.generation();
        let tool = &text.entry;
        let start = CallStart { id, generation, tool, source, redactor: None, is_alerting: false, lineage: None };
        let record = match CallRecord::begin(&self.services, &start, &call, &text.meters) {
            Ok(record) => record,
            Err(error) => {
                self.services.tally.count(Outcome::HostError);
                text.meters.outcomes.count(Outcome::HostError);
                log_call!(error, start.name(&call), "refused: the audit cannot be written: {error}");
                return CheckedResult::error("refused: the host cannot record the call in its audit");
            }
        };
        let (outcome, result) = self.text_in_turn(text, &call).await;
        let bytes = result.content.first().map_or(0, |content| match &content.kind {
            toolcell_mcp::ContentKind::Text(text) => text.len() as u64,
            _ => 0,
        });
        let usage = Usage { output_bytes: if outcome == Outcome::Ok { bytes } else { 0 }, ..Usage::default() };
        self.services.tally.count(outcome);
        log_call!(debug, start.name(&call), "ended: {}", outcome.name());
        record.end(outcome, usage, "");
        text.entry.finish(result, &Patience::default()).blaming_arguments(outcome == Outcome::InvalidInput)
    }

    async fn text_in_turn(&self, text: &TextPrompt, call: &Call) -> (Outcome, CallResult) {
        let over = |limit| {
            let failure = CallFailure::over(limit, &text.limits);
            (failure.outcome(), CallResult::error(failure.to_string()))
        };
        if call.arguments.get().len() as u64 > text.limits.arguments_bytes() {
            return over(Limit::Arguments);
        }
        let caller = &call.context.caller;
        let rates = self.visibility.rights(caller).rates();
        let cancelled = call.context.cancellation.clone();
        let taken = tokio::select! {
            biased;
            taken = take_rates(self.services.state.as_ref(), caller.name(), rates, &text.admission) => taken,
            () = cancelled.cancelled() => return (Outcome::Cancelled, CallResult::error("the call was cancelled")),
        };
        if let Err(refusal) = taken {
            return (refusal.outcome(), CallResult::error(refusal.to_string()));
        }
        // The protocol has checked that these are texts.
        let given: BTreeMap<String, String> = serde_json::from_str(call.arguments.get()).unwrap_or_default();
        if text.text.bytes_with(&given) > text.limits.output_bytes() {
            return over(Limit::Output);
        }
        let said = CallResult::text(text.text.with(&given));
        let prompt = PromptParts { description: None, roles: vec![Role::User] };
        (Outcome::Ok, CallResult { prompt, ..said })
    }
}
