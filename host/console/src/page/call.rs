//! The view of one call, from start to end.

use std::time::Duration;

use maud::{Markup, html};

use super::audit::{chain, outcome};
use super::denials;
use crate::bounds::ROWS;
use crate::chart::gauge;
use crate::figure::{amount, count, moment, or_none, time};
use crate::json;
use crate::model::{CallPage, CallSpan, CallUsage, ChainState};
use crate::routes;
use crate::table::{Row, column, figures, table};
use crate::text::{block, line};

/// Width of the picture of spans, in its own units.
const WIDTH: u64 = 1_000;

pub fn view(page: &CallPage) -> Markup {
    let call = &page.call;
    html! {
        p { a href=(routes::AUDIT) { "All records" } }
        h1 {
            "Call " @if let Some(link) = &call.call { (link.number) }
            " " (outcome(&call.outcome))
        }
        dl.facts {
            div { dt { "Tool" } dd { a href=(routes::tool(&call.tool)) { (line(&call.tool)) } } }
            div { dt { "Caller" } dd { (line(&call.caller)) } }
            div { dt { "Time (UTC)" } dd { (moment(call.at)) } }
            div { dt { "Took" } dd { (or_none(call.took.map(time))) } }
            @if !call.detail.is_empty() { div { dt { "Details" } dd { (line(&call.detail)) } } }
            @for (name, value) in page.facts.iter().take(24) { div { dt { (line(name)) } dd.mono { (line(value)) } } }
        }
        (checked(page))
        @if !page.spans.is_empty() { h2 { "Trace" } (spans(&page.spans)) }
        h2 { "Usage" }
        (usage(&page.usage))
        @if !page.usage.is_empty() && !page.is_served {
            p.dim { "The version that ran is not served any more: its limits are not known." }
        }
        h2 { "Arguments" }
        @match &page.arguments {
            Some(arguments) => (json::block(arguments, "Arguments")),
            None => p.dim { "Only their digest is kept: see " code { "[audit] arguments" } "." },
        }
        h2 { "Denials" }
        @if page.denials.is_empty() { p.empty { "Its records have no denial." } }
        @for denial in page.denials.iter().take(ROWS) { article.card { (denials::about(denial)) } }
        h2 { "What it printed" }
        @match &page.log {
            Some(log) if log.is_empty() => p.empty { "It printed nothing." },
            Some(log) => pre.block tabindex="0" role="region" aria-label="What it printed" { (block(log)) },
            None => p.dim { "It is kept of the newest calls alone, in memory." },
        }
        h2 { "Records" }
        (records(page))
    }
}

fn records(page: &CallPage) -> Markup {
    html! {
        ol.records {
            @for (index, record) in page.records.iter().take(ROWS).enumerate() {
                li {
                    details id=(format!("record-{index}")) {
                        summary { (moment(record.at)) " " strong { (line(&record.record)) } }
                        (json::block(&record.json, "Record"))
                    }
                }
            }
        }
        (crate::table::beyond(page.records.len()))
        @if page.left_out > 0 { p.more { (count(page.left_out)) " more records of this call are not shown; exports have all." } }
    }
}

/// The chain as last checked, and whether that covers this call.
fn checked(page: &CallPage) -> Markup {
    let last = page.records.last().map(|record| record.at);
    let is_before = match &page.chain {
        ChainState::Whole { at, .. } => last.is_some_and(|last| *at < last),
        ChainState::Unknown | ChainState::Broken { .. } => false,
    };
    html! {
        (chain(&page.chain))
        @if is_before { p.dim { "That was before the last record of this call: check again in the view of all records." } }
    }
}

fn usage(usage: &[CallUsage]) -> Markup {
    let columns = [column("What"), figures("Used"), figures("Limit"), column("Of the limit")];
    let rows = usage.iter().map(|row| {
        Row::of(vec![
            html! { code { (line(&row.key)) } },
            html! { (amount(row.used, row.unit)) },
            or_none(row.limit.map(|limit| amount(limit, row.unit))),
            row.limit.map_or_else(|| or_none(None), |limit| gauge(row.used, limit)),
        ])
    });
    table("What the call used", &columns, rows, "The call used nothing: it never ran.")
}

/// Parts of the call's time as bars beneath each other.
fn spans(spans: &[CallSpan]) -> Markup {
    let end = spans.iter().map(|span| span.start.saturating_add(span.took)).max().unwrap_or(Duration::ZERO);
    let at = |time: Duration| share(time, end);
    let rows = spans.iter().map(|span| {
        let class = if span.failed { "full" } else { "low" };
        Row::of(vec![
            html! { span class={ "depth d" (span.depth.min(4)) } { (line(&span.name)) } @if span.failed { " " span.chip.bad { "failed" } } },
            html! { (time(span.start)) },
            html! { (time(span.took)) },
            html! {
                svg.bar.span viewBox={ "0 0 " (WIDTH) " 10" } preserveAspectRatio="none" aria-hidden="true" {
                    rect.rest x="0" y="0" width=(WIDTH) height="10" {}
                    rect class=(class) x=(at(span.start).min(WIDTH - 4)) y="0" width=(at(span.took).max(4)) height="10" {}
                }
            },
        ])
    });
    table("Parts of the call's time", &[column("Part"), figures("Begins"), figures("Took"), column("When")], rows, "")
}

fn share(time: Duration, end: Duration) -> u64 {
    let share = time.as_micros().saturating_mul(u128::from(WIDTH)) / end.as_micros().max(1);
    u64::try_from(share).unwrap_or(WIDTH).min(WIDTH)
}
