//! Ends the run where a measurement does not end: a host that hangs must not hang what waits for it.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Ends this process unless dropped in time.
pub struct Watch {
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches over the measurement of this name.
    pub fn over(name: &'static str, patience: Duration) -> Self {
        let (done, waits) = channel();
        let thread = std::thread::spawn(move || {
            if waits.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                crate::complain(&format!("{name} takes longer than {} s: an answer is missing", patience.as_secs()));
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
