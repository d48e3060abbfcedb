//! One call's use of the network, counted in its own process. The host counts again and decides by
//! its own count. The count here keeps a guest at its limit from reaching the host.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use toolcell_wall::doors::net_limits::{LOOKUPS_AT_ONCE, NetLimits};

use super::http::outside::HttpDoor;

/// One call's counters.
pub(crate) struct OutsideNet {
    limits: NetLimits,
    requests: AtomicU64,
    sockets: AtomicU64,
    lookups: AtomicU64,
    requested: AtomicU64,
    lookup_turns: Arc<Semaphore>,
    /// The door of the last request, for the next one.
    kept_door: Mutex<Option<HttpDoor>>,
    ended: watch::Sender<bool>,
}

/// Ends the network use of a call when it is dropped.
pub(crate) struct OutsideNetGuard(Arc<OutsideNet>);

impl OutsideNetGuard {
    /// Nothing used yet.
    pub(crate) fn new(limits: NetLimits) -> Self {
        Self(Arc::new(OutsideNet {
            limits,
            requests: AtomicU64::new(0),
            sockets: AtomicU64::new(0),
            lookups: AtomicU64::new(0),
            requested: AtomicU64::new(0),
            lookup_turns: Arc::new(Semaphore::new(LOOKUPS_AT_ONCE)),
            kept_door: Mutex::default(),
            ended: watch::Sender::new(false),
        }))
    }

    /// To hold while the call lasts.
    pub(crate) const fn net(&self) -> &Arc<OutsideNet> {
        &self.0
    }
}

impl Drop for OutsideNetGuard {
    fn drop(&mut self) {
        self.0.ended.send_replace(true);
        self.0.lookup_turns.close();
        drop(self.0.take_kept());
    }
}

/// Counts one; false if that exceeds `max`.
fn take(used: &AtomicU64, max: u64) -> bool {
    used.fetch_add(1, Ordering::Relaxed) < max
}

impl OutsideNet {
    /// The limits.
    pub(crate) const fn limits(&self) -> &NetLimits {
        &self.limits
    }

    /// Counts an HTTP request; false if it is one too many.
    pub(crate) fn request(&self) -> bool {
        take(&self.requests, self.limits.requests)
    }

    /// Counts a socket; false if it is one too many.
    pub(crate) fn socket(&self) -> bool {
        take(&self.sockets, self.limits.sockets)
    }

    /// Counts a name lookup; false if it is one too many.
    pub(crate) fn lookup(&self) -> bool {
        take(&self.lookups, self.limits.lookups)
    }

    /// Counts a permission request to a person; false if there were as many as there may be
    /// operations.
    pub(crate) fn ask(&self) -> bool {
        take(&self.requested, self.limits.operations())
    }

    /// Waits for one of the lookups that may run at once. `None` if the call has ended.
    pub(crate) async fn lookup_turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.lookup_turns).acquire_owned().await.ok()
    }

    /// The door of the last request, if it may carry another.
    pub(crate) fn take_kept(&self) -> Option<HttpDoor> {
        self.kept().take()
    }

    /// Keeps a door for the next request, unless the call has ended.
    pub(crate) fn keep(&self, door: HttpDoor) {
        let mut kept = self.kept();
        if !*self.ended.borrow() {
            *kept = Some(door);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Option<HttpDoor>> {
        self.kept_door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves once the call has ended.
    pub(crate) async fn ended(&self) {
        let mut ended = self.ended.subscribe();
        // The sender lives as long as `self`, which is borrowed here.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}
