//! One call's share of the network: its counters, and the tasks that drive its connections.
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};
use toolcell_policy::{Askable, Grants, Network, Resolved};
use toolcell_wall::doors::net_limits::NetLimits;

use crate::caller::uses::CallUses;

/// Refused requests of one call that are remembered: as many as a call may ask about.
const REFUSED_MAX: usize = 64;

/// The direction that exceeded its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverDirection {
    Egress,
    Ingress,
}

/// A counter with a bound.
#[derive(Debug, Default)]
struct CallMeter {
    used: AtomicU64,
    over: std::sync::atomic::AtomicBool,
}

/// One call's counters and tasks. Tasks hold it, and it holds them: see [`NetGuard`].
pub(crate) struct CallNet {
    limits: NetLimits,
    requests: CallMeter,
    egress: CallMeter,
    ingress: CallMeter,
    sockets: CallMeter,
    lookups: CallMeter,
    turns: Arc<Semaphore>,
    resolved: Mutex<Resolved>,
    consents: Mutex<CallConsents>,
    /// Where uses of grants are noted, if the call's record has them.
    uses: Option<Arc<CallUses>>,
    tasks: Mutex<JoinSet<()>>,
    ended: watch::Sender<bool>,
}

/// A person's answers in one call. The sandbox asks a bounded number of times.
#[derive(Default)]
struct CallConsents {
    /// The call's network with what was allowed.
    network: Option<Arc<Network>>,
    refused: Vec<String>,
}

/// Ends the network use of a call when it is dropped.
pub(crate) struct NetGuard(Arc<CallNet>);

impl NetGuard {
    pub(crate) fn new(limits: NetLimits, uses: Option<Arc<CallUses>>) -> Self {
        Self(CallNet::noting(limits, uses))
    }

    /// To hold while the call lasts.
    pub(crate) const fn net(&self) -> &Arc<CallNet> {
        &self.0
    }
}

impl Drop for NetGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl CallMeter {
    /// Takes up to `wanted` of what is left under `limit`. Getting less than that means the limit
    /// is exceeded.
    fn take(&self, wanted: u64, limit: u64) -> u64 {
        let update = |used: u64| Some(used + wanted.min(limit.saturating_sub(used)));
        // The update always succeeds.
        let used = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update).unwrap_or(limit);
        let taken = wanted.min(limit.saturating_sub(used));
        if taken < wanted {
            self.over.store(true, Ordering::Relaxed);
        }
        taken
    }

    fn give_back(&self, unused: u64) {
        self.used.fetch_sub(unused, Ordering::Relaxed);
    }

    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

impl CallNet {
    /// Decides by the manifest's network, with what a person allowed in this call.
    pub(crate) fn decide<T>(&self, grants: &Grants, decision: impl FnOnce(&Network) -> T) -> T {
        let widened = self.consents().network.clone();
        decision(widened.as_deref().unwrap_or(grants.network()))
    }

    /// Allows in this call what a person allowed.
    pub(crate) fn allow(&self, grants: &Grants, offer: &Askable) {
        let network = self.decide(grants, |network| network.with(offer));
        self.consents().network = Some(Arc::new(network));
    }

    /// Notes that a person did not allow it.
    pub(crate) fn refuse(&self, offer: &Askable) {
        let mut consents = self.consents();
        if consents.refused.len() < REFUSED_MAX {
            consents.refused.push(offer.asked().to_owned());
        }
    }

    /// True if a person did not allow it.
    pub(crate) fn was_refused(&self, offer: &Askable) -> bool {
        self.consents().refused.iter().any(|asked| asked == offer.asked())
    }

    /// Notes a use of a grant. Its text is only made if the call's record has uses.
    pub(crate) fn used(&self, text: impl FnOnce() -> String) {
        if let Some(uses) = &self.uses {
            uses.note(text());
        }
    }

    fn consents(&self) -> MutexGuard<'_, CallConsents> {
        self.consents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing used yet.
    #[cfg(test)]
    pub(crate) fn new(limits: NetLimits) -> Arc<Self> {
        Self::noting(limits, None)
    }

    /// Nothing used yet. Uses of grants are noted here.
    fn noting(limits: NetLimits, uses: Option<Arc<CallUses>>) -> Arc<Self> {
        Arc::new(Self {
            limits,
            uses,
            requests: CallMeter::default(),
            egress: CallMeter::default(),
            ingress: CallMeter::default(),
            sockets: CallMeter::default(),
            lookups: CallMeter::default(),
            turns: Arc::new(Semaphore::new(limits.concurrency)),
            resolved: Mutex::default(),
            consents: Mutex::default(),
            tasks: Mutex::default(),
            ended: watch::Sender::new(false),
        })
    }

    pub(crate) const fn limits(&self) -> &NetLimits {
        &self.limits
    }

    /// Counts an HTTP request; false if it is one too many.
    pub(crate) fn request(&self) -> bool {
        self.requests.take(1, self.limits.requests) == 1
    }

    /// Counts a socket; false if it is one too many.
    pub(crate) fn socket(&self) -> bool {
        self.sockets.take(1, self.limits.sockets) == 1
    }

    /// Counts a name lookup; false if it is one too many.
    pub(crate) fn lookup(&self) -> bool {
        self.lookups.take(1, self.limits.lookups) == 1
    }

    /// Takes bytes to send. Fewer than wanted means that the limit is reached.
    pub(crate) fn take_egress(&self, wanted_bytes: u64) -> u64 {
        self.egress.take(wanted_bytes, self.limits.egress_bytes)
    }

    /// Returns bytes that were taken and not sent.
    pub(crate) fn give_back_egress(&self, unsent_bytes: u64) {
        self.egress.give_back(unsent_bytes);
    }

    /// Charges received bytes; false if they are too many.
    pub(crate) fn charge_ingress(&self, bytes: u64) -> bool {
        self.ingress.take(bytes, self.limits.ingress_bytes) == bytes
    }

    /// The direction that exceeded its limit, if any.
    pub(crate) fn over(&self) -> Option<OverDirection> {
        match (self.egress.is_over(), self.ingress.is_over()) {
            (true, _) => Some(OverDirection::Egress),
            (_, true) => Some(OverDirection::Ingress),
            _ => None,
        }
    }

    /// Bytes sent so far.
    pub(crate) fn egress_bytes(&self) -> u64 {
        self.egress.used()
    }

    /// Bytes received so far.
    pub(crate) fn ingress_bytes(&self) -> u64 {
        self.ingress.used()
    }

    /// Waits for one of the requests that may run at once. `None` if the call has ended.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }

    /// The addresses that names resolved to in this call.
    pub(crate) fn resolved(&self) -> MutexGuard<'_, Resolved> {
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a task until the call ends. `None` if it has ended.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Finished tasks are joined here.
        while tasks.try_join_next().is_some() {}
        let ended = *self.ended.borrow();
        (!ended).then(|| tasks.spawn(task))
    }

    /// Ends the call: closes its connections, and prevents new ones.
    pub(crate) fn end(&self) {
        self.ended.send_replace(true);
        self.turns.close();
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }

    /// Resolves once the call has ended.
    pub(crate) async fn ended(&self) {
        let mut ended = self.ended.subscribe();
        // The sender lives as long as `self`, which is borrowed here.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}
