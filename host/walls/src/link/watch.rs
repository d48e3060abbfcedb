//! Waiting until a socket can be read or written.
//!
//! On Linux the runtime watches an epoll set that contains the socket, and the set has the wanted
//! events. So a thread that reads by itself can switch the watch off with one system call, on any
//! thread, and no other thread is woken for what it reads. Elsewhere the runtime watches the socket
//! itself.
//!
//! After each switching on, the caller polls again: earlier events may not be reported.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{Mutex, PoisonError},
};

use tokio::io::{Interest, unix::AsyncFd};

use super::socket;

/// Events that are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    read: bool,
    write: bool,
}

/// A socket that is watched by a tokio runtime.
#[derive(Debug)]
pub(super) struct Watch {
    socket: OwnedFd,
    wanted: Mutex<Wanted>,
    watched: imp::Watched,
}

impl Watch {
    /// Reading is wanted at first.
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        socket::never_wait(&socket)?;
        let wanted = Wanted { read: true, write: false };
        let watched = imp::Watched::new(&socket, wanted)?;
        Ok(Self { socket, wanted: Mutex::new(wanted), watched })
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Sets whether [`ready`](Self::ready) reports that there is something to read.
    pub(super) fn want_read(&self, read: bool) -> io::Result<()> {
        self.want(|wanted| wanted.read = read)
    }

    /// Sets whether [`ready`](Self::ready) reports that the socket is writable.
    pub(super) fn want_write(&self, write: bool) -> io::Result<()> {
        self.want(|wanted| wanted.write = write)
    }

    fn want(&self, change: impl FnOnce(&mut Wanted)) -> io::Result<()> {
        let mut now = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *now;
        change(&mut now);
        if *now == before {
            return Ok(());
        }
        self.watched.change(&self.socket, *now)
    }

    /// Waits until a wanted event may have occurred. The caller polls between this and the next
    /// wait.
    pub(super) async fn ready(&self) -> io::Result<()> {
        self.watched.ready().await
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use super::{AsFd, AsyncFd, Interest, OwnedFd, Wanted, io};
    use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

    #[derive(Debug)]
    pub(super) struct Watched {
        set: AsyncFd<OwnedFd>,
    }

    impl Watched {
        #[expect(deprecated, reason = "an `OwnedFd` stays the same descriptor and open: sound")]
        pub(super) fn new(socket: &OwnedFd, wanted: Wanted) -> io::Result<Self> {
            let set = epoll::create(CreateFlags::CLOEXEC)?;
            epoll::add(&set, socket, EventData::new_u64(0), flags(wanted))?;
            Ok(Self { set: AsyncFd::with_interest(set, Interest::READABLE)? })
        }

        pub(super) fn change(&self, socket: &OwnedFd, wanted: Wanted) -> io::Result<()> {
            let set = self.set.get_ref().as_fd();
            Ok(epoll::modify(set, socket, EventData::new_u64(0), flags(wanted))?)
        }

        pub(super) async fn ready(&self) -> io::Result<()> {
            self.set.readable().await?.clear_ready();
            Ok(())
        }
    }

    /// The end of the link is always reported.
    fn flags(wanted: Wanted) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN | EventFlags::RDHUP, wanted.read);
        flags.set(EventFlags::OUT, wanted.write);
        flags
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use super::{AsFd, AsyncFd, Interest, OwnedFd, Wanted, io};
    use tokio::sync::watch;

    #[derive(Debug)]
    pub(super) struct Watched {
        socket: AsyncFd<OwnedFd>,
        wanted: watch::Sender<Wanted>,
    }

    impl Watched {
        #[expect(deprecated, reason = "an `OwnedFd` stays the same descriptor and open: sound")]
        pub(super) fn new(socket: &OwnedFd, wanted: Wanted) -> io::Result<Self> {
            let socket = socket.as_fd().try_clone_to_owned()?;
            let socket = AsyncFd::with_interest(socket, Interest::READABLE | Interest::WRITABLE)?;
            Ok(Self { socket, wanted: watch::Sender::new(wanted) })
        }

        pub(super) fn change(&self, _: &OwnedFd, wanted: Wanted) -> io::Result<()> {
            self.wanted.send_replace(wanted);
            Ok(())
        }

        pub(super) async fn ready(&self) -> io::Result<()> {
            let mut changes = self.wanted.subscribe();
            loop {
                let wanted = *changes.borrow_and_update();
                tokio::select! {
                    ready = self.socket.readable(), if wanted.read => {
                        ready?.clear_ready();
                        return Ok(());
                    }
                    ready = self.socket.writable(), if wanted.write => {
                        ready?.clear_ready();
                        return Ok(());
                    }
                    _ = changes.changed() => {}
                }
            }
        }
    }
}
