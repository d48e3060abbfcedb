//! The check of what was written.

use std::io::BufRead;

use crate::chain::{self, GENESIS, Hash, Link, ROTATED};
use crate::lines::{LineError, Lines};

/// The result for a chain that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The number of records.
    pub records: u64,
    /// The number of the first one: more than 1 if older files were removed; 0 without records.
    pub first: u64,
    /// The number of the last one; 0 without records.
    pub last: u64,
    /// The hash of the last one, 64 hex digits; zeros without records. Kept elsewhere, it shows
    /// later whether the end was cut off or rewritten.
    pub head: String,
    /// When the first and the last record were written.
    pub times: Option<(String, String)>,
    /// The number of the record with the hash of [`Verifier::looking_for`].
    pub found: Option<u64>,
}

/// Where a chain breaks.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Break {
    /// The line's number in its file, from 1.
    pub line: u64,
    /// The number of the record that belongs there.
    pub record: u64,
    /// What is wrong with the line.
    pub reason: Reason,
}

/// Why a line does not follow the one before.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The number of the record is not the next one.
    #[error("record {found} stands where record {expected} belongs")]
    Sequence {
        /// The expected number.
        expected: u64,
        /// Its number.
        found: u64,
    },
    /// The line before was changed, or this one belongs elsewhere.
    #[error("the record does not follow the one before it: one of the two was changed")]
    Previous,
    /// The line is not a record.
    #[error("not an audit record")]
    NotARecord,
    /// The line cannot be read.
    #[error(transparent)]
    Line(#[from] LineError),
}

/// Checks an audit file after file, oldest first, in constant memory.
#[derive(Debug, Default)]
pub struct Verifier {
    seen: Option<CheckedChain>,
    looked_for: Option<String>,
    found: Option<u64>,
}

/// The state after the records that were verified so far.
#[derive(Debug)]
struct CheckedChain {
    first: u64,
    last: u64,
    hash: Hash,
    times: (String, String),
}

impl Verifier {
    /// Starts with the first file.
    #[must_use]
    pub const fn new() -> Self {
        Self { seen: None, looked_for: None, found: None }
    }

    /// Also looks for the record with this hash, 64 lower-case hex digits: an earlier
    /// [`Summary::head`] is still there unless the end was cut off or rewritten.
    #[must_use]
    pub fn looking_for(hash: &str) -> Self {
        Self { looked_for: Some(hash.to_owned()), ..Self::new() }
    }

    /// Verifies the next file and counts its lines. The first file must begin with record 1 or with
    /// `audit.rotated`.
    ///
    /// # Errors
    /// [`Break`] names the first line that does not follow.
    pub fn file(&mut self, reader: impl BufRead) -> Result<u64, Break> {
        let mut lines = Lines::new(reader);
        loop {
            let checked = match lines.next_line() {
                Ok(None) => return Ok(lines.number()),
                Ok(Some(line)) => self.line(line),
                Err(error) => Err(error.into()),
            };
            checked.map_err(|reason| Break { line: lines.number(), record: self.next_number(), reason })?;
        }
    }

    /// The result, once every file is verified.
    #[must_use]
    pub fn summary(self) -> Summary {
        let Some(CheckedChain { first, last, hash, times }) = self.seen else {
            return Summary { records: 0, first: 0, last: 0, head: chain::hex(&GENESIS), times: None, found: None };
        };
        let head = chain::hex(&hash);
        let found = self.found;
        Summary { records: last - first + 1, first, last, head, times: Some(times), found }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Reason> {
        let Link { seq: found, prev, time, event } = chain::link(line).ok_or(Reason::NotARecord)?;
        let starts_late = self.seen.is_none() && event == ROTATED && found > 1;
        let expected = self.next_number();
        if expected != found && !starts_late {
            return Err(Reason::Sequence { expected, found });
        }
        let before = self.seen.as_ref().map_or(GENESIS, |seen| seen.hash);
        if prev != chain::hex(&before) && !starts_late {
            return Err(Reason::Previous);
        }
        let hash = chain::hash(line);
        if self.looked_for.as_ref().is_some_and(|looked_for| *looked_for == chain::hex(&hash)) {
            self.found = Some(found);
        }
        match &mut self.seen {
            Some(seen) => (seen.last, seen.hash, seen.times.1) = (found, hash, time),
            None => self.seen = Some(CheckedChain { first: found, last: found, hash, times: (time.clone(), time) }),
        }
        Ok(())
    }

    /// The number of the next record.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.seen.as_ref().map_or(1, |seen| seen.last.saturating_add(1))
    }
}

/// Checks an audit that is one file.
///
/// # Errors
/// [`Break`] names the first line that does not follow.
pub fn verify(reader: impl BufRead) -> Result<Summary, Break> {
    let mut verifier = Verifier::new();
    verifier.file(reader)?;
    Ok(verifier.summary())
}
