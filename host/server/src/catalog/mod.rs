//! One generation of tools: what the manifest and the components came to, and how a call of one of them runs.
//!
//! This is where the protocol (`toolcell_mcp`), the sandbox and the audit meet; none of them knows the others.
mod admission;
mod approval;
mod asking;
pub mod beside;
mod build;
mod caller;
mod callers;
mod content;
mod definition;
mod denials;
mod instances;
pub mod meters;
mod offer;
mod own;
mod program;
mod rate;
mod reach;
mod record;
mod resources;
mod running;
mod tally;
mod told;
mod turns;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::SemaphorePermit;
use toolcell_audit::{Outcome, Sink, Usage};
use toolcell_mcp::{
    ArgumentProblems, Call, CallResult, Caller, Cancellation, CheckedResult, DeclaredResource, NameCollisions, Tool,
    ToolList, TraceContext,
};
use toolcell_policy::{Approval, Callers, ComponentPolicy, Grants, Limit, Limits, Output, Program, ToolName};
use toolcell_sandbox::{Capabilities as Reach, Captured, CodeOrigin, Failure, Inspection, ShapeName, ToolComponent};

pub use crate::file::{plain, read_bounded};
use crate::observation::Observation;
use crate::stamp::Stamps;
use crate::traces::{CallTrace, Subject, Traces};
use admission::{Admission, Refusal};
use approval::Approvals;
pub use build::{Basis, Builder, Built, Withheld, folder_of};
pub use callers::NOBODY;
use callers::Visible;
use instances::Instances;
use meters::{Denied, Meters};
pub use offer::Offer;
pub use own::Process;
use record::{CallRecord, Start};
use resources::Declared;
use running::{Ending, NARROWED, run_admitted, run_in_turn};
pub use running::{Measured, USAGE_KEY};
pub use tally::Tally;
use told::{CallName, told};
use turns::Turns;

/// An immutable generation. Calls hold it by `Arc` until they end, whatever is swapped in meanwhile.
pub struct Catalog {
    tools: ToolList,
    resources: Declared,
    entries: Vec<Arc<Entry>>,
    components: Vec<Arc<Loaded>>,
    sink: Arc<Sink>,
    calls: Arc<AtomicU64>,
    observation: Option<Arc<Observation>>,
    traces: Option<Arc<Traces>>,
    tally: Arc<Tally>,
    approvals: Arc<Approvals>,
    visible: Visible,
    turns: Arc<Turns>,
}

/// A loaded component and what the manifest says of it.
pub struct Loaded {
    policy: ComponentPolicy,
    component: Arc<ToolComponent>,
    digest: String,
    policy_digest: String,
    /// How the files that the manifest names beside its code looked when they were read.
    beside: Stamps,
    /// What its calls are denied, counted over all generations that have it.
    denied: Arc<Denied>,
}

/// One tool: beside the definition that clients see, what it takes to run it.
struct Entry {
    component: Arc<Loaded>,
    /// The tool's own name, without the manifest's prefix.
    name: String,
    /// How its program is run, where it is a tool of one.
    program: Option<Arc<Program>>,
    limits: Limits,
    reach: Arc<Reach>,
    admission: Arc<Admission>,
    instances: Instances,
    /// Which of its calls a person confirms; `None` where that is none.
    approval: Option<Approval>,
    /// Cancelled once the manifest takes away what calls of it may reach; `None` where they reach nothing.
    narrowed: Option<Cancellation>,
    /// What is counted of its calls, over all generations that have it.
    meters: Arc<Meters>,
}

/// A call that is recorded as started.
struct Begun<'a> {
    entry: &'a Entry,
    tool: &'a Tool,
    record: CallRecord,
    observation: Option<&'a Arc<Observation>>,
    visible: &'a Visible,
    turns: &'a Turns,
    /// Where the call is traced.
    trace: Option<Arc<CallTrace>>,
}

impl Loaded {
    /// The component's name in the manifest.
    pub fn name(&self) -> &str {
        self.policy.name()
    }

    /// What the manifest says of it.
    pub fn policy(&self) -> &ComponentPolicy {
        &self.policy
    }

    /// `sha256:…` of its bytes.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// `sha256:…` of what the manifest says of it.
    pub fn policy_digest(&self) -> &str {
        &self.policy_digest
    }

    /// Where its code came from.
    pub fn code_origin(&self) -> CodeOrigin {
        self.component.code_origin()
    }

    /// What its calls were denied.
    pub fn denied(&self) -> &Denied {
        &self.denied
    }

    /// How its exports become tools.
    pub fn shape(&self) -> ShapeName {
        self.component.shape()
    }

    /// What it is, exports and imports.
    pub fn inspection(&self) -> &Inspection {
        self.component.inspection()
    }
}

impl Catalog {
    /// Has what its calls are denied noted.
    #[must_use]
    pub fn observed(self, observation: Option<Arc<Observation>>) -> Self {
        Self { observation, ..self }
    }

    /// Has its calls traced.
    #[must_use]
    pub fn traced(self, traces: Option<Arc<Traces>>) -> Self {
        Self { traces, ..self }
    }

    /// The components, in the manifest's order.
    pub fn components(&self) -> &[Arc<Loaded>] {
        &self.components
    }

    /// What tool number `index` is granted.
    pub fn tool_grants(&self, index: usize) -> Option<&Grants> {
        self.entries.get(index).map(|entry| entry.reach.grants().as_ref())
    }

    /// The component and the limits of tool number `index`.
    pub fn tool_source(&self, index: usize) -> Option<(&Loaded, &Limits)> {
        self.entries.get(index).map(|entry| (entry.component.as_ref(), &entry.limits))
    }

    /// The names of one component's tools, as clients see them.
    pub fn tools_of(&self, component: &Arc<Loaded>) -> Vec<&str> {
        let own = self.entries.iter().map(|entry| Arc::ptr_eq(&entry.component, component));
        let named = self.tools.tools().iter().zip(own).filter(|(_, own)| *own);
        named.map(|(tool, _)| tool.definition().name.as_str()).collect()
    }

    /// This catalog, but that some components are as in an earlier one; what that one lacks is left out.
    ///
    /// # Errors
    /// Two tools have one name then.
    pub fn holding(&self, held: &BTreeSet<String>, earlier: &Self) -> Result<Self, NameCollisions> {
        let mut parts = Parts::default();
        for component in &self.components {
            if !held.contains(component.name()) {
                parts.take_over(self, component, None);
            } else if let Some(old) = earlier.component(component.name()) {
                parts.take_over(earlier, old, None);
            }
        }
        let Parts { tools, entries, rules, components } = parts;
        let tools = ToolList::new(self.tools.generation(), tools)?;
        let (visible, turns) = (Visible::new(Arc::clone(self.visible.callers()), rules), Arc::clone(&self.turns));
        let (sink, calls, tally) = (Arc::clone(&self.sink), Arc::clone(&self.calls), Arc::clone(&self.tally));
        let (observation, traces, approvals) =
            (self.observation.clone(), self.traces.clone(), Arc::clone(&self.approvals));
        let resources = Declared::of(&entries, &tools);
        Ok(Self {
            tools,
            entries,
            components,
            sink,
            calls,
            tally,
            observation,
            traces,
            approvals,
            visible,
            turns,
            resources,
        })
    }

    /// The component of this name in the manifest.
    pub fn component(&self, name: &str) -> Option<&Arc<Loaded>> {
        self.components.iter().find(|component| component.name() == name)
    }

    /// What is known of each tool, in the order of the list.
    pub fn offers(&self) -> impl Iterator<Item = Offer<'_>> {
        let tools = self.entries.iter().zip(self.tools.tools()).enumerate();
        tools.map(|(place, (entry, tool))| Offer {
            entry,
            tool,
            called_by: self.visible.words(place, &entry.called(&tool.definition().name)),
        })
    }

    /// Who may see and call which tools, as the manifest says.
    pub fn callers(&self) -> &Callers {
        self.visible.callers()
    }

    /// How calls ended, over all generations.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// How many calls were started, over all generations.
    pub fn calls_started(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Runs a call that neither waits for a place nor counts against the rate: for commands that measure a tool, and are
    /// its only caller. Every other limit holds.
    pub async fn measure(&self, mut call: Call) -> Measured {
        let begun = match self.begin(&mut call) {
            Ok(begun) => begun,
            Err(refusal) => return Ending::refused(Outcome::HostError, refusal.to_owned()).into(),
        };
        let ending = run_admitted(&begun, call).await;
        begun.record.end(ending.outcome, ending.usage, &ending.detail);
        ending.into()
    }

    /// Runs a call that a person makes by hand: it needs no further approval. Gives what the tool printed as well.
    pub async fn call_by_hand(&self, call: Call) -> (CheckedResult, Captured) {
        self.run(call, true).await
    }

    async fn run(&self, mut call: Call, by_hand: bool) -> (CheckedResult, Captured) {
        let begun = match self.begin(&mut call) {
            Ok(begun) => begun,
            Err(refusal) => return (CheckedResult::error(refusal), Captured::default()),
        };
        let cancellation = call.context.cancellation.clone();
        let name = tracing::enabled!(tracing::Level::DEBUG).then(|| begun.call_name(&call).kept(begun.name()));
        let mut ending = if by_hand {
            run_in_turn(&begun, call).await
        } else {
            // A person is waited for without a place.
            match begun.approve(&call, &self.approvals).await {
                Ok(approved) => {
                    let ending = run_in_turn(&begun, call).await;
                    approved.ended(ending.outcome);
                    ending
                }
                Err(ending) => ending,
            }
        };
        let printed = std::mem::take(&mut ending.printed);
        let patience = ending.patience(&begun.entry.limits, &cancellation);
        if begun.tool.finishing_takes_long(&ending.result) {
            toolcell_mcp::leave_thread().await;
        }
        let (mut outcome, usage, detail, result) = ending.checked(begun.tool, &patience);
        // Nobody reads what a cancelled call answers, be it that the guest saw it and ended by itself.
        if cancellation.is_cancelled() {
            outcome = Outcome::Cancelled;
        }
        self.tally.count(outcome);
        if let Some(name) = name {
            told!(debug, name, "ended: {} after {} us", outcome.name(), usage.duration.as_micros());
        }
        begun.trace.iter().for_each(|trace| trace.end(outcome));
        begun.record.end(outcome, usage, &detail);
        (result, printed)
    }

    /// Numbers the call and records its start. `Err` is what to answer where it must not run.
    fn begin(&self, call: &mut Call) -> Result<Begun<'_>, &'static str> {
        let trace = self.trace(call).map(|(trace, on)| {
            call.context.trace = Some(on);
            Arc::new(trace)
        });
        let (entry, start) = self.start(call).ok_or("the host has no such tool")?;
        if let Some(trace) = &trace {
            trace.is_numbered(start.id);
        }
        let record = CallRecord::begin(&self.sink, &start, (call, &entry.meters)).map_err(|error| {
            self.tally.count(Outcome::HostError);
            trace.iter().for_each(|trace| trace.end(Outcome::HostError));
            entry.meters.ended(Outcome::HostError, &Usage::default());
            told!(error, start.name(call), "refused: the audit cannot be written: {error}");
            "refused: the host cannot record the call in its audit"
        })?;
        let (observation, visible, turns) = (self.observation.as_ref(), &self.visible, self.turns.as_ref());
        Ok(Begun { entry, tool: start.tool, record, observation, visible, turns, trace })
    }

    /// Begins the call's trace, where calls are traced.
    fn trace(&self, call: &Call) -> Option<(CallTrace, TraceContext)> {
        let traces = self.traces.as_ref()?;
        let (entry, tool) = self.entries.get(call.tool).zip(self.tools.tools().get(call.tool))?;
        let subject = Subject {
            tool: &tool.definition().name,
            component: entry.component.name(),
            generation: self.tools.generation(),
        };
        traces.begin(&subject, &call.context)
    }

    /// Numbers the call. Nothing where its index is not from this catalog's own list.
    fn start(&self, call: &Call) -> Option<(&Entry, Start<'_>)> {
        let (entry, tool) = self.entries.get(call.tool).zip(self.tools.tools().get(call.tool))?;
        let id = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        Some((
            entry,
            Start {
                id,
                generation: self.tools.generation(),
                tool,
                component: &entry.component,
                redactor: entry.reach.redactor(),
            },
        ))
    }

    /// Counts and records a call that is refused before anything of it runs.
    fn record_refused(&self, call: &Call, outcome: Outcome, detail: &str) {
        self.tally.count(outcome);
        if let Some((entry, start)) = self.start(call) {
            told!(debug, start.name(call), "refused: {}", outcome.name());
            entry.meters.ended(outcome, &Usage::default());
            if let Some((trace, _)) = self.trace(call) {
                trace.is_numbered(start.id);
                trace.end(outcome);
            }
            record::refused(&self.sink, &start, call, outcome, detail);
        }
    }
}

impl Begun<'_> {
    fn name(&self) -> &str {
        &self.tool.definition().name
    }

    fn call_name<'a>(&'a self, call: &'a Call) -> CallName<'a> {
        CallName::new(self.record.id(), &call.context, self.name())
    }
}

/// The tools of a catalog and what runs them, while they are put together.
#[derive(Default)]
struct Parts {
    tools: Vec<Arc<Tool>>,
    entries: Vec<Arc<Entry>>,
    /// Who may call each tool.
    rules: Vec<Arc<Callers>>,
    components: Vec<Arc<Loaded>>,
}

impl Parts {
    /// Adds a component as it is in another catalog, with its tools: under these rules, or else those that it is under there.
    fn take_over(&mut self, catalog: &Catalog, component: &Arc<Loaded>, rules: Option<&Arc<Callers>>) {
        for (place, (entry, tool)) in catalog.entries.iter().zip(catalog.tools.tools()).enumerate() {
            if Arc::ptr_eq(&entry.component, component) {
                self.tools.push(Arc::clone(tool));
                self.entries.push(Arc::clone(entry));
                let rules = rules.or_else(|| catalog.visible.rules_of(place));
                self.rules.push(rules.map(Arc::clone).unwrap_or_default());
            }
        }
        self.components.push(Arc::clone(component));
    }
}

impl Entry {
    /// As rules for callers name it.
    fn called<'n>(&'n self, exposed: &'n str) -> ToolName<'n> {
        ToolName { component: self.component.name(), own: &self.name, exposed }
    }

    /// Waits for a place for one call.
    async fn enter(&self, caller: &str, cancellation: &Cancellation) -> Result<SemaphorePermit<'_>, Refusal> {
        let place = self.admission.enter(caller, cancellation);
        let Some(narrowed) = &self.narrowed else { return place.await };
        tokio::select! {
            biased;
            place = place => place,
            () = narrowed.cancelled() => Err(Refusal::Narrowed),
        }
    }

    /// Whether its results may embed resources: functions over WIT values never do, programs where the manifest says so.
    fn may_embed(&self) -> bool {
        match self.component.component.shape() {
            ShapeName::Typed => false,
            ShapeName::Program => self.program.as_ref().is_some_and(|program| match program.output() {
                Output::Media { mime_type, .. } => !["image/", "audio/"].iter().any(|kind| mime_type.starts_with(kind)),
                Output::Text | Output::Json => false,
            }),
            _ => true,
        }
    }

    /// Arguments past the limit of this tool.
    fn too_large(&self, arguments: &RawValue) -> Option<Failure> {
        let bytes = arguments.get().len() as u64;
        (bytes > self.limits.arguments_bytes()).then(|| Failure::over(Limit::Arguments, &self.limits))
    }
}

impl toolcell_mcp::Catalog for Catalog {
    fn tools(&self) -> &ToolList {
        &self.tools
    }

    fn view(&self, caller: &Caller) -> Option<Arc<ToolList>> {
        self.visible.view(caller, &self.entries, &self.tools)
    }

    fn tells_callers_apart(&self) -> bool {
        self.visible.tells_apart()
    }

    fn offers_resources(&self) -> bool {
        !self.resources.all().is_empty() || self.entries.iter().any(|entry| entry.may_embed())
    }

    fn origin(&self, tool: usize) -> &str {
        self.entries.get(tool).map_or("", |entry| entry.component.name())
    }

    fn resources(&self) -> &[DeclaredResource] {
        self.resources.all()
    }

    fn reader(&self, uri: &str) -> Option<&DeclaredResource> {
        self.resources.reader(uri)
    }

    fn asks(&self, tool: usize) -> Option<String> {
        let entry = self.entries.get(tool)?;
        let loaded = &entry.component;
        let may_ask = loaded.inspection().asks() && entry.limits.asks() > 0;
        (may_ask || entry.approval.is_some()).then(|| format!("{} {}", loaded.digest, loaded.policy_digest))
    }

    fn objection(&self, call: &Call) -> Option<CallResult> {
        let text = self.entries.get(call.tool)?.too_large(&call.arguments)?.to_string();
        self.record_refused(call, Outcome::LimitExceeded, &text);
        Some(CallResult::error(text))
    }

    fn deadline(&self, tool: usize) -> Option<Duration> {
        self.entries.get(tool).map(|entry| entry.limits.deadline())
    }

    fn refused(&self, call: &Call, problems: &ArgumentProblems) {
        // A check that nobody waits for any more says nothing of the arguments.
        let outcome = if call.context.cancellation.is_cancelled() { Outcome::Cancelled } else { Outcome::InvalidInput };
        self.record_refused(call, outcome, &problems.to_string());
    }

    async fn call(self: Arc<Self>, call: Call) -> CheckedResult {
        self.run(call, false).await.0
    }
}
