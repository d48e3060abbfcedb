//! Problems and oddities of a grant that is made ready at load.
use toolcell_policy::Span;

/// A grant that cannot be made ready: the host's side of it is missing or wrong.
#[derive(Debug)]
pub struct GrantProblem {
    /// The place in the manifest.
    pub span: Span,
    /// The problem, in one sentence without a full stop.
    pub message: String,
    /// A hint on how to fix it.
    pub hint: String,
    /// True if a value is missing that this process was not given: a variable, a secret. Another
    /// one with the same manifest may have it.
    pub is_value: bool,
}

/// Something that is as the manifest says, but that its author may not have meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantNote {
    /// The place in the manifest.
    pub span: Span,
    /// The oddity, in one sentence without a full stop.
    pub message: String,
}
