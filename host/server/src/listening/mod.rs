//! Small listeners of the host besides that of MCP, with one accept loop, and the process that
//! already listens at an address. Must not hold: answers.

pub(crate) mod listener_process;
pub(crate) mod small;
