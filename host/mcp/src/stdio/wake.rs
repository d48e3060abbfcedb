//! Wakes the reader out of its poll: a pipe that other threads write a byte to.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Wakes one thread that polls.
#[derive(Debug)]
pub(super) struct Wake {
    reader: PipeReader,
    writer: PipeWriter,
    /// The thread waits for a small change.
    wanted: AtomicBool,
}

impl Wake {
    pub(super) fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { reader, writer, wanted: AtomicBool::new(false) })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// Asks for the next [`notice`](Self::notice). The awaited condition must be checked again
    /// afterwards.
    pub(super) fn want(&self) {
        self.wanted.store(true, Ordering::SeqCst);
    }

    /// Reports a small change. Costs a system call only if the thread waits for one.
    pub(super) fn notice(&self) {
        if self.wanted.load(Ordering::SeqCst) && self.wanted.swap(false, Ordering::SeqCst) {
            self.alert();
        }
    }

    /// Wakes in any case. A pipe takes thousands of these unread, so it does not block.
    pub(super) fn alert(&self) {
        // A failure would mean that the reader is gone.
        let _ = (&self.writer).write(&[1]);
    }

    /// Takes the bytes written so far. To be called only after a poll found some.
    pub(super) fn clear(&self) {
        let _ = (&self.reader).read(&mut [0; 64]);
    }
}
