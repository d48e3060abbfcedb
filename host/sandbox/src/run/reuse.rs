//! The instance of a component that keeps state between the calls of one caller, on purpose.
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::run::instance::Instance;

/// At most one instance, for one caller. Its calls run one after the other.
///
/// It is given up when it was idle for long, when it is old, and when a call ends without an
/// answer. A guest that was stopped half-way is in no known state.
pub struct ReusedInstance {
    live: Arc<Mutex<Option<ReusableInstance>>>,
    idle: Duration,
    lifetime: Duration,
}

struct ReusableInstance {
    instance: Instance,
    made: Instant,
    used: Instant,
}

/// The right to use the instance, and the only one.
pub(crate) struct InstanceLease {
    live: OwnedMutexGuard<Option<ReusableInstance>>,
    idle: Duration,
    made: Instant,
}

impl ReusedInstance {
    /// None yet. `idle` after its last call, and `lifetime` after it was made, an instance is given
    /// up.
    #[must_use]
    pub fn new(idle: Duration, lifetime: Duration) -> Self {
        Self { live: Arc::default(), idle, lifetime }
    }

    /// Waits until no other call uses the instance; gives it where there is one that may still be
    /// used.
    pub(crate) async fn turn(&self, wait: Duration) -> Option<(InstanceLease, Option<Instance>)> {
        let mut live = tokio::time::timeout(wait, Arc::clone(&self.live).lock_owned()).await.ok()?;
        let now = Instant::now();
        let usable = live
            .take()
            .filter(|live| now.duration_since(live.used) < self.idle && now.duration_since(live.made) < self.lifetime);
        let made = usable.as_ref().map_or(now, |live| live.made);
        Some((InstanceLease { live, idle: self.idle, made }, usable.map(|live| live.instance)))
    }
}

impl InstanceLease {
    /// Keeps the instance for the next call, and has it given up once it was idle for too long.
    pub(crate) fn keep(mut self, instance: Instance) {
        *self.live = Some(ReusableInstance { instance, made: self.made, used: Instant::now() });
        let (mutex, idle) = (Arc::downgrade(OwnedMutexGuard::mutex(&self.live)), self.idle);
        drop(tokio::spawn(give_up_when_idle(mutex, idle)));
    }
}

async fn give_up_when_idle(live: Weak<Mutex<Option<ReusableInstance>>>, idle: Duration) {
    tokio::time::sleep(idle).await;
    let Some(live) = live.upgrade() else { return };
    // An instance in use is not idle; its user comes back here.
    let Ok(mut live) = live.try_lock() else { return };
    if live.as_ref().is_some_and(|live| live.used.elapsed() >= idle) {
        *live = None;
    }
}
