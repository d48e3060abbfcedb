//! What is looked for in a line, and which file names are meant. Holds no files.

use regex_lite::{Regex, RegexBuilder};
use toolkit::Failure;

/// What is looked for: a text, or a regular expression.
pub struct Pattern(Regex);

impl Pattern {
    /// Reads what the caller looks for.
    pub fn new(text: &str, is_regex: bool, ignores_case: bool) -> Result<Self, Failure> {
        let expression = if is_regex { text.to_owned() } else { regex_lite::escape(text) };
        let regex = RegexBuilder::new(&expression).case_insensitive(ignores_case).build();
        regex.map(Self).map_err(|error| Failure::invalid(format!("the expression cannot be read: {error}")))
    }

    /// Whether it is in this line.
    pub fn is_in(&self, line: &str) -> bool {
        self.0.is_match(line)
    }
}

/// Whether a file of this name is meant by a name with stars; an empty one means every file.
pub fn is_meant(wanted: &str, name: &str) -> bool {
    let mut parts = wanted.split('*');
    let (Some(first), Some(last)) = (parts.next(), parts.next_back()) else {
        return wanted.is_empty() || wanted == name;
    };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (wanted, name, is) in [
            ("", "tea.md", true),
            ("tea.md", "tea.md", true),
            ("tea", "tea.md", false),
            ("*.md", "tea.md", true),
            ("t*.md", "tea.md", true),
            ("t*a*.m*d", "tea.md", true),
            ("*", "tea.md", true),
            ("*.txt", "tea.md", false),
            ("tea.md*tea.md", "tea.md", false),
            ("*e*e*", "tea.md", false),
        ] {
            assert_eq!(is_meant(wanted, name), is, "{wanted} {name}");
        }
    }
}
