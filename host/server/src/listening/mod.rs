//! Listeners of the host next to that of MCP, with one accept loop, and who else listens at an
//! address. Must not hold: answers.

pub(crate) mod listener_process;
pub(crate) mod small;
