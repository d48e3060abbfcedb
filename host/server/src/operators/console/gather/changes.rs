//! The view of reloads and quarantined components.
use toolcell_console::model::{
    Beyond, Changes, DefinitionChange, Generation, GenerationOutcome, GrantChange, Quarantined, RecordedCalls,
    SourceState,
};

use super::Sources;
use crate::catalog::{APPS, Catalog, SKILLS, TEXTS, texts};
use crate::lock;
use crate::reload::{self, ReloadAttempt};

/// The trigger of a reload after an approval.
const APPROVED: &str = "approved";

impl Sources {
    /// The view "Changes".
    pub fn changes(&self) -> Changes {
        let catalog = self.catalog();
        let mut generations: Vec<Generation> = self.current.journal.attempts().iter().rev().map(generation).collect();
        generations.push(Generation {
            number: 1,
            at: self.activity.started.into(),
            outcome: GenerationOutcome::Started,
            summary: Vec::new(),
        });
        let quarantined = self.current.journal.quarantined().into_iter().map(|held| {
            let recorded = self.recorded_calls(&held.component, &held.digest);
            Quarantined { recorded, ..quarantined(&catalog, held) }
        });
        Changes {
            generation: self.current.generation(),
            locked: self.locked,
            quarantined: quarantined.collect(),
            generations,
        }
    }
}

fn quarantined(catalog: &Catalog, held: reload::Quarantined) -> Quarantined {
    let details = held.read.as_ref().unwrap_or(&held.details);
    Quarantined {
        old: serving(catalog, &held.component),
        new: SourceState { digest: held.digest, signed: details.signed_now.clone() },
        since: held.since.into(),
        is_unread: held.is_withheld && held.read.is_none(),
        other_signers: held.other_signers,
        definitions: details.definitions.first.iter().map(definition).collect(),
        grants: details.grants.first.iter().map(grant).collect(),
        other: details.other.first.clone(),
        beyond: Beyond {
            definitions: details.definitions.beyond,
            grants: details.grants.beyond,
            other: details.other.beyond,
        },
        component: held.component,
        recorded: RecordedCalls::Unavailable,
    }
}

/// The served version; `None` if this component is not served.
fn serving(catalog: &Catalog, name: &str) -> Option<SourceState> {
    if let Some(component) = catalog.component(name) {
        return Some(SourceState { digest: component.digest().to_owned(), signed: component.signed().by.clone() });
    }
    let (digest, serves) = match name {
        TEXTS => (texts::digest(catalog), catalog.texts().next().is_some()),
        SKILLS => (catalog.skills.digest().to_owned(), !catalog.skills.all().is_empty()),
        APPS => (catalog.apps.digest(), !catalog.apps.all().is_empty()),
        _ => return None,
    };
    serves.then_some(SourceState { digest, signed: Vec::new() })
}

fn definition(change: &lock::DefinitionChange) -> DefinitionChange {
    let part = match change.member.as_str() {
        "inputSchema" => "input schema",
        "outputSchema" => "output schema",
        member => member,
    };
    DefinitionChange {
        tool: change.tool.clone(),
        part: part.to_owned(),
        old: change.old.clone(),
        new: change.new.clone(),
        bytes_left: change.bytes_left,
    }
}

fn grant(change: &lock::GrantChange) -> GrantChange {
    GrantChange { added: change.is_added, text: format!("{}: {}", change.tool, change.text) }
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
