//! The reader: polls, reads, splits the input into lines, passes these to the connection, and stops
//! reading while the connection is full. It buffers at most one line of the maximum length.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;

use rustix::event::PollFlags;
use rustix::io::Errno;

use super::{StdioEnd, StdioShutdown, Wake, output};
use crate::connection::{ClientConnection, Gate};
use crate::frame::OverlongFrame;
use crate::host::{Executor, Host, Outbox as _, Work};

/// Bytes of one read. 64 KiB: the capacity of a pipe.
const READ_BYTES: usize = 64 * 1024;

/// A buffer larger than this is freed once it is empty, so that one long line does not keep its
/// memory.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

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
            let open = self.connection.gate() != Gate::Full;
            if open && !handed_on {
                // The gate has opened meanwhile, and no further event may come.
                continue;
            }
            if !open {
                self.wake.want();
                if self.connection.gate() != Gate::Full {
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

    /// Passes lines to the connection while it accepts them. False if the gate closed before the
    /// last.
    fn hand_on(&self, lines: &mut StdioLines) -> bool {
        let mut all = false;
        while !self.shutdown.has_begun() {
            let gate = self.connection.gate();
            if gate == Gate::Full {
                break;
            }
            let Some(StdioLine { item, more }) = lines.next() else {
                all = true;
                break;
            };
            self.behind.set(more);
            match item {
                StdioItem::Whole(line) if gate == Gate::Answers => self.connection.receive_past_bounds(line),
                StdioItem::Whole(line) => self.connection.receive(line),
                StdioItem::Overlong(frame) => self.connection.refuse_overlong(&frame, self.line_bytes_max),
            }
        }
        // From here on, other threads begin calls.
        self.behind.set(true);
        // //Once for all of them.
        self.output.flush();
        all || self.shutdown.has_begun()
    }

    /// Waits for events, and for input if more may be read.
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
            // A reset connection has ended too.
            Err(Errno::CONNRESET) => lines.filled(0),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// True while further lines wait after the current one.
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

/// One line of the stream.
#[derive(Debug)]
struct StdioLine<'l> {
    item: StdioItem<'l>,
    /// True if bytes of later lines were already read.
    more: bool,
}

/// The content of a line.
#[derive(Debug)]
enum StdioItem<'l> {
    /// A line, without its newline.
    Whole(&'l [u8]),
    /// A line longer than allowed, which was not kept. It is returned at its end, when its id is
    /// certain.
    Overlong(Box<OverlongFrame>),
}

/// Lines of a stream.
#[derive(Debug)]
struct StdioLines {
    buffer: Vec<u8>,
    /// The start of the first incomplete line.
    start: usize,
    /// The position up to which there is no newline.
    searched: usize,
    /// The end of the read bytes.
    end: usize,
    bytes_max: usize,
    /// The line that is being skipped.
    overlong: Option<Box<OverlongFrame>>,
    finished: bool,
}

impl StdioLines {
    fn new(bytes_max: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, searched: 0, end: 0, bytes_max, overlong: None, finished: false }
    }

    /// Room for more bytes; report their number to [`filled`](Self::filled) afterwards.
    fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.searched, self.end) = (0, 0, 0);
            if self.buffer.len() > KEPT_BYTES_MAX {
                self.buffer = Vec::new();
            }
        }
        if self.buffer.len() - self.end < READ_BYTES && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.searched -= self.start;
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < READ_BYTES {
            // Doubling, so that a line of many reads is copied a constant number of times.
            let length = (self.end + READ_BYTES).max(self.buffer.len() * 2).min(self.bytes_max + 2 * READ_BYTES);
            self.buffer.resize(length.max(self.end + READ_BYTES), 0);
        }
        self.buffer.get_mut(self.end..).unwrap_or_default()
    }

    /// Accepts this many bytes of [`room`](Self::room); zero: the stream has ended.
    fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.buffer.len());
        self.finished |= bytes == 0;
    }

    /// True if the stream has ended and every line was returned.
    fn is_finished(&self) -> bool {
        self.finished && self.start == self.end && self.overlong.is_none()
    }

    /// The next line that was read. A last line without newline counts once the stream has ended.
    fn next(&mut self) -> Option<StdioLine<'_>> {
        let unsearched = self.buffer.get(self.searched..self.end).unwrap_or_default();
        let newline = unsearched.iter().position(|byte| *byte == b'\n').map(|place| self.searched + place);
        let (end, next) = match newline {
            Some(place) => (place, place + 1),
            None if self.finished && !self.is_finished() => (self.end, self.end),
            None => {
                self.no_newline();
                return None;
            }
        };
        let start = std::mem::replace(&mut self.start, next);
        self.searched = next;
        let line = self.buffer.get(start..end).unwrap_or_default();
        let overlong = self.overlong.take().or_else(|| (line.len() > self.bytes_max).then(Box::default));
        let item = match overlong {
            None => StdioItem::Whole(line),
            Some(mut overlong) => {
                overlong.read(line);
                StdioItem::Overlong(overlong)
            }
        };
        Some(StdioLine { item, more: next < self.end })
    }

    /// The read bytes have no newline. From here on a line that is too long is skipped.
    fn no_newline(&mut self) {
        self.searched = self.end;
        let line = self.buffer.get(self.start..self.end).unwrap_or_default();
        if self.overlong.is_some() || line.len() > self.bytes_max {
            self.overlong.get_or_insert_default().read(line);
            self.start = self.end;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::{StdioItem, StdioLines};

    /// Feeds the pieces and returns the lines, overlong ones as `!`.
    fn cut(bytes_max: usize, pieces: &[&str]) -> Vec<String> {
        let mut lines = StdioLines::new(bytes_max);
        let mut out = Vec::new();
        for piece in pieces.iter().map(Some).chain([None]) {
            let bytes = piece.map_or(&[][..], |piece| piece.as_bytes());
            lines.room()[..bytes.len()].copy_from_slice(bytes);
            lines.filled(bytes.len());
            while let Some(line) = lines.next() {
                out.push(match line.item {
                    StdioItem::Whole(line) => String::from_utf8(line.to_vec()).unwrap(),
                    StdioItem::Overlong(_) => "!".to_owned(),
                });
            }
        }
        assert!(lines.is_finished());
        out
    }

    #[test]
    fn lines_come_out_whole_however_they_came_in() {
        assert_eq!(cut(8, &["a\nb", "c\n", "\n", "tail"]), ["a", "bc", "", "tail"]);
        assert_eq!(cut(8, &["12345678\n", "12345678"]), ["12345678", "12345678"]);
    }

    #[test]
    fn an_overlong_line_is_said_once_and_skipped_to_its_newline() {
        assert_eq!(cut(4, &["12345\nok\n"]), ["!", "ok"]);
        assert_eq!(cut(4, &["123456", "789", "0\nok\n"]), ["!", "ok"]);
        assert_eq!(cut(4, &["12345", "6"]), ["!"]);
    }

    #[test]
    fn a_line_tells_if_bytes_of_another_came_with_it() {
        let mut lines = StdioLines::new(8);
        let bytes = b"a\nb\nc";
        lines.room()[..bytes.len()].copy_from_slice(bytes);
        lines.filled(bytes.len());
        let mut more = || lines.next().map(|line| line.more);
        assert_eq!([more(), more(), more()], [Some(true), Some(true), None]);
        let bytes = b"d\n";
        lines.room()[..bytes.len()].copy_from_slice(bytes);
        lines.filled(bytes.len());
        assert_eq!(lines.next().map(|line| line.more), Some(false));
    }

    #[test]
    fn skipping_takes_constant_memory() {
        let mut lines = StdioLines::new(1_000);
        for _ in 0..1_000 {
            let room = lines.room();
            room.fill(b'x');
            let bytes = room.len();
            lines.filled(bytes);
            while lines.next().is_some() {}
        }
        assert!(lines.buffer.len() <= 4 * super::READ_BYTES, "{}", lines.buffer.len());
    }
}
