//! Lines made safe to show: misleading characters become escapes that are also valid in JSON. Texts
//! about tools are cleaned earlier; this covers all other texts with parts from a guest or a
//! client.
//!
//! Promise: others' words do not act on a terminal.
use std::io::{self, Write};

use toolcell_mcp::sanitize;

/// Escapes lines, each of which comes in one write.
pub struct Escaping<W> {
    inner: W,
    /// True if lines have colours, whose escape sequences stay.
    is_coloured: bool,
}

impl<W: Write> Escaping<W> {
    pub fn new(inner: W, is_coloured: bool) -> Self {
        Self { inner, is_coloured }
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes).ok().and_then(|text| escaped(text, self.is_coloured)) {
            Some(text) => self.inner.write_all(text.as_bytes())?,
            None => self.inner.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The text with escapes, if it needs any. Of escape sequences only those for colours stay, if the
/// text may have colours.
pub fn escaped(text: &str, is_coloured: bool) -> Option<String> {
    if !text.chars().any(sanitize::is_hidden) {
        return None;
    }
    let mut escaped = String::with_capacity(text.len() * 2);
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = colour(rest).filter(|_| is_coloured);
        if let Some((sequence, after)) = length.and_then(|length| rest.split_at_checked(length)) {
            escaped.push_str(sequence);
            rest = after;
            continue;
        }
        sanitize::push_escaped(&mut escaped, character);
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
    }
    Some(escaped)
}

/// The length of the colour sequence at the start of the text: ESC, `[`, digits, `m`.
fn colour(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\u{1b}[")?;
    let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    (rest.as_bytes().get(digits) == Some(&b'm')).then_some(2 + digits + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, is_coloured: bool) -> String {
        let mut bytes = Vec::new();
        Escaping::new(&mut bytes, is_coloured).write_all(text.as_bytes()).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_shows_differently_than_it_reads_is_escaped() {
        for (given, expected) in [
            ("plain é\n", "plain é\n"),
            ("two\nlines\n", "two\nlines\n"),
            ("a\u{202e}b", "a\\u202eb"),
            ("a\u{9b}\"b", "a\\u009b\"b"),
            ("\u{e0041}", "\\udb40\\udc41"),
            ("\u{1b}[31m", "\\u001b[31m"),
        ] {
            assert_eq!(written(given, false), expected);
        }
        assert_eq!(written("\u{1b}[31m\u{202e}", true), "\u{1b}[31m\\u202e");
        assert_eq!(written("\u{1b}[1;31mé\u{1b}[2J\u{1b}]0;t\u{7}", true), "\u{1b}[1;31mé\\u001b[2J\\u001b]0;t\\u0007");
    }

    #[test]
    fn json_stays_json_and_says_the_same() {
        let text = "\u{9b}31m \u{90}x \u{202e} \u{e0041} \u{1b}]0;t\u{7} \u{200b}";
        let line = serde_json::json!({ "message": text, "tool": "x" }).to_string();
        let read: serde_json::Value = serde_json::from_str(&written(&line, false)).unwrap();
        assert_eq!(read, serde_json::json!({ "message": text, "tool": "x" }));
        assert!(written(&line, false).is_ascii());
    }
}
