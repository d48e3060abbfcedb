//! A response that is a stream of server-sent events: frames as they come, comments in between, and
//! an end.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::CredentialValidity;
use super::limits::HttpLimits;
use super::mailbox::{Mailbox, Next, ResponseEnd};
use super::unread::UnreadFrame;

/// A comment, so that proxies do not consider the stream dead.
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

    /// The stream begins, and is not empty. Returns the id of its first event, which has no data,
    /// if there is one.
    fn begin(&mut self, _mailbox: &Arc<Mailbox>) -> Option<Box<str>> {
        None
    }

    /// The stream has ended for this reader, or its connection broke. Returns true if the mailbox
    /// stays open, for a client that may resume.
    fn release(&mut self, _reader: u64, _ended: bool) -> bool {
        false
    }
}

/// One open stream.
pub(super) struct EventStream {
    mailbox: Arc<Mailbox>,
    reader: u64,
    /// The event with the id by which the client may resume.
    prime: Option<Bytes>,
    /// A frame that came before the stream began.
    first: Option<UnreadFrame>,
    /// The rest of the event that is being sent.
    pieces: VecDeque<Bytes>,
    /// True until something was sent: the head of a response goes out with its first bytes.
    fresh: bool,
    beat_every: std::time::Duration,
    beat: Pin<Box<Sleep>>,
    expires: Pin<Box<Sleep>>,
    /// Completes when the caller's credential is revoked.
    revoked: Option<Revoked>,
    expired: bool,
    ended: bool,
    lease: Box<dyn Lease>,
}

impl EventStream {
    pub(super) fn new(
        mailbox: Arc<Mailbox>,
        first: Option<UnreadFrame>,
        limits: &HttpLimits,
        mut lease: Box<dyn Lease>,
    ) -> Self {
        // A stream that ends at once cannot be resumed.
        let id = if first.is_none() && mailbox.ends_with_nothing() { None } else { lease.begin(&mailbox) };
        let prime = id.map(|id| Bytes::from(format!("id: {id}\ndata: \n\n")));
        let validity = lease.validity();
        let ends = Instant::now() + limits.stream_time;
        let ends = validity.until.map_or(ends, |until| ends.min(until.into()));
        Self {
            reader: mailbox.reader(),
            mailbox,
            fresh: first.is_none() && prime.is_none(),
            prime,
            first,
            pieces: VecDeque::new(),
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
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(piece));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        if let Some(prime) = self.prime.take() {
            return Poll::Ready(Some(prime));
        }
        if let Some(first) = self.first.take() {
            return self.event(first);
        }
        if std::mem::take(&mut self.fresh) {
            return Poll::Ready(Some(Bytes::from_static(BEAT)));
        }
        loop {
            match self.mailbox.poll_next(self.reader, context) {
                Poll::Ready(Next::Event(frame)) => return self.event(frame),
                Poll::Ready(Next::End(ending)) => {
                    self.ended = true;
                    return match ending {
                        ResponseEnd::Answer(frame) => self.event(frame),
                        ResponseEnd::Refusal(frame, _) => self.event(frame.into()),
                        ResponseEnd::Nothing | ResponseEnd::NotTaken => Poll::Ready(None),
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

    fn event(&mut self, frame: UnreadFrame) -> Poll<Option<Bytes>> {
        self.rest();
        self.pieces = frame.into_event(&self.mailbox);
        Poll::Ready(self.pieces.pop_front())
    }

    fn rest(&mut self) {
        self.beat.as_mut().reset(Instant::now() + self.beat_every);
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if self.mailbox.reader() != self.reader {
            return;
        }
        if let Some(first) = self.first.take() {
            self.mailbox.put_back(first);
        }
        if !self.lease.release(self.reader, self.ended) {
            self.mailbox.close();
        }
    }
}
