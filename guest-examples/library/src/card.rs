//! The card of a document: what it is called, how long it is, and its headings. Holds nothing of where cards are kept.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

/// Most headings of a card: a page of them.
const HEADINGS_MAX: usize = 60;

/// Most characters of a title or a heading: a line of a card.
const LINE_CHARS_MAX: usize = 120;

/// What is kept of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Its first heading, or else its name.
    pub title: String,
    /// How many words it has.
    pub words: usize,
    /// The headings in their order.
    headings: Vec<Heading>,
    /// Another number for another text. Rust may compute it in another way one day: each card is written anew then.
    print: u64,
}

/// A heading of Markdown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Heading {
    /// From 1, the number of `#`.
    level: usize,
    text: String,
}

impl Card {
    /// The card of this document.
    pub fn of(path: &str, text: &str) -> Self {
        let headings = headings(text);
        let name = || path.rsplit('/').next().unwrap_or(path).to_owned();
        let title = headings.first().map_or_else(name, |heading| heading.text.clone());
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let words = text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
        Self { title, words, headings, print: hasher.finish() }
    }

    /// The card as a person reads it, in Markdown.
    pub fn page(&self, path: &str) -> String {
        let mut page = format!("# {}\n\n{path}, {}\n", self.title, words(self.words));
        for (place, heading) in self.headings.iter().enumerate() {
            let before = if place == 0 { "\n" } else { "" };
            page.push_str(&format!("{before}{}- {}\n", "  ".repeat(heading.level.saturating_sub(1)), heading.text));
        }
        page
    }
}

/// So many words, in words.
pub fn words(count: usize) -> String {
    if count == 1 { "1 word".to_owned() } else { format!("{count} words") }
}

/// The headings of a text, without lines of code blocks.
fn headings(text: &str) -> Vec<Heading> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        let Some(rest) = line.get(level..).and_then(|rest| rest.strip_prefix(' ')) else { continue };
        if in_code || !(1..=6).contains(&level) || found.len() == HEADINGS_MAX {
            continue;
        }
        found.push(Heading { level, text: rest.trim().chars().take(LINE_CHARS_MAX).collect() });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::Card;

    #[test]
    fn a_card_says_what_a_document_is() {
        let text = "# Tea\n\nBlack or green.\n\n## Water ##\n```\n# no heading\n```\n#none\n";
        let card = Card::of("drinks/tea.md", text);
        assert_eq!((card.title.as_str(), card.words), ("Tea", 8));
        assert_eq!(card.page("drinks/tea.md"), "# Tea\n\ndrinks/tea.md, 8 words\n\n- Tea\n  - Water ##\n");
        assert_eq!(Card::of("a/list.txt", "milk").page("a/list.txt"), "# list.txt\n\na/list.txt, 1 word\n");
    }

    #[test]
    fn another_text_has_another_card() {
        assert_eq!(Card::of("a", "one two"), Card::of("a", "one two"));
        assert_ne!(Card::of("a", "one two"), Card::of("a", "two one"));
    }

    #[test]
    fn a_card_is_short_whatever_the_document_is() {
        let card = Card::of("a", &format!("# {}\n", "long ".repeat(500)).repeat(500));
        assert!(card.page("a").len() < 10_000, "{}", card.page("a").len());
    }
}
