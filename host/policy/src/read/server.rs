//! Reads `[server]`. Must not hold: what the protocol makes of it.

use super::{Entry, Problems, Section, keys, limits};
use crate::diagnostic::Diagnostic;
use crate::limits::Unit;
use crate::manifest::Server;

/// The longest server name and title, in characters: clients show them in one line.
const TITLE_CHARS_MAX: usize = 128;

/// The longest instructions, in bytes: clients put them before every conversation.
const INSTRUCTIONS_BYTES_MAX: usize = 16 << 10;

/// An integer or size key: unit, least, most.
type Range = (Unit, u64, u64);

/// Tools on one page. More than 1,000 definitions make frames that clients refuse.
const PAGE_SIZE: Range = (Unit::Count, 1, 1_000);

/// One line of input. The least holds any request without arguments; the most is what the process keeps in memory
/// for one line.
const LINE_MAX: Range = (Unit::Bytes, 4 << 10, 256 << 20);

/// Calls of one connection that run at once.
const IN_FLIGHT_MAX: Range = (Unit::Count, 1, 10_000);

/// Calls of one connection that are read and wait.
const PENDING_MAX: Range = (Unit::Count, 0, 100_000);

/// The server's settings; the defaults for what is missing or wrong.
pub(crate) fn read(root: &Section<'_>, problems: &mut Problems) -> Server {
    let mut server = Server::default();
    let Some(section) = root.get("server").and_then(|entry| entry.section(problems)) else { return server };
    section.check_keys(&keys::SERVER, problems);
    if let Some(name) = section.get("name").and_then(|entry| line(&entry, problems)) {
        server.name = name;
    }
    server.title = section.get("title").and_then(|entry| line(&entry, problems));
    server.instructions = section.get("instructions").and_then(|entry| instructions(&entry, problems));
    for (key, range, value) in [
        ("page_size", PAGE_SIZE, &mut server.page_size),
        ("line_max", LINE_MAX, &mut server.line_bytes_max),
        ("in_flight_max", IN_FLIGHT_MAX, &mut server.in_flight_max),
        ("pending_max", PENDING_MAX, &mut server.pending_max),
    ] {
        if let Some(entry) = section.get(key) {
            *value = number(&entry, range, *value, problems);
        }
    }
    server
}

fn number(entry: &Entry<'_>, range: Range, default: usize, problems: &mut Problems) -> usize {
    let (unit, min, max) = range;
    let value = match unit {
        Unit::Count => limits::count(entry, problems),
        Unit::Bytes | Unit::Millis => limits::quantity(entry, unit, problems),
    };
    let Some(value) = value else { return default };
    let fitting = u64::try_from(value).ok().filter(|value| (min..=max).contains(value));
    if let Some(value) = fitting.and_then(|value| usize::try_from(value).ok()) {
        return value;
    }
    problems.add(limits::out_of_range(entry, range, u64::try_from(default).unwrap_or(max)));
    default
}

/// A text of one line for people.
fn line(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let wrong = if text.trim().is_empty() {
        "must not be empty".to_owned()
    } else if text.chars().any(char::is_control) {
        "must not contain control characters".to_owned()
    } else if text.chars().count() > TITLE_CHARS_MAX {
        format!("must have at most {TITLE_CHARS_MAX} characters")
    } else {
        return Some(text.to_owned());
    };
    problems.add(text_problem(entry, &wrong));
    None
}

/// A text of several lines for the model.
fn instructions(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let wrong = if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        "must not contain control characters other than tabs and line ends".to_owned()
    } else if text.len() > INSTRUCTIONS_BYTES_MAX {
        format!("must have at most {} of text", Unit::Bytes.show(INSTRUCTIONS_BYTES_MAX as u64))
    } else {
        return Some(text.to_owned());
    };
    problems.add(text_problem(entry, &wrong));
    None
}

fn text_problem(entry: &Entry<'_>, wrong: &str) -> Diagnostic {
    Diagnostic::error("server::text", format!("{} {wrong}", entry.key)).at(entry.span.clone())
}
