//! Keys for a component whose functions are tools: `wit`, `skip_unsupported`, `exports` and
//! `describe`.

use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, Span};
use crate::names::{check_tool, meant_or};
use crate::read::{Entry, Problems, Section, component};
use crate::settings::accessors;

/// Texts of one component. Each describes a function, a type, or a part of either.
pub const DESCRIPTIONS_MAX: usize = 4_096;

/// Functions that `exports` names: as many as a component may have tools.
pub const EXPORTS_MAX: usize = 10_000;

/// Problems of `exports` and `describe` that are reported, each with a suggestion.
const PROBLEMS_MAX: usize = 20;

/// Names that such a suggestion compares: those of the largest components that people write by
/// hand.
const GUESSES_MAX: usize = 1_000;

/// `wit`, `skip_unsupported`, `[components.NAME.exports]` and `[components.NAME.describe]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TypedPolicy {
    pub(crate) wit: Option<(String, Span)>,
    pub(crate) skip_unsupported: Option<(bool, Span)>,
    pub(crate) exports: Vec<NamedExport>,
    pub(crate) descriptions: Vec<Description>,
}

accessors! {
    /// One entry of `[components.NAME.exports]`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct NamedExport {
        /// The function as in WIT: `acme:weather/days.get-forecast`, with a version
        /// (`acme:weather/days@1.0.0.get-forecast`) or without, or `get-forecast` of the world.
        pub(crate) function: String => &str,
        pub(crate) function_span: Span,
        /// The tool's name, without prefix.
        pub(crate) tool: String => &str,
    }
}

/// The functions of a component, as its loader reports them. Names are as in WIT, with interface
/// and version: `acme:weather/days@1.0.0.get-forecast`.
#[derive(Clone, Copy, Debug)]
pub struct ExportedFunctions<'a> {
    /// Those that are tools; `None` if its functions are not.
    pub served: Option<&'a [String]>,
    /// Each other one with the reason, such as "its result has a resource".
    pub left_out: &'a [(&'a str, &'a str)],
    /// Everything that can be described, by the names that `describe` goes by.
    pub describable: &'a [String],
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

    /// True to suppress warnings about unsupported functions.
    #[must_use]
    pub fn skip_unsupported(&self) -> bool {
        self.skip_unsupported.as_ref().is_some_and(|(skip, _)| *skip)
    }

    /// Texts of the manifest's own, in the order of the file.
    #[must_use]
    pub fn descriptions(&self) -> &[Description] {
        &self.descriptions
    }

    /// The functions that are tools, in the order of the file. If empty, all functions of the
    /// component are.
    #[must_use]
    pub fn exports(&self) -> &[NamedExport] {
        &self.exports
    }

    /// The function that [`exports`](Self::exports) makes this tool, as it is written there.
    pub(crate) fn function_of(&self, tool: &str) -> Option<&str> {
        self.exports.iter().find(|export| export.tool == tool).map(NamedExport::function)
    }

    /// Compares what the manifest says with the functions of the component.
    #[must_use]
    pub fn check(&self, component: &str, functions: ExportedFunctions<'_>) -> Vec<Diagnostic> {
        let Some(served) = functions.served else {
            return self.check_other_shape(component, functions.left_out.is_empty());
        };
        let mut problems = self.check_exports(component, served, functions.left_out);
        problems.extend(self.check_descriptions(component, functions.describable));
        problems
    }

    fn check_exports(&self, component: &str, served: &[String], left_out: &[(&str, &str)]) -> Vec<Diagnostic> {
        if self.exports.is_empty() {
            return Vec::new();
        }
        // Of each name, with and without version: the functions that have it.
        let mut named: HashMap<String, Vec<&str>> = HashMap::new();
        for function in served {
            named.entry(function.clone()).or_default().push(function);
            let plain = unversioned(function);
            if plain != *function {
                named.entry(plain).or_default().push(function);
            }
        }
        let problem = |export: &NamedExport| {
            let function = export.function();
            let (message, hint) = match named.get(function).map(Vec::as_slice) {
                Some([_]) => return None,
                Some(several) => (
                    format!("component {component:?} has {} functions {function:?}", several.len()),
                    format!("add the version: {}", several.join(" or ")),
                ),
                None => match left_out.iter().find(|(name, _)| *name == function || unversioned(name) == function) {
                    Some((_, reason)) => (
                        format!("function {function:?} of component {component:?} cannot be a tool: {reason}"),
                        "remove it".to_owned(),
                    ),
                    None => (format!("component {component:?} has no function {function:?}"), guess(function, served)),
                },
            };
            Some(Diagnostic::error("exports::unknown", message).at(export.function_span.clone()).hint(hint))
        };
        self.exports.iter().filter_map(problem).take(PROBLEMS_MAX).collect()
    }

    fn check_descriptions(&self, component: &str, describable: &[String]) -> Vec<Diagnostic> {
        let unknown = self.descriptions.iter().filter(|description| !describable.contains(&description.key));
        let problems = unknown.take(PROBLEMS_MAX).map(|description| {
            let key = &description.key;
            let message = format!("component {component:?} has no function, type or part of one called {key:?}");
            let problem = Diagnostic::error("describe::unknown", message).at(description.key_span.clone());
            let otherwise = "toolcell inspect shows a component's functions; names are as in WIT, with hyphens";
            problem.hint(meant_or(key, describable.iter().take(GUESSES_MAX).map(String::as_str), otherwise))
        });
        problems.collect()
    }

    fn check_other_shape(&self, component: &str, has_nothing_to_skip: bool) -> Vec<Diagnostic> {
        let described = self.descriptions.first().map(|description| ("describe", description.key_span.clone()));
        let exports = self.exports.first().map(|export| ("exports", export.function_span.clone()));
        let wit = self.wit_span().map(|span| ("wit", span));
        let skip = self.skip_unsupported.as_ref().filter(|_| has_nothing_to_skip);
        let skip = skip.map(|(_, span)| ("skip_unsupported", span.clone()));
        let said = [wit, skip, exports, described].into_iter().flatten();
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
        exports: section.get("exports").map(|entry| read_exports(&entry, problems)).unwrap_or_default(),
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

fn read_exports(entry: &Entry<'_>, problems: &mut Problems) -> Vec<NamedExport> {
    let entries = entry.entries(EXPORTS_MAX, "exports::too_many", "entries", problems);
    if entries.is_empty() && entry.is_table() {
        let problem = entry.key_error("exports::empty", "exports names no function, so there would be no tool");
        problems.add(problem.hint("leave the key out: then each function is a tool"));
    }
    let mut exports: Vec<NamedExport> = Vec::with_capacity(entries.len());
    let mut first: HashMap<&str, &str> = HashMap::new();
    for entry in &entries {
        let Some(tool) = read_export(entry, problems) else { continue };
        if let Some(other) = first.insert(tool, entry.key) {
            let message = format!("{other:?} and {:?} would both be the tool {tool:?}", entry.key);
            problems.add(entry.error("exports::twice", message).hint("give one of them another name"));
            continue;
        }
        exports.push(NamedExport {
            function: entry.key.to_owned(),
            function_span: entry.key_span.clone(),
            tool: tool.to_owned(),
        });
    }
    exports
}

/// The tool's name in an entry of `exports`.
fn read_export<'t>(entry: &Entry<'t>, problems: &mut Problems) -> Option<&'t str> {
    if entry.is_table() {
        // `api.run = "…"` without quotes is a table `api` to TOML.
        let message = format!("{} must be a string, not a table", entry.key);
        let hint = format!("put a key with a dot in quotes: \"{}.FUNCTION\" = \"…\"", entry.key);
        return problems.refuse(entry.key_error("manifest::type", message).hint(hint));
    }
    let tool = entry.string(problems)?;
    if !is_function_name(entry.key) {
        let message = format!("{:?} is not the name of a function", entry.key);
        let hint = "write INTERFACE.FUNCTION as in WIT, such as \"acme:weather/days.get-forecast\"";
        return problems.refuse(entry.key_error("exports::name", message).hint(hint));
    }
    if let Err(error) = check_tool(tool) {
        let message = format!("tool name {tool:?} {error}");
        let hint = "tool names are 1 to 64 of A-Z, a-z, 0-9, _ and -";
        return problems.refuse(entry.error("tools::name", message).hint(hint));
    }
    Some(tool)
}

/// A hint with the function that was probably meant. It has a version only if it needs one.
fn guess(function: &str, served: &[String]) -> String {
    let candidates: Vec<String> = served
        .iter()
        .take(GUESSES_MAX)
        .map(|name| if function.contains('@') { name.clone() } else { unversioned(name) })
        .collect();
    let otherwise = "toolcell inspect shows the functions of a component, as in WIT";
    meant_or(function, candidates.iter().map(String::as_str), otherwise)
}

/// A label of WIT, with an interface before it or without.
fn is_function_name(key: &str) -> bool {
    match key.rsplit_once('.') {
        None => is_label(key),
        Some((interface, function)) => {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b":/@.-+".contains(&byte);
            is_label(function) && !interface.is_empty() && interface.bytes().all(is_allowed)
        }
    }
}

/// `acme:weather/days.get-forecast` for `acme:weather/days@1.0.0.get-forecast`.
fn unversioned(function: &str) -> String {
    match function.split_once('@').zip(function.rsplit_once('.')) {
        Some(((interface, _), (_, name))) => format!("{interface}.{name}"),
        None => function.to_owned(),
    }
}

fn read_all(entry: &Entry<'_>, problems: &mut Problems) -> Vec<Description> {
    let entries = entry.entries(DESCRIPTIONS_MAX, "describe::too_many", "entries", problems);
    entries.iter().filter_map(|entry| read_one(entry, problems)).collect()
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

/// Words of letters and digits with hyphens between them.
fn is_label(label: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    label.starts_with(|first: char| first.is_ascii_alphabetic()) && label.split('-').all(is_word)
}

/// One or two labels of WIT.
fn is_wit_name(key: &str) -> bool {
    match key.split_once('.') {
        None => is_label(key),
        Some((name, part)) => is_label(name) && is_label(part),
    }
}
