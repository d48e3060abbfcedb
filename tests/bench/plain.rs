//! A plain HTTP client, and the server that it and guests send requests to: the cost of a request
//! without a host between.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use crate::frame::{FETCHED_BYTES, FETCHED_PATH};
use crate::link::{Link, Wire};
use crate::native::Native;
use crate::subject::Subject;

/// A server on loopback, in a process of its own.
pub struct Server {
    // The server ends when its input does.
    _link: Link,
    port: u16,
}

impl Server {
    /// Starts one.
    ///
    /// # Errors
    /// It does not start.
    pub fn start() -> anyhow::Result<Self> {
        let mut link = Link::start(&Subject::native(Native::Server)?, Wire::Pipes)?;
        let port = std::str::from_utf8(link.receive()?)?.trim_end().parse()?;
        Ok(Self { _link: link, port })
    }

    /// The port it listens on.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

/// hyper, on a runtime with one thread, which waits for nothing else.
pub struct Plain {
    runtime: Runtime,
    address: SocketAddr,
    kept: Option<SendRequest<Empty<Bytes>>>,
}

impl Plain {
    /// A client of this server.
    ///
    /// # Errors
    /// There is no runtime.
    pub fn of(server: &Server) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, address: (Ipv4Addr::LOCALHOST, server.port()).into(), kept: None })
    }

    /// The time of a request over a connection made for it.
    ///
    /// # Errors
    /// The answer is wrong, or none comes.
    pub fn ask_on_new(&self) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        self.runtime.block_on(async { get(&mut connect(self.address).await?, self.address).await })?;
        Ok(begun.elapsed())
    }

    /// The time of a request over a connection that carried others.
    ///
    /// # Errors
    /// The answer is wrong, or none comes.
    pub fn ask_on_kept(&mut self) -> anyhow::Result<Duration> {
        let Self { runtime, address, kept } = self;
        if kept.is_none() {
            *kept = Some(runtime.block_on(connect(*address))?);
        }
        let sender = kept.as_mut().context("no connection")?;
        let begun = Instant::now();
        runtime.block_on(get(sender, *address))?;
        Ok(begun.elapsed())
    }
}

async fn connect(address: SocketAddr) -> anyhow::Result<SendRequest<Empty<Bytes>>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // The connection's requests show how it ended.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

async fn get(sender: &mut SendRequest<Empty<Bytes>>, address: SocketAddr) -> anyhow::Result<()> {
    sender.ready().await?;
    let request = Request::get(FETCHED_PATH).header(HOST, address.to_string()).body(Empty::new())?;
    let response = sender.send_request(request).await?;
    ensure!(response.status().is_success(), "the server answered {}", response.status());
    let bytes = response.into_body().collect().await?.to_bytes().len();
    ensure!(bytes == FETCHED_BYTES, "the server answered {bytes} bytes");
    Ok(())
}
