//! What is wrong, or odd, with a grant when it is made ready at load.
use toolcell_policy::Span;

/// A grant that cannot be made ready: the host's side of it is missing or wrong.
#[derive(Debug)]
pub struct ReachProblem {
    /// Where the manifest says it.
    pub span: Span,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// Something that is as the manifest says, but that its author may not have meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where the manifest says it.
    pub span: Span,
    /// What it is, in one sentence without a full stop.
    pub message: String,
}
