//! The form that tries a tool, and its last result.

use maud::{Markup, html};
use serde_json::Value;

use super::result;
use crate::bounds::FIELD_BYTES;
use crate::form::{ARGUMENTS, Field, FieldKind, fields, takes_nothing};
use crate::frame::form;
use crate::model::{Frame, ToolPage};
use crate::routes;
use crate::text::{line, words};

/// Bytes of the name of a choice.
const CHOICE_BYTES: usize = 100;

pub fn view(frame: &Frame, tool: &ToolPage) -> Markup {
    let tried = &tool.tried;
    html! {
        @if !frame.decide {
            p.empty { "This console is read-only: it calls no tools." }
        } @else if !tool.can_try {
            p.empty { "This tool cannot be tried here." }
        } @else {
            @if let Some(problem) = &tried.problem { p.notice.failed role="alert" { (line(problem)) } }
            (form(frame, &routes::try_tool(&tool.name), &[], &inputs(tool)))
            @if !fields(&tool.input_schema).is_empty() {
                details.as-json open[sent(tool, ARGUMENTS).is_some()] {
                    summary { "Call it with JSON instead" }
                    (form(frame, &routes::try_tool(&tool.name), &[], &whole(tool)))
                }
            }
        }
        @if let Some(result) = &tried.result { (result::view(result)) }
    }
}

fn inputs(tool: &ToolPage) -> Markup {
    let fields = fields(&tool.input_schema);
    html! {
        div.fields {
            @if takes_nothing(&tool.input_schema) {
                p.dim { "It takes no arguments." }
            } @else if fields.is_empty() {
                (arguments(tool))
            } @else {
                @for field in &fields { (input(tool, field, true)) }
            }
        }
        button.main { "Call it" }
    }
}

/// The form that takes all arguments at once.
fn whole(tool: &ToolPage) -> Markup {
    html! {
        div.fields { (arguments(tool)) }
        button { "Send this JSON" }
    }
}

fn arguments(tool: &ToolPage) -> Markup {
    html! {
        div.field {
            label for="whole" { "Arguments" }
            p.dim #whole-about { "A JSON object, as the input schema says." }
            textarea #whole name=(ARGUMENTS) rows="6" spellcheck="false" aria-describedby="whole-about" {
                (sent(tool, ARGUMENTS).unwrap_or("{}"))
            }
        }
    }
}

/// The fields of an object in a frame of their own.
fn group(tool: &ToolPage, group: &Field, fields: &[Field], demands: bool) -> Markup {
    html! {
        fieldset.field {
            legend { (line(&group.argument)) @if group.required { span.dim { " required" } } }
            @if !group.description.is_empty() { p.dim { (line(&group.description)) } }
            @for field in fields { (input(tool, field, demands && group.required)) }
        }
    }
}

/// The field. The browser requires a value only if no group around it may be left out.
fn input(tool: &ToolPage, field: &Field, demands: bool) -> Markup {
    if let FieldKind::Group(fields) = &field.kind {
        return group(tool, field, fields, demands);
    }
    let id = &field.name;
    let about = format!("{id}-about");
    let demands = demands && field.required && !field.nullable;
    let text = sent(tool, &field.name).unwrap_or(&field.default);
    html! {
        div.field {
            label for=(id) {
                (line(&field.argument))
                span.dim { " " (kind(&field.kind)) @if field.required { ", required" } }
            }
            @if !field.description.is_empty() { p.dim id=(about) { (line(&field.description)) } }
            @let described = (!field.description.is_empty()).then_some(&about);
            @match &field.kind {
                FieldKind::Integer | FieldKind::Number | FieldKind::AnyNumber => {
                    input id=(id) name=(id) type="text" inputmode="decimal" autocomplete="off" value=(text) required[demands] aria-describedby=[described];
                },
                FieldKind::Boolean => {
                    select id=(id) name=(id) required[demands] aria-describedby=[described] {
                        option value="" { "(left out)" }
                        @for value in ["true", "false"] { option value=(value) selected[text == value] { (value) } }
                    }
                },
                FieldKind::Choice(values) => {
                    select id=(id) name=(id) required[demands] aria-describedby=[described] {
                        option value="" { "(left out)" }
                        @for (index, value) in values.iter().enumerate() {
                            option value=(index) selected[text == index.to_string()] { (choice(value)) }
                        }
                    }
                },
                FieldKind::Text | FieldKind::Json | FieldKind::Lines(_) | FieldKind::Group(_) => {
                    textarea id=(id) name=(id) rows=(rows(field, text)) spellcheck="false" required[demands && field.kind == FieldKind::Json] aria-describedby=[described] {
                        // A browser drops the first line break of a text area.
                        "\n" (text)
                    }
                },
            }
        }
    }
}

/// The text of a field as it was sent; empty if it is too long to show again.
fn sent<'a>(tool: &'a ToolPage, name: &str) -> Option<&'a str> {
    let field = tool.tried.fields.iter().find(|(field, _)| field == name)?;
    Some(field.1.as_str()).filter(|text| text.len() <= FIELD_BYTES)
}

fn rows(field: &Field, text: &str) -> usize {
    let least = if matches!(field.kind, FieldKind::Json | FieldKind::Lines(_)) { 2 } else { 1 };
    text.bytes().filter(|byte| *byte == b'\n').count().saturating_add(1).clamp(least, 12)
}

fn choice(value: &Value) -> String {
    match value {
        Value::String(text) => words(text, CHOICE_BYTES),
        value => words(&value.to_string(), CHOICE_BYTES),
    }
}

const fn kind(kind: &FieldKind) -> &'static str {
    match kind {
        FieldKind::Text => "text",
        FieldKind::Integer => "whole number",
        FieldKind::Number => "number",
        FieldKind::AnyNumber => "number, NaN, Infinity or -Infinity",
        FieldKind::Boolean => "true or false",
        FieldKind::Choice(_) => "choice",
        FieldKind::Lines(each) => match **each {
            FieldKind::Integer => "whole numbers, one on each line",
            FieldKind::Number | FieldKind::AnyNumber => "numbers, one on each line",
            FieldKind::Boolean => "true or false, one on each line",
            _ => "texts, one on each line",
        },
        FieldKind::Group(_) => "group",
        FieldKind::Json => "JSON",
    }
}
