//! The end of a message, with a single interpretation. The head of a response that two readers
//! could interpret differently is refused before either does.
//!
//! hyper accepts chunks together with a length, and ignores `Transfer-Encoding` in HTTP/1.0. Each
//! is allowed, and others interpret each differently, so HTTP/1.1 bytes are checked as they arrive,
//! before hyper gets them.
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use tokio::io::ReadBuf;
use toolcell_framing::{LineStep, MessageLine, StreamCheck};
use toolcell_wall::doors::http_fault::HttpFault;

/// A flag: a request is sent, and the next head is to be read. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct ExpectedHead(Arc<AtomicBool>);

impl ExpectedHead {
    /// Expects the head of a response next.
    pub(super) fn next(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Bytes kept of a line of a head. 64 KiB: a longer name is not a header's to hyper.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// The heads of the responses on one connection of HTTP/1.1.
pub(super) struct ResponseHeads {
    expected: ExpectedHead,
    line: MessageLine,
    /// The head that is being read.
    head: Option<PartialHead>,
}

/// The part of a head that was read.
#[derive(Debug, Default)]
struct PartialHead {
    status: Option<(u8, u16)>,
    lengths: Vec<Vec<u8>>,
    codings: Vec<Vec<u8>>,
}

impl ResponseHeads {
    pub(super) const fn new(expected: ExpectedHead) -> Self {
        Self { expected, line: MessageLine::new(LINE_BYTES_MAX), head: None }
    }

    fn scan(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if self.expected.0.swap(false, Ordering::AcqRel) {
            self.head = Some(PartialHead::default());
            self.line.clear();
        }
        while let Some(head) = &mut self.head {
            let is_over = match self.line.read(bytes) {
                LineStep::Within => return Ok(()),
                LineStep::Refused(_) => None,
                LineStep::Ended(taken) => {
                    bytes = bytes.get(taken..).unwrap_or_default();
                    head.end_line(&self.line)
                }
            };
            self.line.clear();
            if is_over.ok_or(io::ErrorKind::InvalidData)? {
                // An informational response is followed by another.
                let is_interim = head.status.is_some_and(|(_, status)| (100..200).contains(&status) && status != 101);
                self.head = is_interim.then(PartialHead::default);
            }
        }
        Ok(())
    }
}

impl PartialHead {
    /// Takes a line, and returns true at the last. `None` if it is malformed, or the head is
    /// ambiguous.
    fn end_line(&mut self, line: &MessageLine) -> Option<bool> {
        if line.bytes().is_empty() && self.status.is_some() {
            return self.has_one_end().then_some(true);
        }
        self.read(line.bytes(), line.is_cut()).map(|()| false)
    }

    fn read(&mut self, line: &[u8], is_cut: bool) -> Option<()> {
        if self.status.is_none() {
            let text = std::str::from_utf8(line.get(..12)?).ok()?;
            let (version, status) = text.strip_prefix("HTTP/1.")?.split_once(' ')?;
            self.status = Some((version.parse().ok()?, status.parse().ok()?));
            return Some(());
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at_checked(colon)?;
        // A name contains no space, neither before the colon nor to continue the previous line.
        if name.is_empty() || name.iter().any(u8::is_ascii_whitespace) {
            return None;
        }
        let value = || value.get(1..).unwrap_or_default().trim_ascii().to_vec();
        if name.eq_ignore_ascii_case(b"content-length") {
            self.lengths.push(value());
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.codings.push(value());
        } else {
            return Some(());
        }
        // Where the rest of such a field is not kept, where the body ends would be a guess.
        (!is_cut).then_some(())
    }

    fn has_one_end(&self) -> bool {
        let lengths = self.lengths.iter().map(Vec::as_slice);
        let codings = self.codings.iter().map(Vec::as_slice);
        let status = self.status.and_then(|(minor, status)| Some((minor, StatusCode::from_u16(status).ok()?)));
        status
            .is_some_and(|(minor, status)| (minor > 0 || self.codings.is_empty()) && one_end(lengths, codings, status))
    }
}

/// True if only one of length and chunks, or neither, determines where a message ends, and no other
/// field contradicts it.
fn one_end<'v>(
    mut lengths: impl Iterator<Item = &'v [u8]>,
    mut codings: impl Iterator<Item = &'v [u8]>,
    status: StatusCode,
) -> bool {
    let never = status.is_informational() || status == StatusCode::NO_CONTENT;
    let length = lengths.next();
    let digits = |length: &[u8]| !length.is_empty() && length.iter().all(u8::is_ascii_digit);
    if lengths.next().is_some() || length.is_some_and(|length| !digits(length) || (never && length != b"0")) {
        return false;
    }
    match (codings.next(), codings.next()) {
        (None, None) => true,
        (Some(coding), None) => coding.eq_ignore_ascii_case(b"chunked") && length.is_none() && !never,
        _ => false,
    }
}

/// Adds the length to a request without a body, if its method expects one (RFC 9110, section 8.6).
/// Servers refuse such a request without it.
pub(super) fn set_empty_length(method: &Method, fields: &mut HeaderMap) {
    if [Method::POST, Method::PUT, Method::PATCH].contains(method) && !fields.contains_key(CONTENT_LENGTH) {
        fields.insert(CONTENT_LENGTH, HeaderValue::from(0));
    }
}

/// Checks the head of a response, of any version; HTTP/2 has no codings.
pub(super) fn check(fields: &HeaderMap, version: Version, status: StatusCode) -> Result<(), HttpFault> {
    let values = |name| fields.get_all(name).iter().map(|value: &HeaderValue| value.as_bytes().trim_ascii());
    let is_coded = fields.contains_key(TRANSFER_ENCODING) && version != Version::HTTP_11;
    let is_one = !is_coded && one_end(values(CONTENT_LENGTH), values(TRANSFER_ENCODING), status);
    if is_one { Ok(()) } else { Err(HttpFault::HttpProtocolError) }
}

/// Checks that trailers do not redefine the end of the message, which came before them.
pub(super) fn check_trailers(fields: &HeaderMap) -> Result<(), HttpFault> {
    let says = fields.contains_key(CONTENT_LENGTH) || fields.contains_key(TRANSFER_ENCODING);
    if says { Err(HttpFault::HttpProtocolError) } else { Ok(()) }
}

impl StreamCheck for ResponseHeads {
    fn read(&mut self, buffer: &mut ReadBuf<'_>, start: usize) -> io::Result<()> {
        self.scan(buffer.filled().get(start..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True if hyper gets this, both at once and byte by byte.
    fn passes(text: &str) -> bool {
        let all = |pieces: usize| {
            let expected = ExpectedHead::default();
            let mut heads = ResponseHeads::new(expected.clone());
            expected.next();
            text.as_bytes().chunks(pieces).all(|piece| heads.scan(piece).is_ok())
        };
        assert_eq!(all(1), all(text.len()), "{text:?}");
        all(1)
    }

    #[test]
    fn a_head_that_ends_its_message_in_one_way_passes() {
        for (head, body) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n", "ok"),
            ("HTTP/1.1 200\r\nContent-Length:2\r\n", "ok"),
            ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n", "a\nb\rc"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding:  Chunked \r\n", "2\r\nok\r\n0\r\n\r\n"),
            ("HTTP/1.1 200 OK\r\nx-empty:\r\n", "until the end\n"),
            ("HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n", ""),
            ("HTTP/1.1 304 Not Modified\r\ncontent-length: 10\r\n", ""),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n",
                "ok",
            ),
        ] {
            assert!(passes(&format!("{head}\r\n{body}")), "{head:?}");
        }
    }

    #[test]
    fn a_head_that_may_end_it_in_two_does_not() {
        for fields in [
            "content-length: 1\r\ntransfer-encoding: chunked\r\n",
            "transfer-encoding: chunked\r\ncontent-length: 1\r\n",
            "content-length: 1\r\ncontent-length: 2\r\n",
            "content-length: 1\r\ncontent-length: 1\r\n",
            "content-length: 1, 1\r\n",
            "content-length: +1\r\n",
            "content-length: 0x1\r\n",
            "content-length:\r\n",
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
            "transfer-encoding: gzip, chunked\r\n",
            "transfer-encoding: chunked, identity\r\n",
            "transfer-encoding: identity\r\n",
            "transfer-encoding: xchunked\r\n",
            "transfer-encoding:\r\n",
            "transfer-encoding : chunked\r\n",
            "x-a: b\n",
            "x-a: b\ntransfer-encoding: chunked\r\n",
            &format!("transfer-encoding: chunked{}\r\n", " ".repeat(LINE_BYTES_MAX)),
            &format!("content-length:{}1\r\n", " ".repeat(LINE_BYTES_MAX)),
            "x-a: b\rtransfer-encoding: chunked\r\n",
            "x-a: b\r\r\n",
            "x-a: b\r\n transfer-encoding: chunked\r\n",
            "x-a\r\n",
            ": b\r\n",
        ] {
            assert!(!passes(&format!("HTTP/1.1 200 OK\r\n{fields}\r\nok")), "{fields:?}");
        }
        for head in [
            "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n",
            "HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n",
            "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n",
            "HTTP/1.1 100 Continue\r\ncontent-length: 5\r\n",
            "HTTP/1.1 200 OK\n",
            "HTTP/2.0 200 OK\r\n",
            "\r\nHTTP/1.1 200 OK\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n",
        ] {
            assert!(!passes(&format!("{head}\r\nok")), "{head:?}");
        }
    }
}
