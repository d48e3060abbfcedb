//! The lines in which two texts differ, for people.
use crate::terminal::{green, red};
use toolcell_policy::Style;

/// Lines of a text up to which the shortest difference is computed. Beyond that, one block is
/// shown.
const LINES_MAX: usize = 4_000;

/// Removed and added lines, each with its sign, in the order of the texts.
pub fn difference(old: &str, new: &str, style: Style) -> String {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let tail = old.iter().skip(head).rev().zip(new.iter().skip(head).rev()).take_while(|(old, new)| old == new).count();
    let middle = |lines: &[&str]| -> Vec<String> {
        lines.iter().skip(head).take(lines.len().saturating_sub(head + tail)).map(|line| (*line).to_owned()).collect()
    };
    let old = middle(&old);
    let new = middle(&new);
    let kept = if old.len().max(new.len()) > LINES_MAX { Vec::new() } else { common(&old, &new) };
    let mut text = String::new();
    let mut at_old = 0;
    let mut at_new = 0;
    for (in_old, in_new) in kept.into_iter().chain([(old.len(), new.len())]) {
        for line in old.iter().take(in_old).skip(at_old) {
            text.push_str(&format!("{}\n", red(format!("- {line}").trim_end(), style)));
        }
        for line in new.iter().take(in_new).skip(at_new) {
            text.push_str(&format!("{}\n", green(format!("+ {line}").trim_end(), style)));
        }
        (at_old, at_new) = (in_old + 1, in_new + 1);
    }
    text
}

/// The longest common subsequence, as indices in both.
fn common(old: &[String], new: &[String]) -> Vec<(usize, usize)> {
    let width = new.len() + 1;
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    let at = |row: usize, column: usize| row * width + column;
    let length = |lengths: &[u32], row, column| lengths.get(at(row, column)).copied().unwrap_or(0);
    for (row, before) in old.iter().enumerate().rev() {
        for (column, after) in new.iter().enumerate().rev() {
            let longest = if before == after {
                length(&lengths, row + 1, column + 1) + 1
            } else {
                length(&lengths, row + 1, column).max(length(&lengths, row, column + 1))
            };
            if let Some(cell) = lengths.get_mut(at(row, column)) {
                *cell = longest;
            }
        }
    }
    let mut row = 0;
    let mut column = 0;
    let mut kept = Vec::new();
    while let (Some(before), Some(after)) = (old.get(row), new.get(column)) {
        if before == after {
            kept.push((row, column));
            (row, column) = (row + 1, column + 1);
        } else if length(&lengths, row + 1, column) >= length(&lengths, row, column + 1) {
            row += 1;
        } else {
            column += 1;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_lines_that_differ_are_shown() {
        assert_eq!(difference("a\nb\nc\nd\ne\n", "a\nc\nx\nd\ny\ne\n", Style::Plain), "- b\n+ x\n+ y\n");
        assert_eq!(difference("a\n", "a\n", Style::Plain), "");
        assert_eq!(difference("", "a\n", Style::Plain), "+ a\n");
        assert_eq!(difference("a\nb\n", "", Style::Plain), "- a\n- b\n");
    }
}
