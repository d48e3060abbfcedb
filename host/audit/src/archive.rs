//! Reading an audit that another process may be writing: all its files as of one moment.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::files::{CHAINS_MAX, Files, Identity, exists, found, open_regular};
use crate::follow::Follower;
use crate::lines::{LineError, Lines};
use crate::verify::{Break, Summary, Verifier};

/// How often the files may turn out to have moved while they are opened. They move once in minutes.
const ATTEMPTS_MAX: u32 = 16;

const MOVED: &str = "the files are moved all the time";

/// Bytes per read: the largest record needs two reads.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// An audit's files, oldest first.
#[derive(Debug)]
pub struct Archive {
    pub(crate) files: Vec<ArchivedFile>,
    /// True if the file that is being written is missing.
    lacks_current: bool,
}

/// One of the files.
#[derive(Debug)]
pub struct ArchivedFile {
    path: PathBuf,
    pub(crate) file: File,
    pub(crate) identity: Identity,
    /// The end of its last whole line.
    lines_end: u64,
    /// Bytes after that.
    torn_bytes: u64,
}

/// The bytes of a file between two offsets, read without moving the file's position.
#[derive(Debug)]
pub struct Between<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

/// Where the last lines of a file start.
struct FromEnd {
    /// The offset of the first of them; 0 if the file has fewer.
    start: u64,
    /// How many lines there are from this offset on.
    lines: u64,
}

/// One chain of an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Its number: the first has the audit's own name.
    pub number: u32,
    /// The file that is being written.
    pub path: PathBuf,
}

/// The chains of this audit: processes that run at the same time write one each. The first chain
/// comes first, and is returned even if there is none.
///
/// # Errors
/// The system's error where the folder cannot be looked at.
pub fn chains(path: &Path) -> io::Result<Vec<Chain>> {
    let files = Files::of(path);
    let mut chains = Vec::new();
    if exists(files.current())? || exists(&files.number(1))? {
        chains.push(Chain { number: 1, path: path.to_owned() });
    }
    for number in 2..=CHAINS_MAX {
        let chain = files.chain(number);
        // A host that is killed while it rotates leaves only closed files.
        if exists(chain.current())? || exists(&chain.number(1))? {
            chains.push(Chain { number, path: chain.current().to_owned() });
        }
    }
    if chains.is_empty() {
        chains.push(Chain { number: 1, path: path.to_owned() });
    }
    Ok(chains)
}

impl Archive {
    /// Opens the file that is being written and all closed ones. A host that is killed between the
    /// two renames of a rotation leaves only closed ones.
    ///
    /// # Errors
    /// The system's error where a file cannot be opened. [`io::ErrorKind::NotFound`]: no such file,
    /// and no closed one.
    pub fn open(path: &Path) -> io::Result<Self> {
        let files = Files::of(path);
        for _ in 0..ATTEMPTS_MAX {
            if let Some(archive) = Self::attempt(&files)? {
                return Ok(archive);
            }
        }
        Err(io::Error::other(MOVED))
    }

    /// [`open`](Self::open), and the names of strays: files that are numbered like closed ones, but
    /// after a gap that no rotation leaves. Strays are neither verified nor shown, so anybody may
    /// have changed them.
    ///
    /// # Errors
    /// As there, and where the folder cannot be listed.
    pub fn open_with_strays(path: &Path) -> io::Result<(Self, Vec<PathBuf>)> {
        let files = Files::of(path);
        let mut before = None;
        for _ in 0..ATTEMPTS_MAX {
            let Some(archive) = Self::attempt(&files)? else { continue };
            let strays = archive.strays(&files)?;
            // A file that moved while the others were opened is not a stray: the second pass finds
            // it among them.
            if strays.is_empty() || before.as_ref() == Some(&strays) {
                return Ok((archive, strays));
            }
            before = Some(strays);
        }
        Err(io::Error::other(MOVED))
    }

    /// True if closed files exist, but none with the audit's own name: a host was killed while it
    /// rotated, or the file was removed.
    #[must_use]
    pub const fn lacks_current(&self) -> bool {
        self.lacks_current
    }

    /// The files, oldest first.
    #[must_use]
    pub fn files(&self) -> &[ArchivedFile] {
        &self.files
    }

    /// The last records, and those written after them.
    ///
    /// # Errors
    /// The system's error where a file cannot be read.
    pub fn follow(self, path: &Path, last: u64) -> io::Result<Follower> {
        let mut wanted = last;
        let mut places = Vec::new();
        for file in self.files.into_iter().rev() {
            let FromEnd { start, lines } = from_end(&file.file, file.lines_end, wanted)?;
            places.push((file, start));
            wanted -= lines.min(wanted);
            if wanted == 0 {
                break;
            }
        }
        Ok(Follower::new(Files::of(path), places.into_iter().rev()))
    }

    /// Checks the whole lines of every file. Bytes after them in the newest file are ignored, since
    /// a record may be being written. See [`ArchivedFile::torn_bytes`].
    ///
    /// # Errors
    /// The first line that does not follow, and its file.
    pub fn verify(&self) -> Result<Summary, (&ArchivedFile, Break)> {
        self.verify_with(Verifier::new())
    }

    /// [`verify`](Self::verify) with a new verifier.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn verify_with(&self, mut verifier: Verifier) -> Result<Summary, (&ArchivedFile, Break)> {
        let mut files = self.files.iter().peekable();
        while let Some(file) = files.next() {
            let line = verifier.file(file.reader()).map_err(|broken| (file, broken))?;
            if file.torn_bytes > 0 && files.peek().is_some() {
                let record = verifier.next_number();
                let reason = LineError::Torn.into();
                return Err((file, Break { line: line + 1, record, reason }));
            }
        }
        Ok(verifier.summary())
    }

    /// Opens the files newest first, so that a file that moves meanwhile is seen twice rather than
    /// missed; `None` if one was.
    pub(crate) fn attempt(files: &Files) -> io::Result<Option<Self>> {
        let current = found(ArchivedFile::open(files.current().to_owned()))?;
        let was = current.as_ref().map(|file| file.identity);
        let mut opened: Vec<ArchivedFile> = current.into_iter().collect();
        for number in files.closed()? {
            let Some(file) = found(ArchivedFile::open(files.number(number)))? else { return Ok(None) };
            if opened.iter().any(|other| other.identity == file.identity) {
                return Ok(None);
            }
            opened.push(file);
        }
        if Identity::at(files.current())? != was {
            return Ok(None);
        }
        if opened.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such file"));
        }
        opened.reverse();
        Ok(Some(Self { files: opened, lacks_current: was.is_none() }))
    }

    /// Files that are numbered like closed ones but do not belong to them.
    fn strays(&self, files: &Files) -> io::Result<Vec<PathBuf>> {
        let mut strays = Vec::new();
        for path in files.numbered()? {
            if self.files.iter().any(|file| file.path == path) {
                continue;
            }
            // A file that cannot be read exists all the same.
            let identity = Identity::at(&path).unwrap_or_default();
            if exists(&path)? && !self.files.iter().any(|file| Some(file.identity) == identity) {
                strays.push(path);
            }
        }
        Ok(strays)
    }
}

impl ArchivedFile {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = open_regular(&path)?;
        let metadata = file.metadata()?;
        let length = metadata.len();
        let lines_end = from_end(&file, length, 0)?.start;
        Ok(Self { path, file, identity: Identity::from(&metadata), lines_end, torn_bytes: length - lines_end })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes after its last whole line: a record that is being written, or a torn one.
    #[must_use]
    pub const fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }

    /// True if it has the same length as when it was opened.
    ///
    /// # Errors
    ///
    /// The system's error if the file's metadata cannot be read.
    pub fn is_unchanged(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.len() == self.lines_end + self.torn_bytes)
    }

    /// Its whole lines as bytes, for [`Verifier::file`](crate::Verifier::file).
    #[must_use]
    pub fn reader(&self) -> BufReader<Between<'_>> {
        BufReader::with_capacity(READ_BYTES, Between { file: &self.file, at: 0, end: self.lines_end })
    }

    /// Its last whole lines, at most `bytes` bytes of them. A line that begins before that is left
    /// out.
    ///
    /// # Errors
    /// The system's error where the file cannot be read.
    pub fn last_lines(&self, bytes: u64) -> io::Result<Lines<BufReader<Between<'_>>>> {
        let earliest = self.lines_end.saturating_sub(bytes);
        let between = Between { file: &self.file, at: earliest.saturating_sub(1), end: self.lines_end };
        let mut reader = BufReader::with_capacity(READ_BYTES, between);
        if earliest > 0 {
            // Skips the newline of the line before, or the rest of a line that is cut.
            reader.skip_until(b'\n')?;
        }
        Ok(Lines::new(reader))
    }

    /// Bytes of its whole lines.
    #[must_use]
    pub const fn lines_bytes(&self) -> u64 {
        self.lines_end
    }

    /// Its whole lines.
    #[must_use]
    pub fn lines(&self) -> Lines<BufReader<Between<'_>>> {
        Lines::new(self.reader())
    }
}

impl Read for Between<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let read = self.file.read_at(buffer.get_mut(..wanted).unwrap_or_default(), self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Finds where the last `wanted` whole lines before `end` start; for 0, where the last whole line
/// ends.
fn from_end(file: &File, end: u64, wanted: u64) -> io::Result<FromEnd> {
    let mut step = vec![0; READ_BYTES];
    let mut at = end;
    let mut newlines = 0;
    while at > 0 {
        let start = at.saturating_sub(READ_BYTES as u64);
        let length = usize::try_from(at - start).unwrap_or_default();
        let bytes = step.get_mut(..length).unwrap_or_default();
        file.read_exact_at(bytes, start)?;
        for (place, _) in bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            if newlines == wanted {
                return Ok(FromEnd { start: start + place as u64 + 1, lines: wanted });
            }
            newlines += 1;
        }
        at = start;
    }
    Ok(FromEnd { start: 0, lines: newlines })
}
