//! The socket of the pages at which callers log in: one request a connection, with its bounds.
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;
use toolcell_policy::{ListenAddress, LoginPolicy, LoginsPolicy};
use url::Url;

use super::pages::LoginPages;
use crate::error::StartError;
use crate::listening::places::{ConnectionPlaces, PlaceBounds};
use crate::listening::small::{BoundSocket, HeadBounds, Visit, answer_one, serve_all};
use crate::owned_task::OwnedTask;

/// Bounds of a request's head: a browser sends about twenty fields, and one cookie of 4 KiB for
/// each login under way.
const HEAD: HeadBounds = HeadBounds { fields_max: 64, bytes_max: 32 * 1_024, time: Duration::from_secs(5) };

/// Time of a connection, which has one request: three answers of an authorization server, each of
/// 15 seconds at most.
const CONNECTION_TIME: Duration = Duration::from_secs(60);

/// Connections at a time. Those with a request are kept: a stranger's is answered at once, and
/// ends.
const PLACES: PlaceBounds = PlaceBounds { strangers: 128, kept: 128 };

/// The default address: any free port of this machine.
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A bound socket for the pages.
pub(crate) struct BoundLogins {
    socket: BoundSocket,
    /// Their address, as browsers reach it.
    pub(crate) address: String,
}

impl BoundLogins {
    /// Binds the manifest's address; `None` if no caller logs in. `logins` are those of which each
    /// caller has one.
    pub(crate) fn open(policy: Option<&LoginsPolicy>, logins: &[Arc<LoginPolicy>]) -> Result<Option<Self>, StartError> {
        if policy.is_none() && logins.iter().all(|login| login.uses_callers_token()) {
            return Ok(None);
        }
        let address = policy.and_then(LoginsPolicy::listen).unwrap_or(ANY_PORT);
        let named = policy.and_then(LoginsPolicy::address);
        if ListenAddress::Tcp(address).is_public() && named.is_none_or(|named| !named.starts_with("https://")) {
            let message = format!("the pages of logins at {address} could be reached from other machines, without TLS");
            let hint = "write address = \"https://…\", that of a proxy, into [logins], or listen on 127.0.0.1";
            return Err(StartError::refused(message).hint_if(Some(hint)));
        }
        let socket =
            BoundSocket::bind("the pages of logins", address, &named.and_then(host).into_iter().collect::<Vec<_>>())?;
        let address = named.map_or_else(|| format!("http://{}", socket.address), str::to_owned);
        Ok(Some(Self { socket, address }))
    }

    /// The socket's address.
    pub(crate) const fn socket(&self) -> SocketAddr {
        self.socket.address
    }

    /// Serves the pages until what it returns is dropped.
    pub(crate) fn serve(self, pages: LoginPages, runtime: &Handle) -> std::io::Result<OwnedTask> {
        let _inside = runtime.enter();
        let pages = Arc::new(pages.at(&self.address, self.socket.doors.clone()));
        let socket = self.socket.listener()?;
        Ok(OwnedTask(runtime.spawn(async move {
            let converse = |visit| {
                let pages = Arc::clone(&pages);
                // A connection that takes longer is closed without a message.
                async move { timeout(CONNECTION_TIME, converse(visit, pages)).await.err().and(None) }
            };
            serve_all(socket, &ConnectionPlaces::new(PLACES), converse).await
        })))
    }
}

/// The host of an address, with its port if it has one.
fn host(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// One request, one response.
async fn converse(visit: Visit, pages: Arc<LoginPages>) {
    let Visit { stream, place, .. } = visit;
    let Ok(local) = stream.local_addr() else { return };
    let respond = |request| {
        place.keep();
        let pages = Arc::clone(&pages);
        async move { pages.respond(request, local.ip()).await }
    };
    answer_one(stream, HEAD, respond).await;
}
