//! Archives in the form of zip, the same bytes for the same files.
//!
//! The form is that of PKWARE's APPNOTE 6.3, without its later parts: no encryption, no zip64.
use miniz_oxide::deflate::compress_to_vec;

/// Most entries. Two bytes count them.
pub const ENTRIES_MAX: usize = 10_000;

/// Level of compression: higher ones take twice the time for a hundredth of the size.
const LEVEL: u8 = 6;

/// 1980-01-01, the earliest date of an entry.
const DAY: u16 = 1 << 5 | 1;

/// Version of the format that a reader needs: 2.0, which has deflate.
const NEEDED: u16 = 20;

/// Made on Unix, by that version: the upper half of the attributes is the mode.
const MADE_BY: u16 = 3 << 8 | NEEDED;

/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Kind of an entry. It decides the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZipKind {
    /// A file that everybody can read.
    File,
    /// A file that everybody can run.
    Program,
}

impl ZipKind {
    const fn mode(self) -> u32 {
        match self {
            Self::File => 0o100_644,
            Self::Program => 0o100_755,
        }
    }
}

/// An archive being written.
#[derive(Default)]
pub struct Zip {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    entries: u16,
}

/// The archive would have more entries, or more bytes, than the format allows.
#[derive(Debug)]
pub struct TooLarge;

impl Zip {
    /// Adds a file. The name has slashes between its parts and none at its start.
    pub fn add(&mut self, name: &str, content: &[u8], kind: ZipKind) -> Result<(), TooLarge> {
        if usize::from(self.entries) >= ENTRIES_MAX {
            return Err(TooLarge);
        }
        let packed = compress_to_vec(content, LEVEL);
        let (method, data) =
            if packed.len() < content.len() { (DEFLATED, packed.as_slice()) } else { (STORED, content) };
        let start = length(self.bytes.len())?;
        let about =
            About { method, crc: crc32fast::hash(content), packed: length(data.len())?, whole: length(content.len())? };
        let name_length = u16::try_from(name.len()).map_err(|_| TooLarge)?;

        self.bytes.extend(b"PK\x03\x04");
        about.write(&mut self.bytes, name_length);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(data);

        self.directory.extend(b"PK\x01\x02");
        self.directory.extend(MADE_BY.to_le_bytes());
        about.write(&mut self.directory, name_length);
        // No comment, on the first disk, no attribute of DOS.
        self.directory.extend([0; 6]);
        self.directory.extend((kind.mode() << 16).to_le_bytes());
        self.directory.extend(start.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.entries += 1;
        Ok(())
    }

    /// The whole archive.
    pub fn finish(mut self) -> Result<Vec<u8>, TooLarge> {
        let start = length(self.bytes.len())?;
        let size = length(self.directory.len())?;
        self.bytes.append(&mut self.directory);
        self.bytes.extend(b"PK\x05\x06\0\0\0\0");
        self.bytes.extend(self.entries.to_le_bytes());
        self.bytes.extend(self.entries.to_le_bytes());
        self.bytes.extend(size.to_le_bytes());
        self.bytes.extend(start.to_le_bytes());
        // No comment.
        self.bytes.extend([0; 2]);
        Ok(self.bytes)
    }
}

/// The fields that an entry's header and its line in the directory share.
struct About {
    method: u16,
    crc: u32,
    packed: u32,
    whole: u32,
}

impl About {
    fn write(&self, bytes: &mut Vec<u8>, name_length: u16) {
        for short in [NEEDED, FLAGS, self.method, 0, DAY] {
            bytes.extend(short.to_le_bytes());
        }
        for long in [self.crc, self.packed, self.whole] {
            bytes.extend(long.to_le_bytes());
        }
        bytes.extend(name_length.to_le_bytes());
        // No extra field.
        bytes.extend([0; 2]);
    }
}

fn length(bytes: usize) -> Result<u32, TooLarge> {
    u32::try_from(bytes).map_err(|_| TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> Vec<u8> {
        let mut zip = Zip::default();
        zip.add("manifest.json", b"{}", ZipKind::File).unwrap();
        zip.add("server/toolcell", &[b'a'; 10_000], ZipKind::Program).unwrap();
        zip.finish().unwrap()
    }

    #[test]
    fn the_same_files_give_the_same_bytes_and_repetitions_are_packed() {
        assert_eq!(archive(), archive());
        assert!(archive().len() < 400, "{}", archive().len());
    }

    /// The end-to-end test of `bundle` checks it with another reader.
    #[test]
    fn names_modes_and_contents_are_where_the_form_has_them() {
        let bytes = archive();
        assert_eq!(&bytes[..4], b"PK\x03\x04");
        assert_eq!(&bytes[30..45], b"manifest.json{}");
        let end = &bytes[bytes.len() - 22..];
        assert_eq!(&end[..4], b"PK\x05\x06");
        assert_eq!(end[10], 2);
        let directory = u32::from_le_bytes(end[16..20].try_into().unwrap()) as usize;
        let modes = [directory + 38, directory + 46 + 13 + 38]
            .map(|at| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) >> 16);
        assert_eq!(modes, [0o100_644, 0o100_755]);
    }

    #[test]
    fn more_files_than_the_bound_are_refused() {
        let mut zip = Zip::default();
        for number in 0..ENTRIES_MAX {
            zip.add(&number.to_string(), b"", ZipKind::File).unwrap();
        }
        assert!(zip.add("one more", b"", ZipKind::File).is_err());
    }
}
