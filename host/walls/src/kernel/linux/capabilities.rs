//! Giving up capabilities, for good.

use std::ffi::c_ulong;

use super::refusal::{Refusal, WallStep};
use super::syscalls;

/// Capabilities have numbers below this one; Linux 6.18 has 41 of them.
const CAPABILITIES_MAX: c_ulong = 64;

/// `linux/securebits.h`: neither being root nor changing users gives a capability, none is kept or
/// becomes ambient, and each of these is locked.
const SECURE_BITS: c_ulong = 0xef;

/// Gives up every capability, and the ways to gain one.
///
/// Dropping the bounds needs a capability. Without it, no-new-privileges enforces them: the process
/// has no capability to lose, or belongs to root in a container.
pub(super) fn give_up() -> Result<String, Refusal> {
    syscalls::prctl(libc::PR_CAP_AMBIENT, [libc::PR_CAP_AMBIENT_CLEAR_ALL as c_ulong, 0, 0, 0])
        .step("ambient capabilities")?;
    let is_bounded = bound().is_ok();
    syscalls::drop_capabilities().step("capset")?;
    Ok(if is_bounded { String::new() } else { "the bounding set stays".to_owned() })
}

fn bound() -> std::io::Result<()> {
    for capability in 0..CAPABILITIES_MAX {
        match syscalls::prctl(libc::PR_CAPBSET_DROP, [capability, 0, 0, 0]) {
            // The kernel has no capability with this number or a higher one.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            other => other?,
        }
    }
    syscalls::prctl(libc::PR_SET_SECUREBITS, [SECURE_BITS, 0, 0, 0])
}
