//! The view of audit records: a search, and the chain.
//!
//! A search only covers the newest records, so its time is bounded.
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::SystemTime;

use serde_json::Value;
use toolcell_audit::filter::time;
use toolcell_audit::{Filter, Outcome};
use toolcell_console::bounds::ROWS;
use toolcell_console::model::{Audit, AuditQuery, AuditRow, ChainState};
use toolcell_policy::quantity::parse_millis;

use super::Sources;
use super::records::{
    ChainToRead, OpenCall, Reading, Run, SEARCHED_BYTES_MAX, caller, chains_to_read, each_record, number, row, text,
};
use crate::operators::console::form::Fields;

/// Rows of unfinished calls on the first page. The other half is for other records.
const OPEN_ROWS_MAX: usize = ROWS / 2;

/// The outcome of a running call.
const RUNNING: &str = "it has not ended";

/// The outcome of a call without an end in the audit.
const CUT: &str = "the host ended before it";

#[derive(Debug, Default)]
pub struct Search {
    query: AuditQuery,
    filter: Filter,
    before: Option<RecordPlace>,
}

/// The place of a record among those of all chains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RecordPlace {
    /// The digits of its time.
    time: String,
    chain: u32,
    seq: u64,
}

/// The newest rows that a search found, by the places of their records.
#[derive(Default)]
struct FoundRows {
    rows: BTreeMap<RecordPlace, AuditRow>,
    is_more: bool,
}

/// Findings of a scan of the chains.
#[derive(Default)]
struct ChainScan {
    found: FoundRows,
    /// Running calls, by the places of their starts.
    running: BTreeMap<RecordPlace, AuditRow>,
}

impl RecordPlace {
    fn of(record: &Value, chain: u32) -> Self {
        let time = text(record, "time").chars().filter(char::is_ascii_digit).collect();
        Self { time, chain, seq: number(record, "seq") }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let time = parts.next().filter(|time| time.bytes().all(|byte| byte.is_ascii_digit()))?;
        Some(Self { time: time.to_owned(), chain: parts.next()?.parse().ok()?, seq: parts.next()?.parse().ok()? })
    }
}

impl fmt::Display for RecordPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, chain, seq } = self;
        write!(f, "{time}-{chain}-{seq}")
    }
}

impl Search {
    /// The search in these fields. `Err` is one sentence, with the search as it was sent.
    pub fn of(fields: &Fields) -> Result<Self, Box<(AuditQuery, String)>> {
        let text = |name: &str| fields.get(name).trim().to_owned();
        let query = AuditQuery {
            tool: text("tool"),
            caller: text("caller"),
            outcome: text("outcome"),
            since: text("since"),
            until: text("until"),
            text: text("text"),
        };
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let bound = |text: &str| {
            let read = |text: &String| time(text, SystemTime::now(), |text| parse_millis(text).ok());
            given(text).as_ref().map(read).transpose()
        };
        let (since, until) = match (bound(&query.since), bound(&query.until)) {
            (Ok(since), Ok(until)) => (since, until),
            (Err(problem), _) | (_, Err(problem)) => return Err(Box::new((query, problem))),
        };
        let [caller, tool, outcome] = [&query.caller, &query.tool, &query.outcome].map(|text| given(text));
        let filter = Filter { caller, tool, outcome, since, until, ..Filter::default() };
        Ok(Self { filter, before: RecordPlace::parse(fields.get("before")), query })
    }

    pub fn has_text(&self, line: &[u8]) -> bool {
        let wanted = self.query.text.as_str();
        wanted.is_empty() || std::str::from_utf8(line).is_ok_and(|line| line.contains(&*as_json(wanted)))
    }

    /// True if this record, of a call by this caller, fits everything but the text.
    pub fn takes(&self, record: &Value, caller: &str) -> bool {
        self.filter.takes(record, Some(caller))
    }

    /// The row of an unfinished call, if it fits the search.
    fn open_row(&self, call: &OpenCall, run: Run, detail: &str) -> Option<(RecordPlace, AuditRow)> {
        let caller = text(&call.started, "caller");
        let is_it = call.has_text && self.takes(&call.started, caller);
        let row = || AuditRow { detail: detail.to_owned(), ..row(&call.started, caller, run) };
        is_it.then(|| (RecordPlace::of(&call.started, run.chain), row()))
    }

    fn is_on_this_page(&self, place: &RecordPlace) -> bool {
        self.before.as_ref().is_none_or(|before| place < before)
    }
}

/// A text as inside JSON: quotes and backslashes are escaped.
fn as_json(text: &str) -> Cow<'_, str> {
    if !text.contains(['"', '\\']) {
        return text.into();
    }
    let quoted = Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default().to_owned().into()
}

impl FoundRows {
    fn add(&mut self, place: RecordPlace, row: AuditRow) {
        self.rows.insert(place, row);
        self.keep(ROWS);
    }

    /// Drops all but this many of the newest.
    fn keep(&mut self, rows: usize) {
        while self.rows.len() > rows {
            self.rows.pop_first();
            self.is_more = true;
        }
    }
}

impl Sources {
    /// The view "Audit" of this search.
    pub fn audit(&self, search: Search, chain: ChainState) -> Audit {
        let mut view = Audit {
            outcomes: Outcome::ALL.iter().map(|outcome| outcome.name().to_owned()).collect(),
            is_older: search.before.is_some(),
            chain,
            file: self.services.sink.audit().map(|path| path.display().to_string()),
            ..Audit::default()
        };
        if let Some(audit) = self.services.sink.audit() {
            scan(audit, &search, &mut view, |path| toolcell_audit::is_written(path).unwrap_or(false));
        }
        view.query = search.query;
        view
    }
}

/// Searches all chains of the audit at this path. `is_written`: a process writes this chain now, so
/// its unfinished calls are running.
fn scan(audit: &Path, search: &Search, view: &mut Audit, is_written: impl Fn(&Path) -> bool) {
    let mut scan = ChainScan::default();
    let read = chains_to_read(audit, SEARCHED_BYTES_MAX).and_then(|chains| {
        let mut read = Ok(true);
        for chain in &chains {
            let of_chain = scan.scan(chain, search, is_written(&chain.path));
            read = read.and_then(|is_all| of_chain.map(|is_all_of_chain| is_all && is_all_of_chain));
        }
        read
    });
    let ChainScan { mut found, running } = scan;
    // Running calls come first, on the first page.
    let mut open: Vec<AuditRow> = running.into_values().rev().filter(|_| search.before.is_none()).collect();
    let left_out = open.len().saturating_sub(OPEN_ROWS_MAX);
    open.truncate(OPEN_ROWS_MAX);
    found.keep(ROWS - open.len());
    view.older = found.rows.first_key_value().filter(|_| found.is_more).map(|(place, _)| place.to_string());
    view.rows = open.into_iter().chain(found.rows.into_values().rev()).collect();
    view.remark = remark(read, left_out);
}

impl ChainScan {
    /// Searches one chain. False if it has older records than are read.
    fn scan(&mut self, chain: &ChainToRead, search: &Search, is_written: bool) -> std::io::Result<bool> {
        let found = &mut self.found;
        let mut reading = Reading::of(chain.number);
        let read = each_record(&chain.archive, chain.bytes_max, |record, line| {
            let has_text = search.has_text(line);
            let taken = reading.take(record, has_text);
            let cut = taken.cut.iter().filter_map(|call| search.open_row(call, taken.cut_run, CUT));
            cut.filter(|(place, _)| search.is_on_this_page(place)).for_each(|(place, row)| found.add(place, row));
            let place = RecordPlace::of(record, chain.number);
            let is_part =
                matches!(text(record, "event"), "call.started" | "call.resumed" | "call.denied" | "call.asked");
            if is_part || !search.is_on_this_page(&place) {
                return;
            }
            let has_text = has_text || taken.ended.as_ref().is_some_and(|call| call.has_text);
            let caller = caller(record, taken.ended.as_ref().map(|call| &call.started));
            if has_text && search.takes(record, caller) {
                found.add(place, row(record, caller, reading.run));
            }
        });
        let run = reading.run;
        for call in reading.into_open() {
            let said = if is_written { RUNNING } else { CUT };
            match search.open_row(&call, run, said) {
                Some((place, row)) if is_written => drop(self.running.insert(place, row)),
                Some((place, row)) if search.is_on_this_page(&place) => found.add(place, row),
                _ => {}
            }
        }
        read
    }
}

/// One sentence if the search did not cover all records, or does not show them.
fn remark(read: std::io::Result<bool>, left_out: usize) -> Option<String> {
    let running = (left_out > 0).then(|| format!("{left_out} more calls that have not ended are not shown."));
    let read = match read {
        Ok(true) => None,
        Ok(false) => {
            let text = "Older records were not searched; `toolcell audit show` searches all, and exports have all.";
            Some(text.to_owned())
        }
        Err(problem) => Some(format!("Not all of the audit can be read: {problem}.")),
    };
    let all: Vec<String> = running.into_iter().chain(read).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// Checks all chains of this audit. Keeps the hash of the chain `own`.
pub fn check_chain(audit: &Path, own: &Path) -> ChainState {
    let at = SystemTime::now().into();
    let chains = match chains_to_read(audit, 0) {
        Ok(chains) => chains,
        Err(error) => return ChainState::Broken { reason: format!("The audit cannot be read: {error}."), at },
    };
    let mut records = 0_u64;
    let mut head = String::new();
    for chain in &chains {
        match chain.archive.verify() {
            Ok(summary) => {
                records = records.saturating_add(summary.records);
                if chain.path == own || head.is_empty() {
                    head = summary.head;
                }
            }
            Err((file, broken)) => {
                let file = file.path().display();
                let line = broken.line;
                let record = broken.record;
                let reason = format!("{file}, line {line}: the chain breaks at record {record}: {}.", broken.reason);
                return ChainState::Broken { reason, at };
            }
        }
    }
    ChainState::Whole { records, head, at }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::json;
    use toolcell_console::model::Frame;

    use super::*;

    /// An audit with these records, which are numbered from 1 and a second apart.
    fn audit(folder: &Path, records: impl IntoIterator<Item = Value>) -> std::path::PathBuf {
        chain(folder, "audit.jsonl", records)
    }

    fn chain(folder: &Path, name: &str, records: impl IntoIterator<Item = Value>) -> std::path::PathBuf {
        let mut text = String::new();
        for (seq, mut record) in (1_u64..).zip(records) {
            record["seq"] = json!(seq);
            record["time"] =
                json!(format!("2026-01-01T{:02}:{:02}:{:02}.000000Z", seq / 3_600, seq / 60 % 60, seq % 60));
            writeln!(text, "{record}").unwrap();
        }
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn start(id: u64, tool: &str, caller: &str) -> Value {
        json!({"event": "call.started", "id": id, "tool": tool, "caller": caller, "request": "r-\"1\""})
    }

    fn end(id: u64, tool: &str, outcome: &str) -> Value {
        json!({"event": "call.finished", "id": id, "tool": tool, "outcome": outcome})
    }

    /// The rows of a search: record and number of the call, or the record alone.
    fn rows(path: &Path, fields: &str) -> (Vec<String>, Option<String>) {
        let search = Search::of(&Fields::of(fields.as_bytes())).unwrap();
        let mut view = Audit::default();
        scan(path, &search, &mut view, |_| true);
        let name = |row: AuditRow| match row.call {
            Some(call) => format!("{} {}", row.record, call.id),
            None => row.record,
        };
        (view.rows.into_iter().map(name).collect(), view.older)
    }

    #[test]
    fn what_counts_as_an_error_is_shown_as_one() {
        for outcome in Outcome::ALL {
            let rows = vec![AuditRow { outcome: outcome.name().to_owned(), ..AuditRow::default() }];
            let page = toolcell_console::page::audit(&Frame::default(), &Audit { rows, ..Audit::default() });
            assert_eq!(page.contains("class=\"chip bad\""), outcome.is_error(), "{outcome:?}: {page}");
        }
    }

    #[test]
    fn each_field_of_a_search_chooses_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = audit(
            folder.path(),
            [
                json!({"event": "host.started"}),
                start(1, "echo", "ann"),
                end(1, "echo", "ok"),
                start(2, "fetch", "tom"),
                json!({"event": "host.started"}),
                start(1, "fetch", "ann"),
                json!({"event": "call.denied", "id": 1, "tool": "fetch", "asked": "GET https://x.example/"}),
                end(1, "fetch", "trap"),
                json!({"event": "call.refused", "id": 2, "tool": "echo", "caller": "tom", "outcome": "invalid_input"}),
                json!({"event": "request.refused", "caller": "tom", "reason": "hidden_tool"}),
                start(3, "slow", "ann"),
            ],
        );
        let [running, refused, refused_call] = ["call.started 5.3", "request.refused", "call.refused 5.2"];
        let [trapped, second, cut, ok] = ["call.finished 5.1", "host.started", "call.started 1.2", "call.finished 1.1"];
        for (fields, expected) in [
            ("", &[running, refused, refused_call, trapped, second, cut, ok, "host.started"][..]),
            ("tool=echo", &[refused_call, ok]),
            ("tool=slow", &[running]),
            ("caller=tom", &[refused, refused_call, cut]),
            ("caller=ann", &[running, trapped, ok]),
            ("outcome=trap", &[trapped]),
            ("since=2026-01-01T00:00:09", &[running, refused, refused_call]),
            ("until=2026-01-01T00:00:04", &[cut, ok, "host.started"]),
            ("text=x.example", &[trapped]),
            ("text=r-%221%22", &[running, trapped, cut, ok]),
            ("text=nowhere", &[]),
            ("tool=fetch&caller=ann&outcome=trap&since=2026-01-01&until=2026-01-02&text=GET", &[trapped]),
        ] {
            assert_eq!(rows(&path, fields), (expected.iter().map(|row| (*row).to_owned()).collect(), None), "{fields}");
        }
    }

    #[test]
    fn pages_have_each_row_once_and_running_calls_are_on_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let calls = ROWS as u64 + 50;
        let running = 150;
        let runs =
            std::iter::once(json!({"event": "host.started"})).chain((1..=running).map(|id| start(id, "slow", "a")));
        let ended = (1..=calls).map(|id| json!({"event": "call.refused", "id": running + id, "tool": "echo"}));
        let path = audit(folder.path(), runs.chain(ended));
        let (first, older) = rows(&path, "");
        assert_eq!(first.len(), ROWS);
        assert_eq!((first[0].as_str(), first[99].as_str()), ("call.started 1.150", "call.started 1.51"));
        let mut seen: Vec<String> = first[OPEN_ROWS_MAX..].to_vec();
        let mut next = older;
        while let Some(before) = next {
            let (more, older) = rows(&path, &format!("before={before}"));
            seen.extend(more);
            next = older;
        }
        let refused = (running + 1..=running + calls).rev().map(|id| format!("call.refused 1.{id}"));
        assert_eq!(seen, refused.chain(["host.started".to_owned()]).collect::<Vec<_>>());
        let mut view = Audit::default();
        scan(&path, &Search::default(), &mut view, |_| true);
        assert_eq!(view.remark.as_deref(), Some("50 more calls that have not ended are not shown."));
        assert_eq!(view.rows[0].detail, RUNNING);
    }

    #[test]
    fn records_of_all_processes_are_one_list_by_their_times() {
        let folder = tempfile::tempdir().unwrap();
        let started = || json!({"event": "host.started"});
        let path = audit(folder.path(), [started(), start(1, "echo", "ann"), end(1, "echo", "ok")]);
        let calls = [started(), start(1, "fetch", "tom"), end(1, "fetch", "trap"), start(2, "slow", "tom")];
        chain(folder.path(), "audit.jsonl-3", calls);
        let expected =
            ["call.started 3-1.2", "call.finished 3-1.1", "call.finished 1.1", "host.started", "host.started"];
        assert_eq!(rows(&path, "").0, expected);
        assert_eq!(rows(&path, "tool=fetch").0, ["call.finished 3-1.1"]);
        let before = RecordPlace { time: "20260101000003000000".to_owned(), chain: 3, seq: 3 };
        assert_eq!(rows(&path, &format!("before={before}")).0, expected[2..]);
        let mut view = Audit::default();
        scan(&path, &Search::default(), &mut view, |path| path.ends_with("audit.jsonl"));
        assert_eq!(view.rows[0].detail, CUT, "its process has ended");
    }
}
