//! The table of replayed calls, and JSON.
use serde_json::{Value, json};
use toolcell_mcp::sanitize;
use toolcell_policy::Style;
use toolcell_sandbox::ReplayQuestion;
use toolcell_sandbox::tapes::TapeEntry;

use super::verdict::{Outcome, ReplayedCall, Verdict};
use crate::args::ReplayArgs;
use crate::edit::difference;
use crate::terminal::{self, green, red};

/// Characters of what a component asked for that are shown.
const ASKED_CHARS_MAX: usize = 160;

/// Things that calls ask for, which the summary names.
const ASKED_NAMES_MAX: usize = 3;

/// Characters of an answer's difference that are shown.
const DIFFERENCE_CHARS_MAX: usize = 8_000;

/// Prints all calls.
pub(super) fn print(args: &ReplayArgs, calls: &[ReplayedCall]) -> std::io::Result<()> {
    if args.json {
        let same = calls.iter().filter(|call| call.verdict == Verdict::AsBefore).count();
        let all: Vec<Value> = calls.iter().map(as_json).collect();
        return terminal::print(&format!("{:#}\n", json!({"total": calls.len(), "as_before": same, "calls": all})));
    }
    let style = terminal::stdout_style();
    let width = |cell: fn(&ReplayedCall) -> usize| calls.iter().map(cell).max().unwrap_or_default();
    let tools = width(|call| call.tool.chars().count());
    let mut text = String::new();
    for call in calls {
        text += &row(call, tools, style);
    }
    text += &format!("\n{}\n", summary(calls));
    terminal::print(&text)
}

/// How recorded calls end with a new version of their component.
pub struct HeldAgainst {
    /// For people: a line, and one for each call that ends otherwise.
    pub text: String,
    /// The same, without the calls that end as before.
    pub json: Value,
}

/// Calls that are shown, of those that end otherwise with a new version.
const OTHERWISE_MAX: usize = 10;

/// The calls that end otherwise, with a summary. There was no time for `left` others.
pub(super) fn held_against(calls: &[ReplayedCall], left: usize) -> HeldAgainst {
    let same = calls.iter().filter(|call| call.verdict == Verdict::AsBefore).count();
    let otherwise = || calls.iter().filter(|call| call.verdict != Verdict::AsBefore);
    let mut text = format!("  {}\n", summary(calls));
    if left > 0 {
        text += &format!("    {left} older ones were not run, for want of time or room\n");
    }
    for call in otherwise().take(OTHERWISE_MAX) {
        let first = match &call.verdict {
            Verdict::Asks(questions) => questions.iter().map(shown_question).collect::<Vec<_>>().join(", "),
            _ => details(call, Style::Plain).lines().next().unwrap_or_default().to_owned(),
        };
        text += &format!("    {} {}: {first}\n", call.verdict.word(), sanitize::line(&call.tool));
    }
    if otherwise().count() > OTHERWISE_MAX {
        text += "    `toolcell replay` shows all\n";
    }
    let calls_json: Vec<Value> = otherwise().map(as_json).collect();
    HeldAgainst { text, json: json!({"total": calls.len(), "as_before": same, "left": left, "otherwise": calls_json}) }
}

/// A call's row, and below it what differs.
fn row(call: &ReplayedCall, tool_width: usize, style: Style) -> String {
    let word = format!("{:<10}", call.verdict.word());
    let word = if call.verdict == Verdict::AsBefore { green(&word, style) } else { red(&word, style) };
    let fuel = change(call.before.fuel, call.after.fuel, call.outcome.is_some());
    let kib = |bytes: u64| bytes.div_ceil(1024);
    let memory = change(kib(call.before.memory_peak_bytes), kib(call.after.memory_peak_bytes), call.outcome.is_some());
    let tool = sanitize::line(&call.tool);
    let file = call.file.display().to_string();
    let mut text = format!("{word}{tool:<tool_width$}  fuel {fuel}, {memory} KiB  {}\n", sanitize::line(&file));
    for line in details(call, style).lines() {
        text += &format!("    {line}\n");
    }
    text
}

fn change(before: u64, after: u64, is_run: bool) -> String {
    if before == after || !is_run { before.to_string() } else { format!("{before} → {after}") }
}

/// What differs, in lines.
fn details(call: &ReplayedCall, style: Style) -> String {
    match &call.verdict {
        Verdict::AsBefore => String::new(),
        Verdict::Differs => {
            let after = call.outcome.as_ref().map(pretty).unwrap_or_default();
            let lines = difference(&pretty(&call.recorded), &after, style);
            if lines.is_empty() {
                return "the answer is the same, and took other fuel\n".to_owned();
            }
            clipped(&lines, DIFFERENCE_CHARS_MAX)
        }
        Verdict::Asks(questions) => {
            questions.iter().map(|question| format!("asks for {}\n", shown_question(question))).collect()
        }
        Verdict::Departs { asked: Some(asked), expected: Some(expected) } => {
            format!("asked for {}\nrecorded  {}\n", in_words(asked), in_words(expected))
        }
        Verdict::Departs { asked: Some(asked), expected: None } => {
            format!("asked for {}, which the recording does not have\n", in_words(asked))
        }
        Verdict::Departs { asked: None, expected } => {
            format!("did not ask for {}\n", expected.as_deref().map(in_words).unwrap_or_default())
        }
        Verdict::Fails(problem) | Verdict::NotRun(problem) => format!("{}\n", sanitize::text(problem)),
    }
}

/// What was asked for, in words: `POST https://new.example/`. Where the recorded call asked for the
/// same otherwise, the function says what differs.
fn shown_question(question: &ReplayQuestion) -> String {
    match &question.name {
        Some(name) if question.is_new => clipped(&sanitize::line(name), ASKED_CHARS_MAX),
        Some(name) => format!("{}: {}", clipped(&sanitize::line(name), ASKED_CHARS_MAX), in_words(&question.asked)),
        None => in_words(&question.asked),
    }
}

/// An entry of a tape in words: its function, and its arguments without handles.
fn in_words(entry: &str) -> String {
    let Ok(TapeEntry { function, arguments, .. }) = serde_json::from_str::<TapeEntry>(entry) else {
        return clipped(&sanitize::line(entry), ASKED_CHARS_MAX);
    };
    let shown: Vec<String> = arguments.iter().filter(|value| value.get("handle").is_none()).map(plain).collect();
    let text = format!("{} {}", function.replace('#', " "), shown.join(" "));
    clipped(&sanitize::line(text.trim_end()), ASKED_CHARS_MAX)
}

/// A value without the wrapping that only types need.
fn plain(value: &Value) -> String {
    match value.as_object().filter(|object| object.len() == 1).and_then(|object| object.iter().next()) {
        Some((key, inner)) if ["some", "ok", "text", "base64"].contains(&key.as_str()) => plain(inner),
        _ => value.to_string(),
    }
}

fn clipped(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// An outcome in lines: JSON within texts is JSON here.
fn pretty(outcome: &Outcome) -> String {
    match outcome {
        Ok(result) => {
            let mut value = serde_json::to_value(result).unwrap_or_default();
            if let Some(structured) = result.structured_json.as_deref().and_then(|text| serde_json::from_str(text).ok())
                && let Some(object) = value.as_object_mut()
            {
                object.insert("structured_json".to_owned(), structured);
            }
            format!("{value:#}")
        }
        Err(failure) => failure.to_string(),
    }
}

/// `41 of 42 recorded calls answer as before; 1 asks for something else`.
fn summary(calls: &[ReplayedCall]) -> String {
    let count = |word: &str| calls.iter().filter(|call| call.verdict.word() == word).count();
    let same = count("as before");
    let noun = if calls.len() == 1 { "call answers" } else { "calls answer" };
    let mut text = format!("{same} of {} recorded {noun} as before", calls.len());
    let asked = asked_for(calls);
    for (word, one, many) in [
        ("differs", "gives another answer", "give another answer"),
        ("asks", "asks for ", "ask for "),
        ("fails", "fails", "fail"),
        ("not run", "could not be run", "could not be run"),
    ] {
        match count(word) {
            0 => continue,
            1 => text += &format!("; 1 {one}"),
            number => text += &format!("; {number} {many}"),
        }
        if word == "asks" {
            text += &asked;
        }
    }
    text
}

/// What calls ask for, each once: `` `POST https://new.example/`, `tool search` and 2 more``.
fn asked_for(calls: &[ReplayedCall]) -> String {
    let mut names: Vec<String> = Vec::new();
    for call in calls {
        let Verdict::Asks(questions) = &call.verdict else { continue };
        for question in questions {
            let name = match &question.name {
                Some(name) => sanitize::line(name).into_owned(),
                None => in_words(&question.asked),
            };
            let name = format!("`{}`", clipped(&name, ASKED_CHARS_MAX));
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let more = names.len().saturating_sub(ASKED_NAMES_MAX);
    names.truncate(ASKED_NAMES_MAX);
    match (names.as_slice(), more) {
        ([], _) => "something else".to_owned(),
        (names, 0) => names.join(", "),
        (names, more) => format!("{} and {more} more", names.join(", ")),
    }
}

fn as_json(call: &ReplayedCall) -> Value {
    let used = |used: &toolcell_server::recordings::RecordedUse| json!(used);
    let outcome = |outcome: &Outcome| match outcome {
        Ok(result) => json!({"result": result}),
        Err(failure) => json!({"failure": failure.to_string()}),
    };
    let mut shown = json!({
        "file": call.file.display().to_string(),
        "component": call.component,
        "tool": call.tool,
        "verdict": call.verdict.word(),
        "recorded": outcome(&call.recorded),
        "before": used(&call.before),
    });
    let Some(members) = shown.as_object_mut() else { return shown };
    if !call.revision.is_empty() {
        members.insert("revision".to_owned(), json!(call.revision));
    }
    if let Some(replayed) = &call.outcome {
        members.insert("replayed".to_owned(), outcome(replayed));
        members.insert("after".to_owned(), used(&call.after));
    }
    let entry = |text: &str| serde_json::from_str(text).unwrap_or(json!(text));
    match &call.verdict {
        Verdict::Asks(questions) => {
            let shown = |question: &ReplayQuestion| json!({"name": question.name, "is_new": question.is_new, "asked": entry(&question.asked)});
            members.insert("asks".to_owned(), questions.iter().map(shown).collect());
        }
        Verdict::Departs { asked, expected } => {
            members.insert("asked".to_owned(), json!(asked.as_deref().map(entry)));
            members.insert("expected".to_owned(), json!(expected.as_deref().map(entry)));
        }
        Verdict::Fails(problem) | Verdict::NotRun(problem) => {
            members.insert("problem".to_owned(), json!(problem));
        }
        Verdict::AsBefore | Verdict::Differs => {}
    }
    shown
}
