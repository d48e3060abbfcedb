//! The system calls of a link.

use std::{
    collections::VecDeque,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::net::UnixStream,
    time::Duration,
};

use rustix::{
    cmsg_space,
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags,
    },
};

use super::{FRAME_FDS_MAX, LinkError};

/// Both ends of a link. Neither survives an `exec`, unless it is passed as standard input.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((ours.into(), theirs.into()))
}

/// Makes reads and writes non-blocking.
pub(super) fn never_wait(socket: &OwnedFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(socket, true)?)
}

/// Reads bytes and descriptors. `None` if nothing is there, 0 bytes if the other end is closed.
pub(super) fn read(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
    fds: &mut VecDeque<OwnedFd>,
) -> Result<Option<usize>, LinkError> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(FRAME_FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut bytes = [IoSliceMut::new(into)];
        match rustix::net::recvmsg(socket, &mut bytes, &mut control, RECEIVE) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(None),
            other => break other.map_err(LinkError::of)?,
        }
    };
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(came) = message {
            fds.extend(came);
        }
    }
    close_on_exec(fds)?;
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(LinkError::TooManyFds);
    }
    Ok(Some(received.bytes))
}

/// Writes bytes, with descriptors on the first of them. `None` if the socket is full.
///
/// Only a frame with descriptors needs `sendmsg`, so a process that never sends any can be denied
/// it.
pub(super) fn write(
    socket: BorrowedFd<'_>,
    bytes: &[IoSlice<'_>],
    fds: &[BorrowedFd<'_>],
) -> Result<Option<usize>, LinkError> {
    loop {
        let written = if fds.is_empty() { rustix::io::writev(socket, bytes) } else { send(socket, bytes, fds) };
        return match written {
            Ok(count) => Ok(Some(count)),
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => Ok(None),
            Err(errno) => Err(LinkError::of(errno)),
        };
    }
}

fn send(socket: BorrowedFd<'_>, bytes: &[IoSlice<'_>], fds: &[BorrowedFd<'_>]) -> rustix::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(FRAME_FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::INVAL);
    }
    rustix::net::sendmsg(socket, bytes, &mut control, SendFlags::empty())
}

/// Blocks this thread until there is something to read, for at most `time`.
pub(super) fn sleep(socket: &OwnedFd, time: Duration) -> rustix::io::Result<()> {
    let time = Timespec::try_from(time).map_err(|_| Errno::INVAL)?;
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Ends both directions: the other process reads the end, and all that wait here are woken.
pub(super) fn shut(socket: &OwnedFd) {
    // An error means that the other end is already gone.
    let _ = rustix::net::shutdown(socket.as_fd(), rustix::net::Shutdown::Both);
}

#[cfg(target_os = "linux")]
const RECEIVE: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const RECEIVE: RecvFlags = RecvFlags::empty();

/// Other systems cannot receive descriptors closed on `exec`.
fn close_on_exec(fds: &VecDeque<OwnedFd>) -> Result<(), LinkError> {
    if cfg!(not(target_os = "linux")) {
        for fd in fds {
            rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC).map_err(LinkError::of)?;
        }
    }
    Ok(())
}
