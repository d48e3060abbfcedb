//! The sandbox's view of an MCP caller: progress, log, cancellation and request metadata of one
//! call.
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use toolcell_audit::Outcome;
use toolcell_mcp::{CallContext, ClientLogLevel as McpLevel, sanitize};
use toolcell_policy::{Askable, Denial, Limits};
use toolcell_sandbox::{AskKind, AskResult, CallerLink, ConsentAnswer, GuestLogLevel, Inquiry, Requested, Trace};
use toolcell_shared::Allowance;

use super::consent::Consenting;
use super::interruption::Interruptions;
use super::name::{CallName, log_call};
use super::questions::Questions;
use super::record::{AskRecords, DenialRecords};
use super::telling::Telling;
use crate::catalog::pace;
use crate::observing::activity::{CallPhase, LiveCall};
use crate::observing::traces::CallTrace;

/// The connection of one call to its caller.
pub struct McpCaller {
    context: Box<CallContext>,
    denials: DenialRecords,
    questions: Questions,
    /// Questions about what no rule allows, where the manifest wants them.
    consenting: Option<Consenting>,
    /// Progress reports that the rate still allows.
    progress: Mutex<Allowance>,
    interruptions: Interruptions,
    /// The call in the console, if there is one.
    live: Option<Arc<LiveCall>>,
    /// Trace of the call.
    trace: Option<Arc<CallTrace>>,
    /// News of resources that it changes.
    telling: Option<Telling>,
    /// Set once the guest was told that shared state is away: the reason.
    state_away: OnceLock<String>,
}

impl McpCaller {
    pub fn new(
        limits: &Limits,
        context: Box<CallContext>,
        denials: DenialRecords,
        asks: AskRecords,
        interruptions: Interruptions,
    ) -> Self {
        let questions = Questions::new(&context, asks, limits, interruptions.clone());
        let progress = Mutex::new(Allowance::new(pace(limits.progress())));
        Self {
            context,
            denials,
            questions,
            consenting: None,
            progress,
            interruptions,
            live: None,
            trace: None,
            telling: None,
            state_away: OnceLock::new(),
        }
    }

    /// Also asks about what no rule allows.
    pub fn consenting(self, consenting: Option<Consenting>) -> Self {
        Self { consenting, ..self }
    }

    /// Also tells of resources that the call changes.
    pub fn telling(self, telling: Telling) -> Self {
        Self { telling: Some(telling), ..self }
    }

    /// The call has ended.
    pub async fn ended(&self, outcome: Outcome) {
        if let Some(consenting) = &self.consenting {
            consenting.ended(outcome).await;
        }
    }

    /// Also shows what it does in the console, whose operators may end it.
    pub fn shown_as(self, live: Option<Arc<LiveCall>>) -> Self {
        Self { live, ..self }
    }

    /// Records the call's times in this trace.
    pub fn traced(self, trace: Option<Arc<CallTrace>>) -> Self {
        Self { trace, ..self }
    }
}

impl McpCaller {
    /// The reason why shared state was away when the guest first asked for it, if it was.
    pub fn missed_state(&self) -> Option<&str> {
        self.state_away.get().map(String::as_str)
    }

    /// Shows where the call is. The phase of a question is left by its answer.
    fn enter(&self, phase: CallPhase) {
        self.live.iter().for_each(|live| live.enter(phase));
    }

    /// The guest has ended, and printed this text.
    pub fn ran(&self, text: &str) {
        if let Some(live) = self.live.as_ref().filter(|live| live.notes_parts()) {
            live.ran();
            text.lines().for_each(|line| live.printed(line));
        }
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
        let mut allowance = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if allowance.take(Instant::now()).is_ok() {
            self.context.events.progress(progress, total, message);
        }
    }

    fn updated(&self, uri: &str) {
        self.telling.iter().for_each(|telling| telling.updated(uri));
    }

    fn notes_state(&self) -> bool {
        self.telling.as_ref().is_some_and(Telling::notes_state)
    }

    fn state_changed(&self, bucket: &str, keys: &[String]) {
        self.telling.iter().for_each(|telling| telling.state_changed(bucket, keys));
    }

    fn log(&self, level: GuestLogLevel, message: &str) {
        self.context.events.log(mcp_level(level), message, Some(self.denials.tool()));
        self.live.iter().for_each(|live| live.printed(message));
        let name = self.call_name();
        let text = sanitize::line(message);
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
        operator || self.context.events.log_enabled(mcp_level(level))
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
            let asked = self.questions.ask(asks).await;
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
                let consent = consenting.ask(offer).await;
                self.enter(CallPhase::Running);
                consent
            }),
            None => Box::pin(std::future::ready(ConsentAnswer::Refused)),
        }
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
