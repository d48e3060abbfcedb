//! Finding notes by words. Holds no notes.

use crate::notes::{NOTES, Note};

/// Words that say nothing about what a note is about.
const EMPTY_WORDS: &[&str] = &[
    "a", "an", "and", "are", "at", "for", "has", "have", "how", "in", "is", "it", "my", "no", "not", "of", "on", "or",
    "our", "the", "to", "was", "we", "what", "when", "why", "with",
];

/// What a word is worth where it is found.
const IN_TITLE: u32 = 6;
const IN_SUMMARY: u32 = 3;
const IN_TEXT: u32 = 1;

/// The notes that fit a query, the best first, each with how well it fits compared with the best (1.0). All notes, equally,
/// where the query has no words.
pub fn find(query: &str, limit: usize) -> Vec<(&'static Note, f64)> {
    let wanted: Vec<String> = words(query).filter(|word| !EMPTY_WORDS.contains(&word.as_str())).collect();
    let mut found: Vec<(&Note, u32)> = NOTES.iter().map(|note| (note, worth(note, &wanted))).collect();
    if !wanted.is_empty() {
        found.retain(|(_, worth)| *worth > 0);
    }
    // Stable: equals stay in the order of their names.
    found.sort_by_key(|(_, worth)| std::cmp::Reverse(*worth));
    let best = found.first().map_or(0, |(_, worth)| *worth).max(1);
    let fit = |worth: u32| if wanted.is_empty() { 0.5 } else { (f64::from(worth * 100 / best) / 100.0).min(1.0) };
    found.into_iter().take(limit).map(|(note, worth)| (note, fit(worth))).collect()
}

fn worth(note: &Note, wanted: &[String]) -> u32 {
    let places = [(note.title, IN_TITLE), (note.summary, IN_SUMMARY), (note.text, IN_TEXT)];
    places
        .into_iter()
        .map(|(text, each)| {
            let there: Vec<String> = words(text).collect();
            let hits = wanted.iter().filter(|word| there.iter().any(|other| alike(word, other))).count();
            u32::try_from(hits).unwrap_or(u32::MAX).saturating_mul(each)
        })
        .sum()
}

/// The same word, or one the beginning of the other: "connection" and "connections", "deploy" and "deployment".
fn alike(one: &str, other: &str) -> bool {
    const BEGINNING_MIN: usize = 4;
    one == other || (one.len().min(other.len()) >= BEGINNING_MIN && (one.starts_with(other) || other.starts_with(one)))
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_that_helps_comes_first() {
        for (query, slug) in [
            ("no space left on device", "disk-full"),
            ("FATAL: too many clients already", "database-connections"),
            ("x509: certificate has expired or is not yet valid", "certificate-expired"),
            ("our latency doubled", "everything-slow"),
            ("how do I revert the deploy", "roll-back"),
            ("postmortem", "incident-review"),
        ] {
            let found = find(query, 1);
            assert_eq!(found.first().map(|(note, fit)| (note.slug, *fit)), Some((slug, 1.0)), "{query}");
        }
    }

    #[test]
    fn without_words_all_notes_are_found() {
        assert_eq!(find("", 50).len(), NOTES.len());
        assert_eq!(find("what is the", 50).len(), NOTES.len());
        assert_eq!(find("", 2).len(), 2);
    }

    #[test]
    fn what_no_note_is_about_is_not_found() {
        assert!(find("unicorn", 5).is_empty());
    }

    #[test]
    fn notes_are_sorted_and_dated() {
        assert!(NOTES.is_sorted_by_key(|note| note.slug));
        for note in NOTES {
            assert!(note.text.starts_with(&format!("# {}\n", note.title)), "{}", note.slug);
            assert_eq!(note.modified.len(), "2026-01-19T14:05:00Z".len(), "{}", note.slug);
        }
    }
}
