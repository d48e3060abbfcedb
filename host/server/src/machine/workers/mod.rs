//! Threads that drive calls: one queue, one worker per core, and a fast path for a single call.
//!
//! A call over stdio begins on the thread that read it, and continues there: that thread delivers
//! the replies of sandbox processes while it waits for input ([`Executor::wait`]). Any other single
//! request begins there too, which saves waking a worker, and moves to a worker at its first wait.
//!
//! For the same reason, the thread that drives connections runs calls over HTTP, and goes on with
//! them. It polls for the answer to a single one; the answers to others wake it.
//!
//! A call that keeps one of these threads for long sends the next ones straight to the workers, for
//! a while. A call about to do something long (files, state, large values) moves to workers of its
//! own kind, as many as there are cores, and stays there, and so does reading a long message: the
//! kernel lets short work go first, and neither waits for the other's threads.
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::PollFlags;
use rustix::io::Errno;
use tokio::runtime::Handle;
use toolcell_mcp::{Executor, Work};
use toolcell_sandbox::{
    begin_attending, leave_attending, step_back, wait_attending, with_other_duties, without_waiting,
};

/// Longest run of work that does not wait for another process, on the reader or on the thread that
/// drives connections.
const SHORT: Duration = Duration::from_micros(300);
/// Time after long work in which neither the reader nor the thread that drives connections begins
/// any. So the protocol and timers wait for long work a tenth of the time at the most.
const CAUTIOUS: Duration = Duration::from_millis(100);
/// Long messages are read one after the other for each caller, who waits for nobody else's: they
/// keep a tenth of a core.
const NICER_WHEN_LONG: i32 = 10;

/// Longest run on the reader, or on the thread that drives connections, of a call in another
/// process, which includes no guest. Checks and answers that are large leave the thread anyway;
/// others may take this long.
const SHORT_OF_WAITING: Duration = Duration::from_millis(10);

/// The worker threads; they end when dropped, with the tasks they run.
pub struct Workers {
    shared: Arc<WorkerState>,
    threads: Vec<JoinHandle<()>>,
}

struct WorkerState {
    queue: Mutex<TaskQueue>,
    /// The runtime that drives timers and sockets of guests.
    io: Handle,
    started: Instant,
    /// Time until which the reader begins no call.
    reader: Backoff,
    /// Time until which the thread of `io` continues none.
    driver: Backoff,
}

/// Time at which a thread with other duties may run guests again, in microseconds since the
/// workers' start.
#[derive(Default)]
struct Backoff(AtomicU64);

impl Backoff {
    fn begin(&self, now_us: u64) {
        self.0.store(now_us.saturating_add(micros(CAUTIOUS)), Ordering::Relaxed);
    }
}

#[derive(Default)]
struct TaskQueue {
    ready: VecDeque<Arc<Task>>,
    long: VecDeque<Arc<Task>>,
    /// Threads with nothing to do. The thread that became idle last is woken first: its cache is
    /// warm.
    idle: Vec<Thread>,
    /// Idle threads for long work.
    idle_long: Vec<Thread>,
    closed: bool,
}

/// The kind of work that a worker does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// Short work, and guests.
    Short,
    /// Work that has already left its thread once because it takes long.
    Long,
}

impl TaskQueue {
    /// The tasks of a lane, and its idle threads.
    fn lane(&mut self, lane: Lane) -> (&mut VecDeque<Arc<Task>>, &mut Vec<Thread>) {
        match lane {
            Lane::Short => (&mut self.ready, &mut self.idle),
            Lane::Long => (&mut self.long, &mut self.idle_long),
        }
    }

    /// True if no task is ready, and some may be.
    fn is_free(&self) -> bool {
        self.ready.is_empty() && !self.closed
    }
}

/// A task between two polls.
struct Task {
    work: Mutex<Option<Work>>,
    state: AtomicU8,
    /// True once its guest did something that may take long: it continues on workers only.
    long: AtomicBool,
    /// True if it mostly waits for another process, and runs no guest.
    waits: bool,
    shared: Arc<WorkerState>,
}

/// Waits to be woken.
const WAITING: u8 = 0;
/// In the queue.
const QUEUED: u8 = 1;
/// Being polled.
const RUNNING: u8 = 2;
/// Being polled, and woken meanwhile: must be polled again.
const AGAIN: u8 = 3;

impl Workers {
    /// Starts `threads` workers, and as many for long work. `io` drives the guests' timers and
    /// sockets.
    pub fn start(threads: usize, io: Handle) -> std::io::Result<Self> {
        let queue = Mutex::default();
        let (reader, driver) = Default::default();
        let shared = Arc::new(WorkerState { queue, io, started: Instant::now(), reader, driver });
        // Marks the driving thread. Runtime threads that block do not drive connections.
        drop(shared.io.spawn(async { DRIVES.set(true) }));
        let start = |(name, lane): (&str, Lane)| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name(name.to_owned()).spawn(move || shared.work(lane))
        };
        let lanes = [("toolcell-guest", Lane::Short), ("toolcell-long", Lane::Long)];
        let threads = lanes.into_iter().flat_map(|lane| std::iter::repeat_n(lane, threads.max(1)));
        let threads = threads.map(start).collect::<Result<_, _>>()?;
        Ok(Self { shared, threads })
    }

    /// Submits work to these threads.
    pub fn executor(&self) -> GuestExecutor {
        GuestExecutor(Arc::clone(&self.shared))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let abandoned = {
            let mut queue = self.shared.queue.lock();
            queue.closed = true;
            queue.idle.drain(..).for_each(|thread| thread.unpark());
            queue.idle_long.drain(..).for_each(|thread| thread.unpark());
            [std::mem::take(&mut queue.ready), std::mem::take(&mut queue.long)]
        };
        drop(abandoned);
        for thread in self.threads.drain(..) {
            // A worker catches panics of its tasks; if it panicked anyway, nothing is left to end.
            let _ = thread.join();
        }
    }
}

thread_local! {
    /// True while this thread polls a task.
    static POLLS: Cell<bool> = const { Cell::new(false) };
    /// True if this thread drives timers and sockets.
    static DRIVES: Cell<bool> = const { Cell::new(false) };
    /// Tasks that this thread woke, if it waits for sandbox processes.
    static ATTENDED: RefCell<Option<VecDeque<Arc<Task>>>> = const { RefCell::new(None) };
}

/// Tasks of a thread that waits for sandbox processes: it runs those that it woke itself.
struct AttendedTasks;

impl AttendedTasks {
    fn begin() {
        ATTENDED.with_borrow_mut(|tasks| {
            tasks.get_or_insert_default();
        });
        begin_attending();
    }

    /// The remaining tasks.
    fn leave() -> VecDeque<Arc<Task>> {
        ATTENDED.take().unwrap_or_default()
    }

    fn is_here() -> bool {
        ATTENDED.with_borrow(Option::is_some)
    }

    fn push(task: Arc<Task>) {
        ATTENDED.with_borrow_mut(|tasks| tasks.get_or_insert_default().push_back(task));
    }

    fn pop() -> Option<Arc<Task>> {
        ATTENDED.with_borrow_mut(|tasks| tasks.as_mut()?.pop_front())
    }
}

/// Gives work to the workers.
#[derive(Clone)]
pub struct GuestExecutor(Arc<WorkerState>);

impl Executor for GuestExecutor {
    fn run(&self, work: Work) {
        let task = Task::new(work, QUEUED, &self.0);
        self.0.push(task);
    }

    fn run_long(&self, work: Work) {
        let task = Task::new(work, QUEUED, &self.0);
        task.long.store(true, Ordering::Relaxed);
        self.0.push(task);
    }

    fn run_here(&self, work: Work) {
        let shared = &self.0;
        if shared.is_cautious(&shared.reader) {
            return self.run(work);
        }
        let _io = shared.io.enter();
        shared.run_short(SHORT, &shared.reader, || Task::new(work, RUNNING, shared).poll());
    }

    fn run_waiting(&self, work: Work) {
        let shared = &self.0;
        if !AttendedTasks::is_here() {
            return self.begin_driving(Task::waiting(work, RUNNING, shared), |task| without_waiting(|| task.poll()));
        }
        if shared.is_cautious(&shared.reader) {
            return self.run(work);
        }
        if POLLS.get() {
            // Runs after the task that woke it.
            return AttendedTasks::push(Task::waiting(work, QUEUED, shared));
        }
        let _io = shared.io.enter();
        shared.run_short(SHORT_OF_WAITING, &shared.reader, || Task::waiting(work, RUNNING, shared).poll());
    }

    fn wait(&self, fds: &[BorrowedFd<'_>], sent: &mut dyn FnMut()) -> Result<Vec<PollFlags>, Errno> {
        AttendedTasks::begin();
        let _io = self.0.io.enter();
        let mut go_on = || {
            self.0.run_attended();
            sent();
        };
        // //Tasks that this thread woke before.
        go_on();
        wait_attending(fds, go_on)
    }

    fn leave(&self) {
        leave_attending();
        AttendedTasks::leave().into_iter().for_each(|task| self.0.push(task));
    }

    fn run_driving(&self, work: Work) {
        self.begin_driving(Task::new(work, RUNNING, &self.0), Task::poll);
    }

    fn run_waiting_alone(&self, work: Work) {
        self.begin_driving(Task::waiting(work, RUNNING, &self.0), Task::poll);
    }
}

impl GuestExecutor {
    /// Begins a task here if this thread drives connections, and no task waits for a worker.
    fn begin_driving(&self, task: Arc<Task>, poll: impl FnOnce(Arc<Task>) -> Option<Arc<Task>>) {
        let shared = &self.0;
        if !DRIVES.get() || POLLS.get() || shared.is_cautious(&shared.driver) || !shared.queue.lock().is_free() {
            task.state.store(QUEUED, Ordering::Release);
            return shared.push(task);
        }
        shared.run_short(task.short(), &shared.driver, || poll(task));
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl WorkerState {
    fn now_us(&self) -> u64 {
        micros(self.started.elapsed())
    }

    fn is_cautious(&self, caution: &Backoff) -> bool {
        self.now_us() < caution.0.load(Ordering::Relaxed)
    }

    /// Runs a task on a thread with other duties, until it first waits. If that takes longer than
    /// `long`, that thread runs no further one for a while.
    fn run_short(&self, long: Duration, backoff: &Backoff, run: impl FnOnce() -> Option<Arc<Task>>) {
        let began = Instant::now();
        with_other_duties(run).into_iter().for_each(|task| self.push(task));
        if began.elapsed() > long {
            backoff.begin(self.now_us());
        }
    }

    fn run_attended(&self) {
        while let Some(task) = AttendedTasks::pop() {
            self.run_short(SHORT_OF_WAITING, &self.reader, || task.begin());
        }
    }

    /// Runs a woken task: here, if this thread drives connections and no task waits for a worker.
    fn go_on(self: &Arc<Self>, task: Arc<Task>) {
        if task.waits && AttendedTasks::is_here() && !task.is_long() && !self.is_cautious(&self.reader) {
            return AttendedTasks::push(task);
        }
        if !DRIVES.get() || task.is_long() || self.is_cautious(&self.driver) || !self.queue.lock().is_free() {
            return self.push(task);
        }
        let shared = Arc::clone(self);
        // This thread runs it next, once the event that woke the guest is handled.
        drop(self.io.spawn(async move {
            if shared.queue.lock().is_free() {
                shared.run_short(task.short(), &shared.driver, || without_waiting(|| task.begin()));
            } else {
                shared.push(task);
            }
        }));
    }

    fn push(&self, task: Arc<Task>) {
        let mut queue = self.queue.lock();
        if queue.closed {
            drop(queue);
            return drop(task);
        }
        let (tasks, idle) = queue.lane(task.lane());
        tasks.push_back(task);
        let idle = idle.pop();
        drop(queue);
        if let Some(thread) = idle {
            thread.unpark();
        }
    }

    /// Appends a task that this worker has just polled. It takes the next task itself, so no thread
    /// is woken: a worker is awake for each ready task.
    fn push_own(&self, task: Arc<Task>) {
        let mut queue = self.queue.lock();
        if !queue.closed {
            return queue.lane(task.lane()).0.push_back(task);
        }
        drop(queue);
        drop(task);
    }

    /// Loop of a worker.
    fn work(&self, lane: Lane) {
        let _io = self.io.enter();
        if lane == Lane::Long {
            step_back(NICER_WHEN_LONG);
        }
        while let Some(task) = self.next(lane) {
            let again = match lane {
                // Long tasks leave this lane.
                Lane::Short => with_other_duties(|| task.begin()),
                Lane::Long => task.begin(),
            };
            match again {
                Some(task) if task.lane() == lane => self.push_own(task),
                Some(task) => self.push(task),
                None => {}
            }
        }
    }

    /// The next task of a lane; waits for one. `None` once closed.
    fn next(&self, lane: Lane) -> Option<Arc<Task>> {
        loop {
            {
                let mut queue = self.queue.lock();
                if queue.closed {
                    return None;
                }
                if let Some(task) = queue.lane(lane).0.pop_front() {
                    return Some(task);
                }
                let this = std::thread::current();
                let (_, idle) = queue.lane(lane);
                if !idle.iter().any(|thread| thread.id() == this.id()) {
                    idle.push(this);
                }
            }
            std::thread::park();
        }
    }
}

impl Task {
    fn new(work: Work, state: u8, shared: &Arc<WorkerState>) -> Arc<Self> {
        Self::of(work, state, shared, false)
    }

    fn waiting(work: Work, state: u8, shared: &Arc<WorkerState>) -> Arc<Self> {
        Self::of(work, state, shared, true)
    }

    fn of(work: Work, state: u8, shared: &Arc<WorkerState>, waits: bool) -> Arc<Self> {
        let work = Mutex::new(Some(work));
        let state = AtomicU8::new(state);
        let long = AtomicBool::new(false);
        Arc::new(Self { work, state, long, waits, shared: Arc::clone(shared) })
    }

    /// Longest run on a thread with other duties.
    fn short(&self) -> Duration {
        if self.waits { SHORT_OF_WAITING } else { SHORT }
    }

    fn is_long(&self) -> bool {
        self.long.load(Ordering::Relaxed)
    }

    fn lane(&self) -> Lane {
        if self.is_long() { Lane::Long } else { Lane::Short }
    }

    /// Takes it out of a queue and polls it; see [`Task::poll`].
    fn begin(self: Arc<Self>) -> Option<Arc<Self>> {
        self.state.store(RUNNING, Ordering::Release);
        self.poll()
    }

    /// Polls once. The state is `RUNNING`, so no other thread does. Returns the task if it was
    /// woken meanwhile: it must be queued again.
    fn poll(self: Arc<Self>) -> Option<Arc<Self>> {
        let mut work = self.work.lock().take()?;
        let waker = Waker::from(Arc::clone(&self));
        POLLS.set(true);
        let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
        POLLS.set(false);
        // No short circuit: asking also resets the answer.
        if toolcell_sandbox::leaves() | toolcell_mcp::leaves_thread() {
            self.long.store(true, Ordering::Relaxed);
        }
        if polled.is_ready() {
            return None;
        }
        *self.work.lock() = Some(work);
        if self.state.compare_exchange(RUNNING, WAITING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return None;
        }
        self.state.store(QUEUED, Ordering::Release);
        Some(self)
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
