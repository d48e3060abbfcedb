//! Small listeners of the host: the pages of metrics and the console, the browser's return from a
//! login, the control socket. They have one accept loop.
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use toolcell_mcp::http::OriginPolicy;

use super::listener_process::cannot_listen;
use crate::error::StartError;

/// Pause after accepting failed, for example without free descriptors.
const ACCEPT_RESTS: Duration = Duration::from_millis(100);

/// A bound socket of a page.
pub struct BoundSocket {
    socket: std::net::TcpListener,
    pub address: SocketAddr,
    /// The host names that it answers to.
    pub doors: OriginPolicy,
}

/// A socket that clients connect to.
pub trait Accept {
    /// A connection.
    type Stream;

    /// Waits for the next one. Nothing is lost if this is dropped while it waits.
    fn accept_one(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Accept for TcpListener {
    type Stream = (TcpStream, SocketAddr);

    async fn accept_one(&self) -> io::Result<Self::Stream> {
        self.accept().await
    }
}

impl Accept for UnixListener {
    type Stream = UnixStream;

    async fn accept_one(&self) -> io::Result<Self::Stream> {
        Ok(self.accept().await?.0)
    }
}

/// Bounds of a request's head.
#[derive(Clone, Copy)]
pub struct HeadBounds {
    pub fields_max: usize,
    pub bytes_max: usize,
    pub time: Duration,
}

impl BoundSocket {
    /// Binds the address. Errors use this name for the page.
    pub fn bind(page: &str, address: SocketAddr, hosts: &[String]) -> Result<Self, StartError> {
        let wrong = |error: io::Error| {
            let reason = cannot_listen(address, &error);
            StartError::refused(format!("{page} cannot be served at {address}: {reason}"))
        };
        let doors = hosts.iter().try_fold(OriginPolicy::default(), |doors, host| doors.host(host));
        let doors = doors.map_err(|error| StartError::refused(error.to_string()))?;
        let socket = std::net::TcpListener::bind(address).map_err(wrong)?;
        socket.set_nonblocking(true).map_err(wrong)?;
        let address = socket.local_addr().map_err(wrong)?;
        Ok(Self { socket, address, doors })
    }

    /// The listener. Must be called within a runtime.
    pub fn listener(self) -> io::Result<TcpListener> {
        TcpListener::from_std(self.socket)
    }
}

/// Accepts connections, at most this many at a time; more wait. Returns the first result. Open
/// connections then continue.
pub async fn serve<L, T, F>(listener: L, connections_max: usize, converse: impl Fn(L::Stream) -> F) -> T
where
    L: Accept,
    F: Future<Output = Option<T>> + Send + 'static,
    T: Send + 'static,
{
    let places = Arc::new(Semaphore::new(connections_max));
    let (given, mut gifts) = mpsc::channel(1);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept_one().await)
        };
        tokio::select! {
            Some(gift) = gifts.recv() => return gift,
            (place, accepted) = next => match accepted {
                Ok(stream) => {
                    let conversing = converse(stream);
                    let given = given.clone();
                    drop(tokio::spawn(async move {
                        if let Some(gift) = conversing.await {
                            let _ = given.try_send(gift);
                        }
                        drop(place);
                    }));
                    // A request that has already arrived is read before a later connection can
                    // displace this one.
                    tokio::task::yield_now().await;
                }
                Err(_) => tokio::time::sleep(ACCEPT_RESTS).await,
            },
        }
    }
}

/// Answers one request of a connection, over HTTP/1.1.
pub async fn answer_one<B, F>(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    bounds: HeadBounds,
    respond: impl Fn(Request<Incoming>) -> F,
) where
    B: Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>> + 'static,
    F: Future<Output = Response<B>>,
{
    let respond = service_fn(|request| {
        let response = respond(request);
        async { Ok::<_, Infallible>(response.await) }
    });
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.time)
        .max_headers(bounds.fields_max)
        .max_buf_size(bounds.bytes_max)
        .keep_alive(false);
    // A client may disconnect; that is not an error.
    let _ = protocol.serve_connection(TokioIo::new(stream), respond).await;
}
