//! Lines of an audit, read in bounded memory.

use std::io::{self, BufRead, Read as _};

use crate::chain::RECORD_BYTES_MAX;

/// Why a line cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
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

/// The lines of one file.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// The lines from here on.
    pub const fn new(reader: R) -> Self {
        Self { reader, line: Vec::new(), number: 0 }
    }

    /// The number of lines read, which is the number of the last one.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its newline; nothing at the end.
    ///
    /// # Errors
    /// [`LineError`] if no whole line of a record's length follows; [`number`](Self::number) is its
    /// number.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, LineError> {
        self.line.clear();
        let mut bounded = self.reader.by_ref().take(RECORD_BYTES_MAX as u64);
        let read = bounded.read_until(b'\n', &mut self.line).map_err(LineError::Read)?;
        self.number += u64::from(read > 0);
        if self.line.pop_if(|byte| *byte == b'\n').is_some() {
            return Ok(Some(&self.line));
        }
        match read {
            0 => Ok(None),
            RECORD_BYTES_MAX => Err(LineError::TooLong),
            _ => Err(LineError::Torn),
        }
    }
}
