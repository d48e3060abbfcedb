//! Both sides of a call's doors in one process, for tests.
#![allow(clippy::unwrap_used)]
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use toolcell_policy::{Askable, Denial, Limits};

use toolcell_sandbox::{CallDoors, GrantedCapabilities};
use toolcell_wall::asking::{AskKind, AskResult, Inquiry};
use toolcell_wall::caller::{CallerLink, ConsentAnswer, GuestLogLevel, NoCaller, Outside, Trace};

#[path = "../../sandbox/src/wasi/net/testing.rs"]
pub(crate) mod name_server;

/// The doors of one call, with the caller on both sides.
pub(crate) struct TestDoors {
    pub(crate) calls: Arc<CallDoors>,
    /// The caller, as the host sees it.
    pub(crate) caller: Arc<TestCaller>,
    opened: Arc<AtomicUsize>,
}

/// A caller that records everything.
#[derive(Default)]
pub(crate) struct TestCaller {
    pub(crate) misuse: Mutex<Vec<String>>,
    pub(crate) denied: Mutex<Vec<String>>,
    pub(crate) away: Mutex<Vec<String>>,
    /// Answers of a person, last one first.
    pub(crate) consent: Mutex<Vec<ConsentAnswer>>,
}

/// A way out whose other side is in this process.
struct Hatch(Arc<CallDoors>, Arc<AtomicUsize>);

/// The caller, as a sandbox process sees it.
struct InSandbox(Arc<Hatch>);

impl TestDoors {
    pub(crate) fn new(capabilities: &Arc<GrantedCapabilities>, limits: &Limits) -> Self {
        let caller = Arc::new(TestCaller::default());
        let own: Arc<dyn CallerLink> = Arc::clone(&caller) as Arc<dyn CallerLink>;
        Self { calls: Arc::new(CallDoors::new(capabilities, limits, &own)), caller, opened: Arc::default() }
    }

    /// The caller for the sandbox's side.
    pub(crate) fn caller(&self) -> Arc<dyn CallerLink> {
        Arc::new(InSandbox(Arc::new(Hatch(Arc::clone(&self.calls), Arc::clone(&self.opened)))))
    }

    /// One end of a door, for a test that acts as a dishonest process.
    pub(crate) fn knock(&self) -> tokio::net::UnixStream {
        tokio::net::UnixStream::from_std(self.knock_plainly()).unwrap()
    }

    /// Like [`TestDoors::knock`], but reading never waits.
    pub(crate) fn knock_plainly(&self) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        self.calls
            .place()
            .into_iter()
            .for_each(|place| self.calls.serve(place, theirs.try_clone().unwrap().into(), Vec::new()));
        ours.set_nonblocking(true).unwrap();
        ours
    }

    /// The doors that the sandbox's side opened.
    pub(crate) fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }

    /// The misuse that the host reported.
    pub(crate) fn misuse(&self) -> Vec<String> {
        self.caller.misuse.lock().unwrap().clone()
    }
}

impl Outside for Hatch {
    fn open(&self, first: Vec<u8>) -> Pin<Box<dyn Future<Output = io::Result<OwnedFd>> + Send>> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        self.1.fetch_add(1, Ordering::Relaxed);
        let place = self.0.place();
        place.into_iter().for_each(|place| self.0.serve(place, theirs.try_clone().unwrap().into(), first.clone()));
        Box::pin(std::future::ready(Ok(ours.into())))
    }
}

impl CallerLink for TestCaller {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}
    fn log(&self, _: GuestLogLevel, _: &str) {}
    fn log_enabled(&self, _: GuestLogLevel) -> bool {
        false
    }
    fn denied(&self, denial: &Denial) {
        self.denied.lock().unwrap().push(denial.to_string());
    }
    fn name(&self) -> &str {
        "tester"
    }
    fn is_cancelled(&self) -> bool {
        false
    }
    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }
    fn supports(&self, _: AskKind) -> bool {
        false
    }
    fn ask(&self, asks: Vec<Inquiry>) -> Pin<Box<dyn Future<Output = AskResult> + Send + '_>> {
        NoCaller.ask(asks)
    }
    fn consent<'a>(&'a self, _: &'a Askable) -> Pin<Box<dyn Future<Output = ConsentAnswer> + Send + 'a>> {
        let answer = self.consent.lock().unwrap().pop().unwrap_or(ConsentAnswer::Refused);
        Box::pin(std::future::ready(answer))
    }
    fn trace(&self) -> Option<Trace> {
        None
    }
    fn meta_json(&self) -> String {
        "{}".to_owned()
    }
    fn misused(&self, what: &str) {
        self.misuse.lock().unwrap().push(what.to_owned());
    }
    fn state_away(&self, why: &str) {
        self.away.lock().unwrap().push(why.to_owned());
    }
}

impl CallerLink for InSandbox {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}
    fn log(&self, _: GuestLogLevel, _: &str) {}
    fn log_enabled(&self, _: GuestLogLevel) -> bool {
        false
    }
    fn denied(&self, denial: &Denial) {
        std::panic::panic_any(format!("decided in the sandbox process: {denial}"));
    }
    fn name(&self) -> &str {
        ""
    }
    fn is_cancelled(&self) -> bool {
        false
    }
    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }
    fn supports(&self, _: AskKind) -> bool {
        false
    }
    fn ask(&self, asks: Vec<Inquiry>) -> Pin<Box<dyn Future<Output = AskResult> + Send + '_>> {
        NoCaller.ask(asks)
    }
    fn trace(&self) -> Option<Trace> {
        None
    }
    fn meta_json(&self) -> String {
        "{}".to_owned()
    }
    fn outside(&self) -> Option<Arc<dyn Outside>> {
        Some(Arc::clone(&self.0) as Arc<dyn Outside>)
    }
}
