//! An HTTP/1.1 server that keeps every byte of each request's head, and answers by path: politely,
//! slowly, without end, too large, or wrongly. With an [`Identity`] it speaks TLS.
//!
//! | path | what comes |
//! |---|---|
//! | `/echo…` and any other | method, target, fields and body back as JSON |
//! | `/redirect?URL` | 302 to this URL, as it is |
//! | `/status/N` | that status with a short body |
//! | `/silent` | nothing, as long as the client waits |
//! | `/slow-head` | a head that never ends, byte by byte |
//! | `/dribble?TYPE` | a body that never ends, byte by byte, of this type if there is one |
//! | `/endless?TYPE` | a body that never ends, as fast as it is read, of this type if there is one |
//! | `/bytes/N` | a body of N bytes |
//! | `/cut` | ten bytes of a body of a hundred |
//! | `/fields/N` | N fields |
//! | `/field-bytes/N` | a field with N bytes |
//! | `/gzip` | a compressed body |
//! | `/hop` | fields that are between two neighbours only |
//! | `/switch` | 101: another protocol |
//! | `/early` | 103, then 200 |
//! | one that it [holds](HttpServer::holding) | those bytes |
//! | `/say` | the bytes of the request's body, with the value of `Authorization` instead of `{plain}`, `{json}`, `{html}`, `{percent}`, `{twice}`, `{digits}` |

use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::Identity;

/// Pause between two bytes that are sent one by one. It is slow for a program and fast for a test.
const BETWEEN_BYTES: Duration = Duration::from_millis(20);

/// The body `slow and small`, compressed with gzip.
const GZIP: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff+\xce\xc9/WH\xccKQ(\xceM\xcc\xc9\x01\x00\x19\x1b\xc6\x92\x0e\x00\x00\x00";

/// A running server. It accepts no more connections once it is dropped.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    scheme: &'static str,
    state: Arc<State>,
}

/// An answer that a test writes itself.
#[derive(Clone, Debug)]
pub enum Scripted {
    /// A status, a content type and a body.
    Whole(u16, &'static str, String),
    /// A status, fields and a body, which an answer to HEAD leaves out.
    Bytes(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// The answer that this target would get.
    As(&'static str),
}

/// Answers by request, of a server that stands for a service.
type Script = dyn Fn(&Seen) -> Scripted + Send + Sync;

/// The state that the threads of a server share.
#[derive(Default)]
struct State {
    script: Option<Box<Script>>,
    seen: Mutex<Vec<Seen>>,
    files: Mutex<Vec<(String, Vec<u8>)>>,
    connections: AtomicUsize,
    is_over: AtomicBool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("State").field("seen", &self.seen).field("connections", &self.connections).finish()
    }
}

/// One received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Everything up to the blank line, as text.
    pub head: String,
    /// The body, read by the length or the chunks that the head announces.
    pub body: Vec<u8>,
}

impl Seen {
    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or("")
    }

    /// The target: path and query, or a whole URL.
    #[must_use]
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or("")
    }

    /// Names in lower case, with values.
    #[must_use]
    pub fn fields(&self) -> Vec<(String, String)> {
        let pair =
            |line: &str| line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
        self.head.lines().skip(1).filter_map(pair).collect()
    }

    /// All values of the fields with this name, which is in lower case.
    #[must_use]
    pub fn values(&self, name: &str) -> Vec<String> {
        self.fields().into_iter().filter(|(known, _)| known == name).map(|(_, value)| value).collect()
    }

    fn json(&self) -> Value {
        json!({
            "method": self.method(),
            "target": self.target(),
            "headers": self.fields(),
            "body": String::from_utf8_lossy(&self.body),
        })
    }
}

impl HttpServer {
    /// A server on 127.0.0.1.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn start() -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// A server at this address.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn at(address: impl Into<SocketAddr>) -> Self {
        Self::listening(address.into(), None)
    }

    /// A server on 127.0.0.1 that speaks TLS with this identity.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn secure(identity: &Identity) -> Self {
        Self::listening(SocketAddr::from(([127, 0, 0, 1], 0)), Some(identity.server(&[b"http/1.1"])))
    }

    /// A server on 127.0.0.1 that answers as this says.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn scripted(script: impl Fn(&Seen) -> Scripted + Send + Sync + 'static) -> Self {
        let state = State { script: Some(Box::new(script)), ..State::default() };
        Self::sharing(SocketAddr::from(([127, 0, 0, 1], 0)), None, state)
    }

    fn listening(address: SocketAddr, tls: Option<Arc<ServerConfig>>) -> Self {
        Self::sharing(address, tls, State::default())
    }

    fn sharing(address: SocketAddr, tls: Option<Arc<ServerConfig>>, state: State) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let state = Arc::new(state);
        let shared = Arc::clone(&state);
        std::thread::spawn(move || accept(&listener, tls.as_ref(), &shared));
        Self { address, scheme, state }
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// A URL of this server with its address.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// A URL of this server with this name.
    #[must_use]
    pub fn url_as(&self, name: &str, path: &str) -> String {
        format!("{}://{name}:{}{path}", self.scheme, self.port())
    }

    /// Answers requests for this target with these bytes from now on, and gives the URL.
    ///
    /// # Panics
    /// If a thread of the server panicked.
    #[must_use]
    pub fn holding(&self, target: &str, bytes: Vec<u8>) -> String {
        self.state.files.lock().unwrap().push((target.to_owned(), bytes));
        self.url(target)
    }

    /// The requests received so far.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    /// The only request received.
    ///
    /// # Panics
    /// If none came, or several.
    #[must_use]
    pub fn only_seen(&self) -> Seen {
        match self.seen().as_slice() {
            [only] => only.clone(),
            several => panic!("exactly one request was expected: {several:?}"),
        }
    }

    /// The number of connections made to it so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
    }
}

/// A connection, with TLS or without.
trait Connection: Read + Write + Send {}
impl<T: Read + Write + Send> Connection for T {}

fn accept(listener: &TcpListener, tls: Option<&Arc<ServerConfig>>, state: &Arc<State>) {
    for stream in listener.incoming() {
        if state.is_over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        state.connections.fetch_add(1, Ordering::SeqCst);
        let connection: Box<dyn Connection> = match tls {
            None => Box::new(stream),
            Some(config) => match ServerConnection::new(Arc::clone(config)) {
                Ok(connection) => Box::new(StreamOwned::new(connection, stream)),
                Err(_) => continue,
            },
        };
        let state = Arc::clone(state);
        // The test decides about a client that goes away or does not trust the certificate.
        std::thread::spawn(move || drop(serve(connection, &state)));
    }
}

fn serve(connection: Box<dyn Connection>, state: &State) -> Result<()> {
    let mut connection = BufReader::new(connection);
    while let Some(seen) = read_request(&mut connection)? {
        state.seen.lock().unwrap().push(seen.clone());
        let held = state.files.lock().unwrap().iter().find(|(target, _)| target == seen.target()).cloned();
        match (held, state.script.as_ref().map(|script| script(&seen))) {
            (Some((_, bytes)), _) => whole(connection.get_mut(), "200 OK", &[], &bytes)?,
            (None, None) => answer(&seen, connection.get_mut())?,
            (None, Some(Scripted::As(target))) => {
                let head = format!("{} {target} HTTP/1.1", seen.method());
                answer(&Seen { head, body: seen.body }, connection.get_mut())?;
            }
            (None, Some(Scripted::Whole(status, kind, body))) => {
                whole(connection.get_mut(), &format!("{status} Status"), &[("Content-Type", kind)], body.as_bytes())?;
            }
            (None, Some(Scripted::Bytes(status, fields, body))) => {
                let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let mut answer = Vec::new();
                whole(&mut answer, &format!("{status} Status"), &fields, &body)?;
                if seen.method() == "HEAD" {
                    answer.truncate(answer.len() - body.len());
                }
                connection.get_mut().write_all(&answer)?;
            }
        }
        connection.get_mut().flush()?;
    }
    Ok(())
}

fn read_request(connection: &mut impl BufRead) -> Result<Option<Seen>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if connection.read_until(b'\n', &mut head)? == 0 {
            return Ok(None);
        }
    }
    let mut seen = Seen { head: String::from_utf8_lossy(&head).trim_end().to_owned(), body: Vec::new() };
    if seen.values("transfer-encoding").concat().contains("chunked") {
        seen.body = read_chunks(connection)?;
    } else if let Some(length) = seen.values("content-length").first().and_then(|length| length.parse().ok()) {
        connection.take(length).read_to_end(&mut seen.body)?;
    }
    Ok(Some(seen))
}

fn read_chunks(connection: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        connection.read_line(&mut line)?;
        let size = u64::from_str_radix(line.trim(), 16).unwrap_or(0);
        connection.take(size).read_to_end(&mut body)?;
        connection.read_line(&mut line)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn answer(seen: &Seen, out: &mut dyn Write) -> Result<()> {
    let target = seen.target();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let number = || path.rsplit('/').next().and_then(|number| number.parse::<usize>().ok()).unwrap_or(0);
    match path.trim_start_matches('/').split('/').next().unwrap_or("") {
        "redirect" => whole(out, "302 Found", &[("Location", query)], b""),
        "status" => whole(out, &format!("{} Status", number()), &[], b"as asked"),
        "silent" => wait_for_the_end(),
        "slow-head" => {
            out.write_all(b"HTTP/1.1 200 OK\r\nX-Slow: ")?;
            byte_by_byte(out)
        }
        "dribble" => {
            out.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: 100000000{}\r\n\r\n", typed(query)).as_bytes())?;
            byte_by_byte(out)
        }
        "endless" => endless(out, &typed(query)),
        "bytes" => whole(out, "200 OK", &[], &vec![b'b'; number()]),
        "cut" => {
            out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n0123456789")?;
            out.flush()?;
            Err(std::io::ErrorKind::ConnectionAborted.into())
        }
        "fields" => {
            let names: Vec<String> = (0..number()).map(|number| format!("X-Field-{number}")).collect();
            let fields: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
            whole(out, "200 OK", &fields, b"many fields")
        }
        "field-bytes" => whole(out, "200 OK", &[("X-Long", &"v".repeat(number()))], b"a long field"),
        "gzip" => whole(out, "200 OK", &[("Content-Encoding", "gzip")], GZIP),
        "hop" => {
            let fields = [
                ("Connection", "X-Between, close"),
                ("X-Between", "1"),
                ("Keep-Alive", "timeout=5"),
                ("Proxy-Authenticate", "Basic"),
                ("Upgrade", "h2c"),
                ("X-End", "1"),
            ];
            whole(out, "200 OK", &fields, b"hop")
        }
        "switch" => {
            out.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\nraw bytes")
        }
        "early" => {
            out.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")?;
            whole(out, "200 OK", &[], b"late")
        }
        "say" | "api" if path.ends_with("/say") => {
            out.write_all(said(seen).as_bytes())?;
            out.flush()?;
            Err(std::io::ErrorKind::ConnectionAborted.into())
        }
        _ => whole(out, "200 OK", &[("Content-Type", "application/json")], seen.json().to_string().as_bytes()),
    }
}

/// The response that the request asks for: its own words, with its `Authorization` written in the
/// wanted form.
fn said(seen: &Seen) -> String {
    let value = seen.values("authorization").concat();
    let each = |form: fn(u8) -> String| value.bytes().map(form).collect::<String>();
    String::from_utf8_lossy(&seen.body)
        .replace("{plain}", &value)
        .replace("{json}", &each(|byte| format!("\\u{byte:04X}")))
        .replace("{html}", &each(|byte| format!("&#x{byte:x};")))
        .replace("{percent}", &each(|byte| format!("%{byte:02x}")))
        .replace("{twice}", &each(|byte| format!("%26%23{byte}%3B")))
        .replace("{digits}", &each(|byte| format!("{byte:02X}")))
}

fn whole(out: &mut dyn Write, status: &str, fields: &[(&str, &str)], body: &[u8]) -> Result<()> {
    let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    out.write_all(&[head.as_bytes(), b"\r\n", body].concat())
}

/// Holds the connection open until the test process ends. The client gives up by itself.
fn wait_for_the_end() -> Result<()> {
    loop {
        std::thread::park();
    }
}

fn byte_by_byte(out: &mut dyn Write) -> Result<()> {
    loop {
        out.write_all(b"s")?;
        out.flush()?;
        std::thread::sleep(BETWEEN_BYTES);
    }
}

/// The line of a body's type.
fn typed(kind: &str) -> String {
    if kind.is_empty() { String::new() } else { format!("\r\nContent-Type: {kind}") }
}

fn endless(out: &mut dyn Write, kind: &str) -> Result<()> {
    out.write_all(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked{kind}\r\n\r\n").as_bytes())?;
    let block = [b'e'; 0x4000];
    loop {
        out.write_all(b"4000\r\n")?;
        out.write_all(&block)?;
        out.write_all(b"\r\n")?;
    }
}
