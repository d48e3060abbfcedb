//! inotify on folders. Other systems lack it, so files are polled there.
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::path::Path;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::Inotify;
#[cfg(target_os = "linux")]
pub use linux::Inotify;

/// The changes of a folder that are reported, besides those of its entries by name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Watching {
    /// No further ones: files closed after writing, and entries made, removed and renamed.
    Entries,
    /// Attributes too, and the folder itself renamed.
    Attributes,
    /// All of these, and each write.
    Writes,
}

/// One change.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The watch, as [`Inotify::add`] gave it.
    pub watch: i32,
    /// The entry; none for the folder itself.
    pub name: Option<&'a OsStr>,
    /// Events were lost.
    pub overflowed: bool,
    /// An entry was made.
    pub created: bool,
    /// The watch has ended.
    pub ended: bool,
    /// The folder itself was removed or renamed.
    pub gone: bool,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::os::unix::ffi::OsStrExt as _;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;

    use super::{BorrowedFd, Event, OsStr, Path, Watching};

    /// Buffer for events of one read: about a hundred.
    const EVENT_BYTES: usize = 16 * 1024;

    /// Entries count once they are whole: a file is reported when it is closed after writing.
    const ENTRIES: WatchFlags = WatchFlags::CLOSE_WRITE
        .union(WatchFlags::CREATE)
        .union(WatchFlags::DELETE)
        .union(WatchFlags::MOVE)
        .union(WatchFlags::DELETE_SELF)
        .union(WatchFlags::ONLYDIR);
    const ATTRIBUTES: WatchFlags = ENTRIES.union(WatchFlags::ATTRIB).union(WatchFlags::MOVE_SELF);

    /// One inotify instance.
    #[derive(Debug)]
    pub struct Inotify(OwnedFd);

    impl Inotify {
        /// # Errors
        /// The kernel gives none.
        pub fn new() -> rustix::io::Result<Self> {
            Ok(Self(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?))
        }

        /// Readable while events wait.
        pub fn fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }

        /// Watches a folder. `None` if it is gone, which the folder above it reports.
        ///
        /// # Errors
        /// As the kernel says, such as for too many watches.
        pub fn add(&self, folder: &Path, watching: Watching) -> rustix::io::Result<Option<i32>> {
            let mask = match watching {
                Watching::Entries => ENTRIES,
                Watching::Attributes => ATTRIBUTES,
                Watching::Writes => ATTRIBUTES | WatchFlags::MODIFY,
            };
            match inotify::add_watch(&self.0, folder, mask) {
                Ok(watch) => Ok(Some(watch)),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Ok(None),
                Err(error) => Err(error),
            }
        }

        /// Ends a watch. The kernel may have removed it with its folder.
        pub fn remove(&self, watch: i32) {
            let _ = inotify::remove_watch(&self.0, watch);
        }

        /// Takes all events that wait.
        pub fn take(&self, mut each: impl FnMut(Event<'_>)) {
            let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
            let mut reader = Reader::new(&self.0, &mut buffer);
            while let Ok(event) = reader.next() {
                let flags = event.events();
                each(Event {
                    watch: event.wd(),
                    name: event.file_name().map(|name| OsStr::from_bytes(name.to_bytes())),
                    overflowed: flags.contains(ReadFlags::QUEUE_OVERFLOW),
                    created: flags.contains(ReadFlags::CREATE),
                    ended: flags.contains(ReadFlags::IGNORED),
                    gone: flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF),
                });
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::convert::Infallible;

    use rustix::io::Errno;

    use super::{BorrowedFd, Event, Path, Watching};

    /// Never made.
    #[derive(Debug)]
    pub struct Inotify(Infallible);

    impl Inotify {
        /// # Errors
        /// Always: this system has no inotify.
        pub fn new() -> rustix::io::Result<Self> {
            Err(Errno::NOSYS)
        }

        pub fn fd(&self) -> BorrowedFd<'_> {
            match self.0 {}
        }

        pub fn add(&self, _: &Path, _: Watching) -> rustix::io::Result<Option<i32>> {
            match self.0 {}
        }

        pub fn remove(&self, _: i32) {
            match self.0 {}
        }

        pub fn take(&self, _: impl FnMut(Event<'_>)) {
            match self.0 {}
        }
    }
}
