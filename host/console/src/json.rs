//! JSON texts indented without parsing their values: numbers, escapes and duplicate keys stay
//! unchanged.

use std::borrow::Cow;

use maud::{Markup, html};

use crate::bounds::{BLOCK_BYTES, JSON_BYTES, JSON_DEPTH, JSON_SHOWN_BYTES};
use crate::text;

/// A block with a JSON text, indented if it is complete and not too long.
#[must_use]
pub fn block(json: &str, label: &str) -> Markup {
    let (shown, max) = shown(json);
    html! { pre.block tabindex="0" role="region" aria-label=(label) { (text::block_of(&shown, max)) } }
}

/// True if [`block`] shows all of a JSON text.
#[must_use]
pub fn is_shown_whole(json: &str) -> bool {
    let (shown, max) = shown(json);
    text::block_of(&shown, max).fits()
}

/// The text that a block shows, and the number of bytes that fit.
fn shown(json: &str) -> (Cow<'_, str>, usize) {
    let laid_out = if json.len() <= JSON_BYTES { layout(json) } else { None };
    laid_out.map_or((json.into(), BLOCK_BYTES), |lines| (lines.into(), JSON_SHOWN_BYTES))
}

/// The text with a line for each member and item, down to [`JSON_DEPTH`]. `None` if brackets or
/// quotes do not match: then it is shown unchanged.
#[must_use]
pub fn layout(json: &str) -> Option<String> {
    let mut writer = JsonWriter { out: String::new(), open: Vec::new(), fresh: false };
    let mut letters = json.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => writer.string(&mut letters)?,
            '{' | '[' => writer.begin(letter),
            '}' | ']' => writer.end(letter)?,
            ',' => writer.between(),
            ':' => writer.out.push_str(": "),
            ' ' | '\t' | '\r' | '\n' => {}
            other => writer.push(other),
        }
    }
    writer.open.is_empty().then_some(writer.out)
}

struct JsonWriter {
    out: String,
    /// Closing brackets for those that are open.
    open: Vec<char>,
    /// True directly after an opening bracket.
    fresh: bool,
}

impl JsonWriter {
    fn push(&mut self, letter: char) {
        if std::mem::take(&mut self.fresh) && self.open.len() <= JSON_DEPTH {
            self.line(self.open.len());
        }
        self.out.push(letter);
    }

    fn string(&mut self, letters: &mut impl Iterator<Item = char>) -> Option<()> {
        self.push('"');
        loop {
            let letter = letters.next()?;
            self.out.push(letter);
            match letter {
                '\\' => self.out.push(letters.next()?),
                '"' => return Some(()),
                _ => {}
            }
        }
    }

    fn begin(&mut self, letter: char) {
        self.push(letter);
        self.open.push(if letter == '{' { '}' } else { ']' });
        self.fresh = true;
    }

    fn end(&mut self, letter: char) -> Option<()> {
        let was_empty = std::mem::take(&mut self.fresh);
        if !was_empty && self.open.len() <= JSON_DEPTH {
            self.line(self.open.len().saturating_sub(1));
        }
        if self.open.pop() != Some(letter) {
            return None;
        }
        self.out.push(letter);
        Some(())
    }

    fn between(&mut self) {
        self.out.push(',');
        if self.open.len() <= JSON_DEPTH {
            self.line(self.open.len());
        } else {
            self.out.push(' ');
        }
    }

    fn line(&mut self, depth: usize) {
        self.out.push('\n');
        for _ in 0..depth {
            self.out.push_str("  ");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::layout;

    #[test]
    fn members_have_lines_and_values_stay_as_they_are() {
        let json = r#"{"a":[1,2.50,1e400],"b":{},"a":"x\",{[ \u202e","c":[]}"#;
        let lines = "{\n  \"a\": [\n    1,\n    2.50,\n    1e400\n  ],\n  \"b\": {},\n  \"a\": \"x\\\",{[ \\u202e\",\n  \"c\": []\n}";
        assert_eq!(layout(json).as_deref(), Some(lines));
        assert_eq!(layout(lines).as_deref(), Some(lines));
        assert_eq!(layout(" 7 ").as_deref(), Some("7"));
    }

    #[test]
    fn what_does_not_fit_is_not_laid_out() {
        for text in ["{", "]", "[}", "\"", "\"\\", "{\"a\":1}}"] {
            assert_eq!(layout(text), None, "{text}");
        }
    }

    #[test]
    fn depth_costs_no_more_than_its_brackets() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(layout(&deep).is_some_and(|lines| lines.len() < 210_000));
        let wide = format!("{}1{}", "[".repeat(10), ",1".repeat(1_000)) + &"]".repeat(10);
        assert!(layout(&wide).is_some_and(|lines| lines.len() < 40 * 1_000));
    }
}
