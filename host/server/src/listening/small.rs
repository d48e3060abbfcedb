//! Small listeners of the host: the pages of metrics and the console, the browser's return from a
//! login, the control socket. They have one accept loop.
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
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
use super::places::{ConnectionPlace, ConnectionPlaces};
use crate::error::StartError;

/// Pause after accepting failed, for example without free descriptors.
const ACCEPT_RESTS: Duration = Duration::from_millis(100);

/// Connections that are begun at a time, each in a task of its own. That takes microseconds.
const BEGINNING_MAX: usize = 64;

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

/// A connection to a page, and its place.
pub struct Visit {
    pub stream: TcpStream,
    /// The address that it comes from: a visitor's, or a proxy's.
    pub peer: IpAddr,
    pub place: Arc<ConnectionPlace>,
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

/// Accepts every connection, each in its place: one that fills the last ends another. Returns the
/// first result. Open connections then continue.
pub async fn serve_all<T, F>(listener: TcpListener, places: &Arc<ConnectionPlaces>, converse: impl Fn(Visit) -> F) -> T
where
    F: Future<Output = Option<T>> + Send + 'static,
    T: Send + 'static,
{
    let (given, mut gifts) = mpsc::channel(1);
    let begin = |(stream, peer): (TcpStream, SocketAddr)| {
        places.begin(peer.ip(), |place| {
            let conversing = converse(Visit { stream, peer: peer.ip(), place });
            let given = given.clone();
            let conversing = async move {
                if let Some(gift) = conversing.await {
                    let _ = given.try_send(gift);
                }
            };
            tokio::spawn(conversing).abort_handle()
        });
        // Its own task goes on with it.
        std::future::ready(None)
    };
    tokio::select! {
        Some(gift) = gifts.recv() => gift,
        never = serve(listener, BEGINNING_MAX, begin) => never,
    }
}

/// Accepts connections, at most this many at a time; more wait. Returns the first result. Open
/// connections then continue. For sockets that strangers cannot reach: anyone who holds all of them
/// keeps others out.
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::listening::places::PlaceBounds;

    const HEAD: HeadBounds = HeadBounds { fields_max: 8, bytes_max: 8 * 1_024, time: Duration::from_secs(600) };

    #[tokio::test]
    async fn silent_connections_keep_nobody_out_and_end_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (begun, mut begins) = mpsc::channel::<()>(1);
        let gate = Arc::new(tokio::sync::Notify::new());
        let opened = Arc::clone(&gate);
        let serving = tokio::spawn(async move {
            let places = ConnectionPlaces::new(PlaceBounds { strangers: 4, kept: 2 });
            let converse = |visit: Visit| {
                let Visit { stream, place, .. } = visit;
                let begun = begun.clone();
                let opened = Arc::clone(&opened);
                async move {
                    let respond = |request: Request<Incoming>| {
                        place.keep();
                        let begun = begun.clone();
                        let opened = Arc::clone(&opened);
                        async move {
                            if request.uri().path() == "/slow" {
                                let _ = begun.send(()).await;
                                opened.notified().await;
                            }
                            Response::new("served".to_owned())
                        }
                    };
                    answer_one(stream, HEAD, respond).await;
                    None::<()>
                }
            };
            serve_all(listener, &places, converse).await;
        });
        let ask = |path: &'static str| async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let slow = tokio::spawn(ask("/slow"));
        begins.recv().await.unwrap();
        let mut silent = Vec::new();
        for _ in 0..40 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        assert!(ask("/").await.ends_with("served"));
        gate.notify_one();
        assert!(slow.await.unwrap().ends_with("served"));
        serving.abort();
    }
}
