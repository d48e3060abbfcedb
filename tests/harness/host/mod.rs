//! A running `toolcell serve`, and one client's side of its conversation.
//!
//! | file | holds |
//! |---|---|
//! | `starting.rs` | starting it, alone or as several replicas |
//! | `talking.rs` | frames, requests, calls |
//! | `ending.rs` | signals, and its end |

mod ending;
mod starting;
mod talking;

use std::collections::VecDeque;
use std::process::{Child, ChildStdin};
use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::{Value, json};

use crate::Folder;
use crate::balanced::Balanced;
use crate::frames::{Lines, Said, last_lines};
use crate::patience;

/// The name of the audit file in the folder of a host that records.
const AUDIT: &str = "audit.jsonl";

/// A running host. Dropping this ends it.
#[derive(Debug)]
pub struct TestHost {
    child: Child,
    input: Option<ChildStdin>,
    /// Its stdout, which is not read until a test waits for a frame.
    lines: Option<Lines>,
    said: Said,
    threads: Vec<JoinHandle<()>>,
    /// Frames that came before the awaited one, in the order in which they came.
    kept: VecDeque<Value>,
    last_id: u64,
    /// True once `initialize` is done. Requests then carry no modern meta.
    is_legacy: bool,
    folder: Folder,
    /// The name of its audit file.
    audit: String,
    /// Where it is the first of several replicas: the others, and what is before them.
    balanced: Option<Box<Balanced>>,
}

impl TestHost {
    /// The number of processes behind its address. They take turns.
    #[must_use]
    pub fn replica_count(&self) -> usize {
        self.replicas().count()
    }

    /// The replicas behind its address: itself, and others if there are.
    pub(crate) fn replicas(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.balanced.iter().flat_map(|balanced| &balanced.others))
    }

    fn is_bridged(&self) -> bool {
        self.balanced.as_ref().is_some_and(|balanced| balanced.bridge.is_some())
    }

    /// The folder that it serves from.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The records so far, of a host that was started with [`TestHost::recording`]. Those of
    /// several replicas are in the order of their times, and each says which one it is of.
    ///
    /// # Panics
    /// If there are none, or one is not JSON.
    #[must_use]
    pub fn audit(&self) -> Vec<Value> {
        let mut records: Vec<Value> = Vec::new();
        for (place, replica) in self.replicas().enumerate() {
            let text = std::fs::read_to_string(self.folder.path().join(&replica.audit)).unwrap();
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            records.extend(whole.lines().map(|line| {
                let mut record: Value = serde_json::from_str(line).unwrap();
                if self.balanced.is_some() {
                    record["replica"] = json!(place);
                }
                record
            }));
        }
        if self.balanced.is_some() {
            records.sort_by_cached_key(|record| record["time"].as_str().unwrap_or_default().to_owned());
        }
        records
    }

    /// The first record for which `fits` holds, from a host that records. A call's answer may be on
    /// the wire before its record is on the disk.
    ///
    /// # Panics
    /// If none comes in time.
    #[must_use]
    pub fn recorded(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + patience();
        loop {
            let records = self.audit();
            if let Some(record) = records.iter().find(|record| fits(record)) {
                return record.clone();
            }
            assert!(Instant::now() < end, "no record of {what} in {records:#?}\n{}", self.said());
            std::thread::yield_now();
        }
    }

    /// The text that the host has written to stderr so far.
    #[must_use]
    pub fn said(&self) -> String {
        self.replicas().map(|replica| replica.said.text()).collect()
    }

    /// Waits until the host has written these words to stderr. Where it is several replicas, one of
    /// them has.
    ///
    /// # Panics
    /// If it does not in time.
    pub fn will_say(&self, words: &str) {
        if self.balanced.is_none() {
            return assert!(self.said.wait_for(words), "it never said {words:?}, but:\n{}", self.said.text());
        }
        let end = Instant::now() + patience();
        while !self.replicas().any(|replica| replica.said.text().contains(words)) {
            assert!(Instant::now() < end, "none ever said {words:?}, but:\n{}", self.said());
            std::thread::yield_now();
        }
    }

    /// Waits until each replica has written these words to stderr.
    ///
    /// # Panics
    /// If one does not in time.
    pub fn will_all_say(&self, words: &str) {
        for replica in self.replicas() {
            assert!(replica.said.wait_for(words), "it never said {words:?}, but:\n{}", replica.said.text());
        }
    }

    /// The resident memory of the host in bytes, as the kernel counts its pages.
    ///
    /// # Panics
    /// If the host ended.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the host ended");
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// The process id.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }
}

impl TestHost {
    /// The last lines of its stderr and of its audit, for the log of a test that failed.
    fn last_words(&self) -> String {
        let audit = std::fs::read_to_string(self.folder.path().join(&self.audit)).unwrap_or_default();
        let id = self.child.id();
        let said = self.said.text();
        format!("host {id} on stderr:\n{}host {id} in its audit:\n{}", last_lines(&said), last_lines(&audit))
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "the test runner shows it with the failure")]
            {
                eprint!("{}", self.last_words());
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
