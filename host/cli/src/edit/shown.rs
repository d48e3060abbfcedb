//! The lines in which two texts differ, for people.
use crate::terminal::{green, red};
use toolcell_policy::Style;

/// Lines of a text up to which the shortest difference is computed. Beyond that, one block is
/// shown.
const LINES_MAX: usize = 4_000;

/// Unchanged lines around each change of a unified difference, as other programs have them.
const CONTEXT_LINES: usize = 3;

/// A line of two texts: in the old one, the new one or both.
struct ComparedLine<'t> {
    sign: char,
    text: &'t str,
}

/// Removed and added lines, each with its sign, in the order of the texts.
pub fn difference(old: &str, new: &str, style: Style) -> String {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let mut text = String::new();
    for line in compared(&old, &new) {
        let shown = format!("{} {}", line.sign, line.text);
        match line.sign {
            '-' => text.push_str(&format!("{}\n", red(shown.trim_end(), style))),
            '+' => text.push_str(&format!("{}\n", green(shown.trim_end(), style))),
            _ => {}
        }
    }
    text
}

/// The difference of two texts of a file in the unified format, which `patch` and `git apply` take;
/// empty if there is none.
pub fn unified(name: &str, old: &str, new: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let lines = compared(&old, &new);
    let changes: Vec<usize> = lines.iter().enumerate().filter(|(_, line)| line.sign != ' ').map(|(at, _)| at).collect();
    let mut text = String::new();
    let mut left = changes.as_slice();
    while let Some(first) = left.first() {
        let near =
            left.windows(2).take_while(|pair| matches!(pair, [one, next] if next - one <= 2 * CONTEXT_LINES)).count();
        let (hunk, rest) = left.split_at_checked(near + 1).unwrap_or((left, &[]));
        left = rest;
        let begin = first.saturating_sub(CONTEXT_LINES);
        let end = hunk.last().map_or(lines.len(), |last| (last + 1 + CONTEXT_LINES).min(lines.len()));
        text.push_str(&hunk_text(&lines, begin, end));
    }
    if text.is_empty() { text } else { format!("--- {name}\n+++ {name}\n{text}") }
}

fn hunk_text(lines: &[ComparedLine<'_>], begin: usize, end: usize) -> String {
    let count = |lines: &[ComparedLine<'_>], without: char| lines.iter().filter(|line| line.sign != without).count();
    let before = lines.get(..begin).unwrap_or_default();
    let within = lines.get(begin..end).unwrap_or_default();
    let range = |without: char| {
        let lines = count(within, without);
        // An empty range stands behind the line before it.
        let first = count(before, without) + usize::from(lines > 0);
        format!("{first},{lines}")
    };
    let mut text = format!("@@ -{} +{} @@\n", range('+'), range('-'));
    for line in within {
        text.push(line.sign);
        text.push_str(line.text);
        if !line.text.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
    text
}

/// All lines of both texts, in order.
fn compared<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<ComparedLine<'t>> {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let tail = old.iter().skip(head).rev().zip(new.iter().skip(head).rev()).take_while(|(old, new)| old == new).count();
    let old_middle = old.get(head..old.len() - tail).unwrap_or_default();
    let new_middle = new.get(head..new.len() - tail).unwrap_or_default();
    let is_long = old_middle.len().max(new_middle.len()) > LINES_MAX;
    let kept = if is_long { Vec::new() } else { common(old_middle, new_middle) };
    let line = |sign: char| move |text: &&'t str| ComparedLine { sign, text };
    let mut lines: Vec<ComparedLine<'t>> = old.iter().take(head).map(line(' ')).collect();
    let mut at_old = 0;
    let mut at_new = 0;
    for (in_old, in_new) in kept.into_iter().chain([(old_middle.len(), new_middle.len())]) {
        lines.extend(old_middle.iter().take(in_old).skip(at_old).map(line('-')));
        lines.extend(new_middle.iter().take(in_new).skip(at_new).map(line('+')));
        lines.extend(old_middle.get(in_old).map(line(' ')));
        (at_old, at_new) = (in_old + 1, in_new + 1);
    }
    lines.extend(old.iter().skip(old.len() - tail).map(line(' ')));
    lines
}

/// The longest common subsequence, as indices in both.
fn common(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
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
    #[test]
    fn a_unified_difference_has_hunks_with_their_surroundings() {
        let old: String = (1..=20).map(|number| format!("{number}\n")).collect();
        let new = old.replace("2\n3\n", "2\nx\n").replace("\n18\n", "\n");
        assert_eq!(
            unified("m.toml", &old, &new),
            "--- m.toml\n+++ m.toml\n@@ -1,6 +1,6 @@\n 1\n 2\n-3\n+x\n 4\n 5\n 6\n@@ -15,6 +15,5 @@\n 15\n 16\n 17\n-18\n 19\n 20\n"
        );
        assert_eq!(unified("m.toml", &old, &old), "");
        assert_eq!(unified("m", "a", "b\n"), "--- m\n+++ m\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n");
    }
}
