//! Texts for a person to judge: on one line, with nothing in them hidden, blank or misleading.
use std::fmt::Write as _;

use toolcell_mcp::sanitize;

/// Blanks in a row that are shown as they are. More of them would push what follows out of sight.
const BLANKS_MAX: usize = 16;

/// Hexadecimal digits of an escape in JSON.
const ESCAPE_DIGITS: usize = 4;

/// The beginning of a text, and how many of its characters are left out.
pub(super) fn beginning(text: &str, chars_max: usize) -> (String, usize) {
    let mut out = Shown::default();
    text.chars().take(chars_max).for_each(|character| out.push(character));
    (out.end(), text.chars().count().saturating_sub(chars_max))
}

/// JSON without blanks between its parts. Escapes of plain characters are read.
pub(super) fn json(text: &str) -> String {
    let mut out = Shown::default();
    let mut rest = text.chars();
    let mut in_string = false;
    while let Some(character) = rest.next() {
        match character {
            '\\' if in_string => out.push_escape(&mut rest),
            _ if !in_string && character.is_ascii_whitespace() => {}
            _ => {
                in_string ^= character == '"';
                out.push(character);
            }
        }
    }
    out.end()
}

/// The beginning and the end of a text that is longer than this many characters.
pub(super) fn ends(text: String, chars_max: usize) -> String {
    let chars = text.chars().count();
    if chars <= chars_max {
        return text;
    }
    let half = chars_max / 2;
    let end = chars.saturating_sub(half);
    let beginning: String = text.chars().take(half).collect();
    let ending: String = text.chars().skip(end).collect();
    format!("{beginning} … ({} characters left out) … {ending}", end.saturating_sub(half))
}

/// A text that is being written.
#[derive(Default)]
struct Shown {
    text: String,
    /// Blanks that it ends with, and those that are not shown.
    blanks: usize,
}

impl Shown {
    fn push(&mut self, character: char) {
        if character == ' ' {
            self.blanks = self.blanks.saturating_add(1);
            if self.blanks <= BLANKS_MAX {
                self.text.push(' ');
            }
            return;
        }
        self.end_blanks();
        if is_visible(character) {
            self.text.push(character);
        } else {
            // Writing to a string does not fail.
            let _ = write!(self.text, "\\u{{{:x}}}", u32::from(character));
        }
    }

    /// An escape of JSON, after its `\`.
    fn push_escape(&mut self, rest: &mut std::str::Chars<'_>) {
        match rest.next() {
            Some('u') => {
                let escaped = rest.clone();
                match escaped_character(rest) {
                    Some(character @ ('"' | '\\')) => self.push_both('\\', character),
                    Some(character) => self.push(character),
                    // Half of a character stays as it is written.
                    None => {
                        *rest = escaped;
                        self.push_both('\\', 'u');
                    }
                }
            }
            Some('/') => self.push('/'),
            Some(character) => self.push_both('\\', character),
            None => self.push('\\'),
        }
    }

    fn push_both(&mut self, first: char, second: char) {
        self.push(first);
        self.push(second);
    }

    /// Says how many blanks are not shown.
    fn end_blanks(&mut self) {
        let left_out = std::mem::take(&mut self.blanks).saturating_sub(BLANKS_MAX);
        if left_out > 0 {
            let _ = write!(self.text, "\\u{{20}}{{{left_out}}}");
        }
    }

    fn end(mut self) -> String {
        self.end_blanks();
        self.text
    }
}

/// The character of an escape, after its `\u`; both halves of one that has two.
fn escaped_character(rest: &mut std::str::Chars<'_>) -> Option<char> {
    let first = unit(rest)?;
    if let Some(character) = char::from_u32(u32::from(first)) {
        return Some(character);
    }
    let second = rest.next().zip(rest.next()).filter(|next| *next == ('\\', 'u')).and_then(|_| unit(rest))?;
    char::decode_utf16([first, second]).next()?.ok()
}

fn unit(rest: &mut std::str::Chars<'_>) -> Option<u16> {
    let digits: String = rest.by_ref().take(ESCAPE_DIGITS).collect();
    u16::from_str_radix(&digits, 16).ok()
}

/// True for a character that a person sees, and that changes nothing around it.
fn is_visible(character: char) -> bool {
    let is_blank = character.is_whitespace() || matches!(character, '\u{2800}' | '\u{1d159}');
    !is_blank && sanitize::is_plain_line(character.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_is_shown_hides_nothing() {
        let row = " ".repeat(BLANKS_MAX);
        for (text, expected) in [
            ("plain é 漢字", "plain é 漢字"),
            ("a\u{202e}b\u{1b}[2J\u{200b}\n", "a\\u{202e}b\\u{1b}[2J\\u{200b}\\u{a}"),
            ("a\u{a0}b\u{3000}c\u{2800}d\u{2003}e", "a\\u{a0}b\\u{3000}c\\u{2800}d\\u{2003}e"),
            (&format!("{row}x"), &format!("{row}x")),
            (&format!("{row}   x{row} "), &format!("{row}\\u{{20}}{{3}}x{row}\\u{{20}}{{1}}")),
        ] {
            assert_eq!(beginning(text, 100), (expected.to_owned(), 0), "{text:?}");
        }
        assert_eq!(beginning("éééx", 2), ("éé".to_owned(), 2));
    }

    #[test]
    fn json_is_compact_and_its_escapes_hide_nothing() {
        for (text, expected) in [
            ("{ \"a\" : [ 1.50,\n\ttrue ] }", r#"{"a":[1.50,true]}"#),
            (&format!("{{{}\"text\":\"wire\"}}", " ".repeat(1_000)), r#"{"text":"wire"}"#),
            (r#"{"a":1,"a":"b  c"}"#, r#"{"a":1,"a":"b  c"}"#),
            (r#""\u0077\u0069re\/x""#, r#""wire/x""#),
            (r#""a\"b\\ c\n""#, r#""a\"b\\ c\n""#),
            (r#""\u0022:\u005c\u000a""#, r#""\":\\\u{a}""#),
            (r#""\u202e\u2800 \ud83d\ude00 \udb40\udc41""#, r#""\u{202e}\u{2800} 😀 \u{e0041}""#),
            (r#""\ud83d \ud83dx\ud83d\n""#, r#""\ud83d \ud83dx\ud83d\n""#),
            (r#""\\u{202e}""#, r#""\\u{202e}""#),
            ("\"cut \\", "\"cut \\"),
        ] {
            assert_eq!(json(text), expected, "{text:?}");
        }
    }

    #[test]
    fn of_a_long_text_both_ends_are_shown() {
        assert_eq!(ends("abcdef".to_owned(), 6), "abcdef");
        assert_eq!(ends("ébcdefé".to_owned(), 4), "éb … (3 characters left out) … fé");
    }
}
