//! Frames of HTTP/2 that a server should not accept: floods, wrong windows, wrong heads. Each has
//! its exact answer, and a client that was connected before notices nothing.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::json;
use toolcell_tests::http2::{self, END_HEADERS, END_STREAM, Fate, Frame, PREFACE, head, kind};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{alone, manifest_of, patience};

/// Codes of RFC 9113 section 7. Where the RFC has a finer one than `PROTOCOL_ERROR`, the expected
/// one is that of the library.
const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const FRAME_SIZE_ERROR: u32 = 6;
const REFUSED_STREAM: u32 = 7;
const ENHANCE_YOUR_CALM: u32 = 11;

/// Frames of a flood: several times what any bound allows.
const FLOOD: usize = 20_000;

fn connect(host: &WebHost, settings: &[(u16, u32)]) -> TcpStream {
    let mut stream = TcpStream::connect(host.address()).unwrap();
    stream.set_read_timeout(Some(patience())).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(&[PREFACE, &Frame::settings(settings).bytes()].concat()).unwrap();
    stream
}

fn health() -> Ask {
    Ask::bare("GET", "/healthz")
}

fn call() -> Ask {
    Ask::call("echo", json!({"text": "x"}))
}

/// The head of `GET /healthz` with these further fields. Pseudo-header fields, with a colon before
/// the name, come first.
fn get(further: &[(&str, &str)]) -> Vec<u8> {
    let mut fields = vec![(":method", "GET"), (":scheme", "http"), (":path", "/healthz"), (":authority", "localhost")];
    fields.extend(further);
    head(&fields)
}

fn headers(stream: u32, flags: u8, block: &[u8]) -> Frame {
    Frame::new(kind::HEADERS, flags, stream, block)
}

/// These frames, then a request for the host's health on stream 1.
fn then_asks(mut frames: Vec<Frame>) -> Vec<Frame> {
    frames.push(headers(1, END_HEADERS | END_STREAM, &get(&[])));
    frames
}

/// This frame, repeated as often as a flood needs.
fn flood(frame: &Frame) -> Vec<Frame> {
    vec![frame.clone(); FLOOD]
}

/// The fate of stream 1 after these frames.
fn fate_of(host: &WebHost, frames: &[Frame]) -> Fate {
    let mut stream = connect(host, &[]);
    let bytes = http2::bytes(frames);
    let mut writing = stream.try_clone().unwrap();
    // The host may close before it has read everything. Its earlier answers are read nonetheless.
    let writer = std::thread::spawn(move || drop(writing.write_all(&bytes)));
    let fate = http2::fate(&mut stream, 1);
    let _ = stream.shutdown(std::net::Shutdown::Both);
    writer.join().unwrap();
    fate
}

#[test]
fn every_wrong_frame_has_its_answer() {
    let _alone = alone("a balancer reads these frames itself");
    let host = WebHost::serving(&["good"]);
    let mut neighbour = connect(&host, &[]);
    let whole = END_HEADERS | END_STREAM;
    let bomb = {
        // One long field that enters the table, then hundreds of references to it.
        let mut block = get(&[]);
        block.extend([0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
        block.extend([b'a'; 4_000]);
        block.extend([0xbe; 4_000]);
        block
    };
    let attacks: Vec<(&str, Vec<Frame>, Fate)> = vec![
        (
            "a head that never ends",
            {
                let mut frames = vec![headers(1, END_STREAM, &get(&[]))];
                frames.extend(flood(&Frame::new(kind::CONTINUATION, 0, 1, &head(&[("x-a", "b")]))));
                frames
            },
            Fate::GoneAway(ENHANCE_YOUR_CALM),
        ),
        (
            "a head that never ends, in empty frames",
            {
                let mut frames = vec![headers(1, END_STREAM, &get(&[]))];
                frames.extend(flood(&Frame::new(kind::CONTINUATION, 0, 1, &[])));
                frames
            },
            Fate::GoneAway(ENHANCE_YOUR_CALM),
        ),
        (
            "a head that another frame interrupts",
            vec![headers(1, END_STREAM, &get(&[])), Frame::new(kind::PING, 0, 0, &[0; 8])],
            Fate::GoneAway(PROTOCOL_ERROR),
        ),
        (
            "a continuation of nothing",
            vec![Frame::new(kind::CONTINUATION, END_HEADERS, 1, &[])],
            Fate::GoneAway(PROTOCOL_ERROR),
        ),
        ("fields that unfold", vec![headers(1, whole, &bomb)], Fate::GoneAway(ENHANCE_YOUR_CALM)),
        ("fields past what a head may have", then_large(), Fate::Status(431)),
        ("a reference to no field", vec![headers(1, whole, &[0xff, 0xff, 0x7f])], Fate::GoneAway(PROTOCOL_ERROR)),
        ("settings again and again", then_asks(flood(&Frame::settings(&[(4, 65_535)]))), Fate::Status(200)),
        ("pings again and again", then_asks(flood(&Frame::new(kind::PING, 0, 0, &[0; 8]))), Fate::Status(200)),
        ("answers to no ping", then_asks(flood(&Frame::new(kind::PING, 1, 0, &[0; 8]))), Fate::Status(200)),
        (
            "priorities again and again",
            then_asks(flood(&Frame::new(kind::PRIORITY, 0, 3, &[0, 0, 0, 0, 1]))),
            Fate::Status(200),
        ),
        ("a ping of a wrong length", vec![Frame::new(kind::PING, 0, 0, &[0; 7])], Fate::GoneAway(PROTOCOL_ERROR)),
        ("settings of a wrong length", vec![Frame::new(kind::SETTINGS, 0, 0, &[0; 5])], Fate::GoneAway(PROTOCOL_ERROR)),
        ("a window that is too large", vec![Frame::settings(&[(4, 1 << 31)])], Fate::GoneAway(PROTOCOL_ERROR)),
        (
            "a frame that is too long",
            vec![Frame::new(kind::DATA, 0, 1, &[0; 16_385])],
            Fate::GoneAway(FRAME_SIZE_ERROR),
        ),
        (
            "a window that overflows",
            vec![Frame::new(kind::WINDOW_UPDATE, 0, 0, &0x7fff_ffff_u32.to_be_bytes())],
            Fate::GoneAway(FLOW_CONTROL_ERROR),
        ),
        (
            "a window that grows by nothing",
            vec![Frame::new(kind::WINDOW_UPDATE, 0, 0, &[0; 4])],
            Fate::GoneAway(PROTOCOL_ERROR),
        ),
        ("a head on no stream", vec![headers(0, whole, &get(&[]))], Fate::GoneAway(PROTOCOL_ERROR)),
        ("a head on a server's stream", vec![headers(2, whole, &get(&[]))], Fate::GoneAway(PROTOCOL_ERROR)),
        ("a body without a head", vec![Frame::new(kind::DATA, END_STREAM, 1, b"{}")], Fate::GoneAway(PROTOCOL_ERROR)),
        (
            "a promise",
            vec![Frame::new(kind::PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2])],
            Fate::GoneAway(PROTOCOL_ERROR),
        ),
        (
            "a stream that is older than the last",
            vec![headers(5, whole, &get(&[])), headers(3, whole, &get(&[]))],
            Fate::GoneAway(PROTOCOL_ERROR),
        ),
        (
            "a kind of frame that nobody knows",
            then_asks(flood(&Frame::new(0xfa, 0xff, 0, &[0; 64]))),
            Fate::Status(200),
        ),
        (
            "a field that belongs to the connection",
            vec![headers(1, whole, &get(&[("connection", "close")]))],
            Fate::Reset(PROTOCOL_ERROR),
        ),
        ("chunks", vec![headers(1, whole, &get(&[("transfer-encoding", "chunked")]))], Fate::Reset(PROTOCOL_ERROR)),
        ("a field in capitals", vec![headers(1, whole, &get(&[("X-A", "b")]))], Fate::GoneAway(PROTOCOL_ERROR)),
        (
            "a newline in a value",
            vec![headers(1, whole, &get(&[("x-a", "b\r\nhost: evil")]))],
            Fate::GoneAway(PROTOCOL_ERROR),
        ),
        ("two paths", vec![headers(1, whole, &get(&[(":path", "/mcp")]))], Fate::Reset(PROTOCOL_ERROR)),
        (
            "a pseudo-field behind a field",
            vec![headers(1, whole, &get(&[("x-a", "b"), (":path", "/mcp")]))],
            Fate::Reset(PROTOCOL_ERROR),
        ),
        (
            "a pseudo-field of responses",
            vec![headers(1, whole, &get(&[(":status", "200")]))],
            Fate::Reset(PROTOCOL_ERROR),
        ),
        (
            "no path",
            vec![headers(1, whole, &head(&[(":method", "GET"), (":scheme", "http"), (":authority", "localhost")]))],
            Fate::Reset(PROTOCOL_ERROR),
        ),
        (
            "a body shorter than it says",
            vec![
                headers(1, END_HEADERS, &head(&call().with("content-length", "99").fields("http"))),
                Frame::new(kind::DATA, END_STREAM, 1, b"{}"),
            ],
            Fate::Reset(PROTOCOL_ERROR),
        ),
        (
            "a body longer than it says",
            vec![
                headers(1, END_HEADERS, &head(&call().with("content-length", "1").fields("http"))),
                Frame::new(kind::DATA, END_STREAM, 1, b"{}"),
            ],
            Fate::Reset(PROTOCOL_ERROR),
        ),
    ];
    for (at, (what, frames, fate)) in (0_u32..).zip(attacks) {
        assert_eq!(fate_of(&host, &frames), fate, "{what}");
        let (status, body) = http2::ask(&mut neighbour, at * 2 + 1, &call(), "http");
        assert_eq!(status, 200, "after {what}");
        assert!(String::from_utf8(body).unwrap().contains(r#""text":"x""#), "after {what}");
        host.still_works();
    }
}

/// A head of 40 KB, in frames of the longest allowed size.
fn then_large() -> Vec<Frame> {
    let block = get(&[("x-a", &"a".repeat(40_000))]);
    let mut parts = block.chunks(16_384).peekable();
    let mut frames = vec![headers(1, END_STREAM, parts.next().unwrap())];
    while let Some(part) = parts.next() {
        let flags = if parts.peek().is_none() { END_HEADERS } else { 0 };
        frames.push(Frame::new(kind::CONTINUATION, flags, 1, part));
    }
    frames
}

#[test]
fn more_requests_at_once_than_a_connection_may_have_are_refused_one_by_one() {
    let _alone = alone("a balancer reads these frames itself");
    let host = WebHost::serving(&["good"]);
    let mut stream = connect(&host, &[]);
    let mut frames: Vec<Frame> = (0..128).flat_map(|at| http2::request(at * 2 + 1, &Ask::listen(1), "http")).collect();
    frames.extend(http2::request(257, &health(), "http"));
    stream.write_all(&http2::bytes(&frames)).unwrap();
    assert_eq!(http2::fate(&mut stream, 257), Fate::Reset(REFUSED_STREAM));
    let leave = Frame::new(kind::RST_STREAM, 0, 1, &8_u32.to_be_bytes());
    stream.write_all(&leave.bytes()).unwrap();
    assert_eq!(http2::ask(&mut stream, 259, &health(), "http").0, 200, "one has gone");
    host.still_works();
}

#[test]
fn a_client_that_resets_its_requests_again_and_again_is_shown_out() {
    let _alone = alone("a balancer reads these frames itself");
    let host = WebHost::serving(&["good"]);
    let frames: Vec<Frame> = (0..5_000)
        .flat_map(|at| {
            let reset = Frame::new(kind::RST_STREAM, 0, at * 2 + 1, &8_u32.to_be_bytes());
            [headers(at * 2 + 1, END_HEADERS, &head(&call().fields("http"))), reset]
        })
        .collect();
    // No stream has this number, so only the connection can have a fate.
    let mut stream = connect(&host, &[]);
    let mut writing = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || drop(writing.write_all(&http2::bytes(&frames))));
    let fate = http2::fate(&mut stream, u32::MAX);
    assert!(matches!(fate, Fate::GoneAway(_)), "{fate:?}");
    let _ = stream.shutdown(std::net::Shutdown::Both);
    writer.join().unwrap();
    host.still_works();
}

#[test]
fn a_client_that_opens_no_window_keeps_no_answer() {
    let _alone = alone("a balancer reads these frames itself");
    let manifest = format!("{}\n[http]\nwrite_time = \"300ms\"\n", manifest_of(&["good"]));
    let host = WebHost::with_manifest(&manifest);
    // Each stream has a window of zero bytes, or of one. If the connection is not closed, this
    // waits in vain.
    for window in [0, 1] {
        let mut stream = connect(&host, &[(4, window)]);
        let frames: Vec<Frame> = (0..20)
            .flat_map(|at| http2::request(at * 2 + 1, &Ask::modern(1, "tools/list", json!({})), "http"))
            .collect();
        stream.write_all(&http2::bytes(&frames)).unwrap();
        while let Some(frame) = http2::receive(&mut stream) {
            let taken = frame.kind == kind::DATA && frame.payload.len() > 1;
            assert!(!taken, "more was sent than there is a window for: {frame:?}");
        }
        host.still_works();
    }
}

#[test]
fn events_that_a_client_opens_no_window_for_end_its_connection() {
    let _alone = alone("a balancer reads these frames itself");
    let manifest = format!("{}\n[http]\nwrite_time = \"300ms\"\n", manifest_of(&["good"]));
    let host = WebHost::with_manifest(&manifest);
    let mut stream = connect(&host, &[(4, 0)]);
    stream.write_all(&http2::bytes(&http2::request(1, &Ask::listen(1), "http"))).unwrap();
    // The acknowledgement is never read.
    assert_eq!(http2::fate(&mut stream, 1), Fate::Status(200));
    assert!(std::iter::from_fn(|| http2::receive(&mut stream)).all(|frame| frame.kind != kind::DATA));
    host.still_works();
}

#[test]
fn a_client_that_pings_and_reads_nothing_is_shown_out() {
    let _alone = alone("a balancer reads these frames itself");
    let manifest = format!("{}\n[http]\nwrite_time = \"300ms\"\n", manifest_of(&["good"]));
    let host = WebHost::with_manifest(&manifest);
    let mut stream = connect(&host, &[]);
    stream.set_write_timeout(Some(patience())).unwrap();
    let pings = Frame::new(kind::PING, 0, 0, &[7; 8]).bytes().repeat(1_000);
    let refused = std::iter::repeat_with(|| stream.write_all(&pings)).find_map(Result::err).unwrap();
    let kinds = [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::BrokenPipe];
    assert!(kinds.contains(&refused.kind()), "{refused}");
    host.still_works();
}
