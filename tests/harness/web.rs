//! A host that serves over HTTP, and its client byte by byte: requests as a test wants them, right
//! or wrong, and the raw responses. Knows only as much of HTTP/1.1 as the host's responses use.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::frames::modern_meta;
use crate::patience;
use crate::{Folder, MODERN_REVISION, TestHost, fixture};

/// A running `toolcell serve --http`.
#[derive(Debug)]
pub struct WebHost {
    host: TestHost,
    address: SocketAddr,
}

/// One connection to the host: a socket, or a protocol over one.
#[derive(Debug)]
pub struct Wire<S = TcpStream>(BufReader<S>, String);

/// One request.
#[derive(Clone, Debug)]
pub struct Ask {
    method: &'static str,
    path: String,
    fields: Vec<(String, String)>,
    body: String,
}

/// One response, or the head of one whose body goes on.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl WebHost {
    /// Serves these fixtures on a free port of loopback.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn serving(fixtures: &[&str]) -> Self {
        Self::with_manifest(&fixture::manifest_of(fixtures))
    }

    /// Serves this manifest on a free port of loopback.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn with_manifest(manifest: &str) -> Self {
        Self::in_folder(Folder::with_manifest(manifest), &["--http", "127.0.0.1:0"])
    }

    /// Serves the manifest of this folder with these arguments.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn in_folder(folder: Folder, arguments: &[&str]) -> Self {
        Self::listening(TestHost::start_with(folder, arguments, &[]))
    }

    /// Serves the manifest of this folder with these arguments, and with these variables in the
    /// host's environment.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn in_folder_with(folder: Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::listening(TestHost::start_with(folder, arguments, variables))
    }

    /// Serves this manifest in its own place, on a free port of loopback.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn of_manifest(manifest: &Path) -> Self {
        Self::listening(TestHost::start_of(manifest, &["--http", "127.0.0.1:0"]))
    }

    fn listening(host: TestHost) -> Self {
        let address = host.reached_at();
        Self { host, address }
    }

    /// The process.
    #[must_use]
    pub fn process(&self) -> &TestHost {
        &self.host
    }

    /// The process by value, to see it end.
    #[must_use]
    pub fn into_process(self) -> TestHost {
        self.host
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// A new connection.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn connect(&self) -> Wire {
        Wire::to(self.address)
    }

    /// Makes this request on a connection of its own and returns the answer.
    ///
    /// # Panics
    /// If no answer comes in time.
    #[must_use]
    pub fn ask(&self, ask: &Ask) -> Reply {
        self.connect().ask(ask)
    }

    /// Opens a legacy session, makes it ready, and returns its id.
    ///
    /// # Panics
    /// If none is given.
    #[must_use]
    pub fn session(&self, revision: &str) -> String {
        let reply = self.ask(&Ask::initialize(revision));
        assert_eq!(reply.status(), 200, "{reply:?}");
        let id = reply.field("mcp-session-id").expect("a session's id").to_owned();
        let ready = Ask::post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(self.ask(&ready.of_session(&id)).status(), 202);
        id
    }

    /// Waits until a call of this tool has begun. The host must record in `audit.jsonl`.
    ///
    /// # Panics
    /// If none does in time.
    pub fn begins(&self, tool: &str) {
        let _ = self
            .host
            .recorded("a call that begins", |record| record["event"] == "call.started" && record["tool"] == tool);
        // Replicas ask for a place after that.
        let end = Instant::now() + patience();
        while self.host.folder().shared().is_some_and(|shared| !shared.a_call_has_a_place()) {
            assert!(Instant::now() < end, "the call has no place");
            std::thread::yield_now();
        }
    }

    /// The outcome of this tool's call, from its record.
    ///
    /// # Panics
    /// If the call does not end in time.
    #[must_use]
    pub fn outcome(&self, tool: &str) -> String {
        let ended = |record: &Value| record["event"] == "call.finished" && record["tool"] == tool;
        self.host.recorded("a call that ends", ended)["outcome"].as_str().unwrap_or_default().to_owned()
    }

    /// Asserts that the host still answers a call of `echo` in both eras.
    ///
    /// # Panics
    /// If it does not.
    pub fn still_works(&self) {
        let modern = self.ask(&Ask::call("echo", json!({"text": "still"})));
        assert_eq!(modern.frame()["result"]["content"][0]["text"], "still", "{modern:?}");
        let session = self.session("2025-11-25");
        let call = json!({"name": "echo", "arguments": {"text": "there"}});
        let legacy = self.ask(&Ask::request(7, "tools/call", call).of_session(&session));
        assert_eq!(legacy.frame()["result"]["content"][0]["text"], "there", "{legacy:?}");
    }
}

impl Ask {
    /// A POST of this message to the endpoint, in the form common to clients of both eras.
    #[must_use]
    pub fn post(message: &Value) -> Self {
        let fields = [("host", "localhost"), ("content-type", "application/json")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let ask = Self { method: "POST", path: "/mcp".to_owned(), fields, body: message.to_string() };
        ask.with("accept", "application/json, text/event-stream")
    }

    /// A legacy request, without its session.
    #[must_use]
    pub fn request(id: u64, method: &str, params: Value) -> Self {
        Self::post(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    /// `initialize` for this revision.
    #[must_use]
    pub fn initialize(revision: &str) -> Self {
        let client = json!({"name": "toolcell-tests", "version": "1"});
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
        Self::request(0, "initialize", params)
    }

    /// A modern request with its headers.
    #[must_use]
    pub fn modern(id: u64, method: &str, mut params: Value) -> Self {
        let name = params["name"].as_str().map(str::to_owned);
        params["_meta"] = modern_meta();
        let ask = Self::request(id, method, params).with("mcp-protocol-version", MODERN_REVISION);
        let ask = ask.with("mcp-method", method);
        match name {
            Some(name) => ask.with("mcp-name", &name),
            None => ask,
        }
    }

    /// A modern call of this tool.
    #[must_use]
    pub fn call(tool: &str, arguments: Value) -> Self {
        Self::modern(1, "tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// A modern subscription to changes of the list.
    #[must_use]
    pub fn listen(id: u64) -> Self {
        Self::modern(id, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}))
    }

    /// A request without a body, to this path.
    #[must_use]
    pub fn bare(method: &'static str, path: &str) -> Self {
        let ask = Self::post(&Value::Null).without("content-type");
        Self { method, path: path.to_owned(), body: String::new(), ..ask }
    }

    /// The request with this target.
    #[must_use]
    pub fn to(self, target: &str) -> Self {
        Self { path: target.to_owned(), ..self }
    }

    /// The request with this header, which replaces any of the same name.
    #[must_use]
    pub fn with(self, name: &str, value: &str) -> Self {
        let mut ask = self.without(name);
        ask.fields.push((name.to_owned(), value.to_owned()));
        ask
    }

    /// The request with this header, in addition to any of the same name.
    #[must_use]
    pub fn and(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The request without this header.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// The request in this session.
    #[must_use]
    pub fn of_session(self, id: &str) -> Self {
        self.with("mcp-session-id", id)
    }

    /// The request with this body.
    #[must_use]
    pub fn saying(self, body: &str) -> Self {
        Self { body: body.to_owned(), ..self }
    }

    /// The bytes on the wire.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.framed(&format!("content-length: {}\r\n\r\n{}", self.body.len(), self.body))
    }

    /// The bytes on the wire, with `rest` in place of the length field and the body.
    #[must_use]
    pub fn framed(&self, rest: &str) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.fields {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        (text + rest).into_bytes()
    }

    /// Its body.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Its head in the form of HTTP/2, with the pseudo-headers first.
    #[must_use]
    pub fn fields(&self, scheme: &str) -> Vec<(&str, String)> {
        let mut fields =
            vec![(":method", self.method.to_owned()), (":scheme", scheme.to_owned()), (":path", self.path.clone())];
        for (name, value) in &self.fields {
            fields.push((if name == "host" { ":authority" } else { name }, value.clone()));
        }
        // Pseudo-headers come before all others.
        fields.sort_by_key(|(name, _)| !name.starts_with(':'));
        fields
    }
}

impl Wire {
    /// Connects to this address.
    ///
    /// # Panics
    /// If there is no connection.
    #[must_use]
    pub fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(patience())).unwrap();
        stream.set_write_timeout(Some(patience())).unwrap();
        Self::over(stream)
    }
}

impl<S: Read + Write> Wire<S> {
    /// Wraps a connection that exists already.
    #[must_use]
    pub fn over(stream: S) -> Self {
        Self(BufReader::new(stream), String::new())
    }

    /// Sends these bytes.
    ///
    /// # Panics
    /// If the other side is gone.
    pub fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// Sends these bytes. False if the other side is gone.
    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.0.get_mut().write_all(bytes).is_ok()
    }

    /// Sends a request and reads its whole response.
    ///
    /// # Panics
    /// If none comes in time.
    pub fn ask(&mut self, ask: &Ask) -> Reply {
        self.send(&ask.bytes());
        self.reply()
    }

    /// The next response, whole.
    ///
    /// # Panics
    /// If none comes in time.
    pub fn reply(&mut self) -> Reply {
        let mut reply = self.head();
        if reply.field("transfer-encoding") == Some("chunked") {
            let end = Instant::now() + 2 * patience();
            while let Some(chunk) = self.chunk() {
                assert!(Instant::now() < end, "no end");
                reply.body.extend(chunk);
            }
        } else if let Some(length) = reply.field("content-length") {
            reply.body = vec![0; length.parse().unwrap()];
            self.0.read_exact(&mut reply.body).unwrap();
        }
        reply
    }

    /// The head of the next response, whose body goes on.
    ///
    /// # Panics
    /// If none comes in time.
    pub fn head(&mut self) -> Reply {
        let mut lines = std::iter::from_fn(|| Some(self.line()));
        let status = lines.next().unwrap();
        let status = status.split(' ').nth(1).unwrap_or_else(|| panic!("no status: {status:?}"));
        let fields = lines.take_while(|line| !line.is_empty());
        let fields = fields.map(|line| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        });
        Reply { status: status.parse().unwrap(), fields: fields.collect(), body: Vec::new() }
    }

    /// The frame in the next event of a stream. `None` at the end of the stream.
    ///
    /// # Panics
    /// If none comes in time.
    pub fn event(&mut self) -> Option<Value> {
        // Each comment that keeps the stream open begins the time of the connection anew.
        let end = Instant::now() + patience();
        loop {
            // The host writes each event and each comment in one chunk. A proxy may join chunks
            // that arrived together.
            while let Some((event, rest)) = self.1.split_once("\n\n") {
                let data = event.strip_prefix("data: ").map(str::to_owned);
                let rest = rest.to_owned();
                assert!(data.is_some() || event == ":" || event.starts_with("id: "), "{event:?}");
                self.1 = rest;
                if let Some(data) = data {
                    return Some(serde_json::from_str(&data).unwrap());
                }
            }
            assert!(Instant::now() < end, "no event");
            let chunk = self.chunk()?;
            self.1.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The id of the next event of a stream, which has one and no data. `None` for any other.
    ///
    /// # Panics
    /// If none comes in time.
    pub fn event_id(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.1.split_once("\n\n") {
                let id = event.strip_prefix("id: ")?.strip_suffix("\ndata: ")?.to_owned();
                let rest = rest.to_owned();
                self.1 = rest;
                return Some(id);
            }
            let chunk = self.chunk()?;
            self.1.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next bytes of the other side as they come. Empty once it closed the connection.
    ///
    /// # Panics
    /// If none come in time.
    pub fn next_bytes(&mut self) -> Vec<u8> {
        let bytes = self.0.fill_buf().unwrap().to_vec();
        self.0.consume(bytes.len());
        bytes
    }

    /// Asserts that the other side closes the connection and sends nothing before.
    ///
    /// # Panics
    /// If it does not in time.
    pub fn is_closed(&mut self) {
        assert!(self.is_at_end(), "{:?}", String::from_utf8_lossy(self.0.buffer()));
    }

    /// Waits until the other side sends bytes or closes the connection. True if it closed it.
    ///
    /// # Panics
    /// If it does neither in time.
    pub fn is_at_end(&mut self) -> bool {
        match self.0.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            // If the host closed with bytes unread, its end arrives as a reset.
            Err(error) => {
                assert!(!matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "it is open");
                true
            }
        }
    }

    /// The connection itself.
    pub fn stream(&mut self) -> &mut S {
        self.0.get_mut()
    }

    fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = self.line();
        let mut data = vec![0; usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("no chunk: {size:?}"))];
        self.0.read_exact(&mut data).unwrap();
        self.line();
        (!data.is_empty()).then_some(data)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        assert!(line.ends_with("\r\n"), "cut off: {line:?}");
        line.truncate(line.len() - 2);
        line
    }
}

impl Reply {
    /// Its status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The value of a header.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Its body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The only frame in it, as JSON or as the last event.
    ///
    /// # Panics
    /// If it has none.
    #[must_use]
    pub fn frame(&self) -> Value {
        self.frames().pop().unwrap_or_else(|| panic!("no frame in {self:?}"))
    }

    /// The frames in it.
    ///
    /// # Panics
    /// If it holds something else.
    #[must_use]
    pub fn frames(&self) -> Vec<Value> {
        let text = std::str::from_utf8(&self.body).unwrap();
        match self.field("content-type") {
            Some("text/event-stream") => {
                let events = text.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
                events.map(|data| serde_json::from_str(data).unwrap()).collect()
            }
            _ => vec![serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))],
        }
    }

    /// Status and code of an error, by which tests tell most refusals.
    ///
    /// # Panics
    /// If it is not an error.
    #[must_use]
    pub fn error(&self) -> (u16, i64) {
        let frame = self.frame();
        (self.status, frame["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {self:?}")))
    }
}
