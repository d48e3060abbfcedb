//! The table of attempts: what is tried behind which walls, and how the kernel answers.

use std::ffi::c_long;

use libc::{EACCES, EFBIG, EINVAL, EMFILE, ENOENT, ENOMEM, ENOSPC, ENOSYS, EPERM, ESRCH, EXDEV};
use toolcell_walls::kernel::Wall;

use crate::files;
use crate::memory;
use crate::network;
use crate::processes::{self, flags};
use crate::site::{Attempt, THREADS_MAX, number};
use crate::syscalls::{self, call, text};

/// One attempt.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Walls that are left away, to see what the others hold alone.
    pub(crate) without: &'static [Wall],
    /// Threads that may run, or none but those before the seal.
    pub(crate) threads_max: Option<u64>,
    pub(crate) attempt: Attempt,
    pub(crate) end: End,
}

/// The end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It must work.
    Works,
    /// The call fails.
    Fails(&'static [i32]),
    /// The kernel ends the process by this signal.
    Killed(i32),
}

/// The filter's answer.
const KILLED: End = End::Killed(libc::SIGSYS);

const NO_FILTER: &[Wall] = &[Wall::SystemCalls];
const NO_ROOT: &[Wall] = &[Wall::MountNamespace];
const NO_LANDLOCK: &[Wall] = &[Wall::Landlock];
const NO_FILTER_OR_ROOT: &[Wall] = &[Wall::SystemCalls, Wall::MountNamespace];
const NO_FILTER_OR_LANDLOCK: &[Wall] = &[Wall::SystemCalls, Wall::Landlock];
const NO_FILTER_OR_NETWORK: &[Wall] = &[Wall::SystemCalls, Wall::NetworkNamespace];
const NO_FILTER_OR_IDS: &[Wall] = &[Wall::SystemCalls, Wall::PidNamespace];
const NO_FILTER_OR_CODE: &[Wall] = &[Wall::SystemCalls, Wall::FixedCode];

const fn row(name: &'static str, attempt: Attempt, end: End) -> Row {
    Row { name, without: &[], threads_max: None, attempt, end }
}

const fn bare(name: &'static str, without: &'static [Wall], attempt: Attempt, end: End) -> Row {
    Row { name, without, threads_max: None, attempt, end }
}

const fn fails(errors: &'static [i32]) -> End {
    End::Fails(errors)
}

const fn threaded(name: &'static str, attempt: Attempt, end: End) -> Row {
    Row { name, without: &[], threads_max: Some(THREADS_MAX), attempt, end }
}

/// The table.
pub(crate) fn all() -> Vec<&'static Row> {
    let tables: [&[Row]; 6] = [FILES, NETWORK, PROCESSES, RIGHTS, MEMORY, CODE];
    tables.into_iter().flatten().chain(CALLS).collect()
}

const FILES: &[Row] = &[
    row("read /etc/passwd", files::passwd_by_old_open, fails(&[EACCES])),
    row("read /etc/passwd by openat2", files::passwd_from_working_folder, fails(&[ENOENT])),
    row("read /etc/passwd from a granted folder", files::passwd, fails(&[ENOENT])),
    bare("read /etc/passwd, no empty root", NO_ROOT, files::passwd, fails(&[EACCES])),
    bare("read /etc/passwd, no Landlock", NO_LANDLOCK, files::passwd, fails(&[ENOENT])),
    row("list the root folder", files::root, fails(&[EACCES])),
    bare("find the root folder empty, no Landlock", NO_LANDLOCK, files::root_is_empty, End::Works),
    row("write to the root folder", files::write_to_root, fails(&[libc::EROFS])),
    bare("write to it, no Landlock", NO_LANDLOCK, files::write_to_root, fails(&[libc::EROFS])),
    row("read a folder that is not granted", files::read_ungranted, fails(&[EACCES])),
    row("list a folder that is not granted", files::list_ungranted, fails(&[EACCES])),
    row("climb out of a granted folder", files::climb, fails(&[EACCES])),
    row("climb out by a link", files::climb_by_link, fails(&[EACCES])),
    row("follow a link out", files::follow_link_out, fails(&[ENOENT])),
    bare("follow a link out, no empty root", NO_ROOT, files::follow_link_out, fails(&[EACCES])),
    row("read a granted folder", files::read, End::Works),
    row("read beneath a granted folder", files::read_beneath, End::Works),
    row("list a granted folder", files::list, End::Works),
    row("write to a file that may be read", files::write_readable, fails(&[EACCES])),
    row("create where files may be read", files::create_readable, fails(&[EACCES])),
    row("truncate a file that may be read", files::truncate_readable, fails(&[EACCES])),
    row("remove a file that may be read", files::remove_readable, fails(&[EACCES])),
    row("open a descriptor's file anew, to write", files::reopen_for_writing, fails(&[EACCES])),
    row("read a granted file that was replaced", files::reopen_replaced, End::Works),
    row("open it anew, to write", files::write_replaced, fails(&[EACCES])),
    row("write, rename, link and remove where granted", files::write, End::Works),
    row("move into a folder to read", files::move_into_readable, fails(&[EACCES, EXDEV])),
    row("link a file that is not granted", files::link_ungranted, fails(&[EACCES, EXDEV])),
    row("move a file that is not granted", files::move_ungranted, fails(&[EACCES, EXDEV])),
    row("read the host's memory", files::memory_of_parent, fails(&[ENOENT])),
    bare("read it, no empty root", NO_ROOT, files::memory_of_parent, fails(&[EACCES])),
    row("read the host's environment", files::environment_of_parent, fails(&[ENOENT])),
    bare("read that, no empty root", NO_ROOT, files::environment_of_parent, fails(&[EACCES])),
    bare("open the host's files", NO_ROOT, files::descriptor_of_parent, fails(&[EACCES])),
    row("grow a file past the bound", files::grow_file, fails(&[EFBIG])),
    row("grow a file at once", files::grow_file_at_once, fails(&[EFBIG])),
    row("set the times of a path", |s| files::at_writable(s, libc::SYS_utimensat, c"..", 0), KILLED),
    row("see that a file is there that is not granted", files::look_outside, End::Works),
    row("reserve room behind a file's end", files::reserve, KILLED),
    row("make a folder that the host cannot look into", files::closed_folder, KILLED),
    row("open more files than allowed", files::open_many, fails(&[EMFILE])),
    row("make a pipe file", |s| files::at_writable(s, libc::SYS_mknodat, c"p", 0o10_600), KILLED),
    bare(
        "make a pipe file, no filter",
        NO_FILTER,
        |s| files::at_writable(s, libc::SYS_mknodat, c"p", 0o10_600),
        fails(&[EACCES]),
    ),
    row("change rights", |s| files::at_writable(s, libc::SYS_fchmodat, c".", 0o777), KILLED),
    row("change owners", |s| files::at_writable(s, libc::SYS_fchownat, c".", 0), KILLED),
];

const NETWORK: &[Row] = &[
    row("make a socket", network::socket, KILLED),
    row("make a socket for datagrams", network::datagram_socket, KILLED),
    row("make a Unix socket", network::unix_socket, KILLED),
    row("make a socket to the kernel", network::netlink_socket, KILLED),
    row("make a socket for raw packets", network::packet_socket, KILLED),
    bare("the same, no filter", NO_FILTER, network::packet_socket, fails(&[EPERM])),
    row("connect a socket", network::connect_loose, KILLED),
    bare("connect the host's, no filter", NO_FILTER, network::connect_loose, fails(&[EACCES])),
    bare(
        "connect a new one, no filter or Landlock",
        NO_FILTER_OR_LANDLOCK,
        network::connect_new,
        fails(&[libc::ENETUNREACH]),
    ),
    row("bind a socket", network::bind, KILLED),
    bare("bind the host's, no filter", NO_FILTER, network::bind, fails(&[EACCES])),
    bare("connect to an abstract name", NO_FILTER, network::connect_abstract, fails(&[EPERM])),
    bare(
        "connect a new one to it, no filter or namespace",
        NO_FILTER_OR_NETWORK,
        network::connect_abstract_anew,
        fails(&[EPERM]),
    ),
    bare(
        "connect a new one to it, no filter or Landlock",
        NO_FILTER_OR_LANDLOCK,
        network::connect_abstract_anew,
        fails(&[libc::ECONNREFUSED]),
    ),
    row("send to another address", network::send_to_another, KILLED),
    row("send with descriptors", network::send_with_descriptors, KILLED),
    row("bind to a device", |s| network::option(s, libc::SO_BINDTODEVICE), KILLED),
    row("attach a filter to a socket", |s| network::option(s, libc::SO_ATTACH_FILTER), KILLED),
    row("mark packets", |s| network::option(s, libc::SO_MARK), KILLED),
    row("send to the connected end", network::send_to_the_connected, End::Works),
    row("receive from it", network::receive, End::Works),
    row("send without delay", network::without_delay, End::Works),
];

const PROCESSES: &[Row] = &[
    row("start a program", processes::exec, KILLED),
    row("start it from an older thread", processes::exec_from_older_thread, KILLED),
    bare("start it, no filter", NO_FILTER, processes::exec, fails(&[ENOENT])),
    bare("start it, no filter or root", NO_FILTER_OR_ROOT, processes::exec, fails(&[EACCES])),
    row("fork", processes::fork, KILLED),
    row("fork into new users", processes::clone_with_users, KILLED),
    row("fork by clone3", |_| call(libc::SYS_clone3, [0; 6]).map(drop), fails(&[ENOSYS])),
    row("start a thread where none may start", processes::thread, fails(&[libc::EAGAIN])),
    threaded("start a thread", processes::thread, End::Works),
    threaded("fork where threads may start", processes::fork, KILLED),
    row("signal the host", processes::signal_parent, KILLED),
    bare("signal the host, no filter", NO_FILTER, processes::signal_parent, fails(&[ESRCH])),
    bare("signal it, no filter or ids", NO_FILTER_OR_IDS, processes::signal_parent, fails(&[EPERM])),
    bare("signal it, no filter or Landlock", NO_FILTER_OR_LANDLOCK, processes::signal_parent, fails(&[ESRCH])),
    row("signal everybody", processes::signal_everybody, KILLED),
    bare("signal everybody, no filter", NO_FILTER, processes::signal_everybody, fails(&[ESRCH])),
    bare("find itself the first process", NO_FILTER, processes::is_first, End::Works),
    row("signal a thread of the host", processes::signal_parents_thread, KILLED),
    row("trace the host", processes::trace_parent, KILLED),
    bare("trace the host, no filter", NO_FILTER, processes::trace_parent, fails(&[ESRCH])),
    bare("trace it, no filter or ids", NO_FILTER_OR_IDS, processes::trace_parent, fails(&[EPERM])),
    row("read the host by its id", processes::read_parent, KILLED),
    bare("read that, no filter", NO_FILTER, processes::read_parent, fails(&[ESRCH])),
    bare("read that, no filter or ids", NO_FILTER_OR_IDS, processes::read_parent, fails(&[EPERM])),
    row("hold the host", processes::handle_of_parent, KILLED),
    bare("hold the host, no filter", NO_FILTER, processes::handle_of_parent, fails(&[ESRCH])),
    row("read the host's limits", processes::limits_of_parent, KILLED),
    row("end itself by abort", processes::abort, End::Killed(libc::SIGABRT)),
    row("touch no memory", |_| syscalls::fault(), End::Killed(libc::SIGSEGV)),
];

const RIGHTS: &[Row] = &[
    row("raise a limit", processes::raise_own_limit, KILLED),
    bare("raise a limit, no filter", NO_FILTER, processes::raise_own_limit, fails(&[EPERM])),
    row("make a user namespace", processes::new_users, KILLED),
    bare("fork into one, no filter", NO_FILTER, processes::clone_with_users, fails(&[ENOSPC])),
    row("make a mount namespace", processes::new_mounts, KILLED),
    bare("make that, no filter", NO_FILTER, processes::new_mounts, fails(&[EPERM])),
    row("mount", processes::mount, KILLED),
    bare("mount, no filter", NO_FILTER, processes::mount, fails(&[EPERM])),
    bare("mount, no filter or Landlock", NO_FILTER_OR_LANDLOCK, processes::mount, fails(&[EPERM])),
    row("change the root", processes::change_root, KILLED),
    bare("change the root, no filter", NO_FILTER, processes::change_root, fails(&[EPERM])),
    bare("name the host, no filter", NO_FILTER, processes::set_host_name, fails(&[EPERM])),
    row("gain a capability", processes::gain_capability, KILLED),
    bare("gain one, no filter", NO_FILTER, processes::gain_capability, fails(&[EPERM])),
    bare("find no capability", NO_FILTER, processes::has_no_capability, End::Works),
    bare(
        "become another user, no filter",
        NO_FILTER,
        |_| call(libc::SYS_setuid, [1, 0, 0, 0, 0, 0]).map(drop),
        fails(&[EINVAL]),
    ),
    row("become dumpable", |_| processes::answers(libc::PR_SET_DUMPABLE, 1, 0), KILLED),
    bare("find itself not dumpable", NO_FILTER, |_| processes::answers(libc::PR_GET_DUMPABLE, 0, 0), End::Works),
    row("outlive the host", |_| processes::answers(libc::PR_SET_PDEATHSIG, 0, 0), KILLED),
    bare(
        "take back no new privileges",
        NO_FILTER,
        |_| processes::answers(libc::PR_SET_NO_NEW_PRIVS, 0, 0),
        fails(&[EINVAL]),
    ),
    bare("find that setting", NO_FILTER, |_| processes::answers(libc::PR_GET_NO_NEW_PRIVS, 0, 1), End::Works),
    row("take a terminal's keys", |_| ioctl(libc::TIOCSTI), KILLED),
    row("ask a terminal", |_| ioctl(libc::TCGETS), KILLED),
    row(
        "send signals by a descriptor",
        |s| call(libc::SYS_fcntl, [number(&s.connected), flags(libc::F_SETOWN), s.parent, 0, 0, 0]).map(drop),
        KILLED,
    ),
];

const MEMORY: &[Row] = &[
    row("reserve a tebibyte", memory::reserve_much, End::Works),
    row("fill the memory that is allowed", memory::fill_what_is_allowed, End::Works),
    row("fill more by turns, which is left to the host", memory::fill_by_turns, End::Works),
    row("give memory back", memory::give_back, End::Works),
    row("map too much memory", memory::map_too_much, fails(&[ENOMEM])),
    row("map too much in pieces", memory::map_too_many_pieces, fails(&[ENOMEM])),
    row("open reserved memory", memory::open_too_much_of_a_reservation, fails(&[ENOMEM])),
    row("grow the heap", memory::grow_the_heap, fails(&[ENOMEM])),
    row("allocate too much", memory::allocate_too_much, fails(&[ENOMEM])),
    row("reallocate", memory::reallocate, End::Works),
    row("stretch a mapping", memory::stretch, fails(&[ENOMEM])),
    row("map shared memory", |_| map(libc::MAP_SHARED | libc::MAP_ANONYMOUS), KILLED),
    row("map a stack that grows", |_| map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_GROWSDOWN), KILLED),
    row("map huge pages", |_| map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB), KILLED),
    row("make a file of memory", |_| memfd(0), KILLED),
    row("make one to run", |_| memfd(0x10), KILLED),
    row(
        "merge equal pages",
        |_| call(libc::SYS_madvise, [0, 0, flags(libc::MADV_MERGEABLE), 0, 0, 0]).map(drop),
        KILLED,
    ),
    row("inherit priority", |_| call(libc::SYS_futex, [0, flags(libc::FUTEX_LOCK_PI), 0, 0, 0, 0]).map(drop), KILLED),
];

const CODE: &[Row] = &[
    row("map memory to run", memory::map_executable, KILLED),
    bare("map it, no filter", NO_FILTER, memory::map_executable, fails(&[EACCES])),
    row("make memory run", memory::make_executable, KILLED),
    bare("make it run, no filter", NO_FILTER, memory::make_executable, fails(&[EACCES])),
    row("write over the program", memory::make_own_code_writable, KILLED),
    bare("make memory run, no wall", NO_FILTER_OR_CODE, memory::make_executable, End::Works),
    #[cfg(target_arch = "x86_64")]
    row("call by the table of x32", |_| call(X32_GETPID, [0; 6]).map(drop), KILLED),
    #[cfg(target_arch = "x86_64")]
    row("call by the table of 32 bits", |_| syscalls::call_of_32_bits(11), KILLED),
    row("call what no kernel knows", |_| call(100_000, [0; 6]).map(drop), KILLED),
];

#[cfg(target_arch = "x86_64")]
const X32_GETPID: c_long = 0x4000_0000 | libc::SYS_getpid;

fn ioctl(request: libc::Ioctl) -> std::io::Result<()> {
    let request = usize::try_from(request).map_err(std::io::Error::other)?;
    call(libc::SYS_ioctl, [2, request, 0, 0, 0, 0]).map(drop)
}

fn map(how: i32) -> std::io::Result<()> {
    memory::map(4096, libc::PROT_READ | libc::PROT_WRITE, how).map(drop)
}

fn memfd(flags: usize) -> std::io::Result<()> {
    call(libc::SYS_memfd_create, [text(c"x"), flags, 0, 0, 0, 0]).map(drop)
}

/// A row for each call that ends the process, whatever its arguments.
macro_rules! killing {
    ($($call:ident)*) => {
        &[$(row(stringify!($call), |_| call(libc::$call, [0; 6]).map(drop), KILLED)),*]
    };
}

const CALLS: &[Row] = killing! {
    SYS_accept SYS_accept4 SYS_acct SYS_add_key SYS_adjtimex SYS_bpf SYS_capget SYS_capset
    SYS_clock_adjtime SYS_clock_settime SYS_close_range SYS_copy_file_range SYS_delete_module
    SYS_dup SYS_dup3 SYS_execveat SYS_faccessat SYS_fanotify_init SYS_fchdir SYS_fchmod SYS_fchown
    SYS_fgetxattr SYS_finit_module SYS_flock SYS_fsetxattr SYS_fsmount SYS_fsopen SYS_fspick
    SYS_fstatfs SYS_getcwd SYS_getitimer SYS_getppid SYS_getpriority SYS_getsid SYS_getuid
    SYS_init_module SYS_inotify_init1 SYS_io_setup SYS_io_submit SYS_io_uring_enter
    SYS_io_uring_register SYS_io_uring_setup SYS_ioprio_set SYS_kcmp SYS_kexec_load SYS_keyctl
    SYS_kill SYS_landlock_create_ruleset SYS_landlock_restrict_self SYS_listen
    SYS_lookup_dcookie SYS_mbind SYS_migrate_pages SYS_mlock SYS_mlockall SYS_mount
    SYS_mount_setattr SYS_move_mount SYS_move_pages SYS_mq_open SYS_msgget SYS_msync
    SYS_name_to_handle_at SYS_open_by_handle_at SYS_open_tree SYS_perf_event_open SYS_personality
    SYS_pidfd_getfd SYS_pidfd_open SYS_pidfd_send_signal SYS_pipe2 SYS_pivot_root
    SYS_pkey_mprotect SYS_process_madvise SYS_process_vm_readv SYS_process_vm_writev SYS_ptrace
    SYS_quotactl SYS_reboot SYS_recvmmsg SYS_remap_file_pages SYS_request_key SYS_rt_sigqueueinfo
    SYS_rt_tgsigqueueinfo SYS_sched_setaffinity SYS_sched_setattr SYS_sched_setscheduler
    SYS_seccomp SYS_semget SYS_sendfile SYS_sendmmsg SYS_sendmsg SYS_set_mempolicy SYS_setdomainname
    SYS_setgid SYS_setgroups SYS_sethostname SYS_setitimer SYS_setns SYS_setpriority SYS_setreuid
    SYS_setresuid SYS_setrlimit SYS_setsid SYS_settimeofday SYS_setuid SYS_shmat SYS_shmget
    SYS_signalfd4 SYS_socketpair SYS_splice SYS_statfs SYS_swapoff SYS_swapon SYS_sync
    SYS_sync_file_range SYS_syncfs SYS_sysinfo SYS_syslog SYS_tee SYS_tkill SYS_timer_create
    SYS_timerfd_create SYS_truncate SYS_umask SYS_umount2 SYS_uname SYS_unshare SYS_userfaultfd
    SYS_vhangup SYS_vmsplice SYS_wait4 SYS_waitid
};
