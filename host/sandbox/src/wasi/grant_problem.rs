//! Problems and oddities of a grant, found while it is prepared at load.
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
    /// True if a value is missing that this process did not get: a variable, a secret. Another
    /// process with the same manifest may have it.
    pub is_value: bool,
}

/// Something that follows the manifest, but that its author may not have meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantNote {
    /// The place in the manifest.
    pub span: Span,
    /// The oddity, in one sentence without a full stop.
    pub message: String,
}
