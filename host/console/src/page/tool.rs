//! The view of one tool.

use maud::{Markup, html};

use super::{recording, try_form};
use crate::chart;
use crate::figure::{amount, count, or_none};
use crate::frame::copy;
use crate::json;
use crate::model::{Frame, LimitRow, MeasuredCalls, SetIn, ToolPage};
use crate::picture::{place, reach};
use crate::table::{Row, column, figures, table};
use crate::text::{block, is_plain_block, line};

pub fn view(frame: &Frame, tool: &ToolPage) -> Markup {
    html! {
        h1 { (line(&tool.name)) @if !tool.title.is_empty() { " " span.dim { (line(&tool.title)) } } }
        nav.within aria-label="Parts of this page" {
            a href="#reach" { "Reach" } " " a href="#limits" { "Limits" } " "
            a href="#definition" { "Definition" } " " a href="#recordings" { "Recordings" } " "
            a href="#try" { "Try it" }
        }
        div.prose tabindex="0" role="region" aria-label="Description" { (block(&tool.description)) }
        (facts(tool))
        h2 #reach { "What it can reach" }
        (reach(&tool.name, &tool.reach))
        h2 #limits { "Limits" }
        (limits(tool))
        h2 #definition { "Definition" }
        p.dim { "As clients get it." }
        (json::block(&tool.definition, "Definition of the tool"))
        h2 #recordings { "Recordings" }
        (recording::view(frame, tool))
        h2 #try { "Try it" }
        (try_form::view(frame, tool))
    }
}

fn facts(tool: &ToolPage) -> Markup {
    html! {
        dl.facts {
            div { dt { "Component" } dd { (line(&tool.component)) } }
            div { dt { "Source" } dd.mono { (line(&tool.source)) } }
            div { dt { "Digest" } dd.mono { (line(&tool.digest)) } }
            div { dt { "Signed by" } dd {
                @match &tool.signer {
                    Some(signer) => (line(signer)),
                    None => span.dim { "not verified" },
                }
            } }
            @for (name, value) in tool.facts.iter().take(24) { div { dt { (line(name)) } dd { (line(value)) } } }
        }
    }
}

fn limits(tool: &ToolPage) -> Markup {
    let columns = [
        column("Limit"),
        figures("Set to"),
        figures("Median"),
        figures("99th percentile"),
        figures("Most"),
        column("Most of the limit"),
        figures("Would fit"),
        column("Set in"),
    ];
    html! {
        (measured(tool.measured))
        (table("Limits, and what calls used of them", &columns, tool.limits.iter().map(limit), "No limits are known."))
        @if let Some(proposal) = &tool.proposal {
            details {
                summary { "Lines for the manifest" }
                @if tool.has_table { p.dim { "The manifest has a table for this tool already: merge the two." } }
                pre.block #proposal tabindex="0" { (block(proposal)) }
                @if is_plain_block(proposal) { (copy("proposal", "the lines")) }
            }
        }
    }
}

/// The calls that the columns cover.
fn measured(calls: MeasuredCalls) -> Markup {
    html! {
        p.dim {
            @if calls.all == 0 {
                "No call ran since the server started."
            } @else {
                "Median and 99th percentile are of the newest " (count(calls.newest)) " calls that ran, the most is of all "
                (count(calls.all)) " since the server started. \"Would fit\" is the proposal of " code { "toolcell calibrate" }
                " for the " (count(calls.answered)) " of them that were answered without an error."
            }
        }
    }
}

fn set_in(set_in: &SetIn) -> Markup {
    match set_in {
        SetIn::Default => place(None, "default"),
        SetIn::Manifest(written) => place(Some(written), ""),
        SetIn::Unknown => place(None, "not known"),
    }
}

fn limit(limit: &LimitRow) -> Row {
    let shown = |number: u64| amount(number, limit.unit);
    let used = |of: fn(&crate::model::LimitUse) -> u64| or_none(limit.used.as_ref().map(|used| shown(of(used))));
    Row::of(vec![
        html! { code { (line(&limit.key)) } },
        html! { (shown(limit.limit)) },
        used(|used| used.p50),
        used(|used| used.p99),
        used(|used| used.max),
        limit.used.map_or_else(|| or_none(None), |used| chart::gauge(used.max, limit.limit)),
        or_none(limit.proposed.map(shown)),
        set_in(&limit.set_in),
    ])
}
