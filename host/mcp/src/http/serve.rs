//! Serving, from the sockets to the end: the notice period, and draining.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout, timeout_at};

use super::exchange::{ReplicaExchange, hear};
use super::executor::LoneRequests;
use super::limits::HttpLimits;
use super::listener::{HttpListener, take};
use super::modern::LiveRequests;
use super::origin::OriginPolicy;
use super::quota::Quotas;
use super::replicas::Replicas;
use super::service::Service;
use super::traffic::{HttpLoad, Traffic};
use super::watch::Connections;
use super::{Gatekeeper, Readiness, RefusalObserver};
use crate::host::{Executor, Host};
use crate::server::McpServer;
use crate::turns::{FairTurns, TurnBounds};

/// Interval of the removal of expired sessions.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// Time for cancelled calls to end and their answers to be sent. They need milliseconds.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// Checks of credentials at once. One: it makes a thousand a second of the costliest, and strangers
/// take no second core.
const CHECKS_MAX: usize = 1;

/// Long messages that are processed at once: on half of the cores, so that short ones find the
/// others free. At least one.
fn long_messages_max() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_euclid(2).max(1))
}

/// The options of serving: sockets, authentication, limits.
pub struct HttpOptions {
    /// The sockets.
    pub listeners: Vec<HttpListener>,
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
    /// Is notified of requests that are refused with 401 or 403.
    pub refusals: Option<Arc<dyn RefusalObserver>>,
    /// Checks what the server depends on, if anything.
    pub readiness: Option<Arc<dyn Readiness>>,
    /// The other replicas of this server, if any. They share the server's key.
    pub replicas: Option<Arc<dyn Replicas>>,
}

/// Asks [`serve`] to end. Cheap to clone; once begun it stays so.
#[derive(Clone, Debug)]
pub struct HttpShutdown(Arc<watch::Sender<Stage>>);

/// Stages of the end of serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// It serves.
    Serving,
    /// It still takes requests, for [`HttpLimits::notice`].
    Notice,
    /// It takes none.
    Ending,
}

impl Default for HttpShutdown {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Stage::Serving)))
    }
}

impl HttpShutdown {
    /// Begins shutdown. A second call skips the notice period.
    pub fn begin(&self) {
        self.0.send_modify(|stage| {
            *stage = if *stage == Stage::Serving { Stage::Notice } else { Stage::Ending };
        });
    }

    /// Ends the notice period.
    fn close(&self) {
        self.0.send_replace(Stage::Ending);
    }

    fn begun(&self) -> ServeStages {
        ServeStages(self.0.subscribe(), Stage::Notice)
    }

    /// Waits until no more requests are accepted.
    fn ends(&self) -> ServeStages {
        ServeStages(self.0.subscribe(), Stage::Ending)
    }
}

/// Waits for a stage of shutdown.
#[derive(Clone)]
pub(super) struct ServeStages(watch::Receiver<Stage>, Stage);

impl ServeStages {
    pub(super) async fn over(mut self) {
        let stage = self.1;
        // If the sender was dropped, no stage follows.
        let _ = self.0.wait_for(|reached| *reached >= stage).await;
    }
}

/// Serves until `shutdown` begins. For [`HttpLimits::notice`] it then reports not ready, but
/// continues. After that it accepts no more connections and ends streams. Running calls and tasks
/// may finish within [`HttpLimits::drain`]; then calls are cancelled.
pub async fn serve<H: Host>(
    server: &Arc<McpServer<H>>,
    mut options: HttpOptions,
    executor: impl Executor,
    shutdown: &HttpShutdown,
) {
    let listeners = std::mem::take(&mut options.listeners);
    let replicas = options.replicas.take();
    let exchange = replicas.map(|replicas| ReplicaExchange::new(replicas, server.options.state_key.clone()));
    let service = Arc::new(Service {
        server: Arc::clone(server),
        executor: Arc::new(executor),
        sessions: Arc::default(),
        exchange,
        live: LiveRequests::default(),
        quotas: Quotas::new(&options.limits),
        leaving: false.into(),
        ending: false.into(),
        lone_requests: LoneRequests::default(),
        turns: FairTurns::new(TurnBounds { all: long_messages_max(), own: long_messages_max() }),
        checks: FairTurns::new(TurnBounds { all: CHECKS_MAX, own: CHECKS_MAX }),
        options,
    });
    let connections = Connections::new(service.options.limits.connections_max);
    report_load(&service, &connections);
    // Replicas are listened to until the last answer is sent.
    let mut hearing = JoinSet::new();
    if let Some(exchange) = &service.exchange {
        hearing.spawn(hear(Arc::clone(exchange), Arc::clone(&service.sessions)));
    }
    let mut takers = JoinSet::new();
    for listener in listeners {
        takers.spawn(take(listener, Arc::clone(&service), Arc::clone(&connections), shutdown.ends()));
    }
    sweep_until(&service, shutdown.begun()).await;
    service.leaving.store(true, Ordering::SeqCst);
    // A second call of `begin` skips the notice period.
    let _ = timeout(service.options.limits.notice, sweep_until(&service, shutdown.ends())).await;
    shutdown.close();
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
    let drained = Instant::now() + service.options.limits.drain;
    if timeout_at(drained, &mut open).await.is_err() {
        cancel_calls(&service);
        // Connections that are still open close with the sets that hold them.
        let _ = timeout(CANCEL_GRACE, open).await;
    }
    // Tasks belong to no connection. The caller ends those that still run.
    let _ = timeout_at(drained, server.tasks.all_ended()).await;
}

/// Reports the load while the server runs.
fn report_load<H: Host>(service: &Arc<Service<H>>, connections: &Arc<Connections>) {
    let traffic = Arc::clone(&service.options.traffic);
    let service = Arc::downgrade(service);
    let connections = Arc::downgrade(connections);
    traffic.set_load_source(move || {
        let (Some(service), Some(connections)) = (service.upgrade(), connections.upgrade()) else {
            return HttpLoad::default();
        };
        HttpLoad {
            connections: connections.open(),
            requests: service.quotas.requests.taken(),
            streams: service.quotas.streams.taken(),
            sessions: service.sessions.count(),
        }
    });
}

async fn sweep_until<H: Host>(service: &Service<H>, ends: ServeStages) {
    let mut ticks = interval(SWEEP_EVERY.min(service.options.limits.session_idle).max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut over = std::pin::pin!(ends.over());
    loop {
        tokio::select! {
            () = &mut over => return,
            _ = ticks.tick() => service.sessions.sweep(&service.options.limits),
        }
    }
}

fn announce_end<H: Host>(service: &Service<H>) {
    service.live.end();
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
