//! The host's end of one loader process.
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use serde::Serialize;
use toolcell_policy::quantity::show_bytes;
use toolcell_walls::link::{self, Receiver, Sender};
use toolcell_walls::process::{End, Process, Program, Starter};

use super::loader::NotLoaded;
use toolcell_wall::encoding::{decode, encode};
use toolcell_wall::load::message::FromLoader;
use toolcell_wall::message::ToSandbox;

/// How often the host checks a loader's memory and the files that it writes.
const POLL_EVERY: Duration = Duration::from_millis(250);

/// What a Rust program prints when it runs out of memory.
const NO_MEMORY: &str = "memory allocation of ";

/// Bytes of a loader's last output that are shown.
const WORDS_BYTES_SHOWN: usize = 400;

/// A loader process. Dropping it kills the process.
pub(super) struct LoaderRun {
    process: Process,
    sender: Sender,
    receiver: Receiver,
}

/// Bounds of what a loader does until its next answer.
pub(super) struct LoadBounds<'f> {
    pub(super) until: Instant,
    /// Bytes of the answer.
    pub(super) answer_bytes_max: usize,
    pub(super) memory_bytes_max: u64,
    /// Files that it writes, each with the bytes that it may have.
    pub(super) files: &'f [(&'f File, u64)],
}

impl LoaderRun {
    /// Starts a process with its first message.
    pub(super) async fn start(
        starter: &Starter,
        program: &Program,
        first: &ToSandbox,
        fds: &[BorrowedFd<'_>],
    ) -> Result<Self, NotLoaded> {
        let failed = |error: std::io::Error| NotLoaded::Failed(format!("cannot start a process for it: {error}"));
        let (process, socket) = starter.start(program.clone()).await.map_err(failed)?;
        let receiver = match link::open(socket) {
            Ok((_, receiver)) => receiver,
            // It may already be gone, for instance for lack of memory.
            Err(broken) => return Err(end_of(&process, Instant::now() + POLL_EVERY, &broken).await),
        };
        let run = Self::over(process, receiver);
        run.send(first, fds)?;
        Ok(run)
    }

    pub(super) fn over(process: Process, mut receiver: Receiver) -> Self {
        // A loader must not send descriptors.
        receiver.refuse_fds();
        Self { process, sender: receiver.sender().clone(), receiver }
    }

    pub(super) fn send(&self, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> Result<(), NotLoaded> {
        let failed =
            |error: &dyn std::fmt::Display| NotLoaded::Failed(format!("its loader cannot be reached: {error}"));
        let bytes = encode(message).map_err(|error| failed(&error))?;
        match self.sender.send(&bytes, fds) {
            // Waiting for its answer finds out why it ended.
            Ok(()) | Err(link::SendError::Ended(_)) => Ok(()),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Waits for the next answer. A process whose answer is late, too large or wrong is ended.
    pub(super) async fn receive(&mut self, bounds: &LoadBounds<'_>) -> Result<FromLoader, NotLoaded> {
        let heard = self.receive_alone(bounds).await;
        if heard.is_err() {
            self.process.kill();
        }
        heard
    }

    async fn receive_alone(&mut self, bounds: &LoadBounds<'_>) -> Result<FromLoader, NotLoaded> {
        let until = tokio::time::sleep_until(bounds.until.into());
        tokio::pin!(until);
        loop {
            tokio::select! {
                biased;
                frame = self.receiver.receive() => return match frame {
                    // Checked before decoding, which takes a multiple of the bytes.
                    Ok(frame) if frame.bytes.len() > bounds.answer_bytes_max => Err(NotLoaded::broke("it sent too much")),
                    Ok(frame) => decode(&frame.bytes).map_err(|error| NotLoaded::broke(&format!("it sent {error}"))),
                    Err(broken) => Err(end_of(&self.process, bounds.until, &broken).await),
                },
                () = &mut until => return Err(NotLoaded::TooLate),
                () = tokio::time::sleep(POLL_EVERY) => self.check(bounds)?,
            }
        }
    }

    fn check(&self, bounds: &LoadBounds<'_>) -> Result<(), NotLoaded> {
        let lengths = bounds.files.iter().filter_map(|(file, _)| Some(file.metadata().ok()?.len()));
        self.process.holds_beside(lengths.fold(0, u64::saturating_add));
        if self.process.memory().is_some_and(|memory| memory.own > bounds.memory_bytes_max) {
            return Err(NotLoaded::TooMuchMemory);
        }
        match bounds.files.iter().find(|(file, max)| file.metadata().is_ok_and(|file| file.len() > *max)) {
            Some((_, max)) => Err(NotLoaded::broke(&format!("it wrote more than {}", show_bytes(*max)))),
            None => Ok(()),
        }
    }

    /// Ends the process, and returns once it is gone.
    pub(super) async fn end(self) {
        self.sender.close();
        self.process.kill();
        let _ = self.process.ended().await;
    }
}

/// Why a process with a broken link is gone. It has until `until` to end by itself.
async fn end_of(process: &Process, until: Instant, broken: &dyn std::fmt::Display) -> NotLoaded {
    // A process closes its link when it ends. One that only closes its link is killed.
    let patience = until.min(Instant::now() + POLL_EVERY);
    let end = match tokio::time::timeout_at(patience.into(), process.ended()).await {
        Ok(end) => end,
        Err(_) => {
            process.kill();
            process.ended().await
        }
    };
    if end.made_room.is_some() {
        return NotLoaded::Ended { reason: end.to_string() };
    }
    if end.last_words.contains(NO_MEMORY) {
        return NotLoaded::TooMuchMemory;
    }
    NotLoaded::Ended { reason: format!("{broken}; {}", shown(&end)) }
}

/// The end of a process and of its output, without control characters.
fn shown(end: &End) -> String {
    let words = end.last_words.trim();
    let from = words.ceil_char_boundary(words.len().saturating_sub(WORDS_BYTES_SHOWN));
    let words: String = words.get(from..).unwrap_or_default().chars().map(plain).collect();
    if words.is_empty() { end.to_string() } else { format!("{end}: {words}") }
}

fn plain(character: char) -> char {
    if character.is_control() { ' ' } else { character }
}
