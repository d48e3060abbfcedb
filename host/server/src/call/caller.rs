//! The sandbox's view of an MCP caller: progress, log, cancellation, updates of resources, and the
//! metadata of one request. Must not hold: how a guest is ended, or how clients are notified.
//!
//! Clients are only notified of addresses of the call's own component. Past the rate, all resources
//! of the component count as changed: nothing is lost.
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toolcell_audit::Outcome;
use toolcell_mcp::{CallContext, Cancellation, ClientLogLevel as McpLevel, ResourceNews, normal_uri, sanitize};
use toolcell_policy::{Askable, Denial};
use toolcell_sandbox::{
    AskKind, AskResult, CallerLink, ConsentAnswer, FoundTool, GuestLogLevel, Inquiry, NestedFuture, NotCalled,
    NotCalledReason, PersonWaits, Redactor, Requested, Trace, WantedCall, contract,
};
use toolcell_shared::{Allowance, Pace};

use super::StartedCall;
use super::clock::{CallClock, StoppedClocks};
use super::consent::Consenting;
use super::nested::{CallingCall, Lineage};
use super::questions::Questions;
use super::record::{CallName, DenialRecords, log_call};
use crate::catalog::{DeclaredResources, Services};
use crate::observing::activity::{CallPhase, LiveCall};
use crate::observing::traces::CallTrace;

/// Changes that one call reports at once, and then per second. Clients are notified of one address
/// at most ten times a second; a call that fills a page of a list changes a hundred.
const NOTIFIED_PER_SECOND: u64 = 100;

/// Entries of state that one operation changes. More of them are reported as a change of every
/// entry of the component: each is compared with up to 64 rules.
const ENTRIES_MAX: usize = 256;

/// The connection of one call to its caller.
pub struct McpCaller {
    pub(super) context: Box<CallContext>,
    pub(super) denials: DenialRecords,
    pub(super) questions: Questions,
    /// Permission requests to a person, if the manifest wants them.
    pub(super) consenting: Option<Consenting>,
    /// Progress reports that the rate still allows.
    pub(super) progress: Mutex<Allowance>,
    pub(super) interruptions: Interruptions,
    /// The call in the console, if there is one.
    pub(super) live: Option<Arc<LiveCall>>,
    pub(super) trace: Option<Arc<CallTrace>>,
    /// Notifies clients of resources that it changes.
    pub(super) notifier: CallNotifier,
    /// Set once the guest got the error that shared state is away: the reason.
    pub(super) state_away: OnceLock<String>,
    /// Its time, and where it comes from.
    pub(super) clock: Arc<CallClock>,
    pub(super) lineage: Option<Arc<Lineage>>,
    /// The calls that it makes, if its tool may make any.
    pub(super) calling: Option<CallingCall>,
    /// The guest's log lines with their levels, if a person calls it by hand. The limit `log`
    /// bounds them.
    pub(super) logged: Option<Mutex<String>>,
}

impl McpCaller {
    /// Takes the guest's log lines.
    pub fn take_log(&self) -> String {
        let logged = self.logged.as_ref().map(|logged| logged.lock());
        logged.map(|mut logged| std::mem::take(&mut *logged)).unwrap_or_default()
    }

    pub async fn ended(&self, outcome: Outcome) {
        if let Some(consenting) = &self.consenting {
            consenting.ended(outcome).await;
        }
    }

    /// Why shared state was unreachable when the guest first asked for it, if it was.
    pub fn missed_state(&self) -> Option<&str> {
        self.state_away.get().map(String::as_str)
    }

    /// Shows the call's current phase. Only the answer to a question ends the phase of that
    /// question.
    fn enter(&self, phase: CallPhase) {
        self.live.iter().for_each(|live| live.enter(phase));
    }

    /// Stops the clocks of the call and of those above it.
    fn stopped_clocks(&self) -> StoppedClocks<'_> {
        let above = self.lineage.iter().flat_map(|lineage| &lineage.clocks).map(|clock| &**clock);
        StoppedClocks::of(std::iter::once(&*self.clock as &dyn PersonWaits).chain(above))
    }

    /// The guest has ended, and printed this text.
    pub fn ran(&self, text: &str) {
        if let Some(live) = self.live.as_ref().filter(|live| live.notes_parts()) {
            live.ran();
            text.lines().for_each(|line| live.printed(line));
        }
    }

    /// Takes the call's secrets out of texts.
    pub const fn redactor(&self) -> &Redactor {
        &self.denials.redactor
    }

    /// Name of the call in the log.
    pub fn call_name(&self) -> CallName<'_> {
        CallName::new(self.denials.id(), &self.context, self.denials.tool())
    }
}

impl CallerLink for McpCaller {
    fn instantiated(&self) {
        self.trace.iter().for_each(|trace| trace.instantiated());
        self.live.iter().for_each(|live| live.instantiated());
    }

    fn notes_use(&self) -> bool {
        self.live.is_some()
    }

    fn used(&self, fuel: u64, memory_bytes: u64) {
        self.live.iter().for_each(|live| live.note_used(fuel, memory_bytes));
    }

    fn notes_requests(&self) -> bool {
        self.trace.is_some() || self.live.as_ref().is_some_and(|live| live.notes_parts())
    }

    fn requested(&self, request: &Requested<'_>) {
        self.trace.iter().for_each(|trace| trace.requested(request));
        if let Some(live) = self.live.as_ref().filter(|live| live.notes_parts()) {
            // Paths may be private.
            let ask = request.ask;
            let name = format!("{} {}://{}", ask.method(), ask.scheme().name(), ask.host());
            let failed = request.came.is_ok_and(|status| status >= 400) || request.came.is_err();
            live.requested(&name, request.began, failed);
        }
    }

    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        // A client hears of its own call.
        if self.lineage.is_some() {
            return;
        }
        let mut allowance = self.progress.lock();
        if allowance.take(Instant::now()).is_ok() {
            self.context.events.progress(progress, total, message);
        }
    }

    fn updated(&self, uri: &str) {
        self.notifier.updated(uri);
    }

    fn notes_state(&self) -> bool {
        self.notifier.keeps_entries
    }

    fn state_changed(&self, bucket: &str, keys: &[String]) {
        self.notifier.state_changed(bucket, keys);
    }

    fn log(&self, level: GuestLogLevel, message: &str) {
        self.context.events.log(mcp_level(level), message, Some(self.denials.tool()));
        self.live.iter().for_each(|live| live.printed(message));
        let name = self.call_name();
        let text = sanitize::line(message);
        if let Some(logged) = &self.logged {
            let mut logged = logged.lock();
            logged.push_str(&format!("{}: {text}\n", mcp_level(level).name()));
        }
        match level {
            GuestLogLevel::Debug => log_call!(debug, name, "{text}"),
            GuestLogLevel::Info | GuestLogLevel::Notice => log_call!(info, name, "{text}"),
            GuestLogLevel::Warning => log_call!(warn, name, "{text}"),
            GuestLogLevel::Error | GuestLogLevel::Critical | GuestLogLevel::Alert | GuestLogLevel::Emergency => {
                log_call!(error, name, "{text}");
            }
        }
    }

    fn log_enabled(&self, level: GuestLogLevel) -> bool {
        let operator = match level {
            GuestLogLevel::Debug => tracing::enabled!(tracing::Level::DEBUG),
            GuestLogLevel::Info | GuestLogLevel::Notice => tracing::enabled!(tracing::Level::INFO),
            GuestLogLevel::Warning => tracing::enabled!(tracing::Level::WARN),
            _ => tracing::enabled!(tracing::Level::ERROR),
        };
        operator || self.logged.is_some() || self.context.events.log_enabled(mcp_level(level))
    }

    fn denied(&self, denial: &Denial) {
        self.denials.write(denial);
        let said = match denial.hint() {
            Some(hint) => format!("{denial}; {hint}"),
            None => denial.to_string(),
        };
        log_call!(warn, self.call_name(), "{}", sanitize::line(&self.denials.text(&said)));
    }

    fn misused(&self, what: &str) {
        log_call!(warn, self.call_name(), "its sandbox process broke the rules of a door: {}", sanitize::line(what));
    }

    fn state_away(&self, why: &str) {
        if self.state_away.set(why.to_owned()).is_ok() {
            log_call!(warn, self.call_name(), "state that replicas share is away: {}", sanitize::line(why));
        }
    }

    fn name(&self) -> &str {
        self.context.caller.name()
    }

    fn is_cancelled(&self) -> bool {
        self.interruptions.cause().is_some()
    }

    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.interruptions.wait())
    }

    fn supports(&self, kind: AskKind) -> bool {
        self.questions.supports(kind)
    }

    fn supports_sampling_tools(&self) -> bool {
        self.questions.supports_sampling_tools()
    }

    fn ask(&self, asks: Vec<Inquiry>) -> Pin<Box<dyn Future<Output = AskResult> + Send + '_>> {
        Box::pin(async move {
            self.enter(CallPhase::Asking);
            let clocks = self.stopped_clocks();
            let asked = self.questions.ask(asks).await;
            drop(clocks);
            self.enter(CallPhase::Running);
            asked
        })
    }

    fn has_consent(&self, offer: &Askable) -> bool {
        self.consenting.as_ref().is_some_and(|consenting| consenting.has(offer))
    }

    fn consent<'a>(&'a self, offer: &'a Askable) -> Pin<Box<dyn Future<Output = ConsentAnswer> + Send + 'a>> {
        match &self.consenting {
            Some(consenting) => Box::pin(async move {
                self.enter(CallPhase::Asking);
                let clocks = self.stopped_clocks();
                let consent = consenting.ask(offer).await;
                drop(clocks);
                self.enter(CallPhase::Running);
                consent
            }),
            None => Box::pin(std::future::ready(ConsentAnswer::Refused)),
        }
    }

    fn call_tool(&self, sequence: u32, wanted: WantedCall, waits: Arc<dyn PersonWaits>) -> NestedFuture<'_> {
        let none = NotCalled::refused(NotCalledReason::Denied, "this tool may call no other");
        match &self.calling {
            Some(calling) => Box::pin(calling.call(&self.context, sequence, wanted, waits)),
            None => Box::pin(std::future::ready(Ok(Err(none)))),
        }
    }

    fn find_tools(&self, words: &str, most: usize) -> Vec<FoundTool> {
        self.calling.as_ref().map(|calling| calling.find(&self.context, words, most)).unwrap_or_default()
    }

    fn has_tool(&self, tool: &str) -> bool {
        self.calling.as_ref().is_some_and(|calling| calling.has(&self.context, tool))
    }

    fn describe_tool(&self, tool: &str) -> Option<contract::GuestTool> {
        self.calling.as_ref()?.describe(&self.context, tool)
    }

    fn run_began(&self) -> Option<u64> {
        self.calling.as_ref().map(CallingCall::began_ms)
    }

    fn trace(&self) -> Option<Trace> {
        self.context.trace.as_ref().map(|trace| Trace {
            traceparent: trace.traceparent.clone(),
            tracestate: trace.tracestate.clone(),
            baggage: trace.baggage.clone(),
        })
    }

    fn meta_json(&self) -> String {
        self.context.meta_json.clone()
    }

    fn extensions_json(&self) -> String {
        self.context.extensions.as_deref().unwrap_or("{}").to_owned()
    }
}

fn mcp_level(level: GuestLogLevel) -> McpLevel {
    match level {
        GuestLogLevel::Debug => McpLevel::Debug,
        GuestLogLevel::Info => McpLevel::Info,
        GuestLogLevel::Notice => McpLevel::Notice,
        GuestLogLevel::Warning => McpLevel::Warning,
        GuestLogLevel::Error => McpLevel::Error,
        GuestLogLevel::Critical => McpLevel::Critical,
        GuestLogLevel::Alert => McpLevel::Alert,
        GuestLogLevel::Emergency => McpLevel::Emergency,
    }
}

/// Everything that may end a call early.
#[derive(Clone)]
pub struct Interruptions {
    /// The caller, or the end of its connection.
    caller: Cancellation,
    /// A reload that took rights away from its tool.
    narrowed: Option<Cancellation>,
    /// The call in the console, where operators may end it.
    live: Option<Arc<LiveCall>>,
    /// What may end the call that made it.
    above: Option<Arc<Self>>,
}

/// Who ended a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    Operator,
    Caller,
    Narrowing,
}

impl Interruption {
    /// One clause for the audit.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Operator => "the operator ended the call",
            Self::Caller => "the call was cancelled",
            Self::Narrowing => "a reload took rights away from the tool",
        }
    }
}

impl Interruptions {
    pub fn of(started: &StartedCall<'_>, context: &CallContext) -> Self {
        Self {
            caller: context.cancellation.clone(),
            narrowed: started.target.narrowed.as_ref().map(|narrowed| narrowed.cancellation.clone()),
            live: started.live().map(Arc::clone),
            above: started.lineage.as_deref().map(|lineage| Arc::clone(&lineage.interruptions)),
        }
    }

    /// Who ended the call, if somebody did.
    pub fn cause(&self) -> Option<Interruption> {
        if self.live.as_ref().is_some_and(|live| live.is_stopped()) {
            return Some(Interruption::Operator);
        }
        if self.caller.is_cancelled() {
            return Some(Interruption::Caller);
        }
        self.narrowed.as_ref().is_some_and(Cancellation::is_cancelled).then_some(Interruption::Narrowing)
    }

    /// Who ended the call or one above it, if somebody did. Those beneath an ended call end soon
    /// after it.
    pub fn cause_in_run(&self) -> Option<Interruption> {
        self.cause().or_else(|| self.above.as_deref()?.cause_in_run())
    }

    /// Waits until somebody ends the call.
    pub async fn wait(&self) {
        let stopped = self.live.as_ref().map(|live| &live.stop);
        if self.narrowed.is_none() && stopped.is_none() {
            return self.caller.cancelled().await;
        }
        tokio::select! {
            () = self.caller.cancelled() => {}
            () = cancelled(self.narrowed.as_ref()) => {}
            () = cancelled(stopped) => {}
        }
    }
}

/// Waits for the cancellation; forever without one.
async fn cancelled(cancellation: Option<&Cancellation>) {
    match cancellation {
        Some(cancellation) => cancellation.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Notifies clients of the resources that one call changes.
pub struct CallNotifier {
    services: Arc<Services>,
    resources: Arc<DeclaredResources>,
    component: String,
    caller: String,
    /// True if entries of state are resources.
    keeps_entries: bool,
    allowance: Mutex<Allowance>,
}

impl CallNotifier {
    /// For a call of this component by this caller.
    pub fn new(services: &Arc<Services>, resources: &Arc<DeclaredResources>, component: &str, caller: &str) -> Self {
        let keeps_entries = resources.entries_of(component).next().is_some();
        Self {
            services: Arc::clone(services),
            resources: Arc::clone(resources),
            component: component.to_owned(),
            caller: caller.to_owned(),
            keeps_entries,
            allowance: Mutex::new(Allowance::new(Pace::new(NOTIFIED_PER_SECOND, Duration::from_secs(1)))),
        }
    }

    /// The guest reports that the content at this address has changed.
    pub fn updated(&self, uri: &str) {
        // Checked before the lookup, whose time grows with the number of templates.
        if !self.may_notify() {
            self.services.news.notify_of_all(&self.component, None);
            return;
        }
        let reads = self.resources.reader(uri).map(|(_, origin)| origin.component.name());
        if reads == Some(&self.component) {
            self.notify(None, [normal_uri(uri)]);
        }
    }

    /// Entries of a bucket have changed.
    pub fn state_changed(&self, bucket: &str, keys: &[String]) {
        for entries in self.resources.entries_of(&self.component) {
            let to = entries.is_per_caller().then(|| ResourceNews::to_caller(&self.caller));
            if !entries.is_of(bucket) {
                continue;
            }
            if keys.len() > ENTRIES_MAX || !self.may_notify() {
                self.services.news.notify_of_all(&self.component, to);
            } else {
                self.notify(to, keys.iter().filter_map(|key| entries.uri_of(key)));
            }
        }
    }

    fn may_notify(&self) -> bool {
        self.allowance.lock().take(Instant::now()).is_ok()
    }

    fn notify(&self, to: Option<String>, uris: impl IntoIterator<Item = String>) {
        // These changes have no version number.
        let updated = uris.into_iter().map(|uri| (uri, 0)).collect();
        self.services.news.notify(&self.component, ResourceNews { to, updated, ..ResourceNews::default() });
    }
}
