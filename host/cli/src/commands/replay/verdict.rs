//! A replayed call, beside the recorded one.
use std::path::{Path, PathBuf};

use toolcell_policy::Limit;
use toolcell_sandbox::contract::GuestResult;
use toolcell_sandbox::{CallFailure, ReplayQuestion};
use toolcell_server::Replayed;
use toolcell_server::recordings::{RecordedUse, Recording};

/// The outcome of a call.
pub(super) type Outcome = Result<GuestResult, CallFailure>;

/// How a replayed call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As it was recorded.
    AsBefore,
    /// With another answer, or with other fuel.
    Differs,
    /// Another component asked for what the recording does not have.
    Asks(Vec<ReplayQuestion>),
    /// The recorded component did not repeat itself.
    Departs {
        /// What it asked for, as JSON; `None` if it asked for less.
        asked: Option<String>,
        /// What the recording has there.
        expected: Option<String>,
    },
    /// It failed, and the recorded call did not, or not so.
    Fails(String),
    /// It could not be run.
    NotRun(String),
}

impl Verdict {
    /// One word, for tables and for JSON.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::AsBefore => "as before",
            Self::Differs => "differs",
            Self::Asks(_) | Self::Departs { .. } => "asks",
            Self::Fails(_) => "fails",
            Self::NotRun(_) => "not run",
        }
    }
}

/// A replayed call.
pub(super) struct ReplayedCall {
    pub(super) file: PathBuf,
    pub(super) component: String,
    pub(super) tool: String,
    /// The protocol's revision that the recorded caller spoke; may be empty.
    pub(super) revision: String,
    pub(super) verdict: Verdict,
    pub(super) recorded: Outcome,
    /// What came of the replay, if it ran.
    pub(super) outcome: Option<Outcome>,
    pub(super) before: RecordedUse,
    pub(super) after: RecordedUse,
}

impl ReplayedCall {
    pub(super) fn not_run(file: &Path, recording: &Recording, problem: String) -> Self {
        Self {
            file: file.to_owned(),
            component: recording.head.component.clone(),
            tool: recording.head.listed.clone(),
            revision: recording.head.revision.clone(),
            verdict: Verdict::NotRun(problem),
            recorded: recording.outcome.clone(),
            outcome: None,
            before: recording.used,
            after: RecordedUse::default(),
        }
    }

    pub(super) fn of(file: &Path, recording: &Recording, replayed: Replayed, is_recorded: bool) -> Self {
        let verdict = judge(recording, &replayed, is_recorded);
        let Replayed { outcome, used } = replayed;
        Self { verdict, outcome: Some(outcome), after: used, ..Self::not_run(file, recording, String::new()) }
    }

    /// Without the answers, where they are the same: nobody compares them, and they may be large.
    pub(super) fn without_same_answers(self) -> Self {
        match self.verdict {
            Verdict::AsBefore => Self { recorded: Err(CallFailure::Cancelled), outcome: None, ..self },
            _ => self,
        }
    }

    /// True if its new answer can take the place of the recorded one.
    pub(super) fn is_updatable(&self) -> bool {
        match self.verdict {
            Verdict::Differs => true,
            Verdict::Fails(_) => self.recorded.is_err(),
            _ => false,
        }
    }
}

fn judge(recording: &Recording, replayed: &Replayed, is_recorded: bool) -> Verdict {
    if replayed.is_ended_as_recorded() && recording.outcome.is_err() {
        return Verdict::AsBefore;
    }
    let is_stopped = is_ended_from_outside(&recording.outcome);
    let questions = replayed.questions();
    if !questions.is_empty() {
        // The recorded call was ended while it waited for the answer to a known question.
        if is_stopped && questions.iter().all(|question| !question.is_new) {
            return Verdict::AsBefore;
        }
        return Verdict::Asks(questions.to_vec());
    }
    if let Some((asked, expected)) = replayed.difference() {
        if expected.is_none() && is_stopped {
            return Verdict::AsBefore;
        }
        return Verdict::Departs { asked: asked.map(str::to_owned), expected: expected.map(str::to_owned) };
    }
    // The recorded component computes as much as before; another one may not.
    let is_costly = is_recorded && replayed.used.fuel != recording.used.fuel;
    match (&recording.outcome, &replayed.outcome) {
        (Ok(before), Ok(after)) if before == after && !is_costly => Verdict::AsBefore,
        (Err(before), Err(after)) if before.to_string() == after.to_string() => Verdict::AsBefore,
        (_, Err(failure)) => Verdict::Fails(failure.to_string()),
        _ => Verdict::Differs,
    }
}

/// True if the call did not end by itself.
fn is_ended_from_outside(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Err(CallFailure::OverLimit { limit: Limit::Deadline, .. }
            | CallFailure::Cancelled
            | CallFailure::Asked { .. }
            | CallFailure::SandboxEnded { .. }
            | CallFailure::SandboxNotStarted { .. }
            | CallFailure::Busy)
    )
}
