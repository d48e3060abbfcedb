//! Exports of the audit: all records that a search finds, unchanged or as CSV.
//!
//! Promise: others' words do not act on a terminal.
use std::collections::BTreeMap;
use std::io;

use hyper::body::Bytes;
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use toolcell_audit::Archive;
use toolcell_mcp::sanitize;

use super::audit::Search;
use super::records::{STARTED_MAX, detail, number, text, unreadable};

/// Bytes of a piece of an export.
const PIECE_BYTES: usize = 64 << 10;

/// The columns of CSV.
const COLUMNS: [&str; 10] =
    ["seq", "time", "event", "id", "tool", "caller", "component", "outcome", "duration_us", "detail"];

/// Characters at the start of a cell that a spreadsheet may take for a formula, in both widths, and
/// white space that it may skip.
const FORMULAS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportForm {
    /// JSON Lines: the unchanged records.
    JsonLines,
    /// Comma-separated values, by RFC 4180.
    Csv,
}

/// The callers of unfinished calls, while records are read in order.
#[derive(Default)]
struct CallersByNumber(BTreeMap<u64, String>);

impl CallersByNumber {
    /// Processes the next record. Returns its caller: its own, or that of its call; empty if there
    /// is none.
    fn take(&mut self, record: &Value) -> String {
        let id = number(record, "id");
        let own = text(record, "caller");
        match text(record, "event") {
            // //Call numbers restart with each run.
            "host.started" => self.0.clear(),
            "call.started" => {
                self.0.insert(id, own.to_owned());
                if self.0.len() > STARTED_MAX {
                    self.0.pop_first();
                }
            }
            "call.finished" => return self.0.remove(&id).unwrap_or_default(),
            _ => {}
        }
        let of_call = self.0.get(&id).filter(|_| own.is_empty() && id > 0);
        of_call.map_or(own, String::as_str).to_owned()
    }
}

/// Sends all records that the search finds, chain after chain and piece by piece, until the reader
/// disconnects. If a record cannot be read, an error is sent, and nothing after it.
pub fn export(archives: &[Archive], search: &Search, form: ExportForm, pieces: &Sender<io::Result<Bytes>>) {
    let sent = send(archives, search, form, pieces);
    if let Err(error) = sent {
        let _ = pieces.blocking_send(Err(error));
    }
}

fn send(archives: &[Archive], search: &Search, form: ExportForm, pieces: &Sender<io::Result<Bytes>>) -> io::Result<()> {
    let mut export = RecordsExport { search, form, pieces, piece: Vec::new() };
    if form == ExportForm::Csv {
        export.piece.extend_from_slice(COLUMNS.join(",").as_bytes());
        export.piece.extend_from_slice(b"\r\n");
    }
    for archive in archives {
        if !export.chain(archive)? {
            return Ok(());
        }
    }
    let _ = pieces.blocking_send(Ok(export.piece.into()));
    Ok(())
}

struct RecordsExport<'a> {
    search: &'a Search,
    form: ExportForm,
    pieces: &'a Sender<io::Result<Bytes>>,
    /// Bytes that are not sent yet.
    piece: Vec<u8>,
}

impl RecordsExport<'_> {
    /// Sends the records of one chain; false if the reader has disconnected.
    fn chain(&mut self, archive: &Archive) -> io::Result<bool> {
        let mut callers = CallersByNumber::default();
        for file in archive.files() {
            let mut lines = file.lines();
            while let Some(line) = lines.next_line().map_err(|error| unreadable(file, &error))? {
                // A search that finds little sends nothing for a long time.
                if self.pieces.is_closed() {
                    return Ok(false);
                }
                let Ok(record) = serde_json::from_slice::<Value>(line) else { continue };
                let caller = callers.take(&record);
                if self.search.has_text(line) && self.search.takes(&record, &caller) {
                    self.add(line, &record, &caller);
                }
                if self.piece.len() >= PIECE_BYTES {
                    let piece = std::mem::take(&mut self.piece);
                    if self.pieces.blocking_send(Ok(piece.into())).is_err() {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    fn add(&mut self, line: &[u8], record: &Value, caller: &str) {
        match self.form {
            ExportForm::JsonLines => {
                self.piece.extend_from_slice(line);
                self.piece.push(b'\n');
            }
            ExportForm::Csv => self.piece.extend_from_slice(csv(record, caller).as_bytes()),
        }
    }
}

/// A line of CSV.
fn csv(record: &Value, caller: &str) -> String {
    let duration = record.get("usage").and_then(|usage| usage.get("duration_us")).and_then(Value::as_u64);
    let plain = |key: &str| match record.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let cells = COLUMNS.map(|column| match column {
        "caller" => cell(caller),
        "duration_us" => duration.map(|micros| micros.to_string()).unwrap_or_default(),
        "detail" => cell(&detail(record)),
        column => cell(&plain(column)),
    });
    format!("{}\r\n", cells.join(","))
}

/// A cell in quotes, with escapes for misleading characters. A spreadsheet takes some beginnings
/// for a formula: those get an apostrophe.
fn cell(text: &str) -> String {
    let text = sanitize::escaped(text);
    let guard = if text.starts_with(FORMULAS) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operators::console::form::Fields;

    #[test]
    fn a_cell_is_no_formula_and_no_two_cells() {
        let record = json!({"seq": 1, "event": "call.finished", "tool": "=1+1", "detail": "a,\"b\"\nc", "usage": {"duration_us": 5}});
        let expected = "\"1\",\"\",\"call.finished\",\"\",\"'=1+1\",\"'@x\",\"\",\"\",5,\"a,\"\"b\"\"; c\"\r\n";
        assert_eq!(csv(&record, "@x"), expected);
        for begins in FORMULAS {
            let shown = begins.to_string().replace('\r', "\\u000d");
            let guard = if begins == '\r' { "" } else { "'" };
            assert_eq!(cell(&format!("{begins}1")), format!("\"{guard}{shown}1\""));
        }
        assert_eq!(cell("a\u{202e}b\u{1b}[31m"), "\"a\\u202eb\\u001b[31m\"");
        assert_eq!([cell("a=1"), cell(" =1"), cell("\"=1"), cell("")], ["\"a=1\"", "\" =1\"", "\"\"\"=1\"", "\"\""]);
    }

    #[test]
    fn each_record_has_its_own_caller_or_that_of_its_call() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let records = [
            json!({"event": "host.started"}),
            json!({"event": "call.started", "id": 1, "tool": "echo", "caller": "ann"}),
            json!({"event": "call.denied", "id": 1, "tool": "echo", "component": "c"}),
            json!({"event": "host.started"}),
            json!({"event": "call.finished", "id": 1, "tool": "echo", "outcome": "ok", "usage": {"duration_us": 7}}),
            json!({"event": "call.refused", "id": 2, "tool": "add", "caller": "tom", "component": "c", "outcome": "invalid_input", "detail": "- /a: x"}),
            json!({"event": "request.refused", "reason": "hidden_tool", "caller": "tom", "tool": "add", "count": 3}),
            json!({"event": "request.refused", "reason": "no_credential", "address": "127.0.0.0/24", "count": 1}),
        ];
        let lines = (1_u64..).zip(records).map(|(seq, mut record)| {
            record["seq"] = json!(seq);
            format!("{record}\n")
        });
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        let table = |fields: &str| {
            let search = Search::of(&Fields::of(fields.as_bytes())).unwrap();
            let (sender, mut pieces) = tokio::sync::mpsc::channel(4);
            export(&[Archive::open(&path).unwrap()], &search, ExportForm::Csv, &sender);
            drop(sender);
            let mut text = Vec::new();
            while let Ok(piece) = pieces.try_recv() {
                text.extend_from_slice(&piece.unwrap());
            }
            String::from_utf8(text).unwrap().lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        let tom = [
            r#""6","","call.refused","2","add","tom","c","invalid_input",,"'- /a: x""#,
            r#""7","","request.refused","","add","tom","","",,"hidden_tool; 3 times""#,
        ];
        let all = [
            r#""1","","host.started","","","","","",,"""#,
            r#""2","","call.started","1","echo","ann","","",,"""#,
            r#""3","","call.denied","1","echo","ann","c","",,"""#,
            r#""4","","host.started","","","","","",,"""#,
            r#""5","","call.finished","1","echo","","","ok",7,"""#,
            tom[0],
            tom[1],
            r#""8","","request.refused","","","","","",,"no_credential; 127.0.0.0/24; 1 time""#,
        ];
        assert_eq!(
            (table(""), table("caller=tom"), table("caller=ann")),
            (
                all.map(str::to_owned).to_vec(),
                tom.map(str::to_owned).to_vec(),
                all[1..3].iter().map(|row| (*row).to_owned()).collect()
            )
        );
    }

    #[test]
    fn an_export_that_cannot_go_on_ends_with_an_error_and_one_without_a_reader_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let begins = "{\"seq\":1,\"event\":\"host.started\"}\n";
        std::fs::write(&path, format!("{begins}{}\n{begins}", "x".repeat(2 << 20))).unwrap();
        let archives = [Archive::open(&path).unwrap()];
        let (sender, mut pieces) = tokio::sync::mpsc::channel(4);
        export(&archives, &Search::default(), ExportForm::JsonLines, &sender);
        let error = pieces.try_recv().unwrap().unwrap_err().to_string();
        assert!(error.contains("audit.jsonl"), "{error}");
        assert!(pieces.try_recv().is_err(), "nothing more");
        drop(pieces);
        export(&archives, &Search::default(), ExportForm::JsonLines, &sender);
    }
}
