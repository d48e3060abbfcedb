//! Enforces one line ending in HTTP/1.1 requests. A bare line feed or carriage return in a head, or
//! between chunks, is replaced by a byte that is invalid there. The request is then refused as
//! malformed.
//!
//! A proxy that parses such a line differently could let a header through that it should have
//! removed.

use std::io;

use tokio::io::ReadBuf;
use toolcell_framing::{LineStep, MessageLine, StreamCheck};

/// The byte that replaces a forbidden one: malformed in every line.
const REFUSED: u8 = 0;

/// The end of a head.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// The first line of HTTP/2, whose frames have no lines.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// Bytes kept of a line: longer than any that is parsed.
const LINE_BYTES_MAX: usize = 256;

/// The position of the next byte in a request.
#[derive(Debug, PartialEq, Eq)]
enum RequestPosition {
    /// In its head.
    Head,
    /// In a body, with this many remaining bytes.
    Body(u64),
    /// In the size line of a chunk.
    Size,
    /// In a chunk, with this many remaining bytes, including its line end.
    Chunk(u64),
    /// After the last chunk.
    Trailers,
    /// Nothing more is checked: HTTP/2, or a refused request.
    Over,
}

/// The lines of one connection's requests.
#[derive(Debug)]
pub(super) struct RequestLines {
    line: MessageLine,
    request: PartialRequest,
}

/// A partially read request.
#[derive(Debug)]
struct PartialRequest {
    at: RequestPosition,
    /// True once the head has begun.
    begun: bool,
    length: Option<u64>,
    chunked: bool,
}

impl RequestLines {
    pub(super) const fn new() -> Self {
        Self { line: MessageLine::new(LINE_BYTES_MAX), request: PartialRequest::new() }
    }

    /// Checks received bytes. If it found a forbidden byte, it replaces that, and returns the
    /// number of bytes to keep.
    fn scan(&mut self, mut bytes: &mut [u8]) -> Option<usize> {
        let all = bytes.len();
        loop {
            match &mut self.request.at {
                RequestPosition::Over => return None,
                RequestPosition::Body(left) | RequestPosition::Chunk(left) if *left > 0 => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= here as u64;
                    bytes = bytes.split_at_mut(here).1;
                    if *left > 0 {
                        return None;
                    }
                }
                RequestPosition::Body(_) => self.request = PartialRequest::new(),
                RequestPosition::Chunk(_) => self.request.at = RequestPosition::Size,
                RequestPosition::Head | RequestPosition::Size | RequestPosition::Trailers => {
                    let step = self.line.read(bytes);
                    let (LineStep::Ended(taken) | LineStep::Refused(taken)) = step else { return None };
                    let is_well_formed = matches!(step, LineStep::Ended(_)) && self.request.end_line(&self.line);
                    self.line.clear();
                    let (taken, rest) = bytes.split_at_mut_checked(taken)?;
                    if !is_well_formed {
                        taken.last_mut().into_iter().for_each(|byte| *byte = REFUSED);
                        self.request.at = RequestPosition::Over;
                        return Some(all - rest.len());
                    }
                    bytes = rest;
                }
            }
        }
    }
}

impl PartialRequest {
    const fn new() -> Self {
        Self { at: RequestPosition::Head, begun: false, length: None, chunked: false }
    }

    /// Handles the end of a line; false if the line is malformed.
    fn end_line(&mut self, line: &MessageLine) -> bool {
        let bytes = line.bytes();
        match self.at {
            RequestPosition::Size => {
                let digits = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
                // A number that was cut is unknown.
                if digits == bytes.len() && line.is_cut() {
                    return false;
                }
                let digits = std::str::from_utf8(bytes.get(..digits).unwrap_or_default()).unwrap_or_default();
                let Ok(size) = u64::from_str_radix(digits, 16) else { return false };
                self.at =
                    if size == 0 { RequestPosition::Trailers } else { RequestPosition::Chunk(size.saturating_add(2)) };
            }
            RequestPosition::Trailers if bytes.is_empty() => *self = Self::new(),
            RequestPosition::Head if bytes.is_empty() && self.begun => {
                // hyper refuses a length together with chunks, and two lengths.
                let body =
                    if self.chunked { RequestPosition::Size } else { RequestPosition::Body(self.length.unwrap_or(0)) };
                *self = Self { at: body, ..Self::new() };
            }
            RequestPosition::Head if bytes == PREFACE && !self.begun => self.at = RequestPosition::Over,
            RequestPosition::Head => {
                self.begun |= !bytes.is_empty();
                return self.read_field(line);
            }
            _ => {}
        }
        true
    }

    /// Notes what a field says about the body. False for such a field that was cut: the end of the
    /// body would be a guess.
    fn read_field(&mut self, line: &MessageLine) -> bool {
        let bytes = line.bytes();
        let colon = bytes.iter().position(|byte| *byte == b':').unwrap_or(bytes.len());
        let Some((name, value)) = bytes.split_at_checked(colon) else { return true };
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") {
            self.length = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.chunked = true;
        } else {
            return true;
        }
        !line.is_cut()
    }
}

impl StreamCheck for RequestLines {
    fn read(&mut self, buffer: &mut ReadBuf<'_>, start: usize) -> io::Result<()> {
        let came = buffer.filled_mut().get_mut(start..).unwrap_or_default();
        if let Some(kept) = self.scan(came) {
            // The reader waits for the end of the head before it parses the rest.
            buffer.set_filled(start + kept);
            let end = HEAD_END.get(..HEAD_END.len().min(buffer.remaining())).unwrap_or_default();
            buffer.put_slice(end);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request as received, tested whole and byte by byte.
    fn arrives(text: &str) -> String {
        let in_pieces = |piece_bytes: usize| {
            let mut lines = RequestLines::new();
            let mut bytes = text.as_bytes().to_vec();
            bytes.chunks_mut(piece_bytes).for_each(|piece| {
                let _ = lines.scan(piece);
            });
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(in_pieces(1), in_pieces(text.len()), "{text:?}");
        in_pieces(1)
    }

    const FIELDS: &str = "POST /mcp HTTP/1.1\r\nhost: a\r\n";

    #[test]
    fn requests_whose_lines_end_as_they_should_arrive_as_they_are() {
        let bodies = [
            "content-length: 4\r\n\r\n\n\r\na",
            "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\n\n\r\r\r\n1\r\n\n\r\n0\r\nx: y\r\n\r\n",
            "\r\n",
        ];
        for first in bodies {
            for second in bodies {
                let text = format!("\r\n{FIELDS}{first}{FIELDS}{second}");
                assert_eq!(arrives(&text), text);
            }
        }
        let text = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\n\r\n";
        assert_eq!(arrives(text), text);
    }

    #[test]
    fn a_bare_return_or_feed_does_not_arrive_wherever_it_is_in_a_head_or_between_chunks() {
        let good = format!("{FIELDS}content-length: 2\r\n\r\n\n\n");
        let chunked = format!("{FIELDS}transfer-encoding: chunked\r\n\r\n1\r\n\n\r\n");
        for (before, bare) in [
            ("", "\n"),
            ("", "GET / HTTP/1.1\n"),
            (FIELDS, "\n"),
            (FIELDS, "x: y\n"),
            (FIELDS, "x: y\rz"),
            (FIELDS, "x: y\r\r"),
            (&good, "\n"),
            (&good, "GET / HTTP/1.1\n"),
            (&chunked, "1\n"),
            (&chunked, "0\r\nx: y\n"),
            (&chunked, "0\r\n\r\nGET / HTTP/1.1\r\nx: y\n"),
        ] {
            let (kept, _) = bare.split_at(bare.len() - 1);
            assert_eq!(arrives(&format!("{before}{bare}")), format!("{before}{kept}\0"), "{before:?} {bare:?}");
        }
    }

    #[test]
    fn a_line_that_tells_the_end_of_a_body_and_is_longer_than_what_is_kept_does_not_arrive() {
        let space = " ".repeat(LINE_BYTES_MAX);
        let zeros = "0".repeat(LINE_BYTES_MAX);
        for (before, line) in [
            (FIELDS.to_owned(), format!("content-length:{space}4\r\n")),
            (FIELDS.to_owned(), format!("Transfer-Encoding:{space}chunked\r\n")),
            (format!("{FIELDS}transfer-encoding: chunked\r\n\r\n"), format!("{zeros}4\r\n")),
        ] {
            let (kept, _) = line.split_at(line.len() - 1);
            assert_eq!(arrives(&format!("{before}{line}")), format!("{before}{kept}\0"), "{line:?}");
        }
        for text in [
            format!("{FIELDS}x: {space}\r\ncontent-length: 2\r\n\r\n\n\n"),
            format!("{FIELDS}transfer-encoding: chunked\r\n\r\n2;{space}\r\n\n\n\r\n0\r\n\r\n"),
        ] {
            assert_eq!(arrives(&text), text);
        }
    }
}
