//! A recorded call, run again.
use std::sync::Arc;

use toolcell_sandbox::contract::GuestResult;
use toolcell_sandbox::{CallFailure, NoCaller, ReplayEnd, ReplayQuestion, SandboxCall, Tape};

use crate::catalog::{CallTarget, Catalog, targets};
use crate::recordings::{RecordedUse, Recording, standing_in};

/// What came of a replay.
#[derive(Debug)]
pub struct Replayed {
    /// The answer, or why there is none.
    pub outcome: Result<GuestResult, CallFailure>,
    /// What it used.
    pub used: RecordedUse,
}

impl Replayed {
    /// True if the host ended the call where it ended the recorded one.
    #[must_use]
    pub fn is_ended_as_recorded(&self) -> bool {
        matches!(self.outcome, Err(CallFailure::Replayed(ReplayEnd::Ended { .. })))
    }

    /// What another component than the recorded one asked for, which the recording does not have.
    #[must_use]
    pub fn questions(&self) -> &[ReplayQuestion] {
        match &self.outcome {
            Err(CallFailure::Replayed(ReplayEnd::Asks(questions))) => questions,
            _ => &[],
        }
    }

    /// The question that the recording does not answer, and the one that it expects there.
    #[must_use]
    pub fn difference(&self) -> Option<(Option<&str>, Option<&str>)> {
        match &self.outcome {
            Err(CallFailure::Replayed(ReplayEnd::Differs { asked, expected })) => {
                Some((asked.as_deref(), expected.as_deref()))
            }
            _ => None,
        }
    }
}

impl Catalog {
    /// Runs a recorded call again, against what the recording has. The component reaches nothing.
    /// Where it is not the recorded one, it may ask in another order.
    ///
    /// # Errors
    /// One sentence: the call cannot be run.
    pub async fn replay(self: &Arc<Self>, recording: &Recording, is_recorded: bool) -> Result<Replayed, String> {
        let head = &recording.head;
        if let Some(why) = recording.why_cut() {
            return Err(format!("the recording is not whole: {why}"));
        }
        let is_called =
            |target: &&Arc<CallTarget>| target.component.name() == head.component && target.name == head.tool;
        let target = targets(&self.entries).find(is_called);
        let target = target.ok_or_else(|| format!("the component has no tool {:?}", head.tool))?;
        let run = self.walled.of_target(target).ok_or("the tool has no sandbox process")?;
        let mut entries = recording.entries.clone();
        standing_in::fill(&head.secrets, &mut entries)?;
        let tape = Tape::replaying(&entries, is_recorded).map_err(|error| error.to_string())?;
        let limits = target.component.policy().returning(&target.limits);
        let call = SandboxCall {
            tool: &target.name,
            arguments_json: &head.arguments,
            is_conformed: head.is_conformed,
            limits: &limits,
            capabilities: &target.capabilities,
            caller: Arc::new(NoCaller),
            kept: None,
            tape: Some(&tape),
            uses: None,
        };
        let (group, place) = run;
        let report = group.call_tool(place, call).await;
        let outcome = match report.outcome {
            Ok(result) => Ok(standing_in::marked_result(&head.secrets, result)),
            Err(failure) => Err(standing_in::marked_failure(&head.secrets, failure)),
        };
        Ok(Replayed { outcome, used: (&report.usage).into() })
    }
}
