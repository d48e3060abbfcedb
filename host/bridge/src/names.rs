//! Names of tools and arguments, and texts of the document within bounds.
use std::collections::{HashMap, HashSet};

use crate::limits::NAME_CHARS_MAX;

/// Longest excerpt of a document's text in a message, in characters: a line of a terminal.
const SHOWN_CHARS_MAX: usize = 80;

/// Digits of the end of a shortened name: one of 16 million.
const HASH_DIGITS: usize = 6;

/// Names that are already given, without regard to case.
#[derive(Default)]
pub(crate) struct Names {
    given: HashSet<String>,
    /// The next number behind each beginning, so that many equal names take no longer than others.
    next: HashMap<String, usize>,
}

impl Names {
    /// This name, or one like it that is not given yet, of at most `chars_max` characters.
    pub(crate) fn unique(&mut self, wanted: &str, chars_max: usize) -> String {
        let whole = shortened(wanted, chars_max);
        if self.given.insert(whole.to_ascii_lowercase()) {
            return whole;
        }
        let mut number = 2_usize;
        loop {
            let digits = number.to_string().len();
            let beginning = prefix_of(&whole, chars_max.saturating_sub(digits + 1));
            let next = self.next.entry(beginning.to_ascii_lowercase()).or_insert(number);
            number = number.max(*next);
            // A number of more digits leaves room for a shorter beginning.
            if number.to_string().len() > digits {
                continue;
            }
            *next = number + 1;
            let name = format!("{beginning}_{number}");
            if self.given.insert(name.to_ascii_lowercase()) {
                return name;
            }
            number += 1;
        }
    }
}

/// The names of tools that a person may mean by this word: the word, and what it is without the
/// component's prefix.
pub(crate) fn without_prefix<'a>(word: &'a str, prefix: &str) -> [&'a str; 2] {
    [word, word.strip_prefix(prefix).unwrap_or(word)]
}

/// Characters that a tool's own name may have behind this prefix.
pub(crate) fn tool_chars_max(prefix: &str) -> usize {
    NAME_CHARS_MAX.saturating_sub(prefix.len()).max(HASH_DIGITS + 2)
}

/// The name of an operation's tool, before it is made unique.
pub(crate) fn of_operation(id: Option<&str>, method: &str, path: &str) -> String {
    let of_id = id.map(|id| legal(id, "")).unwrap_or_default();
    if !of_id.is_empty() {
        return of_id;
    }
    let mut words = vec![method.to_ascii_lowercase()];
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let is_parameter = segment.starts_with('{');
        let word = legal(segment, "");
        words.push(if is_parameter { format!("by_{word}") } else { word });
    }
    legal(&words.join("_"), "")
}

/// The name of another server's tool, before it is made unique: as it is there where every API
/// takes that.
pub(crate) fn of_remote(name: &str) -> String {
    let legal = legal(name, "-_");
    if legal.is_empty() { "tool".to_owned() } else { legal }
}

/// The name of an argument, before it is made unique: as the parameter's where every API takes
/// that.
pub(crate) fn of_argument(name: &str) -> String {
    if is_property(name) {
        return name.to_owned();
    }
    let legal = legal(name, "-.");
    if legal.is_empty() { "argument".to_owned() } else { legal }
}

/// True if the APIs of all models take a property of this name.
pub(crate) fn is_property(name: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.bytes().all(is_legal)
}

/// Letters, digits and `_`; each run of others becomes one `_`.
fn legal(text: &str, also: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_alphanumeric() || also.contains(character) {
            name.push(character);
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
    }
    name.trim_end_matches('_').to_owned()
}

/// The name of a variable: `A-Z 0-9 _`, beginning with a letter.
pub(crate) fn variable(words: &[&str]) -> String {
    let name = legal(&words.join("_"), "").to_ascii_uppercase();
    let begins_well = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let name = if begins_well { name } else { format!("API_{name}") };
    prefix_of(&name, NAME_CHARS_MAX).trim_end_matches('_').to_owned()
}

/// A name within its length: a longer one ends with a hash of itself, so it stays the same in each
/// version of the document.
fn shortened(name: &str, chars_max: usize) -> String {
    if name.len() <= chars_max {
        return name.to_owned();
    }
    let hash = format!("{:016x}", fnv(name));
    let kept = prefix_of(name, chars_max.saturating_sub(HASH_DIGITS + 1));
    format!("{kept}_{}", prefix_of(&hash, HASH_DIGITS))
}

/// FNV-1a: short, and the same everywhere.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The first bytes of a text, up to a whole character.
pub(crate) fn prefix_of(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default()
}

/// A text of the document within a bound, without what a person would not see.
pub(crate) fn clipped(text: &str, bytes_max: usize) -> String {
    let text = visible(text.trim());
    if text.len() <= bytes_max {
        return text;
    }
    format!("{}…", prefix_of(&text, bytes_max.saturating_sub("…".len())).trim_end())
}

/// A text of the document for a message, in one line.
pub(crate) fn shown(text: &str) -> String {
    let line: String = visible(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = line.chars().take(SHOWN_CHARS_MAX).collect();
    format!("{short:?}")
}

/// Removes control characters but line breaks and tabs. The host removes other hidden characters
/// from all definitions.
fn visible(text: &str) -> String {
    text.chars().filter(|character| !character.is_control() || matches!(character, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_get_the_first_free_number() {
        let mut names = Names::default();
        let wanted = ["a", "a_2", "A", "a", "a_2", "abcdef", "abcdef", "abcdee", "abcdee"];
        let given: Vec<String> = wanted.into_iter().map(|wanted| names.unique(wanted, 6)).collect();
        assert_eq!(given, ["a", "a_2", "A_3", "a_4", "a_2_2", "abcdef", "abcd_2", "abcdee", "abcd_3"]);
        let many: HashSet<String> = (0..200).map(|_| names.unique("xyz", 4)).collect();
        assert_eq!(many.len(), 200);
    }
}
