//! Calls that wait for an operator: a queue, and the last decisions.
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use toolcell_console::bounds::JSON_SHOWN_BYTES;
use toolcell_console::json;

/// Calls that may wait. Further ones are not shown to operators: nobody decides about more.
const WAITING_MAX: usize = 256;

/// The share of one caller: a quarter, as for other state of callers.
const WAITING_PER_CALLER_MAX: usize = WAITING_MAX / 4;

/// Decisions that are shown: a page to read. The audit has all.
const DECIDED_MAX: usize = 50;

/// Most bytes of a call's arguments that are kept: as many as a page of the console shows. All
/// calls of one caller keep at most 4 MiB.
const ARGUMENTS_BYTES_MAX: usize = JSON_SHOWN_BYTES;

/// Calls that wait for an operator.
#[derive(Default)]
pub struct ApprovalQueue {
    is_open: AtomicBool,
    asks_clients: AtomicBool,
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    last: u64,
    waiting: BTreeMap<u64, WaitingCall>,
    decided: VecDeque<DecidedCall>,
}

struct WaitingCall {
    pending: PendingApproval,
    answer: oneshot::Sender<OperatorAnswer>,
}

/// A call that waits for an operator.
#[derive(Clone, Debug)]
pub struct PendingApproval {
    /// The host's number of the call.
    pub call: u64,
    pub tool: String,
    pub component: String,
    pub caller: String,
    pub question: String,
    pub arguments: PendingArguments,
    pub since: SystemTime,
    pub until: Instant,
    /// How long an answer may be remembered.
    pub remember: Option<Duration>,
    /// The most calls of its run that an answer may allow, if a tool makes the call.
    pub run_calls_max: Option<u32>,
}

/// The arguments of a waiting call, as JSON without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingArguments {
    pub text: String,
    /// Bytes that were cut off.
    pub left_out: usize,
}

impl PendingArguments {
    /// The beginning of this text.
    pub fn of(text: &str) -> Self {
        let (kept, rest) = text.split_at(text.floor_char_boundary(ARGUMENTS_BYTES_MAX));
        Self { text: kept.to_owned(), left_out: rest.len() }
    }

    /// True if a page of the console shows all of them. Nobody can allow what is not shown.
    pub fn is_shown_whole(&self) -> bool {
        self.left_out == 0 && json::is_shown_whole(&self.text)
    }
}

/// A call that waited, and how that ended.
#[derive(Clone, Debug)]
pub struct DecidedCall {
    pub at: SystemTime,
    pub call: u64,
    pub tool: String,
    pub caller: String,
    /// As the audit names it.
    pub answer: &'static str,
    /// Who answered, or ended it.
    pub by: String,
}

/// An operator's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorAnswer {
    /// True if the call may run.
    pub allows: bool,
    /// True if further calls may run as well, for as long as the manifest allows.
    pub remembers: bool,
    /// Calls of the tool that may run in this run, this one included; none if this one alone.
    pub run_calls: Option<u32>,
    /// Who answered: the console's session, or the user of a terminal.
    pub by: String,
}

/// A call's place in the queue. Dropping it withdraws the question.
pub struct QueuedApproval<'a> {
    queue: &'a ApprovalQueue,
    number: u64,
    answered: oneshot::Receiver<OperatorAnswer>,
}

impl ApprovalQueue {
    /// From now on, operators are asked, and clients as well if `asks_clients`.
    pub fn open(&self, asks_clients: bool) {
        self.asks_clients.store(asks_clients, Ordering::Release);
        self.is_open.store(true, Ordering::Release);
    }

    /// True if operators are asked.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// True if clients are asked as well.
    pub fn asks_clients(&self) -> bool {
        self.asks_clients.load(Ordering::Acquire)
    }

    /// Asks about a call; `None` if too many are waiting, of its caller or in all.
    pub fn ask(&self, pending: PendingApproval) -> Option<QueuedApproval<'_>> {
        let (answer, answered) = oneshot::channel();
        let mut state = self.state.lock();
        let own = state.waiting.values().filter(|waiting| waiting.pending.caller == pending.caller).count();
        if state.waiting.len() >= WAITING_MAX || own >= WAITING_PER_CALLER_MAX {
            return None;
        }
        state.last += 1;
        let number = state.last;
        state.waiting.insert(number, WaitingCall { pending, answer });
        Some(QueuedApproval { queue: self, number, answered })
    }

    /// Answers. False if the call no longer waits.
    pub fn answer(&self, number: u64, answer: OperatorAnswer) -> Option<PendingApproval> {
        let mut state = self.state.lock();
        let waiting = state.waiting.remove(&number)?;
        let decided = DecidedCall {
            at: SystemTime::now(),
            call: waiting.pending.call,
            tool: waiting.pending.tool.clone(),
            caller: waiting.pending.caller.clone(),
            answer: if answer.allows { "accepted" } else { "declined" },
            by: answer.by.clone(),
        };
        waiting.answer.send(answer).ok()?;
        state.note(decided);
        Some(waiting.pending)
    }

    /// Notes that a wait ended without an answer of an operator.
    pub fn note(&self, decided: DecidedCall) {
        self.state.lock().note(decided);
    }

    /// The waiting call with this number.
    pub fn find(&self, number: u64) -> Option<PendingApproval> {
        self.state.lock().waiting.get(&number).map(|waiting| waiting.pending.clone())
    }

    /// The waiting calls with their numbers, oldest first, and the last decisions, newest first.
    pub fn list(&self) -> (Vec<(u64, PendingApproval)>, Vec<DecidedCall>) {
        let state = self.state.lock();
        let waiting = state.waiting.iter().map(|(number, waiting)| (*number, waiting.pending.clone()));
        (waiting.collect(), state.decided.iter().cloned().collect())
    }

    /// Number of calls that wait.
    pub fn count(&self) -> usize {
        self.state.lock().waiting.len()
    }
}

impl QueueState {
    fn note(&mut self, decided: DecidedCall) {
        self.decided.push_front(decided);
        self.decided.truncate(DECIDED_MAX);
    }
}

impl QueuedApproval<'_> {
    /// Waits for the answer.
    pub async fn answered(&mut self) -> Option<OperatorAnswer> {
        (&mut self.answered).await.ok()
    }
}

impl Drop for QueuedApproval<'_> {
    fn drop(&mut self) {
        self.queue.state.lock().waiting.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(call: u64) -> PendingApproval {
        pending_of(call, "ann")
    }

    fn pending_of(call: u64, caller: &str) -> PendingApproval {
        let tool = "t".to_owned();
        let component = "c".to_owned();
        let caller = caller.to_owned();
        let question = String::new();
        let arguments = PendingArguments::of("{}");
        let remember = None;
        let run_calls_max = None;
        let since = SystemTime::now();
        let until = Instant::now();
        PendingApproval { call, tool, component, caller, question, arguments, since, until, remember, run_calls_max }
    }

    #[tokio::test]
    async fn a_call_is_answered_once_and_leaves_the_queue() {
        let queue = ApprovalQueue::default();
        let answer = OperatorAnswer { allows: true, remembers: false, run_calls: None, by: "console".to_owned() };
        let mut first = queue.ask(pending(1)).unwrap();
        let second = queue.ask(pending(2)).unwrap();
        assert!(queue.answer(1, answer.clone()).is_some());
        assert_eq!(first.answered().await, Some(answer.clone()));
        assert!(queue.answer(1, answer.clone()).is_none());
        drop(second);
        assert!(queue.answer(2, answer).is_none(), "nobody waits any more");
        assert_eq!((queue.count(), queue.list().1.len()), (0, 1));
    }

    #[test]
    fn arguments_are_kept_up_to_a_bound_and_say_what_is_left_out() {
        let of = |letters: usize| PendingArguments::of(&format!("\"{}\"", "é".repeat(letters)));
        assert!(of(1_000).is_shown_whole());
        let cut = of(ARGUMENTS_BYTES_MAX);
        assert_eq!((cut.text.len(), cut.left_out), (ARGUMENTS_BYTES_MAX - 1, ARGUMENTS_BYTES_MAX + 3));
        assert!(!cut.is_shown_whole());
        // Indented, a text may be longer than what is kept.
        let spread = PendingArguments::of(&format!("[{}0]", "0,".repeat(30_000)));
        assert!(spread.left_out == 0 && !spread.is_shown_whole());
    }

    #[test]
    fn one_caller_leaves_room_in_the_queue_for_others() {
        let queue = ApprovalQueue::default();
        let mut asked = Vec::new();
        for caller in ["ann", "bob", "cleo", "dan"] {
            let ask = |call| queue.ask(pending_of(call, caller));
            let own: Vec<_> = (0..WAITING_MAX as u64).filter_map(ask).collect();
            assert_eq!(own.len(), WAITING_PER_CALLER_MAX, "{caller}");
            asked.extend(own);
        }
        assert!(queue.count() == WAITING_MAX && queue.ask(pending_of(1, "eve")).is_none());
        drop(asked.pop());
        assert!(queue.ask(pending_of(1, "eve")).is_some());
    }
}
