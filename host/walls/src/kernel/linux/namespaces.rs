//! Namespaces of a process's own, and its empty root folder.

use std::ffi::{CStr, c_int};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;

use rustix::fs::Mode;

use super::refusal::{Refusal, WallStep};
use super::syscalls::{self, Mount};
use crate::kernel::IDS_REFUSED;

/// Flags of mounts whose files give no rights.
const PLAIN: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// A user namespace: the process keeps its user and group, and others are unknown to it.
///
/// In a new user namespace the process has every capability over the other namespaces it makes.
pub(super) fn users() -> Result<String, Refusal> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    syscalls::unshare(libc::CLONE_NEWUSER).step("unshare")?;
    // Without this the kernel accepts no group map from a process that is not root.
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    // A nested user namespace would bring capabilities back. Old kernels lack this file.
    let bound = write("/proc/sys/user/max_user_namespaces", "0");
    Ok(bound.err().map_or_else(String::new, |refusal| format!("more can be made: {refusal}")))
}

fn write(path: &str, text: &str) -> Result<(), Refusal> {
    let mut file: File = OpenOptions::new().write(true).open(path).step(path)?;
    file.write_all(text.as_bytes()).step(path)
}

/// Leaves the namespace of `flag`.
pub(super) fn own(flag: c_int) -> Result<String, Refusal> {
    syscalls::unshare(flag).step("unshare")?;
    Ok(String::new())
}

/// A namespace of process ids in which this process is the first. Only its parent can create it: a
/// process that unshares its own can no longer start threads.
pub(super) fn process_ids() -> Result<String, Refusal> {
    if std::process::id() == 1 {
        return Ok(String::new());
    }
    let refused = std::env::var(IDS_REFUSED);
    Err(Refusal::new(refused.unwrap_or_else(|_| "the process's parent made none".to_owned())))
}

/// A mount namespace whose root contains only `/proc/self/fd`: the process's own descriptors,
/// through which compiled code is mapped.
pub(super) fn empty_root() -> Result<String, Refusal> {
    const DESCRIPTORS: &CStr = c"/proc/self/fd";
    const ROOT: &CStr = c"/proc";
    syscalls::unshare(libc::CLONE_NEWNS).step("unshare")?;
    let flags = libc::MS_REC | libc::MS_PRIVATE;
    change(Mount { kind: None, target: c"/", flags, options: None }, "private mounts")?;
    let descriptors = syscalls::clone_mount(DESCRIPTORS).step("open_tree")?;
    // Any folder that certainly exists would do: what is mounted over it becomes the root.
    let options = Some(c"size=4k,nr_inodes=8,mode=0755");
    change(Mount { kind: Some(c"tmpfs"), target: ROOT, flags: PLAIN, options }, "tmpfs")?;
    for folder in [c"/proc/proc", c"/proc/proc/self", c"/proc/proc/self/fd"] {
        rustix::fs::mkdir(folder, Mode::from_raw_mode(0o755)).step("mkdir")?;
    }
    syscalls::place_mount(descriptors.as_fd(), c"/proc/proc/self/fd").step("move_mount")?;
    rustix::process::chdir(ROOT).step("chdir")?;
    syscalls::pivot_root_here().step("pivot_root")?;
    syscalls::unmount_here().step("umount of the old root")?;
    rustix::process::chdir(c"/").step("chdir")?;
    let flags = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | PLAIN;
    change(Mount { kind: None, target: c"/", flags, options: None }, "read-only root")?;
    Ok(String::new())
}

fn change(mount: Mount<'_>, step: &str) -> Result<(), Refusal> {
    syscalls::mount(mount).step(step)
}
