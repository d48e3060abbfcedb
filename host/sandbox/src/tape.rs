//! The tape of a call that is recorded or replayed, on the host's side.
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use toolcell_wall::tape::{self, TAPE_BYTES_MAX, TapeEntry, TapeError, TapeUse};
use toolcell_walls::memory_file;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 << 10;

/// Bytes of a block, as the system counts them.
const BLOCK_BYTES: u64 = 512;

/// A file in memory, which goes to the sandbox process with its call.
#[derive(Debug)]
pub struct Tape {
    file: File,
    does: TapeUse,
}

impl Tape {
    /// An empty tape for a call that is recorded. Its pages take memory once they are written.
    ///
    /// # Errors
    /// The system has no memory left for it.
    pub fn recording() -> io::Result<Self> {
        Ok(Self { file: memory_file::of_length(TAPE_BYTES_MAX)?, does: TapeUse::Record })
    }

    /// A tape with these entries, for a call of the component that was recorded, or of another one.
    ///
    /// # Errors
    /// The system has no memory left for it.
    pub fn replaying(entries: &[TapeEntry], is_recorded_component: bool) -> io::Result<Self> {
        let bytes: Vec<u8> = entries.iter().flat_map(tape::line).collect();
        let does = if is_recorded_component { TapeUse::Replay } else { TapeUse::Compare };
        Ok(Self { file: memory_file::sealed(&bytes)?, does })
    }

    /// From now on nobody writes to it: not even a process that keeps it. Returns the bytes of
    /// memory that it takes, which are none where nothing was written.
    ///
    /// # Errors
    /// A process has it in its memory, which no honest one has.
    pub fn finish(&self) -> io::Result<u64> {
        memory_file::seal(&self.file)?;
        Ok(self.file.metadata()?.blocks().saturating_mul(BLOCK_BYTES))
    }

    pub(crate) fn does(&self) -> TapeUse {
        self.does
    }

    /// What the process has written, once its call is over. A process may write anything.
    ///
    /// # Errors
    /// [`TapeError`], or an error of the system.
    pub fn entries(&self) -> io::Result<Result<Vec<TapeEntry>, TapeError>> {
        let mut bytes = Vec::new();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = self.file.read_at(&mut piece, bytes.len() as u64)?;
            let written = piece.get(..read).unwrap_or_default();
            // What was never written is zero, which no line has.
            let end = written.iter().position(|byte| *byte == 0).unwrap_or(read);
            bytes.extend(written.get(..end).unwrap_or_default());
            if end < PIECE_BYTES {
                return Ok(tape::read(&bytes));
            }
        }
    }
}

impl AsFd for Tape {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn entry(number: usize) -> TapeEntry {
        TapeEntry { function: format!("{number:0>900}"), ..TapeEntry::default() }
    }

    #[test]
    fn what_was_written_is_read_and_a_tape_never_grows() {
        for count in [0, 1, 200] {
            let tape = Tape::recording().unwrap();
            let entries: Vec<TapeEntry> = (0..count).map(entry).collect();
            entries.iter().for_each(|entry| (&tape.file).write_all(&tape::line(entry)).unwrap());
            assert_eq!(tape.entries().unwrap(), Ok(entries));
        }
        let tape = Tape::recording().unwrap();
        assert!(tape.file.write_all_at(b"x", TAPE_BYTES_MAX).is_err());
        assert!(tape.file.set_len(TAPE_BYTES_MAX + 1).is_err());
        tape.file.write_all_at(&vec![b'x'; usize::try_from(TAPE_BYTES_MAX).unwrap()], 0).unwrap();
        assert_eq!(tape.entries().unwrap(), Ok(Vec::new()), "a line without an end");
    }
}
