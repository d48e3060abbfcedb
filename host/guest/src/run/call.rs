//! Running a guest once: slot, store, instance, export, and whichever comes first: answer, deadline
//! or cancellation.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use toolcell_policy::{Limit, Limits, Program};
use wasmtime::Store;

use crate::load::component::ToolComponent;
use crate::recording::TapedCall;
use crate::run::asking::AskWaits;
use crate::run::failures;
use crate::run::instance::GuestInstance;
use crate::run::store::Terms;
use crate::run::turns::Turns;
use crate::run::warm::PrewarmedInstances;
use crate::shape::typed::Descriptions;
use crate::shape::{ComponentShape, Exports, ToolCall, dev_source};
use crate::wasi::guest_grants::GuestGrants;
use crate::wasi::state::CallState;
use toolcell_wall::caller::{CallerLink, NoCaller};
use toolcell_wall::failure::CallFailure;
use toolcell_wall::report::{CallReport, ListedBeside};
use toolcell_wall::{contract, weight};

/// One call of one tool.
pub struct CallInput<'a> {
    /// The tool's name, as the component lists it (without the manifest's prefix), or the
    /// [path](toolcell_wall::export) of another export.
    pub tool: &'a str,
    /// A JSON object that conforms to the tool's input schema.
    pub arguments_json: &'a str,
    /// The manifest's settings for running a program; `None` for a tool of any other shape.
    pub program: Option<&'a Program>,
    /// The limits of this tool.
    pub limits: &'a Limits,
    /// The grants of this tool. A prewarmed or reused instance was made with the same ones.
    pub capabilities: &'a Arc<GuestGrants>,
    /// The sender of the call.
    pub caller: Arc<dyn CallerLink>,
    /// The source of its instance.
    pub source: InstanceSource<'a>,
}

/// The source of a call's instance.
#[derive(Clone, Copy)]
pub enum InstanceSource<'a> {
    /// Made for this call.
    Fresh,
    /// Prewarmed for one call of this tool, with its limits. If none is ready, a fresh one is made.
    Warm(&'a Arc<PrewarmedInstances>),
    /// The caller's own, with the state of earlier calls. Without one, a fresh one is made.
    Reused(&'a KeptInstance),
    /// Made for this call, which is recorded or replayed.
    Taped(&'a TapedCall),
}

/// Where an instance goes after its call.
enum InstanceReturn<'a> {
    Nowhere,
    Warm(&'a PrewarmedInstances),
    Kept(&'a KeptInstance),
}

/// The instance of one caller, with the state of earlier calls, while no call uses it. The host
/// runs the caller's calls one after the other, and drops an instance whose call ended without an
/// answer.
#[derive(Default)]
pub struct KeptInstance(Mutex<Option<Box<GuestInstance>>>);

impl KeptInstance {
    /// True if it holds an instance.
    pub(crate) fn has_one(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn take(&self) -> Option<Box<GuestInstance>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn keep(&self, instance: GuestInstance) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(instance));
    }
}

/// The end of a guest's run.
#[derive(Debug)]
pub struct GuestEnd<T> {
    /// Its report. There is always one, even if the guest fails.
    pub report: CallReport<T>,
    /// Its instance, if that is small and cannot be reused. Dropping it takes as long as making
    /// one: do it after the answer is sent.
    pub spent: SpentInstance,
}

/// No guest ran.
impl<T> From<CallReport<T>> for GuestEnd<T> {
    fn from(report: CallReport<T>) -> Self {
        Self { report, spent: SpentInstance::default() }
    }
}

/// The instance that a call leaves behind. It keeps its memory and its share of the pool until it
/// is dropped, but does not keep a call from running.
#[must_use]
#[derive(Default)]
pub struct SpentInstance(Option<Box<GuestInstance>>);

impl std::fmt::Debug for SpentInstance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Remains").field(&self.0.is_some()).finish()
    }
}

impl SpentInstance {
    fn of(mut instance: GuestInstance) -> Self {
        // A large instance frees its memory before anything else happens.
        if !instance.is_small() {
            return Self(None);
        }
        instance.rest();
        Self(Some(Box::new(instance)))
    }
}

impl ToolComponent {
    /// The component's tools.
    ///
    /// A component with the contract is asked for its tools in a sandbox with these limits and no
    /// grants; its list does not depend on grants. No other component runs: a typed one's tools are
    /// its functions, with these descriptions added to its own, and a program's tools come from the
    /// manifest.
    ///
    /// The size of a typed component's definitions is checked before any is made. They may take as
    /// much as a list of the contract.
    pub async fn list_tools(
        &self,
        limits: &Limits,
        descriptions: &Descriptions,
    ) -> CallReport<Vec<contract::GuestTool>> {
        if let ComponentShape::Typed { functions, .. } = self.tools() {
            return match functions.tools(descriptions, limits.host_data_bytes()) {
                Some(tools) => CallReport::without_running(tools),
                None => CallReport::not_run(CallFailure::over(Limit::HostData, limits)),
            };
        }
        if let ComponentShape::Program(_) = self.tools() {
            return CallReport::without_running(Vec::new());
        }
        self.run_sealed(limits, descriptions.dev_source.as_deref(), async |store, exports| match exports {
            Exports::Contract(functions) => functions.list_tools(store).await,
            Exports::Typed(_) | Exports::Program(_) => {
                Err(wasmtime::Error::msg("the component lists its tools by their types"))
            }
        })
        .await
    }

    /// Runs an export without grants, in a sandbox of its own.
    async fn run_sealed<T>(
        &self,
        limits: &Limits,
        dev_source: Option<&str>,
        export: impl AsyncFnOnce(&mut Store<CallState>, &Exports) -> wasmtime::Result<T>,
    ) -> CallReport<T> {
        let capabilities = GuestGrants::sealed_with("", dev_source);
        let terms = Terms { limits, capabilities: &capabilities, caller: Arc::new(NoCaller) };
        run(self, terms, InstanceSource::Fresh, export).await.report
    }

    /// Makes a component that `toolcell dev` serves import the project's files, to find problems
    /// before a call does. Without such files, nothing runs.
    pub(crate) async fn import_dev_source(&self, limits: &Limits, source: Option<&str>) -> CallReport<()> {
        let export = dev_source::export(self.inspection().exports());
        let Some((source, export)) = source.zip(export) else { return CallReport::without_running(()) };
        let report = self.run_sealed(limits, Some(source), async |store, exports| match exports.instance() {
            Some(instance) => dev_source::load(store, instance, export).await,
            None => Ok(Ok(())),
        });
        report.await.and_then(|loaded| loaded.map_err(CallFailure::Failed))
    }

    /// Asks the component for its prompts in the same way. Most components have none, and then
    /// nothing runs.
    async fn list_prompts(&self, limits: &Limits, dev_source: Option<&str>) -> CallReport<Vec<contract::GuestPrompt>> {
        if !matches!(self.tools(), ComponentShape::Contract(indices) if indices.has_prompts()) {
            return CallReport::without_running(Vec::new());
        }
        self.run_sealed(limits, dev_source, async |store, exports| match exports {
            Exports::Contract(functions) => functions.list_prompts(store).await,
            Exports::Typed(_) | Exports::Program(_) => Ok(Vec::new()),
        })
        .await
    }

    /// Asks the component for its resources in the same way.
    async fn list_resources(
        &self,
        limits: &Limits,
        dev_source: Option<&str>,
    ) -> CallReport<Vec<contract::ListedResource>> {
        if !matches!(self.tools(), ComponentShape::Contract(indices) if indices.has_resources()) {
            return CallReport::without_running(Vec::new());
        }
        self.run_sealed(limits, dev_source, async |store, exports| match exports {
            Exports::Contract(functions) => functions.list_resources(store).await,
            Exports::Typed(_) | Exports::Program(_) => Ok(Vec::new()),
        })
        .await
    }

    /// The prompts and the resources of the component, listed with these files of
    /// [`DEV_SOURCE`](toolcell_wall::mounts::DEV_SOURCE) if there are any.
    ///
    /// # Errors
    /// Listing either failed.
    pub async fn list_beside_tools(
        &self,
        limits: &Limits,
        dev_source: Option<&str>,
    ) -> Result<ListedBeside, CallFailure> {
        let prompts = self.list_prompts(limits, dev_source).await.outcome?;
        let resources = self.list_resources(limits, dev_source).await.outcome?;
        Ok(ListedBeside { prompts, resources })
    }

    /// Runs `call-tool` once, and holds the result to the output limits. Dropping the future stops
    /// the guest.
    pub async fn call_tool(&self, input: CallInput<'_>) -> GuestEnd<contract::GuestResult> {
        let CallInput { tool, arguments_json, program, limits, capabilities, caller, source } = input;
        let ask = ToolCall { tool, arguments_json, program, adapted: self.inspection().is_adapted(), limits };
        let terms = Terms { limits, capabilities, caller };
        let ended = run(self, terms, source, async |store, exports| self.tools().call(store, exports, ask).await);
        let GuestEnd { report, spent } = ended.await;
        let mut report = report.and_then(|answer| answer);
        // The host then redacts secrets in it (`secrets::answer`), and checks its size again.
        report.outcome = weight::hold(report.outcome, limits, &mut report.usage);
        GuestEnd { report, spent }
    }
}

/// Runs `export` on an instance of the component, under every limit.
async fn run<T>(
    component: &ToolComponent,
    terms: Terms<'_>,
    source: InstanceSource<'_>,
    export: impl AsyncFnOnce(&mut Store<CallState>, &Exports) -> wasmtime::Result<T>,
) -> GuestEnd<T> {
    let (mut instance, back) = match obtain(component, &terms, source).await {
        Ok(obtained) => obtained,
        Err(failure) => return CallReport::not_run(failure).into(),
    };
    let Terms { limits, caller, .. } = terms;
    let running = component.sandbox().clock().running();
    // Calls of other tools may wait for a person, too.
    let calls = !instance.store.data().capabilities().grants().calls().is_empty();
    let may_wait = calls || component.inspection().asks() || instance.store.data().capabilities().may_ask();
    let engine = component.sandbox().options().engine;
    let waits = may_wait.then(|| instance.store.data().asking.waits(&running, engine));
    let started = Instant::now();
    let deadline = Deadline { started, limits, waits: waits.as_deref() };
    let turns = Turns::of(engine, limits);
    let answer = if caller.is_cancelled() {
        // The caller stopped waiting, or lost its rights while it waited, so nothing of the call
        // runs.
        Err(CallFailure::Cancelled)
    } else {
        let work = async {
            instance.instantiate(component).await?;
            if deadline.is_past() {
                // Instantiation cannot be interrupted. The deadline ends the call now, before
                // anything else of it runs.
                std::future::pending::<()>().await;
            }
            caller.instantiated();
            if caller.notes_use() {
                instance.report_use(caller.as_ref());
            }
            let GuestInstance { store, exports, .. } = &mut instance;
            match exports {
                Some(exports) => turns.counted(export(store, exports)).await,
                None => Err(wasmtime::Error::msg("there is no instance after instantiation")),
            }
        };
        tokio::select! {
            biased;
            answer = work => Ok(answer),
            stop = stopped(deadline, caller.as_ref()) => Err(stop),
        }
    };
    instance.flush_tape();
    let outcome = match answer {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(failures::sort(&error, instance.store.data(), limits)),
        Err(stop) => Err(stop),
    };
    let outcome = match instance.end_of_tape(outcome.is_ok()) {
        Some(end) => Err(CallFailure::Replayed(end)),
        None => outcome,
    };
    instance.store.data_mut().fuel.add(turns.fuel());
    let mut usage = instance.usage(started.elapsed());
    // An answer that cost too much is refused. Otherwise the last tick would decide whether the
    // same call passes.
    let outcome = if outcome.is_ok() && usage.fuel > limits.fuel() {
        Err(CallFailure::over(Limit::Fuel, limits))
    } else {
        outcome
    };
    usage.fuel = usage.fuel.min(limits.fuel());
    let (denials, count) = instance.store.data().denials.take();
    usage.denials = count;
    let captured = instance.store.data().log.take();
    let mut kept = false;
    let spent = match back {
        InstanceReturn::Warm(warm) => warm.give_up(instance).map_or_else(SpentInstance::default, SpentInstance::of),
        InstanceReturn::Kept(place) if outcome.is_ok() && instance.is_finished() => {
            instance.rest();
            place.keep(instance);
            kept = true;
            SpentInstance::default()
        }
        _ => SpentInstance::of(instance),
    };
    GuestEnd { report: CallReport { outcome, usage, captured, denials, unfit: None, kept }, spent }
}

/// Gets an instance for the call, or an empty store for one.
async fn obtain<'a>(
    component: &ToolComponent,
    terms: &Terms<'_>,
    source: InstanceSource<'a>,
) -> Result<(GuestInstance, InstanceReturn<'a>), CallFailure> {
    let Terms { limits, caller, .. } = terms;
    let host = |error: wasmtime::Error| CallFailure::Host { detail: format!("{error:?}") };
    let slots = component.sandbox().slots();
    let wait = limits.queue_wait();
    let call = slots.call(wait).await.ok_or(CallFailure::Busy)?;
    let back = match source {
        InstanceSource::Fresh => InstanceReturn::Nowhere,
        InstanceSource::Warm(warm) => match warm.take() {
            Some(mut instance) => {
                instance.hand_to(Arc::clone(caller), call);
                return Ok((instance, InstanceReturn::Warm(warm)));
            }
            None => InstanceReturn::Warm(warm),
        },
        InstanceSource::Reused(place) => match place.take() {
            Some(mut instance) => {
                instance.refill(terms, call).map_err(host)?;
                return Ok((*instance, InstanceReturn::Kept(place)));
            }
            None => InstanceReturn::Kept(place),
        },
        InstanceSource::Taped(taped) => {
            let units = slots.with_relay(component.slot_units());
            let slot = slots.take(call, units, wait).await.ok_or(CallFailure::Busy)?;
            let mut instance = GuestInstance::empty(component, terms, slot).map_err(host)?;
            instance.use_tape(taped, limits).map_err(|detail| CallFailure::Host { detail })?;
            return Ok((instance, InstanceReturn::Nowhere));
        }
    };
    let slot = slots.take(call, component.slot_units(), wait).await.ok_or(CallFailure::Busy)?;
    let instance = GuestInstance::empty(component, terms, slot).map_err(host)?;
    Ok((instance, back))
}

/// The deadline of a call. It counts from the start of the call, possibly long before it is first
/// checked.
#[derive(Clone, Copy)]
struct Deadline<'a> {
    started: Instant,
    limits: &'a Limits,
    /// The time the call spends waiting for a person. The deadline stands still meanwhile.
    waits: Option<&'a AskWaits>,
}

impl Deadline<'_> {
    fn is_past(self) -> bool {
        self.waits.map_or_else(|| self.started.elapsed(), AskWaits::ran) >= self.limits.deadline()
    }

    /// Resolves at the deadline.
    async fn passed(self) {
        match self.waits {
            None => tokio::time::sleep_until((self.started + self.limits.deadline()).into()).await,
            Some(waits) => waits.deadline(self.limits.deadline()).await,
        }
    }
}

/// Resolves when the call must end although the guest has not answered.
async fn stopped(deadline: Deadline<'_>, caller: &dyn CallerLink) -> CallFailure {
    tokio::select! {
        () = deadline.passed() => CallFailure::over(Limit::Deadline, deadline.limits),
        () = caller.cancelled() => CallFailure::Cancelled,
    }
}
