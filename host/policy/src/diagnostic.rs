//! One problem of a manifest: what, where, and what to do about it.

use std::ops::Range;

use crate::settings::accessors;
use crate::shell::of_manifest;
use crate::words::words;

use serde_json::{Value, json};

/// A range of bytes in the manifest's text.
pub type Span = Range<usize>;

/// A manifest's text and what to call it.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Shown in diagnostics; usually the path as the user gave it.
    pub name: &'a str,
    /// The whole text.
    pub text: &'a str,
}

words! {
    /// The weight of a problem: with an error the manifest cannot be used.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Severity {
        /// The manifest is used; somebody should look.
        Warning "warning",
        /// The manifest is not used.
        Error "error",
    }
}

accessors! {
    /// One problem.
    ///
    /// Control characters, terminal escapes and bidirectional overrides in its texts are shown
    /// escaped: they may quote what a manifest or a component says.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Diagnostic {
        /// Its weight.
        severity: Severity => Severity,
        /// `room::problem`: stable, for scripts.
        code: &'static str => &'static str,
        /// The problem in one sentence.
        message: String => &str,
        /// Its place; `None`: the file as a whole.
        span: Option<Span> => Option<&Span>,
        label: Option<String>,
        hint: Option<String>,
        conceals: bool,
    }
}

/// A place in a text, for people and editors: both count from 1, columns in characters (Unicode
/// scalar values).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character within the line.
    pub column: usize,
}

impl Source<'_> {
    /// The line and column of a byte. A byte past the end is at the end.
    #[must_use]
    pub fn position(&self, byte: usize) -> Position {
        let before = self.before(byte);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Position {
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        }
    }

    /// The text before a byte; a byte within a character counts as the character's first.
    pub(crate) fn before(&self, byte: usize) -> &str {
        let end = self.text.floor_char_boundary(byte);
        self.text.get(..end).unwrap_or_default()
    }
}

impl Diagnostic {
    /// A problem that keeps the manifest from being used. `code` is `room::problem`, such as
    /// `limits::unit`; the message is one sentence without a full stop.
    #[must_use]
    pub fn error(code: &'static str, message: impl AsRef<str>) -> Self {
        Self::new(Severity::Error, code, message.as_ref())
    }

    /// A problem that somebody should look at.
    #[must_use]
    pub fn warning(code: &'static str, message: impl AsRef<str>) -> Self {
        Self::new(Severity::Warning, code, message.as_ref())
    }

    fn new(severity: Severity, code: &'static str, message: &str) -> Self {
        let message = visible(message);
        Self { severity, code, message, span: None, label: None, hint: None, conceals: false }
    }

    /// Its place.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// The text next to the caret.
    #[must_use]
    pub fn label(mut self, label: impl AsRef<str>) -> Self {
        self.label = Some(visible(label.as_ref()));
        self
    }

    /// Advice.
    #[must_use]
    pub fn hint(mut self, hint: impl AsRef<str>) -> Self {
        self.hint = Some(visible(hint.as_ref()));
        self
    }

    /// Hides the rest of the line when it is drawn: somebody may have written a secret there.
    #[must_use]
    pub(crate) const fn concealing(mut self) -> Self {
        self.conceals = true;
        self
    }

    /// True if the rest of the line is hidden.
    pub(crate) const fn conceals(&self) -> bool {
        self.conceals
    }

    /// The text next to the caret.
    #[must_use]
    pub fn label_text(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// Advice.
    #[must_use]
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// For scripts: `severity`, `code`, `message`, `file`, `line`, `column`, `end_line`,
    /// `end_column`, `label`, `hint`. What does not apply is null. The end is the place after the
    /// last character.
    #[must_use]
    pub fn to_json(&self, source: &Source<'_>) -> Value {
        let start = self.span.as_ref().map(|span| source.position(span.start));
        let end = self.span.as_ref().map(|span| source.position(span.end));
        json!({
            "severity": self.severity.name(),
            "code": self.code,
            "message": self.message,
            "file": source.name,
            "line": start.map(|position| position.line),
            "column": start.map(|position| position.column),
            "end_line": end.map(|position| position.line),
            "end_column": end.map(|position| position.column),
            "label": self.label,
            "hint": self.hint.as_deref().map(|hint| of_manifest(hint, source.name)),
        })
    }
}

/// Escapes control characters and invisible ones.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_invisible(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// A text of as many characters. U+FFFD replaces those that a reader could not see, and the
/// controls of C1: a terminal may take one for the escape sequence that it stands for. The crate
/// that draws the line draws those of C0 as pictures.
pub(crate) fn masked(text: &str) -> String {
    let is_shown = |character: char| character.is_ascii() || !(character.is_control() || is_invisible(character));
    text.chars().map(|character| if is_shown(character) { character } else { '\u{fffd}' }).collect()
}

/// Zero-width characters, bidirectional marks and overrides, and the byte order mark.
const fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{00ad}'
            | '\u{061c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = Source { name: "m", text: "aé\nb\n" };
        for (byte, line, column) in
            [(0, 1, 1), (1, 1, 2), (2, 1, 2), (3, 1, 3), (4, 2, 1), (5, 2, 2), (6, 3, 1), (99, 3, 1)]
        {
            assert_eq!(source.position(byte), Position { line, column }, "byte {byte}");
        }
    }

    #[test]
    fn json_names_both_ends() {
        let source = Source { name: "m.toml", text: "a = 1\nb = 22\n" };
        let problem = Diagnostic::error("manifest::type", "b is wrong").at(10..12).hint("mend it");
        assert_eq!(
            problem.to_json(&source),
            json!({
                "severity": "error", "code": "manifest::type", "message": "b is wrong", "file": "m.toml",
                "line": 2, "column": 5, "end_line": 2, "end_column": 7, "label": null, "hint": "mend it",
            })
        );
        let whole = Diagnostic::warning("components::none", "no components").to_json(&source);
        assert_eq!((&whole["line"], &whole["severity"]), (&Value::Null, &json!("warning")));
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        let problem = Diagnostic::error("manifest::unknown_key", "unknown key \"\u{1b}[31m\u{202e}x\"");
        assert_eq!(problem.message(), "unknown key \"\\u{1b}[31m\\u{202e}x\"");
    }
}
