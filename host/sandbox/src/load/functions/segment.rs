//! One file of compiled functions: its form, its reader and its writer. Must not hold: which files
//! there are.
//!
//! | bytes | hold |
//! |---|---|
//! | 8 | `tcfuncs1` |
//! | for each function | its code, as Cranelift wrote it, and 32 bytes of MAC |
//! | for each function, 44 | its key (32), the offset of its code (8), the bytes of its code (4) |
//! | 8 + 8 | the number of functions, and `tcfuncs1` again |
//!
//! Numbers are little-endian. Nothing of a file is believed but code whose MAC fits: the MAC covers
//! the engine and the key beside the code. So the reader takes any bytes, and a wrong place in the
//! index finds nothing.
use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The first and the last bytes of a file.
const MAGIC: [u8; 8] = *b"tcfuncs1";
/// Bytes of a function's key: Cranelift's SHA-256.
const KEY_BYTES: usize = 32;
/// Bytes of a MAC (BLAKE3).
const MAC_BYTES: usize = 32;
/// Bytes of the index for each function.
const PLACE_BYTES: usize = KEY_BYTES + 8 + 4;
/// Bytes of the end of a file.
const END_BYTES: u64 = 16;

/// The key of a function: the SHA-256 of everything that its code depends on.
pub(super) type Key = [u8; KEY_BYTES];

/// The place of a function's code in a file. Its MAC comes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) bytes: u32,
}

impl Place {
    /// Reads the code, of at most so many bytes, and the MAC that the file has for it.
    pub(super) fn read(self, file: &File, bytes_max: usize) -> io::Result<(Vec<u8>, [u8; MAC_BYTES])> {
        if self.bytes as usize > bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let (mut code, mut mac) = (vec![0; self.bytes as usize], [0; MAC_BYTES]);
        file.read_exact_at(&mut code, self.offset)?;
        file.read_exact_at(&mut mac, self.offset.saturating_add(u64::from(self.bytes)))?;
        Ok((code, mac))
    }

    fn end(self) -> Option<u64> {
        self.offset.checked_add(u64::from(self.bytes))?.checked_add(MAC_BYTES as u64)
    }
}

/// Reads the index of a file that has this many bytes. `None` where it is no such file, or claims
/// more functions than these.
pub(super) fn read_index(file: &File, file_bytes: u64, functions_max: usize) -> Option<Vec<(Key, Place)>> {
    let mut magic = [0; MAGIC.len()];
    file.read_exact_at(&mut magic, 0).ok()?;
    let end_at = file_bytes.checked_sub(END_BYTES)?;
    let (mut number, mut last) = ([0; 8], [0; MAGIC.len()]);
    file.read_exact_at(&mut number, end_at).ok()?;
    file.read_exact_at(&mut last, end_at + 8).ok()?;
    let functions = usize::try_from(u64::from_le_bytes(number)).ok().filter(|number| *number <= functions_max)?;
    if magic != MAGIC || last != MAGIC {
        return None;
    }
    let index_at = end_at.checked_sub(functions.checked_mul(PLACE_BYTES)? as u64)?;
    let mut index = vec![0; functions * PLACE_BYTES];
    file.read_exact_at(&mut index, index_at).ok()?;
    let places = index.chunks_exact(PLACE_BYTES).map(|record| {
        let (key, place) = record.split_first_chunk::<KEY_BYTES>()?;
        let (offset, bytes) = place.split_first_chunk::<8>()?;
        let place = Place { offset: u64::from_le_bytes(*offset), bytes: u32::from_le_bytes(bytes.try_into().ok()?) };
        // Code that would lie in the index or past it is not looked for.
        place.end().is_some_and(|end| end <= index_at).then_some((*key, place))
    });
    places.collect()
}

/// Writes a whole file of functions. Who reads it takes it from somebody whom it trusts, so there
/// is no MAC behind each.
pub(super) fn write<'c>(file: &File, functions: impl Iterator<Item = (Key, Cow<'c, [u8]>)>) -> io::Result<()> {
    let mut to = BufWriter::new(file);
    let (mut at, mut places) = (MAGIC.len() as u64, Vec::new());
    to.write_all(&MAGIC)?;
    for (key, code) in functions {
        let bytes = u32::try_from(code.len()).map_err(io::Error::other)?;
        to.write_all(&code)?;
        to.write_all(&[0; MAC_BYTES])?;
        let place = Place { offset: at, bytes };
        at = place.end().ok_or(io::ErrorKind::FileTooLarge)?;
        places.push((key, place));
    }
    to.write_all(&index_of(&places))?;
    to.flush()
}

/// Bytes of a file of functions whose code is this long.
pub(super) fn file_bytes(codes: impl Iterator<Item = usize>) -> u64 {
    let each = codes.map(|bytes| (bytes + MAC_BYTES + PLACE_BYTES) as u64);
    each.fold(MAGIC.len() as u64 + END_BYTES, u64::saturating_add)
}

/// The index of these functions, and the end of the file.
fn index_of(places: &[(Key, Place)]) -> Vec<u8> {
    let mut end = Vec::with_capacity(places.len() * PLACE_BYTES + END_BYTES as usize);
    for (key, place) in places {
        end.extend_from_slice(key);
        end.extend_from_slice(&place.offset.to_le_bytes());
        end.extend_from_slice(&place.bytes.to_le_bytes());
    }
    end.extend_from_slice(&(places.len() as u64).to_le_bytes());
    end.extend_from_slice(&MAGIC);
    end
}

/// A file that is being written. It is removed unless it is finished.
#[derive(Debug)]
pub(super) struct Draft {
    path: PathBuf,
    end: u64,
    places: Vec<(Key, Place)>,
    broken: bool,
}

impl Draft {
    /// Begins a file at this path, where there must be none.
    pub(super) fn create(path: PathBuf) -> io::Result<(Self, File)> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o400).open(&path)?;
        let draft = Self { path, end: MAGIC.len() as u64, places: Vec::new(), broken: false };
        file.write_all_at(&MAGIC, 0)?;
        Ok((draft, file))
    }

    /// Sets room aside for code and its MAC.
    pub(super) fn reserve(&mut self, code: &[u8]) -> Option<Place> {
        let place = Place { offset: self.end, bytes: u32::try_from(code.len()).ok()? };
        self.end = place.end()?;
        (!self.broken).then_some(place)
    }

    /// Says that the code of this key is in its place.
    pub(super) fn filled(&mut self, key: Key, place: Place) {
        self.places.push((key, place));
    }

    /// Says that a place could not be filled: the file will not be kept.
    pub(super) fn failed(&mut self) {
        self.broken = true;
    }

    /// Functions in it so far.
    pub(super) fn functions(&self) -> usize {
        self.places.len()
    }

    /// Its bytes so far, without the index.
    pub(super) fn bytes(&self) -> u64 {
        self.end
    }

    /// Writes the index and puts the file in its place, where it holds anything.
    pub(super) fn finish(mut self, file: &File, to: &Path) -> io::Result<bool> {
        if self.broken || self.places.is_empty() {
            return Ok(false);
        }
        file.write_all_at(&index_of(&self.places), self.end)?;
        fs::rename(&self.path, to)?;
        self.path = PathBuf::new();
        Ok(true)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}
