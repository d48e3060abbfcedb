//! Calls that a tool makes in the middle of its own. Each enters where a client's call enters once
//! it is parsed, as a call of the same caller: it meets the same rules, and has the same records.
//!
//! It inherits three things: who calls, the trace, and the time that its caller has left. It takes
//! no place that a call above it may hold: not of the caller, not for large arguments, and not the
//! instance that a component keeps for a caller. Places of tools it waits for, since no tool
//! reaches itself.
//!
//! Promise: a nested call is a call.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::oneshot;
use toolcell_audit::Outcome;
use toolcell_mcp::{
    Call, CallContext, CallResult, Cancellation, CheckedResult, ContentKind, McpTool, ServedCatalog as _,
    parse_arguments,
};
use toolcell_policy::Limit;
use toolcell_sandbox::{
    CallFailure, ComponentDigest, EndedByAsking, FoundTool, NestedEnd, NotCalled, NotCalledReason, PersonWaits,
    ProgramPlace, WantedCall, contract,
};

use super::caller::Interruptions;
use super::clock::CallClock;
use super::run::{NestedRun, Replay, RunStep};
use super::settling::whose_time;
use super::{CallOrigin, StartedCall};
use crate::catalog::{Catalog, LARGE_BYTES, content};

/// Bytes of a refusal's text at most: what problems of arguments take that a model reads.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// Where a call comes from that a tool made.
pub(super) struct Lineage {
    /// The host's number of the client's call.
    pub(super) root: u64,
    /// That of the call that made this one.
    pub(super) parent: u64,
    /// Calls above it.
    pub(super) depth: u32,
    /// Name of the tool that made it.
    pub(super) asker: String,
    /// Its component.
    asker_component: String,
    /// Its place in the run of the client's call.
    pub(super) path: String,
    /// Its place in the program of the tool that made it, as that says.
    pub(super) place: Option<ProgramPlace>,
    /// That run.
    pub(super) run: Arc<NestedRun>,
    /// Tools above it.
    above: Vec<Arc<McpTool>>,
    /// Levels that may be beneath it, by the limits of those above.
    levels: usize,
    /// Calls that each one above may still make.
    budgets: Vec<Arc<CallBudget>>,
    /// The clocks of those above, which stand still while it waits for a person.
    pub(super) clocks: Vec<Arc<dyn PersonWaits>>,
    /// The clock of the one that made it.
    clock: Arc<CallClock>,
    /// What may end the one that made it.
    pub(super) interruptions: Arc<Interruptions>,
    /// True if a call above it holds a turn for large arguments.
    pub(super) holds_turn: bool,
}

/// The calls that one call may make, with all beneath it.
pub(super) struct CallBudget(AtomicUsize);

/// A call that may make calls.
pub(super) struct CallingCall {
    catalog: Arc<Catalog>,
    id: u64,
    tool: Arc<McpTool>,
    lineage: Option<Arc<Lineage>>,
    clock: Arc<CallClock>,
    interruptions: Arc<Interruptions>,
    run: Arc<NestedRun>,
    budget: Arc<CallBudget>,
    levels: usize,
    has_large_arguments: bool,
    /// The place of its tool, whose limits it names in refusals.
    place: usize,
}

impl CallBudget {
    fn take(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Takes calls that were made in an earlier round.
    fn spend(&self, calls: usize) {
        let less = |left: usize| Some(left.saturating_sub(calls));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

impl Lineage {
    /// The time that the call above it has left.
    pub(super) fn time_left(&self) -> std::time::Duration {
        self.clock.left()
    }

    /// The failure of a call that the time of the one above it ended.
    pub(super) fn out_of_time(&self) -> String {
        let text = format!("deadline exceeded: the call of {:?} that made this one had no more time", self.asker);
        format!("{text}. {}", whose_time(&self.asker_component))
    }
}

impl CallingCall {
    /// Of a started call whose tool may call others.
    pub(super) fn of(started: &StartedCall<'_>, call: &Call, clock: &Arc<CallClock>, run: &Arc<NestedRun>) -> Self {
        let target = started.target;
        Self {
            catalog: Arc::clone(started.catalog),
            id: started.record.id(),
            tool: Arc::clone(&target.tool),
            lineage: started.lineage.clone(),
            clock: Arc::clone(clock),
            interruptions: Arc::new(Interruptions::of(started, &call.context)),
            run: Arc::clone(run),
            budget: Arc::new(CallBudget(AtomicUsize::new(target.limits.calls_max()))),
            levels: started.levels_beneath(),
            has_large_arguments: call.arguments.get().len() >= LARGE_BYTES,
            place: call.tool,
        }
    }

    /// Makes a call, unless it was made in an earlier round: then its end is in the log of the run.
    pub(super) async fn call(
        &self,
        context: &CallContext,
        sequence: u32,
        wanted: WantedCall,
        waits: Arc<dyn PersonWaits>,
    ) -> Result<NestedEnd, EndedByAsking> {
        let path = self.path(sequence);
        let tool = wanted.tool.clone();
        let arguments = ComponentDigest::of(wanted.arguments_json.as_bytes()).to_string();
        let step = RunStep { path: &path, tool: &tool, arguments: &arguments };
        let stands_at = wanted.place;
        match self.run.replay(step) {
            Replay::Live => {}
            Replay::Ended(end, beneath) => {
                self.budgets().for_each(|budget| budget.spend(beneath.saturating_add(1)));
                return Ok(*end);
            }
            Replay::Diverged(text) => return Err(EndedByAsking { refused: Some(text) }),
        }
        let catalog = self.serving();
        let call = match self.prepared(&catalog, context, &path, wanted) {
            Ok(call) => call,
            Err(refusal) => {
                let end = Err(refusal);
                let _open = self.run.begin(step);
                self.run.ended(&path, &end);
                return Ok(end);
            }
        };
        let lineage = Lineage { place: stands_at, ..self.lineage_beneath(&path, waits) };
        self.make(catalog, call, step, lineage).await
    }

    /// Makes a call that is new in this run.
    async fn make(
        &self,
        catalog: Arc<Catalog>,
        call: Call,
        step: RunStep<'_>,
        lineage: Lineage,
    ) -> Result<NestedEnd, EndedByAsking> {
        let lineage = Arc::new(lineage);
        let run = Arc::clone(&self.run);
        let path = step.path.to_owned();
        // From now on its end is waited for.
        let open = run.begin(step);
        let cancellation = call.context.cancellation.clone();
        let (tell, told) = oneshot::channel();
        let work = async move {
            let open = open;
            let mut tell = tell;
            let end = {
                let mut run = std::pin::pin!(catalog.run_nested(call, lineage));
                tokio::select! {
                    biased;
                    end = &mut run => end,
                    // The call that made it is gone: it ends as one whose caller gave up.
                    () = tell.closed() => {
                        cancellation.cancel();
                        run.await
                    }
                }
            };
            match &end {
                Ok(end) => run.ended(&path, end),
                Err(_) => run.waits(&path),
            }
            drop(open);
            drop(tell.send(end));
        };
        self.catalog.services.executor.run(Box::pin(work));
        told.await.unwrap_or_else(|_| Ok(refused(NotCalledReason::Failed, "the host could not run the tool")))
    }

    /// The call, if it may be made.
    fn prepared(
        &self,
        catalog: &Arc<Catalog>,
        context: &CallContext,
        path: &str,
        wanted: WantedCall,
    ) -> Result<Call, NotCalled> {
        let WantedCall { tool, arguments_json, .. } = wanted;
        let (place, entry) = visible(catalog, context, &tool).ok_or_else(|| {
            NotCalled::refused(NotCalledReason::Unknown, format!("there is no tool {tool:?} that this caller may call"))
        })?;
        if !self.may_still_call(catalog, &tool) {
            let asker = &self.tool.definition().name;
            let text = format!("the tool {asker:?} may not call {tool:?} any more: the manifest has changed meanwhile");
            return Err(NotCalled::refused(NotCalledReason::Denied, text));
        }
        if self.levels == 0 {
            return Err(self.no_level());
        }
        let mut above = self.lineage.iter().flat_map(|lineage| &lineage.above).chain([&self.tool]);
        if above.any(|above| above.definition().name == entry.definition().name) {
            let text = format!("the tool {tool:?} waits for this call, and cannot be called by it");
            return Err(NotCalled::refused(NotCalledReason::Denied, text));
        }
        if !self.budgets().all(|budget| budget.take()) {
            return Err(self.over(Limit::CallsMax));
        }
        let arguments = parse_arguments(arguments_json)
            .map_err(|refusal| NotCalled::refused(NotCalledReason::InvalidArguments, refusal.to_string()))?;
        Ok(Call { tool: place, arguments, context: Box::new(beneath(context, path)) })
    }

    /// The calls that this one and those above it may still make.
    fn budgets(&self) -> impl Iterator<Item = &Arc<CallBudget>> {
        self.lineage.iter().flat_map(|lineage| &lineage.budgets).chain([&self.budget])
    }

    /// The path of a call that this one makes.
    fn path(&self, sequence: u32) -> String {
        match &self.lineage {
            Some(lineage) => format!("{}.{sequence}", lineage.path),
            None => sequence.to_string(),
        }
    }

    /// The generation that serves by now: as for a client's call, what has left the manifest is not
    /// called any more.
    fn serving(&self) -> Arc<Catalog> {
        self.catalog.services.serving.get().unwrap_or_else(|| Arc::clone(&self.catalog))
    }

    /// True if this generation lets the tool make such a call, too. That of its own beginning let
    /// it.
    fn may_still_call(&self, catalog: &Arc<Catalog>, tool: &str) -> bool {
        if Arc::ptr_eq(catalog, &self.catalog) {
            return true;
        }
        let asker = catalog.tools.find(&self.tool.definition().name).and_then(|(place, _)| catalog.target(place));
        asker.is_some_and(|asker| asker.capabilities.grants().call(tool).is_ok())
    }

    /// When its run began, in milliseconds since 1970.
    pub(super) fn began_ms(&self) -> u64 {
        self.run.began_ms()
    }

    fn lineage_beneath(&self, path: &str, waits: Arc<dyn PersonWaits>) -> Lineage {
        let own = self.lineage.as_deref();
        let clock: Arc<dyn PersonWaits> = Arc::<CallClock>::clone(&self.clock);
        let above = own.map(|own| own.above.clone()).unwrap_or_default();
        let budgets = own.map(|own| own.budgets.clone()).unwrap_or_default();
        let clocks = own.map(|own| own.clocks.clone()).unwrap_or_default();
        Lineage {
            root: own.map_or(self.id, |own| own.root),
            parent: self.id,
            depth: own.map_or(0, |own| own.depth).saturating_add(1),
            asker: self.tool.definition().name.clone(),
            asker_component: self.catalog.origin(self.place).to_owned(),
            path: path.to_owned(),
            place: None,
            run: Arc::clone(&self.run),
            above: above.into_iter().chain([Arc::clone(&self.tool)]).collect(),
            levels: self.levels.saturating_sub(1),
            budgets: budgets.into_iter().chain([Arc::clone(&self.budget)]).collect(),
            clocks: clocks.into_iter().chain([clock, waits]).collect(),
            clock: Arc::clone(&self.clock),
            interruptions: Arc::clone(&self.interruptions),
            holds_turn: self.has_large_arguments || own.is_some_and(|own| own.holds_turn),
        }
    }

    /// Tools that the guest may call, those that fit the words best first.
    pub(super) fn find(&self, context: &CallContext, words: &str, most: usize) -> Vec<FoundTool> {
        let catalog = self.serving();
        let view = catalog.view(&context.caller);
        let tools = view.as_deref().unwrap_or(&catalog.tools);
        let may = tools.tools().iter().map(|tool| self.may_call(&catalog, tool)).collect();
        let found = tools.fitting(words, may, most).into_iter().map(|tool| {
            let definition = tool.served();
            FoundTool {
                name: definition.name.clone(),
                title: definition.title.clone(),
                description: definition.description.clone(),
            }
        });
        found.collect()
    }

    /// True if the caller may call a tool of this name.
    pub(super) fn has(&self, context: &CallContext, tool: &str) -> bool {
        visible(&self.serving(), context, tool).is_some()
    }

    /// The tool of this name, if the guest may call it.
    pub(super) fn describe(&self, context: &CallContext, tool: &str) -> Option<contract::GuestTool> {
        let catalog = self.serving();
        let (_, tool) = visible(&catalog, context, tool)?;
        self.may_call(&catalog, &tool).then(|| content::described(tool.served()))
    }

    fn may_call(&self, catalog: &Arc<Catalog>, tool: &McpTool) -> bool {
        let name = &tool.definition().name;
        let grants = self.catalog.target(self.place).map(|target| target.capabilities.grants());
        let may = grants.is_some_and(|grants| grants.call(name).is_ok());
        tool.is_for_models() && may && self.may_still_call(catalog, name)
    }

    /// The refusal of a call beneath the last level.
    fn no_level(&self) -> NotCalled {
        let places = &self.catalog.services.calling_places;
        let depth = self.lineage.as_ref().map_or(0, |lineage| lineage.depth);
        if usize::try_from(depth).is_ok_and(|depth| depth < places.levels()) {
            let text = match depth {
                0 => "this tool may make no calls (limit \"call_depth\")".to_owned(),
                depth => format!("this call is {depth} beneath its client's, and may make none (limit \"call_depth\")"),
            };
            return NotCalled::refused(NotCalledReason::OverLimit, text);
        }
        let text = "the host has no place for a call beneath this one (\"calls\" in [server])";
        NotCalled::refused(NotCalledReason::OverLimit, text)
    }

    fn over(&self, limit: Limit) -> NotCalled {
        let limits = self.catalog.target(self.place).map(|target| target.limits).unwrap_or_default();
        NotCalled::refused(NotCalledReason::OverLimit, CallFailure::over(limit, &limits).to_string())
    }
}

impl StartedCall<'_> {
    /// Levels of calls that may be beneath this one; 0 if its tool calls none.
    pub(super) fn levels_beneath(&self) -> usize {
        if self.target.capabilities.grants().calls().is_empty() || self.target.limits.calls_max() == 0 {
            return 0;
        }
        let above = self.lineage.as_ref().map_or(usize::MAX, |lineage| lineage.levels);
        let places = self.catalog.services.calling_places.levels();
        self.target.limits.call_depth().min(above).min(places)
    }
}

/// The tool of this name, if the caller may call it.
fn visible(catalog: &Catalog, context: &CallContext, tool: &str) -> Option<(usize, Arc<McpTool>)> {
    let view = catalog.view(&context.caller);
    let (place, entry) = view.as_deref().unwrap_or(&catalog.tools).find(tool)?;
    entry.is_for_models().then(|| (place, Arc::clone(entry)))
}

/// The context of a call beneath the one with this context, at this place of the run.
fn beneath(context: &CallContext, path: &str) -> CallContext {
    let cancellation = Cancellation::new();
    CallContext {
        request_id: context.request_id.clone(),
        revision: context.revision,
        caller: context.caller.clone(),
        client: context.client.clone(),
        trace: context.trace.clone(),
        meta_json: "{}".to_owned(),
        extensions: context.extensions.clone(),
        events: context.events.clone(),
        asking: context.asking.beneath(path, &cancellation),
        cancellation,
        task: false,
        // What it embeds goes to the tool that called it.
        keeps_resources: false,
    }
}

fn refused(reason: NotCalledReason, text: impl Into<String>) -> NestedEnd {
    Err(NotCalled::refused(reason, text))
}

impl Catalog {
    /// Runs a call of a tool's. It is checked as a client's call is.
    async fn run_nested(self: &Arc<Self>, call: Call, lineage: Arc<Lineage>) -> Result<NestedEnd, EndedByAsking> {
        if let Some(failure) = self.target(call.tool).and_then(|target| super::too_large(target, &call)) {
            self.record_refused(&call, Some(&lineage), Outcome::LimitExceeded, &failure.to_string());
            return Ok(refused(NotCalledReason::OverLimit, failure.to_string()));
        }
        let asking = call.context.asking.clone();
        let (result, traces) = self.run(call, CallOrigin::Tool(lineage)).await;
        match traces.outcome {
            // The client is asked, and its call runs again.
            Some(Outcome::InputRequired) => Err(EndedByAsking { refused: None }),
            // Its answer cannot be read: nothing came of this call.
            Some(Outcome::NotApproved | Outcome::InvalidInput) if asking.is_refused() => {
                Err(EndedByAsking { refused: Some("the client's answer cannot be read".to_owned()) })
            }
            outcome => Ok(ended(result, outcome)),
        }
    }
}

/// The end of a call, for the guest that made it.
fn ended(result: CheckedResult, outcome: Option<Outcome>) -> NestedEnd {
    let reason = match outcome {
        Some(Outcome::Ok | Outcome::Repeated) => return Ok(content::called(result.into_result())),
        Some(Outcome::ToolError) => return Err(NotCalled::Failed(content::called(result.into_result()))),
        Some(Outcome::InvalidInput) => NotCalledReason::InvalidArguments,
        Some(Outcome::LimitExceeded | Outcome::OutOfFuel | Outcome::OutOfMemory | Outcome::Deadline) => {
            NotCalledReason::OverLimit
        }
        Some(Outcome::Busy | Outcome::RateLimited) => NotCalledReason::Busy,
        Some(Outcome::NotApproved) => NotCalledReason::NotApproved,
        Some(Outcome::NotAllowed) => NotCalledReason::Denied,
        Some(Outcome::Cancelled) => NotCalledReason::Cancelled,
        _ => NotCalledReason::Failed,
    };
    let text = text_of(&result).unwrap_or("the call ended without a result");
    refused(reason, clipped(text))
}

fn text_of(result: &CallResult) -> Option<&str> {
    result.content.iter().find_map(|item| match &item.kind {
        ContentKind::Text(text) => Some(text.as_str()),
        _ => None,
    })
}

fn clipped(text: &str) -> String {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default().to_owned()
}
