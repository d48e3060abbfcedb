//! The frames of a running child: its stdout line by line with a deadline on each read, and its
//! stderr as one text.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::patience;

/// The `_meta` that every modern request carries.
#[must_use]
pub fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": crate::MODERN_REVISION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "toolcell-tests", "version": "1"},
    })
}

/// Most lines of a text that the log of a failure has.
const LAST_LINES: usize = 60;

/// Most bytes of them. A line of an audit may be long.
const LAST_BYTES: usize = 32 * 1024;

/// The end of a text for the log of a failure, in whole lines where they are not too long.
pub(crate) fn last_lines(text: &str) -> String {
    let text = text.trim_end();
    let lines = text.rmatch_indices('\n').nth(LAST_LINES - 1).map_or(0, |(at, _)| at + 1);
    let bytes = text.floor_char_boundary(text.len().saturating_sub(LAST_BYTES));
    match lines.max(bytes) {
        0 if text.is_empty() => "(nothing)\n".to_owned(),
        0 => format!("{text}\n"),
        from => format!("({from} bytes before)\n{}\n", &text[from..]),
    }
}

/// The lines of a child's stdout.
#[derive(Debug)]
pub(crate) struct Lines(Receiver<Vec<u8>>);

/// The result of waiting for a line.
pub(crate) enum Line {
    Text(Vec<u8>),
    End,
    Late,
}

impl Lines {
    pub(crate) fn of(stdout: impl Read + Send + 'static) -> (Self, JoinHandle<()>) {
        let (sender, receiver) = channel();
        let thread = std::thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            loop {
                let mut line = Vec::new();
                match stdout.read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => break,
                    Ok(_) if sender.send(line).is_err() => break,
                    Ok(_) => {}
                }
            }
        });
        (Self(receiver), thread)
    }

    /// Lines that come from elsewhere.
    pub(crate) fn from_channel(lines: Receiver<Vec<u8>>) -> Self {
        Self(lines)
    }

    pub(crate) fn next(&self, patience: Duration) -> Line {
        match self.0.recv_timeout(patience) {
            Ok(line) => Line::Text(line),
            Err(RecvTimeoutError::Disconnected) => Line::End,
            Err(RecvTimeoutError::Timeout) => Line::Late,
        }
    }
}

/// The text that a child has written to its stderr so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said(Arc<(Mutex<String>, Condvar)>);

impl Said {
    pub(crate) fn of(mut stderr: impl Read + Send + 'static) -> (Self, JoinHandle<()>) {
        let said = Self::default();
        let kept = said.clone();
        let thread = std::thread::spawn(move || {
            let mut block = [0_u8; 4096];
            while let Ok(bytes @ 1..) = stderr.read(&mut block) {
                kept.0.0.lock().unwrap().push_str(&String::from_utf8_lossy(&block[..bytes]));
                kept.0.1.notify_all();
            }
        });
        (said, thread)
    }

    pub(crate) fn text(&self) -> String {
        self.0.0.lock().unwrap().clone()
    }

    /// Waits until the child has written these words. False if it does not in time.
    pub(crate) fn wait_for(&self, words: &str) -> bool {
        let end = Instant::now() + patience();
        let mut text = self.0.0.lock().unwrap();
        while !text.contains(words) {
            let Some(left) = end.checked_duration_since(Instant::now()) else { return false };
            text = self.0.1.wait_timeout(text, left).unwrap().0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_a_failure_has_the_end_of_a_text_and_is_bounded() {
        assert_eq!(last_lines(""), "(nothing)\n");
        assert_eq!(last_lines("a\nb\n"), "a\nb\n");
        let numbered: String = (0..100).map(|number| format!("{number}\n")).collect();
        let last = last_lines(&numbered);
        assert!(last.starts_with("(110 bytes before)\n40\n41\n"), "{last}");
        assert!(last.ends_with("\n98\n99\n"), "{last}");
        assert!(last_lines(&"ö".repeat(1_000_000)).len() < LAST_BYTES + 100);
    }
}
