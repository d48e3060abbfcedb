//! Instances made ahead for a tool in use, so that a call does not wait for its instantiation. Each serves one call.
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use toolcell_policy::Limits;

use crate::caller::NoCaller;
use crate::component::ToolComponent;
use crate::instance::Instance;

/// A tool that was not called for this long gives its instances up.
const IDLE: Duration = Duration::from_secs(10);

/// Bytes of memories and tables up to which a used instance may wait for the keeper. Most guests that did not grow have
/// little more than one; dropping a larger one costs so much that a few microseconds saved do not show.
const SPENT_BYTES_MAX: u64 = 2 << 20;

/// Runs a piece of work on the threads of guests.
pub type Spawn = Arc<dyn Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync>;

/// The memory that all instances made ahead have together.
#[derive(Debug)]
pub struct WarmBudget {
    bytes_max: u64,
    bytes: AtomicU64,
}

impl WarmBudget {
    /// A budget of so many bytes of memories and tables.
    #[must_use]
    pub fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self { bytes_max, bytes: AtomicU64::new(0) })
    }

    /// Bytes held now.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    fn charge(self: &Arc<Self>, bytes: u64) -> Option<Charge> {
        let before = self.bytes.fetch_add(bytes, Ordering::AcqRel);
        let charge = Charge { budget: Arc::clone(self), bytes };
        (before.saturating_add(bytes) <= self.bytes_max).then_some(charge)
    }
}

/// A part of the budget, given back when dropped.
struct Charge {
    budget: Arc<WarmBudget>,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// The instances made ahead for one tool.
pub struct Warm {
    component: Arc<ToolComponent>,
    limits: Limits,
    count: usize,
    budget: Arc<WarmBudget>,
    spawn: Spawn,
    ready: Mutex<Vec<(Instance, Charge)>>,
    /// Used instances, given up away from the path of a call. They count against the budget as those that wait do.
    spent: Mutex<Vec<(Instance, Charge)>>,
    kept: AtomicBool,
    calls: AtomicUsize,
    wanted: Notify,
}

impl Warm {
    /// Keeps `count` instances ready once the tool is called, as far as the budget goes.
    pub fn new(
        component: Arc<ToolComponent>,
        limits: Limits,
        count: usize,
        budget: Arc<WarmBudget>,
        spawn: Spawn,
    ) -> Arc<Self> {
        Arc::new(Self {
            component,
            limits,
            count,
            budget,
            spawn,
            ready: Mutex::default(),
            spent: Mutex::default(),
            kept: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            wanted: Notify::new(),
        })
    }

    /// An instance for one call, where one waits.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Instance> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let (taken, left) = {
            let mut ready = lock(&self.ready);
            (ready.pop(), ready.len())
        };
        // Waking the keeper costs more than an instance: it comes once for several.
        if left <= self.count / 4 {
            self.refill_soon();
        }
        taken.map(|(instance, _charge)| instance)
    }

    /// Takes an instance whose call has ended. One that grew, and any where there is no keeper, is dropped at once:
    /// nothing that a call used stays for longer than the next look of the keeper.
    pub(crate) fn give_up(&self, mut instance: Instance) {
        instance.rest();
        let small = instance.held_bytes() <= SPENT_BYTES_MAX && self.kept.load(Ordering::Acquire);
        let charged = small.then(|| self.budget.charge(instance.held_bytes())).flatten();
        let Some(charge) = charged else { return drop(instance) };
        let mut spent = lock(&self.spent);
        if spent.len() < self.count {
            return spent.push((instance, charge));
        }
        drop(spent);
        drop((instance, charge));
    }

    /// Has the keeper make instances; starts it for a tool that was idle.
    fn refill_soon(self: &Arc<Self>) {
        if self.kept.swap(true, Ordering::AcqRel) {
            return self.wanted.notify_one();
        }
        (self.spawn)(Box::pin(keep(Arc::downgrade(self))));
    }

    /// Makes instances until there are enough, the budget is used up, or one cannot be made.
    async fn fill(&self) {
        lock(&self.spent).clear();
        while lock(&self.ready).len() < self.count {
            let Some(made) = self.make().await else { return };
            lock(&self.ready).push(made);
        }
    }

    async fn make(&self) -> Option<(Instance, Charge)> {
        let sandbox = self.component.sandbox();
        let slot = sandbox.slots().take_warm(self.component.slot_units())?;
        let _running = sandbox.clock().running();
        let mut instance = Instance::empty(&self.component, &self.limits, Arc::new(NoCaller), slot).ok()?;
        let made = tokio::time::timeout(self.limits.deadline(), instance.instantiate(&self.component)).await;
        made.ok()?.ok()?;
        let charge = self.budget.charge(instance.held_bytes())?;
        Some((instance, charge))
    }
}

/// Keeps a tool's instances ready as long as it is called, then gives them up and ends.
async fn keep(warm: Weak<Warm>) {
    let mut calls = 0;
    // One timer for all the time: setting it anew for each wake-up would wake the thread of timers, too.
    let mut look = tokio::time::interval_at(tokio::time::Instant::now() + IDLE, IDLE);
    loop {
        let Some(this) = warm.upgrade() else { return };
        this.fill().await;
        tokio::select! {
            () = this.wanted.notified() => continue,
            _ = look.tick() => {}
        }
        let calls_now = this.calls.load(Ordering::Relaxed);
        if std::mem::replace(&mut calls, calls_now) != calls_now {
            continue;
        }
        lock(&this.ready).clear();
        lock(&this.spent).clear();
        this.kept.store(false, Ordering::Release);
        return;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
