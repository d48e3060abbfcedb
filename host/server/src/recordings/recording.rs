//! A recording, and its file: lines of JSON. The first is its head, the last its end; each line
//! between them is a function of the host that the component called.
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolcell_audit::Usage;
use toolcell_policy::to_replay;
use toolcell_sandbox::contract::GuestResult;
use toolcell_sandbox::tapes::{self, CUT, TAPE_BYTES_MAX, TAPE_VALUES_MAX, TapeEntry, TapeError};
use toolcell_sandbox::{CallFailure, ComponentDigest};

use crate::files::file::{read_bounded, write_private};

/// The version of the form of a recording.
const VERSION: u32 = 1;

/// The member of a head that marks a recording without its content.
pub(super) const ANONYMOUS: &str = "anonymous";

/// Secrets that a recording leaves out: as many as a component may have. Each is looked for in
/// every text.
const SECRETS_MAX: usize = 256;

/// Bytes of a file besides the tape: the arguments, the answer, and the component's part of the
/// manifest.
const BYTES_BESIDE: u64 = 48 << 20;

/// A recorded call.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// What the call began with.
    pub head: RecordingHead,
    /// What the component asked for, and got.
    pub entries: Vec<TapeEntry>,
    /// What came of it.
    pub outcome: Result<GuestResult, CallFailure>,
    /// What it used.
    pub used: RecordedUse,
}

/// What a recorded call began with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordingHead {
    /// The version of the form.
    pub(super) recording: u32,
    /// The version of toolcell that made it.
    pub toolcell: String,
    /// The processor of that machine. Another kind may compute another NaN.
    pub processor: String,
    /// When the call ended (RFC 3339).
    pub recorded: String,
    /// The host's number of the call, as in the audit.
    pub call: u64,
    /// The protocol's revision, as the caller spoke it: `2026-07-28`. Empty in recordings of
    /// earlier versions of toolcell.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The component's name in the manifest.
    pub component: String,
    /// The digest of its bytes.
    pub digest: String,
    /// The tool's own name in the component.
    pub tool: String,
    /// The tool's name for clients.
    pub listed: String,
    /// The caller's name.
    pub caller: String,
    /// The arguments: JSON, as it came.
    pub arguments: String,
    /// True if the component got them as they are: rules had been checked on them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_conformed: bool,
    /// The component's part of the manifest.
    pub manifest: String,
    /// Secrets that were taken out, each with the bytes of its value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, usize>,
}

/// What a recorded call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedUse {
    /// Units of fuel.
    pub fuel: u64,
    /// The most bytes of memories and tables.
    pub memory_peak_bytes: u64,
    /// Time in microseconds.
    pub duration_us: u64,
}

impl From<&Usage> for RecordedUse {
    fn from(usage: &Usage) -> Self {
        let duration_us = u64::try_from(usage.duration.as_micros()).unwrap_or(u64::MAX);
        Self { fuel: usage.fuel, memory_peak_bytes: usage.memory_peak_bytes, duration_us }
    }
}

impl RecordingHead {
    /// The form that this version writes.
    pub(super) const fn version() -> u32 {
        VERSION
    }
}

/// The last line.
#[derive(Serialize, Deserialize)]
struct RecordingEnd {
    ended: Result<GuestResult, CallFailure>,
    used: RecordedUse,
}

/// A file that is not a recording.
#[derive(Debug, thiserror::Error)]
pub enum NotARecording {
    /// It cannot be read: the rest of a sentence that begins with its path.
    #[error("{0}")]
    Unreadable(String),
    /// A line is not what a recording has there.
    #[error("its {0} is not that of a recording: {1}")]
    Line(&'static str, String),
    /// Its head has another version.
    #[error("it has version {0} of recordings, and this toolcell reads version {VERSION}")]
    Version(u32),
    /// It was made anonymous.
    #[error("it was made anonymous: it is for reading, and is not replayed")]
    Anonymous,
    /// Its tape cannot be read.
    #[error("{0}")]
    Tape(#[from] TapeError),
}

impl Recording {
    /// True if the call said more than a recording holds, so that it cannot be replayed.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.entries.last().is_some_and(|last| last.function == CUT)
    }

    /// Why the call cannot be replayed, if its recording is not whole.
    #[must_use]
    pub fn why_cut(&self) -> Option<&str> {
        let last = self.entries.last().filter(|last| last.function == CUT)?;
        Some(last.ended.as_deref().unwrap_or("the call said more than a recording holds"))
    }

    /// A manifest in which the call can be replayed, with the component in this file. `None` if the
    /// recording's own manifest is not one.
    #[must_use]
    pub fn manifest_to_replay(&self, source: &str) -> Option<String> {
        to_replay(&self.head.manifest, &self.head.component, source)
    }

    /// Eight digits for a name: calls with other arguments or another answer have others.
    ///
    /// # Errors
    /// An error of JSON: none is known.
    pub fn digest_of_case(&self) -> serde_json::Result<String> {
        let case = serde_json::to_vec(&(&self.head.arguments, &self.outcome))?;
        let digest = ComponentDigest::of(&case).to_string();
        Ok(digest.trim_start_matches("sha256:").chars().take(8).collect())
    }

    /// Its file.
    ///
    /// # Errors
    /// An error of JSON: none is known.
    pub fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(&self.head)?;
        bytes.push(b'\n');
        self.entries.iter().for_each(|entry| bytes.extend(tapes::line(entry)));
        let end = RecordingEnd { ended: self.outcome.clone(), used: self.used };
        bytes.extend(serde_json::to_vec(&end)?);
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// [`NotARecording`].
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, NotARecording> {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let first = bytes.iter().position(|byte| *byte == b'\n');
        let last = bytes.iter().rposition(|byte| *byte == b'\n');
        let (Some(first), Some(last)) = (first, last) else {
            return Err(NotARecording::Line("end", "it is missing".to_owned()));
        };
        let part = |from: usize, to: usize| bytes.get(from..to).unwrap_or_default();
        let head: &RawValue = line(part(0, first), "head")?;
        // The version comes first: the rest of another one may differ.
        let RecordingForm { recording, anonymous } = line(head.get().as_bytes(), "head")?;
        if recording != VERSION {
            return Err(NotARecording::Version(recording));
        }
        if anonymous {
            return Err(NotARecording::Anonymous);
        }
        let head: RecordingHead = line(head.get().as_bytes(), "head")?;
        if head.secrets.len() > SECRETS_MAX {
            let problem = format!("it leaves out {} secrets, at most {SECRETS_MAX}", head.secrets.len());
            return Err(NotARecording::Line("head", problem));
        }
        let RecordingEnd { ended: outcome, used } = line(part(last, bytes.len()), "end")?;
        let entries = tapes::read(part(first, last + 1))?;
        Ok(Self { head, entries, outcome, used })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`NotARecording`].
    pub fn read(path: &Path) -> Result<Self, NotARecording> {
        let bytes = read_bounded(path, TAPE_BYTES_MAX + BYTES_BESIDE).map_err(NotARecording::Unreadable)?;
        Self::of_bytes(&bytes)
    }

    /// Writes a file that only its owner reads, and that is whole or not there.
    ///
    /// # Errors
    /// An error of the system: it exists already, or cannot be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let bytes = self.to_bytes()?;
        write_private(path, &bytes)
    }
}

#[derive(Deserialize)]
struct RecordingForm {
    recording: u32,
    #[serde(default)]
    anonymous: bool,
}

/// What a line says. Its values are counted before they are made.
fn line<'l, T: Deserialize<'l>>(bytes: &'l [u8], what: &'static str) -> Result<T, NotARecording> {
    if tapes::count_values(bytes) > TAPE_VALUES_MAX {
        return Err(TapeError::TooLarge.into());
    }
    serde_json::from_slice(bytes).map_err(|error| NotARecording::Line(what, error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_the_fuzzer_begins_with_are_recordings_and_a_tape() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/seeds/recordings");
        for seed in std::fs::read_dir(folder).unwrap() {
            let path = seed.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let is_tape = path.ends_with("tape");
            assert_eq!(tapes::read(&bytes).is_ok(), is_tape, "{}", path.display());
            let Ok(recording) = Recording::of_bytes(&bytes) else {
                assert!(is_tape, "{}", path.display());
                continue;
            };
            assert_eq!(recording.is_cut(), path.ends_with("marked"));
            assert_eq!(recording, Recording::of_bytes(&recording.to_bytes().unwrap()).unwrap());
        }
    }

    #[test]
    fn other_arguments_or_another_answer_are_another_case() {
        let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/seeds/recordings/state");
        let recording = Recording::read(&seed).unwrap();
        let digest = |recording: &Recording| recording.digest_of_case().unwrap();
        let mut later = recording.clone();
        later.head.recorded = "2030-01-01T00:00:00Z".to_owned();
        assert_eq!(digest(&later), digest(&recording));
        later.head.arguments.push(' ');
        assert_ne!(digest(&later), digest(&recording));
        let other = Recording { outcome: Err(CallFailure::Cancelled), ..recording.clone() };
        assert_ne!(digest(&other), digest(&recording));
    }
}
