//! Reads texts for people and models.

use super::{Entry, Problems};
use crate::quantity::show_bytes;

/// The longest name or title, in characters: clients show them in one line.
pub(crate) const LINE_CHARS_MAX: usize = 128;

/// The longest text of several lines, in bytes: clients put it before every conversation.
const LINES_BYTES_MAX: usize = 16 << 10;

/// A text of one line for people.
pub(crate) fn line(entry: &Entry<'_>, code: &'static str, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let wrong = if text.trim().is_empty() {
        "must not be empty".to_owned()
    } else if text.chars().any(char::is_control) {
        "must not contain control characters".to_owned()
    } else if text.chars().count() > LINE_CHARS_MAX {
        format!("must have at most {LINE_CHARS_MAX} characters")
    } else {
        return Some(text.to_owned());
    };
    problems.refuse(entry.error(code, format!("{} {wrong}", entry.key)))
}

/// A text of several lines for the model.
pub(crate) fn lines(entry: &Entry<'_>, code: &'static str, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let wrong = if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        "must not contain control characters other than tabs and line ends".to_owned()
    } else if text.len() > LINES_BYTES_MAX {
        format!("must have at most {} of text", show_bytes(LINES_BYTES_MAX as u64))
    } else {
        return Some(text.to_owned());
    };
    problems.refuse(entry.error(code, format!("{} {wrong}", entry.key)))
}
