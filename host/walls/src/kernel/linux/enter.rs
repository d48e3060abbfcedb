//! The order in which walls are built.

use std::ffi::c_ulong;
use std::fs::File;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{DumpableBehavior, Signal};

use super::refusal::{Refusal, WallStep};
use super::{capabilities, filter, folders, limits, namespaces, syscalls};
use crate::kernel::report::{Report, WallState};
use crate::kernel::rights::Rights;
use crate::kernel::wall::Wall;

/// A process behind its first walls. It may still map code and start threads.
#[derive(Debug)]
pub struct Entered {
    site: EnterSite,
    memory_bytes_max: u64,
    files_max: u64,
    file_bytes_max: Option<u64>,
    new_threads: bool,
    statm: Option<File>,
    ends_first: Result<(), Refusal>,
}

/// The walls under construction.
#[derive(Debug)]
struct EnterSite {
    report: Report,
    without: Vec<Wall>,
}

/// Builds every wall that can stand before code is mapped. Never aborts: the caller decides by the
/// report.
///
/// The process must not have started a thread: some walls belong to a thread, and new threads
/// inherit them.
pub fn enter(rights: &Rights<'_>) -> Entered {
    let report = Report::of_none("the process is not sealed");
    let mut site = EnterSite { report, without: rights.without.to_vec() };
    site.build(Wall::NoNewPrivileges, no_new_privileges);
    site.build(Wall::Core, limits::no_core);
    site.build(Wall::Files, || limits::files(rights));
    // The later root has no /proc/self/statm, and opening it may need a capability.
    let statm = limits::statm();
    let ends_first = limits::end_first();
    site.build(Wall::UserNamespace, namespaces::users);
    if let Some(max) = rights.threads_max {
        let has_namespace = site.report.stands(Wall::UserNamespace);
        site.build(Wall::Threads, || limits::threads(max, has_namespace));
    }
    site.build(Wall::IpcNamespace, || namespaces::own(libc::CLONE_NEWIPC));
    site.build(Wall::NetworkNamespace, || namespaces::own(libc::CLONE_NEWNET));
    site.build(Wall::MountNamespace, namespaces::empty_root);
    site.build(Wall::PidNamespace, namespaces::process_ids);
    site.build(Wall::Capabilities, capabilities::give_up);
    // Landlock refuses mounts, so it follows them.
    site.build(Wall::Landlock, || folders::restrict(rights.folders));
    site.build(Wall::NotDumpable, not_dumpable);
    // The kernel resets this signal when rights change, so it comes last.
    site.build(Wall::DiesWithHost, || dies_with_host(rights));
    let new_threads = rights.threads_max.is_some();
    let Rights { memory_bytes_max, files_max, file_bytes_max, .. } = *rights;
    Entered { site, memory_bytes_max, files_max, file_bytes_max, new_threads, statm, ends_first }
}

impl Entered {
    /// The walls that stand so far.
    pub fn report(&self) -> &Report {
        &self.site.report
    }

    /// Builds the last walls, around every thread: no memory becomes executable, and only a few
    /// system calls are allowed. Any other ends the process.
    pub fn seal(self) -> Report {
        let Self { mut site, memory_bytes_max, files_max, file_bytes_max, new_threads, statm, ends_first } = self;
        if let Some(bytes_max) = file_bytes_max.filter(|_| site.report.stands(Wall::Files)) {
            site.build(Wall::Files, || limits::file_lengths(files_max, bytes_max));
        }
        site.build(Wall::Memory, || {
            let bound = limits::memory(statm, memory_bytes_max)?;
            ends_first.map(|()| bound)
        });
        site.build(Wall::FixedCode, fixed_code);
        site.build(Wall::SystemCalls, || filter::install(new_threads));
        if site.report.stands(Wall::SystemCalls) {
            for wall in [Wall::FixedCode, Wall::Processes] {
                site.hold(wall, "by the filter of system calls");
            }
            if !new_threads {
                site.hold(Wall::Threads, "no more after the seal");
            }
        } else {
            let walls = if new_threads { &[Wall::Processes][..] } else { &[Wall::Processes, Wall::Threads] };
            for wall in walls {
                site.build(*wall, || Err(Refusal::new("it needs system-calls")));
            }
        }
        site.report
    }
}

impl EnterSite {
    fn build(&mut self, wall: Wall, build: impl FnOnce() -> Result<String, Refusal>) {
        let state = if self.without.contains(&wall) {
            WallState::Missing("left away".to_owned())
        } else {
            build().map_or_else(|refusal| WallState::Missing(refusal.to_string()), WallState::Stands)
        };
        self.report.put(wall, state);
    }

    /// The filter has the same effect if the wall itself is missing.
    fn hold(&mut self, wall: Wall, how: &str) {
        if !self.report.stands(wall) {
            self.report.put(wall, WallState::Stands(how.to_owned()));
        }
    }
}

fn no_new_privileges() -> Result<String, Refusal> {
    syscalls::prctl(libc::PR_SET_NO_NEW_PRIVS, [1, 0, 0, 0]).step("PR_SET_NO_NEW_PRIVS")?;
    Ok(String::new())
}

fn not_dumpable() -> Result<String, Refusal> {
    let never = DumpableBehavior::NotDumpable;
    rustix::process::set_dumpable_behavior(never).step("PR_SET_DUMPABLE")?;
    Ok(String::new())
}

/// Since Linux 6.3. Before that only the filter refuses it.
fn fixed_code() -> Result<String, Refusal> {
    let refuse = c_ulong::from(libc::PR_MDWE_REFUSE_EXEC_GAIN);
    syscalls::prctl(libc::PR_SET_MDWE, [refuse, 0, 0, 0]).step("PR_SET_MDWE")?;
    Ok(String::new())
}

/// The signal comes when the *thread* that started this process ends, so the host must start it
/// from a thread that lives as long as the host.
fn dies_with_host(rights: &Rights<'_>) -> Result<String, Refusal> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).step("PR_SET_PDEATHSIG")?;
    let Some(link) = rights.link else {
        return Ok(String::new());
    };
    // A host that ended before the call above can no longer cause the signal.
    let has_ended = || Err(Refusal::new("the host has ended, or another process started this one"));
    let Some(parent) = rustix::process::getppid() else {
        // Inside a namespace of process ids, the first process cannot see who started it. The host
        // holds the other end of the link as long as it lives. If it is about to end, this process
        // is not used: components run only after the host has answered the seal.
        return if is_hung_up(link).step("poll")? { has_ended() } else { Ok(String::new()) };
    };
    let host = rustix::net::sockopt::socket_peercred(link).step("SO_PEERCRED")?.pid;
    if parent == host { Ok(String::new()) } else { has_ended() }
}

fn is_hung_up(link: BorrowedFd<'_>) -> rustix::io::Result<bool> {
    let mut looked = [PollFd::from_borrowed_fd(link, PollFlags::empty())];
    rustix::event::poll(&mut looked, Some(&Timespec::default()))?;
    Ok(looked.iter().any(|looked| looked.revents().contains(PollFlags::HUP)))
}
