//! Ends the run where it does not end by itself: a host that hangs must not hang what waits for it.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Ends this process unless dropped in time.
pub struct Watch {
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches from now on.
    pub fn for_at_most(patience: Duration) -> Self {
        let (done, waits) = channel();
        let thread = std::thread::spawn(move || {
            if waits.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                crate::complain(&format!("the host hangs: no end after {} s", patience.as_secs()));
                // The child sees its input end, and ends itself.
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
