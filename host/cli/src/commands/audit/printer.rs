//! Prints records of all chains to stdout: filters them, joins start and end of a call, and formats
//! them or prints them unchanged.
use std::collections::BTreeMap;
use std::io::{self, BufWriter, StdoutLock, Write as _};

use serde_json::Value;
use toolcell_audit::Filter;
use toolcell_policy::Style;

use super::loads::Loads;
use super::row::{self, StartedRow};
use crate::terminal;

/// Started calls that wait for their end. A host runs far fewer at once; beyond this, the oldest
/// are dropped.
const STARTED_MAX: usize = 10_000;

pub struct Printer {
    filter: Filter,
    is_json: bool,
    style: Style,
    chains: BTreeMap<u32, PrintedChain>,
    headed: bool,
    out: BufWriter<StdoutLock<'static>>,
}

/// State of one chain.
#[derive(Default)]
struct PrintedChain {
    started: BTreeMap<u64, StartedRow>,
    loads: Loads,
    /// Lines that are not records.
    unreadable: u64,
}

impl Printer {
    pub fn new(filter: Filter, is_json: bool) -> Self {
        let style = terminal::stdout_style();
        let out = BufWriter::new(io::stdout().lock());
        Self { filter, is_json, style, chains: BTreeMap::new(), headed: false, out }
    }

    /// Handles the next record of a chain.
    pub fn line(&mut self, chain: u32, line: &[u8]) -> io::Result<()> {
        let Ok(record) = serde_json::from_slice::<Value>(line) else {
            self.of(chain).unreadable += 1;
            return Ok(());
        };
        if !self.is_json {
            return self.row(chain, &record);
        }
        let id = id(&record);
        let event = row::text(&record, "event");
        if event == "host.started" {
            // Call numbers start again.
            self.of(chain).started.clear();
        }
        let takes = self.takes(chain, &record, id);
        match event.as_str() {
            "call.started" => self.of(chain).start(id, &record, takes),
            "call.finished" => drop(self.of(chain).started.remove(&id)),
            _ => {}
        }
        if takes {
            self.out.write_all(line)?;
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn of(&mut self, chain: u32) -> &mut PrintedChain {
        self.chains.entry(chain).or_default()
    }

    fn takes(&self, chain: u32, record: &Value, id: u64) -> bool {
        // Records of a call have its number; others have none.
        let started = self.chains.get(&chain).and_then(|chain| chain.started.get(&id));
        self.filter.takes(record, started.map(|started| started.caller.as_str()))
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.loaded()?;
        self.out.flush()
    }

    /// Prints calls without an end; returns the number of lines that are not records, by chain.
    pub fn end(mut self) -> io::Result<BTreeMap<u32, u64>> {
        self.loaded()?;
        if !self.is_json {
            let chains: Vec<u32> = self.chains.keys().copied().collect();
            chains.into_iter().try_for_each(|chain| self.unfinished(chain))?;
        }
        self.out.flush()?;
        Ok(self.chains.iter().map(|(number, chain)| (*number, chain.unreadable)).collect())
    }

    fn row(&mut self, chain: u32, record: &Value) -> io::Result<()> {
        let id = id(record);
        let takes = self.takes(chain, record, id);
        let event = record.get("event").and_then(Value::as_str).unwrap_or_default();
        if event == "component.loaded" {
            if takes && !self.filter.is_about_calls() {
                self.of(chain).loads.add(record);
            }
            return Ok(());
        }
        self.loaded()?;
        let row = match record.get("event").and_then(Value::as_str).unwrap_or_default() {
            "call.started" => {
                // Its end may pass the filter although its start does not.
                self.of(chain).start(id, record, takes);
                return Ok(());
            }
            "call.finished" => {
                let started = self.of(chain).started.remove(&id);
                takes.then(|| row::finished(record, started.as_ref(), self.style))
            }
            "call.refused" => takes.then(|| row::refused(record, self.style)),
            "call.denied" => {
                let started = self.chains.get(&chain).and_then(|chain| chain.started.get(&id));
                let caller = started.map_or("", |started| &started.caller);
                takes.then(|| row::denied(record, caller, self.style))
            }
            "request.refused" => takes.then(|| row::refused_requests(record, self.style)),
            event => {
                if event == "host.started" {
                    self.unfinished(chain)?;
                }
                (takes && !self.filter.is_about_calls()).then(|| row::other(record, self.style))
            }
        };
        row.map_or(Ok(()), |row| self.print(&row))
    }

    /// Prints the components that were loaded since the last other record.
    fn loaded(&mut self) -> io::Result<()> {
        let style = self.style;
        let rows: Vec<String> = self.chains.values_mut().flat_map(|chain| chain.loads.rows(style)).collect();
        rows.iter().try_for_each(|row| self.print(row))
    }

    /// Prints calls of a chain that started and did not end.
    fn unfinished(&mut self, chain: u32) -> io::Result<()> {
        for (id, started) in std::mem::take(&mut self.of(chain).started) {
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

impl PrintedChain {
    fn start(&mut self, id: u64, record: &Value, takes: bool) {
        let arguments_bytes = record.get("arguments_bytes").and_then(Value::as_u64).unwrap_or_default();
        let [time, tool, caller] = ["time", "tool", "caller"].map(|key| row::text(record, key));
        self.started.insert(id, StartedRow { time, tool, caller, arguments_bytes, is_asked_for: takes });
        if self.started.len() > STARTED_MAX {
            self.started.pop_first();
        }
    }
}

/// The number of the call that a record belongs to; no call has 0.
fn id(record: &Value) -> u64 {
    record.get("id").and_then(Value::as_u64).unwrap_or_default()
}
