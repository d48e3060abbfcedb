//! Recordings of calls, which may come from anywhere: a tape, or a whole file. What is read means
//! the same once it is written and read again. Any tape has uses that can be read.
#![no_main]

// The file of the host that reads recordings is in this target, and names what it needs by these.
extern crate self as toolcell_sandbox;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
pub use toolcell_wall::digest::ComponentDigest;
pub use toolcell_wall::failure::CallFailure;
use toolcell_wall::tape::{self, TAPE_ENTRIES_MAX, TapeEntry};
use toolcell_wall::uses::UseReader;
pub use toolcell_wall::{contract, tape as tapes};

#[allow(dead_code, reason = "the target reads bytes, and no file")]
#[path = "../../../host/server/src/recordings/recording.rs"]
mod recording;

/// Files are not what is looked into.
mod files {
    pub(crate) mod file {
        use std::io::{Error, ErrorKind};
        use std::path::Path;

        pub(crate) fn read_bounded(_: &Path, _: u64) -> Result<Vec<u8>, String> {
            Err("no file is read".to_owned())
        }

        pub(crate) fn write_private(_: &Path, _: &[u8]) -> std::io::Result<()> {
            Err(Error::from(ErrorKind::Unsupported))
        }
    }
}

fuzz_target!(|data: &[u8]| {
    if let Ok(entries) = tape::read(data) {
        is_read_again(&entries);
    }
    let Ok(mut recording) = recording::Recording::of_bytes(data) else { return };
    is_read_again(&recording.entries);
    recording.entries.retain(has_no_float);
    let written = recording.to_bytes().expect("a recording that was read is written");
    let again = recording::Recording::of_bytes(&written).expect("a recording that was written is read");
    assert_eq!(format!("{recording:?}"), format!("{again:?}"));
    // If there is a manifest to replay it in, it can be read.
    drop(recording.manifest_to_replay("component.wasm"));
    drop((recording.is_cut(), recording.digest_of_case()));
});

/// False of a number that JSON does not keep exactly. Recordings have floats as texts.
fn has_no_float(entry: &TapeEntry) -> bool {
    entry.arguments.iter().chain(&entry.results).all(is_exact)
}

fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => !number.is_f64(),
        Value::Array(values) => values.iter().all(is_exact),
        Value::Object(members) => members.values().all(is_exact),
        _ => true,
    }
}

/// Entries are read as they are written, and say what they reached.
fn is_read_again(entries: &[TapeEntry]) {
    assert!(entries.len() <= TAPE_ENTRIES_MAX);
    let lines: Vec<u8> = entries.iter().flat_map(tape::line).collect();
    let again = tape::read(&lines).expect("a tape that was written is read");
    assert_eq!(again.len(), entries.len());
    for (again, entry) in again.iter().zip(entries).filter(|(_, entry)| has_no_float(entry)) {
        assert_eq!(again, entry);
    }
    let mut reader = UseReader::default();
    for reached in entries.iter().flat_map(|entry| reader.read(entry)) {
        drop((reached.to_string(), reached.grant()));
    }
}
