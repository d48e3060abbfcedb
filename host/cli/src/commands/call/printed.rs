//! Output of a tool, for a person who calls it by hand. Clients never see it.
use toolcell_mcp::{CallResult, ContentKind, ResultContent, sanitize};
use toolcell_sandbox::Captured;

/// Key in the result's `_meta` for the end of the output, with `--json`.
pub const KEY: &str = "toolcell/printed";

/// Key for the lines that it logged, with `--json`.
pub const LOG_KEY: &str = "toolcell/logged";

/// Most bytes of output to show, from its end: panics and backtraces come last.
const SHOWN_BYTES_MAX: usize = 4 << 10;

/// The end of a tool's output.
pub struct Printed {
    /// Whole lines, safe for a terminal; empty if it printed nothing.
    pub text: String,
    /// True if it printed more.
    is_cut: bool,
}

impl Printed {
    pub fn end_of(captured: &Captured) -> Self {
        Self::up_to(SHOWN_BYTES_MAX, captured)
    }

    /// All of the output, which the limit `log` bounds.
    pub fn whole(captured: &Captured) -> Self {
        Self::up_to(usize::MAX, captured)
    }

    fn up_to(bytes_max: usize, captured: &Captured) -> Self {
        let text = captured.text.trim_end();
        let over = text.len().saturating_sub(bytes_max);
        let start = (over..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let shown = text.get(start..).unwrap_or_default();
        // Cut at the beginning of a line, if there is one.
        let whole = shown.split_once('\n').filter(|_| start > 0).map_or(shown, |(_, rest)| rest);
        Self { text: sanitize::text(whole).into_owned(), is_cut: start > 0 || captured.dropped_bytes > 0 }
    }

    /// The text to show after the result of this tool; empty if nothing was printed, or an error's
    /// text already contains it.
    pub fn beside(&self, tool: &str, result: &CallResult) -> String {
        let last = self.text.lines().last().unwrap_or_default();
        let is_said = |content: &ResultContent| match &content.kind {
            ContentKind::Text(text) => sanitize::text(text).contains(last),
            _ => false,
        };
        if self.text.is_empty() || (result.is_error && result.content.iter().any(is_said)) {
            return String::new();
        }
        let cut = if self.is_cut { ", of which this is a part" } else { "" };
        format!("\n{} printed{cut}:\n{}\n", sanitize::line(tool), self.text)
    }
}

/// The lines that this tool logged, to show after its result; empty if there are none.
pub fn logged(tool: &str, lines: &str) -> String {
    if lines.is_empty() { String::new() } else { format!("\n{} logged:\n{lines}", sanitize::line(tool)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Printed {
        Printed::end_of(&Captured { text: text.to_owned(), dropped_bytes: 0 })
    }

    #[test]
    fn the_end_of_what_was_printed_is_whole_lines_without_escapes() {
        assert_eq!(of("one\n\u{1b}[31mtwo\n\n").text.lines().next(), Some("one"));
        assert!(!of("\u{1b}[31mred").text.contains('\u{1b}'));
        let long = of(&format!("{}\nlast\nline\n", "é".repeat(SHOWN_BYTES_MAX)));
        assert_eq!((long.text.as_str(), long.is_cut), ("last\nline", true));
        assert!(of(&"é".repeat(SHOWN_BYTES_MAX)).text.len() <= SHOWN_BYTES_MAX);
        assert_eq!(of(" \n").text, "");
        let lines = "line\n".repeat(SHOWN_BYTES_MAX);
        let whole = Printed::whole(&Captured { text: lines.clone(), dropped_bytes: 0 });
        assert_eq!((whole.text.as_str(), whole.is_cut), (lines.trim_end(), false));
        assert_eq!(logged("count", "info: one\n"), "\ncount logged:\ninfo: one\n");
    }

    #[test]
    fn what_was_printed_stands_behind_any_answer_with_the_tools_name() {
        let content = vec![ResultContent::text("counting")];
        let answered = CallResult { content, is_error: false, ..CallResult::error("") };
        assert_eq!(of("one\ncounting\n").beside("count", &answered), "\ncount printed:\none\ncounting\n");
        assert_eq!(of("").beside("count", &answered), "");
        let dropped = Printed::end_of(&Captured { text: "one\n".to_owned(), dropped_bytes: 7 });
        assert_eq!(dropped.beside("count", &answered), "\ncount printed, of which this is a part:\none\n");
    }

    #[test]
    fn what_an_error_says_is_not_said_twice() {
        let failed = CallResult::error("the program ended with exit code 1\n\nstandard error:\nno such file");
        assert_eq!(of("reading\nno such file").beside("read", &failed), "");
        assert_eq!(of("").beside("read", &failed), "");
        assert_eq!(of("other").beside("read", &failed), "\nread printed:\nother\n");
    }
}
