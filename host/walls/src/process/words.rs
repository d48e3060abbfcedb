//! The last bytes of what a process wrote to standard error.

use std::{
    collections::VecDeque,
    io::{PipeReader, Read},
    time::{Duration, Instant},
};

/// Bytes kept of a process's standard error: a panic with its place, or the reason of an abort.
/// Such a text is a few hundred bytes long.
pub const LAST_WORDS_BYTES_MAX: usize = 4 << 10;

/// Bytes of unread output that the kernel keeps at most.
const PIPE_BYTES_MAX: usize = 64 << 10;

/// After each read the next one waits this long: output without end is read at 400 KiB/s at most,
/// for a small part of one core.
const PAUSE: Duration = Duration::from_millis(10);

/// Reads standard error of one process.
#[derive(Debug)]
pub(super) struct Words {
    stderr: Option<PipeReader>,
    paused_until: Option<Instant>,
    kept: VecDeque<u8>,
}

impl Words {
    /// The pipe must be non-blocking.
    pub(super) fn new(stderr: Option<PipeReader>) -> Self {
        Self { stderr, paused_until: None, kept: VecDeque::new() }
    }

    /// The pipe, if it is to be read at this time.
    pub(super) fn pipe(&self, now: Instant) -> Option<&PipeReader> {
        self.stderr.as_ref().filter(|_| self.paused_until.is_none_or(|until| until <= now))
    }

    /// When the pipe is to be read again.
    pub(super) fn paused_until(&self) -> Option<Instant> {
        self.paused_until.filter(|_| self.stderr.is_some())
    }

    /// Reads once.
    pub(super) fn read(&mut self, now: Instant) {
        self.read_up_to(LAST_WORDS_BYTES_MAX);
        self.paused_until = Some(now + PAUSE);
    }

    /// Everything that was kept, after the process has ended.
    pub(super) fn finish(&mut self) -> String {
        self.read_up_to(PIPE_BYTES_MAX);
        self.stderr = None;
        let kept: Vec<u8> = std::mem::take(&mut self.kept).into();
        String::from_utf8_lossy(&kept).into_owned()
    }

    fn read_up_to(&mut self, bytes: usize) {
        let mut buffer = [0; LAST_WORDS_BYTES_MAX];
        let mut left = bytes;
        while let Some(stderr) = self.stderr.as_mut().filter(|_| left > 0) {
            match stderr.read(&mut buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => self.stderr = None,
                Ok(count) => {
                    left = left.saturating_sub(count);
                    self.keep(buffer.get(..count).unwrap_or_default());
                }
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.kept.extend(bytes);
        self.kept.drain(..self.kept.len().saturating_sub(LAST_WORDS_BYTES_MAX));
    }
}
