//! Following an audit while it is written: record after record, from file to file.

use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::archive::{Archive, ArchivedFile, READ_BYTES};
use crate::chain::{self, RECORD_BYTES_MAX};
use crate::files::{Files, Identity, found};
use crate::lines::LineError;

/// Reads an audit while it is written, in bounded memory.
#[derive(Debug)]
pub struct Follower {
    files: Files,
    /// The file that is being read, and the newer ones.
    places: VecDeque<FilePosition>,
    /// Bytes of the first file that were read but not returned yet.
    ahead: Vec<u8>,
    line: Vec<u8>,
}

#[derive(Debug)]
struct FilePosition {
    file: ArchivedFile,
    /// The offset of the next line.
    offset: u64,
}

impl Follower {
    pub(crate) fn new(files: Files, places: impl Iterator<Item = (ArchivedFile, u64)>) -> Self {
        let places = places.map(|(file, offset)| FilePosition { file, offset }).collect();
        Self { files, places, ahead: Vec::new(), line: Vec::new() }
    }

    /// The next whole line without its newline; `None` if it is not written yet. If unread files
    /// were removed, the lines of the oldest remaining one come next; the record's number shows
    /// that.
    ///
    /// # Errors
    /// The system's error where a file cannot be read, or where a line is longer than any record.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            if self.read_line()? {
                return Ok(Some(&self.line));
            }
            if self.places.len() > 1 {
                self.places.pop_front();
            } else if !self.find_newer()? {
                return Ok(None);
            }
        }
    }

    /// Reads one line of the first file; false if there is no whole one.
    fn read_line(&mut self) -> io::Result<bool> {
        let Some(FilePosition { file, offset }) = self.places.front_mut() else { return Ok(false) };
        loop {
            if let Some(end) = self.ahead.iter().position(|byte| *byte == b'\n') {
                self.line.clear();
                self.line.extend(self.ahead.drain(..=end).take(end));
                *offset += end as u64 + 1;
                return Ok(true);
            }
            let known = self.ahead.len();
            if known >= RECORD_BYTES_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, LineError::TooLong));
            }
            self.ahead.resize(known + READ_BYTES, 0);
            let buffer = self.ahead.get_mut(known..).unwrap_or_default();
            let read = file.file.read_at(buffer, *offset + known as u64)?;
            if read == 0 {
                // The rest of the next line is read again, since it may be cut off meanwhile.
                self.ahead.clear();
                return Ok(false);
            }
            self.ahead.truncate(known + read);
        }
    }

    /// Finds newer files than the one that is being read; false if there are none.
    fn find_newer(&mut self) -> io::Result<bool> {
        let read = self.places.front().map(|place| place.file.identity);
        if read.is_some() && Identity::at(self.files.current())? == read {
            return Ok(false);
        }
        let Some(archive) = found(Archive::attempt(&self.files))?.flatten() else { return Ok(false) };
        let mut files = archive.files;
        if let Some(place) = files.iter().position(|file| Some(file.identity) == read) {
            files.drain(..=place);
        }
        self.places.extend(files.into_iter().map(|file| FilePosition { file, offset: 0 }));
        Ok(self.places.len() > 1 || read.is_none())
    }
}

/// The number of a record; `None` if the line is not a record.
#[must_use]
pub fn record_number(line: &[u8]) -> Option<u64> {
    chain::link(line).map(|link| link.seq)
}
