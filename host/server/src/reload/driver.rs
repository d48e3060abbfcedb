//! The thread that reloads: takes orders, does one at a time, and answers all that came meanwhile with one attempt.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::attempt::{Outcome, Reloader};
use super::journal::Failed;
use crate::lock::Approval;

/// Orders that wait. More than a few are the same one, again.
const ORDERS_MAX: usize = 64;

/// A file that is not what it should be may be half written: it is looked at again until it has not changed for so long.
const SETTLED_AFTER: Duration = Duration::from_millis(300);

/// A file that goes on changing is reported as it is after so long.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);

/// How long a process that ends waits for an attempt that is under way.
const ENDS_WITHIN: Duration = Duration::from_millis(500);

/// What the thread is told.
enum Order {
    /// A file changed.
    Files,
    /// SIGHUP.
    Hangup,
    /// Somebody asks, and waits.
    Asked(oneshot::Sender<Outcome>),
    /// Somebody approves what is quarantined, and waits.
    Approve(Approval, oneshot::Sender<Outcome>),
    Stop,
}

/// A way to give orders. Cheap to clone.
#[derive(Clone)]
pub struct Orders(SyncSender<Order>);

/// The thread; it ends when this is dropped, or is left behind with what it compiles.
pub struct Driver {
    orders: Orders,
    thread: Option<JoinHandle<()>>,
    /// Closed by the thread's end.
    ended: Receiver<()>,
}

/// Orders that one attempt serves.
#[derive(Default)]
struct Batch {
    hangup: bool,
    asked: Vec<oneshot::Sender<Outcome>>,
    approvals: Vec<(Approval, oneshot::Sender<Outcome>)>,
    approved: bool,
    stop: bool,
}

impl Orders {
    /// A file changed. Where orders wait already, one of them will see it.
    pub fn files(&self) {
        let _ = self.0.try_send(Order::Files);
    }

    /// The process was sent SIGHUP.
    pub fn hangup(&self) {
        let _ = self.0.try_send(Order::Hangup);
    }

    /// Somebody asks. `None` where too many do, or nobody answers any more.
    pub fn ask(&self) -> Option<oneshot::Receiver<Outcome>> {
        self.expect(Order::Asked)
    }

    /// Somebody approves what is quarantined.
    pub fn approve(&self, approval: Approval) -> Option<oneshot::Receiver<Outcome>> {
        self.expect(|answer| Order::Approve(approval, answer))
    }

    fn expect(&self, order: impl FnOnce(oneshot::Sender<Outcome>) -> Order) -> Option<oneshot::Receiver<Outcome>> {
        let (answer, answered) = oneshot::channel();
        match self.0.try_send(order(answer)) {
            Ok(()) => Some(answered),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => None,
        }
    }
}

impl Driver {
    /// Orders for a thread that is still to be started, and what it takes them from.
    pub fn channel() -> (Orders, Inbox) {
        let (sender, receiver) = sync_channel(ORDERS_MAX);
        (Orders(sender), Inbox(receiver))
    }

    /// Starts the thread.
    pub fn start(reloader: Reloader, orders: Orders, inbox: Inbox) -> std::io::Result<Self> {
        let (ends, ended) = sync_channel(0);
        let run = move || {
            let _ends: SyncSender<()> = ends;
            inbox.drive(reloader);
        };
        let thread = std::thread::Builder::new().name("toolcell-reload".to_owned()).spawn(run)?;
        Ok(Self { orders, thread: Some(thread), ended })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.orders.0.try_send(Order::Stop);
        // A compiler cannot be stopped: where one is at work, the process ends without it.
        let is_over = !matches!(self.ended.recv_timeout(ENDS_WITHIN), Err(RecvTimeoutError::Timeout));
        if let Some(thread) = self.thread.take().filter(|_| is_over) {
            let _ = thread.join();
        }
    }
}

/// Where orders come out.
pub struct Inbox(Receiver<Order>);

impl Batch {
    fn take(&mut self, order: Order) {
        match order {
            Order::Files => {}
            Order::Hangup => self.hangup = true,
            Order::Asked(answer) => self.asked.push(answer),
            Order::Approve(approval, answer) => self.approvals.push((approval, answer)),
            Order::Stop => self.stop = true,
        }
    }

    /// The most deliberate of what asked for it.
    fn trigger(&self) -> &'static str {
        if self.approved {
            return "approved";
        }
        match (self.asked.is_empty(), self.hangup) {
            (false, _) => "asked",
            (true, true) => "hangup",
            (true, false) => "files",
        }
    }

    /// Whether somebody asked, rather than a file changed.
    fn is_deliberate(&self) -> bool {
        self.hangup || self.approved || !self.asked.is_empty()
    }

    /// Approves what is to be approved. What cannot be is answered; who approved the rest waits for the attempt.
    fn approve(&mut self, reloader: &mut Reloader) {
        for (approval, answer) in std::mem::take(&mut self.approvals) {
            match reloader.approve(&approval) {
                Ok(()) => {
                    self.approved = true;
                    self.asked.push(answer);
                }
                Err(failed) => drop(answer.send(Outcome::Failed(failed))),
            }
        }
    }
}

impl Inbox {
    fn drive(self, mut reloader: Reloader) {
        while let Ok(first) = self.0.recv() {
            let mut batch = Batch::default();
            batch.take(first);
            self.take_all(&mut batch);
            if batch.stop {
                return;
            }
            let began = Instant::now();
            batch.approve(&mut reloader);
            let mut outcome = attempt(&mut reloader, batch.trigger());
            if matches!(outcome, Outcome::Failed(_)) && !batch.is_deliberate() {
                outcome = self.settle(&mut reloader, &mut batch, outcome);
            }
            reloader.report(batch.trigger(), began, &outcome);
            for answer in batch.asked {
                // Whoever asked may be gone.
                let _ = answer.send(outcome.clone());
            }
            if batch.stop {
                return;
            }
        }
    }

    fn take_all(&self, batch: &mut Batch) {
        while let Ok(order) = self.0.try_recv() {
            batch.take(order);
        }
    }

    /// Looks again at what may be half written, until it is good or has not changed for a while.
    fn settle(&self, reloader: &mut Reloader, batch: &mut Batch, mut outcome: Outcome) -> Outcome {
        let began = Instant::now();
        while matches!(outcome, Outcome::Failed(_)) {
            match self.0.recv_timeout(SETTLED_AFTER) {
                Ok(order) => {
                    batch.take(order);
                    self.take_all(batch);
                }
                Err(RecvTimeoutError::Timeout) if !reloader.files_changed() => return outcome,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return outcome,
            }
            if batch.stop {
                return outcome;
            }
            batch.approve(reloader);
            outcome = attempt(reloader, batch.trigger());
            if batch.is_deliberate() {
                return outcome;
            }
            // Given up after a look, not instead of one: what was ordered is served, and nobody orders it again.
            if let Outcome::Failed(failed) = &mut outcome
                && began.elapsed() > SETTLES_WITHIN
            {
                failed.summary.push_str(" (the files are still being written to)");
                return outcome;
            }
        }
        outcome
    }
}

/// A panic in a build is a failed attempt, not the end of reloading.
fn attempt(reloader: &mut Reloader, trigger: &'static str) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| reloader.attempt(trigger)))
        .unwrap_or_else(|_| Outcome::Failed(Failed::saying("the host failed while it looked; its stderr says more")))
}
