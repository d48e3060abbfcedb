//! Capabilities of each tool, as a table and as JSON.
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use toolcell_mcp::ServedCatalog as _;
use toolcell_policy::{ReachRow, Source, Style};
use toolcell_server::catalog::Catalog;

use crate::terminal::{bold, faint, listed};

/// Most rows of one tool that are shown; the rest is counted. `--json` has them all.
const ROWS_MAX: usize = 40;

/// Widest column of capabilities in characters: a terminal is often 100 wide.
const TEXT_WIDTH_MAX: usize = 64;

/// One block for tools with equal capabilities: their names, then a line for each capability with
/// its place in the manifest. Tools without any share a line, and so do those whose calls need
/// approval.
pub fn table(catalog: &Catalog, source: &Source<'_>, style: Style) -> String {
    let mut blocks: Vec<(Vec<String>, Vec<ReachRow>)> = Vec::new();
    let mut sealed: Vec<String> = Vec::new();
    for (name, rows) in by_tool(catalog) {
        if rows.is_empty() {
            sealed.push(name);
        } else if let Some((names, _)) = blocks.iter_mut().find(|(_, other)| *other == rows) {
            names.push(name);
        } else {
            blocks.push((vec![name], rows));
        }
    }
    let columns = Columns::of(blocks.iter().flat_map(|(_, rows)| rows));
    let mut text: String = blocks.iter().map(|(names, rows)| block(names, rows, columns, source, style)).collect();
    if !sealed.is_empty() {
        text.push_str(&format!("\n{}", listed("reach nothing: ", &sealed)));
    }
    let confirmed: Vec<String> = catalog
        .offers()
        .filter(|offer| offer.approval().is_some())
        .map(|offer| offer.tool().definition().name.clone())
        .collect();
    if !confirmed.is_empty() {
        text.push_str(&format!("\n{}", listed("a person approves each call: ", &confirmed)));
    }
    text
}

/// Widths of the columns of every block.
#[derive(Clone, Copy)]
struct Columns {
    kind: usize,
    text: usize,
}

impl Columns {
    fn of<'r>(rows: impl Iterator<Item = &'r ReachRow>) -> Self {
        rows.fold(Self { kind: 0, text: 0 }, |widest, row| Self {
            kind: widest.kind.max(row.capability().name().len()),
            text: widest.text.max(row.text().chars().count()).min(TEXT_WIDTH_MAX),
        })
    }
}

fn block(names: &[String], rows: &[ReachRow], columns: Columns, source: &Source<'_>, style: Style) -> String {
    let names = listed("", names).lines().map(|line| format!("{}\n", bold(line, style))).collect::<String>();
    let mut text = format!("\n{names}");
    let Columns { kind: kind_width, text: text_width } = columns;
    for row in rows.iter().take(ROWS_MAX) {
        let kind = row.capability().name();
        let what = row.text();
        let place = row.span().map_or_else(String::new, |span| format!("line {}", source.position(span.start).line));
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {kind:<kind_width$}  {what:<text_width$}  {}", faint(&place, style));
    }
    if rows.len() > ROWS_MAX {
        let _ = writeln!(text, "  and {} more", rows.len() - ROWS_MAX);
    }
    text
}

/// By tool: its capabilities, each with `capability`, `text`, `line` and `column`.
pub fn to_json(catalog: &Catalog, source: &Source<'_>) -> Value {
    let row_json = |row: &ReachRow| {
        let place = row.span().map(|span| source.position(span.start));
        json!({
            "capability": row.capability().name(),
            "text": row.text(),
            "line": place.map(|place| place.line),
            "column": place.map(|place| place.column),
        })
    };
    let tools: Map<String, Value> =
        by_tool(catalog).into_iter().map(|(name, rows)| (name, rows.iter().map(row_json).collect())).collect();
    Value::Object(tools)
}

fn by_tool(catalog: &Catalog) -> Vec<(String, Vec<ReachRow>)> {
    let tools = catalog.tools().tools().iter().enumerate();
    tools
        .filter(|(_, tool)| tool.is_tool() || tool.prompt().is_some())
        .map(|(index, tool)| {
            let rows = catalog.tool_grants(index).map(toolcell_policy::Grants::reach).unwrap_or_default();
            (tool.definition().name.clone(), rows)
        })
        .collect()
}
