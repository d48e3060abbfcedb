//! Output of a tool, for a person who calls it by hand. Clients never see it. Must not hold:
//! capturing it.
use toolcell_mcp::{CallResult, ContentKind, sanitize};
use toolcell_sandbox::Captured;

/// Key in the result's `_meta` for the end of the output, with `--json`.
pub const KEY: &str = "toolcell/printed";

/// Most bytes of output to show, from its end: panics and backtraces come last.
const SHOWN_BYTES_MAX: usize = 4 << 10;

/// The end of the output, safe for a terminal.
pub fn end(captured: &Captured) -> String {
    let text = captured.text.trim_end();
    let over = text.len().saturating_sub(SHOWN_BYTES_MAX);
    let start = (over..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let shown = text.get(start..).unwrap_or_default();
    // Cut at the beginning of a line, if there is one.
    let whole = shown.split_once('\n').filter(|_| start > 0).map_or(shown, |(_, rest)| rest);
    sanitize::text(whole).into_owned()
}

/// The output to print after an error; `""` if the error's text has it already.
pub fn beside(printed: &str, result: &CallResult) -> String {
    let last = printed.lines().last().unwrap_or_default();
    let is_said = result.content.iter().any(|content| match &content.kind {
        ContentKind::Text(text) => sanitize::text(text).contains(last),
        _ => false,
    });
    if printed.is_empty() || is_said { String::new() } else { format!("\nit printed:\n{printed}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        end(&Captured { text: text.to_owned(), dropped_bytes: 0 })
    }

    #[test]
    fn the_end_of_what_was_printed_is_whole_lines_without_escapes() {
        assert_eq!(of("one\n\u{1b}[31mtwo\n\n").lines().next(), Some("one"));
        assert!(!of("\u{1b}[31mred").contains('\u{1b}'));
        let long = format!("{}\nlast\nline\n", "é".repeat(SHOWN_BYTES_MAX));
        assert_eq!(of(&long), "last\nline");
        assert!(of(&"é".repeat(SHOWN_BYTES_MAX)).len() <= SHOWN_BYTES_MAX);
        assert_eq!(of(" \n"), "");
    }

    #[test]
    fn what_the_answer_says_is_not_said_twice() {
        let failed = CallResult::error("the program ended with exit code 1\n\nstandard error:\nno such file");
        assert_eq!(beside("reading\nno such file", &failed), "");
        assert_eq!(beside("", &failed), "");
        assert_eq!(beside("other", &failed), "\nit printed:\nother\n");
    }
}
