//! Bodies of guests that are completed before their head is sent.
//!
//! wasi:http lets a guest send the head first and its body afterwards, and most libraries do. So
//! the length of a body is unknown at first, even of an empty one, and HTTP/1.1 would have to send
//! it in chunks. Many servers refuse chunks: some on `DELETE`, others everywhere.
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};
use toolcell_walls::door::DATA_BYTES_MAX;
use wasmtime_wasi_http::{Error, WasiBody};

/// Bytes of a body that are held, up to the next write: enough for JSON documents and small files.
/// A larger body is sent in chunks, unless the guest sets its length. Each request of a call may
/// hold this much.
const HELD_BYTES_MAX: usize = 256 << 10;

/// Time for a guest to finish a body that it has ready, even on a busy machine. After that, the
/// head is sent without a length.
const WAIT: Duration = Duration::from_millis(50);

/// A body whose beginning is held.
struct HeldStart {
    bytes: BytesMut,
    /// The frame after them that ended the wait: trailers, or an error because the guest gave up.
    next: Option<Result<Frame<Bytes>, Error>>,
    /// `None` if nothing more comes.
    rest: Option<WasiBody>,
}

/// The request with a body of known length, if the guest finishes it in time.
pub(super) async fn hold(request: Request<WasiBody>) -> Request<WasiBody> {
    let is_declared = request.headers().contains_key(header::CONTENT_LENGTH);
    if is_declared || request.body().is_end_stream() || request.body().size_hint().exact().is_some() {
        return request;
    }
    let (parts, body) = request.into_parts();
    let held = HeldStart::of(body).await;
    Request::from_parts(parts, held.boxed_unsync())
}

impl HeldStart {
    async fn of(mut body: WasiBody) -> Self {
        let until = Instant::now() + WAIT;
        let mut bytes = BytesMut::new();
        while bytes.len() < HELD_BYTES_MAX {
            match timeout_at(until, body.frame()).await {
                Ok(None) => return Self { bytes, next: None, rest: None },
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => bytes.extend_from_slice(&data),
                    Err(frame) => return Self { bytes, next: Some(Ok(frame)), rest: Some(body) },
                },
                Ok(Some(Err(error))) => return Self { bytes, next: Some(Err(error)), rest: Some(body) },
                Err(_) => break,
            }
        }
        Self { bytes, next: None, rest: Some(body) }
    }
}

impl Body for HeldStart {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if !self.bytes.is_empty() {
            let piece_bytes = self.bytes.len().min(DATA_BYTES_MAX);
            return Poll::Ready(Some(Ok(Frame::data(self.bytes.split_to(piece_bytes).freeze()))));
        }
        if let Some(next) = self.next.take() {
            return Poll::Ready(Some(next));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty() && self.next.is_none() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.rest {
            Some(_) => SizeHint::default(),
            None => SizeHint::with_exact(u64::try_from(self.bytes.len()).unwrap_or(u64::MAX)),
        }
    }
}
