//! The checks of a tool's arguments and results in a sandbox process.
//!
//! Short checks run on the process's one thread. Checks that may take longer than a guest's tick,
//! and schemas that take longer to compile, go to a thread of their own.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;
use toolcell_policy::{Limit, Limits};
use toolcell_schema::{ArgumentProblems, GivenUp, Patience, Schema, SchemaBudget, SchemaTexts, Schemas};

use super::caller::RemoteCaller;
use super::check_thread::CheckThread;
use toolcell_wall::caller::CallerLink as _;
use toolcell_wall::contract::GuestResult;
use toolcell_wall::failure::CallFailure;
use toolcell_wall::report::CallReport;

/// Least time to check arguments, including the wait for the thread. It holds for calls that may
/// wait less than this. A check needs a tenth of it at most. The host ends a process only if it
/// takes longer.
const ARGUMENTS_WITHIN: Duration = Duration::from_secs(1);

/// Least time to check a result, for calls that used up their deadline. Any check takes at most
/// about this much of one core.
const RESULT_WITHIN: Duration = Duration::from_millis(100);

/// Time and memory that a component has for compiling the schemas of its tools, and the thread for
/// long checks.
#[derive(Clone)]
pub(super) struct CompileBudget {
    thread: CheckThread,
    memory: Arc<Mutex<SchemaBudget>>,
    /// Time for the schemas of one tool.
    time: Duration,
}

/// Arguments as the host sent them.
pub(super) struct GivenArguments {
    pub(super) text: String,
    /// True if they are in the form of their schema already. The host has checked rules on them, so
    /// the guest gets these and no others.
    pub(super) is_conformed: bool,
}

/// The checks of one tool.
pub(super) struct ToolChecks {
    schemas: Arc<SchemasOnce>,
    /// False if the tool refuses exactly the arguments that its schema refuses, with a better
    /// explanation.
    checks_arguments: bool,
}

/// The schemas of one tool.
struct SchemasOnce {
    texts: SchemaTexts,
    budget: CompileBudget,
    /// Compiled when a call first needs them.
    compiled: OnceCell<Arc<Schemas>>,
}

/// The schema that a check uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Picked {
    Input,
    /// That of arguments which are in its form already.
    ConformedInput,
    Output,
}

impl Picked {
    fn of(self, schemas: &Schemas) -> Option<&Schema> {
        match self {
            Self::Input | Self::ConformedInput => Some(schemas.input()),
            Self::Output => schemas.output(),
        }
    }

    /// Checks a text and returns it. The guest gets arguments in the form that their schema
    /// defines.
    fn check(self, schema: &Schema, text: String, patience: &Patience) -> CheckedText {
        let rewritten = (self == Self::Input).then(|| schema.rewritten(&text)).flatten();
        let text = rewritten.unwrap_or(text);
        let verdict = schema.check(&text, patience);
        CheckedText { text, verdict }
    }
}

/// A text, and the problems found in it.
struct CheckedText {
    text: String,
    verdict: Result<(), ArgumentProblems>,
}

/// Why a check has no result.
enum Unchecked {
    /// The caller has given up.
    Cancelled,
    /// The time was up.
    Late,
    /// An internal failure, as a sentence.
    Failed(String),
}

impl Unchecked {
    /// How a call ends if its check was to be done `within` this time.
    fn failure(self, within: Duration, limits: &Limits) -> CallFailure {
        match self {
            Self::Cancelled => CallFailure::Cancelled,
            Self::Late if within < limits.deadline() => CallFailure::Busy,
            Self::Late => CallFailure::over(Limit::Deadline, limits),
            Self::Failed(detail) => CallFailure::Host { detail },
        }
    }
}

impl CompileBudget {
    pub(super) fn new(time: Duration, thread: CheckThread) -> Self {
        Self { thread, memory: Arc::new(Mutex::new(SchemaBudget::within(time))), time }
    }

    /// Compiles the schemas of one tool. Their memory is not charged yet: another call may compile
    /// them first.
    fn compile(&self, texts: &SchemaTexts) -> Result<Schemas, Unchecked> {
        let mut budget = self.memory.lock().unwrap_or_else(PoisonError::into_inner).again_within(self.time);
        texts.compile(&mut budget).map_err(|problems| {
            // They compiled when the component was loaded.
            if budget.is_used_up() {
                return Unchecked::Late;
            }
            let first = problems.first().map(ToString::to_string).unwrap_or_default();
            Unchecked::Failed(format!("its schemas do not compile here: {first}"))
        })
    }

    /// Charges the memory of schemas that are kept.
    fn take(&self, schemas: &Schemas) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).take(schemas.bytes());
    }
}

impl ToolChecks {
    pub(super) fn new(texts: SchemaTexts, checks_arguments: bool, budget: CompileBudget) -> Self {
        Self { schemas: Arc::new(SchemasOnce { texts, budget, compiled: OnceCell::new() }), checks_arguments }
    }

    /// Checks arguments before anything of their call runs, and returns them.
    ///
    /// # Errors
    /// They do not fit, or the check could not be done.
    pub(super) async fn arguments(
        &self,
        given: GivenArguments,
        limits: &Limits,
        caller: &Arc<RemoteCaller>,
    ) -> Result<String, CallFailure> {
        let GivenArguments { text, is_conformed } = given;
        if !self.checks_arguments {
            return Ok(text);
        }
        let pick = if is_conformed { Picked::ConformedInput } else { Picked::Input };
        let within = limits.deadline().min(limits.queue_wait().max(ARGUMENTS_WITHIN));
        match self.check(pick, text, within, caller).await {
            Ok(CheckedText { text, verdict: Ok(()) }) => Ok(text),
            Ok(CheckedText { verdict: Err(problems), .. }) => {
                Err(CallFailure::Unfit { problems: problems.to_string() })
            }
            Err(reason) => Err(reason.failure(within, limits)),
        }
    }

    /// Checks the structured part of an answer, and notes its problems in the report.
    pub(super) async fn result(
        &self,
        report: &mut CallReport<GuestResult>,
        limits: &Limits,
        caller: &Arc<RemoteCaller>,
    ) {
        let Ok(answer) = &mut report.outcome else { return };
        if answer.is_error || self.schemas.texts.output.is_none() {
            return;
        }
        let Some(text) = answer.structured_json.take() else { return };
        let within = limits.deadline().saturating_sub(report.usage.duration).max(RESULT_WITHIN);
        match self.check(Picked::Output, text, within, caller).await {
            Ok(CheckedText { text, verdict }) => {
                answer.structured_json = Some(text);
                report.unfit = verdict.err().map(|problems| problems.to_string());
            }
            // An unchecked result is never passed on.
            Err(reason) => report.outcome = Err(reason.failure(limits.deadline(), limits)),
        }
    }

    /// Checks a text against one of the schemas, and returns it.
    async fn check(
        &self,
        pick: Picked,
        text: String,
        within: Duration,
        caller: &Arc<RemoteCaller>,
    ) -> Result<CheckedText, Unchecked> {
        let until = Instant::now().checked_add(within);
        let schemas = match self.schemas.compiled.get() {
            Some(schemas) => Arc::clone(schemas),
            None => {
                // If this call gives up, later ones still use what was compiled.
                let schemas = Arc::clone(&self.schemas);
                let schemas = in_time(tokio::spawn(async move { schemas.compiled().await }), within, caller).await??;
                // They may be ready in the very moment that the wait for them ends.
                if until.is_some_and(|until| Instant::now() >= until) {
                    return Err(Unchecked::Late);
                }
                schemas
            }
        };
        let Some(schema) = pick.of(&schemas) else { return Ok(CheckedText { text, verdict: Ok(()) }) };
        let CheckedText { text, verdict } = if schema.is_long(&text) {
            let patience = Patience { until, given_up: Some(Arc::<RemoteCaller>::clone(caller)) };
            let work = self.schemas.budget.thread.run(move || match pick.of(&schemas) {
                Some(schema) => pick.check(schema, text, &patience),
                None => CheckedText { text, verdict: Ok(()) },
            });
            let left = until.map_or(within, |until| until.saturating_duration_since(Instant::now()));
            in_time(work, left, caller).await?
        } else {
            pick.check(schema, text, &Patience { until, given_up: None })
        };
        match verdict {
            Err(problems) if problems.is_verdict() => Ok(CheckedText { text, verdict: Err(problems) }),
            Err(_) if caller.is_cancelled() => Err(Unchecked::Cancelled),
            Err(_) => Err(Unchecked::Late),
            Ok(()) => Ok(CheckedText { text, verdict: Ok(()) }),
        }
    }
}

impl SchemasOnce {
    async fn compiled(&self) -> Result<Arc<Schemas>, Unchecked> {
        self.compiled.get_or_try_init(|| self.compile()).await.cloned()
    }

    async fn compile(&self) -> Result<Arc<Schemas>, Unchecked> {
        let compiled = if self.texts.are_simple() {
            self.budget.compile(&self.texts)
        } else {
            let budget = self.budget.clone();
            let texts = self.texts.clone();
            let work = self.budget.thread.run(move || budget.compile(&texts));
            work.await.unwrap_or_else(|_| Err(Unchecked::Failed("compiling its schemas failed".to_owned())))
        };
        compiled.inspect(|schemas| self.budget.take(schemas)).map(Arc::new)
    }
}

/// Waits for work on another thread, no longer than the caller does.
async fn in_time<T, E>(
    work: impl Future<Output = Result<T, E>>,
    within: Duration,
    caller: &Arc<RemoteCaller>,
) -> Result<T, Unchecked> {
    tokio::select! {
        biased;
        done = work => done.map_err(|_| Unchecked::Failed("the check of a value failed".to_owned())),
        () = caller.cancelled() => Err(Unchecked::Cancelled),
        () = tokio::time::sleep(within) => Err(Unchecked::Late),
    }
}

impl GivenUp for RemoteCaller {
    fn is_given_up(&self) -> bool {
        self.is_cancelled()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use toolcell_policy::Limit;
    use toolcell_walls::link::{self, Receiver};

    use super::*;
    use toolcell_wall::message::CallerFacts;

    /// A pattern whose automaton is slow for each byte.
    const SLOW: &str = r#"{"type":"object","properties":{"bits":{"pattern":"^[01]*1[01]{1900}2"}}}"#;

    async fn caller() -> (Arc<RemoteCaller>, [Receiver; 2]) {
        let (ours, theirs) = link::pair().unwrap();
        let (_, host) = link::open(ours).unwrap();
        let (sender, receiver) = link::join(theirs).await.unwrap();
        let name = "local".to_owned();
        let meta_json = "{}".to_owned();
        let extensions_json = meta_json.clone();
        let facts = CallerFacts {
            name,
            log_levels: 0,
            times: false,
            asks: 0,
            sampling_tools: false,
            trace: None,
            meta_json,
            extensions_json,
        };
        (Arc::new(RemoteCaller::new(1, facts, sender, &Limits::default())), [host, receiver])
    }

    fn checks(input: &str, output: Option<&str>) -> ToolChecks {
        let texts = SchemaTexts { input: input.to_owned(), output: output.map(str::to_owned) };
        ToolChecks::new(texts, true, CompileBudget::new(Duration::from_secs(60), CheckThread::start().unwrap()))
    }

    fn given(text: &str) -> GivenArguments {
        GivenArguments { text: text.to_owned(), is_conformed: false }
    }

    fn text_of_bits(count: usize) -> String {
        format!(r#"{{"bits":"{}"}}"#, "01".repeat(count))
    }

    fn bits(count: usize) -> GivenArguments {
        given(&text_of_bits(count))
    }

    fn report(structured: &str, is_error: bool) -> CallReport<GuestResult> {
        let structured_json = Some(structured.to_owned());
        CallReport::without_running(GuestResult { content: Vec::new(), structured_json, is_error, meta_json: None })
    }

    #[tokio::test]
    async fn arguments_are_checked_before_a_call_and_results_behind_it() {
        let (caller, _link) = caller().await;
        let limits = Limits::default();
        let input = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
        let checks = checks(input, Some(r#"{"type":"object","properties":{"n":{"minimum":1}}}"#));
        assert_eq!(checks.arguments(given(r#"{"n":1}"#), &limits, &caller).await, Ok(r#"{"n":1}"#.to_owned()));
        for (arguments, expected) in
            [("{}", "- (root): \"n\" is required"), (r#"{"n":"1"}"#, "- /n: must be of type integer")]
        {
            let refused = checks.arguments(given(arguments), &limits, &caller).await;
            assert_eq!(refused, Err(CallFailure::Unfit { problems: expected.to_owned() }));
        }
        for (structured, is_error, expected) in [
            (r#"{"n":1}"#, false, None),
            (r#"{"n":0}"#, false, Some("- /n: must be at least 1")),
            (r#"{"n":0}"#, true, None),
            ("{", false, Some("- (root): it is not valid JSON")),
        ] {
            let mut report = report(structured, is_error);
            checks.result(&mut report, &limits, &caller).await;
            assert_eq!(report.unfit.as_deref(), expected, "{structured}");
            assert_eq!(report.outcome.unwrap().structured_json.as_deref(), Some(structured));
        }
    }

    #[tokio::test]
    async fn arguments_that_the_host_has_brought_into_form_stay_as_they_are() {
        let (caller, _link) = caller().await;
        let limits = Limits::default();
        let checks = checks(r#"{"type":"object","properties":{"n":{"type":"integer"},"t":{"type":"string"}}}"#, None);
        let text = r#"{"n":1.0,"t":null}"#;
        assert_eq!(checks.arguments(given(text), &limits, &caller).await, Ok(r#"{"n":1}"#.to_owned()));
        let conformed = |text: &str| GivenArguments { text: text.to_owned(), is_conformed: true };
        let refused = checks.arguments(conformed(text), &limits, &caller).await;
        assert_eq!(refused, Err(CallFailure::Unfit { problems: "- /t: must be of type string".to_owned() }));
        let kept = checks.arguments(conformed(r#"{"n":1.0}"#), &limits, &caller).await;
        assert_eq!(kept, Ok(r#"{"n":1.0}"#.to_owned()));
    }

    #[tokio::test]
    async fn a_long_check_leaves_the_thread_to_others_and_ends() {
        let (caller, _link) = caller().await;
        let limits = Limits::default();
        let checks = checks(SLOW, Some(SLOW));
        assert!(!checks.schemas.texts.are_simple());
        let others = async {
            let mut turns = 0_u64;
            loop {
                tokio::task::yield_now().await;
                turns += 1;
                if checks.schemas.compiled.get().is_some() && turns > 1_000 {
                    return turns;
                }
            }
        };
        let (refused, turns) = tokio::join!(checks.arguments(bits(20_000), &limits, &caller), others);
        assert!(turns > 1_000);
        let Err(CallFailure::Unfit { problems }) = refused else { panic!("{refused:?}") };
        assert!(problems.starts_with("- (root): checking it would take too long"), "{problems}");
        let mut report = report(&text_of_bits(20_000), false);
        checks.result(&mut report, &limits, &caller).await;
        assert_eq!(report.unfit, Some(problems));
    }

    #[tokio::test]
    async fn nobody_waits_for_a_check_past_its_time_or_its_caller() {
        let (caller, _link) = caller().await;
        let checks = checks(SLOW, None);
        let brief = Limits::default().with(Limit::Deadline, 1).unwrap();
        let late = checks.arguments(bits(20_000), &brief, &caller).await;
        assert_eq!(late, Err(CallFailure::over(Limit::Deadline, &brief)));
        // Compiling goes on for later calls, however short their time is.
        while checks.schemas.compiled.get().is_none() {
            tokio::task::yield_now().await;
        }
        caller.cancel();
        let cancelled = checks.arguments(bits(20_000), &Limits::default(), &caller).await;
        assert_eq!(cancelled, Err(CallFailure::Cancelled));
    }

    /// Keeps the thread for long checks busy with something else.
    #[tokio::test]
    async fn a_check_that_gets_no_turn_is_told_as_the_deadline_or_as_busy_and_never_as_a_verdict() {
        let (caller, _link) = caller().await;
        let checks = checks(SLOW, Some(SLOW));
        assert_eq!(checks.arguments(given("{}"), &Limits::default(), &caller).await, Ok("{}".to_owned()));
        let (release, held) = std::sync::mpsc::channel::<()>();
        let holds = checks.schemas.budget.thread.run(move || held.recv());
        let brief = Limits::default().with(Limit::Deadline, 50).unwrap();
        let patient = Limits::default().with(Limit::QueueWait, 1).unwrap();
        let late = checks.arguments(bits(20_000), &brief, &caller).await;
        assert_eq!(late, Err(CallFailure::over(Limit::Deadline, &brief)));
        let busy = checks.arguments(bits(20_000), &patient, &caller).await;
        assert_eq!(busy, Err(CallFailure::Busy));
        let mut report = report(&text_of_bits(20_000), false);
        checks.result(&mut report, &brief, &caller).await;
        assert_eq!(report.outcome.unwrap_err(), CallFailure::over(Limit::Deadline, &brief));
        assert_eq!(report.unfit, None);
        release.send(()).unwrap();
        holds.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn schemas_that_do_not_compile_run_nothing() {
        let (caller, _link) = caller().await;
        let checks = checks(r#"{"type":"object","properties":{"a":{"$ref":"http://x.example"}}}"#, None);
        let refused = checks.arguments(given("{}"), &Limits::default(), &caller).await;
        let Err(CallFailure::Host { detail }) = refused else { panic!("{refused:?}") };
        assert!(detail.starts_with("its schemas do not compile here: inputSchema/properties/a/$ref"), "{detail}");
    }
}
