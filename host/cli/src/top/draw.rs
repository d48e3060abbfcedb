//! Drawing: a pure function from activity and state to cells.
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::Widget;
use toolcell_server::control::MinuteShown;

use super::ask::Seen;
use super::details::details;
use super::state::{TopRow, TopState, View};
use super::table::{Column, ColumnKind, cells, columns, fitting};
use super::text;

/// Rows above the table: names of views, figures, names of columns.
const HEAD: u16 = 3;

/// Rows below the table: the notice, and keys.
const FOOT: u16 = 2;

/// Columns of the names of details.
const NAMES: usize = 11;

/// The screen.
pub struct Screen<'a> {
    pub seen: &'a Seen,
    pub state: &'a TopState,
    pub has_colours: bool,
}

impl Widget for Screen<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let mut page = DrawnPage { area, buffer };
        self.tabs(&mut page);
        page.line(1, &self.figures(), Style::new());
        let (lines, style) = self.message(area.width);
        let room = area.height.saturating_sub(HEAD + FOOT);
        let rows = self.seen.rows(self.state.view);
        match self.state.chosen(&rows).and_then(|at| rows.get(at).map(|row| (at, row))) {
            Some((_, row)) if self.state.details => self.one(&mut page, row, lines.len()),
            Some((at, _)) => self.table(&mut page, &rows, at, room),
            None => page.line(HEAD, self.empty(), Style::new().add_modifier(Modifier::DIM)),
        }
        self.foot(&mut page, &lines, style);
    }
}

impl Screen<'_> {
    fn tabs(&self, page: &mut DrawnPage<'_>) {
        let mut at = page.text(0, 0, "toolcell ", self.coloured(Color::Cyan).add_modifier(Modifier::BOLD));
        for (place, view) in View::ALL.into_iter().enumerate() {
            let open = self.seen.open(view);
            let count = if open > 0 { format!(" ({open})") } else { String::new() };
            let style = match view == self.state.view {
                true => Style::new().add_modifier(Modifier::REVERSED),
                false => Style::new(),
            };
            at = page.text(at, 0, &format!(" {} {}{count} ", place + 1, view.name()), style);
        }
        if self.state.paused {
            page.text(at, 0, " paused", self.coloured(Color::Yellow));
        }
    }

    /// The figures of the last minute, of all processes.
    fn figures(&self) -> String {
        let mut sum = MinuteShown::default();
        for process in &self.seen.processes {
            let minute = &process.activity.minute;
            sum.running += minute.running;
            sum.waiting += minute.waiting;
            sum.calls_per_second += minute.calls_per_second;
            sum.p50_us = sum.p50_us.max(minute.p50_us);
            sum.p99_us = sum.p99_us.max(minute.p99_us);
            sum.errors += minute.errors;
            sum.denials += minute.denials;
        }
        minute(&sum)
    }

    fn empty(&self) -> &'static str {
        match (self.seen.processes.is_empty(), self.state.view) {
            (true, _) => "No process answers.",
            (false, View::Now) => "No call runs.",
            (false, View::Denials) => "Nothing was denied.",
            (false, View::Approvals) => "No call waits for a person.",
        }
    }

    fn table(&self, page: &mut DrawnPage<'_>, rows: &[TopRow<'_>], chosen: usize, room: u16) {
        let has_several = self.seen.processes.len() > 1;
        let columns = columns(self.state.view, has_several);
        let fitted = fitting(&columns, usize::from(page.area.width));
        let titles: Vec<String> = columns.iter().map(|column| column.title.to_owned()).collect();
        page.line(2, &row_line(&columns, &fitted, &titles), Style::new().add_modifier(Modifier::BOLD));
        let room = usize::from(room);
        let first = (chosen + 1).saturating_sub(room.max(1));
        for (line, (place, row)) in (HEAD..).zip(rows.iter().enumerate().skip(first).take(room)) {
            let style = match place == chosen {
                true => Style::new().add_modifier(Modifier::REVERSED),
                false => self.style_of(row),
            };
            page.line(line, &row_line(&columns, &fitted, &cells(row, has_several)), style);
        }
    }

    fn style_of(&self, row: &TopRow<'_>) -> Style {
        match row {
            TopRow::Denial(_, group) if group.muted => Style::new().add_modifier(Modifier::DIM),
            TopRow::Call(_, call) => match call.state.name() {
                "asking" => self.coloured(Color::Yellow),
                "stopping" => self.coloured(Color::Red),
                "waiting" => Style::new().add_modifier(Modifier::DIM),
                _ => Style::new(),
            },
            TopRow::Denial(..) | TopRow::Approval(..) => Style::new(),
        }
    }

    /// One row with all its details, above this many lines of text. The line below shows if there
    /// are more, even during a question.
    fn one(&self, page: &mut DrawnPage<'_>, row: &TopRow<'_>, said: usize) {
        let width = usize::from(page.area.width).saturating_sub(NAMES);
        let mut lines: Vec<(&str, String)> = Vec::new();
        for (name, text) in details(row) {
            let parts = text::wrapped(&text, width).into_iter().enumerate();
            lines.extend(parts.map(|(part, text)| (if part == 0 { name } else { "" }, text)));
        }
        let room = usize::from(page.area.height.saturating_sub(HEAD)).saturating_sub(said);
        // The line about further lines needs its own row next to the notice.
        let room = if lines.len() > room || said == 0 { room.saturating_sub(1) } else { room };
        let first = self.state.scrolled.min(lines.len().saturating_sub(room));
        let left = lines.len().saturating_sub(first + room);
        for (at, (name, text)) in (2..).zip(lines.iter().skip(first).take(room)) {
            page.text(0, at, name, self.coloured(Color::Cyan));
            page.text(u16::try_from(NAMES).unwrap_or(u16::MAX), at, text, Style::new());
        }
        if left > 0 {
            let above = FOOT.saturating_add(u16::try_from(said).unwrap_or(u16::MAX));
            let more = if left == 1 { "1 more line below".to_owned() } else { format!("{left} more lines below") };
            page.line(page.below(above), &more, Style::new().add_modifier(Modifier::DIM));
        }
    }

    /// The lines of the question or the notice. A question takes as many as it needs, since its end
    /// matters.
    fn message(&self, width: u16) -> (Vec<String>, Style) {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let (said, style) = match (&self.state.question, &self.state.notice, self.seen.problems.first()) {
            (Some(question), _, _) => (question.text.as_str(), self.patched(bold, Color::Yellow)),
            (None, Some(Ok(text)), _) => (text.as_str(), self.coloured(Color::Green)),
            (None, Some(Err(text)), _) | (None, None, Some(text)) => (text.as_str(), self.patched(bold, Color::Red)),
            (None, None, None) => ("", Style::new()),
        };
        if said.is_empty() {
            return (Vec::new(), style);
        }
        (text::wrapped(&text::line(said, usize::from(u8::MAX) * 2), usize::from(width)), style)
    }

    /// The question or the notice, and the keys.
    fn foot(&self, page: &mut DrawnPage<'_>, lines: &[String], style: Style) {
        let count = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        for (at, line) in (0..).zip(lines) {
            let above = count.saturating_add(1).saturating_sub(at);
            page.clear(page.below(above));
            page.line(page.below(above), line, style);
        }
        let keys = match (self.state.question.is_some(), self.state.details, self.state.view) {
            (true, ..) => "y yes  any other key no",
            (false, true, View::Now) => "Esc back  s stop  q quit  ↑↓ scroll",
            (false, true, View::Denials) => "Esc back  a allow  m mute  q quit  ↑↓ scroll",
            (false, true, View::Approvals) => {
                "Esc back  a allow  n in its run  d decline  r remember  q quit  ↑↓ scroll"
            }
            (false, false, View::Now) => "q quit  s stop  Enter details  ↑↓ choose  Tab 1 2 3 views  p pause",
            (false, false, View::Denials) => {
                "q quit  a allow  m mute  Enter details  ↑↓ choose  Tab 1 2 3 views  p pause"
            }
            (false, false, View::Approvals) => {
                "q quit  a allow  n in its run  d decline  r remember  Enter details  p pause"
            }
        };
        page.line(page.below(1), keys, Style::new().add_modifier(Modifier::DIM));
    }

    fn coloured(&self, colour: Color) -> Style {
        self.patched(Style::new(), colour)
    }

    fn patched(&self, style: Style, colour: Color) -> Style {
        if self.has_colours { style.fg(colour) } else { style }
    }
}

/// Figures of a minute on one line.
pub fn minute(minute: &MinuteShown) -> String {
    let time = |time: Option<u64>| time.map_or_else(|| "-".to_owned(), text::micros);
    format!(
        "{} running, {} waiting; in 60 s: {:.1}/s, p50 {}, p99 {}, {} errors, {} denied",
        minute.running,
        minute.waiting,
        minute.calls_per_second,
        time(minute.p50_us),
        time(minute.p99_us),
        minute.errors,
        minute.denials,
    )
}

/// Cells of a row in their columns.
pub fn row_line(columns: &[Column], fitted: &[(usize, usize)], cells: &[String]) -> String {
    let mut line = String::new();
    for (place, width) in fitted {
        let (Some(column), Some(cell)) = (columns.get(*place), cells.get(*place)) else { continue };
        let cell = shortened(cell, *width);
        let pad = " ".repeat(width.saturating_sub(text::columns(&cell)));
        match column.kind {
            ColumnKind::Figure => line.extend([pad.as_str(), &cell, " "]),
            ColumnKind::Text | ColumnKind::Rest => line.extend([&cell, pad.as_str(), " "]),
        }
    }
    line.truncate(line.len().saturating_sub(1));
    line
}

/// The text in this many columns, with a mark if it was cut.
fn shortened(text: &str, width: usize) -> String {
    if text::columns(text) <= width {
        return text.to_owned();
    }
    let mut lines = text::wrapped(text, width.saturating_sub(1)).into_iter();
    let mut short = lines.next().filter(|_| width > 1).unwrap_or_default();
    short.push('…');
    short
}

/// The part of the buffer that lines are written to; access only goes through it.
struct DrawnPage<'a> {
    area: Rect,
    buffer: &'a mut Buffer,
}

impl DrawnPage<'_> {
    /// Number of the line this far above the end.
    const fn below(&self, above: u16) -> u16 {
        self.area.height.saturating_sub(above)
    }

    /// Writes a whole line.
    fn line(&mut self, line: u16, text: &str, style: Style) {
        self.text(0, line, text, style);
    }

    /// Writes a text, and returns the column after it.
    fn text(&mut self, column: u16, line: u16, text: &str, style: Style) -> u16 {
        if line >= self.area.height || column >= self.area.width {
            return column;
        }
        let left = usize::from(self.area.width - column);
        let (after, _) = self.buffer.set_stringn(self.area.x + column, self.area.y + line, text, left, style);
        after.saturating_sub(self.area.x)
    }

    /// Clears a line.
    fn clear(&mut self, line: u16) {
        let blank = " ".repeat(usize::from(self.area.width));
        self.line(line, &blank, Style::reset());
    }
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
