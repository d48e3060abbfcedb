//! Instances prewarmed for a tool in use, so that a call does not wait for instantiation. Each
//! serves one call.
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use toolcell_policy::Limits;

use crate::load::component::ToolComponent;
use crate::run::instance::GuestInstance;
use crate::run::start;
use crate::run::store::Terms;
use crate::wasi::guest_grants::GuestGrants;
use toolcell_wall::caller::NoCaller;
use toolcell_wall::start_call::StartCall;

/// A tool that was not called for this long drops its instances.
const IDLE: Duration = Duration::from_secs(10);

/// How long instances are made before the thread yields: it may be the reader's. Eight small ones
/// take this long.
const STRETCH: Duration = Duration::from_micros(100);

/// Runs work on the threads of guests when they are idle.
pub type Spawn = Arc<dyn Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync>;

/// Called once for a component whose instances cannot be prewarmed, with its name in the manifest
/// and the reason.
pub type StartCodeNotice = Arc<dyn Fn(&str, &StartCall) + Send + Sync>;

/// The settings for prewarming.
#[derive(Clone)]
pub struct PrewarmSetup {
    /// The memory that prewarmed instances may have, shared by all tools.
    pub budget: Arc<PrewarmBudget>,
    /// The threads that make them.
    pub spawn: Spawn,
    /// Called when a component's instances cannot be prewarmed.
    pub notify: StartCodeNotice,
}

/// The memory that all prewarmed instances may have together.
#[derive(Debug)]
pub struct PrewarmBudget {
    bytes_max: u64,
    bytes: AtomicU64,
}

impl PrewarmBudget {
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

/// A part of the budget, returned when dropped.
struct Charge {
    budget: Arc<PrewarmBudget>,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// The tool that instances are prewarmed for.
pub struct PrewarmedTool {
    /// Its component.
    pub component: Arc<ToolComponent>,
    /// Its limits.
    pub limits: Limits,
    /// Its grants.
    pub capabilities: Arc<GuestGrants>,
    /// Instances to keep ready.
    pub count: usize,
}

/// The prewarmed instances of one tool.
pub struct PrewarmedInstances {
    tool: PrewarmedTool,
    setup: PrewarmSetup,
    ready: Mutex<Vec<(GuestInstance, Charge)>>,
    /// Used instances, to be dropped outside of a call. They count against the budget as ready ones
    /// do.
    spent: Mutex<Vec<(GuestInstance, Charge)>>,
    /// True while instances are being made, or about to be.
    refilling: AtomicBool,
    /// True while a task polls whether the tool is still used.
    watched: AtomicBool,
    calls: AtomicUsize,
}

impl PrewarmedInstances {
    /// Keeps `count` instances of the tool ready once it is called, as far as the budget allows.
    pub fn new(tool: PrewarmedTool, setup: PrewarmSetup) -> Arc<Self> {
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

    /// An instance for one call, if one is ready.
    pub(crate) fn take(self: &Arc<Self>) -> Option<GuestInstance> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let (taken, left) = {
            let mut ready = lock(&self.ready);
            (ready.pop(), ready.len())
        };
        // Making one costs as much as it saves the next call, if client and host share a CPU. So
        // they are made in one go when nearly all are used, and most calls find one ready without
        // one being made meanwhile.
        if left <= self.tool.count / 8 && self.may_be_made() && !self.refilling.swap(true, Ordering::AcqRel) {
            (self.setup.spawn)(Box::pin(refill(Arc::downgrade(self))));
        }
        taken.map(|(instance, _charge)| instance)
    }

    /// Takes an instance whose call has ended, to drop it when others are made. Returns an instance
    /// that grew or has tasks left, and any if the tool is not watched, so that memory of calls is
    /// freed by the next poll at the latest.
    pub(crate) fn give_up(&self, mut instance: GuestInstance) -> Option<GuestInstance> {
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

    /// Makes instances until there are enough, the budget is used up, or one fails.
    async fn fill(&self) {
        let mut began = Instant::now();
        while lock(&self.ready).len() < self.tool.count {
            // The place in the pool that this one frees is the best for the next.
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

    /// True unless it is known that this component's start code must not run before a call.
    fn may_be_made(&self) -> bool {
        self.tool.component.start().is_alone() != Some(false)
    }

    async fn make(&self) -> Option<(GuestInstance, Charge)> {
        let sandbox = self.tool.component.sandbox();
        let slot = sandbox.slots().take_prewarm(self.tool.component.slot_units())?;
        let _running = sandbox.clock().running();
        if !self.starts_alone().await {
            return None;
        }
        let terms =
            Terms { limits: &self.tool.limits, capabilities: &self.tool.capabilities, caller: Arc::new(NoCaller) };
        let mut instance = GuestInstance::empty(&self.tool.component, &terms, slot).ok()?;
        // Even after a successful try, this code runs without grants, and an instance that called
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
    /// recorded yet. What it learns without grants must not serve a call that has them. An instance
    /// made for the call runs it with the call's grants.
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
            (self.setup.notify)(self.tool.capabilities.grants().subject().component(), call);
        }
    }
}

/// Makes instances, and starts the task that watches them.
async fn refill(warm: Weak<PrewarmedInstances>) {
    let Some(this) = warm.upgrade() else { return };
    this.fill().await;
    this.refilling.store(false, Ordering::Release);
    if !this.watched.swap(true, Ordering::AcqRel) {
        (this.setup.spawn)(Box::pin(watch(warm)));
    }
}

/// Drops a tool's instances once it is no longer called, and ends.
async fn watch(warm: Weak<PrewarmedInstances>) {
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
