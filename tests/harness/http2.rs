//! HTTP/2 frame by frame, as a client writes it that keeps to no rule. Answers are read only as far
//! as a test needs to see their outcome.

use std::io::{Read, Write};

use crate::web::Ask;

/// The bytes that open a client's connection (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Kinds of frames (section 6).
pub mod kind {
    #![expect(missing_docs, reason = "named as the specification names them")]
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// The last frame of a stream, or an acknowledgement.
pub const END_STREAM: u8 = 1;

/// The last frame of a head.
pub const END_HEADERS: u8 = 4;

/// One frame.
#[derive(Clone, Debug)]
pub struct Frame {
    /// One of [`kind`].
    pub kind: u8,
    /// The flags of this kind.
    pub flags: u8,
    /// The stream, 0 for the connection.
    pub stream: u32,
    /// The content of the frame.
    pub payload: Vec<u8>,
}

/// The outcome of a request, or of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was answered with this status.
    Status(u16),
    /// Its stream was reset with this code.
    Reset(u32),
    /// The server goes away, with this code.
    GoneAway(u32),
    /// The connection was closed without an answer.
    Closed,
}

impl Frame {
    /// A frame of this kind.
    #[must_use]
    pub fn new(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Self {
        Self { kind, flags, stream, payload: payload.to_vec() }
    }

    /// `SETTINGS` with these values.
    #[must_use]
    pub fn settings(values: &[(u16, u32)]) -> Self {
        let payload: Vec<u8> =
            values.iter().flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
        Self::new(kind::SETTINGS, 0, 0, &payload)
    }

    /// The bytes on the wire.
    ///
    /// # Panics
    /// If it is longer than a frame can be.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).unwrap().to_be_bytes();
        assert_eq!(length[0], 0, "longer than a frame can be");
        [&length[1..], &[self.kind, self.flags], &self.stream.to_be_bytes(), &self.payload].concat()
    }

    fn code(&self, at: usize) -> u32 {
        let code = self.payload.get(at..at + 4).and_then(|code| code.try_into().ok());
        u32::from_be_bytes(code.expect("a code"))
    }
}

/// A head with these fields, each as a literal.
#[must_use]
pub fn head<N: AsRef<str>, V: AsRef<str>>(fields: &[(N, V)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        // A literal without indexing (RFC 7541 section 6.2.2).
        block.push(0);
        text(&mut block, name.as_ref());
        text(&mut block, value.as_ref());
    }
    block
}

fn text(block: &mut Vec<u8>, text: &str) {
    // An integer with a seven-bit prefix (section 5.1).
    let mut length = text.len();
    if length < 127 {
        block.push(u8::try_from(length).unwrap());
    } else {
        block.push(127);
        length -= 127;
        while length >= 128 {
            block.push(u8::try_from(length % 128).unwrap() | 128);
            length /= 128;
        }
        block.push(u8::try_from(length).unwrap());
    }
    block.extend_from_slice(text.as_bytes());
}

/// The frames of a request on this stream.
#[must_use]
pub fn request(stream: u32, ask: &Ask, scheme: &str) -> Vec<Frame> {
    let head = head(&ask.fields(scheme));
    if ask.body().is_empty() {
        return vec![Frame::new(kind::HEADERS, END_HEADERS | END_STREAM, stream, &head)];
    }
    let body = Frame::new(kind::DATA, END_STREAM, stream, ask.body().as_bytes());
    vec![Frame::new(kind::HEADERS, END_HEADERS, stream, &head), body]
}

/// The bytes of these frames, one after another.
#[must_use]
pub fn bytes(frames: &[Frame]) -> Vec<u8> {
    frames.iter().flat_map(Frame::bytes).collect()
}

/// The next frame. `None` at the end of the connection.
pub fn receive(stream: &mut impl Read) -> Option<Frame> {
    let mut lead = [0; 9];
    stream.read_exact(&mut lead).ok()?;
    let [a, b, c, kind, flags, id @ ..] = lead;
    let mut payload = vec![0; usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c)];
    stream.read_exact(&mut payload).ok()?;
    Some(Frame { kind, flags, stream: u32::from_be_bytes(id), payload })
}

/// The fate of the request on this stream, by the first frame that decides it.
pub fn fate(stream: &mut impl Read, of: u32) -> Fate {
    loop {
        let Some(frame) = receive(stream) else { return Fate::Closed };
        match frame.kind {
            kind::HEADERS if frame.stream == of => return Fate::Status(status(&frame.payload)),
            kind::RST_STREAM if frame.stream == of => return Fate::Reset(frame.code(0)),
            kind::GOAWAY => return Fate::GoneAway(frame.code(4)),
            _ => {}
        }
    }
}

/// Sends a request on this stream and returns its status and body. All windows are opened to their
/// maximum.
///
/// # Panics
/// If it is not answered.
pub fn ask(wire: &mut (impl Read + Write), stream: u32, ask: &Ask, scheme: &str) -> (u16, Vec<u8>) {
    wire.write_all(&bytes(&request(stream, ask, scheme))).unwrap();
    let status = match fate(wire, stream) {
        Fate::Status(status) => status,
        other => panic!("{other:?}"),
    };
    let mut body = Vec::new();
    loop {
        let frame = receive(wire).expect("the rest of the body");
        if frame.stream == stream && frame.kind == kind::DATA {
            body.extend(frame.payload);
            if frame.flags & END_STREAM != 0 {
                return (status, body);
            }
        }
    }
}

/// The status at the beginning of a block of fields (RFC 7541, appendices A and B).
fn status(block: &[u8]) -> u16 {
    match block {
        [indexed, ..] if indexed & 0x80 != 0 => {
            let known = [200, 204, 206, 304, 400, 404, 500];
            *known.get(usize::from(indexed & 0x7f).wrapping_sub(8)).expect("a status that is in the table")
        }
        [0x48 | 0x08, length, rest @ ..] if length & 0x80 == 0 => {
            std::str::from_utf8(&rest[..usize::from(*length)]).unwrap().parse().unwrap()
        }
        [0x48 | 0x08, length, rest @ ..] => digits(&rest[..usize::from(length & 0x7f)]),
        other => panic!("no status first: {other:02x?}"),
    }
}

/// Three digits in the Huffman code: digits up to 2 have five bits, the others six.
fn digits(coded: &[u8]) -> u16 {
    let bits = coded.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (32 - 8 * coded.len());
    let mut number = 0;
    let mut left = bits;
    for _ in 0..3 {
        let (digit, length) = match left >> 27 {
            short @ 0..=2 => (short, 5),
            _ => ((left >> 26) - 0x19 + 3, 6),
        };
        number = number * 10 + digit;
        left <<= length;
    }
    u16::try_from(number).unwrap()
}
