//! The frames of a running child: its stdout line by line with a deadline on each read, and its
//! stderr as one text.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Time that a test waits for anything before it fails. No wait here takes this long, except on a
/// machine under load.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The `_meta` that every modern request carries.
#[must_use]
pub fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": crate::MODERN_REVISION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "toolcell-tests", "version": "1"},
    })
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
        let end = Instant::now() + PATIENCE;
        let mut text = self.0.0.lock().unwrap();
        while !text.contains(words) {
            let Some(left) = end.checked_duration_since(Instant::now()) else { return false };
            text = self.0.1.wait_timeout(text, left).unwrap().0;
        }
        true
    }
}
