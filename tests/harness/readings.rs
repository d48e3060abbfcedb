//! The number of times a file is read, through inotify. A test uses it to know when a host has read
//! a file.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::patience;

/// Counts how often one file is opened for reading and closed again. It watches the file itself,
/// not its path.
#[derive(Debug)]
pub struct Readings(OwnedFd);

impl Readings {
    /// Starts to count.
    ///
    /// # Panics
    /// If inotify fails.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let told = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&told, path, WatchFlags::CLOSE_NOWRITE).unwrap();
        Self(told)
    }

    /// The number of readings since the last call.
    ///
    /// # Panics
    /// If inotify fails.
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

    /// Waits for at least one further reading.
    ///
    /// # Panics
    /// If there is none in time.
    pub fn wait(&self) {
        let limit = Timespec::try_from(patience()).unwrap();
        let told = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&limit)).unwrap();
        assert!(told > 0, "nobody reads it");
        let _ = self.count();
    }
}
