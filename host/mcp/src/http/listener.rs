//! Accepts connections and drives each of them: plain or TLS, HTTP/1.1 or HTTP/2.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::Version;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::{Builder, Connection};
#[cfg(target_os = "linux")]
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolcell_framing::CheckedStream;

use super::limits::{HttpLimits, STREAMS_PER_CONNECTION_MAX};
use super::line_endings::RequestLines;
use super::response::ResponseBody;
use super::serve::ServeStages;
use super::service::{Arrival, Service};
use super::tls::Certificate;
use super::watch::{ConnectionWatch, Connections, HttpConnection, WatchedLines, drive};
use crate::host::Host;

/// Pause after a failed accept, for example without free descriptors.
const ACCEPT_RESTS: Duration = Duration::from_millis(50);

/// Most header fields of one request. Clients and their proxies send some twenty.
const FIELDS_MAX: usize = 100;

/// The least head buffer that hyper accepts, in bytes.
const HEAD_BYTES_MIN: usize = 8 * 1024;

/// Bytes that one stream, and one connection, may send before they are read. A common body fits in
/// one piece.
const WINDOW_BYTES: u32 = 256 * 1024;

/// Bytes of a response that wait to be sent on one stream.
const SEND_BYTES: usize = 64 * 1024;

/// Bytes of responses that the kernel buffers for one connection. By default it buffers megabytes,
/// which count as this process's memory. 128 KiB: more than is sent between two polls of a
/// connection.
#[cfg(target_os = "linux")]
const KERNEL_BYTES: u32 = 128 * 1024;

/// Interval of pings on a silent HTTP/2 connection, and the time for each answer.
const PING_EVERY: Duration = Duration::from_secs(30);

/// The response to a client when the server is full.
const NO_ROOM: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// A socket that clients connect to.
#[derive(Debug)]
pub struct HttpListener {
    socket: Socket,
    certificate: Option<Certificate>,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// The addresses of a connection over TCP.
#[derive(Clone, Copy)]
struct TcpAddresses {
    local: IpAddr,
    peer: IpAddr,
}

/// One end of a connection.
trait HttpEnd: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> HttpEnd for T {}

impl HttpListener {
    /// A bound TCP socket, with TLS if there is a certificate. Must be called within a runtime.
    ///
    /// # Errors
    /// The socket cannot be used without blocking.
    pub fn tcp(socket: std::net::TcpListener, certificate: Option<Certificate>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket: Socket::Tcp(TcpListener::from_std(socket)?), certificate })
    }

    /// A bound Unix socket. Its file's permissions decide who may connect.
    ///
    /// # Errors
    /// The socket cannot be used without blocking.
    pub fn unix(socket: std::os::unix::net::UnixListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket: Socket::Unix(UnixListener::from_std(socket)?), certificate: None })
    }

    async fn accept(&self) -> io::Result<(Box<dyn HttpEnd>, Option<TcpAddresses>)> {
        match &self.socket {
            Socket::Tcp(socket) => {
                let (stream, peer) = socket.accept().await?;
                // Otherwise, data after a small write waits for the other side's acknowledgement.
                stream.set_nodelay(true)?;
                keep_little(&stream);
                let ends = TcpAddresses { local: stream.local_addr()?.ip(), peer: peer.ip() };
                Ok((Box::new(stream), Some(ends)))
            }
            Socket::Unix(socket) => {
                let (stream, _) = socket.accept().await?;
                Ok((Box::new(stream), None))
            }
        }
    }
}

/// Bounds the kernel's buffers of the connection. Other systems have their own bounds.
fn keep_little(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    {
        // Kernels before 3.12 refuse this, and buffer more.
        let _ = SockRef::from(stream).set_tcp_notsent_lowat(KERNEL_BYTES);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

/// The HTTP settings.
pub(super) fn protocol(limits: &HttpLimits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let mut http1 = builder.http1();
    // `ConnectionWatch` has the deadlines for both versions.
    http1
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_headers(FIELDS_MAX)
        .max_buf_size(limits.head_bytes_max.max(HEAD_BYTES_MIN));
    let mut http2 = builder.http2();
    http2
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX))
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_send_buf_size(SEND_BYTES)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY);
    builder
}

/// Accepts connections until shutdown; returns those that are still open.
pub(super) async fn take<H: Host>(
    listener: HttpListener,
    service: Arc<Service<H>>,
    connections: Arc<Connections>,
    ends: ServeStages,
) -> JoinSet<()> {
    let protocol = Arc::new(protocol(&service.options.limits));
    let mut open = JoinSet::new();
    let mut over = std::pin::pin!(ends.clone().over());
    loop {
        tokio::select! {
            () = &mut over => return open,
            Some(_) = open.join_next(), if !open.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, addresses)) => {
                    let incomer = AcceptedConnection { stream, addresses, certificate: listener.certificate.clone() };
                    if connections.enter() {
                        let watch = ConnectionWatch::new(&connections);
                        let service = Arc::clone(&service);
                        let protocol = Arc::clone(&protocol);
                        open.spawn(incomer.converse(watch, service, protocol, ends.clone()));
                    } else {
                        service.options.traffic.count_turned_away();
                        incomer.turn_away().await;
                    }
                }
                Err(_) => tokio::time::sleep(ACCEPT_RESTS).await,
            },
        }
    }
}

/// An accepted connection.
struct AcceptedConnection {
    stream: Box<dyn HttpEnd>,
    addresses: Option<TcpAddresses>,
    certificate: Option<Certificate>,
}

/// Counts a connection as closed, however it ends.
struct ConnectionCount(Arc<ConnectionWatch>);

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.closed();
    }
}

impl AcceptedConnection {
    /// Answers that the server is full, unless that needs a TLS handshake first.
    async fn turn_away(mut self) {
        if self.certificate.is_none() {
            // If this does not fit into the socket's empty buffer, the client gets no answer.
            let _ = timeout(ACCEPT_RESTS, self.stream.write_all(NO_ROOM)).await;
        }
    }

    async fn converse<H: Host>(
        self,
        watch: Arc<ConnectionWatch>,
        service: Arc<Service<H>>,
        protocol: Arc<Builder<TokioExecutor>>,
        ends: ServeStages,
    ) {
        let _counted = ConnectionCount(Arc::clone(&watch));
        let Self { stream, addresses, certificate } = self;
        let stream: Box<dyn HttpEnd> = match certificate {
            None => stream,
            Some(certificate) => {
                let shaking = timeout(service.options.limits.head_time, certificate.acceptor().accept(stream));
                // A connection that must make room is closed, whatever it is doing.
                tokio::select! {
                    shaken = shaking => match shaken {
                        Ok(Ok(stream)) => Box::new(stream),
                        // A failed handshake needs no answer.
                        Ok(Err(_)) | Err(_) => return,
                    },
                    () = watch.asked_to_leave() => return,
                }
            }
        };
        let lines = WatchedLines { lines: RequestLines::new(), watch: Arc::clone(&watch) };
        let io = TokioIo::new(CheckedStream::new(stream, lines));
        let asked = {
            let watch = Arc::clone(&watch);
            let service = Arc::clone(&service);
            service_fn(move |request: http::Request<Incoming>| {
                let multiplexed = request.version() == Version::HTTP_2;
                let mut open = watch.begin(multiplexed);
                let local = addresses.map(|ends| ends.local);
                let peer = addresses.map(|ends| ends.peer);
                let came = Arrival { local, peer, connection: (!multiplexed).then(|| Arc::as_ptr(&watch).addr()) };
                let service = Arc::clone(&service);
                async move {
                    let response = service.respond(request, came, &mut open).await;
                    let time = service.options.limits.write_time;
                    Ok::<_, Infallible>(response.map(|content| ResponseBody::new(content, open, time)))
                }
            })
        };
        let served = protocol.serve_connection(io, asked).into_owned();
        drive(served, &watch, &service.options.limits, ends.over()).await;
    }
}

impl<I, S, B> HttpConnection for Connection<'static, I, S, TokioExecutor>
where
    S: hyper::service::Service<http::Request<Incoming>, Response = http::Response<B>>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: Send + 'static,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
    Self: Future,
{
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}
