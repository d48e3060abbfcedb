//! Frames and the bytes they travel as: a pure function of bytes.
//!
//! | bytes | hold |
//! |---|---|
//! | 0–2 | `tw` and 1, the version of this layout; `tw` and `!`, which only wakes the receiver; or `tw` and `=`, data as they are |
//! | 3 | the number of descriptors; 0 on a door |
//! | 4–7 | the number of bytes that follow, little-endian |
//! | 8–15 | where in the shared memory the frame has its place, little-endian; 0 on a door |
//!
//! Descriptors come with the first byte of their frame. Data only come on doors (`door.rs`), and
//! wake-ups only on links.

use std::{collections::VecDeque, os::fd::OwnedFd};

use super::{FRAME_BYTES_MAX, FRAME_FDS_MAX, LinkError, READ_BYTES};

pub(crate) const HEADER_BYTES: usize = 16;

const FRAME: [u8; 3] = *b"tw\x01";
const WAKE: [u8; 3] = *b"tw!";
const DATA: [u8; 3] = *b"tw=";

/// Bytes 8–15.
const PLACE: std::ops::Range<usize> = 8..16;

/// Bytes, with the descriptors that belong to them.
#[derive(Debug, Default)]
pub struct Frame {
    /// At most [`FRAME_BYTES_MAX`].
    pub bytes: Vec<u8>,
    /// At most [`FRAME_FDS_MAX`], in the order in which they were sent.
    pub fds: Vec<OwnedFd>,
}

/// Something that came over the socket.
#[derive(Debug)]
pub(super) enum FrameCame {
    /// A frame, to be received after everything in the shared memory up to `place`.
    Frame { frame: Frame, place: u64 },
    /// Something was put into the shared memory while this side slept.
    Wake,
}

/// A header on a link, checked against the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    bytes: usize,
    fds: usize,
    place: u64,
    wakes: bool,
}

/// A header on a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DoorHeader {
    /// Bytes that follow.
    pub(crate) bytes: u32,
    /// Data follow, and not a message.
    pub(crate) is_data: bool,
}

/// Assembles frames from bytes that arrive in arbitrary pieces. It holds at most one unfinished
/// frame.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    head: [u8; HEADER_BYTES],
    head_bytes: usize,
    /// The header of the unfinished frame, once it is whole.
    header: Option<Header>,
    body: Vec<u8>,
}

/// The header of a frame with this many bytes and descriptors, both within their limits.
pub(super) fn header(bytes: usize, fds: usize, place: u64) -> [u8; HEADER_BYTES] {
    let fds = u8::try_from(fds).unwrap_or(u8::MAX);
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    whole(FRAME, fds, bytes, place)
}

/// A header without a frame, which wakes the receiver.
pub(super) fn wake() -> [u8; HEADER_BYTES] {
    whole(WAKE, 0, 0, 0)
}

/// Writes the place of a frame into its encoded header.
pub(super) fn set_place(encoded: &mut [u8], place: u64) {
    if let Some(bytes) = encoded.get_mut(PLACE) {
        bytes.copy_from_slice(&place.to_le_bytes());
    }
}

impl DoorHeader {
    /// `None`: doors have no such header.
    pub(crate) fn parse(head: &[u8; HEADER_BYTES]) -> Option<Self> {
        let [a, b, c, 0, d, e, f, g, 0, 0, 0, 0, 0, 0, 0, 0] = *head else { return None };
        let is_data = [a, b, c] == DATA;
        (is_data || [a, b, c] == FRAME).then_some(Self { bytes: u32::from_le_bytes([d, e, f, g]), is_data })
    }

    pub(crate) fn encoded(self) -> [u8; HEADER_BYTES] {
        whole(if self.is_data { DATA } else { FRAME }, 0, self.bytes, 0)
    }
}

fn whole(mark: [u8; 3], fds: u8, bytes: u32, place: u64) -> [u8; HEADER_BYTES] {
    let parts = mark.into_iter().chain([fds]).chain(bytes.to_le_bytes());
    let mut header = [0; HEADER_BYTES];
    header.iter_mut().zip(parts.chain(place.to_le_bytes())).for_each(|(to, from)| *to = from);
    header
}

impl Header {
    fn parse(head: [u8; HEADER_BYTES]) -> Result<Self, LinkError> {
        let [a, b, c, fds, d, e, f, g, place @ ..] = head;
        let bytes = u32::from_le_bytes([d, e, f, g]);
        let wakes = [a, b, c] == WAKE && fds == 0 && bytes == 0;
        if [a, b, c] != FRAME && !wakes {
            return Err(LinkError::NotAFrame);
        }
        if usize::from(fds) > FRAME_FDS_MAX {
            return Err(LinkError::TooManyFds);
        }
        let length = usize::try_from(bytes).ok().filter(|length| *length <= FRAME_BYTES_MAX);
        let length = length.ok_or(LinkError::FrameTooLarge(bytes))?;
        Ok(Self { bytes: length, fds: fds.into(), place: u64::from_le_bytes(place), wakes })
    }
}

impl Assembler {
    /// Takes bytes from `input` up to the end of one frame. The descriptors of a frame are the
    /// oldest of `fds`.
    pub(super) fn feed(
        &mut self,
        input: &mut &[u8],
        fds: &mut VecDeque<OwnedFd>,
    ) -> Result<Option<FrameCame>, LinkError> {
        let Some(header) = self.feed_header(input, fds.len())? else {
            return Ok(None);
        };
        let piece = take(input, header.bytes - self.body.len());
        reserve(&mut self.body, piece.len(), header.bytes);
        self.body.extend_from_slice(piece);
        if self.body.len() < header.bytes {
            return Ok(None);
        }
        self.header = None;
        if header.wakes {
            return Ok(Some(FrameCame::Wake));
        }
        let bytes = std::mem::take(&mut self.body);
        let frame = Frame { bytes, fds: fds.drain(..header.fds.min(fds.len())).collect() };
        Ok(Some(FrameCame::Frame { frame, place: header.place }))
    }

    /// The header of the unfinished frame, once its bytes are there.
    fn feed_header(&mut self, input: &mut &[u8], fds_here: usize) -> Result<Option<Header>, LinkError> {
        if self.header.is_some() {
            return Ok(self.header);
        }
        let piece = take(input, HEADER_BYTES - self.head_bytes);
        let free = self.head.iter_mut().skip(self.head_bytes);
        free.zip(piece).for_each(|(to, from)| *to = *from);
        self.head_bytes += piece.len();
        if self.head_bytes < HEADER_BYTES {
            return Ok(None);
        }
        let header = Header::parse(self.head)?;
        if fds_here < header.fds {
            return Err(LinkError::FdsMissing { announced: header.fds, came: fds_here });
        }
        self.head_bytes = 0;
        self.header = Some(header);
        Ok(self.header)
    }

    /// True between two frames.
    pub(super) fn is_empty(&self) -> bool {
        self.header.is_none() && self.head_bytes == 0
    }

    /// Checks that the descriptors that remain after all bytes are fed belong to the unfinished
    /// frame.
    pub(super) fn check_fds(&self, fds_here: usize) -> Result<(), LinkError> {
        let allowed = match self.header {
            Some(header) => header.fds,
            None if self.head_bytes > 0 => FRAME_FDS_MAX,
            None => 0,
        };
        if fds_here > allowed { Err(LinkError::FdsUnasked) } else { Ok(()) }
    }
}

/// Takes up to `count` bytes from `input`.
fn take<'a>(input: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (piece, rest) = input.split_at(count.min(input.len()));
    *input = rest;
    piece
}

/// Reserves room for `more` bytes. It doubles as bytes arrive, and never exceeds the whole frame. A
/// header alone reserves nothing, whatever it announces.
fn reserve(body: &mut Vec<u8>, more: usize, whole: usize) {
    let needed = body.len() + more;
    if needed > body.capacity() {
        let doubled = body.capacity().saturating_mul(2).max(needed).max(READ_BYTES.min(whole));
        let room = if more == 0 { needed } else { doubled.min(whole) };
        body.reserve_exact(room - body.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(bodies: &[Vec<u8>]) -> Vec<u8> {
        bodies.iter().flat_map(|body| [&header(body.len(), 0, 9), body.as_slice()].concat()).collect()
    }

    /// Feeds pieces as reads would bring them.
    fn assembled<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<(Vec<Vec<u8>>, bool), LinkError> {
        let mut assembler = Assembler::default();
        let mut fds = VecDeque::new();
        let mut bodies = Vec::new();
        for mut piece in pieces {
            while let Some(came) = assembler.feed(&mut piece, &mut fds)? {
                let FrameCame::Frame { frame, place: 9 } = came else { panic!("{came:?}") };
                bodies.push(frame.bytes);
            }
            assembler.check_fds(fds.len())?;
        }
        Ok((bodies, assembler.is_empty()))
    }

    #[test]
    fn frames_are_the_same_wherever_they_are_cut() {
        let bodies = vec![vec![], vec![7], (0..100).collect(), vec![], b"tw\x01\0tw!".to_vec()];
        let bytes = encoded(&bodies);
        for cut in 0..=bytes.len() {
            let (front, back) = bytes.split_at(cut);
            assert_eq!(assembled([front, back]), Ok((bodies.clone(), true)), "cut at {cut}");
        }
        assert_eq!(assembled(bytes.chunks(1)), Ok((bodies, true)));
    }

    #[test]
    fn every_prefix_is_told_from_a_whole_frame() {
        let bytes = encoded(&[vec![1, 2, 3]]);
        for end in 1..bytes.len() {
            assert_eq!(assembled([&bytes[..end]]), Ok((vec![], false)), "{end} bytes");
        }
    }

    #[test]
    fn a_header_is_refused_by_each_of_its_parts() {
        for (at, value, refused) in [
            (0, b'T', LinkError::NotAFrame),
            (2, 2, LinkError::NotAFrame),
            (3, 17, LinkError::TooManyFds),
            (3, 16, LinkError::FdsMissing { announced: 16, came: 0 }),
            (7, 2, LinkError::FrameTooLarge(2 << 24 | 5)),
        ] {
            let mut head = header(5, 0, 9);
            head[at] = value;
            assert_eq!(assembled([head.as_slice()]), Err(refused), "byte {at}");
        }
    }

    #[test]
    fn a_header_that_only_wakes_has_nothing_else() {
        let mut assembler = Assembler::default();
        let mut fds = VecDeque::new();
        let came = assembler.feed(&mut wake().as_slice(), &mut fds);
        assert!(matches!(came, Ok(Some(FrameCame::Wake))), "{came:?}");
        for at in [3, 4] {
            let mut head = wake();
            head[at] = 1;
            assert_eq!(assembled([head.as_slice()]), Err(LinkError::NotAFrame));
        }
    }

    #[test]
    fn the_largest_frame_is_taken_and_one_byte_more_is_not() {
        let whole = vec![9; FRAME_BYTES_MAX];
        let bytes = encoded(std::slice::from_ref(&whole));
        assert_eq!(assembled(bytes.chunks(READ_BYTES)), Ok((vec![whole], true)));
        let head = header(FRAME_BYTES_MAX + 1, 0, 9);
        let refused = LinkError::FrameTooLarge(FRAME_BYTES_MAX as u32 + 1);
        assert_eq!(assembled([head.as_slice()]), Err(refused));
    }

    #[test]
    fn memory_follows_the_bytes_that_came() {
        let mut assembler = Assembler::default();
        let mut fds = VecDeque::new();
        let head = header(FRAME_BYTES_MAX, 0, 9);
        assert!(assembler.feed(&mut head.as_slice(), &mut fds).unwrap().is_none());
        assert_eq!(assembler.body.capacity(), 0);
        let mut came = 0;
        while came + READ_BYTES < FRAME_BYTES_MAX {
            let piece = [0; READ_BYTES];
            assert!(assembler.feed(&mut piece.as_slice(), &mut fds).unwrap().is_none());
            came += READ_BYTES;
            assert!(assembler.body.capacity() <= (2 * came).min(FRAME_BYTES_MAX), "{came}");
        }
    }

    proptest! {
        #[test]
        fn frames_survive_any_cuts(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let bytes = encoded(&bodies);
            let mut ends: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            ends.sort_unstable();
            ends.push(bytes.len());
            let mut begin = 0;
            let pieces = ends.into_iter().map(|end| &bytes[std::mem::replace(&mut begin, end)..end]);
            prop_assert_eq!(assembled(pieces), Ok((bodies.clone(), true)));
        }

        #[test]
        fn no_bytes_break_it(
            mark in prop::sample::select(vec![FRAME, WAKE, *b"xxx"]),
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
        ) {
            let mut assembler = Assembler::default();
            let mut fds = VecDeque::new();
            let pieces: Vec<u8> = pieces.iter().flat_map(|piece| [&mark, piece.as_slice()].concat()).collect();
            let mut input = pieces.as_slice();
            let mut came = 0;
            while let Ok(Some(_)) = assembler.feed(&mut input, &mut fds) {
                came += HEADER_BYTES;
                prop_assert!(came <= pieces.len());
            }
        }

        #[test]
        fn no_headers_break_it(fds in any::<u8>(), bytes in any::<u32>()) {
            let head = [&FRAME[..], &[fds], &bytes.to_le_bytes(), &[9, 0, 0, 0, 0, 0, 0, 0]].concat();
            let taken = assembled([head.as_slice()]).is_ok();
            prop_assert_eq!(taken, fds == 0 && bytes as usize <= FRAME_BYTES_MAX);
        }
    }
}
