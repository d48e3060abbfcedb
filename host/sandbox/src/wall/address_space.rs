//! The address space of sandbox processes, tried before the first one starts.
use toolcell_wall::pool_sizes::{AddressSpace, PoolSizes, SandboxOptions};
use toolcell_walls::kernel::has_address_space;

/// Looks if a process like this one gets the address space that these options reserve.
///
/// # Errors
/// It does not.
pub fn check_address_space(options: &SandboxOptions) -> Result<(), AddressSpace> {
    PoolSizes::fitting(options.calls_max, options.stack_bytes, has_address_space).map(drop)
}
