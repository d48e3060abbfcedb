//! The reload thread. It runs one attempt at a time. The next attempt serves all orders that came
//! meanwhile.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::attempt::{ReloadOutcome, Reloader};
use super::failure::ReloadFailure;
use crate::lock::Approval;

/// Orders that may wait. Further ones would repeat them.
const ORDERS_MAX: usize = 64;

/// A file with an error may be half written, so it is read again until it has not changed for this
/// long.
const SETTLED_AFTER: Duration = Duration::from_millis(300);

/// A file that keeps changing is reported after this long.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);

/// Time that an ending process waits for a running attempt.
const ENDS_WITHIN: Duration = Duration::from_millis(500);

/// Trigger of an attempt after an approval.
const APPROVED: &str = "approved";

/// An order to the thread.
enum ReloadOrder {
    /// A file changed.
    Files,
    /// SIGHUP.
    Hangup,
    /// A person asks, and waits for the outcome.
    Asked(oneshot::Sender<ReloadOutcome>),
    /// A person approves a quarantined component, and waits for the outcome.
    Approve(Approval, oneshot::Sender<ReloadOutcome>),
    /// A person has a quarantined component read, and waits until it is.
    Read(Approval, oneshot::Sender<ReloadOutcome>),
    /// Another replica may have approved what is quarantined here.
    Elsewhere,
    Stop,
}

/// Sends orders to the thread. Cheap to clone.
#[derive(Clone)]
pub struct Orders(SyncSender<ReloadOrder>);

/// The reload thread; dropping it ends the thread, or leaves it behind while it compiles.
pub struct Driver {
    orders: Orders,
    thread: Option<JoinHandle<()>>,
    /// Closed when the thread ends.
    ended: Receiver<()>,
}

/// Orders that one attempt serves.
#[derive(Default)]
struct Batch {
    hangup: bool,
    asked: Vec<oneshot::Sender<ReloadOutcome>>,
    approvals: Vec<(Approval, oneshot::Sender<ReloadOutcome>)>,
    /// Quarantined components that are to be read.
    unread: Vec<(Approval, oneshot::Sender<ReloadOutcome>)>,
    approved: bool,
    elsewhere: bool,
    /// True if files must be read, whatever else is ordered.
    reads: bool,
    stop: bool,
}

impl Orders {
    /// Orders that are never carried out.
    #[cfg(test)]
    pub fn to_nobody() -> Self {
        Self(std::sync::mpsc::sync_channel(1).0)
    }

    /// A file changed. Orders that already wait will see the change as well.
    pub fn files(&self) {
        let _ = self.0.try_send(ReloadOrder::Files);
    }

    /// The process was sent SIGHUP.
    pub fn hangup(&self) {
        let _ = self.0.try_send(ReloadOrder::Hangup);
    }

    /// Another replica may have approved what is quarantined here.
    pub fn approved_elsewhere(&self) {
        let _ = self.0.try_send(ReloadOrder::Elsewhere);
    }

    /// Orders a reload; `None` if too many orders wait, or the thread has ended.
    pub fn ask(&self) -> Option<oneshot::Receiver<ReloadOutcome>> {
        self.expect(ReloadOrder::Asked)
    }

    /// Orders an approval of a quarantined component.
    pub fn approve(&self, approval: Approval) -> Option<oneshot::Receiver<ReloadOutcome>> {
        self.expect(|answer| ReloadOrder::Approve(approval, answer))
    }

    /// Orders that a quarantined component is read, to show how it differs. It stays quarantined:
    /// the outcome is [`ReloadOutcome::Unchanged`].
    pub fn read(&self, seen: Approval) -> Option<oneshot::Receiver<ReloadOutcome>> {
        self.expect(|answer| ReloadOrder::Read(seen, answer))
    }

    fn expect(
        &self,
        order: impl FnOnce(oneshot::Sender<ReloadOutcome>) -> ReloadOrder,
    ) -> Option<oneshot::Receiver<ReloadOutcome>> {
        let (answer, answered) = oneshot::channel();
        match self.0.try_send(order(answer)) {
            Ok(()) => Some(answered),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => None,
        }
    }
}

impl Driver {
    /// Orders for a thread that starts later, and their receiver.
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
        let _ = self.orders.0.try_send(ReloadOrder::Stop);
        // A compiler cannot be stopped: if one is running, the process ends without it.
        let is_over = !matches!(self.ended.recv_timeout(ENDS_WITHIN), Err(RecvTimeoutError::Timeout));
        if let Some(thread) = self.thread.take().filter(|_| is_over) {
            let _ = thread.join();
        }
    }
}

/// The receiver of orders.
pub struct Inbox(Receiver<ReloadOrder>);

impl Batch {
    fn take(&mut self, order: ReloadOrder) {
        self.reads |= !matches!(order, ReloadOrder::Elsewhere | ReloadOrder::Read(..));
        match order {
            ReloadOrder::Files => {}
            ReloadOrder::Hangup => self.hangup = true,
            ReloadOrder::Asked(answer) => self.asked.push(answer),
            ReloadOrder::Approve(approval, answer) => self.approvals.push((approval, answer)),
            ReloadOrder::Read(seen, answer) => self.unread.push((seen, answer)),
            ReloadOrder::Elsewhere => self.elsewhere = true,
            ReloadOrder::Stop => self.stop = true,
        }
    }

    /// The most deliberate trigger among the orders.
    fn trigger(&self) -> &'static str {
        if self.approved {
            return APPROVED;
        }
        match (self.asked.is_empty(), self.hangup) {
            (false, _) => "asked",
            (true, true) => "hangup",
            (true, false) => "files",
        }
    }

    /// True if a person or program ordered it; false after a change of files.
    fn is_deliberate(&self) -> bool {
        self.hangup || self.approved || !self.asked.is_empty()
    }

    /// Reads components that stay quarantined.
    fn read(&mut self, reloader: &mut Reloader) {
        for (seen, answer) in std::mem::take(&mut self.unread) {
            let outcome = reloader.read(&seen).map_or_else(ReloadOutcome::Failed, |()| ReloadOutcome::Unchanged);
            // The person who asked may have left.
            let _ = answer.send(outcome);
        }
    }

    /// Carries out the approvals. Failed ones are answered now; the others wait for the attempt.
    fn approve(&mut self, reloader: &mut Reloader) {
        for (approval, answer) in std::mem::take(&mut self.approvals) {
            match reloader.approve(&approval) {
                Ok(()) => {
                    self.approved = true;
                    self.asked.push(answer);
                }
                Err(failed) => drop(answer.send(ReloadOutcome::Failed(failed))),
            }
        }
        self.approved |= std::mem::take(&mut self.elsewhere) && reloader.approve_as_elsewhere();
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
            batch.read(&mut reloader);
            if !batch.reads && !batch.approved {
                continue;
            }
            if batch.hangup || !batch.asked.is_empty() {
                reloader.forget_ends();
            }
            let outcome = self.carry_out(&mut reloader, &mut batch, began);
            // Orders that came meanwhile.
            batch.read(&mut reloader);
            for answer in batch.asked {
                // The person who asked may have left.
                let _ = answer.send(outcome.clone());
            }
            if batch.stop {
                return;
            }
        }
    }

    /// Attempts a reload, as often as it takes. Returns the last outcome; all are reported.
    fn carry_out(&self, reloader: &mut Reloader, batch: &mut Batch, began: Instant) -> ReloadOutcome {
        let _other_replicas_wait = reloader.notice_loading();
        let mut outcome = attempt(reloader, batch.trigger());
        if matches!(outcome, ReloadOutcome::Failed(_)) && !batch.is_deliberate() {
            outcome = self.settle(reloader, batch, outcome);
        }
        reloader.report(batch.trigger(), began, &outcome);
        if reloader.approve_as_elsewhere() {
            // Another replica may already have approved a component that was just quarantined.
            let began = Instant::now();
            outcome = attempt(reloader, APPROVED);
            reloader.report(APPROVED, began, &outcome);
        }
        outcome
    }

    fn take_all(&self, batch: &mut Batch) {
        while let Ok(order) = self.0.try_recv() {
            batch.take(order);
        }
    }

    /// Tries again while a file may be half written, until it is valid or has not changed for a
    /// while.
    fn settle(&self, reloader: &mut Reloader, batch: &mut Batch, mut outcome: ReloadOutcome) -> ReloadOutcome {
        let began = Instant::now();
        while matches!(outcome, ReloadOutcome::Failed(_)) {
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
            // Checked after an attempt, not instead of one: every order is served, since nobody
            // repeats it.
            if let ReloadOutcome::Failed(failed) = &mut outcome
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
fn attempt(reloader: &mut Reloader, trigger: &'static str) -> ReloadOutcome {
    catch_unwind(AssertUnwindSafe(|| reloader.attempt(trigger))).unwrap_or_else(|_| {
        ReloadOutcome::Failed(ReloadFailure::saying("the host failed during the check; its stderr says more"))
    })
}
