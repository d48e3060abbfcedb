//! Calls that are allowed with any arguments.
//!
//! The kernel answers these without running the filter, from a bitmap.

use std::ffi::c_long;

/// A descriptor stands for rights that the host gave, so calls that only use one are free. Landlock
/// and the empty root restrict paths.
pub(super) const CALLS: &[c_long] = &[
    // Memory that is returned, or bounded by RLIMIT_DATA.
    libc::SYS_brk,
    libc::SYS_munmap,
    // Reading and writing.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    // Appending, as `wasi:filesystem` does it.
    libc::SYS_pwritev2,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_lseek,
    libc::SYS_close,
    // Files below an open folder.
    libc::SYS_openat2,
    libc::SYS_getdents64,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_readlinkat,
    // A dot at the end of a path, as cap-std checks it.
    libc::SYS_faccessat2,
    libc::SYS_unlinkat,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_renameat2,
    libc::SYS_ftruncate,
    libc::SYS_fadvise64,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    // Sockets that the host connected.
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_shutdown,
    // Waiting.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_ppoll,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_sched_yield,
    libc::SYS_restart_syscall,
    // Clocks, on machines that cannot read them without a call.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_getrandom,
    // Threads and signals of this process.
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getcpu,
    libc::SYS_sched_getaffinity,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_membarrier,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    // The C library turns a rename into one of these.
    libc::SYS_renameat,
];
