//! Environment variables.

use serde_json::json;

use super::args::IMPORTS;
use super::used::around_named;
use super::values::{ENTRIES_MAX, kept, name_problem, named, text};
use super::{Example, Importer, Narrowing, Right};
use crate::capabilities::ReachRow;
use crate::edit;
use crate::grants::{Capability, EnvSource, EnvVar, RuleRef};
use crate::names::{toml_key, toml_string};
use crate::read::{Entry, Problems};
use crate::table::{Definition, Key, Shape, keys, table};

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
static ENV_VAR: Definition = Definition {
    name: "EnvVar",
    about: "A variable's value: a text, or one of the host's variables.",
    shape: Shape::Either(&[(Shape::Text, "The value."), (Shape::Table(&ENV_FROM), "From the host's environment.")]),
};

/// A tool's key, which programs have as well.
pub(crate) static KEYS_OF_TOOL: &[Key] = keys! {
    /// A table: variables of each call of a program, by name, each a template, besides the
    /// component's. A list: the component's variables that this tool has.
    "env": Either(&[(Named(&Text), ""), (List(&Text), "")]),
        {"examples": [{"LANG": "{lang}"}, ["UNITS"]]};
};

/// Environment variables.
pub(crate) static ENV: Right = Right {
    section: "env",
    named: Some(Capability::Env),
    keys: keys! {
        /// Environment variables, by name.
        "env": Named(&Definition(&ENV_VAR)),
            {"propertyNames": {"pattern": "^[^=\\s]+$"}, "maxProperties": ENTRIES_MAX};
    },
    keys_of_request: keys! {
        /// Names of environment variables.
        "env": List(&Text), {};
    },
    narrowing: Some(Narrowing::Names),
    read: |_, entry, _, grants, problems| {
        let read = |entry: Entry<'_>, problems: &mut Problems| {
            let source = if entry.is_table() { from_host(&entry, problems)? } else { from_text(&entry, problems)? };
            Some(EnvVar { name: entry.key.to_owned(), source, span: entry.key_span })
        };
        let entries = named(entry, problems);
        grants.env = entries.into_iter().filter_map(|entry| read(entry, problems)).collect();
    },
    narrow: |_, entry, grants, problems| {
        // A table sets variables for each call of a program and removes none.
        if entry.is_table() {
            return false;
        }
        let granted = std::mem::take(&mut grants.env);
        let named = kept(entry, "environment variable", granted.iter().map(|variable| variable.name()), problems);
        grants.env = granted.iter().filter(|variable| named.contains(&variable.name())).cloned().collect();
        true
    },
    beyond: |_, requested, grants| {
        let beyond = grants.env().iter().filter(|variable| !requested.has(Capability::Env, variable.name()));
        beyond.map(|variable| variable.span()).collect()
    },
    canonical: |_, grants| {
        let source = |variable: &EnvVar| match variable.source() {
            EnvSource::Text(text) => json!({ "text": text }),
            EnvSource::Host(name) => json!({ "host": name }),
        };
        crate::canonical::sorted(grants.env().iter().map(|variable| (variable.name(), source(variable))))
    },
    reach: |_, grants| {
        let row = |variable: &EnvVar| {
            let text = match variable.source() {
                EnvSource::Text(_) => variable.name().to_owned(),
                EnvSource::Host(host) => format!("{} from the host's {host}", variable.name()),
            };
            ReachRow::new(Capability::Env, text, Some(variable.span()))
        };
        grants.env().iter().map(row).collect()
    },
    lock_lines: |_, grants| {
        let line = |variable: &EnvVar| match variable.source() {
            EnvSource::Text(text) => format!("variable {} = {text:?}", variable.name()),
            EnvSource::Host(name) => format!("variable {} from the host's {name}", variable.name()),
        };
        grants.env().iter().map(line).collect()
    },
    what: "environment variables",
    imports: IMPORTS,
    verbs: &["env"],
    ask_forms: &["env NAME"],
    evidence: Some(Capability::Env),
    narrower: |right, used| {
        let variables = used.grants.env().iter().map(|variable| RuleRef::new(variable.name(), variable.span()));
        super::values::unused(right, Capability::Env, variables, used)
    },
    neighbours: |_, grants, _| {
        let rule = |variable: &EnvVar| RuleRef::new(variable.name(), variable.span());
        grants.env().iter().map(|variable| around_named(&rule(variable), Capability::Env, variable.name())).collect()
    },
    explain: |right, grants, ask, notes| {
        let name = ask.name(Capability::Env)?;
        let Some(variable) = grants.env().iter().find(|variable| variable.name() == name) else {
            return Some(super::secrets::exposed(grants, name).ok_or_else(|| right.denied(grants, name)));
        };
        if let EnvSource::Host(host) = variable.source() {
            notes.push(format!("the value is that of the host's variable {host:?}"));
        }
        Some(Ok(RuleRef::new(name, variable.span())))
    },
    line: |name| format!("{} = {{ from = {} }}", toml_key(name), toml_string(&format!("env:{name}"))),
    forms: &["env NAME = VALUE"],
    help: "  env NAME = VALUE            a variable; without a value, the host's own\n",
    value: |name, value| {
        Some(value.map_or_else(|| edit::table([("from", format!("env:{name}").into())]), edit::Value::from))
    },
    blank: " = VALUE",
    example: Some(Example {
        imports: IMPORTS,
        importer: Importer::Library,
        what: "environment variables",
        grant: "env = { NAME = \"value\" }",
        right: "env NAME = value",
    }),
    ..Right::NONE
};

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
