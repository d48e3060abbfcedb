//! A response that is a stream of server-sent events: frames as they come, comments in between, and
//! an end.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::CredentialValidity;
use super::limits::HttpLimits;
use super::mailbox::{Ending, Mailbox, Next};

/// A comment, so that no proxy takes the stream for dead.
const BEAT: &[u8] = b":\n\n";

type Revoked = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The resources behind an open stream.
pub(super) trait Lease: Send + Sync {
    /// The validity of the caller's credential, if the stream ends with it.
    fn validity(&self) -> CredentialValidity {
        CredentialValidity::default()
    }

    /// The stream has reached its time limit: puts the end into its mailbox.
    fn expire(&self);
}

/// One open stream.
pub(super) struct EventStream {
    mailbox: Arc<Mailbox>,
    /// A frame that came before the stream was begun.
    first: Option<Vec<u8>>,
    /// True until something was sent. The head of a response goes out with its first bytes.
    fresh: bool,
    beat_every: std::time::Duration,
    beat: Pin<Box<Sleep>>,
    expires: Pin<Box<Sleep>>,
    /// Done once the caller's credential was revoked.
    revoked: Option<Revoked>,
    expired: bool,
    ended: bool,
    lease: Box<dyn Lease>,
}

impl EventStream {
    pub(super) fn new(
        mailbox: Arc<Mailbox>,
        first: Option<Vec<u8>>,
        limits: &HttpLimits,
        lease: Box<dyn Lease>,
    ) -> Self {
        let validity = lease.validity();
        let ends = Instant::now() + limits.stream_time;
        let ends = validity.until.map_or(ends, |until| ends.min(until.into()));
        Self {
            mailbox,
            fresh: first.is_none(),
            first,
            beat_every: limits.beat,
            beat: Box::pin(sleep(limits.beat)),
            expires: Box::pin(sleep_until(ends)),
            revoked: validity.revoked.map(|revoked| -> Revoked { Box::pin(async move { revoked.cancelled().await }) }),
            expired: false,
            ended: false,
            lease,
        }
    }

    /// The source of its frames.
    pub(super) fn mailbox(&self) -> &Arc<Mailbox> {
        &self.mailbox
    }

    /// The next bytes; `None` once it has ended.
    pub(super) fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if let Some(first) = self.first.take() {
            return self.event(&first);
        }
        if std::mem::take(&mut self.fresh) {
            return Poll::Ready(Some(Bytes::from_static(BEAT)));
        }
        loop {
            match self.mailbox.poll_next(context) {
                Poll::Ready(Next::Event(frame)) => return self.event(&frame),
                Poll::Ready(Next::End(ending)) => {
                    self.ended = true;
                    return match ending {
                        Ending::Answer(frame) | Ending::Refusal(frame, _) => self.event(&frame),
                        Ending::Nothing => Poll::Ready(None),
                    };
                }
                Poll::Pending => {}
            }
            if !self.expired && self.is_over(context) {
                self.expired = true;
                self.lease.expire();
                continue;
            }
            if self.beat.as_mut().poll(context).is_ready() {
                self.rest();
                return Poll::Ready(Some(Bytes::from_static(BEAT)));
            }
            return Poll::Pending;
        }
    }

    /// True if its time is over, or the caller's credential was revoked.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let revoked = self.revoked.as_mut().is_some_and(|revoked| revoked.as_mut().poll(context).is_ready());
        revoked || self.expires.as_mut().poll(context).is_ready()
    }

    fn event(&mut self, frame: &[u8]) -> Poll<Option<Bytes>> {
        self.rest();
        let mut out = Vec::with_capacity(frame.len() + 8);
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(frame);
        out.extend_from_slice(b"\n\n");
        Poll::Ready(Some(out.into()))
    }

    fn rest(&mut self) {
        self.beat.as_mut().reset(Instant::now() + self.beat_every);
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.mailbox.close();
    }
}
