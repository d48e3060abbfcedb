//! Frames on their way to a client, counted against its share until it has read them.
//!
//! Promise: unread answers take bounded memory.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::mailbox::Mailbox;
use super::quota::{QuotaError, QuotaGuard};
use crate::host::SharedFrame;

/// Bytes that a frame counts for in addition to its own: its entry in the mailbox, its response,
/// and what the connection keeps of it.
const FRAME_BYTES: usize = 1024;

/// Longest event that goes out in one piece, copied. 16 KiB: one frame of HTTP/2.
const JOINED_BYTES_MAX: usize = 16 * 1024;

/// Longest piece of a longer event. 64 KiB: a client on the worst of mobile networks takes one in a
/// second, and shows that it reads.
const PIECE_BYTES_MAX: usize = 64 * 1024;

const BEFORE_EVENT: &[u8] = b"data: ";
const AFTER_EVENT: &[u8] = b"\n\n";

/// One frame, in up to three pieces.
#[derive(Default)]
pub(super) struct UnreadFrame {
    pieces: [Bytes; 3],
    /// The part of the client's share that it uses.
    counted: Option<QuotaGuard>,
}

impl From<Vec<u8>> for UnreadFrame {
    fn from(frame: Vec<u8>) -> Self {
        Self { pieces: [frame.into(), Bytes::new(), Bytes::new()], counted: None }
    }
}

impl From<SharedFrame> for UnreadFrame {
    fn from(frame: SharedFrame) -> Self {
        let SharedFrame { head, shared, tail } = frame;
        Self { pieces: [head.into(), shared, tail.into()], counted: None }
    }
}

impl UnreadFrame {
    /// Its length in bytes.
    pub(super) fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// Its bytes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.pieces.concat()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.iter().all(Bytes::is_empty)
    }

    /// Counts the frame from now on. `held` was already counted for parts of it. Bytes that it
    /// shares with other frames exist once, and are not counted.
    ///
    /// # Errors
    /// The client, or all together, leave too much unread.
    pub(super) fn count(&mut self, mut held: QuotaGuard) -> Result<(), QuotaError> {
        let [first, _shared, last] = &self.pieces;
        let bytes = first.len() + last.len() + FRAME_BYTES;
        held.extend_past(bytes.saturating_sub(held.count()))?;
        self.counted = Some(held);
        Ok(())
    }

    /// Takes the next piece. It counts until all pieces are dropped.
    pub(super) fn next_piece(&mut self) -> Option<Bytes> {
        self.pieces.iter_mut().find(|piece| !piece.is_empty()).map(std::mem::take)
    }

    /// The part of the client's share, for the last piece to hold.
    pub(super) fn take_count(&mut self) -> Option<QuotaGuard> {
        self.counted.take()
    }

    /// The frame as an event of a stream, in pieces. The mailbox has something unread until all of
    /// them are dropped.
    pub(super) fn into_event(self, mailbox: &Arc<Mailbox>) -> VecDeque<Bytes> {
        let length = self.len() + BEFORE_EVENT.len() + AFTER_EVENT.len();
        let Self { pieces, counted } = self;
        let way = Arc::new(EventWay { mailbox: Arc::clone(mailbox), _counted: counted });
        mailbox.goes_out();
        let sent = |bytes: Bytes| Bytes::from_owner(EventPiece { bytes, way: Arc::clone(&way) });
        if length <= JOINED_BYTES_MAX {
            let mut joined = Vec::with_capacity(length);
            joined.extend_from_slice(BEFORE_EVENT);
            pieces.iter().for_each(|piece| joined.extend_from_slice(piece));
            joined.extend_from_slice(AFTER_EVENT);
            return VecDeque::from([sent(joined.into())]);
        }
        let before = std::iter::once(Bytes::from_static(BEFORE_EVENT));
        let whole = before.chain(pieces).chain([Bytes::from_static(AFTER_EVENT)]);
        whole.flat_map(cut).map(sent).collect()
    }
}

/// The bytes in pieces of bounded length, none of them empty.
fn cut(mut bytes: Bytes) -> Vec<Bytes> {
    let mut pieces = Vec::with_capacity(bytes.len().div_ceil(PIECE_BYTES_MAX));
    while !bytes.is_empty() {
        pieces.push(bytes.split_to(bytes.len().min(PIECE_BYTES_MAX)));
    }
    pieces
}

/// One event that was passed to its connection, but is not sent.
struct EventWay {
    mailbox: Arc<Mailbox>,
    _counted: Option<QuotaGuard>,
}

impl Drop for EventWay {
    fn drop(&mut self) {
        self.mailbox.has_gone_out();
    }
}

/// One piece of such an event.
struct EventPiece {
    bytes: Bytes,
    way: Arc<EventWay>,
}

impl AsRef<[u8]> for EventPiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for EventPiece {
    fn drop(&mut self) {
        self.way.mailbox.is_read();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::quota::{Owner, OwnerQuota};

    fn ann() -> Owner {
        Owner::Caller("ann".into())
    }

    fn mailbox() -> Arc<Mailbox> {
        Arc::new(Mailbox::new(true, 100, None))
    }

    #[test]
    fn a_frame_counts_until_its_last_piece_is_dropped() {
        let quota = OwnerQuota::new(usize::MAX, FRAME_BYTES * 10);
        let mut frame = UnreadFrame::from(vec![b'x'; 200_000]);
        assert_eq!(frame.count(quota.empty_guard(&ann())), Ok(()));
        assert_eq!(quota.taken(), 200_000 + FRAME_BYTES);
        let mut refused = UnreadFrame::from(vec![b'x']);
        assert_eq!(refused.count(quota.empty_guard(&ann())), Err(QuotaError::Share));
        let mailbox = mailbox();
        let mut pieces = frame.into_event(&mailbox);
        assert!(pieces.iter().all(|piece| piece.len() <= PIECE_BYTES_MAX));
        assert_eq!(pieces.iter().map(Bytes::len).sum::<usize>(), 200_008);
        let last = pieces.pop_back().unwrap();
        drop(pieces);
        assert_eq!(quota.taken(), 200_000 + FRAME_BYTES);
        assert!(mailbox.unread_since().is_some(), "its last piece is unread");
        drop(last);
        assert_eq!((quota.taken(), mailbox.unread_since()), (0, None));
    }

    #[test]
    fn bytes_that_frames_share_count_for_none_of_them() {
        let quota = OwnerQuota::new(usize::MAX, FRAME_BYTES * 3);
        let shared = Bytes::from(vec![b'x'; 1_000_000]);
        let frames: Vec<UnreadFrame> = (0..2)
            .map(|_| {
                let frame = SharedFrame { head: b"{".to_vec(), shared: shared.clone(), tail: b"}".to_vec() };
                let mut frame = UnreadFrame::from(frame);
                assert_eq!(frame.count(quota.empty_guard(&ann())), Ok(()));
                frame
            })
            .collect();
        assert_eq!(quota.taken(), 2 * (FRAME_BYTES + 2));
        let sent: Vec<u8> = frames.into_iter().next().unwrap().into_event(&mailbox()).into_iter().flatten().collect();
        let before = b"data: {".as_slice();
        let after = b"}\n\n".as_slice();
        assert_eq!(sent, [before, &shared, after].concat());
    }

    #[test]
    fn bytes_that_were_held_for_a_frame_are_part_of_its_count() {
        let quota = OwnerQuota::new(usize::MAX, usize::MAX);
        let mut held = quota.empty_guard(&ann());
        held.extend_past(5_000).unwrap();
        let mut frame = UnreadFrame::from(vec![b'x'; 5_000]);
        frame.count(held).unwrap();
        assert_eq!(quota.taken(), 5_000 + FRAME_BYTES);
    }

    #[test]
    fn a_short_event_is_one_piece_and_nothing_is_an_event_too() {
        let pieces = UnreadFrame::from(b"{}".to_vec()).into_event(&mailbox());
        assert_eq!(pieces, ["data: {}\n\n"]);
        assert_eq!(UnreadFrame::default().into_event(&mailbox()), ["data: \n\n"]);
        assert!(cut(Bytes::new()).is_empty());
    }
}
