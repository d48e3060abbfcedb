//! Names of components and tools, and suggestions for misspelled ones.
//!
//! | name | form | example |
//! |---|---|---|
//! | component | 1 to 64 of `a-z 0-9 _ -`, not `_` or `-` first | `weather` |
//! | tool, as its component calls it | 1 to 64 of `A-Z a-z 0-9 _ -` | `get_forecast` |
//! | prefix | 1 to 63 of the same | `wx_` |
//! | tool, as a client sees it | prefix + tool, [`shortened`] to 64 | `wx_get_forecast` |

/// The longest name of a component or a tool, in characters: what most clients and model APIs
/// accept.
pub const NAME_CHARS_MAX: usize = 64;

/// The longest prefix, in characters: one less than a name, so that something follows it.
pub const PREFIX_CHARS_MAX: usize = NAME_CHARS_MAX - 1;

/// Hexadecimal digits of the digest that ends a shortened name: two of 10,000 long names share them
/// by chance once in 80 times, and such a tool is reported.
const DIGEST_CHARS: usize = 8;

/// Longest word, in characters, that gets a suggestion: the cost is the product of two lengths.
const GUESS_CHARS_MAX: usize = NAME_CHARS_MAX;

/// Why a name is refused. The message completes the sentence "NAME …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No characters at all.
    #[error("must not be empty")]
    Empty,
    /// More characters than the form allows.
    #[error("has {chars} characters, at most {max} are allowed")]
    TooLong {
        /// The number of characters.
        chars: usize,
        /// The maximum.
        max: usize,
    },
    /// A character the form does not allow.
    #[error("must not contain {0:?}")]
    Character(char),
    /// A component's name that starts with `_` or `-`.
    #[error("must start with a letter or a digit")]
    Start,
}

/// Checks a component's name.
///
/// # Errors
/// [`NameError`] where it does not have the form.
pub fn check_component(name: &str) -> Result<(), NameError> {
    check(name, NAME_CHARS_MAX, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-')?;
    if name.starts_with(['_', '-']) { Err(NameError::Start) } else { Ok(()) }
}

/// Checks a tool's name, as its component calls it.
///
/// # Errors
/// [`NameError`] where it does not have the form.
pub fn check_tool(name: &str) -> Result<(), NameError> {
    check(name, NAME_CHARS_MAX, is_tool_character)
}

/// Checks a prefix.
///
/// # Errors
/// [`NameError`] where it does not have the form.
pub fn check_prefix(prefix: &str) -> Result<(), NameError> {
    check(prefix, PREFIX_CHARS_MAX, is_tool_character)
}

/// The name a client sees: the prefix, if any, and the tool's own name. Together they are
/// [shortened] where they are too long.
///
/// ```
/// use toolcell_policy::names::exposed;
/// assert_eq!(exposed(Some("wx_"), "forecast").as_deref(), Ok("wx_forecast"));
/// ```
///
/// # Errors
/// [`NameError`] where either does not have its form.
pub fn exposed(prefix: Option<&str>, tool: &str) -> Result<String, NameError> {
    check_tool(tool)?;
    let Some(prefix) = prefix else { return Ok(tool.to_owned()) };
    check_prefix(prefix)?;
    let name = format!("{prefix}{tool}");
    Ok(shortened(&name, &name))
}

/// A name of at most [`NAME_CHARS_MAX`] characters. A longer one is cut, and ends in the beginning
/// of a digest of `whole`: what the name stands for, such as a function with its interface.
///
/// ```
/// use toolcell_policy::names::shortened;
/// assert_eq!(shortened("forecast", "acme:weather/days.forecast"), "forecast");
/// assert_eq!(shortened(&"a".repeat(65), "a").len(), 64);
/// ```
#[must_use]
pub fn shortened(name: &str, whole: &str) -> String {
    if name.len() <= NAME_CHARS_MAX {
        return name.to_owned();
    }
    let begin = name.get(..name.floor_char_boundary(NAME_CHARS_MAX - DIGEST_CHARS - 1)).unwrap_or_default();
    let digest = blake3::hash(whole.as_bytes()).to_hex();
    let end: String = digest.chars().take(DIGEST_CHARS).collect();
    format!("{}_{end}", begin.trim_end_matches('_'))
}

/// The candidate that was probably meant, if one is close: case, `-` for `_`, and about one typo in
/// three characters are tolerated. The first of equally close ones.
///
/// ```
/// use toolcell_policy::names::did_you_mean;
/// assert_eq!(did_you_mean("dedline", ["fuel", "deadline"]), Some("deadline"));
/// assert_eq!(did_you_mean("colour", ["fuel", "deadline"]), None);
/// ```
#[must_use]
pub fn did_you_mean<'c>(written: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let written = folded(written)?;
    let allowed = (written.len() / 3).max(1);
    let near = candidates.into_iter().filter_map(|candidate| {
        let distance = distance(&written, &folded(candidate)?);
        (distance <= allowed && distance < written.len()).then_some((distance, candidate))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// The question for the candidate that was probably meant, or other advice.
pub(crate) fn meant_or<'c>(
    written: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    otherwise: impl Into<String>,
) -> String {
    match did_you_mean(written, candidates) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => otherwise.into(),
    }
}

fn check(name: &str, chars_max: usize, allowed: impl Fn(char) -> bool) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if let Some(character) = name.chars().find(|c| !allowed(*c)) {
        return Err(NameError::Character(character));
    }
    // All allowed characters are ASCII: bytes are characters here.
    if name.len() > chars_max {
        return Err(NameError::TooLong { chars: name.len(), max: chars_max });
    }
    Ok(())
}

const fn is_tool_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The characters to compare; `None` for a text that is too long.
fn folded(text: &str) -> Option<Vec<char>> {
    let folded: Vec<char> =
        text.chars().take(GUESS_CHARS_MAX + 1).map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect();
    (folded.len() <= GUESS_CHARS_MAX).then_some(folded)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other
/// (optimal string alignment).
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    let mut from_last = None;
    for (row, &a) in from.iter().enumerate() {
        let mut current = vec![row + 1];
        let mut to_last = None;
        for (column, &b) in to.iter().enumerate() {
            let at = |cells: &[usize], index: usize| cells.get(index).copied().unwrap_or(usize::MAX - 1);
            let replaced = at(&last, column) + usize::from(a != b);
            let mut best = replaced.min(at(&last, column + 1) + 1).min(at(&current, column) + 1);
            if from_last == Some(b) && to_last == Some(a) {
                // Both texts have a character before this one, so `column` is at least 1.
                best = best.min(at(&before_last, column.saturating_sub(1)) + 1);
            }
            current.push(best);
            to_last = Some(b);
        }
        from_last = Some(a);
        before_last = std::mem::replace(&mut last, current);
    }
    last.last().copied().unwrap_or_default()
}

/// A string with its quotes.
pub(crate) fn toml_string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            character if character.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(character))),
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// A key, with quotes where it needs them.
pub(crate) fn toml_key(text: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !text.is_empty() && text.chars().all(bare) { text.to_owned() } else { toml_string(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_forms() {
        let long = "a".repeat(65);
        let prefix_max = "a".repeat(63);
        for (name, component, tool) in [
            ("weather", Ok(()), Ok(())),
            ("0-a_b", Ok(()), Ok(())),
            ("Weather", Err(NameError::Character('W')), Ok(())),
            ("_a", Err(NameError::Start), Ok(())),
            ("", Err(NameError::Empty), Err(NameError::Empty)),
            ("a b", Err(NameError::Character(' ')), Err(NameError::Character(' '))),
            ("é", Err(NameError::Character('é')), Err(NameError::Character('é'))),
            ("a/b", Err(NameError::Character('/')), Err(NameError::Character('/'))),
            (
                long.as_str(),
                Err(NameError::TooLong { chars: 65, max: 64 }),
                Err(NameError::TooLong { chars: 65, max: 64 }),
            ),
            (&long[..64], Ok(()), Ok(())),
        ] {
            assert_eq!(check_component(name), component, "component {name:?}");
            assert_eq!(check_tool(name), tool, "tool {name:?}");
        }
        assert_eq!(check_prefix(&prefix_max), Ok(()));
        assert_eq!(check_prefix(&long[..64]), Err(NameError::TooLong { chars: 64, max: 63 }));
        assert_eq!(exposed(Some(&prefix_max), "b").map(|name| name.len()), Ok(64));
        assert_eq!(exposed(Some("p_"), ""), Err(NameError::Empty));
        assert_eq!(exposed(Some("p!"), "b"), Err(NameError::Character('!')));
    }

    #[test]
    fn a_name_that_is_too_long_ends_in_a_digest_of_all_of_it() {
        let long = "a".repeat(64);
        assert_eq!(shortened(&long, "any"), long);
        let one = shortened(&format!("{long}b"), "one");
        let other = shortened(&format!("{long}b"), "other");
        assert_eq!(one.len(), 64);
        assert_eq!(one[..56], format!("{}_", "a".repeat(55)));
        assert!(one[56..].bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
        assert_ne!(one, other);
        // Pinned: a client, a lock and a manifest may have kept it.
        assert_eq!(
            exposed(Some("p_"), &long).as_deref(),
            Ok("p_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_32718eaa")
        );
        // No separator stands twice, and no character is cut in two.
        assert!(!shortened(&format!("{}_{long}", "a".repeat(54)), "any").contains("__"));
        assert!(check_tool(&shortened(&"é".repeat(64), "any")).is_err());
    }

    #[test]
    fn near_words_are_guessed_and_far_ones_are_not() {
        let keys = ["fuel", "deadline", "memory", "output", "output_items", "queue", "queue_wait"];
        for (written, expected) in [
            ("dedline", Some("deadline")),
            ("feul", Some("fuel")),
            ("Fuel", Some("fuel")),
            ("output-items", Some("output_items")),
            ("ouput", Some("output")),
            ("queuewait", Some("queue_wait")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(did_you_mean(written, keys), expected, "{written:?}");
        }
        assert_eq!(did_you_mean(&"a".repeat(5_000), ["aaaa"]), None);
    }

    #[test]
    fn a_swap_of_neighbours_is_one_slip() {
        let distance_of = |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        for (a, b, expected) in
            [("", "", 0), ("abc", "", 3), ("", "ab", 2), ("ab", "ba", 1), ("kitten", "sitting", 3), ("xab", "xba", 1)]
        {
            assert_eq!(distance_of(a, b), expected, "{a} {b}");
            assert_eq!(distance_of(b, a), expected, "{b} {a}");
        }
    }
}
