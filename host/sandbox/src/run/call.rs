//! Running a guest once: slot, store, instance, export, and whichever comes first of answer, deadline and cancellation.
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use toolcell_audit::Usage;
use toolcell_policy::{Denial, Limit, Limits, Program};
use wasmtime::Store;

use crate::bindings::contract;
use crate::caller::asking::Waits;
use crate::caller::{Caller, NoCaller};
use crate::engine::duties;
use crate::failure::Failure;
use crate::load::component::ToolComponent;
use crate::run::failures;
use crate::run::instance::Instance;
use crate::run::kept::{Kept, Turn};
use crate::run::redaction;
use crate::run::store::Terms;
use crate::run::warm::Warm;
use crate::run::weight::weigh;
use crate::shape::typed::Descriptions;
use crate::shape::{Ask, Exports, Shape};
use crate::wasi::cli::capture::Captured;
use crate::wasi::reach::Reach;
use crate::wasi::state::CallState;

/// One call of one tool.
pub struct CallInput<'a> {
    /// The tool's name, as the component lists it (without the manifest's prefix).
    pub tool: &'a str,
    /// A JSON object that conforms to the tool's input schema.
    pub arguments_json: &'a str,
    /// How a program is run for it; nothing for a tool of any other shape.
    pub program: Option<&'a Program>,
    /// The limits of this tool.
    pub limits: &'a Limits,
    /// What this tool can reach. An instance made ahead or kept was made with it.
    pub reach: &'a Arc<Reach>,
    /// Whoever sent it.
    pub caller: Arc<dyn Caller>,
    /// Where its instance comes from.
    pub supply: Supply<'a>,
}

/// Where a call's instance comes from.
#[derive(Clone, Copy)]
pub enum Supply<'a> {
    /// Made for this call.
    Fresh,
    /// Made ahead for one call of this tool, with its limits; made now where none waits.
    Warm(&'a Arc<Warm>),
    /// The caller's own, with what earlier calls left in it; made now where there is none.
    Kept(&'a Kept),
}

/// Where an instance goes after its call.
enum Back<'a> {
    Nowhere,
    Warm(&'a Warm),
    Kept(Turn),
}

/// What a call came to: always a report, whatever the guest did.
#[derive(Debug)]
pub struct CallReport<T> {
    /// The answer, or why there is none.
    pub outcome: Result<T, Failure>,
    /// What it took.
    pub usage: Usage,
    /// What the guest printed.
    pub captured: Captured,
    /// What it asked for and did not get: the first of it.
    pub denials: Vec<Denial>,
    /// Its instance, where that is small and no later call has it. Dropping it takes as long as making it: best done once the answer is out.
    pub remains: Remains,
}

impl<T> CallReport<T> {
    /// Nothing ran.
    fn of(outcome: Result<T, Failure>) -> Self {
        let (usage, captured, denials) = Default::default();
        Self { outcome, usage, captured, denials, remains: Remains::default() }
    }

    /// What is known without running anything.
    pub(crate) fn without_running(value: T) -> Self {
        Self::of(Ok(value))
    }

    /// Nothing runs, and this is why.
    pub(crate) fn not_run(failure: Failure) -> Self {
        Self::of(Err(failure))
    }
}

/// What a call leaves behind. It keeps its memory and its share of the pool until it is dropped, but no call from running.
#[must_use]
#[derive(Default)]
pub struct Remains(Option<Box<Instance>>);

impl std::fmt::Debug for Remains {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Remains").field(&self.0.is_some()).finish()
    }
}

impl Remains {
    fn of(mut instance: Instance) -> Self {
        // What took much gives it back before anything follows.
        if !instance.is_small() {
            return Self(None);
        }
        instance.rest();
        Self(Some(Box::new(instance)))
    }
}

impl ToolComponent {
    /// The component's tools. One that keeps the contract is asked for them, in a sandbox with these limits and nothing
    /// granted: what a component says of itself does not depend on what it can reach. Of any other nothing runs: a typed one's
    /// are its functions, with the descriptions added to what it carries itself, and those of a program are the manifest's.
    /// What a typed one's definitions come to is counted before any is made: they take no more than a list of the contract's may.
    pub async fn list_tools(&self, limits: &Limits, descriptions: &Descriptions) -> CallReport<Vec<contract::Tool>> {
        if let Shape::Typed(functions) = self.tools() {
            return match functions.tools(descriptions, limits.host_data_bytes()) {
                Some(tools) => CallReport::without_running(tools),
                None => CallReport::not_run(Failure::over(Limit::HostData, limits)),
            };
        }
        if let Shape::Program(_) = self.tools() {
            return CallReport::without_running(Vec::new());
        }
        let terms = Terms { limits, reach: &Reach::sealed(""), caller: Arc::new(NoCaller) };
        run(self, terms, Supply::Fresh, async |store, exports| match exports {
            Exports::Contract(bindings) => bindings.toolcell_mcp_tools().call_list_tools(store).await,
            Exports::Typed(_) | Exports::Program(_) => {
                Err(wasmtime::Error::msg("the component lists its tools by their types"))
            }
        })
        .await
    }

    /// Runs one call. Dropping the future stops the guest.
    pub async fn call_tool(&self, input: CallInput<'_>) -> CallReport<contract::CallResult> {
        call_tool(self, input).await
    }
}

/// Runs `call-tool` and holds the result to the output limits.
async fn call_tool(component: &ToolComponent, input: CallInput<'_>) -> CallReport<contract::CallResult> {
    let CallInput { tool, arguments_json, program, limits, reach, caller, supply } = input;
    let ask = Ask { tool, arguments_json, program, adapted: component.inspection().is_adapted(), limits };
    let report = run(component, Terms { limits, reach, caller }, supply, async |store, exports| {
        component.tools().call(store, exports, ask).await
    })
    .await;
    let mut usage = report.usage;
    let outcome = report.outcome.and_then(|mut answer| {
        redaction::answer(reach.redactor(), &mut answer);
        let (bytes, items) = weigh(&answer);
        usage.output_bytes = bytes;
        if bytes > limits.output_bytes() {
            return Err(Failure::over(Limit::Output, limits));
        }
        if items > limits.output_items() {
            return Err(Failure::over(Limit::OutputItems, limits));
        }
        answer.map_err(Failure::from)
    });
    CallReport { outcome, usage, captured: report.captured, denials: report.denials, remains: report.remains }
}

/// Runs `export` on an instance of the component, under every limit.
async fn run<T>(
    component: &ToolComponent,
    terms: Terms<'_>,
    supply: Supply<'_>,
    export: impl AsyncFnOnce(&mut Store<CallState>, &Exports) -> wasmtime::Result<T>,
) -> CallReport<T> {
    let (mut instance, back) = match obtain(component, &terms, supply).await {
        Ok(obtained) => obtained,
        Err(failure) => return CallReport::of(Err(failure)),
    };
    let Terms { limits, caller, .. } = terms;
    let running = component.sandbox().clock().running();
    let waits = component.inspection().asks().then(|| instance.store.data_mut().asking.waits(&running));
    let started = Instant::now();
    let answer = if caller.is_cancelled() {
        // Nobody waits for it any more, or its rights were taken away while it waited: nothing of it runs.
        Err(Failure::Cancelled)
    } else {
        let work = async {
            if instance.holds_resources() {
                duties::leave().await;
            }
            instance.instantiate(component).await?;
            if is_late((started, limits), waits.as_deref()) {
                // Instantiation cannot be interrupted. The deadline ends the call now, before anything else of it runs.
                std::future::pending::<()>().await;
            }
            caller.instantiated();
            let Instance { store, exports, .. } = &mut instance;
            match exports {
                Some(exports) => export(store, exports).await,
                None => Err(wasmtime::Error::msg("there is no instance after instantiation")),
            }
        };
        tokio::select! {
            biased;
            answer = work => Ok(answer),
            stop = stopped((started, limits), caller.as_ref(), waits.as_deref()) => Err(stop),
        }
    };
    let outcome = match answer {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(failures::sort(&error, instance.store.data(), limits)),
        Err(stop) => Err(stop),
    };
    // An answer never speaks of what the disk does not have.
    let outcome = match outcome {
        Ok(value) => match instance.store.data_mut().keyvalue.settle().await {
            Ok(()) => Ok(value),
            Err(fault) => Err(Failure::from(&fault)),
        },
        failed => {
            // It keeps what it wrote; nobody waits for that.
            instance.store.data_mut().keyvalue.abandon();
            failed
        }
    };
    let mut usage = instance.usage(limits, started.elapsed());
    // An answer that cost too much is none, or the same call would pass or not by where a tick fell.
    let outcome =
        if outcome.is_ok() && usage.fuel > limits.fuel() { Err(Failure::over(Limit::Fuel, limits)) } else { outcome };
    usage.fuel = usage.fuel.min(limits.fuel());
    let (denials, count) = instance.store.data().denials.take();
    usage.denials = count;
    let mut captured = instance.store.data().log.take();
    if let Cow::Owned(clean) = instance.store.data().reach().redactor().text(&captured.text) {
        captured.text = clean;
    }
    let remains = match back {
        Back::Warm(warm) => warm.give_up(instance).map_or_else(Remains::default, Remains::of),
        Back::Kept(turn) if outcome.is_ok() => {
            instance.rest();
            turn.keep(instance);
            Remains::default()
        }
        _ => Remains::of(instance),
    };
    CallReport { outcome, usage, captured, denials, remains }
}

/// Takes an instance from where the call gets it, or an empty store for one.
async fn obtain<'a>(
    component: &ToolComponent,
    terms: &Terms<'_>,
    supply: Supply<'a>,
) -> Result<(Instance, Back<'a>), Failure> {
    let Terms { limits, caller, .. } = terms;
    let host = |error: wasmtime::Error| Failure::Host { detail: format!("{error:?}") };
    let (slots, wait) = (component.sandbox().slots(), limits.queue_wait());
    let turn = match supply {
        Supply::Kept(kept) => Some(tokio::select! {
            turn = kept.turn(wait) => turn.ok_or(Failure::Busy)?,
            () = caller.cancelled() => return Err(Failure::Cancelled),
        }),
        _ => None,
    };
    let call = slots.call(wait).await.ok_or(Failure::Busy)?;
    let back = match (supply, turn) {
        (Supply::Warm(warm), _) => match warm.take() {
            Some(mut instance) => {
                instance.hand_to(Arc::clone(caller), call);
                return Ok((instance, Back::Warm(warm)));
            }
            None => Back::Warm(warm),
        },
        (_, Some((turn, Some(mut instance)))) => {
            instance.refill(terms, call).map_err(host)?;
            return Ok((instance, Back::Kept(turn)));
        }
        (_, Some((turn, None))) => Back::Kept(turn),
        (_, None) => Back::Nowhere,
    };
    let slot = slots.take(call, component.slot_units(), wait).await.ok_or(Failure::Busy)?;
    let instance = Instance::empty(component, terms, slot).map_err(host)?;
    Ok((instance, back))
}

/// True if the deadline is past.
fn is_late((started, limits): (Instant, &Limits), waits: Option<&Waits>) -> bool {
    waits.map_or_else(|| started.elapsed(), Waits::ran) >= limits.deadline()
}

/// Resolves when the call must end though the guest has not answered. The deadline counts from when the call was started, which may
/// be long before this is first looked at.
async fn stopped((started, limits): (Instant, &Limits), caller: &dyn Caller, waits: Option<&Waits>) -> Failure {
    let deadline = async {
        match waits {
            None => tokio::time::sleep_until((started + limits.deadline()).into()).await,
            Some(waits) => waits.deadline(limits.deadline()).await,
        }
    };
    tokio::select! {
        () = deadline => Failure::over(Limit::Deadline, limits),
        () = caller.cancelled() => Failure::Cancelled,
    }
}
