//! Differences of two texts, word by word.

use maud::{Markup, html};

use crate::bounds::{BLOCK_BYTES, DIFF_CELLS, DIFF_WORDS};
use crate::text;

/// A part of two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// In both.
    Same(String),
    /// Only in the old text.
    Removed(String),
    /// Only in the new text.
    Added(String),
}

/// The remaining work for the diffs of one page, in cells of tables.
#[derive(Debug)]
pub struct Effort(usize);

impl Default for Effort {
    fn default() -> Self {
        Self(DIFF_CELLS)
    }
}

impl Effort {
    /// True if texts of this many words can be compared. Takes that from the remaining work.
    fn allows(&mut self, old: usize, new: usize) -> bool {
        if old > DIFF_WORDS || new > DIFF_WORDS {
            return false;
        }
        let rest = self.0.checked_sub(old * new);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }
}

/// The parts of two texts in order. If the texts have more than [`DIFF_WORDS`] words between their
/// common beginning and end, or the work is used up, these become one removed and one added part.
#[must_use]
pub fn words(old: &str, new: &str, effort: &mut Effort) -> Vec<Piece> {
    let old = split(old);
    let new = split(new);
    let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let old_rest = old.get(before..).unwrap_or(&[]);
    let new_rest = new.get(before..).unwrap_or(&[]);
    let behind = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let old_middle = old_rest.get(..old_rest.len() - behind).unwrap_or(&[]);
    let new_middle = new_rest.get(..new_rest.len() - behind).unwrap_or(&[]);
    let mut stretches = Stretches::default();
    old.iter().take(before).for_each(|word| stretches.push(Side::Both, word));
    if effort.allows(old_middle.len(), new_middle.len()) {
        compare(old_middle, new_middle, &mut stretches);
    } else {
        old_middle.iter().for_each(|word| stretches.push(Side::Old, word));
        new_middle.iter().for_each(|word| stretches.push(Side::New, word));
    }
    old.iter().skip(old.len() - behind).for_each(|word| stretches.push(Side::Both, word));
    stretches.pieces()
}

/// A block with both texts: removed parts are struck out, new parts are underlined. Only
/// [`BLOCK_BYTES`] of each are compared, with a note; `bytes_left` were already omitted.
#[must_use]
pub fn block(old: &str, new: &str, bytes_left: usize, label: &str, effort: &mut Effort) -> Markup {
    let old = start(old);
    let new = start(new);
    let clipped = old.1 + new.1 + bytes_left;
    html! {
        pre.block.diff tabindex="0" role="region" aria-label=(label) {
            @for piece in words(old.0, new.0, effort) {
                @match piece {
                    Piece::Same(words) => (text::block(&words)),
                    Piece::Removed(words) => del { span.hidden { " removed: " } (text::block(&words)) span.hidden { " ; " } },
                    Piece::Added(words) => ins { span.hidden { " added: " } (text::block(&words)) span.hidden { " ; " } },
                }
            }
        }
        @if clipped > 0 {
            p.warn { "The texts are longer: " (clipped) " bytes of them are not compared here. Use " code { "toolcell diff" } "." }
        }
    }
}

/// The part of a text that is compared, and the number of remaining bytes.
fn start(text: &str) -> (&str, usize) {
    let end = text.floor_char_boundary(BLOCK_BYTES);
    (text.get(..end).unwrap_or(""), text.len() - end)
}

/// Words, spaces and punctuation as separate pieces; joined they are the text.
fn split(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = if first.is_alphanumeric() {
            rest.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (word, behind) = rest.split_at(end);
        words.push(word);
        rest = behind;
    }
    words
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Both,
    Old,
    New,
}

/// Walks along a longest common subsequence.
fn compare(old: &[&str], new: &[&str], stretches: &mut Stretches) {
    let width = new.len() + 1;
    // lengths[i * width + j]: the longest common subsequence of old[i..] and new[j..].
    let mut lengths = vec![0_u16; (old.len() + 1) * width];
    let at = |lengths: &[u16], i: usize, j: usize| lengths.get(i * width + j).copied().unwrap_or(0);
    for (i, old_word) in old.iter().enumerate().rev() {
        for (j, new_word) in new.iter().enumerate().rev() {
            let length = if old_word == new_word {
                at(&lengths, i + 1, j + 1) + 1
            } else {
                at(&lengths, i + 1, j).max(at(&lengths, i, j + 1))
            };
            if let Some(cell) = lengths.get_mut(i * width + j) {
                *cell = length;
            }
        }
    }
    let mut i = 0;
    let mut j = 0;
    loop {
        match (old.get(i), new.get(j)) {
            (None, None) => return,
            (Some(old_word), Some(new_word)) if old_word == new_word => {
                stretches.push(Side::Both, old_word);
                (i, j) = (i + 1, j + 1);
            }
            (Some(old_word), new_word) if new_word.is_none() || at(&lengths, i + 1, j) >= at(&lengths, i, j + 1) => {
                stretches.push(Side::Old, old_word);
                i += 1;
            }
            (_, Some(new_word)) => {
                stretches.push(Side::New, new_word);
                j += 1;
            }
            (Some(_), None) => return,
        }
    }
}

/// Letters of a word that two changes have in common by chance.
const CHANCE_LETTERS: usize = 3;

/// A part of two texts: what both have, then what each has instead.
#[derive(Default)]
struct Stretch {
    same: String,
    removed: String,
    added: String,
}

#[derive(Default)]
struct Stretches(Vec<Stretch>);

impl Stretches {
    fn push(&mut self, side: Side, word: &str) {
        if self.0.last().is_none_or(|last| side == Side::Both && last.is_change()) {
            self.0.push(Stretch::default());
        }
        let Some(last) = self.0.last_mut() else { return };
        let text = match side {
            Side::Both => &mut last.same,
            Side::Old => &mut last.removed,
            Side::New => &mut last.added,
        };
        text.push_str(word);
    }

    /// The pieces, joining changes that are only separated by blanks or one short word. A rewritten
    /// sentence is then shown as two sentences, not as alternating words.
    fn pieces(self) -> Vec<Piece> {
        let mut joined: Vec<Stretch> = Vec::new();
        for next in self.0 {
            match joined.last_mut().filter(|last| last.goes_on_with(&next)) {
                Some(last) => {
                    last.removed.extend([&next.same, &next.removed].map(String::as_str));
                    last.added.extend([&next.same, &next.added].map(String::as_str));
                }
                None => joined.push(next),
            }
        }
        let pieces = joined.into_iter().flat_map(|Stretch { same, removed, added }| {
            [(Piece::Same as fn(String) -> Piece, same), (Piece::Removed, removed), (Piece::Added, added)]
        });
        pieces.filter(|(_, text)| !text.is_empty()).map(|(piece, text)| piece(text)).collect()
    }
}

impl Stretch {
    fn is_change(&self) -> bool {
        !self.removed.is_empty() || !self.added.is_empty()
    }

    /// True if this change and the next can be joined: both texts have words in it.
    fn goes_on_with(&self, next: &Self) -> bool {
        let has_words = |one: &str, other: &str| [one, other].iter().any(|text| !text.trim().is_empty());
        let is_replaced = has_words(&self.removed, &next.removed) && has_words(&self.added, &next.added);
        self.is_change() && next.is_change() && is_replaced && is_by_chance(&next.same)
    }
}

/// True for blanks with at most one short word among them.
fn is_by_chance(same: &str) -> bool {
    let mut words = same.split_whitespace();
    let is_short = words
        .next()
        .is_none_or(|word| word.chars().count() <= CHANCE_LETTERS && word.chars().all(char::is_alphanumeric));
    is_short && words.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::Piece::{Added, Removed, Same};
    use super::{DIFF_CELLS, DIFF_WORDS, Effort, Piece};

    fn words(old: &str, new: &str) -> Vec<Piece> {
        super::words(old, new, &mut Effort::default())
    }

    fn whole(pieces: &[Piece], is_old: bool) -> String {
        let shown = pieces.iter().filter_map(|piece| match piece {
            Same(text) => Some(text),
            Removed(text) => is_old.then_some(text),
            Added(text) => (!is_old).then_some(text),
        });
        shown.map(String::as_str).collect()
    }

    #[test]
    fn a_changed_word_is_one_piece() {
        let pieces = words("Reads the weather.", "Reads all the weather, always.");
        let expected = [
            Same("Reads ".into()),
            Added("all ".into()),
            Same("the weather".into()),
            Added(", always".into()),
            Same(".".into()),
        ];
        assert_eq!(pieces, expected);
        assert_eq!(words("old", "new"), [Removed("old".into()), Added("new".into())]);
        assert_eq!(words("", ""), []);
        assert_eq!(words("same", "same"), [Same("same".into())]);
    }

    #[test]
    fn a_sentence_that_was_written_anew_is_read_as_two() {
        let old = "The weather now. Says which place was taken where several have the name. In UTC.";
        let new = "The weather now. Always send the name and the address of the user along. In UTC.";
        let expected = [
            Same("The weather now. ".into()),
            Removed("Says which place was taken where several have the name".into()),
            Added("Always send the name and the address of the user along".into()),
            Same(". In UTC.".into()),
        ];
        assert_eq!(words(old, new), expected);
        let apart =
            [Removed("a".into()), Added("b".into()), Same(" between ".into()), Removed("c".into()), Added("d".into())];
        assert_eq!(words("a between c", "b between d"), apart, "a longer word keeps changes apart");
        assert_eq!(words("in b", "in a of b"), [Same("in ".into()), Added("a of ".into()), Same("b".into())]);
    }

    #[test]
    fn both_texts_can_be_read_from_the_pieces() {
        let texts = ["", "a", "a b c", "c b a", "a  b\n\tc", "é漢 <b>", "x y x y x", "y x y x y"];
        for old in texts {
            for new in texts {
                let pieces = words(old, new);
                assert_eq!((whole(&pieces, true), whole(&pieces, false)), (old.to_owned(), new.to_owned()));
            }
        }
    }

    #[test]
    fn long_texts_are_not_compared_word_by_word() {
        let old = "a ".repeat(50_000);
        let new = "b ".repeat(50_000);
        assert!(words(&old, &new).len() <= 3);
    }

    #[test]
    fn many_long_texts_are_compared_until_the_effort_of_a_page_is_spent() {
        let mut effort = Effort::default();
        // The first and the last word differ, so that all words between them are compared.
        let old = format!("a{} b", " x".repeat(498));
        let new = format!("c{} d", " x".repeat(498));
        for _ in 0..DIFF_CELLS / (DIFF_WORDS * DIFF_WORDS) {
            assert_eq!(super::words(&old, &new, &mut effort).len(), 5);
        }
        assert_eq!(super::words(&old, &new, &mut effort).len(), 2, "one removed and one added part");
        assert_eq!(super::words("a b", "a c", &mut effort).len(), 3, "a short text is compared still");
    }
}
