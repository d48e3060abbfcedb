//! The end of a file that is continued: its last record, and a torn one.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use crate::chain::{self, GENESIS, Hash, LINE_START, RECORD_BYTES_MAX};

/// Bytes that are read from the end of such a file: its last record and a torn one.
const TAIL_BYTES_MAX: u64 = 2 * RECORD_BYTES_MAX as u64;

/// Where a chain continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The number of the last whole record; 0 if there is none.
    pub(crate) seq: u64,
    /// The hash of the last whole record.
    pub(crate) prev: Hash,
    /// Bytes after the last whole record, to be cut off.
    pub(crate) torn_bytes: u64,
}

/// Reads the end of a file of this length. `None` if it is not the end of an audit.
pub(crate) fn of_file(mut file: &File, length_bytes: u64) -> io::Result<Option<Tail>> {
    file.seek(SeekFrom::Start(length_bytes.saturating_sub(TAIL_BYTES_MAX)))?;
    let mut end = Vec::new();
    file.take(TAIL_BYTES_MAX).read_to_end(&mut end)?;
    Ok(read(&end, length_bytes <= TAIL_BYTES_MAX))
}

/// Parses the end of a file: the last bytes, with at least one record and a torn one, or the whole
/// file. `None` if they are not the end of an audit.
pub(crate) fn read(end: &[u8], is_whole_file: bool) -> Option<Tail> {
    let whole = end.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (lines, torn) = end.split_at_checked(whole)?;
    if !is_torn_record(torn) {
        return None;
    }
    let torn_bytes = torn.len() as u64;
    let Some(lines) = lines.strip_suffix(b"\n") else {
        // A torn record that stands alone must look like one: a file of zeros is not an audit.
        if !is_whole_file || torn.first() == Some(&0) {
            return None;
        }
        return Some(Tail { seq: 0, prev: GENESIS, torn_bytes });
    };
    let start = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let last = lines.get(start..)?;
    let link = chain::link(last)?;
    Some(Tail { seq: link.seq, prev: chain::hash(last), torn_bytes })
}

/// True if these bytes can be a torn record: the beginning of one, or the zeros that some file
/// systems leave after a power failure. Anything else is a foreign text, and must not be cut off.
fn is_torn_record(bytes: &[u8]) -> bool {
    let common = bytes.len().min(LINE_START.len());
    bytes.iter().all(|byte| *byte == 0) || bytes.get(..common) == LINE_START.get(..common)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_left_of_a_record_is_cut_off() {
        let link = "{\"seq\":3,\"prev\":\"x\",\"time\":\"t\"}";
        let prev = chain::hash(link.as_bytes());
        let after = |torn: &str| format!("{link}\n{torn}").into_bytes();
        let tail = |seq, prev, torn_bytes| Some(Tail { seq, prev, torn_bytes });
        for (end, is_whole_file, expected) in [
            (Vec::new(), true, tail(0, GENESIS, 0)),
            (after(""), true, tail(3, prev, 0)),
            (after(""), false, tail(3, prev, 0)),
            (after("{\"seq\":4,\"pr"), true, tail(3, prev, 12)),
            (after("{\"s"), true, tail(3, prev, 3)),
            (after("\0\0\0"), true, tail(3, prev, 3)),
            (after("my notes"), true, None),
            (b"{\"seq\":1,".to_vec(), true, tail(0, GENESIS, 9)),
            (b"{\"seq\":1,".to_vec(), false, None),
            (b"\0\0".to_vec(), true, None),
            (b"my notes".to_vec(), true, None),
            (b"my notes\n".to_vec(), true, None),
            (b"{\"seq\":1}\n".to_vec(), true, None),
        ] {
            assert_eq!(read(&end, is_whole_file), expected, "{:?}", String::from_utf8_lossy(&end));
        }
    }
}
