//! The reader: polls, reads, hands lines to the connection, and stops reading while the connection
//! is full.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;

use rustix::event::PollFlags;
use rustix::io::Errno;

use super::lines::{StdioItem, StdioLines};
use super::{StdioEnd, StdioShutdown, Wake, output};
use crate::connection::{ClientConnection, Gate};
use crate::host::{Executor, Host, Outbox as _, Work};

/// The reading half of [`serve`](super::serve).
pub(super) struct StdioReader<'r, H: Host> {
    pub(super) input: OwnedFd,
    pub(super) line_bytes_max: usize,
    pub(super) connection: &'r ClientConnection<H>,
    pub(super) output: &'r output::SharedOutput,
    pub(super) wake: &'r Wake,
    pub(super) shutdown: &'r StdioShutdown,
    pub(super) behind: MoreInput,
    pub(super) executor: &'r dyn Executor,
}

/// The result of a poll.
struct ReadyInputs {
    input: bool,
    shutdown: bool,
}

impl<H: Host> StdioReader<'_, H> {
    pub(super) fn run(&self) -> io::Result<StdioEnd> {
        let mut lines = StdioLines::new(self.line_bytes_max);
        loop {
            let handed_on = self.hand_on(&mut lines);
            if self.output.is_closed() {
                return Ok(StdioEnd::OutputClosed);
            }
            if lines.is_finished() {
                return Ok(StdioEnd::Eof);
            }
            let open = self.connection.gate() == Gate::Open;
            if open && !handed_on {
                // The gate opened meanwhile. No event may follow that would bring the rest.
                continue;
            }
            if !open {
                self.wake.want();
                if self.connection.gate() == Gate::Open {
                    continue;
                }
            }
            let ready = self.wait(open)?;
            if ready.shutdown {
                return Ok(StdioEnd::Shutdown);
            }
            if ready.input {
                self.read(&mut lines)?;
            }
        }
    }

    /// Hands lines to the connection while it takes them. False if the gate closed before the rest.
    fn hand_on(&self, lines: &mut StdioLines) -> bool {
        let mut all = false;
        while self.connection.gate() == Gate::Open && !self.shutdown.has_begun() {
            let (line, more) = lines.next_and_more();
            self.behind.set(more);
            match line {
                Some(StdioItem::Whole(line)) => self.connection.receive(line),
                Some(StdioItem::Overlong(frame)) => self.connection.refuse_overlong(&frame, self.line_bytes_max),
                None => {
                    all = true;
                    break;
                }
            }
        }
        // From here on, other threads begin the work.
        self.behind.set(true);
        // Once for all of them.
        self.output.flush();
        all || self.shutdown.has_begun()
    }

    /// Waits for events; for input only if more may be read.
    fn wait(&self, open: bool) -> io::Result<ReadyInputs> {
        let fds = [self.shutdown.fd(), self.wake.fd(), self.input.as_fd()];
        let watched = fds.get(..if open { 3 } else { 2 }).unwrap_or_default();
        // Answers to several calls are written at once.
        let flags = output::hold(|| self.executor.wait(watched, &mut || self.output.flush_held()));
        self.output.flush();
        let flags = match flags {
            Ok(flags) => flags,
            Err(Errno::INTR) => return Ok(ReadyInputs { input: false, shutdown: false }),
            Err(error) => return Err(error.into()),
        };
        let of = |at: usize| flags.get(at).copied().unwrap_or(PollFlags::empty());
        let [shutdown, wake, input] = [of(0), of(1), of(2)];
        if !wake.is_empty() {
            self.wake.clear();
            self.connection.resume();
        }
        if input.contains(PollFlags::NVAL) {
            return Err(Errno::BADF.into());
        }
        Ok(ReadyInputs { input: !input.is_empty(), shutdown: !shutdown.is_empty() })
    }

    fn read(&self, lines: &mut StdioLines) -> io::Result<()> {
        match rustix::io::read(&self.input, lines.room()) {
            Ok(bytes) => lines.filled(bytes),
            Err(Errno::INTR | Errno::AGAIN) => {}
            // A socket whose other end was torn down has ended too.
            Err(Errno::CONNRESET) => lines.filled(0),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// True while further lines wait behind the one that the reader handles.
#[derive(Clone, Debug, Default)]
pub(super) struct MoreInput(Arc<AtomicBool>);

impl MoreInput {
    pub(super) fn set(&self, more: bool) {
        self.0.store(more, Ordering::Relaxed);
    }
}

/// Lets the reader begin a call itself if no other line waits.
pub(super) struct ReaderExecutor<E> {
    pub(super) executor: E,
    pub(super) reader: ThreadId,
    pub(super) behind: MoreInput,
}

impl<E: Executor> Executor for ReaderExecutor<E> {
    fn run(&self, work: Work) {
        let alone = !self.behind.0.load(Ordering::Relaxed) && std::thread::current().id() == self.reader;
        if alone { self.executor.run_here(work) } else { self.executor.run(work) }
    }

    fn run_waiting(&self, work: Work) {
        let is_reader = std::thread::current().id() == self.reader;
        if is_reader { self.executor.run_waiting(work) } else { self.executor.run(work) }
    }

    fn wait(&self, fds: &[BorrowedFd<'_>], sent: &mut dyn FnMut()) -> Result<Vec<PollFlags>, Errno> {
        self.executor.wait(fds, sent)
    }

    fn leave(&self) {
        self.executor.leave();
    }
}
