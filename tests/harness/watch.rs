//! Ends a program that does not end by itself. A host that hangs must not hang the program that
//! waits for it.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Ends this process unless dropped in time.
#[derive(Debug)]
pub struct Watch {
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches from now on, for at most this long. After that, calls `complain` and ends the
    /// process with code 1.
    #[must_use]
    pub fn for_at_most(patience: Duration, complain: impl FnOnce() + Send + 'static) -> Self {
        let (done, waits) = channel();
        let thread = std::thread::spawn(move || {
            if waits.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                complain();
                // The children end by themselves when their input ends.
                std::process::exit(1);
            }
        });
        Self { done: Some(done), thread: Some(thread) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.done = None;
        // The thread ends with the channel, without a complaint.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
