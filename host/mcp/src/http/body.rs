//! Bodies: a request's, read whole within its bounds; a response's, whole or a stream of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

use super::limits::HttpLimits;
use super::quota::QuotaGuard;
use super::refusal::HttpRefusal;
use super::stream::EventStream;
use super::unread::UnreadFrame;
use super::watch::RequestWatch;
use crate::frame::OverlongFrame;

/// The content of a response.
pub(super) enum ResponseContent {
    Whole(UnreadFrame),
    Events(Box<EventStream>),
}

impl ResponseContent {
    pub(super) fn none() -> Self {
        Self::Whole(UnreadFrame::default())
    }
}

/// A response's body. Its connection is not idle while this lives, or while its bytes are unsent.
pub(super) struct ResponseBody {
    content: ResponseContent,
    open: Option<RequestWatch>,
}

/// The last piece of a whole response on its way: it is unsent while this lives.
struct UnsentBytes {
    bytes: Bytes,
    _open: Option<RequestWatch>,
    _counted: Option<QuotaGuard>,
}

impl AsRef<[u8]> for UnsentBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl ResponseBody {
    /// `write_time` is the time that the client may leave it unread.
    pub(super) fn new(content: ResponseContent, mut open: RequestWatch, write_time: Duration) -> Self {
        match &content {
            ResponseContent::Whole(frame) if frame.is_empty() => open.done(),
            ResponseContent::Whole(frame) => open.answers(frame.len(), write_time),
            ResponseContent::Events(stream) => open.streams(stream.mailbox()),
        }
        Self { content, open: Some(open) }
    }

    fn is_done(&mut self) {
        if let Some(open) = &mut self.open {
            open.done();
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.content {
            ResponseContent::Whole(frame) => match frame.next_piece() {
                Some(bytes) if frame.is_empty() => {
                    let counted = frame.take_count();
                    self.is_done();
                    let last = UnsentBytes { bytes, _open: self.open.take(), _counted: counted };
                    Poll::Ready(Some(Bytes::from_owner(last)))
                }
                piece => Poll::Ready(piece),
            },
            ResponseContent::Events(stream) => stream.poll_bytes(context),
        };
        if matches!(next, Poll::Ready(None)) {
            self.is_done();
        }
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, ResponseContent::Whole(frame) if frame.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            ResponseContent::Whole(frame) => SizeHint::with_exact(frame.len() as u64),
            ResponseContent::Events(_) => SizeHint::default(),
        }
    }
}

/// Bytes of a body that is too long in which its id is looked for.
const BEGINNING_BYTES: usize = 64 * 1024;

/// The refusal of a body that is too long, under its id if one is found in what has come of it.
pub(super) fn too_long(bytes_max: usize, received: &[&[u8]]) -> HttpRefusal {
    let mut frame = OverlongFrame::default();
    received.iter().for_each(|piece| frame.read(piece));
    match frame.request_id() {
        Some(id) => HttpRefusal::Request(id.clone(), Box::new(HttpRefusal::TooLong(bytes_max))),
        None => HttpRefusal::TooLong(bytes_max),
    }
}

/// The longest wait for the beginning of a body that is too long. Clients that send a body at once
/// have sent it by then; one that only says a length gets its refusal without an id.
const BEGINNING_TIME: Duration = Duration::from_millis(500);

/// Reads a request's whole body. `taken` counts its bytes, against the caller's share and the
/// total, for as long as it is kept. Of a body that says that it is too long, only the beginning is
/// read, for the id in it; nothing of it where the client waits for a leave to send it
/// (`expect: 100-continue`, RFC 9110 section 10.1.1).
pub(super) async fn read<B>(
    body: B,
    waits_for_leave: bool,
    limits: &HttpLimits,
    taken: &mut QuotaGuard,
) -> Result<Bytes, HttpRefusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let max = limits.body_bytes_max;
    let is_long = body.size_hint().lower() > max as u64;
    if is_long && waits_for_leave {
        return Err(HttpRefusal::TooLong(max));
    }
    let mut received = Received::default();
    let kept_max = if is_long { max.min(BEGINNING_BYTES) } else { max };
    let time = if is_long { limits.body_time.min(BEGINNING_TIME) } else { limits.body_time };
    match tokio::time::timeout(time, received.read(body, kept_max, taken)).await {
        Ok(Ok(true)) => Ok(received.into_bytes()),
        Ok(Ok(false)) => Err(too_long(max, &received.pieces())),
        Ok(Err(refusal)) => Err(refusal),
        Err(_) if is_long => Err(too_long(max, &received.pieces())),
        Err(_) => Err(HttpRefusal::Slow),
    }
}

/// The part of a body that has come. Most come in one piece; only the others are joined.
#[derive(Default)]
struct Received {
    first: Bytes,
    joined: BytesMut,
    /// The piece with which it became too long.
    last: Bytes,
}

impl Received {
    /// Reads to the end. False as soon as more than `bytes_max` bytes have come.
    async fn read<B>(&mut self, mut body: B, bytes_max: usize, taken: &mut QuotaGuard) -> Result<bool, HttpRefusal>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let Ok(data) = frame.map_err(|_| HttpRefusal::Broken)?.into_data() else { continue };
            if self.first.len() + self.joined.len() + data.len() > bytes_max {
                self.last = data;
                return Ok(false);
            }
            taken.extend(data.len())?;
            if self.first.is_empty() && self.joined.is_empty() {
                self.first = data;
                continue;
            }
            if self.joined.is_empty() {
                self.joined.extend_from_slice(&std::mem::take(&mut self.first));
            }
            self.joined.extend_from_slice(&data);
        }
        Ok(true)
    }

    /// The pieces that have come, in order.
    fn pieces(&self) -> [&[u8]; 3] {
        [&self.first, &self.joined, &self.last]
    }

    fn into_bytes(self) -> Bytes {
        if self.joined.is_empty() { self.first } else { self.joined.freeze() }
    }
}
