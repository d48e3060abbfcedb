//! A diff by words, marked within the text: `[-old-]{+new+}`. Holds no counting.

use crate::comparison::{Comparison, Ignore, steps};
use similar::{DiffOp, DiffTag, group_diff_ops};

/// Stands for unchanged words that are left out.
const ELLIPSIS: &str = " … ";

/// Compares two texts word by word; gives the numbers and the text with its changes marked.
pub fn diff(before: &str, after: &str, ignore: Ignore, context: usize) -> (Comparison, String) {
    let old = words(before);
    let new = words(after);
    let steps = steps(&old, &new, |word| ignore.essence(word.trim_end()));
    let comparison = Comparison::of(&steps);
    let mut shown = String::new();
    let mut end = 0;
    for part in group_diff_ops(steps, context) {
        if part.first().is_some_and(|first| first.old_range().start > end) {
            push_ellipsis(&mut shown);
        }
        for step in &part {
            push_step(&mut shown, step, &old, &new);
            end = step.old_range().end;
        }
    }
    if end < old.len() {
        push_ellipsis(&mut shown);
    }
    (comparison, shown.trim_end().to_owned())
}

/// Runs of letters and digits, and single other characters, each with the blanks that follow it.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = if first.is_alphanumeric() {
            rest.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let blanks = rest.get(word..).map_or(0, |after| after.len() - after.trim_start().len());
        let (here, next) = rest.split_at_checked(word + blanks).unwrap_or((rest, ""));
        words.push(here);
        rest = next;
    }
    words
}

fn push_step(shown: &mut String, step: &DiffOp, old: &[&str], new: &[&str]) {
    let old = old.get(step.old_range()).unwrap_or_default().concat();
    if step.tag() == DiffTag::Equal {
        shown.push_str(&old);
        return;
    }
    let new = new.get(step.new_range()).unwrap_or_default().concat();
    for (text, [open, close]) in [(&old, ["[-", "-]"]), (&new, ["{+", "+}"])] {
        if !text.is_empty() {
            shown.push_str(open);
            shown.push_str(text.trim_end());
            shown.push_str(close);
        }
    }
    // The blanks after the marks are those of the text that stays.
    let last = if new.is_empty() { &old } else { &new };
    shown.push_str(last.get(last.trim_end().len()..).unwrap_or(""));
}

fn push_ellipsis(shown: &mut String) {
    shown.truncate(shown.trim_end().len());
    shown.push_str(if shown.is_empty() { ELLIPSIS.trim_start() } else { ELLIPSIS });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_marked_in_their_place() {
        let long = "one two three four five six seven eight nine ten";
        for (before, after, marked) in [
            ("a b c", "a c", "a [-b-] c"),
            ("a c", "a b c", "a {+b+} c"),
            ("", "new words", "{+new words+}"),
            ("old", "", "[-old-]"),
            ("Hello, world", "Hello world", "Hello[-,-] world"),
            (long, "one two three four five 6 seven eight nine ten", "… four five [-six-]{+6+} seven eight …"),
            ("straße über", "straße unter", "straße [-über-]{+unter+}"),
        ] {
            assert_eq!(diff(before, after, Ignore::Nothing, 2).1, marked, "{before:?} {after:?}");
        }
    }

    #[test]
    fn how_a_text_is_broken_into_lines_does_not_matter() {
        assert!(diff("a b\nc", "  a\nb c\n", Ignore::Nothing, 3).0.is_identical());
    }
}
