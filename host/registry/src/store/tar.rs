//! Headers of tar archives, in the POSIX form (`ustar`), and the few pax and GNU headers that tools
//! write for short names.
//!
//! A reader that knows two ways to write a name or a length can be misled. So an archive
//! whose extended headers say either is refused.
use std::io::Read;

use crate::error::StoreError;

/// Bytes of a header, and the unit of contents.
pub(super) const BLOCK: usize = 512;

/// Longest extended header, in bytes: tools write times and owners there.
const EXTENDED_BYTES_MAX: u64 = 64 << 10;

/// Keys of extended headers that change the name or length of a file.
const MISLEADING_KEYS: [&str; 5] = ["path=", "size=", "linkpath=", "GNU.sparse", "SCHILY.realsize="];

/// A file of an archive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TarEntry {
    /// Its name, without `./` at the beginning.
    pub(super) name: String,
    /// Its length in bytes.
    pub(super) size: u64,
    /// True for a folder.
    pub(super) is_folder: bool,
}

/// The header of a file with these contents.
pub(super) fn header(name: &str, size: u64) -> [u8; BLOCK] {
    let mut header = [0_u8; BLOCK];
    let mut put = |at: usize, text: &str| {
        for (place, byte) in header.iter_mut().skip(at).zip(text.bytes()) {
            *place = byte;
        }
    };
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    // The time is constant, so that the same components give the same archive.
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
    for (place, byte) in header.iter_mut().skip(148).zip(format!("{sum:06o}\0 ").bytes()) {
        *place = byte;
    }
    header
}

/// Bytes between contents and the next header.
pub(super) fn padding(size: u64) -> u64 {
    let block = u64::try_from(BLOCK).unwrap_or(u64::MAX);
    size.next_multiple_of(block).saturating_sub(size)
}

/// Reads the next header; `None` at the end of the archive.
pub(super) fn next(archive: &mut impl Read) -> Result<Option<TarEntry>, StoreError> {
    let mut extended = 0_u32;
    loop {
        let mut block = [0_u8; BLOCK];
        read_exact(archive, &mut block)?;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        check_sum(&block)?;
        let size = size_of(&block)?;
        match block.get(156).copied().unwrap_or_default() {
            0 | b'0' => return entry(&block, size, false).map(Some),
            b'5' => return entry(&block, 0, true).map(Some),
            b'x' | b'g' if extended < 2 => {
                extended = extended.saturating_add(1);
                check_extended(archive, size)?;
            }
            kind => return Err(refused(format!("it has an entry of kind {:?}", char::from(kind)))),
        }
    }
}

/// Skips contents.
pub(super) fn skip(archive: &mut impl Read, bytes: u64) -> Result<(), StoreError> {
    let skipped = std::io::copy(&mut archive.take(bytes), &mut std::io::sink()).map_err(unread)?;
    if skipped == bytes { Ok(()) } else { Err(refused("it breaks off".to_owned())) }
}

/// Fills a buffer.
pub(super) fn read_exact(archive: &mut impl Read, buffer: &mut [u8]) -> Result<(), StoreError> {
    archive.read_exact(buffer).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => refused("it breaks off".to_owned()),
        _ => unread(error),
    })
}

pub(super) fn refused(problem: String) -> StoreError {
    StoreError::Archive(problem)
}

pub(super) fn unread(source: std::io::Error) -> StoreError {
    StoreError::ArchiveFile { step: "read", source }
}

fn entry(block: &[u8; BLOCK], size: u64, is_folder: bool) -> Result<TarEntry, StoreError> {
    let is_posix = field(block, 257, 6) == b"ustar\0";
    // GNU's format uses the bytes of the name's prefix for other fields.
    let prefix = if is_posix { text(block, 345, 155)? } else { String::new() };
    let name = text(block, 0, 100)?;
    let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
    let name = name.strip_prefix("./").unwrap_or(&name).trim_end_matches('/').to_owned();
    Ok(TarEntry { name, size, is_folder })
}

/// Skips an extended header that says nothing about name and length.
fn check_extended(archive: &mut impl Read, size: u64) -> Result<(), StoreError> {
    if size > EXTENDED_BYTES_MAX {
        return Err(refused(format!("it has an extended header of more than {EXTENDED_BYTES_MAX} bytes")));
    }
    let mut bytes = vec![0; usize::try_from(size.saturating_add(padding(size))).unwrap_or_default()];
    read_exact(archive, &mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    if MISLEADING_KEYS.iter().any(|key| text.contains(key)) {
        return Err(refused("it has an extended header with a name or a length".to_owned()));
    }
    Ok(())
}

fn field(block: &[u8; BLOCK], at: usize, length: usize) -> &[u8] {
    block.get(at..at.saturating_add(length)).unwrap_or_default()
}

fn text(block: &[u8; BLOCK], at: usize, length: usize) -> Result<String, StoreError> {
    let field = field(block, at, length);
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let text = std::str::from_utf8(field.get(..end).unwrap_or_default());
    text.map(str::to_owned).map_err(|_| refused("it has a name that is not text".to_owned()))
}

/// A number in octal digits; GNU's binary form is for files beyond 8 GiB, which are too large.
fn number(block: &[u8; BLOCK], at: usize, length: usize) -> Result<u64, StoreError> {
    let wrong = || refused("it has a header with a number of another form".to_owned());
    let text = text(block, at, length)?;
    u64::from_str_radix(text.trim_matches(' '), 8).map_err(|_| wrong())
}

fn size_of(block: &[u8; BLOCK]) -> Result<u64, StoreError> {
    number(block, 124, 12)
}

fn check_sum(block: &[u8; BLOCK]) -> Result<(), StoreError> {
    let blank = |at: usize| (148..156).contains(&at);
    let sum = |total: u64, (at, byte): (usize, &u8)| {
        total.saturating_add(if blank(at) { u64::from(b' ') } else { u64::from(*byte) })
    };
    if number(block, 148, 8)? == block.iter().enumerate().fold(0, sum) {
        return Ok(());
    }
    Err(refused("it has a header with a wrong checksum".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_are_written() {
        let mut block = header("blobs/sha256/ab", 0o1234567);
        let expected = TarEntry { name: "blobs/sha256/ab".to_owned(), size: 0o1234567, is_folder: false };
        assert_eq!(next(&mut block.as_slice()).unwrap(), Some(expected));
        assert_eq!((padding(0), padding(1), padding(512), padding(513)), (0, 511, 0, 511));
        block[0] = b'c';
        assert!(next(&mut block.as_slice()).unwrap_err().to_string().contains("wrong checksum"));
        assert_eq!(next(&mut [0; BLOCK].as_slice()).unwrap(), None);
        assert!(next(&mut [1; 100].as_slice()).unwrap_err().to_string().contains("breaks off"));
    }
}
