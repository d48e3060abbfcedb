//! Removes characters that make a text look different from its content: terminal escapes, control
//! characters, bidirectional overrides, zero-width and tag characters, variation selectors that
//! select nothing. Pure functions, used for definitions of tools, and for everything written to a
//! terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Cleans a text that may have several lines: line breaks (as `\n`) and tabs stay.
///
/// ```
/// use toolcell_schema::sanitize;
/// assert_eq!(sanitize::text("a\u{1b}[31mred\u{1b}[0m\tb\r\nc\u{202e}d"), "ared\tb\ncd");
/// ```
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    clean(text, Some)
}

/// Cleans a text that belongs on one line: line breaks and tabs become spaces.
///
/// ```
/// use toolcell_schema::sanitize;
/// assert_eq!(sanitize::line("two\nlines\u{200b}"), "two lines");
/// ```
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    clean(text, |_| Some(' '))
}

/// Writes characters that [`text`] removes as escapes, which are valid in JSON too: for texts that
/// must stay complete.
///
/// ```
/// use toolcell_schema::sanitize;
/// assert_eq!(sanitize::escaped("a\u{1b}[31m\nc\u{202e}d"), "a\\u001b[31m\nc\\u202ed");
/// ```
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_removed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() * 2);
    for character in text.chars() {
        push_escaped(&mut out, character);
    }
    Cow::Owned(out)
}

/// Appends a character, or its escape where [`text`] would remove it.
pub fn push_escaped(out: &mut String, character: char) {
    if !is_removed(character) {
        return out.push(character);
    }
    let mut units = [0; 2];
    for unit in character.encode_utf16(&mut units) {
        // Writing to a string does not fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

/// True if [`text`] would not change this text, and it has no line breaks or tabs.
#[must_use]
pub fn is_plain_line(text: &str) -> bool {
    let mut previous = None;
    !text.chars().any(|character| {
        let before = previous.replace(character);
        matches!(character, '\n' | '\t') || is_removed(character) || is_stray_selector(before, character)
    })
}

/// True for a character that [`text`] removes: it changes the look of text around it, or is
/// invisible.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    is_removed(character)
}

fn clean(text: &str, whitespace: impl Fn(char) -> Option<char>) -> Cow<'_, str> {
    if is_plain_line(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    let mut previous = None;
    while let Some(character) = characters.next() {
        let before = previous.replace(character);
        match character {
            '\u{1b}' => skip_escape(&mut characters),
            '\u{9b}' => skip_control_sequence(&mut characters),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_control_string(&mut characters),
            '\n' | '\t' => out.extend(whitespace(character)),
            _ if is_removed(character) || is_stray_selector(before, character) => {}
            _ => out.push(character),
        }
    }
    Cow::Owned(out)
}

/// Skips the rest of an escape sequence (ECMA-48 section 5.4): a control sequence, a control
/// string, or one more character.
fn skip_escape(characters: &mut std::str::Chars<'_>) {
    match characters.clone().next() {
        Some('[') => {
            characters.next();
            skip_control_sequence(characters);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            characters.next();
            skip_control_string(characters);
        }
        Some(' '..='~') => {
            characters.next();
        }
        _ => {}
    }
}

/// Skips parameters and intermediates up to and with the final byte (`@` to `~`).
fn skip_control_sequence(characters: &mut std::str::Chars<'_>) {
    while let Some(character) = characters.clone().next() {
        let inside = matches!(character, ' '..='?');
        let last = matches!(character, '@'..='~');
        if inside || last {
            characters.next();
        }
        if !inside {
            return;
        }
    }
}

/// Skips up to and with the terminator (BEL, ST or ESC \). An endless one loses only its first
/// line.
fn skip_control_string(characters: &mut std::str::Chars<'_>) {
    while let Some(character) = characters.clone().next() {
        if character == '\n' {
            return;
        }
        characters.next();
        match character {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                if characters.clone().next() == Some('\\') {
                    characters.next();
                }
                return;
            }
            _ => {}
        }
    }
}

/// Characters that change the look of text around them, or are invisible.
fn is_removed(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{ffa0}' => true,
        '\u{17b4}' | '\u{17b5}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fe00}'..='\u{fe0d}' => true,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => character.is_control(),
    }
}

/// True for an emoji variation selector (U+FE0E, U+FE0F) that follows no symbol. It is invisible,
/// and each could carry a bit.
fn is_stray_selector(before: Option<char>, character: char) -> bool {
    let is_selector = |character: char| matches!(character, '\u{fe0e}' | '\u{fe0f}');
    let is_symbol = |before: char| match before {
        '0'..='9' | '#' | '*' => true,
        _ => !before.is_ascii() && !before.is_alphanumeric() && !before.is_whitespace() && !is_selector(before),
    };
    is_selector(character) && !before.is_some_and(is_symbol)
}

#[cfg(test)]
mod tests {
    use super::{is_plain_line, line, text};

    #[test]
    fn what_a_terminal_or_a_reader_would_be_misled_by_goes() {
        for (given, expected) in [
            ("plain", "plain"),
            ("tab\tand\nline", "tab\tand\nline"),
            ("crlf\r\n", "crlf\n"),
            ("\u{1b}[2J\u{1b}[1;1Hclear", "clear"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{9b}31mred", "red"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("\u{1b}]never ends\nbut lines do", "\nbut lines do"),
            ("null\0bell\u{7}del\u{7f}", "nullbelldel"),
            ("rtl\u{202e}gpj.exe\u{202c}", "rtlgpj.exe"),
            ("isolate\u{2066}x\u{2069}", "isolatex"),
            ("zero\u{200b}width\u{feff}", "zerowidth"),
            ("tags\u{e0041}\u{e0042}", "tags"),
            ("é 漢字 😀 ♥\u{fe0f} 1\u{fe0f}", "é 漢字 😀 ♥\u{fe0f} 1\u{fe0f}"),
            ("a\u{fe0f}b\u{fe0e}♥\u{fe0f}\u{fe0e}c", "ab♥\u{fe0f}c"),
            ("\u{fe0f}x\u{fe01}\u{fe02}\u{1bca0}", "x"),
        ] {
            assert_eq!(text(given), expected, "{given:?}");
        }
    }

    #[test]
    fn one_line_has_no_breaks() {
        assert_eq!(line("a\nb\tc\u{1b}[0m"), "a b c");
        assert!(is_plain_line("a b"));
        assert!(!is_plain_line("a\nb"));
    }
}
