//! The power of native code, for drills: any system call, any address of memory. Only builds with
//! the feature `drill` have it, and those are for tests.
//!
//! Nothing here is sound, on purpose: it stands for an attacker who has broken out of WebAssembly.
//! It only runs in sandbox processes, which hold nothing that another process trusts.
#![allow(unsafe_code)]

use std::ffi::c_long;

/// The system calls that drills name.
macro_rules! calls {
    ($($name:ident)*) => {
        /// The number of a system call by its name.
        #[must_use]
        pub fn number(name: &str) -> Option<c_long> {
            match name {
                $(stringify!($name) => Some(libc::$name),)*
                _ => None,
            }
        }
    };
}

calls! {
    SYS_accept4 SYS_add_key SYS_bind SYS_bpf SYS_brk SYS_capset SYS_chdir SYS_clock_settime SYS_clone SYS_clone3
    SYS_close SYS_connect SYS_copy_file_range SYS_dup3 SYS_epoll_create1 SYS_eventfd2 SYS_execve SYS_execveat
    SYS_exit_group SYS_fallocate SYS_fchdir SYS_fchmodat SYS_fchownat SYS_fcntl SYS_finit_module SYS_fstat SYS_fsync
    SYS_ftruncate SYS_getdents64 SYS_getpid SYS_getppid SYS_getrandom SYS_getsockname SYS_getuid SYS_inotify_init1
    SYS_init_module SYS_io_uring_setup SYS_ioctl SYS_kcmp SYS_keyctl SYS_kill SYS_landlock_create_ruleset
    SYS_linkat SYS_listen SYS_madvise SYS_memfd_create SYS_mkdirat SYS_mlock SYS_mmap SYS_mount SYS_mprotect
    SYS_mremap SYS_munmap SYS_name_to_handle_at SYS_newfstatat SYS_open_by_handle_at SYS_open_tree SYS_openat
    SYS_openat2 SYS_perf_event_open SYS_personality SYS_pidfd_getfd SYS_pidfd_open SYS_pidfd_send_signal SYS_pipe2
    SYS_pivot_root SYS_ppoll SYS_pread64 SYS_prctl SYS_prlimit64 SYS_process_vm_readv SYS_process_vm_writev SYS_ptrace
    SYS_pwrite64 SYS_read SYS_readlinkat SYS_reboot SYS_recvfrom SYS_recvmsg SYS_renameat2 SYS_request_key
    SYS_rt_sigqueueinfo SYS_sched_setaffinity SYS_seccomp SYS_sendmmsg SYS_sendmsg SYS_sendto SYS_setns
    SYS_setpriority SYS_setrlimit SYS_setsid SYS_setsockopt SYS_setuid SYS_shmget SYS_shutdown SYS_socket
    SYS_socketpair SYS_splice SYS_statx SYS_symlinkat SYS_sync SYS_syslog SYS_tgkill SYS_tkill SYS_truncate
    SYS_umount2 SYS_uname SYS_unlinkat SYS_unshare SYS_userfaultfd SYS_utimensat SYS_vmsplice SYS_wait4 SYS_write
}

/// Makes a system call, with numbers or addresses as arguments.
///
/// # Errors
/// The kernel's error number.
pub fn call(number: c_long, arguments: [usize; 6]) -> Result<usize, i32> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: none. An attacker's call may change anything of its own process; see the top of the
    // file for why that is right here.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    usize::try_from(result).map_err(|_| std::io::Error::last_os_error().raw_os_error().unwrap_or_default())
}

/// The bytes at an address. The process faults if nothing is mapped there.
#[must_use]
pub fn peek(address: usize, bytes: usize) -> Vec<u8> {
    let byte = |at: usize| {
        let place = std::ptr::with_exposed_provenance::<u8>(address.wrapping_add(at));
        // SAFETY: none, as in `call`.
        unsafe { place.read_volatile() }
    };
    (0..bytes).map(byte).collect()
}

/// Writes bytes to an address. The process faults if it is not writable.
pub fn poke(address: usize, bytes: &[u8]) {
    for (at, byte) in bytes.iter().enumerate() {
        let place = std::ptr::with_exposed_provenance_mut::<u8>(address.wrapping_add(at));
        // SAFETY: none, as in `call`.
        unsafe { place.write_volatile(*byte) };
    }
}

/// Writes to each page of memory.
pub fn touch(address: usize, bytes: usize) {
    (0..bytes).step_by(4096).for_each(|page| poke(address.wrapping_add(page), &[1]));
}

/// Jumps to an address, as if there were code.
pub fn jump(address: usize) -> usize {
    let code = std::ptr::with_exposed_provenance::<()>(address);
    // SAFETY: none, as in `call`.
    let code: extern "C" fn() -> usize = unsafe { std::mem::transmute(code) };
    code()
}
