//! One call of one tool, as every shape takes it, and its answer.
use toolcell_policy::{Limits, Program};

use toolcell_wall::contract;
use toolcell_wall::failure::CallFailure;

/// One call of one tool.
#[derive(Clone, Copy)]
pub(crate) struct ToolCall<'a> {
    /// The tool's own name.
    pub(crate) tool: &'a str,
    /// A JSON object.
    pub(crate) arguments_json: &'a str,
    /// The manifest's settings for running a program.
    pub(crate) program: Option<&'a Program>,
    /// True for a program of preview 1, whose arguments must fit into the adapter.
    pub(crate) adapted: bool,
    pub(crate) limits: &'a Limits,
}

/// The answer of a tool: its result, or its own failure.
pub(crate) type ToolAnswer = Result<contract::GuestResult, CallFailure>;
