//! The view of denials.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::bounds::{COMPONENT_CARDS, ROWS, RULE_LINES};
use crate::figure::{count, moment};
use crate::frame::{copy, form, id};
use crate::model::{AllowingRule, DenialGroup, Denials, Frame};
use crate::routes;
use crate::table::beyond;
use crate::text::{line, name};

/// Id of the part that events replace.
const LIST: &str = "denials-list";

pub fn view(frame: &Frame, denials: &Denials, only: &str) -> Markup {
    html! {
        h1 { "Denials" }
        p.dim { "What tools asked for and no grant allows, the same requests together." }
        @if !only.is_empty() { p { "Those of " strong { (name(only)) } " alone. " a href=(routes::DENIALS) { "All denials" } } }
        (list(frame, denials, only))
    }
}

/// The groups: those of the component `only`, or of all components where it is empty.
pub fn list(frame: &Frame, denials: &Denials, only: &str) -> Markup {
    let (groups, left) = chosen(&denials.groups, only);
    html! {
        section #(LIST) aria-label="Denials" {
            @if denials.groups.is_empty() { p.empty { "Nothing was denied." } }
            @for group in groups.iter().take(ROWS) { (card(frame, group, DenialState::Open)) }
            (beyond(groups.len()))
            @for (component, count) in left.iter().take(ROWS) {
                p.more {
                    (count) " more of " (name(component)) ": "
                    a href=(routes::with_query(routes::DENIALS, &[(routes::COMPONENT, component)])) { "all of " (name(component)) }
                }
            }
            @if denials.ungrouped > 0 { p.more { (count(denials.ungrouped)) " further denials are only in the audit." } }
            (closed(frame, "allowed", &denials.allowed, DenialState::Allowed))
            (closed(frame, "muted", &denials.muted, DenialState::Muted))
        }
    }
}

/// Why a group is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DenialState {
    Open,
    Muted,
    Allowed,
}

/// Groups that need no more attention.
fn closed(frame: &Frame, name: &str, groups: &[DenialGroup], state: DenialState) -> Markup {
    let words = if state == DenialState::Allowed { "allowed since" } else { "muted" };
    html! {
        @if !groups.is_empty() {
            details id=(name) {
                summary { (groups.len()) " " (words) }
                @for group in groups.iter().take(ROWS) { (card(frame, group, state)) }
                (beyond(groups.len()))
            }
        }
    }
}

/// The groups to show, and how many of each component are left out.
fn chosen<'a>(groups: &'a [DenialGroup], only: &str) -> (Vec<&'a DenialGroup>, BTreeMap<&'a str, usize>) {
    if !only.is_empty() {
        return (groups.iter().filter(|group| group.component == only).collect(), BTreeMap::new());
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut shown = Vec::new();
    for group in groups {
        let count = counts.entry(&group.component).or_default();
        *count += 1;
        if *count <= COMPONENT_CARDS {
            shown.push(group);
        }
    }
    let left = counts.into_iter().filter(|(_, count)| *count > COMPONENT_CARDS);
    (shown, left.map(|(component, count)| (component, count - COMPONENT_CARDS)).collect())
}

fn card(frame: &Frame, group: &DenialGroup, state: DenialState) -> Markup {
    html! {
        article.card id=(id("denial", &group.key)) {
            (about(group))
            @match &group.rule {
                _ if state == DenialState::Allowed => p.dim { "The grants that serve now allow it." },
                Some(rule) => (rule_of(group, rule)),
                None => p.dim { "No rule of the manifest can allow it." },
            }
            @if state != DenialState::Allowed {
                div.line {
                    @if let Some(rule) = &group.rule { (rule_buttons(frame, group, rule)) }
                    (mute(frame, group, state == DenialState::Muted))
                }
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
            @if !group.callers.is_empty() { ", called by " (crate::text::list(&group.callers)) }
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
