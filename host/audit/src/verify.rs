//! The check of what was written.

use std::io::BufRead;

use crate::chain::{self, GENESIS, Hash, Link, ROTATED};
use crate::lines::{LineError, Lines};

/// An audit whose chain is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The number of records.
    pub records: u64,
    /// The number of the first one: more than 1 if older files are gone; 0 without records.
    pub first: u64,
    /// The number of the last one; 0 without records.
    pub last: u64,
    /// The hash of the last one, 64 hex digits; zeros without records. Kept elsewhere, it shows
    /// later whether the end was cut off or rewritten.
    pub head: String,
    /// When the first and the last record were written.
    pub times: Option<(String, String)>,
    /// The number of the record whose hash was looked for: [`Verifier::looking_for`].
    pub found: Option<u64>,
}

/// The place at which a chain breaks.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Break {
    /// Its place in its file; counts from 1.
    pub line: u64,
    /// The number of the record that belongs there.
    pub record: u64,
    /// The problem of the line.
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
    /// The line cannot be read as a whole.
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

/// The state of the verification after the records so far.
#[derive(Debug)]
struct CheckedChain {
    first: u64,
    last: u64,
    hash: Hash,
    times: (String, String),
}

impl Verifier {
    /// Nothing was checked yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { seen: None, looked_for: None, found: None }
    }

    /// Also looks for the record with this hash, 64 lower-case hex digits: what [`Summary::head`]
    /// was at an earlier time is still there unless the end was cut off or written anew.
    #[must_use]
    pub fn looking_for(hash: &str) -> Self {
        Self { looked_for: Some(hash.to_owned()), ..Self::new() }
    }

    /// Checks the next file and counts its lines, from its first line to its end. The first file of
    /// all begins with record 1, or with the record that says that the audit goes on in a new file.
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

    /// The result, once every file was checked.
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

    /// The number of the record that comes next.
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
