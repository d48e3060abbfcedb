//! Counting. Knows nothing of components.

pub struct Counts<'t> {
    pub lines: u32,
    pub words: u32,
    pub longest: Option<&'t str>,
}

/// Counts words of at least this many characters.
pub fn count(text: &str, min_length: usize) -> Result<Counts<'_>, String> {
    if min_length == 0 {
        return Err("min-length is 0; the shortest word has 1 character".to_owned());
    }
    let length = |word: &str| word.chars().count();
    let words: Vec<&str> = text.split_whitespace().filter(|word| length(word) >= min_length).collect();
    // `max_by_key` takes the last of several.
    let longest = words.iter().rev().copied().max_by_key(|word| length(word));
    Ok(Counts { lines: text.lines().count() as u32, words: words.len() as u32, longest })
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn words_are_counted() {
        let counts = count("one two\nthree", 1).unwrap();
        assert_eq!((counts.lines, counts.words, counts.longest), (2, 3, Some("three")));
        let counts = count("", 1).unwrap();
        assert_eq!((counts.lines, counts.words, counts.longest), (0, 0, None));
    }

    #[test]
    fn short_words_are_left_out() {
        assert_eq!(count("a bb cc", 2).unwrap().words, 2);
        assert!(count("a", 0).is_err());
    }
}
