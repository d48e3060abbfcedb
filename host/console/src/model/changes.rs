//! The view of generations and of what is held back.

use super::Moment;

/// The view "Changes".
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The generation that serves.
    pub generation: u64,
    /// True if the process serves with `--locked`.
    pub locked: bool,
    /// Components in quarantine.
    pub quarantined: Vec<Quarantined>,
    /// Generations and refused reloads, newest first; at most [`ROWS`](crate::bounds::ROWS) are
    /// shown.
    pub generations: Vec<Generation>,
}

/// A reload.
#[derive(Debug, Clone, Default)]
pub struct Generation {
    /// The number of the generation that serves after it.
    pub number: u64,
    /// Its time.
    pub at: Moment,
    /// Its outcome.
    pub outcome: GenerationOutcome,
    /// Differences, one line each; for a refused reload the reason.
    pub summary: Vec<String>,
}

/// The outcome of a reload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GenerationOutcome {
    /// The start of the process.
    #[default]
    Started,
    /// A new generation serves.
    Replaced,
    /// The old generation keeps serving, because something was wrong.
    Refused,
    /// A component was approved.
    Approved,
    /// A component was put in quarantine; its old version keeps serving.
    Quarantined,
}

/// A component whose old version serves on until a person approves the new one.
#[derive(Debug, Clone, Default)]
pub struct Quarantined {
    /// The component's name in the manifest.
    pub component: String,
    /// When it was quarantined.
    pub since: Moment,
    /// The version that serves; none for a component that is new.
    pub old: Option<SourceState>,
    /// The new version, which is not approved yet.
    pub new: SourceState,
    /// True if its bytes were not read: then its tools are not among the differences.
    pub is_unread: bool,
    /// True if its signers are not those that the lock pins. That needs an approval of its own.
    pub other_signers: bool,
    /// Definitions of tools that differ.
    pub definitions: Vec<DefinitionChange>,
    /// Grants and callers that differ.
    pub grants: Vec<GrantChange>,
    /// Anything else that differs, one line each.
    pub other: Vec<String>,
    /// How many definitions, grants and other differences are left out here.
    pub beyond: Beyond,
    /// How recorded calls end with the new version.
    pub recorded: RecordedCalls,
}

/// How recorded calls of a component end with its new version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RecordedCalls {
    /// They cannot be run.
    #[default]
    Unavailable,
    /// They can be run.
    Offered,
    /// They are being run.
    Running,
    /// They were run.
    Ran {
        /// Lines: a summary, and one for each that ends otherwise.
        lines: String,
        /// When.
        at: Moment,
    },
    /// They could not be run.
    Failed {
        /// Why: one sentence.
        problem: String,
    },
}

/// Numbers of differences that are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Parts of definitions.
    pub definitions: usize,
    /// Grants.
    pub grants: usize,
    /// Anything else.
    pub other: usize,
}

/// Bytes of a component, and who vouches for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceState {
    /// `sha256:…` of the bytes.
    pub digest: String,
    /// Each thing that is signed, and by whom, a line each; none if nobody had to sign.
    pub signed: Vec<String>,
}

/// A part of a tool's definition that differs. One with an empty `old` is new, one with an empty
/// `new` is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefinitionChange {
    /// The tool, as clients see it.
    pub tool: String,
    /// The part: `description`, `input schema`.
    pub part: String,
    /// The text that is approved.
    pub old: String,
    /// The new text, which is not approved yet.
    pub new: String,
    /// Bytes of both texts that are left out here.
    pub bytes_left: usize,
}

/// A grant that differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrantChange {
    /// True for a grant that the new version has and the old one has not.
    pub added: bool,
    /// The grant in words.
    pub text: String,
}
