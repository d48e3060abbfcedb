//! Regular expressions of `match` and `search`. Holds no evaluation of filters.

use regex_lite::Regex;

/// An I-Regexp (RFC 9485) made ready: for `whole`, all of a text must fit, else some part of it. Classes of Unicode
/// properties (`\p{Lu}`) are not known: their tables would be larger than the rest of the component.
///
/// # Errors
/// What is wrong with it.
pub fn compile(pattern: &str, whole: bool) -> Result<Regex, regex_lite::Error> {
    let mut translated = String::from(if whole { r"\A(?:" } else { "(?:" });
    let mut escaped = false;
    let mut in_class = false;
    for letter in pattern.chars() {
        // An I-Regexp's dot matches neither kind of line end.
        if letter == '.' && !in_class && !escaped {
            translated.push_str(r"[^\n\r]");
        } else {
            translated.push(letter);
        }
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
    }
    translated.push_str(if whole { r")\z" } else { ")" });
    Regex::new(&translated)
}
