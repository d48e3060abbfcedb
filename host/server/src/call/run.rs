//! The run of a client's call whose tool calls others: what its calls gave, and what a person
//! allowed it.
//!
//! A client of 2026-07-28 answers a question by calling again, and the tool then runs from its
//! beginning. So each call that it made is logged, and answered from the log: none runs twice. A
//! call is found by its path: its number among the calls of the one that made it, after the path of
//! that one. The log of a call that has ended stands for all that were beneath it.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::watch;
use toolcell_policy::PausedPolicy;
use toolcell_sandbox::{NestedEnd, NotCalled, NotCalledReason};

use crate::state::paused_runs::TakenRun;

/// The most calls of a tool that one answer allows: what a person can still mean.
pub(super) const GRANTED_MAX: u32 = 100;

/// The form of a kept log. A run whose log has another one does not go on.
const LOG_FORM: u32 = 2;

/// The longest wait for calls whose client's call has ended. They are cancelled, and end at once;
/// one that does not counts as cut short.
const QUIET_WITHIN: Duration = Duration::from_secs(10);

/// The run of a client's call.
pub(super) struct NestedRun {
    /// The bounds of its log; none if its client waits for answers.
    bounds: Option<PausedPolicy>,
    state: Mutex<RunState>,
    /// Calls that run.
    open: watch::Sender<usize>,
    /// Held while a person is asked: one question at a time, which may answer the next.
    questions: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct RunState {
    log: RunLog,
    /// Bytes of its results.
    bytes: usize,
    /// Why it cannot pause any more.
    unkept: Option<String>,
    /// How the tool differs from its earlier run.
    diverged: Option<String>,
    /// What it goes on from.
    taken: Option<TakenRun>,
}

/// All that the next round has to know.
#[derive(Default, Serialize, Deserialize)]
struct RunLog {
    form: u32,
    /// The digest of the component whose tool the client called.
    component: String,
    /// When its first round began, in milliseconds since 1970.
    began_ms: u64,
    /// Calls by their paths.
    calls: BTreeMap<String, LoggedCall>,
    /// Further calls that a person has allowed, by their subject.
    granted: BTreeMap<String, u32>,
    /// Calls that had ended when a person was first asked about one, by its path. The same question
    /// is asked again with the same number.
    asked: BTreeMap<String, u32>,
    /// Exactly what a person has allowed of calls that have not ended, by their paths.
    allowed: BTreeMap<String, String>,
    /// Calls that have ended.
    made: u32,
}

/// The part of a log that each form of it has.
#[derive(Deserialize)]
struct LogForm {
    #[serde(default)]
    form: u32,
}

#[derive(Serialize, Deserialize)]
struct LoggedCall {
    tool: String,
    /// A digest.
    arguments: String,
    /// Calls that it made in turn, with all beneath them.
    beneath: u32,
    /// A [`NestedEnd`]; none if it has not ended.
    end: Option<Box<RawValue>>,
    /// True if it waits for a person, and is made again in the next round: the same one.
    waits: bool,
}

/// A call that a tool wants made.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunStep<'a> {
    pub(super) path: &'a str,
    pub(super) tool: &'a str,
    /// A digest.
    pub(super) arguments: &'a str,
}

/// What the log has for a call.
pub(super) enum Replay {
    /// No end: it is to be made.
    Live,
    /// Its end, and the number of calls that it made.
    Ended(Box<NestedEnd>, usize),
    /// Another call: the sentence for the client.
    Diverged(String),
}

/// A call that runs. Dropping it marks its end for those who wait.
pub(super) struct OpenCall(Arc<NestedRun>);

impl NestedRun {
    /// Of a call of this component. Without bounds nothing is logged.
    pub(super) fn new(component: &str, bounds: Option<PausedPolicy>) -> Self {
        let log = RunLog { form: LOG_FORM, component: component.to_owned(), began_ms: now_ms(), ..RunLog::default() };
        Self::of(RunState { log, ..RunState::default() }, bounds)
    }

    /// The run goes on. `Err` is the sentence for the client: it cannot.
    pub(super) fn resumed(component: &str, bounds: Option<PausedPolicy>, taken: TakenRun) -> Result<Self, String> {
        let mut log = RunLog::read(&taken.log)?;
        if log.component != component {
            return Err("the component was replaced while this run waited for a person: call the tool again without \
                        requestState"
                .to_owned());
        }
        log.cut_short();
        let bytes = log.calls.values().map(LoggedCall::bytes).sum();
        // The text is not needed any more: a later one takes its place.
        let taken = Some(taken.with(String::new()));
        Ok(Self::of(RunState { log, bytes, taken, ..RunState::default() }, bounds))
    }

    fn of(state: RunState, bounds: Option<PausedPolicy>) -> Self {
        Self { bounds, state: Mutex::new(state), open: watch::Sender::new(0), questions: tokio::sync::Mutex::default() }
    }

    /// When its first round began, in milliseconds since 1970.
    pub(super) fn began_ms(&self) -> u64 {
        self.state.lock().log.began_ms
    }

    /// Calls that have ended, in all rounds.
    pub(super) fn made(&self) -> u32 {
        self.state.lock().log.made
    }

    /// Calls whose ends were known when it began.
    pub(super) fn logged(&self) -> usize {
        self.state.lock().log.calls.values().filter(|call| call.end.is_some()).count()
    }

    /// What the log has for this call.
    pub(super) fn replay(&self, step: RunStep<'_>) -> Replay {
        let mut state = self.state.lock();
        let Some(call) = state.log.calls.get(step.path) else { return Replay::Live };
        let end = call.end.as_ref().and_then(|end| serde_json::from_str(end.get()).ok());
        let is_same = call.tool == step.tool && call.arguments == step.arguments;
        match end {
            Some(end) if is_same => Replay::Ended(end, usize::try_from(call.beneath).unwrap_or(usize::MAX)),
            None if is_same && call.waits => Replay::Live,
            _ => {
                let before = &call.tool;
                let what = if before == step.tool { "with other arguments" } else { "of another tool" };
                let text = format!(
                    "the tool did not do the same again: call {} was one of {before:?} before a person was asked, and \
                     is now one {what}. It was stopped, and no call ran twice",
                    step.path
                );
                Replay::Diverged(state.diverged.get_or_insert(text).clone())
            }
        }
    }

    /// A call begins.
    pub(super) fn begin(self: &Arc<Self>, step: RunStep<'_>) -> OpenCall {
        self.open.send_modify(|open| *open = open.saturating_add(1));
        if self.bounds.is_some() {
            self.state.lock().log.calls.insert(step.path.to_owned(), LoggedCall::begun(step));
        }
        OpenCall(Arc::clone(self))
    }

    /// It has ended.
    pub(super) fn ended(&self, path: &str, end: &NestedEnd) {
        let mut state = self.state.lock();
        state.log.made = state.log.made.saturating_add(1);
        state.log.allowed.remove(path);
        let Some(bounds) = &self.bounds else { return };
        let end = to_raw_value(end).ok().filter(|end| end.get().len() <= bounds.result_bytes());
        let beneath = state.take_beneath(path);
        let Some(end) = end else {
            state.unkept = Some("a call gave more than a log keeps of one (\"result\" in [paused])".to_owned());
            return;
        };
        if let Some(call) = state.log.calls.get_mut(path) {
            call.beneath = beneath;
            call.end = Some(end);
            let bytes = call.bytes();
            state.bytes = state.bytes.saturating_add(bytes);
        }
        if state.bytes > bounds.log_bytes() {
            state.unkept = Some("its calls gave more than a log keeps (\"log\" in [paused])".to_owned());
        }
    }

    /// It waits for a person, and is made again in the next round. No other call can then take its
    /// place, and with it what the person says.
    pub(super) fn waits(&self, path: &str) {
        if let Some(call) = self.state.lock().log.calls.get_mut(path) {
            call.waits = true;
        }
    }

    /// Why it cannot pause, if it cannot.
    pub(super) fn unkept(&self) -> Option<String> {
        self.state.lock().unkept.clone()
    }

    /// How it differs from its earlier run.
    pub(super) fn diverged(&self) -> Option<String> {
        self.state.lock().diverged.clone()
    }

    /// Waits until no call of it runs.
    pub(super) async fn quiet(&self) {
        let mut open = self.open.subscribe();
        let quiet = open.wait_for(|open| *open == 0);
        if tokio::time::timeout(QUIET_WITHIN, quiet).await.is_err() {
            tracing::warn!("calls that a tool made go on after it has ended");
        }
    }

    /// The log as it is kept; none if it is not kept.
    pub(super) fn written(&self) -> Option<String> {
        self.bounds.as_ref()?;
        serde_json::to_string(&self.state.lock().log).ok()
    }

    /// What it went on from, if it did.
    pub(super) fn take_earlier(&self) -> Option<TakenRun> {
        self.state.lock().taken.take()
    }

    /// Waits until no other question of this run is open.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.questions.lock().await
    }

    /// Calls that had ended when a person was first asked about this one.
    pub(super) fn made_before(&self, path: &str) -> u32 {
        let mut state = self.state.lock();
        let made = state.log.made;
        *state.log.asked.entry(path.to_owned()).or_insert(made)
    }

    /// A person allows this many further calls.
    pub(super) fn grant(&self, subject: String, calls: u32) {
        if calls > 0 {
            self.state.lock().log.granted.insert(subject, calls);
        }
    }

    /// A person has allowed this call, with exactly what `permit` says.
    pub(super) fn allow(&self, path: &str, permit: &str) {
        self.state.lock().log.allowed.insert(path.to_owned(), permit.to_owned());
    }

    /// True if a person allowed exactly this in an earlier round, in which it did not come to its
    /// end.
    pub(super) fn is_allowed(&self, path: &str, permit: &str) -> bool {
        self.state.lock().log.allowed.get(path).is_some_and(|allowed| allowed == permit)
    }

    /// Takes one of the calls that a person has allowed. Returns how many are left.
    pub(super) fn take_granted(&self, subject: &str) -> Option<u32> {
        let mut state = self.state.lock();
        let left = state.log.granted.get_mut(subject)?;
        *left = left.checked_sub(1)?;
        Some(*left)
    }
}

impl RunState {
    /// Removes the calls beneath this one, and returns their number.
    fn take_beneath(&mut self, path: &str) -> u32 {
        let mut beneath: u32 = 0;
        let mut bytes: usize = 0;
        // Between them are exactly the paths that go on with a point.
        let paths = self.log.calls.range(format!("{path}.")..format!("{path}/"));
        let paths: Vec<String> = paths.map(|(path, _)| path.clone()).collect();
        let removed = paths.iter().filter_map(|path| self.log.calls.remove(path));
        // One that waits, and that the tool did not make again, was never made.
        for call in removed.filter(|call| !call.waits) {
            beneath = beneath.saturating_add(call.beneath).saturating_add(1);
            bytes = bytes.saturating_add(call.bytes());
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        beneath
    }
}

impl RunLog {
    /// Reads a kept log. `Err` is the sentence for the client.
    fn read(text: &str) -> Result<Self, String> {
        let unreadable = |error: serde_json::Error| format!("the log of this run cannot be read: {error}");
        let LogForm { form } = serde_json::from_str(text).map_err(unreadable)?;
        if form != LOG_FORM {
            return Err("another version of toolcell kept the log of this run: call the tool again without \
                        requestState; calls that it made would then be made again"
                .to_owned());
        }
        serde_json::from_str(text).map_err(unreadable)
    }

    /// Ends the calls that were under way when their round ended.
    fn cut_short(&mut self) {
        for call in self.calls.values_mut().filter(|call| call.end.is_none() && !call.waits) {
            call.end = cut_short();
        }
    }
}

impl LoggedCall {
    fn begun(step: RunStep<'_>) -> Self {
        let RunStep { tool, arguments, .. } = step;
        Self { tool: tool.to_owned(), arguments: arguments.to_owned(), beneath: 0, end: None, waits: false }
    }

    /// Bytes that it has in the log once it has ended.
    fn bytes(&self) -> usize {
        let Some(end) = &self.end else { return 0 };
        end.get().len().saturating_add(self.tool.len()).saturating_add(self.arguments.len())
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.0.open.send_modify(|open| *open = open.saturating_sub(1));
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The end of a call of an earlier round that was under way when its run ended.
fn cut_short() -> Option<Box<RawValue>> {
    let text = "the call was under way when this run was cut short, and does not run twice";
    let end: NestedEnd = Err(NotCalled::refused(NotCalledReason::Cancelled, text));
    to_raw_value(&end).ok()
}

#[cfg(test)]
mod tests {
    use toolcell_sandbox::CalledResult;
    use toolcell_shared::Embedded;

    use super::*;
    use crate::state::paused_runs::PausedRuns;

    fn step<'a>(path: &'a str, tool: &'a str) -> RunStep<'a> {
        RunStep { path, tool, arguments: "d" }
    }

    fn gave(text: &str) -> NestedEnd {
        Ok(CalledResult { content: Vec::new(), structured_json: Some(text.to_owned()) })
    }

    fn begun() -> Arc<NestedRun> {
        Arc::new(NestedRun::new("c", Some(PausedPolicy::default())))
    }

    fn logged(run: &Arc<NestedRun>, path: &str, tool: &str, end: &NestedEnd) {
        let _open = run.begin(step(path, tool));
        run.ended(path, end);
    }

    fn next(run: &NestedRun) -> Arc<NestedRun> {
        let mut log = RunLog::read(&run.written().unwrap()).unwrap();
        log.cut_short();
        let bytes = log.calls.values().map(LoggedCall::bytes).sum();
        let state = RunState { log, bytes, ..RunState::default() };
        Arc::new(NestedRun::of(state, Some(PausedPolicy::default())))
    }

    #[test]
    fn a_call_is_answered_from_the_log_if_it_is_the_same_one() {
        let run = begun();
        logged(&run, "1", "add", &gave("5"));
        let began = run.began_ms();
        let run = next(&run);
        assert!(began > 0 && run.began_ms() == began);
        assert!(matches!(run.replay(step("1", "add")), Replay::Ended(end, 0) if *end == gave("5")));
        assert!(matches!(run.replay(step("2", "add")), Replay::Live));
        assert!(run.diverged().is_none());
        for other in [step("1", "echo"), RunStep { arguments: "e", ..step("1", "add") }] {
            assert!(matches!(run.replay(other), Replay::Diverged(_)));
        }
        assert!(run.diverged().unwrap().contains("call 1 was one of \"add\""));
    }

    #[test]
    fn the_log_of_a_call_stands_for_all_beneath_it() {
        let run = begun();
        let outer = run.begin(step("1", "relay"));
        logged(&run, "1.1", "add", &gave("5"));
        logged(&run, "1.2", "add", &gave("5"));
        logged(&run, "10", "add", &gave("5"));
        run.ended("1", &gave("10"));
        drop(outer);
        assert_eq!(run.logged(), 2);
        assert!(matches!(next(&run).replay(step("1", "relay")), Replay::Ended(_, 2)));
    }

    #[test]
    fn a_call_that_waits_is_made_again_and_one_that_was_cut_short_is_not() {
        let run = begun();
        drop(run.begin(step("1", "add")));
        run.waits("1");
        drop(run.begin(step("2", "add")));
        let run = next(&run);
        assert_eq!(run.logged(), 1);
        assert!(matches!(run.replay(step("1", "add")), Replay::Live));
        assert!(matches!(run.replay(step("2", "add")), Replay::Ended(end, 0) if end.is_err()));
    }

    #[test]
    fn no_other_call_takes_the_place_of_one_that_waits() {
        let run = begun();
        drop(run.begin(step("1", "add")));
        run.waits("1");
        // Nor if the next round ends before it.
        let run = next(&next(&run));
        for other in [step("1", "echo"), RunStep { arguments: "e", ..step("1", "add") }] {
            let Replay::Diverged(text) = next(&run).replay(other) else { panic!("{other:?} took its place") };
            assert!(text.contains("call 1 was one of \"add\" before a person was asked"), "{text}");
        }
        assert!(matches!(run.replay(step("1", "add")), Replay::Live));
        logged(&run, "1", "add", &gave("5"));
        assert!(matches!(next(&run).replay(step("1", "add")), Replay::Ended(_, 0)));
    }

    #[test]
    fn a_call_that_waited_and_was_not_made_again_counts_as_none() {
        let run = begun();
        drop(run.begin(step("1", "relay")));
        logged(&run, "1.1", "add", &gave("5"));
        drop(run.begin(step("1.2", "add")));
        run.waits("1.2");
        run.waits("1");
        let run = next(&run);
        logged(&run, "1", "relay", &gave("5"));
        assert!(matches!(next(&run).replay(step("1", "relay")), Replay::Ended(_, 1)));
    }

    #[test]
    fn what_was_granted_is_used_up_over_rounds() {
        let run = begun();
        run.grant("add".to_owned(), 2);
        assert_eq!(run.take_granted("add"), Some(1));
        let run = next(&run);
        assert_eq!((run.take_granted("add"), run.take_granted("add"), run.take_granted("echo")), (Some(0), None, None));
        logged(&run, "1", "add", &gave("5"));
        assert_eq!(run.made_before("2"), 1);
        logged(&run, "3", "add", &gave("5"));
        assert_eq!((run.made_before("2"), next(&run).made_before("2"), run.made_before("4")), (1, 1, 2));
    }

    #[test]
    fn what_was_allowed_stays_allowed_until_the_call_has_ended() {
        let run = begun();
        run.allow("1", "this");
        drop(run.begin(step("1", "ask")));
        run.waits("1");
        let run = next(&run);
        assert!(run.is_allowed("1", "this") && !run.is_allowed("2", "this"));
        assert!(!run.is_allowed("1", "that"), "something else was allowed");
        logged(&run, "1", "ask", &gave("5"));
        assert!(!run.is_allowed("1", "this"));
    }

    #[tokio::test]
    async fn a_run_of_another_component_does_not_go_on() {
        let runs = PausedRuns::in_memory();
        let state = Embedded::default();
        let log = begun().written().unwrap();
        let earlier = r#"{"component":"c","began_ms":1,"calls":{},"granted":{},"asked":{},"allowed":["1"],"made":0}"#;
        for (component, log, expected) in [
            ("c", log.as_str(), ""),
            ("d", &log, "the component was replaced"),
            ("c", earlier, "another version of toolcell kept the log"),
            ("c", "{", "cannot be read"),
        ] {
            let name = runs.keep("ann", log, Duration::from_secs(60)).await.unwrap();
            let taken = runs.take(&state, "ann", &name).await.unwrap().unwrap();
            let problem = NestedRun::resumed(component, None, taken).err().unwrap_or_default();
            assert!(problem.contains(expected) && problem.is_empty() == expected.is_empty(), "{problem}");
        }
    }

    #[test]
    fn a_run_with_a_long_log_does_not_pause() {
        let run = begun();
        let long = gave(&"x".repeat(PausedPolicy::default().result_bytes() - 100));
        for number in 1..=3 {
            logged(&run, &number.to_string(), "add", &long);
        }
        assert_eq!(run.unkept(), None);
        logged(&run, "4", "add", &long);
        logged(&run, "5", "add", &long);
        assert!(run.unkept().unwrap().contains("\"log\""));
        let run = begun();
        logged(&run, "1", "add", &gave(&"x".repeat(PausedPolicy::default().result_bytes())));
        assert!(run.unkept().unwrap().contains("\"result\""));
    }

    #[tokio::test]
    async fn a_run_is_quiet_once_its_calls_have_ended() {
        let run = Arc::new(NestedRun::new("c", None));
        let open = run.begin(step("1", "add"));
        let waiting = tokio::spawn({
            let run = Arc::clone(&run);
            async move { run.quiet().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(open);
        waiting.await.unwrap();
    }
}
