//! Tables: as aligned text for people, as Markdown for a page, as JSON for programs. This module
//! knows how figures are shown, not where they come from.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::goals::{self, Measured};
use crate::machine::Machine;

/// The names of a column of figures.
#[derive(Clone, Copy)]
pub struct Column {
    /// The key in JSON, with its unit.
    pub key: &'static str,
    /// The heading in the table, with its unit.
    pub heading: &'static str,
    /// Digits after the point.
    pub decimals: usize,
}

/// The figures of one measured subject, in the order of the columns. `None` is a figure that was
/// not measured.
pub struct Row {
    /// The name of the measured subject.
    pub name: String,
    /// The figures.
    pub values: Vec<Option<f64>>,
}

/// One table, and those of its figures that have a goal.
pub struct Section {
    /// The title above the table.
    pub title: &'static str,
    /// The explanation of the figures.
    pub note: String,
    /// The columns of figures.
    pub columns: &'static [Column],
    /// Its lines.
    pub rows: Vec<Row>,
    /// Figures that have a goal.
    pub measured: Vec<Measured>,
}

/// Everything measured in a run.
pub struct Report {
    machine: Machine,
    is_quick: bool,
    sections: Vec<(&'static str, Section)>,
}

impl Report {
    /// A report with no figures yet.
    pub const fn new(machine: Machine, is_quick: bool) -> Self {
        Self { machine, is_quick, sections: Vec::new() }
    }

    /// Adds the result of the measurement with this name.
    pub fn add(&mut self, name: &'static str, section: Section) {
        self.sections.push((name, section));
    }

    fn measured(&self) -> Vec<Measured> {
        self.sections.iter().flat_map(|(_, section)| section.measured.iter().copied()).collect()
    }

    /// Everything as tables.
    pub fn to_text(&self, is_coloured: bool) -> String {
        let paint = Paint { is_coloured };
        let Machine { cpus, cpu, kernel, load, version } = &self.machine;
        let mut text = format!("{version} on {cpus} CPUs ({cpu}), Linux {kernel}; load before: {load:.2}\n");
        for (_, section) in &self.sections {
            section.write(&mut text, paint);
        }
        let measured = self.measured();
        if !measured.is_empty() {
            text.push('\n');
            text.push_str(&paint.bold("Goals"));
            text.push('\n');
            align(&mut text, &goals::table(&measured, self.is_quick), 1, paint);
        }
        text
    }

    /// Everything as tables of Markdown, the goals first.
    pub fn to_markdown(&self) -> String {
        let Machine { cpus, cpu, kernel, load, version } = &self.machine;
        let mut text = format!("{version} on {cpus} CPUs ({cpu}), Linux {kernel}; load before: {load:.2}.\n");
        let measured = self.measured();
        if !measured.is_empty() {
            text.push_str("\n### Goals\n\n");
            grid(&mut text, &goals::table(&measured, self.is_quick));
        }
        for (_, section) in &self.sections {
            section.write_markdown(&mut text);
        }
        text
    }

    /// Everything as one JSON object.
    pub fn to_json(&self) -> String {
        let sections: Map<String, Value> =
            self.sections.iter().map(|(name, section)| ((*name).to_owned(), section.to_json())).collect();
        let Machine { cpus, cpu, kernel, load, version } = &self.machine;
        let report = json!({
            "machine": {"cpus": cpus, "cpu": cpu, "kernel": kernel, "load": load},
            "version": version,
            "quick": self.is_quick,
            "measurements": sections,
            "goals": goals::to_json(&self.measured(), self.is_quick),
        });
        format!("{report:#}\n")
    }
}

impl Section {
    fn write(&self, text: &mut String, paint: Paint) {
        text.push('\n');
        text.push_str(&paint.bold(self.title));
        text.push('\n');
        align(text, &self.lines(), 1, paint);
        for line in self.note.lines() {
            // Writing to a string never fails.
            let _ = writeln!(text, "  {}", paint.dim(line));
        }
    }

    fn write_markdown(&self, text: &mut String) {
        // A string takes all that is written to it.
        let _ = write!(text, "\n### {}\n\n", escaped(self.title));
        grid(text, &self.lines());
        text.push('\n');
        for line in self.note.lines() {
            let _ = writeln!(text, "{}", escaped(line.trim()));
        }
    }

    /// The lines of cells, the headings first.
    fn lines(&self) -> Vec<Vec<String>> {
        let headings = self.columns.iter().map(|column| column.heading.to_owned());
        let headings = std::iter::once(String::new()).chain(headings).collect();
        std::iter::once(headings).chain(self.rows.iter().map(|row| self.line(row))).collect()
    }

    fn line(&self, row: &Row) -> Vec<String> {
        let figures = self.columns.iter().zip(&row.values);
        let shown = figures.map(|(column, value)| match value {
            Some(value) => format!("{value:.*}", column.decimals),
            None => "-".to_owned(),
        });
        std::iter::once(row.name.clone()).chain(shown).collect()
    }

    fn to_json(&self) -> Value {
        let row = |row: &Row| {
            let figures = self.columns.iter().zip(&row.values);
            let mut object: Map<String, Value> =
                figures.map(|(column, value)| (column.key.to_owned(), json!(value))).collect();
            object.insert("name".to_owned(), json!(row.name));
            Value::Object(object)
        };
        Value::Array(self.rows.iter().map(row).collect())
    }
}

/// Writes lines of cells under each other: the first `left` columns flush left, the others flush
/// right.
fn align(text: &mut String, lines: &[Vec<String>], left: usize, paint: Paint) {
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for (at, line) in lines.iter().enumerate() {
        let mut shown = String::new();
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - cell.chars().count());
            shown.push_str("  ");
            shown.push_str(&if column < left { format!("{cell}{padding}") } else { format!("{padding}{cell}") });
        }
        text.push_str(&if at == 0 { paint.dim(shown.trim_end()) } else { paint.verdict(shown.trim_end()) });
        text.push('\n');
    }
}

/// Writes lines of cells as a table of Markdown, the first column flush left, others flush right.
fn grid(text: &mut String, lines: &[Vec<String>]) {
    for (at, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line.iter().map(|cell| escaped(cell.trim())).collect();
        // A string takes all that is written to it.
        let _ = writeln!(text, "| {} |", cells.join(" | "));
        if at == 0 {
            let _ = writeln!(text, "|---|{}", "--:|".repeat(line.len().saturating_sub(1)));
        }
    }
}

/// A text in which nothing is a mark of tables or of HTML.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

/// Colours, on a terminal.
#[derive(Clone, Copy)]
struct Paint {
    is_coloured: bool,
}

impl Paint {
    fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// A line that ends with a verdict has its colour.
    fn verdict(self, line: &str) -> String {
        if line.ends_with(goals::MET) {
            return self.wrap("32", line);
        }
        if line.contains(goals::MISSED) { self.wrap("31", line) } else { line.to_owned() }
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.is_coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
