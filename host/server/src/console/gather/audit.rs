//! The views of audit records: a search, one call from start to end, the chain, and exports. Must
//! not hold: how records are written.
//!
//! A search looks at the newest records, so that it takes a bounded time whatever the audit holds.
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hyper::body::Bytes;
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use toolcell_audit::filter::time;
use toolcell_audit::{Archive, ArchivedFile, Filter, Outcome};
use toolcell_console::bounds::ROWS;
use toolcell_console::model::{
    Audit, AuditQuery, AuditRow, CallLink, CallPage, CallRecord, CallSpan, CallUsage, ChainState, Moment, Unit,
};
use toolcell_policy::quantity::parse_millis;

use super::{Sources, THIS_RUN};
use crate::console::form::Fields;

/// Bytes of the newest records that a search reads: some sixty thousand calls, in less than half a
/// second. `toolcell audit show` reads all.
const SEARCHED_BYTES_MAX: u64 = 32 << 20;

/// Most calls without an end that a search keeps in mind. A host runs far fewer at once.
const STARTED_MAX: usize = 10_000;

/// Most records of one call that its page shows: each denial and question is one.
const CALL_RECORDS_MAX: usize = 200;

/// Bytes of a piece of an export.
const PIECE_BYTES: usize = 64 << 10;

/// The columns of CSV.
const COLUMNS: [&str; 10] =
    ["seq", "time", "event", "id", "tool", "caller", "component", "outcome", "duration_us", "detail"];

/// A search.
#[derive(Debug, Default)]
pub struct Search {
    query: AuditQuery,
    filter: Filter,
    before: Option<u64>,
}

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportForm {
    /// JSON Lines: the records as they are.
    JsonLines,
    /// Comma-separated values, by RFC 4180.
    Csv,
}

/// Runs of the host, and calls of the present one that have not ended, while records are read in
/// their order.
#[derive(Default)]
struct Reading {
    /// Number of the record that began the run; 0 if that is not among them.
    run: u64,
    started: BTreeMap<u64, Value>,
}

impl Search {
    /// The search that these fields mean. `Err` is one sentence, with the search as it was sent.
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
        Ok(Self { filter, before: fields.number("before"), query })
    }

    fn takes(&self, record: &Value, caller: &str, line: &[u8]) -> bool {
        let has = |text: &str| text.is_empty() || contains(line, text.as_bytes());
        self.filter.takes(record, Some(caller)) && has(&self.query.text)
    }
}

impl Sources {
    /// The view "Audit" of this search.
    pub fn audit(&self, search: Search, chain: ChainState) -> Audit {
        let mut view = Audit {
            outcomes: Outcome::ALL.iter().map(|outcome| outcome.name().to_owned()).collect(),
            is_older: search.before.is_some(),
            chain,
            file: self.sink.path().map(|path| path.display().to_string()),
            ..Audit::default()
        };
        let Some(path) = self.sink.path() else {
            view.query = search.query;
            return view;
        };
        let mut rows: VecDeque<(u64, AuditRow)> = VecDeque::new();
        let mut is_more = false;
        let mut add = |seq: u64, row: AuditRow| {
            rows.push_back((seq, row));
            if rows.len() > ROWS {
                rows.pop_front();
                is_more = true;
            }
        };
        let mut reading = Reading::default();
        let found = each_record(path, SEARCHED_BYTES_MAX, |record, line| {
            let seq = number(record, "seq");
            let ended = reading.take(record);
            if search.before.is_some_and(|before| seq >= before) {
                return;
            }
            let event = text(record, "event");
            if matches!(event, "call.started" | "call.denied" | "call.asked") {
                return;
            }
            let caller = ended.as_ref().map_or_else(|| text(record, "caller"), |started| text(started, "caller"));
            if search.takes(record, caller, line) {
                add(seq, row(record, caller, reading.run));
            }
        });
        // Calls that have not ended are the newest. They have no outcome; the first page has them.
        for started in reading.started.values().filter(|_| search.before.is_none()) {
            let line = started.to_string();
            if search.takes(started, text(started, "caller"), line.as_bytes()) {
                add(number(started, "seq"), row(started, text(started, "caller"), reading.run));
            }
        }
        match found {
            Ok(true) => {}
            Ok(false) => {
                let text = "Older records were not searched; `toolcell audit show` searches all, and exports have all.";
                view.remark = Some(text.to_owned());
            }
            Err(problem) => view.remark = Some(format!("The audit cannot be read: {problem}")),
        }
        view.older = rows.front().filter(|_| is_more).map(|(seq, _)| seq.to_string());
        let mut rows: Vec<_> = rows.into();
        rows.sort_by_key(|(seq, _)| std::cmp::Reverse(*seq));
        view.rows = rows.into_iter().map(|(_, row)| row).collect();
        view.query = search.query;
        view
    }

    /// The page of one call; `None` if it is not among the newest records.
    pub fn call(&self, id: &str) -> Option<CallPage> {
        let (run, call) = id.split_once('.')?;
        let call: u64 = call.parse().ok()?;
        let run: Option<u64> = if run == THIS_RUN { None } else { Some(run.parse().ok()?) };
        let mut reading = Reading::default();
        let mut records: Vec<(u64, Value)> = Vec::new();
        let read = each_record(self.sink.path()?, SEARCHED_BYTES_MAX, |record, _| {
            reading.take(record);
            let is_it = number(record, "id") == call && text(record, "event").starts_with("call.");
            if is_it && run.is_none_or(|run| run == reading.run) {
                // Of this run: what was found of an earlier one is another call.
                records.retain(|(run, _)| *run == reading.run);
                if records.len() < CALL_RECORDS_MAX {
                    records.push((reading.run, record.clone()));
                }
            }
        });
        read.ok()?;
        // A number of a run before this one is not of this process.
        let last = reading.run;
        records.retain(|(found, _)| run.is_some() || *found == last);
        let is_of_this_run = records.last().is_some_and(|(found, _)| *found == last);
        (!records.is_empty()).then(|| self.call_page((id, call), &records, is_of_this_run))
    }

    fn call_page(&self, (id, call): (&str, u64), records: &[(u64, Value)], is_of_this_run: bool) -> CallPage {
        let empty = Value::Null;
        let of =
            |events: &[&str]| records.iter().map(|(_, record)| record).find(|it| events.contains(&text(it, "event")));
        let start = of(&["call.started", "call.refused"]).unwrap_or(&empty);
        let end = of(&["call.finished", "call.refused"]).unwrap_or(start);
        let mut shown = row(end, text(start, "caller"), 0);
        shown.call = Some(CallLink { id: id.to_owned(), number: call });
        let facts = ["component", "component_digest", "policy_digest", "era", "revision", "request", "trace"];
        let facts = facts.iter().filter(|key| start.get(**key).is_some());
        let usage = [
            ("fuel", "fuel", Unit::Fuel),
            ("memory", "memory_peak_bytes", Unit::Bytes),
            ("deadline", "duration_us", Unit::Microseconds),
            ("log", "log_bytes", Unit::Bytes),
            ("output", "output_bytes", Unit::Bytes),
            ("egress", "egress_bytes", Unit::Bytes),
            ("ingress", "ingress_bytes", Unit::Bytes),
        ];
        let used = end.get("usage");
        let usage = usage.into_iter().filter_map(|(key, field, unit)| {
            let used = used?.get(field)?.as_u64()?;
            Some(CallUsage { key: key.to_owned(), unit, used, limit: None })
        });
        let asked = |record: &Value| text(record, "asked").to_owned();
        let number = self.activity.denials.list();
        let denied = records.iter().filter(|(_, record)| text(record, "event") == "call.denied");
        let groups = number.iter().filter(|group| {
            denied
                .clone()
                .any(|(_, record)| asked(record) == group.asked && text(record, "component") == group.component)
        });
        let recent = if is_of_this_run { self.activity.running.recent().find(call) } else { None };
        let spans = recent.iter().flat_map(|recent| &recent.parts).map(|part| CallSpan {
            name: part.name.clone(),
            start: part.start,
            took: part.took,
            depth: u8::from(part.is_request),
            failed: part.failed,
        });
        CallPage {
            call: shown,
            facts: facts.map(|key| ((*key).to_owned(), text(start, key).to_owned())).collect(),
            arguments: start.get("arguments").map(|arguments| match arguments {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }),
            records: records
                .iter()
                .map(|(_, record)| CallRecord {
                    at: at(record),
                    record: text(record, "event").to_owned(),
                    json: record.to_string(),
                })
                .collect(),
            denials: groups.map(|group| self.group(group)).collect(),
            usage: usage.collect(),
            spans: spans.collect(),
            log: recent.as_ref().map(|recent| recent.printed.clone()),
            ..CallPage::default()
        }
    }
}

/// Checks the chain of the audit at this path.
pub fn check_chain(path: &Path) -> ChainState {
    let archive = match Archive::open(path) {
        Ok(archive) => archive,
        Err(error) => return ChainState::Broken { reason: format!("The audit cannot be read: {error}.") },
    };
    match archive.verify() {
        Ok(summary) => ChainState::Whole { records: summary.records, head: summary.head, at: SystemTime::now().into() },
        Err((file, broken)) => {
            let (file, line, record) = (file.path().display(), broken.line, broken.record);
            let reason = format!("{file}, line {line}: the chain breaks at record {record}: {}.", broken.reason);
            ChainState::Broken { reason }
        }
    }
}

/// Sends all records that the search takes, piece by piece, until the reader goes.
pub fn export(path: &Path, search: &Search, form: ExportForm, pieces: &Sender<Bytes>) {
    let mut piece = Vec::new();
    if form == ExportForm::Csv {
        piece.extend_from_slice(COLUMNS.join(",").as_bytes());
        piece.extend_from_slice(b"\r\n");
    }
    let Ok(archive) = Archive::open(path) else { return };
    let mut callers: BTreeMap<u64, String> = BTreeMap::new();
    for file in archive.files() {
        let mut lines = file.lines();
        while let Ok(Some(line)) = lines.next_line() {
            let Ok(record) = serde_json::from_slice::<Value>(line) else { continue };
            let id = number(&record, "id");
            if text(&record, "event") == "call.started" {
                callers.insert(id, text(&record, "caller").to_owned());
                if callers.len() > STARTED_MAX {
                    callers.pop_first();
                }
            }
            let caller = callers.get(&id).map(String::as_str).filter(|_| id > 0).unwrap_or_default();
            if search.takes(&record, caller, line) {
                match form {
                    ExportForm::JsonLines => {
                        piece.extend_from_slice(line);
                        piece.push(b'\n');
                    }
                    ExportForm::Csv => piece.extend_from_slice(csv(&record, caller).as_bytes()),
                }
            }
            if text(&record, "event") == "call.finished" {
                callers.remove(&id);
            }
            if piece.len() >= PIECE_BYTES && pieces.blocking_send(std::mem::take(&mut piece).into()).is_err() {
                return;
            }
        }
    }
    let _ = pieces.blocking_send(piece.into());
}

/// A line of CSV.
fn csv(record: &Value, caller: &str) -> String {
    let duration = record.get("usage").and_then(|usage| usage.get("duration_us")).map(Value::to_string);
    let plain = |key: &str| match record.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let cells = COLUMNS.map(|column| match column {
        "caller" => cell(caller),
        "duration_us" => duration.clone().unwrap_or_default(),
        column => cell(&plain(column)),
    });
    format!("{}\r\n", cells.join(","))
}

/// A cell in quotes. A spreadsheet takes some beginnings for a formula: those get an apostrophe.
fn cell(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

/// Calls `each` for the newest records, oldest first. False if there are older ones.
fn each_record(path: &Path, bytes_max: u64, mut each: impl FnMut(&Value, &[u8])) -> std::io::Result<bool> {
    let archive = Archive::open(path)?;
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
    for (file, window) in windows.into_iter().rev() {
        let mut lines = file.last_lines(window)?;
        while let Ok(Some(line)) = lines.next_line() {
            if let Ok(record) = serde_json::from_slice::<Value>(line) {
                each(&record, line);
            }
        }
    }
    Ok(is_all)
}

impl Reading {
    /// Takes the next record. Gives the start of a call that it ends.
    fn take(&mut self, record: &Value) -> Option<Value> {
        let id = number(record, "id");
        match text(record, "event") {
            "host.started" => {
                self.run = number(record, "seq");
                self.started.clear();
                None
            }
            "call.started" => {
                self.started.insert(id, record.clone());
                if self.started.len() > STARTED_MAX {
                    self.started.pop_first();
                }
                None
            }
            "call.finished" => self.started.remove(&id),
            _ => None,
        }
    }
}

fn row(record: &Value, caller: &str, run: u64) -> AuditRow {
    let event = text(record, "event");
    let id = number(record, "id");
    let took = record.get("usage").and_then(|usage| usage.get("duration_us")).and_then(Value::as_u64);
    let details = ["detail", "summary", "cause", "differences", "reason", "decision", "name", "uri"];
    let detail: Vec<&str> = details.iter().map(|key| text(record, key)).filter(|text| !text.is_empty()).collect();
    AuditRow {
        at: at(record),
        record: event.to_owned(),
        call: event.starts_with("call.").then(|| CallLink { id: format!("{run}.{id}"), number: id }),
        tool: text(record, "tool").to_owned(),
        caller: caller.to_owned(),
        outcome: text(record, "outcome").to_owned(),
        took: took.map(Duration::from_micros),
        detail: detail.join("; "),
    }
}

fn at(record: &Value) -> Moment {
    Moment::parse(text(record, "time")).unwrap_or_default()
}

fn text<'r>(record: &'r Value, key: &str) -> &'r str {
    record.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn number(record: &Value, key: &str) -> u64 {
    record.get(key).and_then(Value::as_u64).unwrap_or_default()
}

fn contains(line: &[u8], text: &[u8]) -> bool {
    line.windows(text.len().max(1)).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cell_is_no_formula_and_no_two_cells() {
        let record = json!({"seq": 1, "event": "call.finished", "tool": "=1+1", "detail": "a,\"b\"\nc", "usage": {"duration_us": 5}});
        let expected = "\"1\",\"\",\"call.finished\",\"\",\"'=1+1\",\"'@x\",\"\",\"\",5,\"a,\"\"b\"\"\nc\"\r\n";
        assert_eq!(csv(&record, "@x"), expected);
    }

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
            let all = each_record(&path, bytes_max, |record, _| seen.push(number(record, "seq"))).unwrap();
            assert_eq!((seen, all), ((first..=9).collect(), is_all), "{bytes_max}");
        }
    }
}
