//! Calls that are allowed with some arguments.

use std::ffi::{c_int, c_long};

use seccompiler::{BackendError, SeccompRule};

use super::Rules;
use super::arguments::{all, bits, int, int_bits, int_not, one_of, word};

/// Protection of mapped memory: reading and writing, never execution.
const DATA: u64 = bit(libc::PROT_READ) | bit(libc::PROT_WRITE);
/// Flags of private memory. Excluded are stacks that grow, which no limit of the process counts,
/// and huge pages.
const PRIVATE: u64 = bit(libc::MAP_FIXED)
    | bit(libc::MAP_FIXED_NOREPLACE)
    | bit(libc::MAP_ANONYMOUS)
    | bit(libc::MAP_NORESERVE)
    | bit(libc::MAP_STACK)
    | bit(libc::MAP_POPULATE);
/// Flags of memory shared through a descriptor. Without one, shared memory is not counted either.
const SHARED: u64 = bit(libc::MAP_FIXED) | bit(libc::MAP_NORESERVE) | bit(libc::MAP_POPULATE);

/// `clone` as the C libraries call it for a thread: glibc, then musl, which adds a flag that the
/// kernel ignores.
const THREAD: c_int = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID;
const THREADS: [c_int; 2] = [THREAD, THREAD | libc::CLONE_DETACHED];

/// Waiting and waking. Excluded is priority inheritance, which no lock of Rust's uses.
const FUTEX: [c_int; 6] = [
    libc::FUTEX_WAIT,
    libc::FUTEX_WAKE,
    libc::FUTEX_REQUEUE,
    libc::FUTEX_CMP_REQUEUE,
    libc::FUTEX_WAIT_BITSET,
    libc::FUTEX_WAKE_BITSET,
];
const FUTEX_FREE: u32 = (libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME).cast_unsigned();

/// Commands that get or set how a descriptor is used. None sends signals or locks.
const FCNTL: [c_int; 6] =
    [libc::F_DUPFD_CLOEXEC, libc::F_GETFD, libc::F_SETFD, libc::F_GETFL, libc::F_SETFL, libc::F_GET_SEALS];

/// Options of sockets that `wasi:sockets` and the runtime use.
const OPTIONS: [(c_int, &[c_int]); 4] = [
    (
        libc::SOL_SOCKET,
        &[
            libc::SO_ERROR,
            libc::SO_TYPE,
            libc::SO_DOMAIN,
            libc::SO_PROTOCOL,
            libc::SO_ACCEPTCONN,
            libc::SO_KEEPALIVE,
            libc::SO_LINGER,
            libc::SO_RCVBUF,
            libc::SO_SNDBUF,
        ],
    ),
    (libc::IPPROTO_TCP, &[libc::TCP_NODELAY, libc::TCP_KEEPIDLE, libc::TCP_KEEPINTVL, libc::TCP_KEEPCNT]),
    (libc::IPPROTO_IP, &[libc::IP_TTL]),
    (libc::IPPROTO_IPV6, &[libc::IPV6_UNICAST_HOPS, libc::IPV6_V6ONLY]),
];

/// Permissions that a new folder must give its owner, so that the host can always read it.
const OWN_FOLDER: u32 = libc::S_IRWXU;

/// This process, from `linux/pidfd.h`.
const PIDFD_SELF: c_int = -10_000;

const fn bit(flag: c_int) -> u64 {
    flag.cast_unsigned() as u64
}

/// The calls, for the process of this id.
pub(super) fn calls(process: u32) -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    rules.extend(memory()?);
    rules.extend(threads(process)?);
    rules.extend(descriptors()?);
    rules.extend(sockets()?);
    Ok(rules)
}

type CheckedCall = (c_long, Vec<SeccompRule>);

fn memory() -> Result<[CheckedCall; 4], BackendError> {
    let map = vec![
        all([bits(2, 0, DATA), bits(3, bit(libc::MAP_PRIVATE), PRIVATE)])?,
        all([bits(2, 0, DATA), bits(3, bit(libc::MAP_SHARED), SHARED)])?,
    ];
    Ok([
        (libc::SYS_mmap, map),
        (libc::SYS_mprotect, vec![all([bits(2, 0, DATA)])?]),
        // wasmtime returns the memory of several instances in one call.
        (libc::SYS_process_madvise, vec![all([int(0, PIDFD_SELF), int(3, libc::MADV_DONTNEED)])?]),
        // Merging equal pages reveals what other processes hold.
        (libc::SYS_madvise, vec![all([int_not(2, libc::MADV_MERGEABLE)])?]),
    ])
}

fn threads(process: u32) -> Result<[CheckedCall; 5], BackendError> {
    let clone = THREADS.iter().map(|flags| all([word(0, bit(*flags))]));
    let futex = FUTEX.iter().map(|op| all([int_bits(1, op.cast_unsigned(), FUTEX_FREE)]));
    Ok([
        (libc::SYS_clone, clone.collect::<Result<_, _>>()?),
        (libc::SYS_futex, futex.collect::<Result<_, _>>()?),
        // Ending itself with `abort`, and with no signal that others could have sent.
        (libc::SYS_tgkill, vec![all([int(0, process.cast_signed()), int(2, libc::SIGABRT)])?]),
        (libc::SYS_prctl, one_of(0, &[libc::PR_SET_NAME])?),
        // Reading its own limits, as the C library does for a thread's stack.
        (libc::SYS_prlimit64, vec![all([int(0, 0), word(2, 0)])?]),
    ])
}

fn descriptors() -> Result<[CheckedCall; 5], BackendError> {
    let ioctls = [libc::FIONBIO, libc::FIONREAD, libc::FIOCLEX, libc::FIONCLEX];
    let ioctls = ioctls.iter().map(|request| all([int_bits(1, *request as u32, 0)]));
    Ok([
        (libc::SYS_fcntl, one_of(1, &FCNTL)?),
        (libc::SYS_ioctl, ioctls.collect::<Result<_, _>>()?),
        (libc::SYS_mkdirat, vec![all([int_bits(2, OWN_FOLDER, !OWN_FOLDER)])?]),
        // Times of an open file. Landlock checks no path when times are set.
        (libc::SYS_utimensat, vec![all([word(1, 0)])?]),
        // Beneath an open folder. From the working folder it fails: see `refused.rs`.
        (libc::SYS_openat, Vec::new()),
    ])
}

fn sockets() -> Result<[CheckedCall; 3], BackendError> {
    let options = || {
        let each = OPTIONS.iter().flat_map(|(level, names)| names.iter().map(move |n| (level, n)));
        each.map(|(level, name)| all([int(1, *level), int(2, *name)])).collect::<Result<_, _>>()
    };
    Ok([
        // Without an address: to the peer that the host connected.
        (libc::SYS_sendto, vec![all([word(4, 0)])?]),
        (libc::SYS_getsockopt, options()?),
        (libc::SYS_setsockopt, options()?),
    ])
}
