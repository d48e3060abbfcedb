//! Enforces one line ending in HTTP/1.1 requests. A bare line feed or carriage return in a head, or
//! between chunks, is replaced by a byte that no head may have. The request is then refused as
//! malformed.
//!
//! hyper accepts a bare line feed as a line's end, as RFC 9112 section 2.2 allows. A proxy in front
//! may take the same line for part of a value, and let a header through that it would have removed.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The byte that replaces a forbidden one: malformed in every line.
const REFUSED: u8 = 0;

/// The end of a head.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// The first line of HTTP/2, whose frames have no lines.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// Bytes kept of a line: longer than any that is parsed.
const LINE_BYTES_MAX: usize = 256;

/// A connection whose line endings are checked.
pub(super) struct StrictLines<S> {
    stream: S,
    lines: LineScanner,
}

/// The position of the next byte in a request.
#[derive(Debug, PartialEq, Eq)]
enum RequestPosition {
    /// In its head.
    Head,
    /// In a body, with this many bytes to come.
    Body(u64),
    /// In the line before a chunk.
    Size,
    /// In a chunk, with this many bytes to come, its line's end included.
    Chunk(u64),
    /// Behind the last chunk.
    Trailers,
    /// At the end: HTTP/2, or a refused request.
    Over,
}

/// The lines of one connection's requests.
#[derive(Debug)]
struct LineScanner {
    at: RequestPosition,
    line: Vec<u8>,
    after_return: bool,
    /// The head has begun.
    begun: bool,
    length: Option<u64>,
    chunked: bool,
}

impl<S> StrictLines<S> {
    pub(super) const fn new(stream: S) -> Self {
        Self { stream, lines: LineScanner::new() }
    }
}

impl LineScanner {
    const fn new() -> Self {
        Self {
            at: RequestPosition::Head,
            line: Vec::new(),
            after_return: false,
            begun: false,
            length: None,
            chunked: false,
        }
    }

    /// Checks the bytes that came. Returns the number of bytes to keep if it found a forbidden one,
    /// which it replaced.
    fn look(&mut self, mut bytes: &mut [u8]) -> Option<usize> {
        let all = bytes.len();
        loop {
            match &mut self.at {
                RequestPosition::Over => return None,
                RequestPosition::Body(left) | RequestPosition::Chunk(left) if *left > 0 => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= here as u64;
                    bytes = bytes.split_at_mut(here).1;
                    if *left > 0 {
                        return None;
                    }
                }
                RequestPosition::Body(_) => *self = Self::new(),
                RequestPosition::Chunk(_) => self.at = RequestPosition::Size,
                RequestPosition::Head | RequestPosition::Size | RequestPosition::Trailers => {
                    let ends = |byte: &u8| matches!(byte, b'\r' | b'\n');
                    // Right behind a return each byte is looked at.
                    let plain = if self.after_return { Some(0) } else { bytes.iter().position(ends) };
                    let (plain, rest) = bytes.split_at_mut(plain.unwrap_or(bytes.len()));
                    self.keep(plain);
                    let (byte, rest) = rest.split_first_mut()?;
                    if !self.push(*byte) {
                        *byte = REFUSED;
                        self.at = RequestPosition::Over;
                        return Some(all - rest.len());
                    }
                    bytes = rest;
                }
            }
        }
    }

    /// Takes bytes of a line that end none.
    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
        self.line.extend(bytes.iter().take(room));
    }

    /// Takes a return or a feed, or the byte behind a return; false if it is forbidden.
    fn push(&mut self, byte: u8) -> bool {
        match (byte, self.after_return) {
            (b'\r', false) => self.after_return = true,
            (b'\n', true) => {
                self.after_return = false;
                // The connection's lines share one buffer.
                let mut line = std::mem::take(&mut self.line);
                let is_well_formed = self.end(&line);
                line.clear();
                self.line = line;
                return is_well_formed;
            }
            _ => return false,
        }
        true
    }

    /// Takes the end of a line; false if the line is malformed.
    fn end(&mut self, line: &[u8]) -> bool {
        match self.at {
            RequestPosition::Size => {
                let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
                let digits = std::str::from_utf8(line.get(..digits).unwrap_or_default()).unwrap_or_default();
                let Ok(size) = u64::from_str_radix(digits, 16) else { return false };
                self.at =
                    if size == 0 { RequestPosition::Trailers } else { RequestPosition::Chunk(size.saturating_add(2)) };
            }
            RequestPosition::Trailers if line.is_empty() => *self = Self::new(),
            RequestPosition::Head if line.is_empty() && self.begun => {
                // hyper refuses a length together with chunks, and two lengths.
                let body =
                    if self.chunked { RequestPosition::Size } else { RequestPosition::Body(self.length.unwrap_or(0)) };
                *self = Self { at: body, ..Self::new() };
            }
            RequestPosition::Head if line == PREFACE && !self.begun => self.at = RequestPosition::Over,
            RequestPosition::Head => {
                self.begun |= !line.is_empty();
                self.read(line);
            }
            _ => {}
        }
        true
    }

    fn read(&mut self, line: &[u8]) {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let Some((name, value)) = line.split_at_checked(colon) else { return };
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") {
            self.length = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.chunked = true;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StrictLines<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let came = buffer.filled_mut().get_mut(before..).unwrap_or_default();
        if let Some(kept) = self.lines.look(came) {
            // The reader waits for the end of the head before it parses the rest.
            buffer.set_filled(before + kept);
            let end = HEAD_END.get(..HEAD_END.len().min(buffer.remaining())).unwrap_or_default();
            buffer.put_slice(end);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StrictLines<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request as it arrives, the same whole and byte by byte.
    fn arrives(text: &str) -> String {
        let in_pieces = |piece_bytes: usize| {
            let mut lines = LineScanner::new();
            let mut bytes = text.as_bytes().to_vec();
            bytes.chunks_mut(piece_bytes).for_each(|piece| {
                let _ = lines.look(piece);
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
}
