//! Texts for a component whose functions are tools: `wit`, `skip_unsupported` and `describe`. Must
//! not hold: files, or what functions the component has.

use crate::diagnostic::{Diagnostic, Span};
use crate::names::did_you_mean;
use crate::read::{Entry, Problems, Section, component};
use crate::settings::accessors;

/// Texts of one component. Each describes a function, a type, or a part of either.
pub const DESCRIPTIONS_MAX: usize = 4_096;

/// `wit`, `skip_unsupported` and `[components.NAME.describe]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TypedPolicy {
    pub(crate) wit: Option<(String, Span)>,
    pub(crate) skip_unsupported: Option<(bool, Span)>,
    pub(crate) descriptions: Vec<Description>,
}

accessors! {
    /// One entry of `[components.NAME.describe]`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Description {
        /// The item it describes, by names as in WIT: `get-forecast`, `get-forecast.city` (a
        /// parameter), `place`, `place.lat` (a field, a case or a label).
        pub(crate) key: String => &str,
        pub(crate) key_span: Span,
        /// The description itself.
        pub(crate) text: String => &str,
    }
}

impl TypedPolicy {
    /// The `.wit` file or folder whose comments describe functions and types: a path relative to
    /// the manifest's folder, as it was written.
    #[must_use]
    pub fn wit(&self) -> Option<&str> {
        self.wit.as_ref().map(|(path, _)| path.as_str())
    }

    /// Its place in the manifest.
    #[must_use]
    pub fn wit_span(&self) -> Option<Span> {
        self.wit.as_ref().map(|(_, span)| span.clone())
    }

    /// True leaves out functions that cannot be tools; by default they are an error.
    #[must_use]
    pub fn skip_unsupported(&self) -> bool {
        self.skip_unsupported.as_ref().is_some_and(|(skip, _)| *skip)
    }

    /// Texts of the manifest's own, in the order of the file.
    #[must_use]
    pub fn descriptions(&self) -> &[Description] {
        &self.descriptions
    }

    /// Compares the texts with the component. `describable` is everything of it that can be
    /// described; it has none where its functions are no tools.
    #[must_use]
    pub fn check(&self, component: &str, describable: Option<&[String]>) -> Vec<Diagnostic> {
        let Some(describable) = describable else { return self.check_other_shape(component) };
        let unknown = self.descriptions.iter().filter(|description| !describable.contains(&description.key));
        let problems = unknown.map(|description| {
            let key = &description.key;
            let message = format!("component {component:?} has no function, type or part of one called {key:?}");
            let problem = Diagnostic::error("describe::unknown", message).at(description.key_span.clone());
            match did_you_mean(key, describable.iter().map(String::as_str)) {
                Some(name) => problem.hint(format!("did you mean \"{name}\"?")),
                None => {
                    problem.hint("toolcell inspect shows a component's functions; names are as in WIT, with hyphens")
                }
            }
        });
        problems.collect()
    }

    fn check_other_shape(&self, component: &str) -> Vec<Diagnostic> {
        let described = self.descriptions.first().map(|description| ("describe", description.key_span.clone()));
        let wit = self.wit_span().map(|span| ("wit", span));
        let skip = self.skip_unsupported.as_ref().map(|(_, span)| ("skip_unsupported", span.clone()));
        let said = [wit, skip, described].into_iter().flatten();
        let problems = said.map(|(key, span)| {
            let message = format!("{key} of component {component:?} can never apply");
            Diagnostic::error("describe::shape", message)
                .at(span)
                .label("its tools are not functions over WIT values")
                .hint("remove it")
        });
        problems.collect()
    }
}

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
    if let Some(problem) = component::path_problem("wit", folder, "\"wit/\" or \"wit/weather.wit\"") {
        return problems.refuse(problem.at(entry.span.clone()));
    }
    Some((text.to_owned(), entry.span.clone()))
}

fn read_all(entry: &Entry<'_>, problems: &mut Problems) -> Vec<Description> {
    let Some(section) = entry.section(problems) else { return Vec::new() };
    if section.len() > DESCRIPTIONS_MAX {
        let message = format!("describe has {} entries, {DESCRIPTIONS_MAX} are allowed", section.len());
        problems.add(entry.key_error("describe::too_many", message));
        return Vec::new();
    }
    section.entries().iter().filter_map(|entry| read_one(entry, problems)).collect()
}

fn read_one(entry: &Entry<'_>, problems: &mut Problems) -> Option<Description> {
    if entry.is_table() {
        // `place.lat = "…"` without quotes is a table `place` to TOML.
        let message = format!("{} must be a string, not a table", entry.key);
        let hint = format!("put a key with a dot in quotes: \"{}.PART\" = \"…\"", entry.key);
        return problems.refuse(entry.key_error("manifest::type", message).hint(hint));
    }
    let text = entry.string(problems)?.trim();
    if !is_wit_name(entry.key) {
        let message = format!("{:?} is not the name of a function or a type, or of a part of one", entry.key);
        return problems.refuse(
            entry
                .key_error("describe::name", message)
                .hint("write NAME or NAME.PART as in WIT, such as \"get-forecast.city\""),
        );
    }
    if text.is_empty() {
        let message = format!("the description of {:?} is empty", entry.key);
        return problems.refuse(entry.error("describe::empty", message).hint("remove the key"));
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
