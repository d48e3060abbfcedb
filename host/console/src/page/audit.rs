//! The view of audit records.

use maud::{Markup, html};

use crate::figure::{count, moment, or_none, time};
use crate::frame::form_for_all;
use crate::model::{Audit, AuditQuery, AuditRow, ChainState, Frame};
use crate::routes;
use crate::table::{Row, column, figures, table};
use crate::text::{line, name, words};

/// Bytes of a field of the search that the page repeats.
const FIELD_BYTES: usize = 256;
/// Outcomes to choose from, not all that exist.
const OUTCOMES: usize = 64;

pub fn view(frame: &Frame, audit: &Audit) -> Markup {
    html! {
        h1 { "Audit" }
        @match &audit.file {
            Some(file) => p.dim { "Records in " span.mono { (line(file)) } },
            None => p.empty { "No audit is kept. " code { "serve --audit FILE" } " turns it on." },
        }
        div.line { (chain(&audit.chain)) (form_for_all(frame, routes::CHECK_CHAIN, &[], &html! { button.quiet { "Check the chain now" } })) }
        (search(audit))
        section #audit-list aria-label="Records" {
            @if let Some(remark) = &audit.remark { p.warn { (line(remark)) } }
            (records(&audit.rows))
            (pages(audit))
        }
    }
}

/// The state of the chain in words.
pub fn chain(chain: &ChainState) -> Markup {
    html! {
        @match chain {
            ChainState::Unknown => p.chain { span.chip.off { "chain" } " not checked since the server started" },
            ChainState::Whole { records, head, at } => p.chain {
                span.chip.good { "chain whole" } " " (count(*records)) " records at " (moment(*at)) " UTC, last hash " span.mono { (line(head)) }
            },
            ChainState::Broken { reason, at } => p.chain {
                span.chip.bad { "chain broken" } " at " (moment(*at)) " UTC: " (line(reason))
            },
        }
    }
}

/// The outcome of a call, coloured.
pub fn outcome(outcome: &str) -> Markup {
    let class = match outcome {
        "" => return or_none(None),
        "ok" | "repeated" => "good",
        "cancelled" | "input_required" => "off",
        _ => "bad",
    };
    html! { span class={ "chip " (class) } { (name(outcome)) } }
}

fn search(audit: &Audit) -> Markup {
    let AuditQuery { tool, caller, outcome, since, until, text } = &audit.query;
    html! {
        form.search role="search" method="get" action=(routes::AUDIT) {
            div.fields.short {
                (input("tool", "Tool", tool, ""))
                (input("caller", "Caller", caller, ""))
                div.field {
                    label for="outcome" { "Outcome" }
                    select #outcome name="outcome" {
                        option value="" { "any" }
                        @for known in audit.outcomes.iter().take(OUTCOMES) {
                            option value=(words(known, FIELD_BYTES)) selected[known == outcome] { (words(known, FIELD_BYTES)) }
                        }
                    }
                }
                (input("since", "Since", since, "1h, or 2026-07-28T09:00"))
                (input("until", "Until", until, ""))
                (input("text", "Text", text, ""))
            }
            div.line {
                button.main { "Search" }
                a href=(routes::AUDIT) { "Clear" }
                span.spacer {}
                a href=(export(routes::EXPORT_JSONL, &audit.query, "")) download { "Export JSON Lines" }
                a href=(export(routes::EXPORT_CSV, &audit.query, "")) download { "Export CSV" }
            }
        }
    }
}

fn input(name: &str, label: &str, value: &str, example: &str) -> Markup {
    html! {
        div.field {
            label for=(name) { (label) }
            input id=(name) name=(name) type="text" value=(words(value, FIELD_BYTES)) placeholder=[Some(example).filter(|text| !text.is_empty())] autocomplete="off" spellcheck="false";
        }
    }
}

fn records(rows: &[AuditRow]) -> Markup {
    let columns = [
        column("Time (UTC)"),
        column("Record"),
        column("Tool"),
        column("Caller"),
        column("Outcome"),
        figures("Took"),
        column("Details"),
    ];
    table("Calls that run, then records, newest first", &columns, rows.iter().map(record), "No record matches.")
}

fn record(row: &AuditRow) -> Row {
    let text = |text: &str| html! { @if text.is_empty() { (or_none(None)) } @else { (name(text)) } };
    Row::of(vec![
        moment(row.at),
        html! {
            @match &row.call {
                Some(call) => a href=(routes::call(&call.id)) { (name(&row.record)) " " (call.number) },
                None => (name(&row.record)),
            }
        },
        text(&row.tool),
        text(&row.caller),
        outcome(&row.outcome),
        or_none(row.took.map(time)),
        html! { span.summary { (line(&row.detail)) } },
    ])
}

fn pages(audit: &Audit) -> Markup {
    html! {
        @if audit.is_older || audit.older.is_some() {
            nav.pages aria-label="Pages of records" {
                @if audit.is_older { a href=(export(routes::AUDIT, &audit.query, "")) { "Newest" } }
                @if let Some(older) = &audit.older { a href=(export(routes::AUDIT, &audit.query, older)) rel="next" { "Older" } }
            }
        }
    }
}

/// An address with the fields of the search.
fn export(path: &str, query: &AuditQuery, before: &str) -> String {
    let AuditQuery { tool, caller, outcome, since, until, text } = query;
    let fields =
        [("tool", tool), ("caller", caller), ("outcome", outcome), ("since", since), ("until", until), ("text", text)];
    let mut fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    fields.push((routes::BEFORE, before));
    routes::with_query(path, &fields)
}
