//! Starting a program as the first process of a namespace of process ids.

use std::{
    ffi::{CStr, CString, OsStr, OsString},
    io,
    os::fd::BorrowedFd,
    os::unix::ffi::{OsStrExt, OsStringExt},
};

use rustix::process::{Pid, getegid, geteuid};

use super::Command;
use crate::kernel::{FirstProcess, start_first};

/// The namespaces to request, tried in this order.
const FOR_ROOT: &[libc::c_int] = &[libc::CLONE_NEWPID, FOR_ANYBODY];

/// An ordinary user can only create it within a user namespace.
const FOR_ANYBODY: libc::c_int = libc::CLONE_NEWPID | libc::CLONE_NEWUSER;

/// Starts it with these as its standard input, output and error.
///
/// # Errors
/// The kernel refuses such a namespace, or the program cannot be started at all.
pub(super) fn start(command: &Command, standard: [BorrowedFd<'_>; 3]) -> io::Result<Pid> {
    let is_root = geteuid().is_root();
    let tries = if is_root { FOR_ROOT } else { &[FOR_ANYBODY] };
    let program = text(command.program.as_os_str())?;
    let arguments: Vec<CString> =
        [&command.name].into_iter().chain(&command.arguments).map(|word| text(word)).collect::<Result<_, _>>()?;
    let environment: Vec<CString> =
        command.environment.iter().map(|(name, value)| variable(name, value)).collect::<Result<_, _>>()?;
    let maps = maps()?;
    let mut answer = Err(io::ErrorKind::Unsupported.into());
    for namespaces in tries {
        let maps = if namespaces & libc::CLONE_NEWUSER == 0 { &[] } else { maps.as_slice() };
        let first =
            FirstProcess { program: &program, arguments: &arguments, environment: &environment, standard, maps };
        answer = start_first(&first, *namespaces);
        if answer.is_ok() {
            break;
        }
    }
    answer
}

/// The process keeps its user and its group, and others are unknown to it.
fn maps() -> io::Result<[(&'static CStr, CString); 3]> {
    let user = geteuid().as_raw();
    let group = getegid().as_raw();
    Ok([
        (c"/proc/self/setgroups", c"deny".to_owned()),
        (c"/proc/self/uid_map", CString::new(format!("{user} {user} 1"))?),
        (c"/proc/self/gid_map", CString::new(format!("{group} {group} 1"))?),
    ])
}

fn variable(name: &OsString, value: &OsString) -> io::Result<CString> {
    let pieces = [name.as_bytes(), b"=", value.as_bytes()];
    text(&OsString::from_vec(pieces.concat()))
}

fn text(word: &OsStr) -> io::Result<CString> {
    Ok(CString::new(word.as_bytes())?)
}
