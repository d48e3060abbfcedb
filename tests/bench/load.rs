//! Load over HTTP: kept connections on one thread, each with one request at a time. The client
//! shares the machine with the server it measures, so it builds and reads as little as it can. It
//! still checks every answer.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use toolcell_tests::MODERN_REVISION;

use crate::frame::{self, Ask, Era};
use crate::samples::Samples;

/// Longest response head that is read, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Bytes to read at once.
const BLOCK_BYTES: usize = 16 * 1024;

/// Connections to one server.
pub struct Load {
    runtime: Runtime,
    connections: Vec<Connection>,
}

/// The result of a round.
pub struct Round {
    /// Answers per second.
    pub per_second: f64,
    /// The time of each answer, in µs.
    pub took: Samples,
}

struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    body: Vec<u8>,
    received: Vec<u8>,
}

impl Load {
    /// Opens that many connections to this port of loopback.
    ///
    /// # Errors
    /// A connection cannot be opened.
    pub fn open(port: u16, connections: usize) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let connections = runtime.block_on(async {
            let mut open = Vec::with_capacity(connections);
            for _ in 0..connections {
                open.push(Connection::open(address).await?);
            }
            anyhow::Ok(open)
        })?;
        Ok(Self { runtime, connections })
    }

    /// Makes requests on every connection, one after another, for this long.
    ///
    /// # Errors
    /// An answer is wrong, or a connection ends.
    pub fn round(&mut self, ask: Ask, time: Duration) -> anyhow::Result<Round> {
        let connections = std::mem::take(&mut self.connections);
        let begun = Instant::now();
        let mut first = 0_u64;
        let mut took = Samples::default();
        self.connections = self.runtime.block_on(LocalSet::new().run_until(async {
            let mut asking = Vec::new();
            for mut connection in connections {
                first += 1 << 32;
                let asks =
                    async move { connection.ask_until(ask, first, begun + time).await.map(|took| (connection, took)) };
                asking.push(tokio::task::spawn_local(asks));
            }
            let mut done = Vec::with_capacity(asking.len());
            for asks in asking {
                let (connection, own) = asks.await??;
                took.extend(&own);
                done.push(connection);
            }
            anyhow::Ok(done)
        }))?;
        let per_second = took.len() as f64 / begun.elapsed().as_secs_f64();
        Ok(Round { per_second, took })
    }

    /// Opens a stream of changes on every connection and waits until the server acknowledges each.
    ///
    /// # Errors
    /// A stream is not acknowledged.
    pub fn listen(&mut self) -> anyhow::Result<()> {
        let Self { runtime, connections } = self;
        runtime.block_on(async {
            for (id, connection) in (1_u64..).zip(connections) {
                connection.listen(id).await?;
            }
            Ok(())
        })
    }
}

impl Connection {
    async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, request: Vec::new(), body: Vec::new(), received: Vec::new() })
    }

    async fn ask_until(&mut self, ask: Ask, first: u64, end: Instant) -> anyhow::Result<Samples> {
        let mut took = Samples::default();
        let mut id = first;
        let mut list = Vec::new();
        loop {
            let begun = Instant::now();
            if begun >= end {
                return Ok(took);
            }
            if list.is_empty() {
                id += 1;
                self.prepare(ask, id)?;
            }
            self.stream.write_all(&self.request).await?;
            let body = self.head().await?;
            self.fill(body.end).await?;
            took.push_us(begun.elapsed());
            let body = self.received.get(body).context("no body")?;
            if list.is_empty() {
                ask.check(id, body)?;
            } else {
                ensure!(list == body, "another list than before");
            }
            // Equal requests have equal answers, so further answers are only compared with the
            // first.
            if matches!(ask, Ask::List) && list.is_empty() {
                list.extend_from_slice(body);
            }
            self.received.clear();
        }
    }

    fn prepare(&mut self, ask: Ask, id: u64) -> anyhow::Result<()> {
        self.body.clear();
        let (method, name) = match ask {
            Ask::Call(tool, Era::Modern) => {
                ask.write(id, &mut self.body)?;
                ("tools/call", tool.name())
            }
            Ask::List => {
                self.body.extend(frame::modern(id, "tools/list", json!({})));
                ("tools/list", "")
            }
            _ => anyhow::bail!("no request over HTTP"),
        };
        self.head_for(method, name)
    }

    /// Puts the head of a request in front of its body.
    fn head_for(&mut self, method: &str, name: &str) -> anyhow::Result<()> {
        use std::io::Write as _;
        self.request.clear();
        write!(
            self.request,
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: {MODERN_REVISION}\r\n\
             mcp-method: {method}\r\n"
        )?;
        if !name.is_empty() {
            write!(self.request, "mcp-name: {name}\r\n")?;
        }
        write!(self.request, "content-length: {}\r\n\r\n", self.body.len())?;
        self.request.extend_from_slice(&self.body);
        Ok(())
    }

    /// Reads the head of a response with status 200 and returns the range of its body.
    async fn head(&mut self) -> anyhow::Result<std::ops::Range<usize>> {
        let end = loop {
            if let Some(at) = self.received.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            ensure!(self.received.len() < HEAD_BYTES_MAX, "a head without end");
            self.fill(self.received.len() + 1).await?;
        };
        let head = std::str::from_utf8(self.received.get(..end).unwrap_or_default())?;
        ensure!(head.starts_with("HTTP/1.1 200 "), "not 200: {head}");
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
        });
        // A stream has no length.
        let length = length.transpose()?.unwrap_or_default();
        Ok(end..end + length)
    }

    /// Reads until that many bytes have arrived.
    async fn fill(&mut self, bytes: usize) -> anyhow::Result<()> {
        while self.received.len() < bytes {
            self.received.reserve(BLOCK_BYTES);
            ensure!(self.stream.read_buf(&mut self.received).await? > 0, "the connection ended");
        }
        Ok(())
    }

    async fn listen(&mut self, id: u64) -> anyhow::Result<()> {
        self.body.clear();
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        self.body.extend(frame::modern(id, "subscriptions/listen", wanted));
        self.head_for("subscriptions/listen", "")?;
        self.stream.write_all(&self.request).await?;
        self.head().await?;
        while !self.received.windows(12).any(|window| window == b"acknowledged") {
            self.fill(self.received.len() + 1).await?;
        }
        Ok(())
    }
}
