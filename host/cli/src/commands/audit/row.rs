//! One record as a line for people.
use std::fmt::Write as _;

use serde_json::Value;
use toolcell_mcp::sanitize;
use toolcell_policy::Style;

use crate::terminal::{bold, faint, red, yellow};

/// Characters of a cause that are shown; the record has the rest.
const DETAIL_CHARS: usize = 160;

/// Characters of a time that are shown: up to milliseconds.
const TIME_CHARS: usize = "2026-01-12T15:00:58.000".len();

/// Characters of a caller that are shown; the record has the rest.
const CALLER_CHARS: usize = 18;

/// A call at its start.
pub struct StartedRow {
    pub time: String,
    pub tool: String,
    pub caller: String,
    pub arguments_bytes: u64,
    /// True if the call is shown even without an end.
    pub is_asked_for: bool,
}

/// The cells of a line.
#[derive(Default)]
struct RowColumns<'a> {
    time: &'a str,
    call: &'a str,
    outcome: &'a str,
    caller: &'a str,
    tool: &'a str,
    took: &'a str,
    fuel: &'a str,
    memory: &'a str,
    input: &'a str,
    output: &'a str,
}

/// The head of the table.
pub fn heading(style: Style) -> String {
    let columns = RowColumns {
        time: "TIME (UTC)",
        call: "CALL",
        outcome: "OUTCOME",
        caller: "CALLER",
        tool: "TOOL",
        took: "TOOK",
        fuel: "FUEL",
        memory: "MEMORY",
        input: "IN",
        output: "OUT",
    };
    format!("{}\n", bold(&columns.line(), style))
}

/// A finished call, given its start.
pub fn finished(record: &Value, started: Option<&StartedRow>, style: Style) -> String {
    let usage = |key: &str| record.pointer(&format!("/usage/{key}")).and_then(Value::as_u64).unwrap_or_default();
    let time = started.map_or_else(|| text(record, "time"), |started| started.time.clone());
    let tool = text(record, "tool");
    let caller = started.map_or("", |started| &started.caller);
    let columns = RowColumns {
        time: &time,
        caller,
        tool: &tool,
        took: &duration(usage("duration_us")),
        fuel: &count(usage("fuel")),
        memory: &bytes(usage("memory_peak_bytes")),
        input: &started.map_or_else(String::new, |started| bytes(started.arguments_bytes)),
        output: &bytes(usage("output_bytes")),
        ..RowColumns::default()
    };
    let mut line = call_line(record, &columns, style);
    let network = (usage("egress_bytes"), usage("ingress_bytes"));
    if network != (0, 0) {
        let _ = write!(line, "  net {} out, {} in", bytes(network.0), bytes(network.1));
    }
    if usage("denials") > 0 {
        let _ = write!(line, "  {}", yellow(&format!("{} denied", usage("denials")), style));
    }
    if let Some(file) = record.get("recording").and_then(Value::as_str) {
        let _ = write!(line, "  recorded in {}", sanitize::line(file));
    }
    push_detail(&mut line, &text(record, "detail"), style);
    line.push('\n');
    line
}

/// A call that was refused before it ran.
pub fn refused(record: &Value, style: Style) -> String {
    let arguments = record.get("arguments_bytes").and_then(Value::as_u64).unwrap_or_default();
    let columns = RowColumns {
        time: &text(record, "time"),
        caller: &text(record, "caller"),
        tool: &text(record, "tool"),
        input: &bytes(arguments),
        ..RowColumns::default()
    };
    let mut line = call_line(record, &columns, style);
    push_detail(&mut line, &text(record, "detail"), style);
    line.push('\n');
    line
}

/// A call without an end: it still runs, or the process ended.
pub fn unfinished(id: u64, started: &StartedRow, style: Style) -> String {
    let columns = RowColumns {
        time: &shown_time(&started.time),
        call: &id.to_string(),
        outcome: "(no end)",
        caller: &shown_caller(&started.caller),
        tool: &started.tool,
        input: &bytes(started.arguments_bytes),
        ..RowColumns::default()
    };
    format!("{}\n", faint(&columns.line(), style))
}

/// A denied attempt of a guest.
pub fn denied(record: &Value, caller: &str, style: Style) -> String {
    let columns = RowColumns {
        time: &shown_time(&text(record, "time")),
        call: &id(record),
        outcome: "denied",
        caller: &shown_caller(caller),
        tool: &text(record, "tool"),
        ..RowColumns::default()
    };
    let line = columns.line();
    let asked = text(record, "asked");
    let reason = text(record, "reason");
    let said = if reason.contains(&asked) { reason } else { format!("{asked}: {reason}") };
    let mut line = format!("{}  {}: {said}", yellow(&line, style), text(record, "capability"));
    if record.get("allow").is_some() {
        let allow = format!("allow it in [{}]: {}", text(record, "section"), text(record, "allow"));
        let _ = write!(line, "\n{:TIME_CHARS$}  {}", "", faint(&allow, style));
    }
    line.push('\n');
    line
}

/// Requests that were refused before they became calls: their callers or addresses, and their
/// number.
pub fn refused_requests(record: &Value, style: Style) -> String {
    let is_others = record.get("others").and_then(Value::as_bool).unwrap_or_default();
    let who = [text(record, "caller"), text(record, "address")].into_iter().find(|who| !who.is_empty());
    let who = who.unwrap_or_else(|| if is_others { "(others)".to_owned() } else { String::new() });
    let columns = RowColumns {
        time: &shown_time(&text(record, "time")),
        call: "-",
        outcome: "refused",
        caller: &shown_caller(&who),
        tool: &text(record, "tool"),
        ..RowColumns::default()
    };
    let line = columns.line();
    let count = record.get("count").and_then(Value::as_u64).unwrap_or_default();
    let reason = text(record, "reason");
    let first = text(record, "first");
    let first = shown_time(&first);
    format!("{}  {reason}, {count} since {first}\n", yellow(&line, style))
}

/// Any other record: its name, and its fields as `key=value`.
pub fn other(record: &Value, style: Style) -> String {
    let mut line = format!("{}  {:>5}  {}", shown_time(&text(record, "time")), "-", text(record, "event"));
    for (key, value) in record.as_object().into_iter().flatten() {
        let shown = match value {
            _ if ["seq", "prev", "time", "event"].contains(&key.as_str()) => continue,
            Value::Array(items) => items.len().to_string(),
            Value::String(text) => cut(text),
            value => value.to_string(),
        };
        let _ = write!(line, " {key}={shown}");
    }
    format!("{}\n", faint(&sanitize::line(&line), style))
}

/// The line of a call with an outcome: number and outcome come from the record.
fn call_line(record: &Value, columns: &RowColumns<'_>, style: Style) -> String {
    let outcome = text(record, "outcome");
    let columns = RowColumns {
        time: &shown_time(columns.time),
        call: &id(record),
        outcome: &outcome,
        caller: &shown_caller(columns.caller),
        ..*columns
    };
    let line = columns.line();
    match outcome.as_str() {
        "ok" => line,
        "cancelled" | "tool_error" | "busy" | "rate_limited" | "invalid_input" => yellow(&line, style),
        _ => red(&line, style),
    }
}

impl RowColumns<'_> {
    fn line(&self) -> String {
        let Self { time, call, outcome, caller, tool, took, fuel, memory, input, output } = self;
        let line = format!(
            "{time:TIME_CHARS$}  {call:>5}  {outcome:14} {caller:CALLER_CHARS$} {tool:24} {took:>9} {fuel:>8} {memory:>9} {input:>9} {output:>9}"
        );
        line.trim_end().to_owned()
    }
}

fn push_detail(line: &mut String, detail: &str, style: Style) {
    if !detail.is_empty() {
        let _ = write!(line, "  {}", faint(&cut(detail), style));
    }
}

/// A field's text, safe for a terminal; empty without one.
pub fn text(record: &Value, key: &str) -> String {
    sanitize::line(record.get(key).and_then(Value::as_str).unwrap_or_default()).into_owned()
}

fn id(record: &Value) -> String {
    record.get("id").and_then(Value::as_u64).unwrap_or_default().to_string()
}

/// A caller's name, cut to its column.
fn shown_caller(caller: &str) -> String {
    if caller.chars().count() <= CALLER_CHARS {
        return caller.to_owned();
    }
    caller.chars().take(CALLER_CHARS.saturating_sub(1)).chain(['…']).collect()
}

fn shown_time(time: &str) -> String {
    time.chars().take(TIME_CHARS).map(|character| if character == 'T' { ' ' } else { character }).collect()
}

fn cut(text: &str) -> String {
    if text.chars().count() <= DETAIL_CHARS {
        return text.to_owned();
    }
    text.chars().take(DETAIL_CHARS).chain(['…']).collect()
}

fn bytes(bytes: u64) -> String {
    scaled(bytes, 1_024, ["B", "KiB", "MiB", "GiB"])
}

fn count(count: u64) -> String {
    scaled(count, 1_000, ["", "k", "M", "G"])
}

fn duration(micros: u64) -> String {
    if micros < 1_000_000 { scaled(micros, 1_000, ["µs", "ms", "s", "s"]) } else { tenths(micros, 1_000_000, "s") }
}

/// The value in the largest unit in which it is at least one, with one decimal.
fn scaled(value: u64, step: u64, units: [&str; 4]) -> String {
    let mut factor = 1;
    let mut named = "";
    for (place, unit) in units.into_iter().enumerate() {
        if place > 0 {
            if value / factor < step {
                break;
            }
            factor *= step;
        }
        named = unit;
    }
    if factor == 1 { format!("{value} {named}").trim_end().to_owned() } else { tenths(value, factor, named) }
}

fn tenths(value: u64, factor: u64, unit: &str) -> String {
    let tenths = value / (factor / 10);
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_in_a_unit_that_fits() {
        for (shown, expected) in [
            (bytes(0), "0 B"),
            (bytes(1_023), "1023 B"),
            (bytes(1_024), "1.0 KiB"),
            (bytes(5 << 20), "5.0 MiB"),
            (bytes(5 << 40), "5120.0 GiB"),
            (count(999), "999"),
            (count(1_234_567), "1.2 M"),
            (duration(12), "12 µs"),
            (duration(1_250), "1.2 ms"),
            (duration(61_000_000), "61.0 s"),
        ] {
            assert_eq!(shown, expected);
        }
    }
}
