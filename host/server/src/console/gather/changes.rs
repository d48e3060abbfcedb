//! The view of reloads and of what is quarantined.
use std::time::SystemTime;

use toolcell_console::model::{Changes, Generation, GenerationOutcome, Quarantined, SourceState};

use super::Sources;
use crate::reload::ReloadAttempt;

/// The trigger of an attempt after an approval.
const APPROVED: &str = "approved";

impl Sources {
    /// The view "Changes".
    pub fn changes(&self) -> Changes {
        let catalog = self.catalog();
        let mut generations: Vec<Generation> = self.journal.attempts().iter().rev().map(generation).collect();
        generations.push(Generation {
            number: 1,
            at: self.activity.started.into(),
            outcome: GenerationOutcome::Started,
            summary: Vec::new(),
        });
        let since = self.journal.attempts().last().map_or_else(SystemTime::now, |attempt| attempt.time);
        let state = |digest: &str| SourceState { digest: digest.to_owned(), signer: None };
        let quarantined = self.journal.quarantined().into_iter().map(|held| Quarantined {
            old: catalog.component(&held.component).map(|serving| state(serving.digest())),
            new: state(&held.digest),
            component: held.component,
            since: since.into(),
            other: held.differences,
            ..Quarantined::default()
        });
        Changes {
            generation: self.current.generation(),
            locked: self.locked,
            quarantined: quarantined.collect(),
            generations,
        }
    }
}

fn generation(attempt: &ReloadAttempt) -> Generation {
    let outcome = match (attempt.replaced, attempt.trigger) {
        (true, APPROVED) => GenerationOutcome::Approved,
        (true, _) => GenerationOutcome::Replaced,
        (false, _) => GenerationOutcome::Refused,
    };
    let summary = attempt.summary.lines().map(str::to_owned).collect();
    Generation { number: attempt.generation, at: attempt.time.into(), outcome, summary }
}
