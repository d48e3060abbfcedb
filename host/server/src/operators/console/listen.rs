//! The console's socket: connections, one request each, with their bounds and times.
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use toolcell_mcp::http::Certificate;
use toolcell_policy::{AdvisedFault, ConsolePolicy, ListenAddress};

use super::service::Console;
use crate::error::StartError;
use crate::files::FilePolling;
use crate::http::open_certificate;
use crate::listening::places::{ConnectionPlace, ConnectionPlaces, PlaceBounds};
use crate::listening::small::{BoundSocket, HeadBounds, Visit, answer_one, serve_all};
use crate::owned_task::OwnedTask;

/// Connections at a time. Those of sessions are kept: sixteen viewers have a stream each, and open
/// pages.
const PLACES: PlaceBounds = PlaceBounds { strangers: 64, kept: 64 };

/// Bounds of a request's head: a browser sends about twenty fields. The time also bounds the
/// handshake.
const HEAD: HeadBounds = HeadBounds { fields_max: 64, bytes_max: 16 * 1_024, time: Duration::from_secs(5) };

/// Time of a connection, which has one request, until its answer is written. Longer answers extend
/// it.
const CONNECTION_TIME: Duration = Duration::from_secs(15);

/// The default address: any free port of this machine.
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
    pub socket: BoundSocket,
    /// Present if it is reached over TLS.
    pub certificate: Option<Certificate>,
    pub polling: FilePolling,
    /// The manifest's first host name.
    host: Option<String>,
}

/// The served console. Ends when dropped.
pub struct ServedConsole {
    _accepting: OwnedTask,
    _polling: FilePolling,
}

/// The two addresses of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// The console's.
    pub local: IpAddr,
    /// The browser's, or a proxy's.
    pub peer: IpAddr,
}

/// The time limit of a connection, which an answer may extend, and its place.
#[derive(Clone)]
pub struct ConnectionTime(watch::Sender<Instant>, Arc<ConnectionPlace>);

impl ConnectionTime {
    /// The connection belongs to a session, and is no longer replaced by strangers.
    pub fn is_of_session(&self) {
        self.1.keep();
    }

    /// Extends the time limit to this long from now.
    pub fn extend(&self, time: Duration) {
        let _ = self.0.send(Instant::now() + time);
    }
}

/// Why this address is refused: other machines reach it, and lack TLS or somebody who signs in.
pub fn public_fault(address: SocketAddr, policy: Option<&ConsolePolicy>) -> Option<AdvisedFault> {
    if !ListenAddress::Tcp(address).is_public() {
        return None;
    }
    if policy.and_then(ConsolePolicy::tls).is_none() {
        let problem = format!("the console at {address} could be reached from other machines, without TLS");
        let hint = "listen on 127.0.0.1, or write certificate and key into [console]";
        return Some(AdvisedFault::new(problem, hint));
    }
    policy.is_none_or(|policy| policy.operators().is_empty()).then(|| {
        let problem = format!("the console at {address} could be reached from other machines, and nobody signs in");
        let hint = "write operators = [\"NAME\"] into [console], callers with a token, or listen on 127.0.0.1";
        AdvisedFault::new(problem, hint)
    })
}

impl BoundConsole {
    /// Binds the address of the command line, or else of the manifest; `None` if neither has one.
    /// Relative paths start from `folder`.
    pub fn open(
        arg: Option<&ConsoleAddress>,
        policy: Option<&ConsolePolicy>,
        folder: &Path,
        runtime: &Handle,
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
        if let Some(fault) = public_fault(address, policy) {
            return Err(fault.into());
        }
        let tls = policy.and_then(ConsolePolicy::tls);
        let hosts = policy.map(ConsolePolicy::hosts).unwrap_or_default();
        let mut polling = FilePolling::new(runtime);
        let certificate = tls.map(|files| open_certificate(&files, folder, &mut polling)).transpose();
        let certificate = certificate.map_err(StartError::refused)?;
        let socket = BoundSocket::bind("the console", address, hosts)?;
        Ok(Some(Self { socket, certificate, polling, host: hosts.first().cloned() }))
    }

    /// Its address, for links.
    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        match self.host.as_ref().filter(|_| self.socket.address.ip().is_unspecified()) {
            Some(host) if host.ends_with(']') || !host.contains(':') => {
                format!("{scheme}://{host}:{}", self.socket.address.port())
            }
            Some(host) => format!("{scheme}://{host}"),
            None => format!("{scheme}://{}", self.socket.address),
        }
    }

    /// Starts serving.
    pub fn serve(self, console: Arc<Console>, runtime: &Handle) -> std::io::Result<ServedConsole> {
        let _inside = runtime.enter();
        let socket = self.socket.listener()?;
        let certificate = self.certificate;
        let accepting = OwnedTask(runtime.spawn(async move {
            let converse = |visit: Visit| {
                let console = Arc::clone(&console);
                let certificate = certificate.clone();
                async move {
                    shake_hands(visit, certificate, console).await;
                    None
                }
            };
            serve_all(socket, &ConnectionPlaces::new(PLACES), converse).await
        }));
        Ok(ServedConsole { _accepting: accepting, _polling: self.polling })
    }
}

async fn shake_hands(visit: Visit, certificate: Option<Certificate>, console: Arc<Console>) {
    let Visit { stream, peer, place } = visit;
    let Ok(local) = stream.local_addr() else { return };
    let ends = Ends { local: local.ip(), peer };
    // Otherwise, the end of an event waits for the browser's acknowledgement.
    let _ = stream.set_nodelay(true);
    match certificate {
        None => converse(stream, ends, console, place).await,
        Some(certificate) => {
            // A failed handshake needs no answer.
            if let Ok(Ok(stream)) = timeout(HEAD.time, certificate.http1_acceptor().accept(stream)).await {
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
    place: Arc<ConnectionPlace>,
) {
    let (time, mut times) = watch::channel(Instant::now() + CONNECTION_TIME);
    let time = ConnectionTime(time, place);
    let respond = |request| {
        let console = Arc::clone(&console);
        let time = time.clone();
        async move { console.respond(request, ends, time).await }
    };
    let mut serving = std::pin::pin!(answer_one(stream, HEAD, respond));
    loop {
        let end = *times.borrow_and_update();
        tokio::select! {
            () = &mut serving => return,
            () = tokio::time::sleep_until(end) => return,
            Ok(()) = times.changed() => {}
        }
    }
}
