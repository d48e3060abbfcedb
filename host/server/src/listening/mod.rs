//! Small listeners of the host besides that of MCP, with one accept loop, and the process that
//! already listens at an address. Must not hold: answers.

mod address_range;
pub(crate) mod listener_process;
pub(crate) mod places;
pub(crate) mod small;

pub(crate) use address_range::AddressRange;
