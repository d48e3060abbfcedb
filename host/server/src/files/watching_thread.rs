//! Threads that wait for files, until they are stopped.
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::BorrowedFd;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A thread that waits for files. Dropping it ends the thread.
pub struct WatchingThread {
    thread: Option<JoinHandle<()>>,
    stop: Option<PipeWriter>,
}

impl WatchingThread {
    /// Starts a thread of this name, which must end once its pipe is closed.
    pub fn start(name: &str, run: impl FnOnce(PipeReader) + Send + 'static) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let thread = Builder::new().name(name.to_owned()).spawn(move || run(stopped))?;
        Ok(Self { thread: Some(thread), stop: Some(stop) })
    }
}

impl Drop for WatchingThread {
    fn drop(&mut self) {
        // The thread sees that the pipe closed.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits until one of these can be read, at most this long. Returns which can. It may also end
/// early: callers check what they wait for.
pub fn wait_readable<const N: usize>(fds: [Option<BorrowedFd<'_>>; N], timeout: Option<Duration>) -> [bool; N] {
    let mut polled: Vec<PollFd<'_>> =
        fds.into_iter().flatten().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    // One more millisecond, so that the poll does not end just before the time and spin.
    let timeout = timeout.and_then(|time| Timespec::try_from(time + Duration::from_millis(1)).ok());
    // An interrupted poll is a spurious wake-up.
    let _ = poll(&mut polled, timeout.as_ref());
    let mut polled = polled.iter();
    fds.map(|fd| fd.and_then(|_| polled.next()).is_some_and(|fd| !fd.revents().is_empty()))
}
