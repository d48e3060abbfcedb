//! Reads what a component is granted: variables, arguments, standard input, configuration and state
//! here, the rest in its own file.

use std::sync::Arc;

use super::{Entry, Problems, Section, files, network, secrets};
use crate::diagnostic::{Diagnostic, Span};
use crate::grants::{Delivery, EnvSource, EnvVar, GrantSpans, Grants, KeyValue, Ungranted};
use crate::manifest::LoginPolicy;
use crate::quantity::show_bytes;
use crate::table::{Definition, Shape, table};

/// The most arguments, variables and settings of a component, each: guests copy all of them at
/// start.
pub(super) const ENTRIES_MAX: usize = 256;

/// The longest name of a variable or a setting, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// The longest argument or value, in bytes: what a system takes for one.
const VALUE_BYTES_MAX: usize = 128 << 10;

/// The words of `ungranted`.
pub(super) const WORDS: [&str; 2] = [Ungranted::Deny.name(), Ungranted::Ask.name()];

/// Their meanings.
pub(super) const ANSWERS: [Ungranted; 2] = [Ungranted::Deny, Ungranted::Ask];

table! {
    /// A variable of the host's environment; an error of the manifest where it is missing.
    pub(crate) ENV_FROM "EnvFrom" {
        /// `env:` and the variable's name.
        "from" required: Text, {"pattern": "^env:.", "examples": ["env:HOME_CITY"]};
    }
    other names {
        "value" => "from",
    }
}

/// A variable's value.
pub(super) static ENV_VAR: Definition = Definition {
    name: "EnvVar",
    about: "A variable's value: a text, or one of the host's variables.",
    shape: Shape::Either(&[(Shape::Text, "The value."), (Shape::Table(&ENV_FROM), "From the host's environment.")]),
};

/// The grants of a component. What is wrong is noted and left out.
pub(crate) fn read(
    component: &str,
    section: &Section<'_>,
    logins: &[Arc<LoginPolicy>],
    problems: &mut Problems,
) -> Arc<Grants> {
    let mut grants = Grants::sealed(component, None);
    grants.places = places(section);
    grants.args = section.get("args").and_then(|entry| args(&entry, problems)).unwrap_or_default();
    grants.stdin = section.get("stdin").and_then(|entry| text(&entry, problems, false));
    grants.env = section.get("env").map(|entry| env(&entry, problems)).unwrap_or_default();
    grants.config = section.get("config").map(|entry| config(&entry, problems)).unwrap_or_default();
    grants.keyvalue = section.get("keyvalue").and_then(|entry| keyvalue(&entry, problems));
    if let Some(entry) = section.get("filesystem") {
        grants.files = files::read(&entry, &grants.subject, problems);
    }
    if let Some(entry) = section.get("network") {
        grants.network = network::read(&entry, &grants.subject, problems);
    }
    if let Some(entry) = section.get("secrets") {
        grants.secrets = secrets::read(&entry, &grants.network, logins, problems);
    }
    if let Some(entry) = section.get("ungranted") {
        grants.ungranted = entry.one_of(WORDS, ANSWERS, problems).unwrap_or_default();
    }
    refuse_second_names(&grants, problems);
    Arc::new(grants)
}

fn places(section: &Section<'_>) -> GrantSpans {
    let place = |key: &str| section.get(key).map(|entry| entry.key_span);
    GrantSpans {
        files: place("filesystem"),
        network: place("network"),
        env: place("env"),
        args: place("args"),
        stdin: place("stdin"),
        config: place("config"),
        keyvalue: place("keyvalue"),
        ungranted: place("ungranted"),
    }
}

/// An exposed secret has the name of a variable and of a setting.
fn refuse_second_names(grants: &Grants, problems: &mut Problems) {
    for secret in grants.secrets.iter().filter(|secret| *secret.delivery() == Delivery::Expose) {
        let variable = grants.env.iter().any(|variable| variable.name() == secret.name());
        let setting = grants.config.iter().any(|(name, _)| name == secret.name());
        if variable || setting {
            let table = if variable { "env" } else { "config" };
            let message = format!("{:?} is in {table} as well, and the guest can get one value only", secret.name());
            problems
                .add(Diagnostic::error("grants::duplicate", message).at(secret.span()).hint("give one another name"));
        }
    }
}

fn args(entry: &Entry<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    let texts = entry.strings(ENTRIES_MAX, problems)?;
    let mut args = Vec::with_capacity(texts.len());
    for (text, span) in texts {
        match value_problem(text, true) {
            Some(wrong) => problems.add(value_error("args", &wrong, span)),
            None => args.push(text.to_owned()),
        }
    }
    Some(args)
}

/// A text of one of the values; `line`: none with a NUL.
fn text(entry: &Entry<'_>, problems: &mut Problems, variable: bool) -> Option<String> {
    let text = entry.string(problems)?;
    match value_problem(text, variable) {
        Some(wrong) => problems.refuse(value_error(entry.key, &wrong, entry.span.clone())),
        None => Some(text.to_owned()),
    }
}

fn value_problem(text: &str, variable: bool) -> Option<String> {
    if text.len() > VALUE_BYTES_MAX {
        return Some(format!("must have at most {VALUE_BYTES_MAX} bytes"));
    }
    (variable && text.contains('\0')).then(|| "must not contain NUL".to_owned())
}

fn value_error(key: &str, wrong: &str, span: Span) -> Diagnostic {
    Diagnostic::error("grants::value", format!("{key} {wrong}")).at(span)
}

/// The entries of a table of at most [`ENTRIES_MAX`] with names that a variable can have.
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

/// The reason why a text cannot be the name of a variable.
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

fn env(entry: &Entry<'_>, problems: &mut Problems) -> Vec<EnvVar> {
    let entries = named(entry, problems);
    let read = |entry: Entry<'_>, problems: &mut Problems| {
        let source = if entry.is_table() { from_host(&entry, problems)? } else { from_text(&entry, problems)? };
        Some(EnvVar { name: entry.key.to_owned(), source, span: entry.key_span })
    };
    entries.into_iter().filter_map(|entry| read(entry, problems)).collect()
}

fn from_text(entry: &Entry<'_>, problems: &mut Problems) -> Option<EnvSource> {
    if entry.as_str().is_none() {
        return entry.wrong_type("a string or { from = \"env:NAME\" }", problems);
    }
    text(entry, problems, true).map(EnvSource::Text)
}

fn from_host(entry: &Entry<'_>, problems: &mut Problems) -> Option<EnvSource> {
    let section = entry.table(&ENV_FROM, problems)?;
    let hint = format!("write {} = {{ from = \"env:{}\" }}", entry.key, entry.key);
    let Some(from) = section.get("from") else {
        let message = format!("{} does not say where its value is from", entry.key);
        return problems.refuse(entry.error("manifest::missing", message).hint(hint));
    };
    let text = from.string(problems)?;
    match text.strip_prefix("env:") {
        Some(name) if name_problem(name).is_none() => Some(EnvSource::Host(name.to_owned())),
        _ => {
            let message = format!("from must be \"env:NAME\", not {text:?}");
            let problem = from.error("grants::source", message);
            let secret = text.starts_with("file:") || text.starts_with("keyring:");
            problems.refuse(problem.hint(if secret {
                "secrets are read from files and keyrings: see [components.NAME.secrets]"
            } else {
                &hint
            }))
        }
    }
}

fn config(entry: &Entry<'_>, problems: &mut Problems) -> Vec<(String, String)> {
    let entries = named(entry, problems);
    entries.into_iter().filter_map(|entry| Some((entry.key.to_owned(), text(&entry, problems, false)?))).collect()
}

fn keyvalue(entry: &Entry<'_>, problems: &mut Problems) -> Option<KeyValue> {
    let section = entry.section(problems)?;
    let keyvalue = KeyValue::read(Some(&section), problems);
    let value = keyvalue.value_bytes();
    let quota = keyvalue.quota_bytes();
    if let Some(entry) = section.get("value").filter(|_| value > quota) {
        let message = format!("value of {} can never be reached: quota is {}", show_bytes(value), show_bytes(quota));
        let problem = Diagnostic::warning("limits::unreachable", message).at(entry.span);
        problems.add(problem.hint("raise quota or lower value"));
    }
    Some(keyvalue)
}
