//! A tool's behaviour, as the manifest describes it: `read_only`, `destructive`, `idempotent`,
//! `open_world`.

use crate::read::{Problems, Section};

/// A tool's behaviour in the terms of MCP's annotations. The tool itself decides on each that is
/// `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// It only reads; changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something; matters only where `read_only` is not true.
    pub destructive: Option<bool>,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// It deals with an open world, such as the web, rather than a closed one, such as its own
    /// store.
    pub open_world: Option<bool>,
}

impl Hints {
    /// Each hint that is set, by its key in the manifest.
    #[must_use]
    pub fn said(&self) -> Vec<(&'static str, bool)> {
        let all = [
            ("read_only", self.read_only),
            ("destructive", self.destructive),
            ("idempotent", self.idempotent),
            ("open_world", self.open_world),
        ];
        all.into_iter().filter_map(|(key, said)| Some((key, said?))).collect()
    }
}

/// The hints; a missing key is `None`.
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
            entry
                .key_error("tools::hints", "a tool that only reads destroys nothing")
                .hint("remove destructive, or set read_only = false"),
        );
    }
    hints
}
