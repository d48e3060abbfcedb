//! The check of what was written. Must not hold: files; whoever calls opens them.

use std::io::{self, BufRead, Read as _};

use crate::chain::{self, GENESIS, RECORD_BYTES_MAX};

/// An audit whose chain is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// How many records there are.
    pub records: u64,
    /// The hash of the last one, 64 hex digits; zeros where there is none. Kept elsewhere, it shows later whether the
    /// end was cut off or written anew.
    pub head: String,
    /// When the first and the last record were written.
    pub times: Option<(String, String)>,
}

/// Where a chain breaks.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Break {
    /// Counts from 1.
    pub line: u64,
    /// What is wrong with the line.
    pub reason: Reason,
}

/// Why a line does not follow the one before.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The line has another number than the next one.
    #[error("record {found} stands where record {expected} belongs")]
    Sequence {
        /// The number that follows.
        expected: u64,
        /// The number it has.
        found: u64,
    },
    /// The line before was changed, or this one belongs elsewhere.
    #[error("the record does not follow the one before it: one of the two was changed")]
    Previous,
    /// The line is not a record.
    #[error("not an audit record")]
    NotARecord,
    /// The line is longer than any record.
    #[error("longer than the {RECORD_BYTES_MAX} bytes a record may have")]
    TooLong,
    /// The file ends within the line.
    #[error("the record is torn: the file ends within it")]
    Torn,
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[source] io::Error),
}

/// Checks a whole audit from its first record on, in constant memory.
///
/// # Errors
/// [`Break`] names the first line that does not follow.
pub fn verify(mut reader: impl BufRead) -> Result<Summary, Break> {
    let mut line = Vec::new();
    let mut prev = GENESIS;
    let mut records = 0;
    let mut times: Option<(String, String)> = None;
    loop {
        let at = |reason| Break { line: records + 1, reason };
        line.clear();
        if !read_line(&mut reader, &mut line).map_err(at)? {
            return Ok(Summary { records, head: chain::hex(&prev), times });
        }
        let link = chain::link(&line).ok_or_else(|| at(Reason::NotARecord))?;
        if link.seq != records + 1 {
            return Err(at(Reason::Sequence { expected: records + 1, found: link.seq }));
        }
        if link.prev != chain::hex(&prev) {
            return Err(at(Reason::Previous));
        }
        prev = chain::hash(&line);
        records += 1;
        let first = times.map_or_else(|| link.time.clone(), |(first, _)| first);
        times = Some((first, link.time));
    }
}

/// Reads a line without its newline; false at the end of the file.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, Reason> {
    let read = reader.by_ref().take(RECORD_BYTES_MAX as u64).read_until(b'\n', line).map_err(Reason::Read)?;
    if line.pop_if(|byte| *byte == b'\n').is_some() {
        return Ok(true);
    }
    match read {
        0 => Ok(false),
        RECORD_BYTES_MAX => Err(Reason::TooLong),
        _ => Err(Reason::Torn),
    }
}
