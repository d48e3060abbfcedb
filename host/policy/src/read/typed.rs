//! Reads what a component's table says of functions that are tools: `wit`, `skip_unsupported` and `describe`. Must not
//! hold: files, or what functions there are.

use super::{Entry, Problems, Section};
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::{DESCRIPTIONS_MAX, Description, TypedPolicy};

pub(crate) fn read(section: &Section<'_>, problems: &mut Problems) -> TypedPolicy {
    let skip = section.get("skip_unsupported");
    TypedPolicy {
        wit: section.get("wit").and_then(|entry| read_wit(&entry, problems)),
        skip_unsupported: skip.and_then(|entry| Some((entry.boolean(problems)?, entry.key_span))),
        descriptions: section.get("describe").map(|entry| read_all(&entry, problems)).unwrap_or_default(),
    }
}

fn read_wit(entry: &Entry<'_>, problems: &mut Problems) -> Option<(String, Span)> {
    let text = entry.string(problems)?;
    let folder = text.strip_suffix('/').unwrap_or(text);
    if let Some(problem) = super::component::path_problem("wit", folder, "\"wit/\" or \"wit/weather.wit\"") {
        problems.add(problem.at(entry.span.clone()));
        return None;
    }
    Some((text.to_owned(), entry.span.clone()))
}

fn read_all(entry: &Entry<'_>, problems: &mut Problems) -> Vec<Description> {
    let Some(section) = entry.section(problems) else { return Vec::new() };
    if section.len() > DESCRIPTIONS_MAX {
        let message = format!("describe has {} entries, {DESCRIPTIONS_MAX} are allowed", section.len());
        problems.add(Diagnostic::error("describe::too_many", message).at(entry.key_span.clone()));
        return Vec::new();
    }
    section.entries().iter().filter_map(|entry| read_one(entry, problems)).collect()
}

fn read_one(entry: &Entry<'_>, problems: &mut Problems) -> Option<Description> {
    if entry.is_table() {
        // `place.lat = "…"` without quotes is a table `place` to TOML.
        let message = format!("{} must be a string, not a table", entry.key);
        let hint = format!("put a key with a dot in quotes: \"{}.PART\" = \"…\"", entry.key);
        problems.add(Diagnostic::error("manifest::type", message).at(entry.key_span.clone()).hint(hint));
        return None;
    }
    let text = entry.string(problems)?.trim();
    if !is_wit_name(entry.key) {
        let message = format!("{:?} is not the name of a function or a type, or of a part of one", entry.key);
        problems.add(
            Diagnostic::error("describe::name", message)
                .at(entry.key_span.clone())
                .hint("write NAME or NAME.PART as in WIT, such as \"get-forecast.city\""),
        );
        return None;
    }
    if text.is_empty() {
        let message = format!("the description of {:?} is empty", entry.key);
        problems.add(Diagnostic::error("describe::empty", message).at(entry.span.clone()).hint("remove the key"));
        return None;
    }
    Some(Description { key: entry.key.to_owned(), key_span: entry.key_span.clone(), text: text.to_owned() })
}

/// One or two labels of WIT, which are words of letters and digits with hyphens between them.
fn is_wit_name(key: &str) -> bool {
    let is_label = |label: &str| {
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        label.starts_with(|first: char| first.is_ascii_alphabetic()) && label.split('-').all(is_word)
    };
    match key.split_once('.') {
        None => is_label(key),
        Some((name, part)) => is_label(name) && is_label(part),
    }
}
