//! Serving, from the sockets to the end: the announcement of the end, and the time until it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::Gatekeeper;
use super::connections::Connections;
use super::executor::LoneRequests;
use super::limits::HttpLimits;
use super::listener::{Listener, take};
use super::origin::OriginPolicy;
use super::quota::Quotas;
use super::service::{LiveRequests, Service};
use super::session::Sessions;
use super::traffic::{Load, Traffic};
use crate::host::{Executor, Host};
use crate::server::Server;

/// Interval of the search for sessions that are over.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// Time for cancelled calls to end and their answers to be sent. They need milliseconds.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// The options of serving: sockets, authentication, limits.
pub struct HttpOptions {
    /// The sockets.
    pub listeners: Vec<Listener>,
    /// The endpoint's path, such as `/mcp`.
    pub path: String,
    /// The allowed hosts and web pages.
    pub origin_policy: OriginPolicy,
    /// The bounds.
    pub limits: HttpLimits,
    /// The authentication of callers.
    pub gatekeeper: Arc<dyn Gatekeeper>,
    /// The counters.
    pub traffic: Arc<Traffic>,
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("listeners", &self.listeners)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Asks [`serve`] to end. Cheap to clone; once begun it stays so.
#[derive(Clone, Debug)]
pub struct Shutdown(Arc<watch::Sender<bool>>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Shutdown {
    /// Begins it. Calling it again does nothing.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    fn ends(&self) -> Ends {
        Ends(self.0.subscribe())
    }
}

/// Waits for the end of serving.
#[derive(Clone)]
pub(super) struct Ends(watch::Receiver<bool>);

impl Ends {
    pub(super) async fn over(mut self) {
        // A dropped sender cannot announce an end any more.
        let _ = self.0.wait_for(|over| *over).await;
    }
}

/// Serves until `shutdown` begins. Then it accepts no more connections and ends streams. Running
/// calls may finish within [`HttpLimits::drain`], and are cancelled after it.
pub async fn serve<H: Host>(
    server: &Arc<Server<H>>,
    options: HttpOptions,
    executor: impl Executor,
    shutdown: &Shutdown,
) {
    let HttpOptions { listeners, path, origin_policy, limits, gatekeeper, traffic } = options;
    let service = Arc::new(Service {
        server: Arc::clone(server),
        executor: Arc::new(executor),
        path,
        origin_policy,
        gatekeeper,
        sessions: Sessions::default(),
        live: LiveRequests::default(),
        quotas: Quotas::new(&limits),
        traffic,
        ending: false.into(),
        lone_requests: LoneRequests::default(),
        limits,
    });
    let connections = Connections::new(service.limits.connections_max);
    report_load(&service, &connections);
    let mut takers = JoinSet::new();
    for listener in listeners {
        takers.spawn(take(listener, Arc::clone(&service), Arc::clone(&connections), shutdown.ends()));
    }
    sweep_until(&service, shutdown.ends()).await;
    service.ending.store(true, Ordering::SeqCst);
    announce_end(&service);
    let open = async {
        while let Some(taker) = takers.join_next().await {
            // A task that panicked has closed its connections.
            let Ok(mut open) = taker else { continue };
            while open.join_next().await.is_some() {}
        }
    };
    let mut open = std::pin::pin!(open);
    if timeout(service.limits.drain, &mut open).await.is_err() {
        cancel_calls(&service);
        // Connections that are still open close with the sets that hold them.
        let _ = timeout(CANCEL_GRACE, open).await;
    }
}

/// Reports the load while it serves.
fn report_load<H: Host>(service: &Arc<Service<H>>, connections: &Arc<Connections>) {
    let (service, connections, traffic) =
        (Arc::downgrade(service), Arc::downgrade(connections), Arc::clone(&service.traffic));
    traffic.set_load_source(move || {
        let (Some(service), Some(connections)) = (service.upgrade(), connections.upgrade()) else {
            return Load::default();
        };
        Load {
            connections: connections.open(),
            requests: service.quotas.requests.taken(),
            streams: service.quotas.streams.taken(),
            sessions: service.sessions.count(),
        }
    });
}

async fn sweep_until<H: Host>(service: &Service<H>, ends: Ends) {
    let mut ticks = interval(SWEEP_EVERY.min(service.limits.session_idle).max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut over = std::pin::pin!(ends.over());
    loop {
        tokio::select! {
            () = &mut over => return,
            _ = ticks.tick() => service.sessions.sweep(&service.limits),
        }
    }
}

fn announce_end<H: Host>(service: &Service<H>) {
    for listener in service.live.all() {
        listener.server_ends();
    }
    for session in service.sessions.all() {
        session.outbox.end();
    }
}

fn cancel_calls<H: Host>(service: &Service<H>) {
    for listener in service.live.all() {
        listener.time_is_up();
    }
    for session in service.sessions.all() {
        session.connection.cancel_all();
    }
}
