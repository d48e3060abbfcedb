//! One file of compiled functions: its form, its reader and its writer.
//!
//! | bytes | hold |
//! |---|---|
//! | 8 | `tcfuncs2` |
//! | for each function | its code, as Cranelift wrote it |
//! | for each function, 44 | its key (32), the offset of its code (8), the bytes of its code (4) |
//! | 8 + 8 | the number of functions, and `tcfuncs2` again |
//!
//! Numbers are little-endian. The reader accepts any bytes: a component may have controlled what is
//! in the file. Its functions only reach later versions of that component.
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;

/// The first and the last bytes of a file.
const MAGIC: [u8; 8] = *b"tcfuncs2";
/// Bytes of a function's key: Cranelift's SHA-256.
const KEY_BYTES: usize = 32;
/// Bytes of the index for each function.
const PLACE_BYTES: usize = KEY_BYTES + 8 + 4;
/// Bytes of the end of a file.
const END_BYTES: u64 = 16;

/// The key of a function: the SHA-256 of everything that its code depends on.
pub(super) type SegmentKey = [u8; KEY_BYTES];

/// The place of a function's code in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentPlace {
    pub(super) offset: u64,
    pub(super) bytes: u32,
}

impl SegmentPlace {
    /// Reads the code, at most `bytes_max` bytes.
    pub(super) fn read(self, file: &File, bytes_max: usize) -> io::Result<Vec<u8>> {
        if self.bytes as usize > bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut code = vec![0; self.bytes as usize];
        file.read_exact_at(&mut code, self.offset)?;
        Ok(code)
    }

    fn end(self) -> Option<u64> {
        self.offset.checked_add(u64::from(self.bytes))
    }
}

/// Reads the index of a file of this size. `None` if the file has another form, or more functions
/// than `functions_max`.
pub(super) fn read_index(
    file: &File,
    file_bytes: u64,
    functions_max: usize,
) -> Option<Vec<(SegmentKey, SegmentPlace)>> {
    let mut magic = [0; MAGIC.len()];
    file.read_exact_at(&mut magic, 0).ok()?;
    let end_at = file_bytes.checked_sub(END_BYTES)?;
    let mut number = [0; 8];
    let mut last = [0; MAGIC.len()];
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
        let place =
            SegmentPlace { offset: u64::from_le_bytes(*offset), bytes: u32::from_le_bytes(bytes.try_into().ok()?) };
        // Code that would overlap the index or the end is skipped.
        place.end().is_some_and(|end| end <= index_at).then_some((*key, place))
    });
    places.collect()
}

/// Writes a whole file of functions.
pub(super) fn write<'c>(file: &File, functions: impl Iterator<Item = (SegmentKey, Cow<'c, [u8]>)>) -> io::Result<()> {
    let mut to = BufWriter::new(file);
    let mut at = MAGIC.len() as u64;
    let mut places = Vec::new();
    to.write_all(&MAGIC)?;
    for (key, code) in functions {
        let bytes = u32::try_from(code.len()).map_err(io::Error::other)?;
        to.write_all(&code)?;
        let place = SegmentPlace { offset: at, bytes };
        at = place.end().ok_or(io::ErrorKind::FileTooLarge)?;
        places.push((key, place));
    }
    to.write_all(&index_of(&places))?;
    to.flush()
}

/// Bytes of a file of functions whose code is this long.
pub(super) fn file_bytes(codes: impl Iterator<Item = usize>) -> u64 {
    let each = codes.map(|bytes| (bytes + PLACE_BYTES) as u64);
    each.fold(MAGIC.len() as u64 + END_BYTES, u64::saturating_add)
}

/// The index of these functions, and the end of the file.
fn index_of(places: &[(SegmentKey, SegmentPlace)]) -> Vec<u8> {
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
