//! A diff by lines, in the unified format that `patch` and `git apply` read. Holds no counting.

use crate::comparison::{Comparison, Ignore, steps};
use similar::{DiffOp, DiffTag, group_diff_ops};
use std::fmt::Write as _;
use std::ops::Range;

/// Compares two texts line by line; gives the numbers and the unified diff with the two names in its head.
pub fn diff(before: &str, after: &str, ignore: Ignore, context: usize, names: &[String; 2]) -> (Comparison, String) {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let steps = steps(&old, &new, |line| ignore.essence(line));
    let comparison = Comparison::of(&steps);
    let [before_name, after_name] = names;
    let mut shown = format!("--- {before_name}\n+++ {after_name}\n");
    for hunk in group_diff_ops(steps, context) {
        push_head(&mut shown, &hunk);
        for step in &hunk {
            push_step(&mut shown, step, &old, &new);
        }
    }
    (comparison, shown)
}

fn push_head(shown: &mut String, hunk: &[DiffOp]) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
    let old = first.old_range().start..last.old_range().end;
    let new = first.new_range().start..last.new_range().end;
    // Writing to a string cannot fail.
    let _ = writeln!(shown, "@@ -{} +{} @@", range(&old), range(&new));
}

/// Lines count from 1; an empty range names the line before it; a single line needs no count.
fn range(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn push_step(shown: &mut String, step: &DiffOp, old: &[&str], new: &[&str]) {
    if step.tag() == DiffTag::Equal {
        push_lines(shown, ' ', old, step.old_range());
    } else {
        push_lines(shown, '-', old, step.old_range());
        push_lines(shown, '+', new, step.new_range());
    }
}

fn push_lines(shown: &mut String, mark: char, lines: &[&str], range: Range<usize>) {
    for line in lines.get(range).unwrap_or_default() {
        shown.push(mark);
        shown.push_str(line);
        if !line.ends_with('\n') {
            shown.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str, ignore: Ignore, context: usize) -> String {
        diff(before, after, ignore, context, &["a".to_owned(), "b".to_owned()]).1
    }

    #[test]
    fn hunks_look_as_patch_wants_them() {
        for (before, after, context, hunks) in [
            ("", "x\n", 3, "@@ -0,0 +1 @@\n+x\n"),
            ("x\ny\n", "", 3, "@@ -1,2 +0,0 @@\n-x\n-y\n"),
            ("a\nb\nc\n", "a\nc\n", 0, "@@ -2 +1,0 @@\n-b\n"),
            ("a", "a\n", 3, "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
            (
                "1\n2\n3\n4\n5\n6\n7\n8\n",
                "0\n2\n3\n4\n5\n6\n7\n9\n",
                1,
                "@@ -1,2 +1,2 @@\n-1\n+0\n 2\n@@ -7,2 +7,2 @@\n 7\n-8\n+9\n",
            ),
        ] {
            assert_eq!(
                shown(before, after, Ignore::Nothing, context),
                format!("--- a\n+++ b\n{hunks}"),
                "{before:?} {after:?}"
            );
        }
    }

    #[test]
    fn ignored_differences_are_context() {
        assert_eq!(
            shown("a \nb\n", "a\nc\n", Ignore::TrailingBlanks, 3),
            "--- a\n+++ b\n@@ -1,2 +1,2 @@\n a \n-b\n+c\n"
        );
    }
}
