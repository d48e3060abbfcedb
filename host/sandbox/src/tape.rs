//! The tape of a call that is recorded or replayed, on the host's side.
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolcell_wall::message::RunTape;
use toolcell_wall::tape::{self, TAPE_BYTES_MAX, TapeEntry, TapeError, TapeUse};
use toolcell_walls::memory_file;

/// Bytes of a block, as the system counts them.
const BLOCK_BYTES: u64 = 512;

/// Bytes up to which a recording is copied, so that its tape serves the next call. That takes less
/// than making a tape and handing it over.
const COPIED_BYTES_MAX: u64 = 256 << 10;

/// Tapes that one process keeps for its next calls: as many recorded calls at once as a busy
/// process has. More have a tape for one call each.
const KEPT_TAPES_MAX: usize = 16;

/// The tape of a call: a file in memory, which goes to the sandbox process with it.
#[derive(Debug)]
pub struct Tape {
    does: TapeUse,
    reel: Mutex<Reel>,
}

/// What a tape is on.
#[derive(Debug)]
enum Reel {
    /// Nothing yet: the call has no process.
    Blank,
    /// A file for one call.
    Own(Arc<File>),
    /// A file that its process keeps for the next call.
    Kept {
        file: Arc<File>,
        place: KeptPlace,
        /// True if the process has it from an earlier call.
        is_there: bool,
    },
    /// A copy, since the file serves another call.
    Copied(Vec<u8>),
    /// Nothing: the system had no memory left.
    None(io::Error),
}

/// Tapes that a process keeps for its next calls, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct KeptTapes(Mutex<Vec<KeptTape>>);

#[derive(Debug)]
enum KeptTape {
    /// A call has it.
    Used,
    /// The process has this file, which is empty.
    Empty(Arc<File>),
    /// The process gets another file under this number.
    Gone,
}

/// The place of a tape that a call has.
#[derive(Debug)]
struct KeptPlace {
    tapes: Arc<KeptTapes>,
    place: usize,
}

/// A tape as it goes to a process.
pub(crate) struct HandedTape {
    pub(crate) run: RunTape,
    /// The file, unless the process has it.
    pub(crate) file: Option<Arc<File>>,
}

impl KeptTapes {
    fn tapes(&self) -> MutexGuard<'_, Vec<KeptTape>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a call, with its file if the process has it. `None` if all are taken.
    fn take(self: &Arc<Self>) -> Option<(KeptPlace, Option<Arc<File>>)> {
        let mut tapes = self.tapes();
        let free = tapes.iter().position(|tape| !matches!(tape, KeptTape::Used));
        let place = free.unwrap_or(tapes.len());
        if place >= KEPT_TAPES_MAX {
            return None;
        }
        if free.is_none() {
            tapes.push(KeptTape::Gone);
        }
        let tape = tapes.get_mut(place).map(|tape| std::mem::replace(tape, KeptTape::Used));
        let file = match tape {
            Some(KeptTape::Empty(file)) => Some(file),
            _ => None,
        };
        Some((KeptPlace { tapes: Arc::clone(self), place }, file))
    }
}

impl KeptPlace {
    /// The next call gets this file, which is empty.
    fn give_back(self, file: Arc<File>) {
        if let Some(tape) = self.tapes.tapes().get_mut(self.place) {
            *tape = KeptTape::Empty(file);
        }
    }
}

impl Drop for KeptPlace {
    /// Whoever has the file may still write to it.
    fn drop(&mut self) {
        if let Some(tape @ KeptTape::Used) = self.tapes.tapes().get_mut(self.place) {
            *tape = KeptTape::Gone;
        }
    }
}

impl Tape {
    /// An empty tape for a call that is recorded. Its pages take memory once they are written.
    #[must_use]
    pub fn recording() -> Self {
        Self { does: TapeUse::Record, reel: Mutex::new(Reel::Blank) }
    }

    /// A tape with these entries, for a call of the component that was recorded, or of another one.
    ///
    /// # Errors
    /// The system has no memory left for it.
    pub fn replaying(entries: &[TapeEntry], is_recorded_component: bool) -> io::Result<Self> {
        let bytes: Vec<u8> = entries.iter().flat_map(tape::line).collect();
        let does = if is_recorded_component { TapeUse::Replay } else { TapeUse::Compare };
        let file = Arc::new(memory_file::sealed(&bytes)?);
        Ok(Self { does, reel: Mutex::new(Reel::Own(file)) })
    }

    fn reel(&self) -> MutexGuard<'_, Reel> {
        self.reel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tape for a call of a process that keeps these. `None` if there is no memory for it: the
    /// call runs without, and [`finish`](Self::finish) has the error.
    pub(crate) fn hand(&self, tapes: &Arc<KeptTapes>) -> Option<HandedTape> {
        let mut reel = self.reel();
        if let Reel::Blank = *reel {
            *reel = Reel::empty(tapes).unwrap_or_else(Reel::None);
        }
        let run = |place: Option<&KeptPlace>| RunTape {
            does: self.does,
            kept: place.and_then(|place| u32::try_from(place.place).ok()),
        };
        match &*reel {
            Reel::Own(file) => Some(HandedTape { run: run(None), file: Some(Arc::clone(file)) }),
            Reel::Kept { file, place, is_there } => {
                Some(HandedTape { run: run(Some(place)), file: (!is_there).then(|| Arc::clone(file)) })
            }
            Reel::Blank | Reel::Copied(_) | Reel::None(_) => None,
        }
    }

    /// The call did not go to its process, which does not have a new tape.
    pub(crate) fn is_not_sent(&self) {
        let mut reel = self.reel();
        if let Reel::Kept { .. } = *reel {
            *reel = Reel::Blank;
        }
    }

    /// The call has ended. From now on nobody writes to its recording: not even a process that
    /// keeps the tape. Returns the bytes of memory that it takes: 0 if nothing was written.
    ///
    /// # Errors
    /// There was no memory for it; or a process has mapped it, which an honest one never does.
    pub fn finish(&self) -> io::Result<u64> {
        let mut reel = self.reel();
        let (bytes, finished) = match std::mem::replace(&mut *reel, Reel::Blank) {
            Reel::Kept { file, place, .. } => {
                let bytes = bytes_of(&file)?;
                if bytes <= COPIED_BYTES_MAX {
                    let copy = written(&file, bytes)?;
                    if bytes > 0 {
                        memory_file::clear(&file)?;
                    }
                    place.give_back(file);
                    (copy.len() as u64, Reel::Copied(copy))
                } else {
                    memory_file::seal(&file)?;
                    (bytes, Reel::Own(file))
                }
            }
            Reel::Own(file) => {
                memory_file::seal(&file)?;
                (bytes_of(&file)?, Reel::Own(file))
            }
            Reel::None(error) => return Err(error),
            reel @ (Reel::Blank | Reel::Copied(_)) => (0, reel),
        };
        *reel = finished;
        Ok(bytes)
    }

    /// What the process has written, once its call is over. A process may write anything.
    ///
    /// # Errors
    /// [`TapeError`], or an error of the system.
    pub fn entries(&self) -> io::Result<Result<Vec<TapeEntry>, TapeError>> {
        match &*self.reel() {
            Reel::Copied(bytes) => Ok(tape::read(bytes)),
            Reel::Own(file) | Reel::Kept { file, .. } => Ok(tape::read(&written(file, bytes_of(file)?)?)),
            Reel::Blank | Reel::None(_) => Ok(Ok(Vec::new())),
        }
    }
}

impl Reel {
    /// An empty file, which one of these places keeps if any is free.
    fn empty(tapes: &Arc<KeptTapes>) -> io::Result<Self> {
        let Some((place, kept)) = tapes.take() else {
            return Ok(Self::Own(Arc::new(memory_file::of_length(TAPE_BYTES_MAX)?)));
        };
        let is_there = kept.is_some();
        let file = match kept {
            Some(file) => file,
            None => Arc::new(memory_file::of_length(TAPE_BYTES_MAX)?),
        };
        Ok(Self::Kept { file, place, is_there })
    }
}

/// Bytes of memory of a file.
fn bytes_of(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.blocks().saturating_mul(BLOCK_BYTES))
}

/// What was written to the file, whose memory has this many bytes.
fn written(file: &File, bytes: u64) -> io::Result<Vec<u8>> {
    let mut written = vec![0; usize::try_from(bytes.min(TAPE_BYTES_MAX)).map_err(io::Error::other)?];
    if !written.is_empty() {
        file.read_exact_at(&mut written, 0)?;
    }
    // What was never written is zero. A line has no zero.
    let end = written.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    written.truncate(end);
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: usize) -> TapeEntry {
        TapeEntry { function: format!("{number:0>900}"), ..TapeEntry::default() }
    }

    /// What a process does with a tape that it gets, or has: it writes these entries.
    fn write(file: &File, entries: &[TapeEntry]) {
        let bytes: Vec<u8> = entries.iter().flat_map(tape::line).collect();
        file.write_all_at(&bytes, 0).unwrap();
    }

    #[test]
    fn what_was_written_is_read_and_a_tape_never_grows() {
        let kept = Arc::default();
        for count in [0, 1, 200, 1_000] {
            let tape = Tape::recording();
            let entries: Vec<TapeEntry> = (0..count).map(entry).collect();
            write(&tape.hand(&kept).unwrap().file.unwrap(), &entries);
            let bytes = tape.finish().unwrap();
            assert_eq!(bytes > 0, count > 0);
            assert_eq!(tape.entries().unwrap(), Ok(entries));
            kept.tapes().clear();
        }
        let tape = Tape::recording();
        let file = tape.hand(&kept).unwrap().file.unwrap();
        assert!(file.write_all_at(b"x", TAPE_BYTES_MAX).is_err());
        assert!(file.set_len(TAPE_BYTES_MAX + 1).is_err());
        file.write_all_at(&vec![b'x'; usize::try_from(TAPE_BYTES_MAX).unwrap()], 0).unwrap();
        assert_eq!(tape.entries().unwrap(), Ok(Vec::new()), "a line without an end");
    }

    #[test]
    fn a_tape_serves_the_next_call_empty_and_each_call_at_once_has_its_own() {
        let kept: Arc<KeptTapes> = Arc::default();
        let first = Tape::recording();
        let handed = first.hand(&kept).unwrap();
        assert_eq!(handed.run.kept, Some(0));
        let process_has = handed.file.unwrap();
        let beside = Tape::recording();
        assert_eq!(beside.hand(&kept).unwrap().run.kept, Some(1));
        write(&process_has, &[entry(1), entry(2)]);
        first.finish().unwrap();
        assert_eq!(beside.finish().unwrap(), 0);

        let second = Tape::recording();
        let handed = second.hand(&kept).unwrap();
        assert_eq!(handed.run.kept, Some(0));
        assert!(handed.file.is_none(), "the process has it");
        write(&process_has, &[entry(3)]);
        second.finish().unwrap();
        assert_eq!(second.entries().unwrap(), Ok(vec![entry(3)]));
        assert_eq!(first.entries().unwrap(), Ok(vec![entry(1), entry(2)]), "it was copied");
    }

    #[test]
    fn a_tape_that_is_long_or_whose_call_was_given_up_serves_no_other_call() {
        let kept: Arc<KeptTapes> = Arc::default();
        let long = Tape::recording();
        let file = long.hand(&kept).unwrap().file.unwrap();
        let entries: Vec<TapeEntry> = (0..400).map(entry).collect();
        write(&file, &entries);
        long.finish().unwrap();
        assert!(file.write_all_at(b"x", 0).is_err(), "it is sealed");
        let given_up = Tape::recording();
        assert!(given_up.hand(&kept).unwrap().file.is_some());
        drop(given_up);
        let not_sent = Tape::recording();
        assert!(not_sent.hand(&kept).unwrap().file.is_some());
        not_sent.is_not_sent();
        assert_eq!(not_sent.finish().unwrap(), 0);
        let replayed = Tape::replaying(&entries, true).unwrap();
        replayed.is_not_sent();
        assert!(replayed.hand(&kept).unwrap().file.is_some(), "a call to replay never runs without its tape");
        let next = Tape::recording();
        let handed = next.hand(&kept).unwrap();
        assert_eq!(handed.run.kept, Some(0));
        assert!(handed.file.is_some());
        assert_eq!(long.entries().unwrap(), Ok(entries));

        let many: Vec<Tape> = (0..KEPT_TAPES_MAX).map(|_| Tape::recording()).collect();
        let handed: Vec<HandedTape> = many.iter().map(|tape| tape.hand(&kept).unwrap()).collect();
        assert_eq!(handed.iter().filter(|handed| handed.run.kept.is_none()).count(), 1);
        assert!(handed.iter().all(|handed| handed.file.is_some()));
    }
}
