//! The console's socket: connections, one request each, with their bounds and times. Must not
//! hold: answers.
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use toolcell_mcp::http::{Certificate, OriginPolicy};
use toolcell_policy::{ConsolePolicy, ListenAddress};

use super::places::{Place, Places};
use super::service::Console;
use crate::error::StartError;
use crate::files::FilePolling;
use crate::http::listener_process::cannot_listen;
use crate::http::open_certificate;

/// Most header fields of a request. A browser sends about twenty.
const FIELDS_MAX: usize = 64;

/// Most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 * 1_024;

/// Time to receive the head, and before it to shake hands.
const HEAD_TIME: Duration = Duration::from_secs(5);

/// Time of a connection, which has one request, until its answer is written. Answers that take
/// longer say so.
const CONNECTION_TIME: Duration = Duration::from_secs(15);

/// Pause after accepting failed, for example without free descriptors.
const ACCEPT_RESTS: Duration = Duration::from_millis(100);

/// The address where none is named: any free port of this machine.
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Address of the console from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsoleAddress {
    /// The manifest's, or a free port of the loopback.
    Manifest,
    /// This one.
    At(SocketAddr),
}

impl FromStr for ConsoleAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::Manifest);
        }
        match ListenAddress::parse(text) {
            Some(ListenAddress::Tcp(address)) => Ok(Self::At(address)),
            _ => Err("write 127.0.0.1:9465 or [::1]:9465".to_owned()),
        }
    }
}

/// A bound socket for the console.
pub struct BoundConsole {
    socket: std::net::TcpListener,
    address: SocketAddr,
    doors: OriginPolicy,
    certificate: Option<Certificate>,
    polling: FilePolling,
    /// The first name of the manifest.
    host: Option<String>,
}

/// The served console; it ends when dropped.
pub struct ServedConsole {
    accepting: JoinHandle<()>,
    _polling: FilePolling,
}

/// The two addresses of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// The console's.
    pub local: IpAddr,
    /// The browser's, or that of a proxy.
    pub peer: IpAddr,
}

/// The time of a connection, which an answer may make longer, and its place.
#[derive(Clone)]
pub struct ConnectionTime(watch::Sender<Instant>, Arc<Place>);

impl ConnectionTime {
    /// The connection shows a session, and does not give way to strangers any more.
    pub fn is_of_session(&self) {
        self.1.is_of_session();
    }

    /// The connection may take so much longer from now on.
    pub fn extend(&self, time: Duration) {
        let _ = self.0.send(Instant::now() + time);
    }
}

impl Drop for ServedConsole {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl BoundConsole {
    /// Binds the address of the command line, or else of the manifest; `None` if neither has one.
    /// Relative paths start from `folder`.
    pub fn open(
        arg: Option<&ConsoleAddress>,
        policy: Option<&ConsolePolicy>,
        (folder, runtime): (&Path, &Handle),
    ) -> Result<Option<Self>, StartError> {
        let named = policy.and_then(ConsolePolicy::listen);
        let address = match arg {
            Some(ConsoleAddress::At(address)) => *address,
            Some(ConsoleAddress::Manifest) => named.unwrap_or(ANY_PORT),
            None => match named {
                Some(address) => address,
                None => return Ok(None),
            },
        };
        let tls = policy.and_then(ConsolePolicy::tls);
        if ListenAddress::Tcp(address).is_public() && tls.is_none() {
            let message = format!("the console at {address} could be reached from other machines, without TLS");
            let hint = "listen on 127.0.0.1, or write certificate and key into [console]";
            return Err(StartError::refused(message).hint_if(Some(hint)));
        }
        if ListenAddress::Tcp(address).is_public() && policy.is_none_or(|policy| policy.operators().is_empty()) {
            let message = format!("the console at {address} could be reached from other machines, and nobody signs in");
            let hint = "write operators = [\"NAME\"] into [console], callers with a token, or listen on 127.0.0.1";
            return Err(StartError::refused(message).hint_if(Some(hint)));
        }
        let wrong = |error: std::io::Error| {
            let reason = cannot_listen(address, &error);
            StartError::refused(format!("the console cannot be served at {address}: {reason}"))
        };
        let hosts = policy.map(ConsolePolicy::hosts).unwrap_or_default();
        let doors = hosts.iter().try_fold(OriginPolicy::default(), |doors, host| doors.host(host));
        let doors = doors.map_err(|error| StartError::refused(error.to_string()))?;
        let mut polling = FilePolling::new(runtime);
        let certificate = tls.map(|files| open_certificate(&files, folder, &mut polling)).transpose();
        let certificate = certificate.map_err(StartError::refused)?;
        let socket = std::net::TcpListener::bind(address).map_err(wrong)?;
        socket.set_nonblocking(true).map_err(wrong)?;
        let address = socket.local_addr().map_err(wrong)?;
        Ok(Some(Self { socket, address, doors, certificate, polling, host: hosts.first().cloned() }))
    }

    /// Its address, for links.
    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        match self.host.as_ref().filter(|_| self.address.ip().is_unspecified()) {
            Some(host) if host.ends_with(']') || !host.contains(':') => {
                format!("{scheme}://{host}:{}", self.address.port())
            }
            Some(host) => format!("{scheme}://{host}"),
            None => format!("{scheme}://{}", self.address),
        }
    }

    /// Polls files for as long as it is served.
    pub fn polling(&mut self) -> &mut FilePolling {
        &mut self.polling
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// True if it is reached over TLS.
    pub fn has_tls(&self) -> bool {
        self.certificate.is_some()
    }

    /// The hosts it goes by.
    pub fn doors(&self) -> OriginPolicy {
        self.doors.clone()
    }

    /// Starts serving.
    pub fn serve(self, console: Arc<Console>, runtime: &Handle) -> std::io::Result<ServedConsole> {
        let _inside = runtime.enter();
        let socket = TcpListener::from_std(self.socket)?;
        let accepting = runtime.spawn(accept(socket, self.certificate, console));
        Ok(ServedConsole { accepting, _polling: self.polling })
    }
}

async fn accept(socket: TcpListener, certificate: Option<Certificate>, console: Arc<Console>) {
    let places = Arc::new(Places::default());
    loop {
        match socket.accept().await {
            Ok((stream, peer)) => {
                places.begin(peer.ip(), |place| {
                    let console = Arc::clone(&console);
                    let certificate = certificate.clone();
                    tokio::spawn(shake_hands((stream, peer.ip()), certificate, console, place)).abort_handle()
                });
                // A request that is there already is read before a later connection can end it.
                tokio::task::yield_now().await;
            }
            Err(_) => tokio::time::sleep(ACCEPT_RESTS).await,
        }
    }
}

async fn shake_hands(
    (stream, peer): (TcpStream, IpAddr),
    certificate: Option<Certificate>,
    console: Arc<Console>,
    place: Arc<Place>,
) {
    let Ok(local) = stream.local_addr() else { return };
    let ends = Ends { local: local.ip(), peer };
    // Without it, the end of an event waits for the browser's acknowledgement.
    let _ = stream.set_nodelay(true);
    match certificate {
        None => converse(stream, ends, console, place).await,
        Some(certificate) => {
            // A browser that cannot shake hands is not told why.
            if let Ok(Ok(stream)) = timeout(HEAD_TIME, certificate.http1_acceptor().accept(stream)).await {
                converse(stream, ends, console, place).await;
            }
        }
    }
}

/// One request, one response.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ends: Ends,
    console: Arc<Console>,
    place: Arc<Place>,
) {
    let (time, mut times) = watch::channel(Instant::now() + CONNECTION_TIME);
    let time = ConnectionTime(time, place);
    let respond = service_fn(move |request: Request<Incoming>| {
        let console = Arc::clone(&console);
        let time = time.clone();
        async move { Ok::<_, Infallible>(console.respond(request, ends, time).await) }
    });
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(FIELDS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false);
    let mut serving = std::pin::pin!(protocol.serve_connection(TokioIo::new(stream), respond));
    loop {
        let end = *times.borrow_and_update();
        tokio::select! {
            // A browser may break off; that is no error.
            _ = &mut serving => return,
            () = tokio::time::sleep_until(end) => return,
            Ok(()) = times.changed() => {}
        }
    }
}
