//! How often a file is read, as the kernel tells: what a test goes by that must know when a host
//! has looked.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::frames::PATIENCE;

/// Counts how often one file is opened to be read and closed again. It is the file itself that is
/// watched, not its path.
#[derive(Debug)]
pub struct Readings(OwnedFd);

impl Readings {
    /// Counts from now on.
    ///
    /// # Panics
    /// Where the kernel does not tell.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let told = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&told, path, WatchFlags::CLOSE_NOWRITE).unwrap();
        Self(told)
    }

    /// How many there were since this was asked last.
    ///
    /// # Panics
    /// Where the kernel does not tell.
    #[must_use]
    pub fn count(&self) -> usize {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let mut count = 0;
        loop {
            match reader.next() {
                Ok(_) => count += 1,
                Err(Errno::AGAIN) => return count,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Waits until there is one more at least.
    ///
    /// # Panics
    /// Where there is none in time.
    pub fn wait(&self) {
        let limit = Timespec::try_from(PATIENCE).unwrap();
        let told = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&limit)).unwrap();
        assert!(told > 0, "nobody reads it");
        let _ = self.count();
    }
}
