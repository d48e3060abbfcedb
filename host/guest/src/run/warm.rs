//! Instances made ahead for a tool in use, so that a call does not wait for its instantiation. Each
//! serves one call.
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use toolcell_policy::Limits;

use crate::load::component::ToolComponent;
use crate::run::instance::Instance;
use crate::run::start;
use crate::run::store::Terms;
use crate::wasi::guest_grants::GuestGrants;
use toolcell_wall::caller::NoCaller;
use toolcell_wall::start_call::StartCall;

/// A tool that was not called for this long gives its instances up.
const IDLE: Duration = Duration::from_secs(10);

/// Time for which instances are made without giving the thread back: it may be the reader's. Eight
/// small ones take as long.
const STRETCH: Duration = Duration::from_micros(100);

/// Runs a piece of work on the threads of guests, when these have nothing else to do.
pub type Spawn = Arc<dyn Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync>;

/// Is told once of a component that nothing is made ahead of, by its name in the manifest, and why.
pub type StartCodeNotice = Arc<dyn Fn(&str, &StartCall) + Send + Sync>;

/// The settings for making instances ahead.
#[derive(Clone)]
pub struct WarmSetup {
    /// The memory that they have, with those of all other tools.
    pub budget: Arc<WarmBudget>,
    /// The threads that make them.
    pub spawn: Spawn,
    /// Receives the notice that nothing is made ahead.
    pub tell: StartCodeNotice,
}

/// The memory that all instances made ahead have together.
#[derive(Debug)]
pub struct WarmBudget {
    bytes_max: u64,
    bytes: AtomicU64,
}

impl WarmBudget {
    /// A budget of this many bytes of memories and tables.
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

/// The tool that instances are made ahead for.
pub struct WarmTool {
    /// Its component.
    pub component: Arc<ToolComponent>,
    /// Its limits.
    pub limits: Limits,
    /// Its grants.
    pub capabilities: Arc<GuestGrants>,
    /// Instances that are kept ready.
    pub count: usize,
}

/// The instances made ahead for one tool.
pub struct WarmInstances {
    tool: WarmTool,
    setup: WarmSetup,
    ready: Mutex<Vec<(Instance, Charge)>>,
    /// Used instances, given up away from the path of a call. They count against the budget as
    /// those that wait do.
    spent: Mutex<Vec<(Instance, Charge)>>,
    /// True while instances are being made, or about to be.
    refilling: AtomicBool,
    /// True while somebody looks from time to time if the tool is still used.
    watched: AtomicBool,
    calls: AtomicUsize,
}

impl WarmInstances {
    /// Keeps the tool's `count` instances ready once the tool is called, as far as the budget goes.
    pub fn new(tool: WarmTool, setup: WarmSetup) -> Arc<Self> {
        Arc::new(Self {
            tool,
            setup,
            ready: Mutex::default(),
            spent: Mutex::default(),
            refilling: AtomicBool::new(false),
            watched: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
        })
    }

    /// An instance for one call, where one waits.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Instance> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let (taken, left) = {
            let mut ready = lock(&self.ready);
            (ready.pop(), ready.len())
        };
        // Making one costs as much as it saves the next call, on a CPU that client and host share.
        // So they are made at once when the last is gone, and most calls find one without anything
        // being made beside them.
        if left <= self.tool.count / 8 && self.may_be_made() && !self.refilling.swap(true, Ordering::AcqRel) {
            (self.setup.spawn)(Box::pin(refill(Arc::downgrade(self))));
        }
        taken.map(|(instance, _charge)| instance)
    }

    /// Takes an instance whose call has ended, to drop it when others are made. Gives back an
    /// instance that grew, and any where nobody watches the tool: memory that a call used stays no
    /// longer than the next look.
    pub(crate) fn give_up(&self, mut instance: Instance) -> Option<Instance> {
        instance.rest();
        let small = instance.is_small() && self.may_be_made() && self.watched.load(Ordering::Acquire);
        let charged = small.then(|| self.setup.budget.charge(instance.held_bytes())).flatten();
        let Some(charge) = charged else { return Some(instance) };
        let mut spent = lock(&self.spent);
        if spent.len() >= self.tool.count {
            return Some(instance);
        }
        spent.push((instance, charge));
        None
    }

    /// Makes instances until there are enough, the budget is used up, or one cannot be made.
    async fn fill(&self) {
        let mut began = Instant::now();
        while lock(&self.ready).len() < self.tool.count {
            // The place in the pool that one leaves is the best for the next.
            drop(lock(&self.spent).pop());
            let Some(made) = self.make().await else { break };
            lock(&self.ready).push(made);
            if began.elapsed() > STRETCH {
                tokio::task::yield_now().await;
                began = Instant::now();
            }
        }
        lock(&self.spent).clear();
    }

    /// Start code of this component may run before there is a call, as far as is known.
    fn may_be_made(&self) -> bool {
        self.tool.component.start().is_alone() != Some(false)
    }

    async fn make(&self) -> Option<(Instance, Charge)> {
        let sandbox = self.tool.component.sandbox();
        let slot = sandbox.slots().take_warm(self.tool.component.slot_units())?;
        let _running = sandbox.clock().running();
        if !self.starts_alone().await {
            return None;
        }
        let terms =
            Terms { limits: &self.tool.limits, capabilities: &self.tool.capabilities, caller: Arc::new(NoCaller) };
        let mut instance = Instance::empty(&self.tool.component, &terms, slot).ok()?;
        // Even after a good try, this code runs with nothing granted, and an instance that asked
        // the host serves no call.
        instance.store.data_mut().starting();
        let made = tokio::time::timeout(self.tool.limits.deadline(), instance.instantiate(&self.tool.component)).await;
        let alone = instance.store.data_mut().started();
        made.ok()?.ok()?;
        if !alone {
            self.found(Err(StartCall::of_the_host()));
            return None;
        }
        let charge = self.setup.budget.charge(instance.held_bytes())?;
        Some((instance, charge))
    }

    /// Tries it once for each component. Start code must not reach anything for a call that is not
    /// recorded yet. Nor may its findings without grants serve a call that has them. An instance
    /// made for the call runs it with the call's rights.
    async fn starts_alone(&self) -> bool {
        if let Some(alone) = self.tool.component.start().is_alone() {
            return alone;
        }
        let tried = start::try_alone(self.tool.component.pre(), &self.tool.limits);
        let Ok(Ok(found)) = tokio::time::timeout(self.tool.limits.deadline(), tried).await else { return false };
        let alone = found.is_ok();
        self.found(found);
        alone
    }

    fn found(&self, found: Result<(), StartCall>) {
        if let Some(call) = self.tool.component.start().found(found) {
            (self.setup.tell)(self.tool.capabilities.grants().subject().component(), call);
        }
    }
}

/// Makes instances, and has somebody look after them.
async fn refill(warm: Weak<WarmInstances>) {
    let Some(this) = warm.upgrade() else { return };
    this.fill().await;
    this.refilling.store(false, Ordering::Release);
    if !this.watched.swap(true, Ordering::AcqRel) {
        (this.setup.spawn)(Box::pin(watch(warm)));
    }
}

/// Gives a tool's instances up once it is called no more, and ends.
async fn watch(warm: Weak<WarmInstances>) {
    let mut calls = 0;
    loop {
        tokio::time::sleep(IDLE).await;
        let Some(this) = warm.upgrade() else { return };
        let calls_now = this.calls.load(Ordering::Relaxed);
        if std::mem::replace(&mut calls, calls_now) != calls_now {
            continue;
        }
        lock(&this.ready).clear();
        lock(&this.spent).clear();
        this.watched.store(false, Ordering::Release);
        return;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
