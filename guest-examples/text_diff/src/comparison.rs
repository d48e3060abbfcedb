//! Comparing two lists of pieces (lines or words) and counting what changed. Holds nothing about how it is shown.

use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline};
use std::time::{Duration, Instant};

/// How long the shortest way from one text to the other is looked for. Past it, what is left is shown as replaced:
/// long texts with little in common would take minutes for a result that nobody reads.
const SEARCH_MAX: Duration = Duration::from_millis(500);

/// Differences that do not count.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ignore {
    /// Every difference counts.
    #[default]
    Nothing,
    /// Blanks at the end of a piece.
    TrailingBlanks,
    /// Blanks anywhere.
    Blanks,
    /// Capitals or not.
    Case,
}

/// What changed, in numbers.
#[derive(Debug, Serialize)]
pub struct Comparison {
    identical: bool,
    added: usize,
    removed: usize,
    unchanged: usize,
    changes: usize,
    similarity: f64,
}

impl Ignore {
    /// What is left of a piece when that which does not count is taken out.
    pub fn essence(self, piece: &str) -> String {
        match self {
            Self::Nothing => piece.to_owned(),
            Self::TrailingBlanks => piece.trim_end().to_owned(),
            Self::Blanks => piece.chars().filter(|letter| !letter.is_whitespace()).collect(),
            Self::Case => piece.to_lowercase(),
        }
    }
}

impl Comparison {
    /// Counts over the steps that lead from one list to the other.
    pub fn of(steps: &[DiffOp]) -> Self {
        let mut added = 0;
        let mut removed = 0;
        let mut unchanged = 0;
        let mut changes = 0;
        for step in steps {
            let old = step.old_range().len();
            let new = step.new_range().len();
            if step.tag() == DiffTag::Equal {
                unchanged += old;
            } else {
                removed += old;
                added += new;
                changes += 1;
            }
        }
        let all = 2 * unchanged + added + removed;
        let part = if all == 0 { 1.0 } else { (2 * unchanged) as f64 / all as f64 };
        Self { identical: changes == 0, added, removed, unchanged, changes, similarity: thousandths(part) }
    }

    /// Whether nothing changed.
    pub fn is_identical(&self) -> bool {
        self.identical
    }
}

/// The steps that lead from one list of pieces to the other, where pieces of the same essence are the same.
pub fn steps(before: &[&str], after: &[&str], essence: impl Fn(&str) -> String) -> Vec<DiffOp> {
    let essences = |pieces: &[&str]| -> Vec<String> { pieces.iter().map(|piece| essence(piece)).collect() };
    let deadline = Instant::now().checked_add(SEARCH_MAX);
    capture_diff_slices_deadline(Algorithm::Myers, &essences(before), &essences(after), deadline)
}

/// Rounded so that it reads well. Texts that differ at all are never rounded up to equal.
fn thousandths(part: f64) -> f64 {
    if part < 1.0 { ((part * 1000.0).round() / 1000.0).min(0.999) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_not_in_the_essence() {
        for (ignore, essence) in [
            (Ignore::Nothing, " A  b \n"),
            (Ignore::TrailingBlanks, " A  b"),
            (Ignore::Blanks, "Ab"),
            (Ignore::Case, " a  b \n"),
        ] {
            assert_eq!(ignore.essence(" A  b \n"), essence, "{ignore:?}");
        }
    }

    #[test]
    fn nearly_alike_is_not_alike() {
        let before: Vec<String> = (0..9000).map(|line| line.to_string()).collect();
        let mut after = before.clone();
        after.push("one more".to_owned());
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        let comparison = Comparison::of(&steps(&before, &after, str::to_owned));
        assert!(!comparison.is_identical());
        assert_eq!(comparison.similarity, 0.999);
        assert_eq!((comparison.added, comparison.unchanged), (1, 9000));
    }
}
