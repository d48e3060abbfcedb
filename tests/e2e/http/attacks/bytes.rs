//! Requests over HTTP/1.1 that are wrong byte by byte. Each has its exact answer, and its
//! connection goes on or is closed. A client that was connected before notices nothing.
//!
//! Promise: a proxy and the host see one request.

use std::fmt::Write as _;
use std::io::Write as _;

use serde_json::json;
use toolcell_tests::web::{Ask, WebHost, Wire};
use toolcell_tests::{alone, manifest_of};

/// The server's answer to an attack.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// Responses with these statuses; the connection then takes a further request.
    Open(Vec<u16>),
    /// Responses with these statuses; the connection is then closed.
    Closed(Vec<u16>),
}

fn open(statuses: &[u16]) -> Answer {
    Answer::Open(statuses.to_vec())
}

fn closed(statuses: &[u16]) -> Answer {
    Answer::Closed(statuses.to_vec())
}

/// A client that stays connected, with a session and a connection of its own.
struct Neighbour {
    wire: Wire,
    session: String,
    said: u32,
}

impl Neighbour {
    fn of(host: &WebHost) -> Self {
        Self { wire: host.connect(), session: host.session("2025-11-25"), said: 0 }
    }

    fn is_served(&mut self, after: &str) {
        self.said += 1;
        let text = format!("call {}", self.said);
        let modern = self.wire.ask(&Ask::call("echo", json!({"text": text})));
        assert_eq!(modern.frame()["result"]["content"][0]["text"], text, "after {after}");
        let call = json!({"name": "echo", "arguments": {"text": text}});
        let legacy = self.wire.ask(&Ask::request(7, "tools/call", call).of_session(&self.session));
        assert_eq!(legacy.frame()["result"]["content"][0]["text"], text, "after {after}");
    }
}

/// Sends every attack on a connection of its own and checks the answer.
fn withstand(host: &WebHost, attacks: &[(&str, Vec<u8>, Answer)]) {
    let mut neighbour = Neighbour::of(host);
    for (what, bytes, expected) in attacks {
        let mut wire = host.connect();
        // The host may close before it has read everything. Its earlier answers are read
        // nonetheless.
        let mut writing = wire.stream().try_clone().unwrap();
        let bytes = bytes.clone();
        let writer = std::thread::spawn(move || drop(writing.write_all(&bytes)));
        let (Answer::Open(statuses) | Answer::Closed(statuses)) = expected;
        assert_eq!(&answer(&mut wire, statuses.len(), matches!(expected, Answer::Open(_))), expected, "{what}");
        writer.join().unwrap();
        neighbour.is_served(what);
    }
}

/// Reads that many responses, and finds whether the connection is open after them. With `further`,
/// an open connection must answer one more request.
fn answer(wire: &mut Wire, count: usize, further: bool) -> Answer {
    let mut statuses = Vec::new();
    while statuses.len() < count && !wire.is_at_end() {
        statuses.push(wire.reply().status());
    }
    if further && wire.try_send(&Ask::bare("GET", "/healthz").bytes()) && !wire.is_at_end() {
        assert_eq!(wire.reply().status(), 200, "the next request after {statuses:?}");
        return Answer::Open(statuses);
    }
    while !wire.is_at_end() {
        statuses.push(wire.reply().status());
    }
    Answer::Closed(statuses)
}

/// A host that accepts bodies of 64 KiB and heads of 32 KiB.
fn host() -> WebHost {
    WebHost::with_manifest(&format!("{}\n[http]\nbody = \"64KiB\"\n", manifest_of(&["good"])))
}

/// A call that is correct except for the framing of its body.
fn framed(rest: &str) -> Vec<u8> {
    call().framed(rest)
}

fn framed_text(rest: &str) -> String {
    String::from_utf8(framed(rest)).unwrap()
}

fn call() -> Ask {
    Ask::call("echo", json!({"text": "x"}))
}

/// The call's body as one chunk, without the terminating chunk.
fn chunk() -> String {
    let body = call().body().to_owned();
    format!("{:x}\r\n{body}\r\n", body.len())
}

#[test]
fn where_a_request_ends_is_never_in_doubt() {
    let _alone = alone("a balancer reads these bytes itself");
    let body = call().body().to_owned();
    let chunk = chunk();
    let length = format!("content-length: {}\r\n", body.len());
    let coded = "transfer-encoding: chunked\r\n";
    let hidden = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let fields = |fields: &str| framed(&format!("{fields}\r\n{body}"));
    let chunked = |fields: &str| framed(&format!("{fields}\r\n{chunk}0\r\n\r\n"));
    withstand(
        &host(),
        &[
            // The transfer coding counts, and the bytes after it are not taken for a request (RFC
            // 9112 section 6.1).
            (
                "a length, then chunks",
                framed(&format!("content-length: 6\r\n{coded}\r\n{chunk}0\r\n\r\n{hidden}")),
                closed(&[200]),
            ),
            (
                "chunks, then a length",
                framed(&format!("{coded}content-length: 6\r\n\r\n{chunk}0\r\n\r\n{hidden}")),
                closed(&[200]),
            ),
            ("two lengths", fields(&format!("{length}content-length: 3\r\n")), closed(&[400])),
            ("two lengths, the wrong one first", fields(&format!("content-length: 3\r\n{length}")), closed(&[400])),
            ("the same length twice", fields(&length.repeat(2)), open(&[200])),
            ("a list of lengths", fields("content-length: 2, 2\r\n"), closed(&[400])),
            ("a length with a sign", fields("content-length: +2\r\n"), closed(&[400])),
            ("a negative length", fields("content-length: -1\r\n"), closed(&[400])),
            ("a length in hexadecimal digits", fields("content-length: 0x10\r\n"), closed(&[400])),
            ("an empty length", fields("content-length: \r\n"), closed(&[400])),
            ("a length beyond 64 bits", fields("content-length: 99999999999999999999\r\n"), closed(&[400])),
            ("a length that is too long", fields("content-length: 99999999999\r\n"), closed(&[413])),
            ("a coding before chunks", chunked("transfer-encoding: gzip, chunked\r\n"), closed(&[400])),
            ("chunks twice", chunked("transfer-encoding: chunked, chunked\r\n"), closed(&[400])),
            ("chunks in two fields", chunked(&coded.repeat(2)), closed(&[400])),
            (
                "no coding, then chunks",
                chunked("transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n"),
                closed(&[400]),
            ),
            ("chunks, then another coding", chunked("transfer-encoding: chunked, identity\r\n"), closed(&[400])),
            ("a coding that is none", chunked("transfer-encoding: xchunked\r\n"), closed(&[400])),
            ("a coding with a parameter", chunked("transfer-encoding: chunked;q=1\r\n"), closed(&[400])),
            ("a coding behind a vertical tab", chunked("transfer-encoding: \u{b}chunked\r\n"), closed(&[400])),
            ("a coding in capitals", chunked("Transfer-Encoding: CHUNKED\r\n"), open(&[200])),
            ("a field in two lines", fields(&format!("x-a: b\r\n c: d\r\n{length}")), closed(&[400])),
            ("a length in the second of two lines", fields(&format!("x-a: b\r\n {length}")), closed(&[400])),
            ("space before a colon", fields("content-length : 2\r\n"), closed(&[400])),
            ("a tab before a colon", fields("transfer-encoding\t: chunked\r\n"), closed(&[400])),
            ("a field without a name", fields(&format!(": x\r\n{length}")), closed(&[400])),
            ("a field without a colon", fields(&format!("x\r\n{length}")), closed(&[400])),
            ("a bare return in a value", fields(&format!("x-a: b\rc: d\r\n{length}")), closed(&[400])),
            ("a bare newline behind a field", fields(&format!("x-a: b\n{length}")), closed(&[400])),
            ("a coding behind a bare newline", chunked("x-a: b\ntransfer-encoding: chunked\r\n"), closed(&[400])),
            ("a length with a bare newline", fields(&format!("{}\n", length.trim_end())), closed(&[400])),
            ("a NUL in a value", fields(&format!("x-a: \0\r\n{length}")), closed(&[400])),
            (
                "chunks in HTTP/1.0",
                String::from_utf8(chunked(coded)).unwrap().replacen("HTTP/1.1", "HTTP/1.0", 1).into(),
                closed(&[400]),
            ),
        ],
    );
}

#[test]
fn chunks_cost_what_they_carry() {
    let _alone = alone("a balancer reads these bytes itself");
    let body = call().body().to_owned();
    let chunk = chunk();
    let chunks = |chunks: &str| framed(&format!("transfer-encoding: chunked\r\n\r\n{chunks}"));
    let single: String = body.chars().map(|one| format!("1\r\n{one}\r\n")).collect();
    let many = |one: &str| one.repeat(0x11000);
    withstand(
        &host(),
        &[
            ("a chunk for each byte", chunks(&format!("{single}0\r\n\r\n")), open(&[200])),
            ("a trailer", chunks(&format!("{chunk}0\r\nx-a: b\r\n\r\n")), open(&[200])),
            ("a short extension", chunks(&format!("{}0\r\n\r\n", chunk.replacen("\r\n", ";a=b\r\n", 1))), open(&[200])),
            ("a size that is none", chunks("zz\r\n"), closed(&[400])),
            ("a size with a sign", chunks("+5\r\nhello\r\n0\r\n\r\n"), closed(&[400])),
            ("a negative size", chunks("-5\r\nhello\r\n0\r\n\r\n"), closed(&[400])),
            ("a size with a prefix", chunks("0x5\r\nhello\r\n0\r\n\r\n"), closed(&[400])),
            ("no size", chunks("\r\nhello\r\n0\r\n\r\n"), closed(&[400])),
            ("a size beyond 64 bits", chunks("10000000000000000\r\n"), closed(&[400])),
            ("a gigantic chunk", chunks(&format!("ffffffffffffffff\r\n{}", many(" "))), closed(&[413])),
            ("chunks without end", chunks(&many("4\r\n    \r\n")), closed(&[413])),
            ("tiny chunks without end", chunks(&many("1\r\n \r\n")), closed(&[413])),
            ("more in a chunk than it says", chunks("1\r\nhello\r\n0\r\n\r\n"), closed(&[400])),
            ("an extension without end", chunks(&format!("1;{}", many("a"))), closed(&[400])),
            ("extensions of many chunks", chunks(&many("1;aaaaaaaaaaaaaaaa\r\n \r\n")), closed(&[400])),
            ("a bare newline in an extension", chunks("1;a\n \r\n0\r\n\r\n"), closed(&[400])),
            ("a trailer without end", chunks(&format!("{chunk}0\r\nx-a: {}", many("b"))), closed(&[400])),
            ("trailers without end", chunks(&format!("{chunk}0\r\n{}", many("x-a: b\r\n"))), closed(&[400])),
        ],
    );
}

#[test]
fn a_bare_newline_between_chunks_is_refused_also_where_the_rest_comes_later() {
    let _alone = alone("a balancer reads these bytes itself");
    let host = host();
    let chunk = chunk();
    let (size, rest) = chunk.split_once("\r\n").unwrap();
    let later = String::from_utf8([rest.as_bytes(), b"0\r\n\r\n", &call().bytes()].concat()).unwrap();
    let size_lines = ["\n", ";a\nb\r\n", ";a=\"\n\"\r\n", ";a\rb\r\n", " \n"];
    // A chunk that would also hold a line end put in its place.
    let size = usize::from_str_radix(size, 16).unwrap() + 2;
    let cases = size_lines.map(|end| (format!("{size:x}{end}"), later.clone()));
    let trailers = ["0\n", "0;a\n", "0\r\n\n", "0\r\nx-a: b\n"];
    let trailers = trailers.map(|end| (format!("{chunk}{end}"), format!("\r\n{}", framed_text("\r\n"))));
    for (first, later) in cases.into_iter().chain(trailers) {
        let mut wire = host.connect();
        wire.send(&framed(&format!("transfer-encoding: chunked\r\n\r\n{first}")));
        std::thread::sleep(std::time::Duration::from_millis(50));
        // The host may have closed the connection.
        wire.try_send(later.as_bytes());
        assert_eq!(answer(&mut wire, 1, false), closed(&[400]), "{first:?}");
    }
    host.still_works();
}

#[test]
fn heads_are_bounded_and_read_one_way() {
    let _alone = alone("a balancer reads these bytes itself");
    let get = |rest: &str| format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{rest}\r\n").into_bytes();
    let raw = |text: &str| text.as_bytes().to_vec();
    let fields = |count: usize| {
        (0..count).fold(String::new(), |mut text, at| {
            let _ = write!(text, "x-{at}: 1\r\n");
            text
        })
    };
    let long = "x".repeat(40 * 1024);
    withstand(
        &host(),
        &[
            ("many fields", get(&fields(90)), open(&[200])),
            ("too many fields", get(&fields(100)), closed(&[431])),
            ("a long value", get(&format!("x-a: {long}\r\n")), closed(&[431])),
            ("a long name", get(&format!("{long}: a\r\n")), closed(&[431])),
            ("many long values", get(&format!("x-a: {}\r\n", "x".repeat(4_000)).repeat(20)), closed(&[431])),
            ("a long target", raw(&format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n")), closed(&[431])),
            ("a target of 70,000 bytes", raw(&format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(70_000))), closed(&[431])),
            ("a long method", raw(&format!("{long} / HTTP/1.1\r\nhost: localhost\r\n\r\n")), closed(&[431])),
            ("a line without end", raw(&long.repeat(2)), closed(&[431])),
            ("empty lines before a request", [&b"\r\n\r\n"[..], &get("")].concat(), open(&[200])),
            ("space before the first field", raw("GET /healthz HTTP/1.1\r\n host: localhost\r\n\r\n"), closed(&[400])),
            ("a target with a space", raw("GET /health z HTTP/1.1\r\nhost: localhost\r\n\r\n"), closed(&[400])),
            ("no version", raw("GET /healthz\r\n\r\n"), closed(&[400])),
            ("another version", raw("GET /healthz HTTP/3.0\r\nhost: localhost\r\n\r\n"), closed(&[400])),
            ("no HTTP", raw("\x16\x03\x01\x02\x00\x01\x00\x01\u{7f}\x03\x03"), closed(&[400])),
            ("half of HTTP/2's greeting", raw("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"), closed(&[400])),
            (
                "HTTP/2's greeting behind a request",
                [get(""), raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")].concat(),
                closed(&[200]),
            ),
            ("garbage behind a request", [get(""), vec![0xff; 64]].concat(), closed(&[200, 400])),
            ("a request behind garbage", [b"\xff\xff\r\n\r\n".to_vec(), get("")].concat(), closed(&[400])),
            (
                "a request behind one that ends the connection",
                [get("connection: close\r\n"), get("")].concat(),
                closed(&[200]),
            ),
            ("many requests at once", get("").repeat(5), open(&[200; 5])),
            (
                "an upgrade to HTTP/2",
                get("connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n"),
                open(&[200]),
            ),
            (
                "an upgrade to a WebSocket",
                get("connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"),
                open(&[200]),
            ),
            ("a tunnel", raw("CONNECT localhost:80 HTTP/1.1\r\nhost: localhost:80\r\n\r\n"), open(&[404])),
            (
                "a tunnel elsewhere",
                raw("CONNECT evil.example.com:443 HTTP/1.1\r\nhost: evil.example.com:443\r\n\r\n"),
                open(&[403]),
            ),
            ("an echo of the request", raw("TRACE /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n"), open(&[405])),
            ("every path", raw("OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n"), open(&[404])),
            (
                "a method in small letters",
                raw("post /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"),
                open(&[405]),
            ),
            ("a path with dots", raw("GET /x/../healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"), open(&[404])),
            ("a path in escapes", raw("GET /%68ealthz HTTP/1.1\r\nhost: localhost\r\n\r\n"), open(&[404])),
            (
                "a path with two slashes",
                raw("POST //mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"),
                open(&[404]),
            ),
            ("a body that is asked for first", call().with("expect", "100-continue").bytes(), open(&[100, 200])),
            (
                "a long body that is asked for first",
                call().with("expect", "100-continue").framed("content-length: 99999999\r\n\r\n"),
                closed(&[413]),
            ),
        ],
    );
}

#[test]
fn requests_that_nobody_waited_for_are_answered_in_order() {
    let _alone = alone("a balancer reads these bytes itself");
    let host = host();
    let mut neighbour = Neighbour::of(&host);
    let mut wire = host.connect();
    let mut writing = wire.stream().try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        for at in 0..500 {
            writing.write_all(&Ask::call("echo", json!({"text": at.to_string()})).bytes()).unwrap();
        }
    });
    neighbour.is_served("requests that nobody waited for");
    for at in 0..500 {
        assert_eq!(wire.reply().frame()["result"]["content"][0]["text"], at.to_string());
    }
    writer.join().unwrap();
    neighbour.is_served("all of them");
}
