//! The lines of HTTP/1.1 messages, read strictly, as the bytes pass on their way to hyper. Clients'
//! requests and the responses that guests get go through the same scanner. Must not hold: the
//! meaning of a line.
//!
//! hyper accepts a bare line feed as a line's end, as RFC 9112 section 2.2 allows. Another reader
//! may take the same line for part of a value. So only a carriage return with a line feed ends a
//! line here, and either of them alone is refused.
//!
//! Messages of MCP over stdio are lines too, and differ in kind: any line feed ends one, a long one
//! is answered, and the whole line is handed on (`host/mcp`, `stdio/reader.rs`).
#![forbid(unsafe_code)]

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The line that is being read.
#[derive(Debug)]
pub struct MessageLine {
    kept: Vec<u8>,
    bytes_max: usize,
    is_cut: bool,
    after_return: bool,
}

/// How far a line was read. The numbers are of the bytes that were read, the last one included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStep {
    /// All bytes belong to the line, and it goes on.
    Within,
    /// The line has ended. [`MessageLine::clear`] begins the next one.
    Ended(usize),
    /// The last byte is a bare return or feed, or stands behind a bare return.
    Refused(usize),
}

impl MessageLine {
    /// An empty line, of which at most `bytes_max` bytes are kept.
    #[must_use]
    pub const fn new(bytes_max: usize) -> Self {
        Self { kept: Vec::new(), bytes_max, is_cut: false, after_return: false }
    }

    /// Reads on, to the end of the line at most.
    pub fn read(&mut self, bytes: &[u8]) -> LineStep {
        let ends = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let plain = if self.after_return { Some(0) } else { bytes.iter().position(ends) };
        let (plain, rest) = bytes.split_at(plain.unwrap_or(bytes.len()));
        let room = self.bytes_max.saturating_sub(self.kept.len());
        self.is_cut |= plain.len() > room;
        self.kept.extend_from_slice(plain.get(..room).unwrap_or(plain));
        match (self.after_return, rest) {
            (_, []) => LineStep::Within,
            (false, [b'\r']) => {
                self.after_return = true;
                LineStep::Within
            }
            (false, [b'\r', b'\n', ..]) => LineStep::Ended(plain.len() + 2),
            (false, [b'\r', _, ..]) => LineStep::Refused(plain.len() + 2),
            (true, [b'\n', ..]) => LineStep::Ended(1),
            _ => LineStep::Refused(plain.len() + 1),
        }
    }

    /// Its bytes without its end, as far as they are kept.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.kept
    }

    /// True if it is longer than what is kept of it.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Begins the next line, in the same buffer.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.is_cut = false;
        self.after_return = false;
    }
}

/// Checks what a connection reads, and observes its writes.
pub trait StreamCheck {
    /// Checks the bytes of the buffer from `start` on, before their reader gets them. It may change
    /// them.
    ///
    /// # Errors
    /// The reader gets this error in place of the bytes.
    fn read(&mut self, buffer: &mut ReadBuf<'_>, start: usize) -> io::Result<()>;
    /// Called after each attempt to write or flush, with whether it did not have to wait.
    fn written(&mut self, _ready: bool) {}
}

/// A connection whose incoming bytes are checked.
#[derive(Debug)]
pub struct CheckedStream<S, C> {
    stream: S,
    check: C,
}

impl<S, C> CheckedStream<S, C> {
    /// Checks what comes from this connection.
    pub const fn new(stream: S, check: C) -> Self {
        Self { stream, check }
    }
}

impl<S: AsyncRead + Unpin, C: StreamCheck + Unpin> AsyncRead for CheckedStream<S, C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let start = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let checked = self.check.read(buffer, start);
        if checked.is_err() {
            buffer.set_filled(start);
        }
        Poll::Ready(checked)
    }
}

impl<S: AsyncWrite + Unpin, C: StreamCheck + Unpin> AsyncWrite for CheckedStream<S, C> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check.written(written.is_ready());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.check.written(written.is_ready());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = Pin::new(&mut self.stream).poll_flush(context);
        self.check.written(written.is_ready());
        written
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use super::*;

    /// The whole lines of a text that comes in pieces of this length, and whether a byte was
    /// refused.
    fn lines(text: &str, piece_bytes: usize) -> (Vec<String>, bool) {
        let mut line = MessageLine::new(8);
        let mut whole = Vec::new();
        for mut piece in text.as_bytes().chunks(piece_bytes) {
            while !piece.is_empty() {
                match line.read(piece) {
                    LineStep::Within => break,
                    LineStep::Refused(_) => return (whole, true),
                    LineStep::Ended(taken) => {
                        let cut = if line.is_cut() { "…" } else { "" };
                        whole.push(format!("{}{cut}", String::from_utf8_lossy(line.bytes())));
                        line.clear();
                        piece = &piece[taken..];
                    }
                }
            }
        }
        (whole, false)
    }

    #[test]
    fn a_return_with_a_feed_ends_a_line_and_neither_does_alone() {
        for (text, whole, refused) in [
            ("", &[][..], false),
            ("a\r\n\r\nb\r\nc", &["a", "", "b"], false),
            (
                "12345678\r\n123456789\r\n1234567890123456789\r\n1\r\n",
                &["12345678", "12345678…", "12345678…", "1"],
                false,
            ),
            ("a\r\nb\n", &["a"], true),
            ("a\r\n\n", &["a"], true),
            ("a\r\nb\rc\r\n", &["a"], true),
            ("a\r\nb\r\r\n", &["a"], true),
        ] {
            for piece_bytes in [1, 2, 3, 100] {
                let (found, was_refused) = lines(text, piece_bytes);
                assert_eq!(
                    (found.as_slice(), was_refused),
                    (&whole.iter().map(ToString::to_string).collect::<Vec<_>>()[..], refused),
                    "{text:?} {piece_bytes}"
                );
            }
        }
    }

    #[test]
    fn the_numbers_tell_which_byte_was_the_last() {
        let mut line = MessageLine::new(8);
        assert_eq!(line.read(b"ab\r\ncd"), LineStep::Ended(4));
        line.clear();
        assert_eq!(line.read(b"ab\rcd"), LineStep::Refused(4));
        line.clear();
        assert_eq!(line.read(b"ab\ncd"), LineStep::Refused(3));
        line.clear();
        assert_eq!(line.read(b"ab\r"), LineStep::Within);
        assert_eq!(line.read(b"\ncd"), LineStep::Ended(1));
        line.clear();
        assert_eq!((line.read(b"ab\r"), line.read(b"\r\n")), (LineStep::Within, LineStep::Refused(1)));
    }
}
