//! A guest's body on its way to the server.
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Empty};

use super::fault::BodyFault;
use super::fields;
use super::requests::HttpBody;

/// A guest's body, held to its declared length and to the limits of trailers. Bytes are charged to
/// the call where they are written to the connection.
pub(super) struct GuestHttpBody {
    body: HttpBody,
    declared_bytes: Option<u64>,
    sent_bytes: u64,
    fields_max: usize,
    fields_bytes_max: usize,
    sent: Sent,
}

/// A flag: the body was sent completely.
#[derive(Clone, Default)]
pub(super) struct Sent(Arc<AtomicBool>);

impl Sent {
    /// True if all of it was sent.
    pub(super) fn is_whole(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl GuestHttpBody {
    /// A body of the declared length, if one is declared, with trailers of at most this many fields
    /// and bytes.
    pub(super) fn new(body: HttpBody, declared_bytes: Option<u64>, fields_max: usize, fields_bytes_max: usize) -> Self {
        let sent = Sent::default();
        // A message without a body is never polled for it.
        sent.0.store(body.is_end_stream(), Ordering::Release);
        Self { body, declared_bytes, sent_bytes: 0, fields_max, fields_bytes_max, sent }
    }

    /// No body.
    pub(super) fn none() -> Self {
        let body = Empty::new().map_err(|never: Infallible| match never {}).boxed_unsync();
        Self::new(body, None, 0, 0)
    }

    /// A flag that is set once it was sent.
    pub(super) fn sent(&self) -> Sent {
        self.sent.clone()
    }

    fn count(&mut self, frame: &Frame<Bytes>) -> Result<(), BodyFault> {
        if let Some(data) = frame.data_ref() {
            self.sent_bytes = self.sent_bytes.saturating_add(u64::try_from(data.len()).unwrap_or(u64::MAX));
            if self.declared_bytes.is_some_and(|declared| self.sent_bytes > declared) {
                return Err(BodyFault::Length { sent_bytes: self.sent_bytes });
            }
        }
        match frame.trailers_ref().map(|trailers| fields::check(trailers, self.fields_max, self.fields_bytes_max)) {
            Some(Err(bytes)) => Err(BodyFault::Trailers { bytes: u64::try_from(bytes).unwrap_or(u64::MAX) }),
            _ => Ok(()),
        }
    }

    fn end(&self) -> Result<(), BodyFault> {
        if self.declared_bytes.is_some_and(|declared| declared != self.sent_bytes) {
            return Err(BodyFault::Length { sent_bytes: self.sent_bytes });
        }
        self.sent.0.store(true, Ordering::Release);
        Ok(())
    }
}

impl Body for GuestHttpBody {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(match frame {
            Some(Ok(frame)) => {
                let last = frame.is_trailers();
                let counted = self.count(&frame).and_then(|()| if last { self.end() } else { Ok(()) });
                // Nobody polls again for a body that is at its end, or as long as was declared.
                if self.body.is_end_stream() || self.declared_bytes == Some(self.sent_bytes) {
                    let _ = self.end();
                }
                Some(counted.map(|()| frame))
            }
            Some(Err(_)) => Some(Err(self.end().err().unwrap_or(BodyFault::Aborted))),
            None => self.end().err().map(Err),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
