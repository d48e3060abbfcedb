//! System calls that no safe crate of the tree offers. Must not hold: the order of walls.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_long, c_uint, c_ulong};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// `MOVE_MOUNT_F_EMPTY_PATH` of `linux/mount.h`.
const MOVE_MOUNT_F_EMPTY_PATH: c_uint = 0x4;
/// `OPEN_TREE_CLONE` of `linux/mount.h`.
const OPEN_TREE_CLONE: c_uint = 1;
/// `_LINUX_CAPABILITY_VERSION_3` of `linux/capability.h`: 64 bits in two words.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

fn answer(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// `prctl` with numbers as arguments.
pub(super) fn prctl(option: c_int, arguments: [c_ulong; 4]) -> io::Result<()> {
    let [a, b, c, d] = arguments;
    // SAFETY: every option used by this module takes numbers only, so the kernel follows no
    // pointer.
    let result = unsafe { libc::prctl(option, a, b, c, d) };
    answer(result.into()).map(drop)
}

/// Leaves namespaces of the parent.
pub(super) fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: takes a number only. It changes what the kernel shows the process, no memory.
    answer(unsafe { libc::unshare(flags) }.into()).map(drop)
}

/// A mount to make or to change.
#[derive(Clone, Copy)]
pub(super) struct Mount<'a> {
    /// A file system's name, where there is one to be mounted.
    pub(super) kind: Option<&'a CStr>,
    /// The folder.
    pub(super) target: &'a CStr,
    /// `MS_…`.
    pub(super) flags: c_ulong,
    /// Options of the file system.
    pub(super) options: Option<&'a CStr>,
}

/// Makes or changes a mount.
pub(super) fn mount(mount: Mount<'_>) -> io::Result<()> {
    let text = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
    let kind = text(mount.kind);
    // SAFETY: each pointer is null or of a `CStr` that outlives the call; the kernel only reads.
    let result = unsafe { libc::mount(kind, mount.target.as_ptr(), kind, mount.flags, text(mount.options).cast()) };
    answer(result.into()).map(drop)
}

/// A mount of its own of one folder, in no place yet.
pub(super) fn clone_mount(folder: &CStr) -> io::Result<OwnedFd> {
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC.cast_unsigned();
    // SAFETY: the pointer is of a `CStr` that outlives the call; the kernel only reads.
    let result = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, folder.as_ptr(), flags) };
    let descriptor = RawFd::try_from(answer(result)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Puts a mount that is in no place over a folder.
pub(super) fn place_mount(mount: BorrowedFd<'_>, target: &CStr) -> io::Result<()> {
    // SAFETY: both pointers are of `CStr`s that outlive the call; the kernel only reads.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            target.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    answer(result).map(drop)
}

/// Makes the working folder the root, and puts the old root over it.
pub(super) fn pivot_root_here() -> io::Result<()> {
    let here = c".".as_ptr();
    // SAFETY: both pointers are of a constant; the kernel only reads.
    answer(unsafe { libc::syscall(libc::SYS_pivot_root, here, here) }).map(drop)
}

/// Takes away the mount that lies over the working folder, with all beneath it.
pub(super) fn unmount_here() -> io::Result<()> {
    // SAFETY: the pointer is of a constant; the kernel only reads.
    answer(unsafe { libc::umount2(c".".as_ptr(), libc::MNT_DETACH) }.into()).map(drop)
}

/// Gives up every effective, permitted and inheritable capability.
pub(super) fn drop_capabilities() -> io::Result<()> {
    let header: [u32; 2] = [CAPABILITY_VERSION, 0];
    let none = [0_u32; 6];
    // SAFETY: the header is the two words and the data the six words that this version of the
    // call reads; both outlive it, and with a version that the kernel knows it writes neither.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    answer(result).map(drop)
}

/// Bytes of a page of memory.
pub(super) fn page_bytes() -> u64 {
    // SAFETY: takes a number only and reads a constant of the process.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // 4 KiB is the least that either architecture has, so the limit is never too wide.
    u64::try_from(bytes).unwrap_or(4096)
}

/// Leaves a signal without effect.
pub(super) fn ignore_signal(signal: c_int) -> io::Result<()> {
    // SAFETY: `SIG_IGN` names no function of this process that could run in a bad moment.
    let old = unsafe { libc::signal(signal, libc::SIG_IGN) };
    if old == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Closes every descriptor but the standard three, whoever left it open.
///
/// To be called first in `main` of a process that the host starts, before anything is opened: a
/// descriptor that is in use then would be closed under its owner.
pub fn close_inherited() -> io::Result<()> {
    let from: c_uint = 3;
    // SAFETY: takes numbers only. At the start of `main` nothing in the process owns a descriptor
    // above the standard three, as its documentation demands of the caller.
    answer(unsafe { libc::syscall(libc::SYS_close_range, from, c_uint::MAX, 0_u32) }).map(drop)
}
