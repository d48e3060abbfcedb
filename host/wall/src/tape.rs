//! The tape of a call: each function of the host that its guest called, with arguments and results.
//!
//! A sandbox process writes it while a call is recorded, a line of JSON for each function, and
//! reads it while a call is replayed. The tape is a file in memory, which the host hands over with
//! the call. The host trusts neither end of it: it reads a tape as it reads any other input.
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Bytes of one tape. A call that says more goes on, and its recording is not complete. Most calls
/// have a few KiB; one that reads a file of 1 MiB has that file.
pub const TAPE_BYTES_MAX: u64 = 16 << 20;

/// Functions of one tape. Each takes some 500 bytes once it is read.
pub const TAPE_ENTRIES_MAX: usize = 100_000;

/// Values of one tape: arrays, objects, and their items. The smallest takes two bytes of it, and
/// some 70 once it is read.
pub const TAPE_VALUES_MAX: usize = 400_000;

/// The function that stands for a handle that the guest drops.
pub const DROP: &str = "drop";

/// The function that stands for a file of the call's own folder that is its answer.
pub const OWN_FILE: &str = "own-file";

/// The function that stands for what did not fit. Such a tape cannot be replayed.
pub const CUT: &str = "cut";

/// What a call does with its tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TapeUse {
    /// Its guest reaches the host, and the tape keeps what it gets.
    Record,
    /// Its guest gets what the tape has, in the order of the tape, and reaches nothing.
    Replay,
    /// As [`Self::Replay`], for a component other than the recorded one: its guest may ask for the
    /// same things in another order.
    Compare,
}

/// One function that a guest called.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TapeEntry {
    /// The interface without its version, and the function: `wasi:io/streams#[method]…`.
    #[serde(rename = "call")]
    pub function: String,
    /// Its arguments.
    #[serde(rename = "with", default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<Value>,
    /// Its results: one, or none.
    #[serde(rename = "gave", default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<Value>,
    /// Functions of the host that it counted as.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub counted: u64,
    /// Fuel of its work.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fuel: u64,
    /// Why the host ended the call in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// An entry as it is written, whose values are not JSON yet. Its line reads as a [`TapeEntry`].
#[derive(Debug, Clone, Copy, Serialize)]
pub struct WrittenEntry<'e, V: Serialize> {
    /// As [`TapeEntry::function`].
    #[serde(rename = "call")]
    pub function: &'e str,
    /// A list of the arguments, if there are any.
    #[serde(rename = "with", skip_serializing_if = "Option::is_none")]
    pub arguments: Option<V>,
    /// A list of the results, if there are any.
    #[serde(rename = "gave", skip_serializing_if = "Option::is_none")]
    pub results: Option<V>,
    /// As [`TapeEntry::counted`].
    #[serde(skip_serializing_if = "is_zero")]
    pub counted: u64,
    /// As [`TapeEntry::fuel`].
    #[serde(skip_serializing_if = "is_zero")]
    pub fuel: u64,
    /// As [`TapeEntry::ended`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<&'e str>,
}

impl<V: Serialize> WrittenEntry<'_, V> {
    /// Adds its line to these bytes. They are as before if a value has no JSON.
    ///
    /// # Errors
    /// That of the value.
    pub fn write(&self, bytes: &mut Vec<u8>) -> serde_json::Result<()> {
        let begin = bytes.len();
        match serde_json::to_writer(&mut *bytes, self) {
            Ok(()) => bytes.push(b'\n'),
            Err(error) => {
                bytes.truncate(begin);
                return Err(error);
            }
        }
        Ok(())
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A tape that cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TapeError {
    /// It is larger than a tape may be.
    #[error(
        "the recording has more than {TAPE_BYTES_MAX} bytes, {TAPE_ENTRIES_MAX} functions or {TAPE_VALUES_MAX} values"
    )]
    TooLarge,
    /// A line is not what a tape has.
    #[error("function {number} of the recording: {problem}")]
    Line {
        /// The line, from 1.
        number: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// The functions of a tape.
///
/// # Errors
/// [`TapeError`]. An unfinished last line is left out: the process may have ended while it wrote.
pub fn read(bytes: &[u8]) -> Result<Vec<TapeEntry>, TapeError> {
    if bytes.len() as u64 > TAPE_BYTES_MAX {
        return Err(TapeError::TooLarge);
    }
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = bytes.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut entries = Vec::new();
    let mut values = 0_usize;
    for (number, line) in lines.enumerate() {
        values = values.saturating_add(count_values(line));
        if number >= TAPE_ENTRIES_MAX || values > TAPE_VALUES_MAX {
            return Err(TapeError::TooLarge);
        }
        let problem = |error: serde_json::Error| TapeError::Line { number: number + 1, problem: error.to_string() };
        entries.push(serde_json::from_slice(line).map_err(problem)?);
    }
    Ok(entries)
}

/// The values of a JSON text, counted by the characters that begin or part them.
#[must_use]
pub fn count_values(json: &[u8]) -> usize {
    let mut in_text = false;
    let mut is_escaped = false;
    let mut count = 0;
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            b'[' | b'{' | b',' if !in_text => count += 1,
            _ => {}
        }
    }
    count
}

/// The line after which a tape has nothing.
#[must_use]
pub const fn cut_line() -> &'static [u8] {
    b"{\"call\":\"cut\"}\n"
}

/// The line of an entry.
#[must_use]
pub fn line(entry: &TapeEntry) -> Vec<u8> {
    // Nothing in an entry can fail to be written.
    let mut line = serde_json::to_vec(entry).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tape_is_read_as_it_was_written_but_for_an_unfinished_line() {
        let entries = [
            TapeEntry { function: "wasi:random/random#get-random-u64".to_owned(), ..TapeEntry::default() },
            TapeEntry {
                function: DROP.to_owned(),
                arguments: vec![serde_json::json!(7)],
                results: vec![serde_json::json!({"ok": null})],
                counted: 1,
                fuel: 3,
                ended: Some("over".to_owned()),
            },
        ];
        let mut bytes: Vec<u8> = entries.iter().flat_map(line).collect();
        assert_eq!(read(&bytes), Ok(entries.to_vec()));
        let mut written = Vec::new();
        for TapeEntry { function, arguments, results, counted, fuel, ended } in &entries {
            let values = |values: &Vec<Value>| (!values.is_empty()).then(|| values.clone());
            let entry = WrittenEntry {
                function,
                arguments: values(arguments),
                results: values(results),
                counted: *counted,
                fuel: *fuel,
                ended: ended.as_deref(),
            };
            entry.write(&mut written).unwrap();
        }
        assert_eq!(written, bytes);
        assert_eq!(cut_line(), line(&TapeEntry { function: CUT.to_owned(), ..TapeEntry::default() }));
        bytes.extend(b"{\"call\":\"half");
        assert_eq!(read(&bytes), Ok(entries.to_vec()));
        bytes.extend(b"\n");
        assert!(matches!(read(&bytes), Err(TapeError::Line { number: 3, .. })));
        assert_eq!(read(&vec![b'\n'; 1 + usize::try_from(TAPE_BYTES_MAX).unwrap()]), Err(TapeError::TooLarge));
        assert_eq!(read(&b"{\"call\":\"\"}\n".repeat(TAPE_ENTRIES_MAX + 1)), Err(TapeError::TooLarge));
        let many = |value: &str| format!("{{\"call\":\"\",\"with\":[{}0]}}\n", value.repeat(TAPE_VALUES_MAX));
        assert_eq!(read(many("[],").as_bytes()), Err(TapeError::TooLarge));
        assert!(read(many(",").replacen("[,", "[\"\\\",", 1).replace(",0]", "\"]").as_bytes()).is_ok(), "a text");
    }
}
