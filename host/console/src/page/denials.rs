//! The view of denials.

use maud::{Markup, html};

use crate::bounds::{ROWS, RULE_LINES};
use crate::figure::{count, moment};
use crate::frame::{copy, form, id};
use crate::model::{AllowingRule, DenialGroup, Denials, Frame};
use crate::routes;
use crate::table::beyond;
use crate::text::{line, name};

/// Id of the part that events replace.
pub const LIST: &str = "denials-list";

pub fn view(frame: &Frame, denials: &Denials) -> Markup {
    html! {
        h1 { "Denials" }
        p.dim { "What tools asked for and no grant allows, the same requests together." }
        (list(frame, denials))
    }
}

pub fn list(frame: &Frame, denials: &Denials) -> Markup {
    html! {
        section #(LIST) aria-label="Denials" {
            @if denials.groups.is_empty() { p.empty { "Nothing was denied." } }
            @for group in denials.groups.iter().take(ROWS) { (card(frame, group, false)) }
            (beyond(denials.groups.len()))
            @if denials.ungrouped > 0 { p.more { (count(denials.ungrouped)) " further denials are only in the audit." } }
            @if !denials.muted.is_empty() {
                details #muted {
                    summary { (denials.muted.len()) " muted" }
                    @for group in denials.muted.iter().take(ROWS) { (card(frame, group, true)) }
                    (beyond(denials.muted.len()))
                }
            }
        }
    }
}

fn card(frame: &Frame, group: &DenialGroup, muted: bool) -> Markup {
    html! {
        article.card id=(id("denial", &group.key)) {
            (about(group))
            @match &group.rule {
                Some(rule) => (rule_of(group, rule)),
                None => p.dim { "No rule of the manifest can allow it." },
            }
            div.line {
                @if let Some(rule) = &group.rule { (rule_buttons(frame, group, rule)) }
                (mute(frame, group, muted))
            }
        }
    }
}

/// The request, who made it and how often: also on the page of a call.
pub fn about(group: &DenialGroup) -> Markup {
    html! {
        h2 { span.chip.denied { (name(&group.capability)) } " " span.mono { (line(&group.asked)) } }
        p {
            strong { (name(&group.component)) }
            @if !group.tools.is_empty() { " in " (crate::text::list(&group.tools)) }
            ", " (count(group.count)) (if group.count == 1 { " time, " } else { " times, " })
            @if group.first == group.last { (moment(group.last)) } @else { (moment(group.first)) " to " (moment(group.last)) }
            @if let Some(call) = &group.last_call { ", last in " a href=(routes::call(&call.id)) { "call " (call.number) } }
        }
        @if !group.reason.is_empty() { p.dim { (line(&group.reason)) } }
    }
}

fn rule_of(group: &DenialGroup, rule: &AllowingRule) -> Markup {
    html! {
        p { "This would allow it:" }
        pre.block.rule id=(id("rule", &group.key)) tabindex="0" {
            "[" (line(&rule.section)) "]"
            @for written in rule.line.lines().take(RULE_LINES) { "\n" (line(written)) }
        }
        @if !rule.is_shown_whole() { p.dim { "It is not shown whole here, so it is only added by hand." } }
    }
}

fn rule_buttons(frame: &Frame, group: &DenialGroup, rule: &AllowingRule) -> Markup {
    let button = html! { button id=(id("apply", &group.key)) { "Add to the manifest" } };
    let whole = rule.is_shown_whole();
    html! {
        @if whole { (copy(&id("rule", &group.key), "the rule")) }
        @if whole && rule.can_apply { (form(frame, routes::APPLY, &[(routes::KEY, &group.key)], &button)) }
    }
}

fn mute(frame: &Frame, group: &DenialGroup, muted: bool) -> Markup {
    let (action, name) = if muted { (routes::UNMUTE, "Unmute") } else { (routes::MUTE, "Mute") };
    let button = html! { button.quiet id=(id("mute", &group.key)) { (name) span.hidden { " these denials" } } };
    form(frame, action, &[(routes::KEY, &group.key)], &button)
}
