//! Attempts at processes and rights.

use std::ffi::c_int;
use std::io;
use std::process::{Command, ExitCode};

use crate::linux::{end, read, say, start};
use crate::reports;
use crate::site::Site;
use crate::stage::{CHILD, this_binary};
use crate::syscalls::{call, text};

pub(crate) fn flags(flags: c_int) -> usize {
    flags.cast_unsigned() as usize
}

pub(crate) fn exec(_: &Site) -> io::Result<()> {
    run_true()
}

fn run_true() -> io::Result<()> {
    let arguments = [text(c"/bin/true"), 0];
    let environment = [0_usize];
    let pointers = [arguments.as_ptr().addr(), environment.as_ptr().addr()];
    let [arguments, environment] = pointers;
    call(libc::SYS_execve, [text(c"/bin/true"), arguments, environment, 0, 0, 0]).map(drop)
}

pub(crate) fn fork(_: &Site) -> io::Result<()> {
    call(libc::SYS_clone, [flags(libc::SIGCHLD), 0, 0, 0, 0, 0]).map(drop)
}

pub(crate) fn clone_with_users(_: &Site) -> io::Result<()> {
    let flags = flags(libc::CLONE_NEWUSER | libc::SIGCHLD);
    call(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]).map(drop)
}

pub(crate) fn thread(_: &Site) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("a name".to_owned()).spawn(|| 7)?;
    match thread.join() {
        Ok(7) => Ok(()),
        other => Err(io::Error::other(format!("{other:?}"))),
    }
}

/// A thread that was started before the seal.
pub(crate) fn exec_from_older_thread(site: &Site) -> io::Result<()> {
    let thread = site.older_thread.as_ref().ok_or(io::ErrorKind::NotFound)?;
    thread.try_there(run_true)
}

pub(crate) fn signal_parent(site: &Site) -> io::Result<()> {
    call(libc::SYS_kill, [site.parent, 0, 0, 0, 0, 0]).map(drop)
}

pub(crate) fn signal_parents_thread(site: &Site) -> io::Result<()> {
    call(libc::SYS_tgkill, [site.parent, site.parent, 0, 0, 0, 0]).map(drop)
}

pub(crate) fn trace_parent(site: &Site) -> io::Result<()> {
    let seize = usize::try_from(libc::PTRACE_SEIZE).map_err(io::Error::other)?;
    call(libc::SYS_ptrace, [seize, site.parent, 0, 0, 0, 0]).map(drop)
}

pub(crate) fn read_parent(site: &Site) -> io::Result<()> {
    let bytes = [0_u8; 8];
    let piece = [bytes.as_ptr().expose_provenance(), bytes.len()];
    let piece = piece.as_ptr().expose_provenance();
    call(libc::SYS_process_vm_readv, [site.parent, piece, 1, piece, 1, 0]).map(drop)
}

pub(crate) fn handle_of_parent(site: &Site) -> io::Result<()> {
    call(libc::SYS_pidfd_open, [site.parent, 0, 0, 0, 0, 0]).map(drop)
}

pub(crate) fn limits_of_parent(site: &Site) -> io::Result<()> {
    let limits = [0_u64; 2];
    let limits = limits.as_ptr().expose_provenance();
    call(libc::SYS_prlimit64, [site.parent, 0, 0, limits, 0, 0]).map(drop)
}

pub(crate) fn raise_own_limit(_: &Site) -> io::Result<()> {
    let limits = [u64::MAX; 2];
    let limits = limits.as_ptr().expose_provenance();
    let files = usize::try_from(libc::RLIMIT_NOFILE).map_err(io::Error::other)?;
    call(libc::SYS_prlimit64, [0, files, limits, 0, 0, 0]).map(drop)
}

pub(crate) fn new_users(_: &Site) -> io::Result<()> {
    call(libc::SYS_unshare, [flags(libc::CLONE_NEWUSER), 0, 0, 0, 0, 0]).map(drop)
}

pub(crate) fn new_mounts(_: &Site) -> io::Result<()> {
    call(libc::SYS_unshare, [flags(libc::CLONE_NEWNS), 0, 0, 0, 0, 0]).map(drop)
}

pub(crate) fn mount(_: &Site) -> io::Result<()> {
    let arguments = [text(c"none"), text(c"/"), text(c"tmpfs"), 0, 0, 0];
    call(libc::SYS_mount, arguments).map(drop)
}

pub(crate) fn change_root(_: &Site) -> io::Result<()> {
    call(libc::SYS_chroot, [text(c"/"), 0, 0, 0, 0, 0]).map(drop)
}

pub(crate) fn set_host_name(_: &Site) -> io::Result<()> {
    call(libc::SYS_sethostname, [text(c"x"), 1, 0, 0, 0, 0]).map(drop)
}

/// Asks for one capability back: that of changing users.
pub(crate) fn gain_capability(_: &Site) -> io::Result<()> {
    let header = [0x2008_0522_u32, 0];
    let sets = [1_u32 << 7, 1 << 7, 0, 0, 0, 0];
    let header = header.as_ptr().expose_provenance();
    call(libc::SYS_capset, [header, sets.as_ptr().expose_provenance(), 0, 0, 0, 0]).map(drop)
}

pub(crate) fn has_no_capability(_: &Site) -> io::Result<()> {
    let header = [0x2008_0522_u32, 0];
    let sets = [1_u32; 6];
    let pointers = [header.as_ptr().expose_provenance(), sets.as_ptr().expose_provenance()];
    let [header, address] = pointers;
    call(libc::SYS_capget, [header, address, 0, 0, 0, 0])?;
    let sets = std::hint::black_box(sets);
    if sets == [0; 6] { Ok(()) } else { Err(io::Error::other(format!("{sets:x?}"))) }
}

/// An option of `prctl` with one argument, and its right answer.
pub(crate) fn answers(option: c_int, argument: usize, answer: usize) -> io::Result<()> {
    match call(libc::SYS_prctl, [flags(option), argument, 0, 0, 0, 0])? {
        got if got == answer => Ok(()),
        got => Err(io::Error::other(format!("{got}"))),
    }
}

pub(crate) fn abort(_: &Site) -> io::Result<()> {
    std::process::abort()
}

/// Finds itself the first process of all that it sees, and nobody who started it.
pub(crate) fn is_first(_: &Site) -> io::Result<()> {
    let answers = [call(libc::SYS_getpid, [0; 6])?, call(libc::SYS_getppid, [0; 6])?];
    if answers == [1, 0] { Ok(()) } else { Err(io::Error::other(format!("{answers:?}"))) }
}

pub(crate) fn signal_everybody(_: &Site) -> io::Result<()> {
    call(libc::SYS_kill, [usize::MAX, 0, 0, 0, 0, 0]).map(drop)
}

/// A host between the test and a sealed process, which lives until it is killed.
pub(crate) fn be_a_host(arguments: &[String]) -> ExitCode {
    let (sleeper, mut link) = start(this_binary(instead(arguments, "asleep"))).expect("a process");
    say(&read(&mut link, Some("sealed")).expect("its word"));
    loop {
        std::thread::park();
        assert!(sleeper.end().is_none());
    }
}

/// A host that cannot create namespaces: it passes on the report of its child.
pub(crate) fn be_barred(arguments: &[String]) -> ExitCode {
    reports::refuse_process_ids();
    let ended = end(this_binary(instead(arguments, "report"))).expect("a process");
    say(&ended.said);
    if ended.status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Stands between the test and a process that has its link.
pub(crate) fn be_a_foster(arguments: &[String]) -> ExitCode {
    let mut command = Command::new("/proc/self/exe");
    command.env_clear().arg(CHILD).args(instead(arguments, "report"));
    let status = command.status().expect("a process");
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The arguments of a child that does something else.
fn instead(arguments: &[String], word: &str) -> impl Iterator<Item = String> {
    [word.to_owned()].into_iter().chain(arguments.iter().skip(1).cloned())
}
