//! The address space of sandbox processes, checked before the first one starts.
use toolcell_wall::pool_sizes::{AddressSpace, PoolSizes, SandboxOptions};
use toolcell_walls::kernel::has_address_space;

/// Checks that a process like this one gets the address space that these options reserve.
///
/// # Errors
/// The address space is too small.
pub fn check_address_space(options: &SandboxOptions) -> Result<(), AddressSpace> {
    PoolSizes::fitting(options, has_address_space).map(drop)
}
