//! A server's body on its way to the guest.
use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};
use toolcell_wall::doors::http_fault::HttpFault;

use super::connections::ConnectionLease;
use super::{fault, fields, framing};
use crate::secrets::{RedactedStream, Redactor};
use crate::wasi::net::CallNet;

/// Frames that are received before the guest asks: a short body, or the first part of a long one,
/// and its end. Each holds no more than the connection would otherwise.
const AHEAD_MAX: usize = 2;

/// Replaces the name of a field that contained a secret value.
const REDACTED_NAME: HeaderName = HeaderName::from_static("redacted");

/// A server's body, with secret values replaced, held to its time and to the limits of trailers.
/// Bytes are charged to the call where they are read from the connection. It holds the request's
/// turn, and its connection, until it ends or is dropped.
pub(super) struct ServerBody {
    body: hyper::body::Incoming,
    /// Frames that came with the head, in order.
    ahead: VecDeque<Result<Frame<Bytes>, HttpFault>>,
    net: Arc<CallNet>,
    redactor: Redactor,
    redacted: Option<RedactedStream>,
    /// Trailers that wait for the bytes that were held back.
    trailers: Option<HeaderMap>,
    deadline: Pin<Box<Sleep>>,
    between: Option<(Duration, Pin<Box<Sleep>>)>,
    lease: Option<ConnectionLease>,
    _turn: OwnedSemaphorePermit,
}

/// The terms under which a response's body is read.
pub(super) struct BodyTerms {
    pub(super) net: Arc<CallNet>,
    /// Replaces the values that a server may send back.
    pub(super) redactor: Redactor,
    /// When the request must be over.
    pub(super) deadline: Instant,
    /// The longest pause between bytes that the guest accepts.
    pub(super) between_bytes: Option<Duration>,
    pub(super) lease: ConnectionLease,
    pub(super) turn: OwnedSemaphorePermit,
}

impl ServerBody {
    pub(super) fn new(body: hyper::body::Incoming, terms: BodyTerms) -> Self {
        let BodyTerms { net, redactor, deadline, between_bytes, lease, turn } = terms;
        let redacted = (!redactor.is_empty()).then(|| redactor.stream());
        let between = between_bytes.map(|wait| (wait, Box::pin(tokio::time::sleep(wait))));
        let mut incoming = Self {
            body,
            ahead: VecDeque::new(),
            net,
            redactor,
            redacted,
            trailers: None,
            deadline: Box::pin(tokio::time::sleep_until(deadline)),
            between,
            lease: Some(lease),
            _turn: turn,
        };
        if incoming.body.is_end_stream() {
            incoming.ended();
        }
        incoming
    }

    /// Reads the frames that came with the head, without waiting. Here this costs a turn of the
    /// current thread, which drives the connection. Later, every frame costs the guest a message to
    /// that thread and one back.
    pub(super) async fn with_ahead(mut self) -> Self {
        while self.ahead.len() < AHEAD_MAX && !self.is_received() {
            // The first poll tells the connection that the body is read.
            let mut polled = self.poll_once().await;
            if polled.is_pending() {
                tokio::task::yield_now().await;
                polled = self.poll_once().await;
            }
            match polled {
                Poll::Ready(Some(frame)) => self.ahead.push_back(frame),
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        self
    }

    /// Restarts the time between bytes.
    fn receive(&mut self) {
        if let Some((wait, silence)) = &mut self.between {
            silence.as_mut().reset(Instant::now() + *wait);
        }
    }

    async fn poll_once(&mut self) -> Poll<Option<Result<Frame<Bytes>, HttpFault>>> {
        poll_fn(|context| Poll::Ready(self.poll_next(context))).await
    }

    /// True if the server has sent everything.
    pub(super) const fn is_received(&self) -> bool {
        self.lease.is_none()
    }

    /// The body was received completely, so its connection can carry another request.
    fn ended(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
    }

    fn failed(&mut self, error: HttpFault) -> HttpFault {
        if let Some(lease) = self.lease.take() {
            lease.close();
        }
        error
    }

    /// The next frame from the server, while there is time.
    fn poll_received(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpFault>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.receive();
            return Poll::Ready(match frame {
                Some(Ok(frame)) => Some(Ok(frame)),
                Some(Err(error)) => {
                    let error = if self.deadline.deadline() <= Instant::now() {
                        HttpFault::HttpResponseTimeout
                    } else {
                        fault::of_hyper(&error, &self.net)
                    };
                    Some(Err(self.failed(error)))
                }
                None => None,
            });
        }
        if self.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(self.failed(HttpFault::HttpResponseTimeout))));
        }
        let silence = self.between.as_mut().map(|(_, silence)| silence.as_mut().poll(context));
        if silence.is_some_and(|silence| silence.is_ready()) {
            return Poll::Ready(Some(Err(self.failed(HttpFault::ConnectionReadTimeout))));
        }
        Poll::Pending
    }

    /// The frame without secret values. `None` if all of it is held back until more comes.
    fn redact(&mut self, frame: Frame<Bytes>) -> Option<Frame<Bytes>> {
        let Some(redacted) = &mut self.redacted else { return Some(frame) };
        match frame.into_data() {
            Ok(data) => {
                let clean = redacted.push(&data);
                (!clean.is_empty()).then(|| Frame::data(clean.into()))
            }
            Err(frame) => {
                let mut trailers = frame.into_trailers().unwrap_or_default();
                redact_fields(&self.redactor, &mut trailers);
                let kept_back = redacted.finish();
                self.redacted = None;
                if kept_back.is_empty() {
                    return Some(Frame::trailers(trailers));
                }
                self.trailers = Some(trailers);
                Some(Frame::data(kept_back.into()))
            }
        }
    }

    fn check(&self, frame: &Frame<Bytes>) -> Result<(), HttpFault> {
        let limits = self.net.limits();
        let Some(trailers) = frame.trailers_ref() else { return Ok(()) };
        let over = |bytes| HttpFault::HttpResponseTrailerSectionSize(fault::clamped(bytes));
        fields::check(trailers, limits.headers, limits.header_bytes).map_err(over)?;
        framing::check_trailers(trailers)
    }

    /// The next frame for the guest, after those that came with the head.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpFault>>> {
        loop {
            if let Some(trailers) = self.trailers.take() {
                return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
            }
            if self.lease.is_none() && self.redacted.is_none() {
                return Poll::Ready(None);
            }
            let received = ready!(self.poll_received(context));
            let frame = match received {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => {
                    self.redacted = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    self.ended();
                    let kept_back = self.redacted.take().map(|mut redacted| redacted.finish()).unwrap_or_default();
                    if kept_back.is_empty() {
                        return Poll::Ready(None);
                    }
                    return Poll::Ready(Some(Ok(Frame::data(kept_back.into()))));
                }
            };
            if let Err(error) = self.check(&frame) {
                self.redacted = None;
                return Poll::Ready(Some(Err(self.failed(error))));
            }
            let frame = self.redact(frame);
            if self.body.is_end_stream() {
                self.ended();
            }
            if let Some(frame) = frame {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
    }
}

impl Body for ServerBody {
    type Data = Bytes;
    type Error = HttpFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpFault>>> {
        match self.ahead.pop_front() {
            Some(frame) => {
                // The guest begins to wait now, however long this was unread.
                self.receive();
                Poll::Ready(Some(frame))
            }
            None => self.poll_next(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_empty() && self.is_received() && self.redacted.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        // Redacting changes lengths, and frames that came with the head are no longer counted.
        if self.redacted.is_some() || !self.ahead.is_empty() { SizeHint::default() } else { self.body.size_hint() }
    }
}

impl Drop for ServerBody {
    /// A response that the guest did not read to its end is not received any further.
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.close();
        }
    }
}

/// Replaces secret values in the values of fields. A field whose name contains one is replaced by a
/// field named `redacted`.
pub(super) fn redact_fields(redactor: &Redactor, fields: &mut HeaderMap) {
    if redactor.is_empty() {
        return;
    }
    for value in fields.values_mut() {
        if let std::borrow::Cow::Owned(clean) = redactor.bytes(value.as_bytes()) {
            // Names of secrets consist of characters that a field's value may have.
            *value = HeaderValue::from_bytes(&clean).unwrap_or_else(|_| HeaderValue::from_static("[redacted]"));
        }
    }
    let named: Vec<HeaderName> = fields.keys().filter(|name| redactor.is_in_name(name.as_str())).cloned().collect();
    for name in named {
        fields.remove(name);
        fields.append(REDACTED_NAME, HeaderValue::from_static("[redacted]"));
    }
}
