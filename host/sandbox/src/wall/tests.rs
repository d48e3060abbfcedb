//! The host's end against a process that sends anything: only the report of a running call reaches
//! a caller, once.
//!
//! Promise: a process's messages harm nobody else.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use toolcell_audit::Outcome;
use toolcell_policy::{Limit, Limits};
use toolcell_walls::link::{self, Receiver, Sender};
use toolcell_walls::process::{Command, Starter};

use super::crash_history::Standing;
use super::group::{GroupOptions, SandboxGroup};
use super::pool::{PoolNotices, PoolOptions, SandboxPool};
use super::process::{CalledComponent, ComponentBounds, ProcessState, SandboxCall, SandboxProcess};
use super::required::RequiredWalls;
use crate::wasi::capabilities::GrantedCapabilities;
use toolcell_wall::asking::{GuestQuestion, Inquiry};
use toolcell_wall::caller::NoCaller;
use toolcell_wall::failure::CallFailure;
use toolcell_wall::message::{self, FromSandbox, ToSandbox};
use toolcell_wall::report::CallReport;
use toolcell_wall::{contract, encoding};

/// A process that does nothing, and its link, whose other end the test holds.
struct Hostile {
    process: Arc<SandboxProcess>,
    sender: Sender,
    receiver: Receiver,
    _starter: Starter,
}

impl Hostile {
    async fn new() -> Self {
        let starter = Starter::new().unwrap();
        let idle = Command::program("/bin/sleep").argument("600");
        let (process, _) = starter.start(idle).await.unwrap();
        let (ours, theirs) = link::pair().unwrap();
        let (_, mut receiver) = link::open(ours).unwrap();
        receiver.refuse_fds();
        let process = SandboxProcess::new(
            process,
            receiver,
            ComponentBounds {
                message_bytes_max: message::bytes_max(&Limits::default()),
                tell: vec![Arc::new(|_| {})],
                scratch: None,
            },
        );
        drop(tokio::spawn(Arc::clone(&process).run()));
        drop(tokio::spawn(SandboxProcess::watch(Arc::downgrade(&process), u64::MAX, u64::MAX)));
        let (sender, receiver) = link::join(theirs).await.unwrap();
        Self { process, sender, receiver, _starter: starter }
    }

    /// One whose walls stand.
    async fn ready() -> Self {
        let hostile = Self::new().await;
        hostile.send_message(&FromSandbox::Sealed { missing: Vec::new() });
        assert_eq!(hostile.process.started().await, ProcessState::Ready(Vec::new()));
        hostile
    }

    fn send_message(&self, message: &FromSandbox) {
        self.send(&encoding::encode(message).unwrap(), &[]);
    }

    fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        self.sender.send(bytes, fds).unwrap();
    }

    /// Begins a call, and reads it at the other end.
    async fn call(&mut self, limits: Limits) -> (u64, tokio::task::JoinHandle<CallReport<contract::GuestResult>>) {
        let process = Arc::clone(&self.process);
        let running = tokio::spawn(async move {
            let sealed = GrantedCapabilities::sealed("tool");
            process.call(CalledComponent { number: 0, instance: None }, input(&limits, &sealed)).await
        });
        let frame = self.receiver.receive().await.unwrap();
        match encoding::decode(&frame.bytes).unwrap() {
            ToSandbox::Call(call) => (call.id, running),
            other => panic!("{other:?} is not a call"),
        }
    }

    /// Returns once the process was ended.
    async fn ends(mut self) {
        while self.receiver.receive().await.is_ok() {}
        assert!(self.process.is_ended());
    }
}

fn input<'i>(limits: &'i Limits, capabilities: &'i Arc<GrantedCapabilities>) -> SandboxCall<'i> {
    let caller = Arc::new(NoCaller);
    SandboxCall {
        tool: "tool",
        arguments_json: "{}",
        is_conformed: false,
        limits,
        capabilities,
        caller,
        kept: None,
        tape: None,
        uses: None,
    }
}

/// The sandbox process of the tests of starting: as many as `DIES` says end, the others answer
/// calls.
#[test]
#[ignore = "is a process of other tests, which start it"]
fn process_that_may_die() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let mut starts = std::fs::OpenOptions::new().append(true).create(true).open(variable("STARTS")).unwrap();
    starts.write_all(b".").unwrap();
    let dies = starts.metadata().unwrap().len() <= variable("DIES").parse().unwrap();
    let dies_at = |place: &str| {
        if dies && variable("DIES_AT") == place {
            eprintln!("a word that no caller sees");
            std::process::abort();
        }
    };
    dies_at("once");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (sender, mut receiver) = link::join(std::io::stdin().as_fd().try_clone_to_owned().unwrap()).await.unwrap();
        let say = |message: &FromSandbox| sender.send(&encoding::encode(message).unwrap(), &[]).unwrap();
        while let Ok(frame) = receiver.receive().await {
            match encoding::decode(&frame.bytes).unwrap() {
                ToSandbox::Begin(_) => dies_at("begin"),
                ToSandbox::Seal(_) => {
                    dies_at("seal");
                    let missing = variable("MISSING");
                    let missing = missing.split_whitespace().map(|wall| (wall.to_owned(), "left away".to_owned()));
                    say(&FromSandbox::Sealed { missing: missing.collect() });
                }
                ToSandbox::Call(call) => say(&FromSandbox::Ended(call.id, Box::new(answer("alive")))),
                other => panic!("{other:?} is nothing that it is told"),
            }
        }
    });
}

/// A pool of processes, some of which end while starting, and which lack these walls.
fn pool(starts: &std::path::Path, dies: u64, at: &str, missing: &str) -> Arc<SandboxPool> {
    let program = Command::this_program("toolcell-test").unwrap();
    let program = ["--exact", "wall::tests::process_that_may_die", "--ignored", "--nocapture"]
        .into_iter()
        .fold(program, Command::argument)
        .variable("STARTS", starts)
        .variable("DIES", dies.to_string())
        .variable("DIES_AT", at)
        .variable("MISSING", missing);
    let options = PoolOptions {
        program: program.into(),
        stack_bytes: 0,
        calls_max: 1,
        prewarm_bytes: 0,
        memory_bytes_max: u64::MAX,
    };
    SandboxPool::new(options).unwrap()
}

fn group(pool: &Arc<SandboxPool>, required_walls: RequiredWalls) -> Arc<SandboxGroup> {
    let idle = Duration::from_secs(3_600);
    let options = GroupOptions { processes: 1, idle, memory_bytes_max: u64::MAX, required_walls, observing: false };
    SandboxGroup::new(Vec::new(), options, Arc::clone(pool))
}

/// A call of a group whose first processes end while starting.
async fn called_while_processes_die(dies: u64, at: &str) -> Result<contract::GuestResult, CallFailure> {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let group = group(&pool(&starts, dies, at, ""), RequiredWalls::Best);
    let limits = Limits::default();
    let sealed = GrantedCapabilities::sealed("tool");
    let outcome = group.call_tool(0, input(&limits, &sealed)).await.outcome;
    // One that waits for the next call may have been started, too.
    assert!(std::fs::metadata(starts).unwrap().len() >= dies.saturating_add(1).min(3), "{at}: {outcome:?}");
    outcome
}

/// The walls that were reported, in order.
#[derive(Default)]
struct Told(std::sync::Mutex<Vec<String>>);

impl PoolNotices for Told {
    fn walls_missing(&self, walls: &[(String, String)]) {
        self.0.lock().unwrap().extend(walls.iter().map(|(wall, reason)| format!("{wall} ({reason})")));
    }

    fn standing(&self, component: &str, standing: Standing) {
        panic!("{component} is {standing:?}");
    }
}

#[tokio::test]
async fn a_wall_that_a_later_process_lacks_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let pool = pool(&folder.path().join("starts"), 0, "once", "landlock core");
    let told = Arc::new(Told::default());
    assert_eq!(pool.notify(Arc::clone(&told) as _), None, "no process has built any");
    for _ in 0..2 {
        group(&pool, RequiredWalls::Best).start().await.unwrap();
    }
    assert_eq!(*told.0.lock().unwrap(), ["landlock (left away)", "core (left away)"]);
    let known = pool.notify(told).unwrap();
    assert_eq!(known.iter().map(|(wall, _)| wall.as_str()).collect::<Vec<_>>(), ["landlock", "core"]);
}

#[tokio::test]
async fn where_every_wall_is_required_a_process_without_one_runs_no_call() {
    let folder = tempfile::tempdir().unwrap();
    for (missing, starts) in [("", true), ("landlock core", false)] {
        let pool = pool(&folder.path().join("starts"), 0, "once", missing);
        let started = group(&pool, RequiredWalls::AllBut(Vec::new())).start().await;
        assert_eq!(started.is_ok(), starts, "{missing}: {started:?}");
        if let Err(problem) = started {
            let expected = "not every wall stands: landlock (left away); core (left away); to do without, add \"landlock\", \
                            \"core\" to walls_without in [server]";
            assert!(problem.ends_with(expected), "{problem}");
        }
    }
}

#[tokio::test]
async fn another_process_starts_in_place_of_one_that_is_ended_while_it_starts() {
    for (dies, at) in [(0, "once"), (2, "once"), (1, "begin"), (2, "seal")] {
        let answered = called_while_processes_die(dies, at).await;
        assert!(format!("{answered:?}").contains("alive"), "{dies} die at {at}: {answered:?}");
    }
}

#[tokio::test]
async fn a_call_whose_processes_are_ended_while_they_start_is_told_so_and_why_is_the_operator_s() {
    for at in ["once", "begin", "seal"] {
        let Err(failure) = called_while_processes_die(u64::MAX, at).await else { panic!("{at}: it answers") };
        let expected = "the sandbox was ended: its process ended while it started; try again";
        assert_eq!((failure.to_string().as_str(), failure.outcome()), (expected, Outcome::SandboxEnded), "{at}");
        let detail = failure.detail();
        // The first process of a namespace ignores the signal of `abort`; another signal ends it
        // then.
        let signal = ["signal: 6", "signal: 11"].into_iter().any(|signal| detail.contains(signal));
        assert!(signal && detail.contains("a word that no caller sees"), "{at}: {detail}");
    }
}

fn answer(text: &str) -> CallReport<contract::GuestResult> {
    let text = contract::TextContent { text: text.to_owned(), annotations: None, meta_json: None };
    let content = vec![contract::GuestContent::Text(text)];
    let result = contract::GuestResult { content, structured_json: None, is_error: false, meta_json: None };
    CallReport::without_running(result)
}

#[tokio::test]
async fn each_wrong_message_ends_the_process_and_its_calls() {
    let file = tempfile::tempfile().unwrap();
    let inquiry = || Inquiry { key: "key".to_owned(), question: GuestQuestion::Roots };
    let table: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("another version", vec![0xff, 0]),
        ("garbage", vec![0xaa; 100]),
        (
            "more than any call may answer",
            vec![1; usize::try_from(message::bytes_max(&Limits::default())).unwrap() + 1],
        ),
        ("a second seal", encoding::encode(&FromSandbox::Sealed { missing: Vec::new() }).unwrap()),
        ("a component that is late", encoding::encode(&FromSandbox::NotLoaded(0, String::new())).unwrap()),
        (
            "the end of a call that there is not",
            encoding::encode(&FromSandbox::Ended(77, Box::new(answer("")))).unwrap(),
        ),
        ("progress of a call that there is not", encoding::encode(&FromSandbox::Instantiated(u64::MAX)).unwrap()),
        ("start code of no component", encoding::encode(&FromSandbox::NotAhead(1, String::new())).unwrap()),
        ("start code with a long name", encoding::encode(&FromSandbox::NotAhead(0, "x".repeat(513))).unwrap()),
        (
            "no capability",
            encoding::encode(&FromSandbox::Denied { call: 1, capability: 99, asked: String::new() }).unwrap(),
        ),
        (
            "more questions than a call may ask",
            encoding::encode(&FromSandbox::Ask(1, (0..1_000).map(|_| inquiry()).collect())).unwrap(),
        ),
    ];
    for (what, bytes) in table {
        let mut hostile = Hostile::ready().await;
        let (_, running) = hostile.call(Limits::default()).await;
        hostile.send(&bytes, &[]);
        // What does not fit into the socket is written while the other end reads.
        let (report, _) = tokio::join!(running, hostile.receiver.receive());
        let report = report.unwrap();
        let Err(CallFailure::SandboxEnded { reason }) = report.outcome else { panic!("{what}: {:?}", report.outcome) };
        assert!(reason.starts_with("its process broke the rules: "), "{what}: {reason}");
        hostile.ends().await;
    }
    let mut hostile = Hostile::ready().await;
    let (_, running) = hostile.call(Limits::default()).await;
    hostile.send(&encoding::encode(&FromSandbox::Instantiated(1)).unwrap(), &[file.as_fd()]);
    assert!(matches!(running.await.unwrap().outcome, Err(CallFailure::SandboxEnded { .. })), "a descriptor");
    hostile.ends().await;
}

#[tokio::test]
async fn a_call_to_a_process_that_has_just_ended_is_told_so() {
    let mut hostile = Hostile::ready().await;
    // It sleeps, so the host must wake it for a call.
    tokio::select! {
        biased;
        _ = hostile.receiver.receive() => panic!("nobody sent anything"),
        () = std::future::ready(()) => {}
    }
    let Hostile { process, sender, receiver, _starter } = hostile;
    drop((sender, receiver));
    // The task that reads the link runs on this thread, and has not noticed yet.
    assert!(!process.is_ended());
    let limits = Limits::default();
    let sealed = GrantedCapabilities::sealed("tool");
    let called = CalledComponent { number: 0, instance: None };
    let outcome = process.call(called, input(&limits, &sealed)).await.outcome;
    let Err(CallFailure::SandboxEnded { reason }) = outcome else { panic!("{outcome:?}") };
    assert!(reason.starts_with("the other process closed the link"), "{reason}");
}

#[tokio::test]
async fn an_idle_process_ends_unless_a_call_goes_to_it_or_an_instance_is_kept_in_it() {
    let mut hostile = Hostile::ready().await;
    let process = Arc::clone(&hostile.process);
    let long = Duration::from_secs(3_600);
    let none = Duration::ZERO;
    assert!(process.end_if_idle(long, "idle").is_some_and(|left| left <= long), "it was used a moment ago");
    let claim = process.claim().unwrap();
    assert_eq!(process.end_if_idle(none, "idle"), Some(none), "a call goes to it");
    drop(claim);
    let first = process.instance();
    let second = process.instance();
    assert_eq!(process.end_if_idle(none, "idle"), Some(none), "it keeps instances");
    let ids = [first.id(), second.id()];
    assert_ne!(ids[0], ids[1]);
    drop((first, second));
    for id in ids {
        let frame = hostile.receiver.receive().await.unwrap();
        assert!(matches!(encoding::decode(&frame.bytes), Ok(ToSandbox::Forget(forgotten)) if forgotten == id));
    }
    let (call, running) = hostile.call(Limits::default()).await;
    assert_eq!(process.end_if_idle(none, "idle"), Some(none), "a call runs in it");
    hostile.send_message(&FromSandbox::Ended(call, Box::new(answer("done"))));
    assert!(running.await.unwrap().outcome.is_ok());
    assert_eq!(process.end_if_idle(none, "idle"), None);
    assert!(process.is_ended() && process.claim().is_none());
    hostile.ends().await;
}

#[tokio::test]
async fn a_call_ends_once_and_a_repeated_end_is_nobody_s() {
    let mut hostile = Hostile::ready().await;
    let (first, running) = hostile.call(Limits::default()).await;
    hostile.send_message(&FromSandbox::Ended(first, Box::new(answer("first"))));
    hostile.send_message(&FromSandbox::Ended(first, Box::new(answer("again"))));
    assert!(format!("{:?}", running.await.unwrap().outcome.unwrap()).contains("first"));
    let (second, running) = hostile.call(Limits::default()).await;
    assert_ne!(first, second);
    hostile.send_message(&FromSandbox::Ended(first, Box::new(answer("the first once more"))));
    hostile.send_message(&FromSandbox::Ended(second, Box::new(answer("second"))));
    assert!(format!("{:?}", running.await.unwrap().outcome.unwrap()).contains("second"));
    assert!(!hostile.process.is_ended());
}

#[tokio::test]
async fn messages_about_calls_that_have_ended_are_few() {
    let mut hostile = Hostile::ready().await;
    let (first, running) = hostile.call(Limits::default()).await;
    hostile.send_message(&FromSandbox::Ended(first, Box::new(answer("first"))));
    assert!(running.await.unwrap().outcome.is_ok());
    let (_, running) = hostile.call(Limits::default()).await;
    // What does not fit into the link is written while the host reads.
    for _ in 0..1_001 {
        hostile.sender.room().await.unwrap();
        hostile.send_message(&FromSandbox::Instantiated(first));
    }
    let Err(CallFailure::SandboxEnded { reason }) = running.await.unwrap().outcome else { panic!("it goes on") };
    assert_eq!(reason, "its process broke the rules: it names an unknown call");
    hostile.ends().await;
}

#[tokio::test]
async fn a_call_that_says_too_much_ends_its_process_and_bytes_count() {
    let mut hostile = Hostile::ready().await;
    let (call, running) = hostile.call(Limits::default()).await;
    // Each counts as a thousand messages, so that even a busy machine sends more than is allowed.
    let message = Some("x".repeat(256 << 10));
    let bytes = encoding::encode(&FromSandbox::Progress { call, progress: 1.0, total: None, message }).unwrap();
    let Hostile { sender, receiver, .. } = &mut hostile;
    let sends = async {
        let mut sent = 0_u64;
        while !running.is_finished() {
            if sender.room().await.is_ok() && sender.send(&bytes, &[]).is_ok() {
                sent += 1;
            }
            // The host reads on another task of this thread.
            tokio::task::yield_now().await;
            assert!(sent < 100_000, "it takes {sent} messages");
        }
        sent
    };
    // What does not fit into the socket is written while the other end reads.
    let reads = async {
        while receiver.receive().await.is_ok() {}
        std::future::pending().await
    };
    let sent = tokio::select! {
        sent = sends => sent,
        sent = reads => sent,
    };
    let Err(CallFailure::SandboxEnded { reason }) = running.await.unwrap().outcome else { panic!("it goes on") };
    assert_eq!(reason, "its process broke the rules: it reports too much about one call");
    assert!(sent >= 90, "only {sent} messages");
    hostile.ends().await;
}

#[tokio::test]
async fn an_answer_is_held_to_the_limits_of_its_call_again() {
    let mut hostile = Hostile::ready().await;
    let limits = Limits::default().with(Limit::Output, 1_024).unwrap();
    let (id, running) = hostile.call(limits).await;
    hostile.send_message(&FromSandbox::Ended(id, Box::new(answer(&"x".repeat(1_025)))));
    let outcome = running.await.unwrap().outcome;
    assert!(matches!(outcome, Err(CallFailure::OverLimit { limit: Limit::Output, .. })), "{outcome:?}");
}

#[tokio::test]
async fn a_process_that_gives_a_call_not_back_is_ended_and_those_beside_it_with_it() {
    let mut hostile = Hostile::ready().await;
    let limits = Limits::default().with(Limit::Deadline, 100).unwrap().with(Limit::QueueWait, 1).unwrap();
    let (_, late) = hostile.call(limits).await;
    let (_, beside) = hostile.call(Limits::default()).await;
    for running in [late, beside] {
        let outcome = tokio::time::timeout(Duration::from_secs(3_600), running).await.unwrap().unwrap().outcome;
        let Err(CallFailure::SandboxEnded { reason }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(reason, "it did not stop within its deadline");
    }
    hostile.ends().await;
}

#[tokio::test]
async fn problems_of_values_are_bounded_and_cleaned_like_all_that_a_process_says() {
    let mut hostile = Hostile::ready().await;
    let problems = format!("- /a\u{1b}[2J\u{202e}: wrong\n{}", "x".repeat(2 * toolcell_schema::PROBLEMS_BYTES_MAX));
    let (id, running) = hostile.call(Limits::default()).await;
    let refused = CallReport::not_run(CallFailure::Unfit { problems: problems.clone() });
    hostile.send_message(&FromSandbox::Ended(id, Box::new(refused)));
    let outcome = running.await.unwrap().outcome;
    let Err(CallFailure::Unfit { problems: told }) = outcome else { panic!("{outcome:?}") };
    assert!(
        told.starts_with("- /a: wrong\nxxx") && told.len() <= toolcell_schema::PROBLEMS_BYTES_MAX,
        "{}",
        told.len()
    );
    let (id, running) = hostile.call(Limits::default()).await;
    let result = contract::GuestResult { content: Vec::new(), structured_json: None, is_error: false, meta_json: None };
    let unfit = CallReport { unfit: Some(problems), ..CallReport::without_running(result) };
    hostile.send_message(&FromSandbox::Ended(id, Box::new(unfit)));
    assert_eq!(running.await.unwrap().unfit, Some(told));
    assert!(!hostile.process.is_ended());
}
