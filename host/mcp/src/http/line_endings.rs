//! Enforces one line ending in HTTP/1.1 requests. A bare line feed or carriage return in a head, or
//! between chunks, is replaced by what is invalid there. The request is then refused as malformed,
//! and nothing that follows on the connection arrives.
//!
//! A proxy that parses such a line differently could let a header through that it should have
//! removed.

use std::io;

use tokio::io::ReadBuf;
use toolcell_framing::{LineStep, MessageLine, StreamCheck};

/// The byte that replaces a forbidden one. [`HEAD_END`] follows, and two returns are malformed
/// everywhere. No other byte is: hyper takes all but returns and feeds in the extension of a chunk.
const REFUSED: u8 = b'\r';

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
    /// Behind the preface of HTTP/2: nothing more is checked.
    Http2,
    /// Behind a forbidden byte: nothing more arrives.
    Refused,
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
    /// True before the first line of the connection.
    is_first: bool,
    /// True once the head has begun.
    begun: bool,
    length: Option<u64>,
    chunked: bool,
}

impl RequestLines {
    pub(super) const fn new() -> Self {
        let request = PartialRequest { is_first: true, ..PartialRequest::new() };
        Self { line: MessageLine::new(LINE_BYTES_MAX), request }
    }

    /// Checks received bytes. If there is a forbidden byte, now or before, it returns the number of
    /// bytes to keep. The last of them replaces that byte.
    fn scan(&mut self, mut bytes: &mut [u8]) -> Option<usize> {
        let all = bytes.len();
        loop {
            match &mut self.request.at {
                RequestPosition::Http2 => return None,
                RequestPosition::Refused => return Some(0),
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
                        self.request.at = RequestPosition::Refused;
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
        Self { at: RequestPosition::Head, is_first: false, begun: false, length: None, chunked: false }
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
            // hyper takes it for HTTP/2 only here, and refuses its version everywhere else.
            RequestPosition::Head if bytes == PREFACE && self.is_first => self.at = RequestPosition::Http2,
            RequestPosition::Head => {
                self.is_first = false;
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
        if came.is_empty() {
            return Ok(());
        }
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
    use std::convert::Infallible;
    use std::future::poll_fn;
    use std::pin::Pin;

    use http::{Request, Response};
    use http_body::Body as _;
    use hyper::body::Incoming;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex, split};
    use toolcell_framing::CheckedStream;

    use super::*;

    /// Room of the reader's buffer behind what it received.
    const ROOM_BYTES: usize = 64;

    /// The request as it arrives, tested whole and byte by byte.
    fn arrives(text: &str) -> String {
        let in_pieces = |piece_bytes: usize| {
            let mut lines = RequestLines::new();
            let mut arrived = Vec::new();
            for piece in text.as_bytes().chunks(piece_bytes) {
                let mut storage = vec![0; piece.len() + ROOM_BYTES];
                let mut buffer = ReadBuf::new(&mut storage);
                buffer.put_slice(b"+");
                buffer.put_slice(piece);
                lines.read(&mut buffer, 1).unwrap();
                arrived.extend_from_slice(buffer.filled().strip_prefix(b"+").unwrap());
                if lines.request.at == RequestPosition::Refused {
                    break;
                }
            }
            String::from_utf8(arrived).unwrap()
        };
        assert_eq!(in_pieces(1), in_pieces(text.len()), "{text:?}");
        in_pieces(1)
    }

    const FIELDS: &str = "POST /mcp HTTP/1.1\r\nhost: a\r\n";

    /// What stands for a forbidden byte.
    const REPLACED: &str = "\r\r\n\r\n";

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

    /// Each position of a forbidden byte: what comes before its line, and the line up to it.
    fn bare() -> Vec<(String, &'static str)> {
        let good = format!("{FIELDS}content-length: 2\r\n\r\n\n\n");
        let chunks = format!("{FIELDS}transfer-encoding: chunked\r\n\r\n");
        let chunked = format!("{chunks}1\r\n\n\r\n");
        let in_head = ["\n", "\rG", "\r\r", "GET / HTTP/1.1\n", "GET / HTTP/1.1\rh", "GET\n", "GET /\r\r"];
        let in_fields = ["\n", "\rx", "\r\r", "x: y\n", "x: y\rz", "x: y\r\r", "x\n", "x\r:", ":\n"];
        let in_size = [
            "\n", "\r1", "1\n", "1\r1", "1\r\r", "1 \n", "1\t\rx", "1;\n", "1;a\n", "3;a\n", "1;a\rb", "1;a\r\r",
            "1;a=\"\n", "0\n", "0;a\n", "0;a\rb",
        ];
        let in_trailers = ["0\r\n\n", "0\r\n\r\r", "0\r\nx: y\n", "0\r\nx: y\rz", "0\r\nx: y\r\n\n", "0\r\nx\n"];
        let positions: [(&str, &[&'static str]); 8] = [
            ("", &in_head),
            ("\r\n", &in_head),
            (&good, &in_head),
            (FIELDS, &in_fields),
            (&chunks, &in_size),
            (&chunked, &in_size),
            (&chunked, &in_trailers),
            (&chunked, &["0\r\n\r\nGET / HTTP/1.1\r\nx: y\n", "0\r\n\r\nPRI * HTTP/2.0\r\n\n"]),
        ];
        positions.iter().flat_map(|(before, lines)| lines.iter().map(|line| ((*before).to_owned(), *line))).collect()
    }

    #[test]
    fn a_bare_return_or_feed_does_not_arrive_wherever_it_is_in_a_head_or_between_chunks() {
        for (before, bare) in bare() {
            let (kept, _) = bare.split_at(bare.len() - 1);
            for after in ["", "\r\n0\r\n\r\nGET / HTTP/1.1\nx: y\r\n\r\n"] {
                let arrived = arrives(&format!("{before}{bare}{after}"));
                assert_eq!(arrived, format!("{before}{kept}{REPLACED}"), "{before:?} {bare:?} {after:?}");
            }
        }
    }

    #[test]
    fn behind_a_forbidden_byte_nothing_arrives_and_the_end_is_the_end() {
        let mut lines = RequestLines::new();
        let mut read = |came: &[u8], room_bytes: usize| {
            let mut storage = vec![0; came.len() + room_bytes];
            let mut buffer = ReadBuf::new(&mut storage);
            buffer.put_slice(came);
            lines.read(&mut buffer, 0).unwrap();
            String::from_utf8(buffer.filled().to_vec()).unwrap()
        };
        assert_eq!(read(b"GET / HTTP/1.1\nx", 0), "GET / HTTP/1.1\r\r", "the room of what was dropped");
        assert_eq!(read(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", 0), "\r\n\r\n");
        assert_eq!(read(b"", 8), "");
    }

    async fn respond(request: Request<Incoming>) -> Result<Response<String>, Infallible> {
        let mut body = request.into_body();
        let mut status = 200;
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            if frame.is_err() {
                status = 400;
                break;
            }
        }
        Ok(Response::builder().status(status).body(String::new()).unwrap())
    }

    /// The statuses that hyper answers these bytes with, if it gets them in pieces of this length.
    async fn statuses(text: &str, piece_bytes: usize) -> Vec<String> {
        let (client, server) = duplex(piece_bytes);
        let stream = TokioIo::new(CheckedStream::new(server, RequestLines::new()));
        let mut protocol = http1::Builder::new();
        let serving = tokio::spawn(protocol.half_close(true).serve_connection(stream, service_fn(respond)));
        let (mut reader, mut writer) = split(client);
        let text = text.to_owned();
        let sending = tokio::spawn(async move {
            let _ = writer.write_all(text.as_bytes()).await;
            // The server reads to the end, and then ends as well.
            let _ = writer.shutdown().await;
            writer
        });
        let mut answered = Vec::new();
        let _ = reader.read_to_end(&mut answered).await;
        drop(serving.await);
        drop(sending.await);
        let answered = String::from_utf8(answered).unwrap();
        answered.split("HTTP/1.1 ").skip(1).map(|answer| answer.chars().take(3).collect()).collect()
    }

    #[tokio::test]
    async fn hyper_refuses_every_request_with_a_bare_return_or_feed_and_reads_no_other() {
        let next = format!("{FIELDS}\r\n");
        let chunked = format!("{FIELDS}transfer-encoding: chunked\r\n\r\n1;a\r\n\n\r\n0\r\nx: y\r\n\r\n{next}");
        for piece_bytes in [1, 7, 1 << 16] {
            assert_eq!(statuses(&chunked, piece_bytes).await, ["200", "200"]);
            for (before, bare) in bare() {
                // Where a line end was put in, a chunk of three bytes would hold it and one more.
                for after in ["", "\r\n\n\r\n0\r\n\r\n", "\n\r\n0\r\n\r\n", "\r\n\r\n"] {
                    let found = statuses(&format!("{before}{bare}{after}{next}"), piece_bytes).await;
                    let is_behind_good = before.ends_with("\n\n") || bare.contains("\r\n\r\n");
                    let expected = if is_behind_good { &["200", "400"][..] } else { &["400"] };
                    assert_eq!(found, expected, "{before:?} {bare:?} {after:?} {piece_bytes}");
                }
            }
        }
    }

    #[test]
    fn only_the_first_line_of_a_connection_is_the_preface_of_http2() {
        for before in ["\r\n".to_owned(), format!("{FIELDS}\r\n")] {
            let preface = format!("{before}PRI * HTTP/2.0\r\n");
            assert_eq!(arrives(&format!("{preface}x: y\nz")), format!("{preface}x: y{REPLACED}"));
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
            assert_eq!(arrives(&format!("{before}{line}")), format!("{before}{kept}{REPLACED}"), "{line:?}");
        }
        for text in [
            format!("{FIELDS}x: {space}\r\ncontent-length: 2\r\n\r\n\n\n"),
            format!("{FIELDS}transfer-encoding: chunked\r\n\r\n2;{space}\r\n\n\n\r\n0\r\n\r\n"),
        ] {
            assert_eq!(arrives(&text), text);
        }
    }
}
