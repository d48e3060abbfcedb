//! The host's end against a process that says anything: nothing of it reaches a caller but the
//! report of a call that runs, once.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use toolcell_policy::{Limit, Limits};
use toolcell_walls::link::{self, Receiver, Sender};
use toolcell_walls::process::{Command, Starter};

use super::message::{self, FromSandbox, ToSandbox, WireReport};
use super::process::{Bounds, CalledComponent, SandboxProcess, State};
use crate::bindings::contract;
use crate::caller::NoCaller;
use crate::caller::asking::{Inquiry, Question};
use crate::failure::Failure;
use crate::run::call::{CallInput, CallReport, InstanceSource};
use crate::wasi::capabilities::Capabilities;

/// A process that does nothing, and its link, whose other end the test has.
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
            Bounds { message_bytes_max: message::bytes_max(&Limits::default()), tell: vec![Arc::new(|_| {})] },
        );
        drop(tokio::spawn(Arc::clone(&process).run()));
        let (sender, receiver) = link::join(theirs).await.unwrap();
        Self { process, sender, receiver, _starter: starter }
    }

    /// One whose walls stand.
    async fn ready() -> Self {
        let hostile = Self::new().await;
        hostile.say(&FromSandbox::Sealed { missing: Vec::new() });
        assert_eq!(hostile.process.started().await, State::Ready(Vec::new()));
        hostile
    }

    fn say(&self, message: &FromSandbox) {
        self.send(&message::encode(message).unwrap(), &[]);
    }

    fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        self.sender.send(bytes, fds).unwrap();
    }

    /// Begins a call, and reads it at the other end.
    async fn call(&mut self, limits: Limits) -> (u64, tokio::task::JoinHandle<CallReport<contract::CallResult>>) {
        let process = Arc::clone(&self.process);
        let running = tokio::spawn(async move {
            let input = CallInput {
                tool: "tool",
                arguments_json: "{}",
                program: None,
                limits: &limits,
                capabilities: &Capabilities::sealed("tool"),
                caller: Arc::new(NoCaller),
                source: InstanceSource::Fresh,
            };
            process.call(CalledComponent { number: 0, asks: false }, input).await
        });
        let frame = self.receiver.receive().await.unwrap();
        match message::decode(&frame.bytes).unwrap() {
            ToSandbox::Call(call) => (call.id, running),
            other => panic!("{other:?} is no call"),
        }
    }

    /// Returns once the process was ended.
    async fn ends(mut self) {
        while self.receiver.receive().await.is_ok() {}
        assert!(self.process.is_ended());
    }
}

fn answer(text: &str) -> WireReport {
    let text = contract::TextContent { text: text.to_owned(), annotations: None, meta_json: None };
    let content = vec![contract::Content::Text(text)];
    let result = contract::CallResult { content, structured_json: None, is_error: false, meta_json: None };
    CallReport::without_running(result).into()
}

#[tokio::test]
async fn each_wrong_message_ends_the_process_and_its_calls() {
    let file = tempfile::tempfile().unwrap();
    let inquiry = || Inquiry { key: "key".to_owned(), question: Question::Roots };
    let table: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("another version", vec![0xff, 0]),
        ("garbage", vec![0xaa; 100]),
        (
            "more than any call may answer",
            vec![1; usize::try_from(message::bytes_max(&Limits::default())).unwrap() + 1],
        ),
        ("a second seal", message::encode(&FromSandbox::Sealed { missing: Vec::new() }).unwrap()),
        ("a component that is late", message::encode(&FromSandbox::NotLoaded(0, String::new())).unwrap()),
        (
            "the end of a call that there is not",
            message::encode(&FromSandbox::Ended(77, Box::new(answer("")))).unwrap(),
        ),
        ("progress of a call that there is not", message::encode(&FromSandbox::Instantiated(u64::MAX)).unwrap()),
        ("start code of no component", message::encode(&FromSandbox::NotAhead(1, String::new())).unwrap()),
        ("start code with a long name", message::encode(&FromSandbox::NotAhead(0, "x".repeat(513))).unwrap()),
        (
            "no capability",
            message::encode(&FromSandbox::Denied { call: 1, capability: 99, asked: String::new() }).unwrap(),
        ),
        (
            "more questions than a call may ask",
            message::encode(&FromSandbox::Ask(1, (0..1_000).map(|_| inquiry()).collect())).unwrap(),
        ),
    ];
    for (what, bytes) in table {
        let mut hostile = Hostile::ready().await;
        let (_, running) = hostile.call(Limits::default()).await;
        hostile.send(&bytes, &[]);
        // What the socket does not take at once is written while somebody reads.
        let (report, _) = tokio::join!(running, hostile.receiver.receive());
        let report = report.unwrap();
        let Err(Failure::SandboxEnded { reason }) = report.outcome else { panic!("{what}: {:?}", report.outcome) };
        assert!(reason.starts_with("its process broke the rules: "), "{what}: {reason}");
        hostile.ends().await;
    }
    let mut hostile = Hostile::ready().await;
    let (_, running) = hostile.call(Limits::default()).await;
    hostile.send(&message::encode(&FromSandbox::Instantiated(1)).unwrap(), &[file.as_fd()]);
    assert!(matches!(running.await.unwrap().outcome, Err(Failure::SandboxEnded { .. })), "a descriptor");
    hostile.ends().await;
}

#[tokio::test]
async fn a_call_ends_once_and_a_repeated_end_is_nobody_s() {
    let mut hostile = Hostile::ready().await;
    let (first, running) = hostile.call(Limits::default()).await;
    hostile.say(&FromSandbox::Ended(first, Box::new(answer("first"))));
    hostile.say(&FromSandbox::Ended(first, Box::new(answer("again"))));
    assert!(format!("{:?}", running.await.unwrap().outcome.unwrap()).contains("first"));
    let (second, running) = hostile.call(Limits::default()).await;
    assert_ne!(first, second);
    hostile.say(&FromSandbox::Ended(first, Box::new(answer("the first once more"))));
    hostile.say(&FromSandbox::Ended(second, Box::new(answer("second"))));
    assert!(format!("{:?}", running.await.unwrap().outcome.unwrap()).contains("second"));
    assert!(!hostile.process.is_ended());
}

#[tokio::test]
async fn an_answer_is_held_to_the_limits_of_its_call_again() {
    let mut hostile = Hostile::ready().await;
    let limits = Limits::default().with(Limit::Output, 1_024).unwrap();
    let (id, running) = hostile.call(limits).await;
    hostile.say(&FromSandbox::Ended(id, Box::new(answer(&"x".repeat(1_025)))));
    let outcome = running.await.unwrap().outcome;
    assert!(matches!(outcome, Err(Failure::OverLimit { limit: Limit::Output, .. })), "{outcome:?}");
}

#[tokio::test]
async fn a_process_that_gives_a_call_not_back_is_ended_and_those_beside_it_with_it() {
    let mut hostile = Hostile::ready().await;
    let limits = Limits::default().with(Limit::Deadline, 100).unwrap().with(Limit::QueueWait, 1).unwrap();
    let (_, late) = hostile.call(limits).await;
    let (_, beside) = hostile.call(Limits::default()).await;
    for running in [late, beside] {
        let outcome = tokio::time::timeout(Duration::from_secs(3_600), running).await.unwrap().unwrap().outcome;
        let Err(Failure::SandboxEnded { reason }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(reason, "it did not stop within its deadline");
    }
    hostile.ends().await;
}
