//! Names and values of variables, settings and arguments, and lists of names.

use super::used::{ALL_NAMES, Narrower, UsedGrants, needed_names};
use super::{ADDS_NOTHING, Right};
use crate::diagnostic::{Diagnostic, Span};
use crate::edit::Change;
use crate::grants::{Capability, RuleRef};
use crate::names::meant_or;
use crate::read::{Entry, Problems};

/// The most arguments, variables and settings of a component, each: guests copy all of them at
/// start. A tool's list has the same bound.
pub(crate) const ENTRIES_MAX: usize = 256;

/// The longest name of a variable or a setting, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// The longest argument or value, in bytes: what a system takes for one.
const VALUE_BYTES_MAX: usize = 128 << 10;

/// The most entries of one kind that a component requests: a person reads all of them.
pub(crate) const REQUESTS_MAX: usize = 64;

/// The longest text of one of them, in bytes: an address with a long path.
const REQUEST_BYTES_MAX: usize = 200;

/// A text of one of the values; `line`: none with a NUL.
pub(super) fn text(entry: &Entry<'_>, problems: &mut Problems, variable: bool) -> Option<String> {
    let text = entry.string(problems)?;
    match value_problem(text, variable) {
        Some(wrong) => problems.refuse(value_error(entry.key, &wrong, entry.span.clone())),
        None => Some(text.to_owned()),
    }
}

pub(super) fn value_problem(text: &str, variable: bool) -> Option<String> {
    if text.len() > VALUE_BYTES_MAX {
        return Some(format!("must have at most {VALUE_BYTES_MAX} bytes"));
    }
    (variable && text.contains('\0')).then(|| "must not contain NUL".to_owned())
}

pub(super) fn value_error(key: &str, wrong: &str, span: Span) -> Diagnostic {
    Diagnostic::error("grants::value", format!("{key} {wrong}")).at(span)
}

/// The entries of a table of at most [`ENTRIES_MAX`] valid variable names.
pub(crate) fn named<'t>(entry: &Entry<'t>, problems: &mut Problems) -> Vec<Entry<'t>> {
    let mut entries = entry.entries(ENTRIES_MAX, "grants::too_many", "entries", problems);
    entries.retain(|entry| match name_problem(entry.key) {
        Some(wrong) => {
            let message = format!("the name {:?} {wrong}", entry.key);
            problems.add(entry.key_error("grants::name", message));
            false
        }
        None => true,
    });
    entries
}

/// Why a text cannot be the name of a variable.
pub(crate) fn name_problem(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("must not be empty")
    } else if name.len() > NAME_BYTES_MAX {
        Some("is too long")
    } else if name.contains('=') || name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        Some("must not contain =, spaces or control characters")
    } else {
        None
    }
}

/// The names of a tool's list that the component is granted.
pub(super) fn kept<'t>(
    entry: &Entry<'t>,
    what: &str,
    granted: impl Iterator<Item = &'t str> + Clone,
    problems: &mut Problems,
) -> Vec<&'t str> {
    let mut named = Vec::new();
    for (name, span) in entry.strings(ENTRIES_MAX, problems).unwrap_or_default() {
        if granted.clone().any(|other| other == name) {
            named.push(name);
            continue;
        }
        let hint = meant_or(name, granted.clone(), ADDS_NOTHING);
        problems.add(super::wider(&format!("the component has no {what} {name:?}"), span, &hint));
    }
    named
}

/// The names of a list that a component requests.
pub(super) fn names(entry: &Entry<'_>, problems: &mut Problems) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, span) in entry.strings(REQUESTS_MAX, problems).unwrap_or_default() {
        if let Some(wrong) = name_problem(name) {
            problems.add(Diagnostic::error("grants::name", format!("the name {name:?} {wrong}")).at(span));
            continue;
        }
        check_requested(name, span, problems);
        if !names.iter().any(|other| other == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Refuses a text that a terminal may show misleadingly, or that wraps into other lines.
pub(super) fn check_requested(text: &str, span: Span, problems: &mut Problems) {
    if text.len() > REQUEST_BYTES_MAX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = format!(
            "a requested permission has more than {REQUEST_BYTES_MAX} bytes, or characters that are not visible ASCII"
        );
        let hint = "write hosts as xn--…, and encode paths as requests do";
        problems.add(Diagnostic::error("permissions::text", message).at(span).hint(hint));
    }
}

/// The granted names that nobody used.
pub(super) fn unused(
    right: &Right,
    kind: Capability,
    granted: impl Iterator<Item = RuleRef>,
    used: &UsedGrants<'_>,
) -> Vec<Narrower> {
    let needed = needed_names(used.uses, kind);
    if needed.contains(ALL_NAMES) {
        return Vec::new();
    }
    let narrower = |rule: RuleRef| {
        let change = Change::Name { section: right.section, name: rule.text().to_owned() };
        Narrower { rule, instead: Vec::new(), change }
    };
    granted.filter(|rule| !needed.contains(rule.text())).map(narrower).collect()
}
