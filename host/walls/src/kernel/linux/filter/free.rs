//! Calls that are allowed with any arguments.
//!
//! The kernel answers these without running the filter, from a bitmap.

use std::ffi::c_long;

use libc::{
    SYS_brk, SYS_clock_getres, SYS_clock_gettime, SYS_clock_nanosleep, SYS_close, SYS_epoll_create1, SYS_epoll_ctl,
    SYS_epoll_pwait, SYS_eventfd2, SYS_exit, SYS_exit_group, SYS_faccessat2, SYS_fadvise64, SYS_fdatasync, SYS_fstat,
    SYS_fsync, SYS_ftruncate, SYS_getcpu, SYS_getdents64, SYS_getpeername, SYS_getpid, SYS_getrandom, SYS_getsockname,
    SYS_gettid, SYS_linkat, SYS_lseek, SYS_membarrier, SYS_munmap, SYS_nanosleep, SYS_newfstatat, SYS_openat2,
    SYS_ppoll, SYS_pread64, SYS_preadv, SYS_preadv2, SYS_pwrite64, SYS_pwritev, SYS_pwritev2, SYS_read, SYS_readlinkat,
    SYS_readv, SYS_recvfrom, SYS_recvmsg, SYS_renameat, SYS_renameat2, SYS_restart_syscall, SYS_rseq, SYS_rt_sigaction,
    SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sched_getaffinity, SYS_sched_yield, SYS_set_robust_list, SYS_shutdown,
    SYS_sigaltstack, SYS_statx, SYS_symlinkat, SYS_unlinkat, SYS_write, SYS_writev,
};

/// A descriptor stands for rights that the host gave, so calls that only use one are free. Landlock
/// and the empty root restrict paths.
pub(super) const CALLS: &[c_long] = &[
    // Memory that is returned, or bounded by RLIMIT_DATA.
    SYS_brk,
    SYS_munmap,
    // Reading and writing.
    SYS_read,
    SYS_readv,
    SYS_pread64,
    SYS_preadv,
    SYS_preadv2,
    SYS_write,
    SYS_writev,
    SYS_pwrite64,
    SYS_pwritev,
    // Appending, as `wasi:filesystem` does it.
    SYS_pwritev2,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_lseek,
    SYS_close,
    // Files below an open folder.
    SYS_openat2,
    SYS_getdents64,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_readlinkat,
    // A dot at the end of a path, as cap-std checks it.
    SYS_faccessat2,
    SYS_unlinkat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_renameat2,
    SYS_ftruncate,
    SYS_fadvise64,
    SYS_fsync,
    SYS_fdatasync,
    // Sockets that the host connected.
    SYS_getsockname,
    SYS_getpeername,
    SYS_shutdown,
    // Waiting.
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_eventfd2,
    SYS_ppoll,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_sched_yield,
    SYS_restart_syscall,
    // Clocks, on machines that cannot read them without a call.
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_getrandom,
    // Threads and signals of this process.
    SYS_getpid,
    SYS_gettid,
    SYS_getcpu,
    SYS_sched_getaffinity,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_membarrier,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_exit,
    SYS_exit_group,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    // The C library turns a rename into one of these.
    SYS_renameat,
];
