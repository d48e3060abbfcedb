//! A conversation over stdio that is carried on over HTTP, as programs do that connect a client
//! without HTTP: each line is a request of its own, and each frame that comes back a line.

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead as _, BufReader, PipeReader};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::process::ChildStdin;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use crate::frames::Lines;

/// The member of a modern request's meta that names its revision.
const REVISION: &str = "io.modelcontextprotocol/protocolVersion";

/// Both ends of the conversation, which a host gets instead of its own.
#[derive(Debug)]
pub(crate) struct Bridge {
    ends: Option<(ChildStdin, Lines, JoinHandle<()>)>,
}

impl Bridge {
    /// A bridge to this address, for a client with this token.
    pub(crate) fn to(address: SocketAddr, token: Option<String>) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let client = Client { address, token, out: sender, session: None, running: HashMap::new() };
        let thread = std::thread::spawn(move || carry(client, reader));
        Self { ends: Some((OwnedFd::from(writer).into(), Lines::from_channel(receiver), thread)) }
    }

    /// The ends: where lines go in, where they come out, and the thread between.
    pub(crate) fn ends(&mut self) -> Option<(ChildStdin, Lines, JoinHandle<()>)> {
        self.ends.take()
    }
}

/// Carries lines until there are no more, and then what is still on its way.
fn carry(client: Client, lines: PipeReader) {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(lines).split(b'\n').map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async move {
        let mut client = client;
        let mut calls = JoinSet::new();
        let mut stream = None;
        while let Some(line) = receiver.recv().await {
            client.say(&line, &mut calls, &mut stream).await;
        }
        while calls.join_next().await.is_some() {}
        stream.inspect(AbortHandle::abort);
    });
    reader.join().unwrap();
}

/// One client: its way to the server, and its session in the legacy era.
struct Client {
    address: SocketAddr,
    token: Option<String>,
    out: Sender<Vec<u8>>,
    session: Option<Session>,
    /// The calls that run, by the text of their ids.
    running: HashMap<String, AbortHandle>,
}

#[derive(Clone)]
struct Session {
    id: String,
    revision: String,
}

impl Client {
    /// Sends one line.
    async fn say(&mut self, line: &[u8], calls: &mut JoinSet<()>, stream: &mut Option<AbortHandle>) {
        let frame: Value = serde_json::from_slice(line).unwrap_or(Value::Null);
        let method = frame["method"].as_str().unwrap_or_default();
        let id = frame.get("id").filter(|_| !method.is_empty()).cloned();
        let request = self.post(line, &frame);
        match (method, id) {
            // In the modern era, a client that closes its connection has cancelled.
            ("notifications/cancelled", None) if self.session.is_none() => {
                let call = self.running.remove(&frame["params"]["requestId"].to_string());
                call.inspect(AbortHandle::abort);
            }
            ("initialize", Some(id)) => {
                let told = exchange(self.address, request, self.out.clone(), id, None).await;
                let revision = || frame["params"]["protocolVersion"].as_str().unwrap_or_default().to_owned();
                self.session = told.map(|id| Session { id, revision: revision() });
            }
            (_, Some(id)) => {
                let exchange = exchange(self.address, request, self.out.clone(), id.clone(), None);
                let call = calls.spawn(async move { drop(exchange.await) });
                self.running.insert(id.to_string(), call);
            }
            // What is not answered is taken before the next line is sent.
            (_, None) => drop(exchange(self.address, request, self.out.clone(), Value::Null, None).await),
        }
        if method == "notifications/initialized" && self.session.is_some() {
            let get = self.head("GET").header(ACCEPT, "text/event-stream").body(Full::default()).unwrap();
            let (sender, open) = oneshot::channel();
            let exchange = exchange(self.address, get, self.out.clone(), Value::Null, Some(sender));
            *stream = Some(tokio::spawn(async move { drop(exchange.await) }).abort_handle());
            let _ = open.await;
        }
    }

    fn head(&self, method: &str) -> hyper::http::request::Builder {
        let mut head = Request::builder().method(method).uri("/mcp").header(HOST, "localhost");
        if let Some(token) = &self.token {
            head = head.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(Session { id, revision }) = &self.session {
            head = head.header("mcp-session-id", id).header("mcp-protocol-version", revision);
        }
        head
    }

    /// A POST of this line, with the headers that repeat what is in it.
    fn post(&self, line: &[u8], frame: &Value) -> Request<Full<Bytes>> {
        let mut head = self.head("POST").header(CONTENT_TYPE, "application/json");
        head = head.header(ACCEPT, "application/json, text/event-stream");
        let params = &frame["params"];
        if let Some(revision) = params["_meta"][REVISION].as_str() {
            head = head.header("mcp-protocol-version", revision);
            head = head.header("mcp-method", frame["method"].as_str().unwrap_or_default());
            if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
                head = head.header("mcp-name", encoded(name));
            }
        }
        head.body(Full::new(Bytes::copy_from_slice(line))).unwrap()
    }
}

/// A name as a header's value has it.
fn encoded(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_graphic()) && !name.starts_with("=?");
    if is_plain { name.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(name)) }
}

/// Makes a request on a connection of its own, and passes on each frame of its answer. Returns the
/// session that the answer begins. A request that fails is answered with an error of this id.
async fn exchange(
    address: SocketAddr,
    request: Request<Full<Bytes>>,
    out: Sender<Vec<u8>>,
    id: Value,
    opened: Option<oneshot::Sender<()>>,
) -> Option<String> {
    let tell = |frame: &str| drop(out.send(frame.as_bytes().to_vec()));
    let told = async {
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(TcpStream::connect(address).await?)).await?;
        let asked = async {
            let response = sender.send_request(request).await?;
            drop((sender, opened));
            let session = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
            let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
            let status = response.status();
            if is_stream {
                events(response.into_body(), tell).await?;
            } else {
                let body = response.into_body().collect().await?.to_bytes();
                match std::str::from_utf8(&body) {
                    Ok("") => (),
                    Ok(body) if body.starts_with(['{', '[']) => tell(body),
                    _ => return Err(format!("HTTP status {status}").into()),
                }
            }
            Ok(session)
        };
        tokio::join!(asked, connection).0
    };
    let told: Result<Option<String>, Box<dyn Error + Send + Sync>> = told.await;
    told.unwrap_or_else(|error| {
        let error = json!({"code": -32_000, "message": format!("no answer came over HTTP: {error}")});
        if !id.is_null() {
            tell(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
        }
        None
    })
}

/// Passes on each event of a stream until it ends.
async fn events(mut body: Incoming, tell: impl Fn(&str)) -> Result<(), hyper::Error> {
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        text.extend_from_slice(frame?.data_ref().map_or(&[][..], |data| data));
        while let Some(end) = text.windows(2).position(|two| two == b"\n\n") {
            let event: Vec<u8> = text.drain(..end + 2).collect();
            if let Some(data) = String::from_utf8_lossy(&event).trim_end().strip_prefix("data: ") {
                tell(data);
            }
        }
    }
    Ok(())
}
