//! The wish to stop serving, from a signal or anywhere else in the process.

use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

    /// Begins it. Calling it again does nothing.
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
