//! The body of a request, read whole within its bounds.

use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;

use super::limits::HttpLimits;
use super::quota::QuotaGuard;
use super::refusal::HttpRefusal;
use crate::frame::OverlongFrame;

/// Bytes of an overlong body that are searched for its id.
const BEGINNING_BYTES: usize = 64 * 1024;

/// The refusal of an overlong body, with its id if the beginning contains one.
pub(super) fn too_long(bytes_max: usize, received: &[&[u8]]) -> HttpRefusal {
    let mut frame = OverlongFrame::default();
    received.iter().for_each(|piece| frame.read(piece));
    HttpRefusal::TooLong(bytes_max).of(frame.request_id().cloned())
}

/// The longest wait for the beginning of a body that is too long. Most clients have sent it by
/// then; others get a refusal without an id.
const BEGINNING_TIME: Duration = Duration::from_millis(500);

/// Reads a request's whole body. `taken` counts its bytes, against the caller's share and the
/// total, for as long as it is kept. If the declared length is too long, only the beginning is
/// read, to find the id; nothing is read if the client waits for permission to send (`expect:
/// 100-continue`, RFC 9110 section 10.1.1).
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

/// The received part of a body. Most come in one piece; only others are joined.
#[derive(Default)]
struct Received {
    first: Bytes,
    joined: BytesMut,
    /// The piece that made it too long.
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

    /// The received pieces, in order.
    fn pieces(&self) -> [&[u8]; 3] {
        [&self.first, &self.joined, &self.last]
    }

    fn into_bytes(self) -> Bytes {
        if self.joined.is_empty() { self.first } else { self.joined.freeze() }
    }
}
