//! A table being read: its keys are checked, its values are read by type.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Severity, Span};
use crate::limits::Limit;
use crate::limits::Spec;
use crate::names::did_you_mean;
use crate::parse::DIAGNOSTICS_MAX;
use crate::table::Table;
use crate::words::{Word, quoted};

/// The problems so far, at most [`DIAGNOSTICS_MAX`] of them, and the number of the rest.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<Diagnostic>,
    left_out: usize,
}

/// A table and its path.
pub(crate) struct Section<'t> {
    /// As in headers: `components.weather.limits`.
    path: String,
    table: &'t DeTable<'t>,
}

/// A key and its value.
#[derive(Clone)]
pub(crate) struct Entry<'t> {
    pub(crate) key: &'t str,
    pub(crate) key_span: Span,
    pub(crate) span: Span,
    path: String,
    value: &'t DeValue<'t>,
}

impl Problems {
    /// Adds a problem, and returns `None`, as the reader of an invalid value does.
    pub(crate) fn refuse<T>(&mut self, problem: Diagnostic) -> Option<T> {
        self.add(problem);
        None
    }

    pub(crate) fn add(&mut self, problem: Diagnostic) {
        self.add_made(|| problem);
    }

    /// Adds a problem that takes time to describe. One that is left out is only counted.
    pub(crate) fn add_made(&mut self, problem: impl FnOnce() -> Diagnostic) {
        if self.found.len() < DIAGNOSTICS_MAX {
            self.found.push(problem());
        } else {
            self.left_out += 1;
        }
    }

    /// The number of errors, including problems that were left out.
    pub(crate) fn errors(&self) -> usize {
        self.found.iter().filter(|problem| problem.severity() == Severity::Error).count() + self.left_out
    }

    /// All of them, in the order of the file.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|problem| problem.span().map_or(0, |span| span.start));
        if self.left_out > 0 {
            let message = format!("{} more problems are not shown", self.left_out);
            self.found.push(Diagnostic::error("manifest::more", message));
        }
        self.found
    }
}

impl<'t> Section<'t> {
    pub(crate) fn root(table: &'t Spanned<DeTable<'t>>) -> Self {
        Self { path: String::new(), table: table.get_ref() }
    }

    /// As in the manifest's headers; empty for the whole file.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn get(&self, key: &str) -> Option<Entry<'t>> {
        self.table.get_key_value(key).map(|(key, value)| self.entry(key, value))
    }

    /// All entries, in the order of the file.
    pub(crate) fn entries(&self) -> Vec<Entry<'t>> {
        let mut entries: Vec<_> = self.table.iter().map(|(key, value)| self.entry(key, value)).collect();
        entries.sort_by_key(|entry| entry.key_span.start);
        entries
    }

    /// The number of a key with a limit; `None` if the key is missing or invalid.
    pub(crate) fn number(&self, spec: &'static Spec, problems: &mut Problems) -> Option<u64> {
        super::limits::value(&self.get(spec.key)?, spec, problems)
    }

    /// Reports every unknown or unsupported key.
    pub(crate) fn check_keys(&self, table: &Table, problems: &mut Problems) {
        for entry in self.entries() {
            if table.names().any(|name| name == entry.key) {
                continue;
            }
            let is_later = table.later.contains(&entry.key);
            problems.add_made(|| if is_later { entry.not_yet() } else { entry.unknown(table) });
        }
    }

    fn entry(&self, key: &'t Spanned<DeString<'t>>, value: &'t Spanned<DeValue<'t>>) -> Entry<'t> {
        let name = key.get_ref().as_ref();
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Entry { key: name, key_span: key.span(), span: value.span(), path, value: value.get_ref() }
    }
}

impl<'t> Entry<'t> {
    /// The value as a text.
    pub(crate) fn string(&self, problems: &mut Problems) -> Option<&'t str> {
        if let DeValue::String(text) = self.value {
            return Some(text.as_ref());
        }
        self.wrong_type("a string", problems)
    }

    /// The value as an integer, clamped to an `i128`.
    pub(crate) fn integer(&self, problems: &mut Problems) -> Option<i128> {
        let Some(integer) = self.as_integer() else { return self.wrong_type("an integer", problems) };
        Some(integer)
    }

    /// The value if it is an integer; reports nothing otherwise.
    pub(crate) fn as_integer(&self) -> Option<i128> {
        let DeValue::Integer(integer) = self.value else { return None };
        let text = integer.as_str();
        let nearest = if text.starts_with('-') { i128::MIN } else { i128::MAX };
        Some(i128::from_str_radix(text, integer.radix()).unwrap_or(nearest))
    }

    /// The value if it is a text; reports nothing otherwise.
    pub(crate) fn as_str(&self) -> Option<&'t str> {
        if let DeValue::String(text) = self.value { Some(text.as_ref()) } else { None }
    }

    /// The value if it is a float, as it was written.
    pub(crate) fn as_float(&self) -> Option<&'t str> {
        if let DeValue::Float(float) = self.value { Some(float.as_str()) } else { None }
    }

    /// The value as a boolean.
    pub(crate) fn boolean(&self, problems: &mut Problems) -> Option<bool> {
        if let DeValue::Boolean(value) = self.value { Some(*value) } else { self.wrong_type("true or false", problems) }
    }

    /// True if the value is an empty list.
    pub(crate) fn is_empty_list(&self) -> bool {
        matches!(self.value, DeValue::Array(items) if items.is_empty())
    }

    /// True if the value is a table.
    pub(crate) const fn is_table(&self) -> bool {
        matches!(self.value, DeValue::Table(_))
    }

    /// The value as JSON, with the keys of tables in the order of the file. Dates, and numbers that
    /// JSON does not have, are problems.
    pub(crate) fn json(&self, problems: &mut Problems) -> Option<serde_json::Value> {
        json(self.key, self.value, &self.span, problems)
    }

    /// The value as a list of at most `max` values, each as an entry of this key.
    pub(crate) fn items(&self, max: usize, problems: &mut Problems) -> Option<Vec<Entry<'t>>> {
        let DeValue::Array(items) = self.value else { return self.wrong_type("a list", problems) };
        if items.len() > max {
            let message = format!("{} has {} entries, at most {max} are allowed", self.key, items.len());
            return problems.refuse(Diagnostic::error("manifest::too_many", message).at(self.key_span.clone()));
        }
        let item = |item: &'t Spanned<DeValue<'t>>| Entry { span: item.span(), value: item.get_ref(), ..self.clone() };
        Some(items.iter().map(item).collect())
    }

    /// True if the value is a list.
    pub(crate) const fn is_list(&self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    /// The value as a list of at most `max` tables, each with its place.
    pub(crate) fn sections(&self, max: usize, problems: &mut Problems) -> Option<Vec<(Section<'t>, Span)>> {
        let DeValue::Array(items) = self.value else { return self.wrong_type("a list of tables", problems) };
        if items.len() > max {
            let message = format!("{} has {} entries, at most {max} are allowed", self.key, items.len());
            return problems.refuse(Diagnostic::error("manifest::too_many", message).at(self.key_span.clone()));
        }
        let mut sections = Vec::with_capacity(items.len());
        for item in items.iter() {
            if let DeValue::Table(table) = item.get_ref() {
                sections.push((Section { path: self.path.clone(), table }, item.span()));
                continue;
            }
            let message = format!("{} must be a list of tables, without {}", self.key, type_name(item.get_ref()));
            problems.add(Diagnostic::error("manifest::type", message).at(item.span()));
        }
        Some(sections)
    }

    /// The value as a list of at most `max` texts, each with its place.
    pub(crate) fn strings(&self, max: usize, problems: &mut Problems) -> Option<Vec<(&'t str, Span)>> {
        let DeValue::Array(items) = self.value else { return self.wrong_type("a list of strings", problems) };
        if items.len() > max {
            let message = format!("{} has {} entries, at most {max} are allowed", self.key, items.len());
            return problems.refuse(Diagnostic::error("grants::too_many", message).at(self.key_span.clone()));
        }
        let mut texts = Vec::with_capacity(items.len());
        for item in items.iter() {
            if let DeValue::String(text) = item.get_ref() {
                texts.push((text.as_ref(), item.span()));
                continue;
            }
            let found = type_name(item.get_ref());
            let message = format!("{} must be a list of strings, without {found}", self.key);
            let problem = Diagnostic::error("manifest::type", message).at(item.span());
            problems.add(problem.label(format!("this is {found}")));
        }
        Some(texts)
    }

    /// The value as a table.
    pub(crate) fn section(&self, problems: &mut Problems) -> Option<Section<'t>> {
        if let DeValue::Table(table) = self.value {
            return Some(Section { path: self.path.clone(), table });
        }
        self.wrong_type("a table", problems)
    }

    /// The value as a table with declared keys; reports others.
    pub(crate) fn table(&self, table: &Table, problems: &mut Problems) -> Option<Section<'t>> {
        let section = self.section(problems)?;
        section.check_keys(table, problems);
        Some(section)
    }

    /// The entries of a table with free names, in the order of the file. More than `max` are a
    /// problem; `things` is their plural.
    pub(crate) fn entries(&self, max: usize, code: &'static str, things: &str, problems: &mut Problems) -> Vec<Self> {
        let Some(section) = self.section(problems) else { return Vec::new() };
        if section.len() > max {
            let message = format!("{} has {} {things}, at most {max} are allowed", self.key, section.len());
            problems.add(self.key_error(code, message));
            return Vec::new();
        }
        section.entries()
    }

    /// The variant with this text as its word.
    pub(crate) fn word<W: Word>(&self, problems: &mut Problems) -> Option<W> {
        let text = self.string(problems)?;
        W::of(text).or_else(|| {
            let known = quoted(W::WORDS, "or");
            problems.refuse(self.error(W::CODE, format!("{} must be {known}, not {text:?}", self.key)))
        })
    }

    /// An error at the value.
    pub(crate) fn error(&self, code: &'static str, message: impl AsRef<str>) -> Diagnostic {
        Diagnostic::error(code, message).at(self.span.clone())
    }

    /// An error at the key.
    pub(crate) fn key_error(&self, code: &'static str, message: impl AsRef<str>) -> Diagnostic {
        Diagnostic::error(code, message).at(self.key_span.clone())
    }

    pub(crate) fn wrong_type<T>(&self, expected: &str, problems: &mut Problems) -> Option<T> {
        let found = type_name(self.value);
        let message = format!("{} must be {expected}, not {found}", self.key);
        problems
            .add(Diagnostic::error("manifest::type", message).at(self.span.clone()).label(format!("this is {found}")));
        None
    }

    fn not_yet(&self) -> Diagnostic {
        Diagnostic::error("manifest::not_supported_yet", format!("{} is not supported by this version", self.path))
            .at(self.key_span.clone())
            .hint(format!("remove it: nothing would enforce or grant what {} says", self.key))
    }

    fn unknown(&self, table: &Table) -> Diagnostic {
        let problem = self.key_error("manifest::unknown_key", format!("unknown key {:?}", self.key));
        let other_name = table.other_names.iter().find(|(other, _)| self.key.eq_ignore_ascii_case(other));
        let has_limits = table.names().any(|name| name == "limits");
        if other_name.is_none() && has_limits && Limit::from_key(self.key).is_some() {
            return problem.hint(format!("limits have a table of their own: limits = {{ {} = … }}", self.key));
        }
        let meant = match other_name {
            Some((_, key)) => Some(*key),
            None => did_you_mean(self.key, table.names().chain(table.later.iter().copied())),
        };
        match meant {
            Some(key) => problem.hint(format!("did you mean \"{key}\"?")),
            None => problem.hint(format!("keys here are {}", table.names().collect::<Vec<_>>().join(", "))),
        }
    }
}

fn json(key: &str, value: &DeValue<'_>, span: &Span, problems: &mut Problems) -> Option<serde_json::Value> {
    use serde_json::{Map, Number, Value};
    let mut refuse = |what: &str| {
        let message = format!("{key} holds {what}, which JSON does not have");
        problems.refuse(Diagnostic::error("manifest::type", message).at(span.clone()))
    };
    Some(match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) => Value::from(number),
            Err(_) => return refuse("an integer of more than 64 bits"),
        },
        DeValue::Float(float) => match float.as_str().parse::<f64>().ok().and_then(Number::from_f64) {
            Some(number) => Value::Number(number),
            None => return refuse("a number without end"),
        },
        DeValue::Datetime(_) => return refuse("a date"),
        DeValue::Array(items) => Value::Array(
            items.iter().map(|item| json(key, item.get_ref(), &item.span(), problems)).collect::<Option<_>>()?,
        ),
        DeValue::Table(table) => {
            let mut entries: Vec<_> = table.iter().collect();
            entries.sort_by_key(|(key, _)| key.span().start);
            let entry = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
                Some((key.get_ref().to_string(), json(key.get_ref(), value.get_ref(), &value.span(), problems)?))
            };
            Value::Object(entries.into_iter().map(entry).collect::<Option<Map<_, _>>>()?)
        }
    })
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_that_is_left_out_is_counted_and_not_described() {
        let mut problems = Problems::default();
        (0..DIAGNOSTICS_MAX).for_each(|_| problems.add(Diagnostic::error("manifest::type", "wrong")));
        problems.add_made(|| unreachable!("it is described"));
        assert_eq!(problems.errors(), DIAGNOSTICS_MAX + 1);
        let found = problems.into_sorted();
        assert_eq!(found.last().map(Diagnostic::message), Some("1 more problems are not shown"));
    }
}
