//! A collector of traces: it accepts OTLP over HTTP, in protobuf, and keeps the spans. It reads the
//! messages by their wire format (opentelemetry-proto, `trace.proto`), without the code that wrote
//! them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::Identity;
use crate::patience;

/// A running collector. It accepts no more connections once the test ends.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    scheme: &'static str,
    kept: Arc<Kept>,
}

/// The received heads, bodies and spans.
#[derive(Debug, Default)]
struct Kept {
    heads: Mutex<Vec<String>>,
    bodies: Mutex<Vec<u8>>,
    spans: Mutex<Vec<Span>>,
}

/// The behaviour of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It accepts everything it is sent.
    Takes,
    /// It accepts connections and never answers.
    Silent,
    /// It answers that it cannot accept anything.
    Refuses,
}

/// A received span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The id of its trace, in hexadecimal digits.
    pub trace: String,
    /// Its id, in hexadecimal digits.
    pub id: String,
    /// The id of its parent, in hexadecimal digits. Empty if it has none.
    pub parent: String,
    /// The state that other systems keep in a trace.
    pub state: String,
    /// Its name.
    pub name: String,
    /// 1: internal, 2: server, 3: client.
    pub kind: u64,
    /// Start, in nanoseconds since 1970.
    pub started: u64,
    /// End, in nanoseconds since 1970.
    pub ended: u64,
    /// Its attributes and those of its resource, as text.
    pub attributes: BTreeMap<String, String>,
    /// True if its status says that it failed.
    pub failed: bool,
}

impl Collector {
    /// A collector on a free port of loopback.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn start(manner: Manner) -> Self {
        Self::listening(manner, None)
    }

    /// A collector that speaks TLS with this identity and accepts everything.
    ///
    /// # Panics
    /// If there is no free port.
    #[must_use]
    pub fn secure(identity: &Identity) -> Self {
        Self::listening(Manner::Takes, Some(identity.server(&[b"http/1.1"])))
    }

    fn listening(manner: Manner, tls: Option<Arc<ServerConfig>>) -> Self {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let kept = Arc::<Kept>::default();
        let shared = Arc::clone(&kept);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                let tls = tls.clone().map(|config| ServerConnection::new(config).unwrap());
                std::thread::spawn(move || match tls {
                    None => converse(stream, manner, &shared),
                    Some(tls) => converse(StreamOwned::new(tls, stream), manner, &shared),
                });
            }
        });
        Self { address, scheme, kept }
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// The spans received so far.
    ///
    /// # Panics
    /// If a message cannot be read.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.kept.spans.lock().unwrap().clone()
    }

    /// The heads of the requests that brought them, in lower case.
    ///
    /// # Panics
    /// If a message cannot be read.
    #[must_use]
    pub fn heads(&self) -> Vec<String> {
        self.kept.heads.lock().unwrap().clone()
    }

    /// Every byte of the bodies, with what [`spans`](Self::spans) leaves out.
    ///
    /// # Panics
    /// If a message cannot be read.
    #[must_use]
    pub fn bodies(&self) -> Vec<u8> {
        self.kept.bodies.lock().unwrap().clone()
    }

    /// The spans, as soon as there are that many.
    ///
    /// # Panics
    /// If they do not come in time.
    #[must_use]
    pub fn spans_when(&self, count: usize) -> Vec<Span> {
        let end = Instant::now() + patience();
        loop {
            let spans = self.spans();
            if spans.len() >= count {
                return spans;
            }
            assert!(Instant::now() < end, "{} spans instead of {count}: {spans:#?}", spans.len());
            std::thread::yield_now();
        }
    }
}

fn converse(stream: impl Read + Write, manner: Manner, kept: &Kept) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(1..) if line.trim().is_empty() => break,
                Ok(1..) => head.push(line.trim().to_ascii_lowercase()),
                _ => return,
            }
        }
        assert_eq!(head[0], "post /v1/traces http/1.1");
        assert!(head.contains(&"content-type: application/x-protobuf".to_owned()), "{head:?}");
        let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        let mut body = vec![0; length.parse().unwrap()];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let answer = match manner {
            Manner::Silent => {
                // Reads until the other side gives up.
                let _ = reader.read_to_end(&mut body);
                return;
            }
            Manner::Takes => {
                kept.heads.lock().unwrap().push(head.join("\n"));
                kept.bodies.lock().unwrap().extend(&body);
                kept.spans.lock().unwrap().extend(spans(&body));
                "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n"
            }
            Manner::Refuses => "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n",
        };
        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The spans of an export request.
fn spans(request: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    for of_resource in messages(request, 1) {
        let resource = messages(of_resource, 1).pop().map(|resource| attributes(resource, 1)).unwrap_or_default();
        for scope in messages(of_resource, 2) {
            spans.extend(messages(scope, 2).into_iter().map(|bytes| span(bytes, &resource)));
        }
    }
    spans
}

fn span(bytes: &[u8], resource: &BTreeMap<String, String>) -> Span {
    let hex =
        |field| messages(bytes, field).pop().unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect();
    let text = |field| String::from_utf8(messages(bytes, field).pop().unwrap_or_default().to_vec()).unwrap();
    let mut attributes = attributes(bytes, 9);
    attributes.extend(resource.clone());
    Span {
        trace: hex(1),
        id: hex(2),
        parent: hex(4),
        state: text(3),
        name: text(5),
        kind: number(bytes, 6),
        started: number(bytes, 7),
        ended: number(bytes, 8),
        attributes,
        failed: messages(bytes, 15).pop().is_some_and(|status| number(status, 3) == 2),
    }
}

fn attributes(bytes: &[u8], field: u64) -> BTreeMap<String, String> {
    let pairs = messages(bytes, field).into_iter().map(|pair| {
        let key = String::from_utf8(messages(pair, 1).pop().unwrap().to_vec()).unwrap();
        let value = messages(pair, 2).pop().unwrap_or_default();
        let shown = match messages(value, 1).pop() {
            Some(text) => String::from_utf8(text.to_vec()).unwrap(),
            None => number(value, 3).to_string(),
        };
        (key, shown)
    });
    pairs.collect()
}

/// The value of one field of a message: bytes, or a number.
enum Held<'b> {
    Bytes(&'b [u8]),
    Number(u64),
}

/// The fields of a message, in their order.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Held<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let held = match key & 7 {
            0 => Held::Number(varint(&mut bytes)),
            1 => Held::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                Held::Bytes(take(&mut bytes, length))
            }
            5 => Held::Number(u64::from(u32::from_le_bytes(take(&mut bytes, 4).try_into().unwrap()))),
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, held));
    }
    fields
}

fn messages(bytes: &[u8], field: u64) -> Vec<&[u8]> {
    let of_field = fields(bytes).into_iter().filter(|(known, _)| *known == field);
    of_field
        .map(|(_, held)| match held {
            Held::Bytes(bytes) => bytes,
            Held::Number(number) => panic!("the number {number} in field {field}"),
        })
        .collect()
}

fn number(bytes: &[u8], field: u64) -> u64 {
    let found = fields(bytes).into_iter().find(|(known, _)| *known == field);
    match found {
        None => 0,
        Some((_, Held::Number(number))) => number,
        Some((_, Held::Bytes(bytes))) => panic!("{bytes:?} in field {field}"),
    }
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> &'b [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for place in 0..10 {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number without end")
}
