//! The view of all tools.

use maud::{Markup, html};

use crate::figure::{count, or_none, time};
use crate::frame::search;
use crate::model::{ToolRow, Tools};
use crate::routes;
use crate::table::{Row, column, figures, table};
use crate::text::{line, name};

pub fn view(tools: &Tools) -> Markup {
    html! {
        h1 { "Tools" }
        (search(routes::TOOLS, "Search names, descriptions and components", &tools.query, Some("tools-list")))
        section #tools-list aria-label="Tools" {
            p.dim role="status" { (found(tools)) }
            (table("Tools", &columns(), tools.tools.iter().map(row), "No tool matches."))
            (pages(tools))
        }
    }
}

fn found(tools: &Tools) -> String {
    if tools.query.is_empty() {
        format!("{} tools", count(tools.total))
    } else {
        format!("{} of {} tools match", count(tools.matching), count(tools.total))
    }
}

fn columns() -> [crate::table::Column; 7] {
    [
        column("Tool"),
        column("Description"),
        column("Component"),
        column("Reaches"),
        figures("Calls"),
        figures("Errors"),
        figures("Median"),
    ]
}

fn row(tool: &ToolRow) -> Row {
    Row::of(vec![
        html! { a href=(routes::tool(&tool.name)) { (name(&tool.name)) } },
        html! { span.summary { (line(&tool.summary)) } },
        html! {
            (name(&tool.component))
            @if tool.quarantined { " " span.chip.ask { "quarantined" } }
            @if tool.recording { " " span.chip.ask { "recording" } }
        },
        html! { @if tool.reach.is_empty() { (or_none(None)) } @else { (name(&tool.reach)) } },
        html! { (count(tool.calls)) },
        html! { span class=[(tool.errors > 0).then_some("t-bad")] { (count(tool.errors)) } },
        or_none(tool.p50.map(time)),
    ])
}

fn pages(tools: &Tools) -> Markup {
    let to = |page: u64| {
        let page = if page > 1 { page.to_string() } else { String::new() };
        routes::with_query(routes::TOOLS, &[(routes::QUERY, &tools.query), (routes::PAGE, &page)])
    };
    html! {
        @if tools.pages > 1 {
            nav.pages aria-label="Pages of tools" {
                @if tools.page > 1 { a href=(to(tools.page - 1)) rel="prev" { "Earlier" } }
                span { "Page " (tools.page) " of " (tools.pages) }
                @if tools.page < tools.pages { a href=(to(tools.page + 1)) rel="next" { "Further" } }
            }
        }
    }
}
