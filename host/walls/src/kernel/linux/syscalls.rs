//! System calls that no safe crate of the tree offers.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::{io, ptr};

use rustix::io::Errno;
use rustix::process::{Pid, RawPid, WaitOptions};

use crate::kernel::ABORTED;

/// `MOVE_MOUNT_F_EMPTY_PATH` of `linux/mount.h`.
const MOVE_MOUNT_F_EMPTY_PATH: c_uint = 0x4;
/// `OPEN_TREE_CLONE` of `linux/mount.h`.
const OPEN_TREE_CLONE: c_uint = 1;
/// `_LINUX_CAPABILITY_VERSION_3` of `linux/capability.h`: 64 bits in two words.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// The highest number of a signal.
const SIGNALS_MAX: c_int = 64;
/// Words of 16 bytes on the stack of a process until it runs its program: 64 KiB. It makes some
/// thirty system calls, with shallow call depth.
const STACK_WORDS: usize = 4096;

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

/// The version of the kernel's Landlock.
pub(super) fn landlock_version() -> io::Result<c_long> {
    // SAFETY: asked for its version, the call takes a null pointer and no size, and makes nothing.
    answer(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<c_void>(), 0_usize, 1_u32) })
}

/// A mount to make or to change.
#[derive(Clone, Copy)]
pub(super) struct Mount<'a> {
    /// The name of a file system to mount, if any.
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

/// A clone of one folder's mount, not attached anywhere yet.
pub(super) fn clone_mount(folder: &CStr) -> io::Result<OwnedFd> {
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC.cast_unsigned();
    // SAFETY: the pointer is of a `CStr` that outlives the call; the kernel only reads.
    let result = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, folder.as_ptr(), flags) };
    let descriptor = RawFd::try_from(answer(result)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Attaches a detached mount over a folder.
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

/// Makes the working folder the root, with the old root over it.
pub(super) fn pivot_root_here() -> io::Result<()> {
    let here = c".".as_ptr();
    // SAFETY: both pointers are of a constant; the kernel only reads.
    answer(unsafe { libc::syscall(libc::SYS_pivot_root, here, here) }).map(drop)
}

/// Detaches the mount over the working folder, with everything beneath it.
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
    // 4 KiB is the smallest page of either architecture, so the limit is never too wide.
    u64::try_from(bytes).unwrap_or(4096)
}

/// Blocks of this size have pages of their own, which are returned to the system at once. 256 KiB:
/// nearly every message is shorter, and a system call costs little compared to filling more.
#[cfg(target_env = "gnu")]
const OWN_PAGES_BYTES: c_int = 256 * 1024;

/// Makes large blocks of memory return to the system once they are freed. By default, glibc keeps
/// more the larger the blocks were.
pub fn free_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes numbers only, and changes how later blocks are made.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PAGES_BYTES);
    }
}

/// Bytes of the heap's small blocks that are in use, modulo 4 GiB; `None` if the allocator does not
/// report it.
pub fn heap_bytes() -> Option<u32> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: takes nothing, and reads the allocator's counters under its own locks.
        Some(unsafe { libc::mallinfo() }.uordblks.cast_unsigned())
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

/// Returns free pages of the heap to the system. It takes milliseconds.
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes a number only; it returns pages without a block in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// True if the process can reserve this many more bytes of address space. They are released at
/// once.
pub fn has_address_space(bytes: u64) -> bool {
    let Ok(length) = usize::try_from(bytes) else { return false };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address that the kernel chooses overlaps no other.
    let begin = unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0) };
    // SAFETY: the mapping is the one just made, and nobody else knows of it.
    begin != libc::MAP_FAILED && unsafe { libc::munmap(begin, length) } == 0
}

/// Ignores a signal.
pub(super) fn ignore_signal(signal: c_int) -> io::Result<()> {
    // SAFETY: `SIG_IGN` names no function of this process that could run in a bad moment.
    let old = unsafe { libc::signal(signal, libc::SIG_IGN) };
    if old == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Closes every descriptor except the standard three.
///
/// Call it first in `main` of a process that the host starts, before anything is opened. It would
/// close a descriptor that something else owns.
pub fn close_inherited() -> io::Result<()> {
    let from: c_uint = 3;
    // SAFETY: takes numbers only. At the start of `main` nothing in the process owns a descriptor
    // above the standard three, as its documentation demands of the caller.
    answer(unsafe { libc::syscall(libc::SYS_close_range, from, c_uint::MAX, 0_u32) }).map(drop)
}

/// From now on, programs that this process starts get no descriptor of it but the standard three,
/// and those that are given to them.
///
/// What opened a descriptor may have left it open for them: whoever started this process, or a
/// library.
///
/// # Errors
/// The kernel is older than 5.11.
pub fn keep_descriptors() -> io::Result<()> {
    let from: c_uint = 3;
    // SAFETY: takes numbers only, and closes nothing in this process.
    answer(unsafe { libc::syscall(libc::SYS_close_range, from, c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) }).map(drop)
}

/// Ends the process when it aborts even if it is the first of a namespace of process ids, which the
/// kernel does not end by a signal of its own. Otherwise it changes nothing.
pub fn end_on_abort() -> io::Result<()> {
    if std::process::id() != 1 {
        return Ok(());
    }
    let handler: extern "C" fn(c_int) = exit_on_abort;
    // SAFETY: the function makes one system call, which is sound at any moment.
    let old = unsafe { libc::signal(libc::SIGABRT, handler as *const () as libc::sighandler_t) };
    if old == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

extern "C" fn exit_on_abort(_: c_int) {
    // SAFETY: it ends the process at once, and runs nothing of it.
    unsafe { libc::_exit(ABORTED) }
}

/// A program that becomes the first process of a namespace of process ids.
pub(crate) struct FirstProcess<'a> {
    /// Its path.
    pub(crate) program: &'a CStr,
    /// Its name and its arguments.
    pub(crate) arguments: &'a [CString],
    /// Its whole environment, each `NAME=VALUE`.
    pub(crate) environment: &'a [CString],
    /// Its standard input, output and error. None of them may be one of the standard three of this
    /// process.
    pub(crate) standard: [BorrowedFd<'a>; 3],
    /// Files that it writes first, with their texts.
    pub(crate) maps: &'a [(&'static CStr, CString)],
}

/// What the new process reads until it runs its program.
struct ProcessPlan<'a> {
    first: &'a FirstProcess<'a>,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    /// The errno of the step that failed.
    failed: AtomicI32,
}

/// Starts a program as the first process of a namespace of process ids, in a process group of its
/// own and in the folder `/`. `namespaces` has that one, and others to be made with it.
///
/// It works like `posix_spawn` of the C libraries, which does not support namespaces.
pub(crate) fn start_first(first: &FirstProcess<'_>, namespaces: c_int) -> io::Result<Pid> {
    let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
    let arguments = pointers(first.arguments);
    let environment = pointers(first.environment);
    let plan = ProcessPlan { first, arguments, environment, failed: AtomicI32::new(0) };
    let mut stack = vec![0_u128; STACK_WORDS];
    let top = stack.as_mut_ptr_range().end.cast();
    let flags = namespaces | libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let quiet = Quiet::new()?;
    // SAFETY: the new process shares this one's memory until it runs its program or ends, and the
    // kernel makes this thread wait for that. So the plan and the stack outlive their use, and
    // nothing else uses them. No handler of this process runs in it: all signals are blocked, and
    // it resets the handlers before it unblocks them.
    let result = unsafe { libc::clone(become_program, top, flags, ptr::from_ref(&plan).cast_mut().cast()) };
    let pid = answer(result.into());
    drop(quiet);
    let pid = Pid::from_raw(RawPid::try_from(pid?).map_err(io::Error::other)?).ok_or(io::ErrorKind::Other)?;
    match plan.failed.load(Ordering::Acquire) {
        0 => Ok(pid),
        errno => {
            // It has ended by itself.
            while rustix::process::waitpid(Some(pid), WaitOptions::empty()).is_err_and(|error| error == Errno::INTR) {}
            Err(io::Error::from_raw_os_error(errno))
        }
    }
}

/// Runs in the new process. It must not allocate, lock or panic: other threads continue, and a lock
/// that one holds stays locked forever here.
extern "C" fn become_program(plan: *mut c_void) -> c_int {
    // SAFETY: `start_first` hands over its plan, and keeps it while this runs.
    let plan = unsafe { &*plan.cast_const().cast::<ProcessPlan<'_>>() };
    let error = match prepare(plan.first) {
        Ok(()) => run(plan),
        Err(error) => error,
    };
    plan.failed.store(error.raw_os_error().unwrap_or(libc::EIO), Ordering::Release);
    1
}

fn prepare(first: &FirstProcess<'_>) -> io::Result<()> {
    for (path, text) in first.maps {
        write_map(path, text)?;
    }
    for (number, descriptor) in (0..).zip(first.standard) {
        // SAFETY: takes numbers only. The descriptors are a copy of this process's, so no owner
        // of one is cheated.
        answer(unsafe { libc::dup2(descriptor.as_raw_fd(), number) }.into())?;
    }
    // SAFETY: takes numbers only.
    answer(unsafe { libc::setpgid(0, 0) }.into())?;
    // SAFETY: the pointer is of a constant; the kernel only reads. The folder is this process's.
    answer(unsafe { libc::chdir(c"/".as_ptr()) }.into())?;
    for signal in 1..=SIGNALS_MAX {
        // Some signals accept no handler, and have none. SAFETY: no function of the program runs
        // any more at a signal.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    Quiet::end()
}

fn write_map(path: &CStr, text: &CStr) -> io::Result<()> {
    // SAFETY: the pointer is of a `CStr` that outlives the call; the kernel only reads.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    answer(file.into())?;
    // SAFETY: as above, with its length. The descriptor closes with the program that follows.
    let written = unsafe { libc::write(file, text.as_ptr().cast(), text.count_bytes()) };
    if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns only on failure.
fn run(plan: &ProcessPlan<'_>) -> io::Error {
    // SAFETY: each pointer is of a text of the plan, and each list ends with a null pointer; the
    // kernel only reads.
    unsafe { libc::execve(plan.first.program.as_ptr(), plan.arguments.as_ptr(), plan.environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Blocks all signals of this thread while it lives.
struct Quiet(libc::sigset_t);

impl Quiet {
    fn new() -> io::Result<Self> {
        let mut all = MaybeUninit::uninit();
        let mut old = MaybeUninit::uninit();
        // SAFETY: the first call initializes the set that the second reads; that initializes the
        // other set if it returns 0.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            match libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr()) {
                0 => Ok(Self(old.assume_init())),
                error => Err(io::Error::from_raw_os_error(error)),
            }
        }
    }

    /// Unblocks every signal, in a new process.
    fn end() -> io::Result<()> {
        let mut none = MaybeUninit::uninit();
        // SAFETY: the first call initializes the set that the second reads.
        match unsafe {
            libc::sigemptyset(none.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut())
        } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // SAFETY: it is the set that `new` was given. It cannot fail with that.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}
