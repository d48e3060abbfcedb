//! Wakes the reader from its poll: pipes to which other threads write a byte, for small changes and
//! for shutdown.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Wakes one thread that polls.
#[derive(Debug)]
pub(super) struct Wake {
    reader: PipeReader,
    writer: PipeWriter,
    /// True if the thread waits for a small change.
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

    /// Requests the next [`notice`](Self::notice). The awaited condition must be checked again
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

    /// Wakes in any case. A pipe holds thousands of these unread, so this does not block.
    pub(super) fn alert(&self) {
        // A failure would mean that the reader is gone.
        let _ = (&self.writer).write(&[1]);
    }

    /// Reads the bytes written so far. Only call it after a poll found some.
    pub(super) fn clear(&self) {
        let _ = (&self.reader).read(&mut [0; 64]);
    }
}

/// Asks [`serve`](super::serve) to end. Cheap to clone; once begun it stays so.
#[derive(Clone, Debug)]
pub struct StdioShutdown {
    shared: Arc<ShutdownFlag>,
}

#[derive(Debug)]
struct ShutdownFlag {
    begun: AtomicBool,
    /// Readable once begun, and never read, so that every poll sees it.
    reader: PipeReader,
    writer: PipeWriter,
}

impl StdioShutdown {
    /// A shutdown that has not begun.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { shared: Arc::new(ShutdownFlag { begun: AtomicBool::new(false), reader, writer }) })
    }

    /// Begins shutdown. Calling it again does nothing.
    pub fn begin(&self) {
        if !self.shared.begun.swap(true, Ordering::SeqCst) {
            // The pipe is empty and its reader is held here: this neither blocks nor fails.
            let _ = (&self.shared.writer).write(&[1]);
        }
    }

    /// True once it has begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.shared.begun.load(Ordering::SeqCst)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.shared.reader.as_fd()
    }
}
