//! Draws problems for people: the line, a caret, a label and a hint.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Severity, Source, masked, visible};
use crate::shell::of_manifest;

/// The use of colours in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Text alone.
    Plain,
    /// With ANSI colours, for a terminal.
    Color,
}

/// Draws several problems, an empty line between them. Ends with a newline where there is any.
#[must_use]
pub fn render_all(source: &Source<'_>, problems: &[Diagnostic], style: Style) -> String {
    let mut text = String::new();
    for problem in problems {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&problem.render(source, style));
        text.push('\n');
    }
    text
}

impl Diagnostic {
    /// Draws the problem, without a newline at the end:
    ///
    /// ```text
    /// error[limits::unit]: deadline needs a unit
    ///   --> toolcell.toml:12:12
    ///    |
    /// 12 | deadline = 30
    ///    |            ^^ a number without a unit
    ///    |
    ///    = hint: write "30s" or "500ms"
    /// ```
    #[must_use]
    pub fn render(&self, source: &Source<'_>, style: Style) -> String {
        let name = visible(source.name);
        let level = match self.severity() {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(self.message()).id(self.code());
        let group = match self.span() {
            Some(span) => Group::with_title(title).element(snippet(self, source, span.start, span.end).path(&name)),
            None => Group::with_title(title).element(Origin::path(&name)),
        };
        let hint = self.hint_text().map(|hint| of_manifest(hint, source.name));
        let group = match &hint {
            Some(hint) => group.element(Level::HELP.with_name("hint").message(&**hint)),
            None => group,
        };
        let renderer = match style {
            Style::Plain => Renderer::plain(),
            Style::Color => Renderer::styled(),
        };
        renderer.render(&[group])
    }
}

/// The line that a span starts on. Only this line is passed to the renderer, so that the cost does
/// not depend on the file, and a span over several lines is drawn on its first.
fn snippet<'a>(
    problem: &'a Diagnostic,
    source: &Source<'a>,
    start: usize,
    end: usize,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let before = source.before(start);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let rest = source.text.get(line_start..).unwrap_or_default();
    let line = rest.split('\n').next().unwrap_or_default().trim_end_matches('\r');
    let from = (before.len() - line_start).min(line.len());
    let to = line.floor_char_boundary(end.saturating_sub(line_start)).max(from);
    let before = masked(line.get(..from).unwrap_or_default());
    let marked = masked(line.get(from..to).unwrap_or_default());
    let after = if problem.conceals() { " …".to_owned() } else { masked(line.get(to..).unwrap_or_default()) };
    let annotation = AnnotationKind::Primary.span(before.len()..before.len() + marked.len());
    let annotation = match problem.label_text() {
        Some(label) => annotation.label(label),
        None => annotation,
    };
    let line_start = source.position(start).line;
    Snippet::source(before + &marked + &after).line_start(line_start).annotation(annotation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_drawn_with_its_line_caret_label_and_hint() {
        let text = "\n".repeat(11) + "deadline = 30\n";
        let source = Source { name: "toolcell.toml", text: &text };
        let problem = Diagnostic::error("limits::unit", "deadline needs a unit")
            .at(22..24)
            .label("a number without a unit")
            .hint("write \"30s\" or \"500ms\"");
        let expected = "\
error[limits::unit]: deadline needs a unit
  --> toolcell.toml:12:12
   |
12 | deadline = 30
   |            ^^ a number without a unit
   |
   = hint: write \"30s\" or \"500ms\"";
        assert_eq!(problem.render(&source, Style::Plain), expected);
        let colored = problem.render(&source, Style::Color);
        assert!(colored.contains("\u{1b}[") && colored.contains("deadline needs a unit"));
    }

    #[test]
    fn spans_at_odd_places_are_drawn_without_fail() {
        let source = Source { name: "m", text: "é = 1\r\nb" };
        for (start, end) in [(0, 1), (1, 2), (3, 99), (8, 8), (99, 120), (7, 3)] {
            let drawn = Diagnostic::error("x::y", "z").at(start..end).render(&source, Style::Plain);
            assert!(drawn.starts_with("error[x::y]: z\n") && drawn.contains("--> m:"), "{start}..{end}: {drawn}");
        }
        let empty = Diagnostic::error("x::y", "z").at(0..0).render(&Source { name: "m", text: "" }, Style::Plain);
        assert!(empty.contains("--> m:1:1"), "{empty}");
    }

    #[test]
    fn a_line_is_drawn_without_what_a_terminal_would_obey() {
        let text = "# \u{200b}\u{00ad}\u{1b}[31m x\u{202e}y \u{feff}\u{9b}31m\u{85}\u{7f}";
        let at = text.find('x').unwrap_or_default();
        let source = Source { name: "m\u{1b}", text };
        let drawn = Diagnostic::error("x::y", "z").at(at..at + 1).render(&source, Style::Plain);
        let caret = "# ??\u{241b}[31m x?y ??31m?\u{2421}".replace('?', "\u{fffd}");
        assert_eq!(drawn, format!("error[x::y]: z\n --> m\\u{{1b}}:1:11\n  |\n1 | {caret}\n  |           ^"));
    }

    #[test]
    fn a_hint_names_the_manifest_in_its_commands() {
        let problem = Diagnostic::error("x::y", "z").hint("`toolcell pull` fetches it");
        for (name, expected) in [
            ("toolcell.toml", "`toolcell pull` fetches it"),
            ("../my tools/t.toml", "`toolcell pull --manifest '../my tools/t.toml'` fetches it"),
        ] {
            let source = Source { name, text: "" };
            let drawn = problem.render(&source, Style::Plain);
            assert!(drawn.ends_with(&format!("= hint: {expected}")), "{drawn}");
            assert_eq!(problem.to_json(&source)["hint"], expected);
        }
    }

    #[test]
    fn a_problem_of_the_whole_file_names_the_file() {
        let source = Source { name: "m.toml", text: "" };
        let drawn =
            Diagnostic::warning("components::none", "no components").hint("add one").render(&source, Style::Plain);
        assert_eq!(drawn, "warning[components::none]: no components\n--> m.toml\n = hint: add one");
    }
}
