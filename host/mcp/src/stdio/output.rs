//! The output: frames from any thread, written in order.
//!
//! The thread that finishes a call writes the reply itself as far as that does not block. Meanwhile
//! other threads only queue their frames, so that many replies share one system call. A writer
//! thread does the writes that would block.

use std::cell::Cell;
use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::wake::Wake;
use crate::host::Outbox;
use crate::lock::lock;

/// Bytes that a pipe accepts without blocking after it polled as writable: one page, `PIPE_BUF`.
const PIPE_BYTES: usize = 4_096;

/// Batches of other threads' frames that a thread with other duties writes.
const ROUNDS_MAX: usize = 4;

/// A larger buffer is freed after writing.
const KEPT_BYTES_MAX: usize = 256 * 1024;

thread_local! {
    /// True while frames of this thread are held back.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// Does this with the frames of this thread held back until they are flushed by
/// [`SharedOutput::flush_held`], or after it.
pub(super) fn hold<T>(work: impl FnOnce() -> T) -> T {
    /// Runs at the end of the work, even after a panic.
    struct OutputWork(bool);
    impl Drop for OutputWork {
        fn drop(&mut self) {
            HOLDS.set(self.0);
        }
    }
    let _before = OutputWork(HOLDS.replace(true));
    work()
}

/// Flags for writing to a socket: without waiting, and without a signal if the other end is gone.
/// Systems without `MSG_NOSIGNAL` rely on Rust, which ignores SIGPIPE in every program.
#[cfg(not(target_vendor = "apple"))]
const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(target_vendor = "apple")]
const SEND: SendFlags = SendFlags::DONTWAIT;
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The output and its writer thread, which is joined on stop and on drop.
#[derive(Debug)]
pub(super) struct StdioOutput {
    shared: Arc<SharedOutput>,
    stop: PipeWriter,
    writer: Option<JoinHandle<()>>,
}

/// The state of the output that threads share.
#[derive(Debug)]
pub(super) struct SharedOutput {
    fd: OwnedFd,
    kind: OutputKind,
    bytes_max: usize,
    wake: Arc<Wake>,
    congested: AtomicBool,
    closed: AtomicBool,
    state: Mutex<OutputState>,
    handed: Condvar,
}

/// How to write without blocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputKind {
    /// `send` with a flag.
    Socket,
    /// Poll, then at most a page. Also for regular files, which always poll as writable.
    Pipe,
    /// A terminal may block at any byte, so only the writer thread writes.
    Terminal,
}

#[derive(Debug, Default)]
struct OutputState {
    /// Frames that no thread has begun to write.
    queue: Vec<u8>,
    /// An empty buffer for swapping.
    spare: Vec<u8>,
    /// Bytes that are being written.
    held: usize,
    turn: OutputTurn,
    stopping: bool,
}

/// The thread that may write.
#[derive(Debug, Default)]
enum OutputTurn {
    /// Nobody: the next thread that flushes.
    #[default]
    Free,
    /// Some thread is writing.
    Taken,
    /// The writer thread, which begins with this remainder.
    Writer(Vec<u8>, usize),
}

/// The outcome of a write.
enum WriteOutcome {
    All,
    /// Everything up to this position was written; more would block.
    Until(usize),
    /// The other end is gone.
    Closed,
}

impl StdioOutput {
    pub(super) fn start(fd: OwnedFd, bytes_max: usize, wake: Arc<Wake>) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let kind = OutputKind::of(&fd);
        let shared = Arc::new(SharedOutput {
            fd,
            kind,
            bytes_max,
            wake,
            congested: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            state: Mutex::default(),
            handed: Condvar::new(),
        });
        let writes = Arc::clone(&shared);
        let writer =
            std::thread::Builder::new().name("mcp-writer".to_owned()).spawn(move || writes.write_on(&stopped))?;
        Ok(Self { shared, stop, writer: Some(writer) })
    }

    pub(super) fn shared(&self) -> &Arc<SharedOutput> {
        &self.shared
    }
}

/// Ends the writer thread, even if something is unwritten.
impl Drop for StdioOutput {
    fn drop(&mut self) {
        let Some(writer) = self.writer.take() else { return };
        lock(&self.shared.state).stopping = true;
        self.shared.handed.notify_all();
        // Wakes the writer from its poll; its end of the pipe is open while it runs.
        let _ = self.stop.write(&[1]);
        // A panic of the writer was reported when it happened.
        let _ = writer.join();
    }
}

impl OutputKind {
    fn of(fd: &OwnedFd) -> Self {
        if rustix::net::sockopt::socket_type(fd).is_ok() {
            return Self::Socket;
        }
        if io::IsTerminal::is_terminal(fd) { Self::Terminal } else { Self::Pipe }
    }
}

impl Outbox for SharedOutput {
    fn queue(&self, mut frame: Vec<u8>) {
        if self.is_closed() {
            return;
        }
        frame.push(b'\n');
        let mut state = lock(&self.state);
        if state.queue.is_empty() && state.queue.capacity() < frame.len() {
            state.queue = frame;
        } else {
            state.queue.extend_from_slice(&frame);
        }
        if state.unwritten() > self.bytes_max {
            self.congested.store(true, Ordering::SeqCst);
        }
    }

    fn flush(&self) {
        if !HOLDS.get() {
            self.write_queued();
        }
    }

    fn congested(&self) -> bool {
        self.congested.load(Ordering::SeqCst)
    }

    fn notice(&self) {
        self.wake.notice();
    }
}

impl SharedOutput {
    /// Flushes, even on a thread that [`hold`]s its frames back.
    pub(super) fn flush_held(&self) {
        self.write_queued();
    }

    /// Writes what is queued, as far as it does not block.
    fn write_queued(&self) {
        let mut state = lock(&self.state);
        if !matches!(state.turn, OutputTurn::Free) || state.queue.is_empty() {
            return;
        }
        state.turn = OutputTurn::Taken;
        for _ in 0..ROUNDS_MAX {
            let batch = state.take();
            drop(state);
            let written = self.write_ready(&batch);
            state = lock(&self.state);
            match written {
                WriteOutcome::All => state.put_back(batch),
                WriteOutcome::Until(place) => {
                    state.held = batch.len().saturating_sub(place);
                    state.turn = OutputTurn::Writer(batch, place);
                    self.handed.notify_one();
                    return;
                }
                WriteOutcome::Closed => return self.close(state),
            }
            self.relieve(&state);
            if state.queue.is_empty() {
                state.turn = OutputTurn::Free;
                drop(state);
                return self.wake.notice();
            }
        }
        state.turn = OutputTurn::Writer(Vec::new(), 0);
        self.handed.notify_one();
    }

    /// True if the other end is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// True if everything queued was written.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.state).unwritten() == 0
    }

    fn close(&self, mut state: MutexGuard<'_, OutputState>) {
        self.closed.store(true, Ordering::SeqCst);
        self.congested.store(false, Ordering::SeqCst);
        *state = OutputState { stopping: state.stopping, ..OutputState::default() };
        drop(state);
        self.wake.alert();
    }

    /// Ends congestion once half of the budget is free again, which avoids flapping.
    fn relieve(&self, state: &OutputState) {
        if state.unwritten() <= self.bytes_max / 2 && self.congested.swap(false, Ordering::SeqCst) {
            self.wake.alert();
        }
    }

    /// Writes as far as it cannot block.
    fn write_ready(&self, data: &[u8]) -> WriteOutcome {
        let mut place = 0;
        while let Some(rest) = data.get(place..).filter(|rest| !rest.is_empty()) {
            match self.write_some(rest) {
                Ok(bytes) => place += bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return WriteOutcome::Until(place),
                Err(_) => return WriteOutcome::Closed,
            }
        }
        WriteOutcome::All
    }

    /// Writes once without blocking; `AGAIN` if it would block.
    fn write_some(&self, rest: &[u8]) -> Result<usize, Errno> {
        match self.kind {
            OutputKind::Socket => rustix::net::send(&self.fd, rest, SEND),
            OutputKind::Terminal => Err(Errno::AGAIN),
            OutputKind::Pipe => {
                let mut fds = [PollFd::new(&self.fd, PollFlags::OUT)];
                if poll(&mut fds, Some(&NO_WAIT))? == 0 {
                    return Err(Errno::AGAIN);
                }
                rustix::io::write(&self.fd, first_page(rest))
            }
        }
    }

    /// The writer thread: takes over writes that would block, until stopped.
    fn write_on(&self, stopped: &PipeReader) {
        while let Some((batch, mut place)) = self.await_turn() {
            while let Some(rest) = batch.get(place..).filter(|rest| !rest.is_empty()) {
                let mut fds =
                    [PollFd::new(&self.fd, PollFlags::OUT), PollFd::from_borrowed_fd(stopped.as_fd(), PollFlags::IN)];
                match poll(&mut fds, None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(_) => return self.close(lock(&self.state)),
                }
                let [output, stop] = &fds;
                if !stop.revents().is_empty() {
                    return;
                }
                if output.revents().is_empty() {
                    continue;
                }
                match self.write_polled(rest) {
                    Ok(bytes) => place += bytes,
                    Err(Errno::INTR | Errno::AGAIN) => continue,
                    Err(_) => return self.close(lock(&self.state)),
                }
                let mut state = lock(&self.state);
                state.held = batch.len().saturating_sub(place);
                self.relieve(&state);
            }
            self.pass_on(batch);
        }
    }

    /// Writes once to an output that polled as writable.
    fn write_polled(&self, rest: &[u8]) -> Result<usize, Errno> {
        match self.kind {
            OutputKind::Socket => rustix::net::send(&self.fd, rest, SEND),
            OutputKind::Pipe | OutputKind::Terminal => rustix::io::write(&self.fd, first_page(rest)),
        }
    }

    /// Waits for the writer thread's turn; `None` once stopping.
    fn await_turn(&self) -> Option<(Vec<u8>, usize)> {
        let mut state = lock(&self.state);
        loop {
            if state.stopping {
                return None;
            }
            if matches!(state.turn, OutputTurn::Writer(..)) {
                break;
            }
            state = self.handed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match std::mem::replace(&mut state.turn, OutputTurn::Taken) {
            OutputTurn::Writer(batch, place) if !batch.is_empty() => Some((batch, place)),
            _ => Some((state.take(), 0)),
        }
    }

    /// Keeps the turn after a batch while there is more, and frees it otherwise.
    fn pass_on(&self, batch: Vec<u8>) {
        let mut state = lock(&self.state);
        state.put_back(batch);
        self.relieve(&state);
        state.turn = if state.queue.is_empty() { OutputTurn::Free } else { OutputTurn::Writer(Vec::new(), 0) };
        drop(state);
        self.wake.notice();
    }
}

impl OutputState {
    fn unwritten(&self) -> usize {
        self.queue.len() + self.held
    }

    /// Takes the queued bytes, for the caller to write.
    fn take(&mut self) -> Vec<u8> {
        let batch = std::mem::replace(&mut self.queue, std::mem::take(&mut self.spare));
        self.held = batch.len();
        batch
    }

    /// Returns a written buffer for reuse.
    fn put_back(&mut self, mut batch: Vec<u8>) {
        self.held = 0;
        if batch.capacity() <= KEPT_BYTES_MAX {
            batch.clear();
            self.spare = batch;
        }
    }
}

fn first_page(data: &[u8]) -> &[u8] {
    data.get(..PIPE_BYTES).unwrap_or(data)
}
