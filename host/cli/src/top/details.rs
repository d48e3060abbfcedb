//! All details of one row, as names and texts.
use toolcell_server::control::{ApprovalShown, CallShown, DenialShown};

use super::state::TopRow;
use super::text;

/// Characters of a text: those of the arguments that a server sends, and their escapes.
const TEXT_CHARS: usize = 8_192;

/// Names and texts of a row.
pub fn details(row: &TopRow<'_>) -> Vec<(&'static str, String)> {
    let mut known = match row {
        TopRow::Call(_, shown) => call(shown),
        TopRow::Denial(_, shown) => denial(shown),
        TopRow::Approval(_, shown) => approval(shown),
    };
    let process = &row.process().activity;
    known.push(("process", process.pid.to_string()));
    known.push(("manifest", whole(&process.manifest)));
    known
}

fn call(call: &CallShown) -> Vec<(&'static str, String)> {
    vec![
        ("call", call.call.to_string()),
        ("tool", whole(&call.tool)),
        ("component", whole(&call.component)),
        ("caller", whole(&call.caller)),
        ("state", call.state.name().to_owned()),
        ("age", text::millis(call.age_ms)),
        ("deadline", text::millis(call.deadline_ms)),
        ("fuel", text::of(call.fuel_used, call.fuel_max, text::amount)),
        ("memory", text::of(call.memory_bytes_used, call.memory_bytes_max, text::bytes)),
    ]
}

fn denial(group: &DenialShown) -> Vec<(&'static str, String)> {
    let mut known = vec![
        ("asked for", whole(&group.asked)),
        ("kind", whole(&group.capability)),
        ("component", whole(&group.component)),
        ("tools", whole(&group.tools.join(", "))),
        ("callers", whole(&group.callers.join(", "))),
        ("reason", whole(&group.reason)),
        ("times", format!("{}, last {} ago", group.count, text::seconds(group.age_s))),
        ("muted", if group.muted { "until the server ends" } else { "no" }.to_owned()),
    ];
    match &group.rule {
        Some(rule) => known.push(("rule", whole(&text::rule(&rule.section, &rule.line)))),
        None => known.push(("rule", "no rule of the manifest can allow it".to_owned())),
    }
    known
}

fn approval(call: &ApprovalShown) -> Vec<(&'static str, String)> {
    let remember = call.remember_s.map_or_else(|| "no".to_owned(), |time| format!("for {}", text::seconds(time)));
    vec![
        ("question", whole(&call.question)),
        ("tool", whole(&call.tool)),
        ("caller", whole(&call.caller)),
        ("component", whole(&call.component)),
        ("call", call.call.to_string()),
        ("waits", format!("{}, {} left", text::millis(call.age_ms), text::millis(call.left_ms))),
        ("remembers", remember),
        ("in its run", call.run_calls.map_or_else(|| "alone".to_owned(), |calls| format!("{calls} calls at most"))),
        (if call.arguments_cut { "arguments, cut" } else { "arguments" }, whole(&call.arguments)),
    ]
}

fn whole(text: &str) -> String {
    text::line(text, TEXT_CHARS)
}
