//! `toolcell usage`: what each caller used on each day, from the audit.
use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolcell_audit::{Archive, Lines, Outcome};
use toolcell_mcp::sanitize;

use super::row::text;
use super::{each_chain, filter, named, report_unreadable, unreadable};
use crate::args::UsageArgs;
use crate::exit::Exit;
use crate::terminal::{self, bold};

/// Rows of one table: a thousand callers on a hundred days. Each takes some 200 bytes.
const ROWS_MAX: usize = 100_000;

/// Started calls that wait for their end. A host runs far fewer at once; beyond this, the oldest
/// are dropped.
const STARTED_MAX: usize = 10_000;

/// Characters of a time that are its day.
const DAY_CHARS: usize = "2026-01-12".len();

/// Characters of a caller that are shown; with `--json` all of them are.
const CALLER_CHARS: usize = 40;

/// A day of one caller.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CallerDay {
    day: String,
    caller: String,
}

/// What a caller used on a day.
#[derive(Default)]
struct DayUse {
    /// Calls that ended, those that tools made included.
    calls: u64,
    /// Those of them that gave no result.
    failed: u64,
    /// Calls that were refused before they began.
    refused: u64,
    fuel: u64,
    /// Arguments and results.
    message_bytes: u64,
    /// Requests of guests and their responses.
    network_bytes: u64,
}

/// The uses that are counted.
struct Ledger<'a> {
    args: &'a UsageArgs,
    since: Option<String>,
    days: BTreeMap<CallerDay, DayUse>,
    /// Records that are in no row, because there are too many.
    beyond: u64,
}

/// A call without its end.
struct StartedCall {
    caller: String,
    arguments_bytes: u64,
}

/// Prints the table.
pub fn run(args: &UsageArgs) -> anyhow::Result<Exit> {
    let since = filter::since(args.since.as_deref())?;
    let file = named(&args.file)?;
    let mut ledger = Ledger { args, since, days: BTreeMap::new(), beyond: 0 };
    let exit = each_chain(&file, |chain, archive| match ledger.read(&archive) {
        Ok(lines) => Ok(report_unreadable(&chain.path, lines)),
        Err(error) => unreadable(&chain.path, &error).report(false),
    })?;
    terminal::print(&if args.json { format!("{:#}\n", ledger.json()) } else { ledger.table() })?;
    if ledger.beyond > 0 {
        let message = format!("more than {ROWS_MAX} rows: {} records are in none of them", ledger.beyond);
        terminal::error(&message, Some("narrow them with --since or --caller"));
        return Ok(exit.or(Exit::AtFault));
    }
    Ok(exit)
}

impl Ledger<'_> {
    /// Adds the calls of one chain. Returns the number of lines that are not records.
    fn read(&mut self, archive: &Archive) -> std::io::Result<u64> {
        let mut started: BTreeMap<u64, StartedCall> = BTreeMap::new();
        let mut unreadable = 0;
        for file in archive.files() {
            let mut lines: Lines<_> = file.lines();
            while let Some(line) = lines.next_line().map_err(std::io::Error::other)? {
                match serde_json::from_slice::<Value>(line) {
                    Ok(record) => self.record(&record, &mut started),
                    Err(_) => unreadable += 1,
                }
            }
        }
        Ok(unreadable)
    }

    fn record(&mut self, record: &Value, started: &mut BTreeMap<u64, StartedCall>) {
        let number = |pointer: &str| record.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
        let id = number("/id");
        match text(record, "event").as_str() {
            // Call numbers start again.
            "host.started" => started.clear(),
            "call.started" => {
                let caller = text(record, "caller");
                started.insert(id, StartedCall { caller, arguments_bytes: number("/arguments_bytes") });
                if started.len() > STARTED_MAX {
                    started.pop_first();
                }
            }
            "call.finished" => {
                let Some(call) = started.remove(&id) else { return };
                let outcome = text(record, "outcome");
                let failed = Outcome::ALL.iter().any(|known| known.name() == outcome && known.is_error());
                let Some(of) = self.day_of(record, call.caller) else { return };
                let Some(used) = self.used(of) else { return };
                used.calls += 1;
                used.failed += u64::from(failed);
                used.fuel = used.fuel.saturating_add(number("/usage/fuel"));
                let messages = call.arguments_bytes.saturating_add(number("/usage/output_bytes"));
                used.message_bytes = used.message_bytes.saturating_add(messages);
                let network = number("/usage/egress_bytes").saturating_add(number("/usage/ingress_bytes"));
                used.network_bytes = used.network_bytes.saturating_add(network);
            }
            "call.refused" => {
                let Some(of) = self.day_of(record, text(record, "caller")) else { return };
                self.used(of).into_iter().for_each(|used| used.refused += 1);
            }
            _ => {}
        }
    }

    /// The day of a record, and its caller, if they are asked for.
    fn day_of(&self, record: &Value, caller: String) -> Option<CallerDay> {
        let time = text(record, "time");
        let is_asked_for = self.since.as_ref().is_none_or(|since| time >= *since)
            && self.args.caller.as_ref().is_none_or(|wanted| caller == *wanted);
        let day = time.get(..DAY_CHARS).filter(|_| is_asked_for)?.to_owned();
        Some(CallerDay { day, caller })
    }

    fn used(&mut self, of: CallerDay) -> Option<&mut DayUse> {
        if self.days.len() >= ROWS_MAX && !self.days.contains_key(&of) {
            self.beyond += 1;
            return None;
        }
        Some(self.days.entry(of).or_default())
    }

    fn json(&self) -> Value {
        let row = |(of, used): (&CallerDay, &DayUse)| {
            json!({
                "day": of.day, "caller": of.caller, "calls": used.calls, "failed": used.failed,
                "refused": used.refused, "fuel": used.fuel, "message_bytes": used.message_bytes,
                "network_bytes": used.network_bytes,
            })
        };
        self.days.iter().map(row).collect()
    }

    fn table(&self) -> String {
        let heading = ["DAY (UTC)", "CALLER", "CALLS", "FAILED", "REFUSED", "FUEL", "BYTES", "NETWORK"];
        let cells = |of: &CallerDay, used: &DayUse| {
            let caller: String = sanitize::line(&of.caller).chars().take(CALLER_CHARS).collect();
            let numbers = [used.calls, used.failed, used.refused, used.fuel, used.message_bytes, used.network_bytes];
            [of.day.clone(), caller].into_iter().chain(numbers.iter().map(u64::to_string)).collect::<Vec<String>>()
        };
        let rows: Vec<Vec<String>> = self.days.iter().map(|(of, used)| cells(of, used)).collect();
        let heading: Vec<String> = heading.map(str::to_owned).to_vec();
        let width = |column: usize| {
            let cells = rows.iter().chain([&heading]).filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..heading.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate();
            // Texts stand on the left, numbers on the right.
            let padded = cells.map(
                |(place, (cell, width))| {
                    if place < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                },
            );
            padded.collect::<Vec<_>>().join("  ")
        };
        let mut table = format!("{}\n", bold(&line(&heading), terminal::stdout_style()));
        rows.iter().for_each(|row| table.push_str(&format!("{}\n", line(row).trim_end())));
        table
    }
}
