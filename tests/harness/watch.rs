//! Ends a program where it does not end by itself: a host that hangs must not hang what waits for
//! it.

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
    /// Watches from now on, for at most this long. Past that `complain` is called, and the process
    /// ends with 1.
    #[must_use]
    pub fn for_at_most(patience: Duration, complain: impl FnOnce() + Send + 'static) -> Self {
        let (done, waits) = channel();
        let thread = std::thread::spawn(move || {
            if waits.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                complain();
                // The children see their input end, and end themselves.
                std::process::exit(1);
            }
        });
        Self { done: Some(done), thread: Some(thread) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.done = None;
        // It ends with the channel, and says nothing.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
