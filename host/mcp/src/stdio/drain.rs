//! Shutdown: running calls may finish within a time, then they are cancelled; their answers are
//! written within a time.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{StdioShutdown, Wake, output};
use crate::connection::ClientConnection;
use crate::host::{Host, Outbox as _};

/// Time for cancelled calls to end and their answers to be written. They need milliseconds.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// The shutdown half of [`serve`](super::serve).
pub(super) struct Drain<'d, H: Host> {
    pub(super) connection: &'d ClientConnection<H>,
    pub(super) output: &'d output::SharedOutput,
    pub(super) wake: &'d Wake,
    pub(super) shutdown: &'d StdioShutdown,
    pub(super) shutdown_grace: Duration,
}

impl<H: Host> Drain<'_, H> {
    /// Lets calls run for `time`, then ends them.
    pub(super) fn run(&self, time: Duration) {
        self.connection.end_subscriptions();
        // Nothing is read any more, so questions cannot be answered.
        self.connection.end_asking();
        let deadline = Instant::now() + time;
        if !self.wait(deadline, || self.connection.is_idle() || self.output.is_closed()) || self.output.is_closed() {
            self.connection.cancel_all();
            self.wait(Instant::now() + CANCEL_GRACE, || self.connection.is_idle());
        }
        self.output.flush();
        let deadline = deadline.max(Instant::now() + CANCEL_GRACE);
        self.wait(deadline, || self.output.is_empty());
    }

    /// Waits until `is_so` returns true; false if the time is over.
    fn wait(&self, mut deadline: Instant, is_so: impl Fn() -> bool) -> bool {
        let mut shortened = false;
        loop {
            self.wake.want();
            if is_so() {
                return true;
            }
            if !shortened && self.shutdown.has_begun() {
                shortened = true;
                deadline = deadline.min(Instant::now() + self.shutdown_grace);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.poll(left, !shortened);
            self.connection.resume();
        }
    }

    fn poll(&self, left: Duration, watch_shutdown: bool) {
        let mut fds = [
            PollFd::from_borrowed_fd(self.wake.fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.shutdown.fd(), PollFlags::IN),
        ];
        let watched = if watch_shutdown { 2 } else { 1 };
        // One more millisecond: the poll must not end just before the deadline and spin.
        let timeout = Timespec::try_from(left + Duration::from_millis(1)).ok();
        // An interrupted or failed poll is a spurious wake-up: the caller checks again, within its
        // deadline.
        let _ = poll(fds.get_mut(..watched).unwrap_or_default(), timeout.as_ref());
        let [wake, _] = &fds;
        if !wake.revents().is_empty() {
            self.wake.clear();
        }
    }
}
