//! One call of one tool, as every shape takes it, and its answer.
use toolcell_policy::{Limits, Program};

use crate::bindings::contract;

/// One call of one tool.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    /// The tool's own name.
    pub(crate) tool: &'a str,
    /// A JSON object.
    pub(crate) arguments_json: &'a str,
    /// How a program is run for it.
    pub(crate) program: Option<&'a Program>,
    /// Whether the program is one for preview 1, which takes less at once.
    pub(crate) adapted: bool,
    pub(crate) limits: &'a Limits,
}

/// What a tool says: its result, or why there is none.
pub(crate) type Answer = Result<contract::CallResult, contract::Failure>;
