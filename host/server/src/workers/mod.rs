//! The threads that run guests: one queue, one thread per core, and a short way for a call that comes alone.
//!
//! What need not be done before a reply is out is done after it, by the thread that ran the call: giving an instance up
//! ([`leave`]), and making others ahead where nothing else is to be done ([`GuestExecutor::run_later`]).
//!
//! A guest that computes yields at every epoch tick and goes to the end of the queue. A call that comes alone begins on
//! the thread that read it, so that nobody has to be woken for it; at its first yield or wait it moves to a worker. A
//! call that waited for a connection and is alone goes on, for the same reason, on the thread that drives connections: a
//! guest that makes one request after another stays there. So does a call begin there that comes alone over HTTP. A call that kept one of these
//! threads for long makes the next ones go to the workers at once, for a while. A call that is about to do something that may take long (files,
//! state) leaves them by itself, and stays on the workers.
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use toolcell_mcp::{Executor, Work};
use toolcell_sandbox::with_other_duties;

/// A call that keeps the reader longer than this is no short one. Most guests answer within a tenth of it.
const SHORT: Duration = Duration::from_micros(300);
/// After one that was not short, the reader begins no call itself for this long, nor does the thread that drives
/// connections: at most one guest's tick, a millisecond, is lost to the protocol, or to timers, in that time.
const CAUTIOUS: Duration = Duration::from_millis(100);

/// The worker threads; they end when this is dropped, and with them what they run.
pub struct Workers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// Timers and sockets of guests are driven by this runtime's own thread.
    io: Handle,
    started: Instant,
    /// Until when the reader begins no call itself.
    reader: Caution,
    /// Until when the thread of `io` goes on with none.
    driver: Caution,
}

/// When a thread with other duties may run guests again, in microseconds since the workers' start.
#[derive(Default)]
struct Caution(AtomicU64);

impl Caution {
    fn begin(&self, now_us: u64) {
        self.0.store(now_us.saturating_add(micros(CAUTIOUS)), Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Queue {
    ready: VecDeque<Arc<Task>>,
    /// What is run once nothing is ready, by a thread that is awake: nobody is woken for it.
    later: VecDeque<Arc<Task>>,
    /// Threads with nothing to do. The last to lie down is woken first: its cache is warm.
    idle: Vec<Thread>,
    closed: bool,
}

impl Queue {
    /// Whether no task is ready, and some may be.
    fn is_free(&self) -> bool {
        self.ready.is_empty() && !self.closed
    }
}

/// A piece of work between two polls.
struct Task {
    work: Mutex<Option<Work>>,
    state: AtomicU8,
    /// Once its guest did something that may take long: it goes on on workers alone.
    long: AtomicBool,
    shared: Arc<Shared>,
}

/// Nothing to do until it is woken.
const WAITING: u8 = 0;
/// In the queue.
const QUEUED: u8 = 1;
/// Being polled.
const RUNNING: u8 = 2;
/// Being polled, and woken meanwhile: must be polled again.
const AGAIN: u8 = 3;

impl Workers {
    /// Starts `threads` workers. Guests' timers and sockets are driven by `io`.
    pub fn start(threads: usize, io: Handle) -> std::io::Result<Self> {
        let queue = Mutex::default();
        let (reader, driver) = Default::default();
        let shared = Arc::new(Shared { queue, io, started: Instant::now(), reader, driver });
        // Of the runtime's threads, those that block for others are none that drive.
        drop(shared.io.spawn(async { DRIVES.set(true) }));
        let start = |_| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name("toolcell-guest".to_owned()).spawn(move || shared.work())
        };
        let threads = (0..threads.max(1)).map(start).collect::<Result<_, _>>()?;
        Ok(Self { shared, threads })
    }

    /// A way to hand work to these threads.
    pub fn executor(&self) -> GuestExecutor {
        GuestExecutor(Arc::clone(&self.shared))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let abandoned = {
            let mut queue = self.shared.queue();
            queue.closed = true;
            queue.idle.drain(..).for_each(|thread| thread.unpark());
            (std::mem::take(&mut queue.ready), std::mem::take(&mut queue.later))
        };
        drop(abandoned);
        for thread in self.threads.drain(..) {
            // A worker catches what it runs; if it panicked all the same there is nothing left to end.
            let _ = thread.join();
        }
    }
}

thread_local! {
    /// Whether this thread polls a task just now: it looks for what is left to do afterwards.
    static POLLS: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread drives timers and sockets.
    static DRIVES: Cell<bool> = const { Cell::new(false) };
    /// What is dropped once the task that this thread polls has given its thread back.
    static LEFT: RefCell<Option<Box<dyn Send>>> = const { RefCell::new(None) };
}

/// Drops this once the task that this thread polls has ended or waits: after its reply is written. Dropped at once where this
/// thread polls none. One thing waits at most; what waited before is dropped now.
pub fn leave(thing: Box<dyn Send>) {
    if POLLS.get() {
        drop(LEFT.replace(Some(thing)));
    }
}

/// Hands work to the workers.
#[derive(Clone)]
pub struct GuestExecutor(Arc<Shared>);

impl GuestExecutor {
    /// Runs work that can wait until no other is to be done. The thread that hands it over does it after what it does now, or a
    /// worker that runs out of work: waking one would cost more than most of such work.
    pub fn run_later(&self, work: Work) {
        if !POLLS.get() {
            return self.run(work);
        }
        let task = Task::new(work, QUEUED, &self.0);
        let mut queue = self.0.queue();
        if !queue.closed {
            return queue.later.push_back(task);
        }
        drop(queue);
        drop(task);
    }
}

impl Executor for GuestExecutor {
    fn run(&self, work: Work) {
        let task = Task::new(work, QUEUED, &self.0);
        self.0.push(task);
    }

    fn run_here(&self, work: Work) {
        let shared = &self.0;
        if shared.is_cautious(&shared.reader) {
            return self.run(work);
        }
        let _io = shared.io.enter();
        shared.run_short(&shared.reader, || Task::new(work, RUNNING, shared).poll());
    }

    fn run_driving(&self, work: Work) {
        let shared = &self.0;
        if !DRIVES.get() || POLLS.get() || shared.is_cautious(&shared.driver) || !shared.queue().is_free() {
            return self.run(work);
        }
        let began = Instant::now();
        let (again, left) = with_other_duties(|| Task::new(work, RUNNING, shared).poll_leaving());
        again.into_iter().for_each(|task| shared.push(task));
        if began.elapsed() > SHORT {
            shared.driver.begin(shared.now_us());
        }
        shared.finish_later(left);
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_us(&self) -> u64 {
        micros(self.started.elapsed())
    }

    fn is_cautious(&self, caution: &Caution) -> bool {
        self.now_us() < caution.0.load(Ordering::Relaxed)
    }

    /// Runs a guest on a thread that has other duties: until it first waits or yields, then what it left to do, and no
    /// further guest for a while if that took long.
    fn run_short(&self, caution: &Caution, run: impl FnOnce() -> Option<Arc<Task>>) {
        let began = Instant::now();
        with_other_duties(run).into_iter().for_each(|task| self.push(task));
        while let Some(task) = self.next_later(began) {
            // Whoever reads the reply, perhaps on this CPU, comes first.
            std::thread::yield_now();
            with_other_duties(|| task.begin()).into_iter().for_each(|task| self.push(task));
        }
        let took = began.elapsed();
        if took > SHORT {
            caution.begin(self.now_us());
        }
    }

    /// Does what a call left to be done that was begun on this thread, which drives connections: after its reply is written, which
    /// is what this thread does first.
    fn finish_later(self: &Arc<Self>, left: Option<Box<dyn Send>>) {
        if left.is_none() && self.queue().later.is_empty() {
            return;
        }
        let shared = Arc::clone(self);
        drop(self.io.spawn(async move {
            with_other_duties(|| drop(left));
            shared.run_short(&shared.driver, || None);
        }));
    }

    /// A task that waited can go on: here, where this thread drives connections and no guest is waiting for a worker.
    fn go_on(self: &Arc<Self>, task: Arc<Task>) {
        if !DRIVES.get() || task.is_long() || self.is_cautious(&self.driver) || !self.queue().is_free() {
            return self.push(task);
        }
        let shared = Arc::clone(self);
        // It is the next that this thread does, once what woke the guest is done. Nobody waits for it to end.
        drop(self.io.spawn(async move {
            if shared.queue().is_free() {
                shared.run_short(&shared.driver, || task.begin());
            } else {
                shared.push(task);
            }
        }));
    }

    fn push(&self, task: Arc<Task>) {
        let mut queue = self.queue();
        if queue.closed {
            drop(queue);
            return drop(task);
        }
        queue.ready.push_back(task);
        let idle = queue.idle.pop();
        drop(queue);
        if let Some(thread) = idle {
            thread.unpark();
        }
    }

    /// Puts a task to the end that this worker has just polled. It looks for the next one now, so nobody is woken: for each
    /// task that is ready, a worker is awake.
    fn push_own(&self, task: Arc<Task>) {
        let mut queue = self.queue();
        if !queue.closed {
            return queue.ready.push_back(task);
        }
        drop(queue);
        drop(task);
    }

    /// What the reader does after its call, in the time that a short call has. The rest is left to a worker.
    fn next_later(&self, began: Instant) -> Option<Arc<Task>> {
        let mut queue = self.queue();
        if queue.later.is_empty() {
            return None;
        }
        if queue.ready.is_empty() && began.elapsed() < SHORT {
            return queue.later.pop_front();
        }
        let idle = queue.idle.pop();
        drop(queue);
        idle.iter().for_each(Thread::unpark);
        None
    }

    /// The life of a worker.
    fn work(&self) {
        let _io = self.io.enter();
        while let Some(task) = self.next() {
            if let Some(task) = task.begin() {
                self.push_own(task);
            }
        }
    }

    /// The next task; waits for one. `None` once closed.
    fn next(&self) -> Option<Arc<Task>> {
        loop {
            {
                let mut queue = self.queue();
                if queue.closed {
                    return None;
                }
                if let Some(task) = queue.ready.pop_front() {
                    return Some(task);
                }
                if let Some(task) = queue.later.pop_front() {
                    drop(queue);
                    std::thread::yield_now();
                    return Some(task);
                }
                let this = std::thread::current();
                if !queue.idle.iter().any(|thread| thread.id() == this.id()) {
                    queue.idle.push(this);
                }
            }
            std::thread::park();
        }
    }
}

impl Task {
    fn new(work: Work, state: u8, shared: &Arc<Shared>) -> Arc<Self> {
        let (work, state, long) = (Mutex::new(Some(work)), AtomicU8::new(state), AtomicBool::new(false));
        Arc::new(Self { work, state, long, shared: Arc::clone(shared) })
    }

    fn is_long(&self) -> bool {
        self.long.load(Ordering::Relaxed)
    }

    /// Takes it out of a queue and polls it; see [`Task::poll`].
    fn begin(self: Arc<Self>) -> Option<Arc<Self>> {
        self.state.store(RUNNING, Ordering::Release);
        self.poll()
    }

    /// Polls once. The state is `RUNNING`, so nobody else does. Gives the task back where it was woken meanwhile: it
    /// belongs into the queue.
    fn poll(self: Arc<Self>) -> Option<Arc<Self>> {
        let (again, left) = self.poll_leaving();
        drop(left);
        again
    }

    /// The same, and gives what is to be dropped afterwards.
    fn poll_leaving(self: Arc<Self>) -> (Option<Arc<Self>>, Option<Box<dyn Send>>) {
        let Some(mut work) = self.slot().take() else { return (None, None) };
        let waker = Waker::from(Arc::clone(&self));
        POLLS.set(true);
        let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
        POLLS.set(false);
        if toolcell_sandbox::leaves() {
            self.long.store(true, Ordering::Relaxed);
        }
        let left = LEFT.take();
        if polled.is_ready() {
            return (None, left);
        }
        *self.slot() = Some(work);
        if self.state.compare_exchange(RUNNING, WAITING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return (None, left);
        }
        self.state.store(QUEUED, Ordering::Release);
        (Some(self), left)
    }

    fn slot(&self) -> MutexGuard<'_, Option<Work>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        loop {
            let (from, to) = match self.state.load(Ordering::Acquire) {
                WAITING => (WAITING, QUEUED),
                RUNNING => (RUNNING, AGAIN),
                _ => return,
            };
            if self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                if to == QUEUED {
                    let shared = Arc::clone(&self.shared);
                    shared.go_on(self);
                }
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
