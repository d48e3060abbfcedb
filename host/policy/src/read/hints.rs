//! Reads what a tool's table says of its behaviour: `read_only`, `destructive`, `idempotent`, `open_world`. Must not hold:
//! what follows from it.

use super::{Problems, Section};
use crate::diagnostic::Diagnostic;
use crate::manifest::Hints;

/// The hints; what is not said is `None`.
pub(crate) fn read(section: &Section<'_>, problems: &mut Problems) -> Hints {
    let mut said = |key: &str| section.get(key).and_then(|entry| entry.boolean(problems));
    let hints = Hints {
        read_only: said("read_only"),
        destructive: said("destructive"),
        idempotent: said("idempotent"),
        open_world: said("open_world"),
    };
    if let (Some(true), Some(true), Some(entry)) = (hints.read_only, hints.destructive, section.get("destructive")) {
        problems.add(
            Diagnostic::error("tools::hints", "a tool that only reads destroys nothing")
                .at(entry.key_span)
                .hint("remove destructive, or set read_only = false"),
        );
    }
    hints
}
