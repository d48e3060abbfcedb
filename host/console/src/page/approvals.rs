//! The view of calls that wait for a person.

use maud::{Markup, html};

use crate::bounds::{CARDS_BYTES, ROWS};
use crate::figure::{count, moment, or_none, time};
use crate::frame::{form, id};
use crate::json;
use crate::model::{Approvals, DecidedApproval, Frame, WaitingApproval};
use crate::picture;
use crate::routes;
use crate::table::{Row, column, table};
use crate::text::{line, name};

/// Ids of the parts that events replace.
const WAITING: &str = "approvals-waiting";
const DECIDED: &str = "approvals-decided";

/// The one answer after which a call runs.
const ACCEPTED: &str = "accepted";

/// Calls of a run that a form offers until another number is written.
const RUN_CALLS_OFFERED: u32 = 10;

pub fn view(frame: &Frame, approvals: &Approvals) -> Markup {
    html! {
        h1 { "Approvals" }
        (waiting(frame, approvals))
        (decided(approvals))
    }
}

pub fn waiting(frame: &Frame, approvals: &Approvals) -> Markup {
    let cards = fitting(frame, &approvals.waiting);
    let left = approvals.waiting.len() - cards.len();
    html! {
        section #(WAITING) aria-label="Waiting" {
            @if approvals.waiting.is_empty() { p.empty { "No call waits for a person." } }
            @for card in &cards { (card) }
            @if left > 0 {
                p.more { (left) " more calls wait, with longer arguments: they are shown once others are answered." }
            }
        }
    }
}

/// The cards that fit into [`CARDS_BYTES`], in the order of the calls. Those with short arguments
/// are placed first, so that long ones do not displace those of other callers.
fn fitting(frame: &Frame, waiting: &[WaitingApproval]) -> Vec<Markup> {
    let mut by_length: Vec<(usize, &WaitingApproval)> = waiting.iter().enumerate().collect();
    by_length.sort_by_key(|(_, call)| call.arguments.len());
    let mut shown = Vec::new();
    let mut room = CARDS_BYTES;
    for (at, call) in by_length.into_iter().take(ROWS) {
        let card = card(frame, call);
        let Some(rest) = room.checked_sub(card.0.len()) else { break };
        room = rest;
        shown.push((at, card));
    }
    shown.sort_by_key(|(at, _)| *at);
    shown.into_iter().map(|(_, card)| card).collect()
}

pub fn decided(approvals: &Approvals) -> Markup {
    let columns = [column("Time (UTC)"), column("Tool"), column("Caller"), column("Answer"), column("By")];
    html! {
        section #(DECIDED) aria-label="Decided" {
            @if !approvals.decided.is_empty() { (table("Decided", &columns, approvals.decided.iter().map(decision), "")) }
        }
    }
}

fn decision(decided: &DecidedApproval) -> Row {
    Row::of(vec![
        html! {
            @match &decided.call {
                Some(call) => a href=(routes::call(&call.id)) { (moment(decided.at)) },
                None => (moment(decided.at)),
            }
        },
        html! { (name(&decided.tool)) },
        html! { (name(&decided.caller)) },
        html! { (name(&decided.answer)) @if decided.answer != ACCEPTED { ": it did not run" } },
        html! { @if decided.by.is_empty() { (or_none(None)) } @else { (name(&decided.by)) } },
    ])
}

fn card(frame: &Frame, call: &WaitingApproval) -> Markup {
    html! {
        article.card id=(id("approval", &call.key)) {
            h2 { (name(&call.tool)) " " span.dim { "for " (name(&call.caller)) } }
            @if !call.question.is_empty() { p { (line(&call.question)) } }
            p.dim {
                "Call " (call.call) " of " (name(&call.component)) ", waits since " (moment(call.since)) " UTC"
                @if let Some(left) = call.left { "; " strong { (time(left)) } " left" }
            }
            h3 { "Arguments" }
            (json::block(&call.arguments, "Arguments of the call"))
            @if !call.is_shown_whole() {
                p.warn {
                    "The arguments are not shown whole"
                    @if call.arguments_left_out > 0 { ": " (count(call.arguments_left_out)) " more bytes" }
                    ". So the call can only be declined here."
                }
            }
            details id=(id("reach", &call.key)) {
                summary { "What it may reach: " (call.reach.len()) }
                (picture::as_table(&call.reach))
            }
            (form(frame, routes::ANSWER_APPROVAL, &[(routes::KEY, &call.key)], &answers(call)))
        }
    }
}

fn answers(call: &WaitingApproval) -> Markup {
    let button = |answer: &str, class: &str, label: &Markup| {
        html! {
            button id=(id(answer, &call.key)) class=(class) name=(routes::ANSWER) value=(answer) {
                (label) span.hidden { " call " (call.call) }
            }
        }
    };
    let whole = call.is_shown_whole();
    html! {
        div.line {
            @if whole {
                (button("allow", "main", &html! { "Allow once" }))
                @if let Some(most) = call.run_calls_max {
                    (button("run", "", &html! { "Allow in this run" }))
                    label for=(id("calls", &call.key)) { "at most, calls" }
                    input id=(id("calls", &call.key)) name=(routes::CALLS) type="number" min="1" max=(most) value=(RUN_CALLS_OFFERED.min(most));
                }
                @if let Some(remember) = call.remember {
                    (button("remember", "", &html! { "Allow for " (time(remember)) }))
                }
            }
            (button("decline", "bad", &html! { "Decline" }))
        }
        @if whole && call.run_calls_max.is_some() {
            p.dim {
                "“Allow in this run” lets as many calls of " (name(&call.tool)) " run as the number says, this one \
                 included, if the same tool makes them in this run, whatever their arguments."
            }
        }
        @if let Some(remember) = call.remember.filter(|_| whole) {
            p.dim {
                "“Allow for " (time(remember)) "” lets further calls of " (name(&call.tool)) " by " (name(&call.caller))
                " run as well, whatever their arguments."
            }
        }
    }
}
