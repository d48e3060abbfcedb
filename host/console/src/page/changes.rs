//! The view of changes.

use maud::{Markup, html};

use crate::bounds::{CELL_ITEMS, HIDDEN_BYTES, REACH_ROWS, ROWS};
use crate::diff;
use crate::figure::moment;
use crate::frame::{form, id};
use crate::model::{Changes, DefinitionChange, Frame, Generation, GenerationOutcome, Quarantined};
use crate::routes;
use crate::table::{Row, beyond, column, figures, table};
use crate::text::{line, name};

/// Ids of the parts that events replace.
pub const QUARANTINE: &str = "changes-quarantine";
pub const GENERATIONS: &str = "changes-generations";

pub fn view(frame: &Frame, changes: &Changes) -> Markup {
    html! {
        h1 { "Changes" }
        (quarantine(frame, changes))
        (generations(changes))
    }
}

pub fn quarantine(frame: &Frame, changes: &Changes) -> Markup {
    html! {
        section #(QUARANTINE) aria-label="Quarantine" {
            @if changes.quarantined.is_empty() {
                p.empty {
                    @if changes.locked { "Nothing is in quarantine: all that is served is pinned." }
                    @else { "Nothing is in quarantine. Without " code { "--locked" } ", changes are served at once." }
                }
            }
            @for component in changes.quarantined.iter().take(ROWS) { (card(frame, component)) }
            (beyond(changes.quarantined.len()))
        }
    }
}

pub fn generations(changes: &Changes) -> Markup {
    let columns = [figures("Generation"), column("Time (UTC)"), column("Outcome"), column("Summary")];
    let rows: Vec<Row> = changes.generations.iter().map(generation).collect();
    html! {
        section #(GENERATIONS) aria-label="Generations" {
            (table("Generations", &columns, &rows, "None is known."))
        }
    }
}

fn generation(generation: &Generation) -> Row {
    let (class, name) = match generation.outcome {
        GenerationOutcome::Started => ("off", "started"),
        GenerationOutcome::Replaced => ("good", "replaced"),
        GenerationOutcome::Refused => ("bad", "refused"),
        GenerationOutcome::Approved => ("good", "approved"),
        GenerationOutcome::Quarantined => ("ask", "quarantined"),
    };
    Row::of(vec![
        html! { (generation.number) },
        moment(generation.at),
        html! { span class={ "chip " (class) } { (name) } },
        html! {
            ul.plain { @for text in generation.summary.iter().take(CELL_ITEMS) { li { (line(text)) } } }
            @if generation.summary.len() > CELL_ITEMS { span.more { (generation.summary.len() - CELL_ITEMS) " more" } }
        },
    ])
}

fn card(frame: &Frame, waiting: &Quarantined) -> Markup {
    html! {
        article.card id=(id("quarantined", &waiting.component)) {
            h2 { span.chip.ask { "quarantined" } " " (name(&waiting.component)) }
            p.dim { "Since " (moment(waiting.since)) " UTC. The old version serves on." }
            (bytes(waiting))
            @if !waiting.grants.is_empty() { (grants(waiting)) }
            @if !waiting.other.is_empty() {
                h3 { "Also" }
                ul { @for text in waiting.other.iter().take(REACH_ROWS) { li { (line(text)) } } }
                (left(waiting.other.len()))
            }
            @if !waiting.definitions.is_empty() {
                h3 { "Definitions" }
                @for change in waiting.definitions.iter().take(REACH_ROWS) { (definition(change)) }
                (left(waiting.definitions.len()))
            }
            (approve(frame, waiting))
        }
    }
}

fn bytes(waiting: &Quarantined) -> Markup {
    let (old, new) = (waiting.old.as_ref(), &waiting.new);
    let signer = |signer: Option<&String>| {
        html! {
            @match signer {
                Some(signer) => (line(signer)),
                None => span.dim { "not verified" },
            }
        }
    };
    let columns = [column("Version"), column("Digest"), column("Signed by")];
    let mut rows = Vec::new();
    if let Some(old) = old {
        rows.push(Row::of(vec![
            html! { "serves" },
            html! { span.mono { (line(&old.digest)) } },
            signer(old.signer.as_ref()),
        ]));
    }
    rows.push(Row::of(vec![
        html! { "waits" },
        html! { span.mono { (line(&new.digest)) } },
        signer(new.signer.as_ref()),
    ]));
    html! {
        (table("Bytes and signers", &columns, &rows, ""))
        @if old.is_some_and(|old| old.signer != new.signer) { p.warn { "The signer differs." } }
        @if old.is_some_and(|old| old.digest == new.digest) { p.dim { "The bytes are the same." } }
    }
}

fn grants(waiting: &Quarantined) -> Markup {
    html! {
        h3 { "Grants" }
        ul.grants {
            @for grant in waiting.grants.iter().take(REACH_ROWS) {
                li {
                    @if grant.added { ins { span.sign { "+ " span.hidden { "more: " } } (line(&grant.text)) } }
                    @else { del { span.sign { "− " span.hidden { "less: " } } (line(&grant.text)) } }
                }
            }
        }
        (left(waiting.grants.len()))
    }
}

fn definition(change: &DefinitionChange) -> Markup {
    let what = match (change.old.is_empty(), change.new.is_empty()) {
        (true, false) => "new",
        (false, true) => "gone",
        _ => "changed",
    };
    html! {
        h4 { (name(&change.tool)) ", " (name(&change.part)) " " span.chip.off { (what) } }
        (diff::block(&change.old, &change.new, "Difference of the definition"))
    }
}

fn approve(frame: &Frame, waiting: &Quarantined) -> Markup {
    let hidden = [(routes::COMPONENT, waiting.component.as_str()), (routes::DIGEST, waiting.new.digest.as_str())];
    let shown = frame.decide && hidden.iter().all(|(_, value)| value.len() <= HIDDEN_BYTES);
    html! {
        @if shown {
            details id=(id("approve", &waiting.component)) {
                summary { "Approve…" }
                p { "This pins the waiting version in the lock, and serves it:" }
                p.mono { (line(&waiting.new.digest)) }
                (form(frame, routes::APPROVE, &hidden, &html! { button.main { "Approve this digest" } }))
            }
        }
    }
}

/// A remark that items of a list are left out.
fn left(items: usize) -> Markup {
    html! { @if items > REACH_ROWS { p.warn { (items - REACH_ROWS) " more are not shown. Use " code { "toolcell diff" } "." } } }
}
