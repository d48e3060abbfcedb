//! How a run of calls begins, pauses and goes on over the rounds of its client's questions.
use std::sync::Arc;

use toolcell_audit::Outcome;
use toolcell_mcp::{Call, CallAsking, Caller, ContentKind};
use toolcell_policy::CODE;

use super::StartedCall;
use super::execute::EndedCall;
use super::run::NestedRun;
use crate::state::paused_runs::RunNotKept;

/// The answer to a round whose log is missing.
const NO_LOG: &str = "this run cannot go on: it went on already, its time is over, or the host that kept its log is \
                      gone. Call the tool again without requestState; calls that it made would then be made again";

impl StartedCall<'_> {
    /// The run of this call, if its tool may call others: that of the call above it, that of an
    /// earlier round, or a new one. `Err` is the answer to a call that must not run.
    pub(super) async fn run_of(&self, call: &Call) -> Result<Option<Arc<NestedRun>>, Box<EndedCall>> {
        if self.target.capabilities.grants().calls().is_empty() {
            return Ok(None);
        }
        if let Some(lineage) = &self.lineage {
            return Ok(Some(Arc::clone(&lineage.run)));
        }
        let services = &self.catalog.services;
        let asking = &call.context.asking;
        let bounds = asking.ends_calls().then(|| services.paused.policy.clone());
        let component = &self.target.component.digest;
        let Some(name) = asking.note() else { return Ok(Some(Arc::new(NestedRun::new(component, bounds)))) };
        let ended = |outcome, text: String| Box::new(EndedCall::refused(outcome, text));
        let taken = services.paused.take(services.state.as_ref(), call.context.caller.name(), &name).await;
        let taken = taken.map_err(|away| ended(Outcome::StateAway, away.to_string()))?;
        let taken = taken.ok_or_else(|| ended(Outcome::NotApproved, NO_LOG.to_owned()))?;
        let run = NestedRun::resumed(component, bounds, taken).map_err(|text| ended(Outcome::NotApproved, text))?;
        self.record.asks(self.target).resumed(run.logged());
        Ok(Some(Arc::new(run)))
    }

    /// The end of a client's call that made calls. One that asks is kept for the next round; one
    /// that was cut short in such a round may be asked for again.
    pub(super) async fn settled(
        &self,
        run: &NestedRun,
        asking: &CallAsking,
        caller: &Caller,
        ended: EndedCall,
    ) -> EndedCall {
        run.quiet().await;
        if let Some(text) = run.diverged() {
            asking.withdraw();
            return EndedCall { detail: text.clone(), ..EndedCall::refused(Outcome::ToolError, text) };
        }
        match ended.outcome {
            Outcome::InputRequired => match self.pause(run, asking, caller).await {
                Ok(()) => ended,
                Err((outcome, text)) => {
                    asking.withdraw();
                    EndedCall { detail: text.clone(), ..EndedCall::refused(outcome, text) }
                }
            },
            Outcome::Ok | Outcome::ToolError | Outcome::InvalidOutput => ended,
            _ => {
                let services = &self.catalog.services;
                let Some((earlier, log)) = run.take_earlier().zip(run.written()) else {
                    return self.with_calls(run.made(), ended);
                };
                services.paused.put_back(services.state.as_ref(), caller.name(), earlier.with(log)).await;
                ended
            }
        }
    }

    /// The end of a call that was cut short, with what a client has to know before it calls again.
    fn with_calls(&self, made: u32, mut ended: EndedCall) -> EndedCall {
        let mut said = String::new();
        if ended.outcome == Outcome::Deadline {
            said.push_str(&format!(". {}", whose_time(self.target.component.name())));
        }
        match made {
            0 => {}
            1 => said.push_str(". The call that it made is not undone"),
            made => said.push_str(&format!(". The {made} calls that it made are not undone")),
        }
        if let Some(ContentKind::Text(text)) = ended.result.content.first_mut().map(|first| &mut first.kind) {
            text.push_str(&said);
        }
        ended
    }

    /// Keeps the log of a run, and gives the client its questions.
    async fn pause(&self, run: &NestedRun, asking: &CallAsking, caller: &Caller) -> Result<(), (Outcome, String)> {
        let Some(log) = run.written() else { return Ok(()) };
        let over = |why: String| (Outcome::LimitExceeded, format!("this run cannot wait for a person: {why}"));
        if let Some(why) = run.unkept() {
            return Err(over(why));
        }
        let within = asking.answered_within();
        let kept = self.catalog.services.paused.keep(caller.name(), &log, within).await;
        let name = kept.map_err(|problem| match problem {
            RunNotKept::Full(why) => over(why.to_owned()),
            RunNotKept::Away(away) => (Outcome::StateAway, away.to_string()),
        })?;
        asking.settle(&name).map_err(over)
    }
}

/// Which limit ended a call that makes calls, and where it is set.
pub(super) fn whose_time(component: &str) -> String {
    let table = match component {
        CODE => CODE.to_owned(),
        name => format!("components.{name}"),
    };
    format!("\"deadline\" in [{table}.limits] is the time of all of its calls together")
}
