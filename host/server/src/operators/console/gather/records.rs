//! Audit records as views read them: the newest of each chain in order, the runs of hosts, and
//! unfinished calls.
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;
use toolcell_audit::{Archive, ArchivedFile, Chain, LineError};
use toolcell_console::model::{AuditRow, CallLink, Moment};

/// Bytes of the newest records that a view reads: some sixty thousand calls, in less than half a
/// second. `toolcell audit show` reads everything.
pub const SEARCHED_BYTES_MAX: u64 = 32 << 20;

/// Unfinished calls that are tracked. A host runs far fewer at once.
pub const STARTED_MAX: usize = 10_000;

/// Fields of records that are shown as details, in this order.
const DETAILS: [&str; 7] = ["detail", "summary", "cause", "differences", "reason", "name", "uri"];

/// One run of a host. As text it is the number of its first record, after the number of its chain
/// if that is not the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Number of the chain that it recorded into.
    pub chain: u32,
    /// Number of the record that began the run; 0 if that is not among the read ones.
    pub seq: u64,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { chain: 1, seq } => write!(f, "{seq}"),
            Self { chain, seq } => write!(f, "{chain}-{seq}"),
        }
    }
}

impl FromStr for Run {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (chain, seq) = text.split_once('-').unwrap_or(("1", text));
        Ok(Self { chain: chain.parse()?, seq: seq.parse()? })
    }
}

/// One chain of the audit, opened for reading.
pub struct ChainToRead {
    pub number: u32,
    /// The current file.
    pub path: PathBuf,
    /// All its files.
    pub archive: Archive,
    /// The number of its newest bytes that a view reads.
    pub bytes_max: u64,
}

impl ChainToRead {
    fn bytes(&self) -> u64 {
        self.archive.files().iter().map(ArchivedFile::lines_bytes).sum()
    }
}

/// Opens all chains of an audit. At most `bytes_max` bytes are read in all: small chains
/// completely, and equal parts of the large ones.
///
/// # Errors
/// The system's error if the first one cannot be opened. Other chains that are missing are skipped.
pub fn chains_to_read(audit: &Path, bytes_max: u64) -> io::Result<Vec<ChainToRead>> {
    let mut chains = Vec::new();
    for Chain { number, path } in toolcell_audit::chains(audit)? {
        match Archive::open(&path) {
            Ok(archive) => chains.push(ChainToRead { number, path, archive, bytes_max: 0 }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    if chains.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    chains.sort_by_key(ChainToRead::bytes);
    let mut left = bytes_max;
    let mut count = chains.len() as u64;
    for chain in &mut chains {
        chain.bytes_max = chain.bytes().min(left / count.max(1));
        left -= chain.bytes_max;
        count -= 1;
    }
    chains.sort_by_key(|chain| chain.number);
    Ok(chains)
}

/// Tracks runs and unfinished calls of one chain while its records are read in order.
pub struct Reading {
    pub run: Run,
    open: BTreeMap<u64, OpenCall>,
}

/// An unfinished call.
pub struct OpenCall {
    /// Its start.
    pub started: Value,
    /// True if one of its records contains the searched text.
    pub has_text: bool,
}

/// What a record changes.
#[derive(Default)]
pub struct Taken {
    /// The call that it ends.
    pub ended: Option<OpenCall>,
    /// Calls of the run before this record, which never ended.
    pub cut: Vec<OpenCall>,
    /// Their run.
    pub cut_run: Run,
}

impl Reading {
    pub fn of(chain: u32) -> Self {
        Self { run: Run { chain, seq: 0 }, open: BTreeMap::new() }
    }

    /// Processes the next record. `has_text`: it contains the searched text.
    pub fn take(&mut self, record: &Value, has_text: bool) -> Taken {
        let id = number(record, "id");
        match text(record, "event") {
            "host.started" => {
                let cut = std::mem::take(&mut self.open).into_values().collect();
                let next = Run { seq: number(record, "seq"), ..self.run };
                let cut_run = std::mem::replace(&mut self.run, next);
                return Taken { cut, cut_run, ended: None };
            }
            "call.started" => {
                self.open.insert(id, OpenCall { started: record.clone(), has_text });
                if self.open.len() > STARTED_MAX {
                    self.open.pop_first();
                }
            }
            "call.denied" | "call.asked" => {
                if let Some(call) = self.open.get_mut(&id) {
                    call.has_text |= has_text;
                }
            }
            "call.finished" => return Taken { ended: self.open.remove(&id), ..Taken::default() },
            _ => {}
        }
        Taken::default()
    }

    /// The unfinished calls, in the order of their start.
    pub fn into_open(self) -> impl DoubleEndedIterator<Item = OpenCall> {
        self.open.into_values()
    }
}

/// Calls `each` for the newest lines of a chain, oldest first. False if there are older ones. If a
/// line cannot be read, the rest of its file is skipped, and the first such error is returned.
pub fn each_line(archive: &Archive, bytes_max: u64, mut each: impl FnMut(&[u8])) -> io::Result<bool> {
    let mut left = bytes_max;
    let mut windows: Vec<(&ArchivedFile, u64)> = Vec::new();
    for file in archive.files().iter().rev() {
        if left == 0 {
            break;
        }
        windows.push((file, left));
        left = left.saturating_sub(file.lines_bytes());
    }
    let all_bytes: u64 = archive.files().iter().map(ArchivedFile::lines_bytes).sum();
    let is_all = all_bytes <= bytes_max;
    let mut read = Ok(());
    for (file, window) in windows.into_iter().rev() {
        if let Err(error) = each_of(file, window, &mut each) {
            read = read.and(Err(error));
        }
    }
    read.map(|()| is_all)
}

fn each_of(file: &ArchivedFile, window: u64, each: &mut impl FnMut(&[u8])) -> io::Result<()> {
    let mut lines = file.last_lines(window)?;
    while let Some(line) = lines.next_line().map_err(|error| unreadable(file, &error))? {
        each(line);
    }
    Ok(())
}

/// The error for an unreadable line in this file.
pub fn unreadable(file: &ArchivedFile, error: &LineError) -> io::Error {
    io::Error::other(format!("{}: {error}", file.path().display()))
}

/// Calls `each` for the newest records of a chain with their lines, oldest first. False if there
/// are older ones.
pub fn each_record(archive: &Archive, bytes_max: u64, mut each: impl FnMut(&Value, &[u8])) -> io::Result<bool> {
    each_line(archive, bytes_max, |line| {
        if let Ok(record) = serde_json::from_slice::<Value>(line) {
            each(&record, line);
        }
    })
}

/// The row of a record of a run. `caller` is that of its call.
pub fn row(record: &Value, caller: &str, run: Run) -> AuditRow {
    let event = text(record, "event");
    let id = number(record, "id");
    let took = record.get("usage").and_then(|usage| usage.get("duration_us")).and_then(Value::as_u64);
    AuditRow {
        at: at(record),
        record: event.to_owned(),
        call: event.starts_with("call.").then(|| CallLink { id: format!("{run}.{id}"), number: id }),
        tool: text(record, "tool").to_owned(),
        caller: caller.to_owned(),
        outcome: text(record, "outcome").to_owned(),
        took: took.map(Duration::from_micros),
        detail: detail(record),
    }
}

/// The caller of a record: its own, or that of the call it ends.
pub fn caller<'r>(record: &'r Value, call: Option<&'r Value>) -> &'r str {
    match (text(record, "caller"), call) {
        ("", Some(call)) => text(call, "caller"),
        (own, _) => own,
    }
}

/// Details of a record in one line.
pub fn detail(record: &Value) -> String {
    let mut parts: Vec<String> = decision(record).into_iter().collect();
    parts.extend(DETAILS.iter().map(|key| text(record, key).replace('\n', "; ")));
    if text(record, "event") == "request.refused" {
        parts.push(text(record, "address").to_owned());
        let others = if record.get("others") == Some(&Value::Bool(true)) { "others, " } else { "" };
        parts.push(match number(record, "count") {
            1 => format!("{others}1 time"),
            count => format!("{others}{count} times"),
        });
    }
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}

/// An operator's decision, and who took it.
fn decision(record: &Value) -> Option<String> {
    let decision = record.get("decision")?.as_str()?;
    let [subject, operator, session] = ["subject", "operator", "session"].map(|key| text(record, key));
    let words: Vec<&str> = [decision, subject].into_iter().filter(|word| !word.is_empty()).collect();
    let words = words.join(" ");
    Some(match (operator, session) {
        ("", "") => words,
        ("", session) => format!("{words}, by {session}"),
        (operator, _) => format!("{words}, by {operator}"),
    })
}

/// The time of a record.
pub fn at(record: &Value) -> Moment {
    Moment::parse(text(record, "time")).unwrap_or_default()
}

/// A text of a record; empty if it has none of this name.
pub fn text<'r>(record: &'r Value, key: &str) -> &'r str {
    record.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A number of a record; 0 if it has none of this name.
pub fn number(record: &Value, key: &str) -> u64 {
    record.get(key).and_then(Value::as_u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_records_are_read_in_their_order_whatever_the_bound_cuts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let line = |seq: u64| format!("{}\n", json!({"seq": seq, "event": "x"}));
        std::fs::write(folder.path().join("audit.jsonl.1"), (1..=5).map(line).collect::<String>()).unwrap();
        std::fs::write(&path, (6..=9).map(line).collect::<String>()).unwrap();
        let bytes = line(1).len() as u64;
        for (bytes_max, first, is_all) in [
            (bytes, 9, false),
            (2 * bytes + 3, 8, false),
            (4 * bytes, 6, false),
            (6 * bytes + 1, 4, false),
            (1 << 20, 1, true),
        ] {
            let mut seen = Vec::new();
            let archive = Archive::open(&path).unwrap();
            let all = each_record(&archive, bytes_max, |record, _| seen.push(number(record, "seq"))).unwrap();
            assert_eq!((seen, all), ((first..=9).collect(), is_all), "{bytes_max}");
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_leaves_out_the_rest_of_its_file_and_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let line = |seq: u64| format!("{}\n", json!({"seq": seq, "event": "x"}));
        let long = format!("{}\n", "x".repeat(2 << 20));
        std::fs::write(folder.path().join("audit.jsonl.1"), [line(1), long, line(2)].concat()).unwrap();
        std::fs::write(&path, line(3)).unwrap();
        let mut seen = Vec::new();
        let archive = Archive::open(&path).unwrap();
        let read = each_record(&archive, SEARCHED_BYTES_MAX, |record, _| seen.push(number(record, "seq")));
        assert!(read.unwrap_err().to_string().contains("audit.jsonl.1"));
        assert_eq!(seen, [1, 3]);
    }

    #[test]
    fn details_are_one_line_and_say_who_decided_what() {
        for (record, line) in [
            (
                json!({"decision": "read", "subject": "a sha256:1", "session": "ab", "done": true}),
                "read a sha256:1, by ab",
            ),
            (json!({"decision": "stop", "subject": "7", "session": "ab", "operator": "ann"}), "stop 7, by ann"),
            (json!({"decision": "accept", "detail": "asked"}), "accept; asked"),
            (json!({"differences": "other bytes\nenv: A"}), "other bytes; env: A"),
        ] {
            assert_eq!(detail(&record), line);
        }
    }

    #[test]
    fn a_call_belongs_to_its_run_and_one_that_never_ended_is_told_apart() {
        let mut reading = Reading::of(1);
        let start = |seq: u64| json!({"seq": seq, "event": "call.started", "id": 1, "caller": "ann"});
        let mut take = |record: &Value, has_text| {
            let Taken { ended, cut, cut_run } = reading.take(record, has_text);
            let cut: Vec<u64> = cut.iter().map(|call| number(&call.started, "seq")).collect();
            (ended.map(|call| (number(&call.started, "seq"), call.has_text)), cut, cut_run.seq, reading.run.seq)
        };
        assert_eq!(take(&json!({"seq": 1, "event": "host.started"}), false), (None, vec![], 0, 1));
        assert_eq!(take(&start(2), false), (None, vec![], 0, 1));
        assert_eq!(take(&json!({"seq": 3, "event": "host.started"}), false), (None, vec![2], 1, 3));
        assert_eq!(take(&start(4), false), (None, vec![], 0, 3));
        assert_eq!(take(&json!({"seq": 5, "event": "call.denied", "id": 1}), true), (None, vec![], 0, 3));
        assert_eq!(take(&json!({"seq": 6, "event": "call.finished", "id": 1}), false), (Some((4, true)), vec![], 0, 3));
    }

    #[test]
    fn chains_share_what_a_view_reads_and_small_ones_are_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        for (name, bytes) in [("audit.jsonl", 1_000), ("audit.jsonl-2", 10), ("audit.jsonl-3", 500)] {
            std::fs::write(folder.path().join(name), format!("{}\n", "x".repeat(bytes - 1))).unwrap();
        }
        for (bytes_max, shares) in [
            (300, [(1, 145), (2, 10), (3, 145)]),
            (1_200, [(1, 690), (2, 10), (3, 500)]),
            (9_000, [(1, 1_000), (2, 10), (3, 500)]),
        ] {
            let chains = chains_to_read(&path, bytes_max).unwrap();
            assert_eq!(chains.iter().map(|chain| (chain.number, chain.bytes_max)).collect::<Vec<_>>(), shares);
        }
        assert!(chains_to_read(&folder.path().join("none"), 1).is_err());
    }

    #[test]
    fn a_run_has_the_number_of_its_chain_where_that_is_not_the_first() {
        for (text, run) in [("17", Run { chain: 1, seq: 17 }), ("3-17", Run { chain: 3, seq: 17 })] {
            assert_eq!((run.to_string().as_str(), text.parse::<Run>()), (text, Ok(run)));
        }
        for wrong in ["", "x", "-1", "2-", "now"] {
            assert!(wrong.parse::<Run>().is_err(), "{wrong}");
        }
    }
}
