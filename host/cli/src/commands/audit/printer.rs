//! Prints records to stdout: filters them, joins start and end of a call, and draws them or passes
//! them through. Must not hold: their source.
use std::collections::BTreeMap;
use std::io::{self, BufWriter, StdoutLock, Write as _};

use serde_json::Value;
use toolcell_audit::Filter;
use toolcell_policy::Style;

use super::loads::Loads;
use super::row::{self, StartedCall};
use crate::terminal;

/// Most started calls that wait for their end. A host runs far fewer at once; beyond this, the
/// oldest are dropped.
const STARTED_MAX: usize = 10_000;

/// Prints records.
pub struct Printer {
    filter: Filter,
    is_json: bool,
    style: Style,
    started: BTreeMap<u64, StartedCall>,
    loads: Loads,
    headed: bool,
    unreadable: u64,
    out: BufWriter<StdoutLock<'static>>,
}

impl Printer {
    pub fn new(filter: Filter, is_json: bool) -> Self {
        let (style, out) = (terminal::stdout_style(), BufWriter::new(io::stdout().lock()));
        let (started, loads) = (BTreeMap::new(), Loads::default());
        Self { filter, is_json, style, started, loads, headed: false, unreadable: 0, out }
    }

    /// Its filter.
    pub const fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Takes the next record.
    pub fn line(&mut self, line: &[u8]) -> io::Result<()> {
        let Ok(record) = serde_json::from_slice::<Value>(line) else {
            self.unreadable += 1;
            return Ok(());
        };
        if !self.is_json {
            return self.row(&record);
        }
        let (id, event) = (id(&record), row::text(&record, "event"));
        if event == "host.started" {
            // Numbers of calls begin anew.
            self.started.clear();
        }
        let takes = self.takes(&record, id);
        match event.as_str() {
            "call.started" => self.start(id, &record, takes),
            "call.finished" => drop(self.started.remove(&id)),
            _ => {}
        }
        if takes {
            self.out.write_all(line)?;
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn takes(&self, record: &Value, id: u64) -> bool {
        // A number says which call a record belongs to; others have none.
        let caller = self.started.get(&id).map(|started| started.caller.as_str());
        self.filter.takes(record, caller)
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.loaded()?;
        self.out.flush()
    }

    /// Prints calls without an end; returns the number of lines that are no records.
    pub fn end(mut self) -> io::Result<u64> {
        self.loaded()?;
        if !self.is_json {
            self.unfinished()?;
        }
        self.out.flush()?;
        Ok(self.unreadable)
    }

    fn row(&mut self, record: &Value) -> io::Result<()> {
        let id = id(record);
        let takes = self.takes(record, id);
        let event = record.get("event").and_then(Value::as_str).unwrap_or_default();
        if event == "component.loaded" {
            if takes && !self.filter.is_about_calls() {
                self.loads.add(record);
            }
            return Ok(());
        }
        self.loaded()?;
        let row = match record.get("event").and_then(Value::as_str).unwrap_or_default() {
            "call.started" => {
                // Its end may pass the filter though its start does not.
                self.start(id, record, takes);
                return Ok(());
            }
            "call.finished" => {
                let started = self.started.remove(&id);
                takes.then(|| row::finished(record, started.as_ref(), self.style))
            }
            "call.refused" => takes.then(|| row::refused(record, self.style)),
            "call.denied" => {
                let caller = self.started.get(&id).map_or("", |started| &started.caller);
                takes.then(|| row::denied(record, caller, self.style))
            }
            "request.refused" => takes.then(|| row::refused_requests(record, self.style)),
            event => {
                if event == "host.started" {
                    self.unfinished()?;
                }
                (takes && !self.filter.is_about_calls()).then(|| row::other(record, self.style))
            }
        };
        row.map_or(Ok(()), |row| self.print(&row))
    }

    fn start(&mut self, id: u64, record: &Value, takes: bool) {
        let arguments_bytes = record.get("arguments_bytes").and_then(Value::as_u64).unwrap_or_default();
        let [time, tool, caller] = ["time", "tool", "caller"].map(|key| row::text(record, key));
        self.started.insert(id, StartedCall { time, tool, caller, arguments_bytes, is_asked_for: takes });
        if self.started.len() > STARTED_MAX {
            self.started.pop_first();
        }
    }

    /// Prints the components that were loaded since the last other record.
    fn loaded(&mut self) -> io::Result<()> {
        for row in self.loads.rows(self.style) {
            self.print(&row)?;
        }
        Ok(())
    }

    /// Prints calls that started and did not end.
    fn unfinished(&mut self) -> io::Result<()> {
        for (id, started) in std::mem::take(&mut self.started) {
            if started.is_asked_for {
                self.print(&row::unfinished(id, &started, self.style))?;
            }
        }
        Ok(())
    }

    fn print(&mut self, row: &str) -> io::Result<()> {
        if !std::mem::replace(&mut self.headed, true) {
            self.out.write_all(row::heading(self.style).as_bytes())?;
        }
        self.out.write_all(row.as_bytes())
    }
}

/// The number of the call that a record belongs to; no call has 0.
fn id(record: &Value) -> u64 {
    record.get("id").and_then(Value::as_u64).unwrap_or_default()
}
