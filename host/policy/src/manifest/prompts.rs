//! The section `[prompts]`: texts that a person chooses to begin with, and their arguments.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::icons::{self, ICON, ICONS_MAX, IconRule};
use crate::names::{self, did_you_mean};
use crate::quantity::show_bytes;
use crate::read::{Entry, Problems, Section, paths, texts};
use crate::settings::accessors;
use crate::table::table;

/// Prompts of one manifest. People look through the whole list.
pub const PROMPTS_MAX: usize = 256;

/// Arguments of one prompt. People fill them in one after the other.
const ARGUMENTS_MAX: usize = 64;

/// Values of one argument, and the bytes of one: clients show them as lines of a list.
const VALUES_MAX: usize = 1_000;
const VALUE_BYTES_MAX: usize = 256;

/// The longest text of a prompt, in bytes: about 64,000 tokens, more than most models take.
pub const PROMPT_BYTES_MAX: usize = 256 << 10;

accessors! {
    /// One `[prompts.NAME]`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct PromptRule {
        /// Its name for clients: [`names::check_tool`] holds.
        pub(crate) name: String => &str,
        /// The place of its name in the manifest.
        pub(crate) span: Span => Span,
        /// A name for people.
        pub(crate) title: Option<String> => Option<&str>,
        /// A description for people.
        pub(crate) description: Option<String> => Option<&str>,
        /// Pictures for user interfaces.
        pub(crate) icons: Vec<IconRule> => &[IconRule],
        /// The source of its text.
        pub(crate) source: PromptSource => &PromptSource,
        /// Its arguments, in the order of the file.
        pub(crate) arguments: Vec<ArgumentRule> => &[ArgumentRule],
    }
}

accessors! {
    /// One argument of a prompt.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ArgumentRule {
        /// Its name.
        pub(crate) name: String => &str,
        /// The place of its name in the manifest.
        pub(crate) span: Span => Span,
        /// A name for people.
        pub(crate) title: Option<String> => Option<&str>,
        /// A description for people.
        pub(crate) description: Option<String> => Option<&str>,
        /// True if the prompt is not got without it.
        pub(crate) required: bool => bool,
        /// The values that are offered as completions.
        pub(crate) values: Vec<String> => &[String],
    }
}

/// The source of a prompt's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptSource {
    /// In the manifest.
    Text(PromptText),
    /// A file, relative to the manifest.
    File(String),
}

/// A text with places for arguments.
///
/// | form | stands for |
/// |---|---|
/// | `{name}` | the argument of this name; nothing where it is not given |
/// | `{{name}}` | itself with one brace on each side |
/// | any other brace | itself |
///
/// ```
/// use toolcell_policy::PromptText;
///
/// let text = PromptText::parse("{code} {{code}} {} { fn }", &["code"]).unwrap();
/// let given = [("code".to_owned(), "{code}".to_owned())].into();
/// assert_eq!(text.with(&given), "{code} {code} {} { fn }");
/// assert_eq!(text.bytes_with(&given), 23);
/// assert!(PromptText::parse("{cod}", &["code"]).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptText {
    parts: Vec<PromptPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PromptPart {
    Text(String),
    Argument(String),
}

/// Why a prompt has no text for these arguments. The message ends a sentence that begins with the
/// prompt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptTextError {
    /// Too long.
    #[error("has a text of more than {}", show_bytes(PROMPT_BYTES_MAX as u64))]
    TooLong,
    /// Nothing but white space.
    #[error("has an empty text")]
    Empty,
    /// It names an argument that is not declared.
    #[error("names {{{0}}} in its text, and has no such argument")]
    Unknown(String),
    /// It does not name an argument.
    #[error("has an argument {0:?} that its text does not name")]
    Unused(String),
}

impl PromptText {
    /// Reads a text with these arguments.
    ///
    /// # Errors
    /// [`PromptTextError`] where the text is too long or empty, or does not fit the arguments.
    pub fn parse(text: &str, arguments: &[&str]) -> Result<Self, PromptTextError> {
        if text.len() > PROMPT_BYTES_MAX {
            return Err(PromptTextError::TooLong);
        }
        if text.trim().is_empty() {
            return Err(PromptTextError::Empty);
        }
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut used = BTreeSet::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            if let Some((name, after)) = from.strip_prefix("{{").and_then(|inside| named(inside, "}}")) {
                plain.push_str(&format!("{{{name}}}"));
                rest = after;
            } else if let Some((name, after)) = from.strip_prefix('{').and_then(|inside| named(inside, "}")) {
                if !arguments.contains(&name) {
                    return Err(PromptTextError::Unknown(name.to_owned()));
                }
                parts.push(PromptPart::Text(std::mem::take(&mut plain)));
                parts.push(PromptPart::Argument(name.to_owned()));
                used.insert(name);
                rest = after;
            } else {
                plain.push('{');
                rest = from.get(1..).unwrap_or_default();
            }
        }
        plain.push_str(rest);
        parts.push(PromptPart::Text(plain));
        match arguments.iter().find(|name| !used.contains(*name)) {
            Some(name) => Err(PromptTextError::Unused((*name).to_owned())),
            None => Ok(Self { parts }),
        }
    }

    /// The length of [`with`](Self::with), in bytes. One argument may occur many times.
    #[must_use]
    pub fn bytes_with(&self, given: &BTreeMap<String, String>) -> u64 {
        self.parts.iter().map(|part| part.with(given).len() as u64).fold(0, u64::saturating_add)
    }

    /// The text with these values, which are inserted literally.
    #[must_use]
    pub fn with(&self, given: &BTreeMap<String, String>) -> String {
        self.parts.iter().map(|part| part.with(given)).collect()
    }

    /// Its pieces: a text, then alternating arguments and texts.
    fn pieces(&self) -> Vec<&str> {
        let pieces = self.parts.iter().map(|part| match part {
            PromptPart::Text(text) | PromptPart::Argument(text) => text.as_str(),
        });
        pieces.collect()
    }
}

impl PromptPart {
    fn with<'a>(&'a self, given: &'a BTreeMap<String, String>) -> &'a str {
        match self {
            Self::Text(text) => text,
            Self::Argument(name) => given.get(name).map_or("", String::as_str),
        }
    }
}

/// A name at the start of a text, and the rest.
fn named<'t>(inside: &'t str, end: &str) -> Option<(&'t str, &'t str)> {
    let (name, after) = inside.split_once(end)?;
    names::check_tool(name).ok().map(|()| (name, after))
}

/// Name, title, description, whether it is required, and values of an argument.
type CanonicalArgument<'p> = (&'p str, Option<&'p str>, Option<&'p str>, bool, &'p [String]);

/// Source, type, sizes, and whether it is for a dark background, of an icon.
type CanonicalIcon<'p> = (&'p str, Option<&'p str>, &'p [String], Option<bool>);

#[derive(Serialize)]
struct CanonicalPrompts<'p> {
    arguments: Vec<CanonicalArgument<'p>>,
    description: Option<&'p str>,
    icons: Vec<CanonicalIcon<'p>>,
    text: Vec<&'p str>,
    title: Option<&'p str>,
}

impl PromptRule {
    /// The file of its text, relative to the manifest, if it is in one.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        match &self.source {
            PromptSource::Text(_) => None,
            PromptSource::File(path) => Some(path),
        }
    }

    /// Reads the text of its file.
    ///
    /// # Errors
    /// The problem, at the prompt's place.
    pub fn read_text(&self, text: &str) -> Result<PromptText, Diagnostic> {
        let arguments: Vec<&str> = self.arguments.iter().map(|argument| argument.name.as_str()).collect();
        let text = PromptText::parse(text, &arguments);
        text.map_err(|error| wrong_text(&self.name, &error, &arguments).at(self.span.clone()))
    }

    /// The prompt with this text, as JSON: equal prompts give equal texts.
    #[must_use]
    pub fn canonical(&self, text: &PromptText) -> String {
        let arguments = self.arguments.iter().map(|argument| {
            let ArgumentRule { name, title, description, required, values, .. } = argument;
            (name.as_str(), title.as_deref(), description.as_deref(), *required, values.as_slice())
        });
        let icons = self.icons.iter().map(|icon| (icon.src(), icon.mime_type(), icon.sizes(), icon.is_for_dark()));
        let all = CanonicalPrompts {
            arguments: arguments.collect(),
            description: self.description(),
            icons: icons.collect(),
            text: text.pieces(),
            title: self.title(),
        };
        // Texts, flags and lists always serialize.
        serde_json::to_string(&all).unwrap_or_default()
    }
}

fn wrong_text(name: &str, error: &PromptTextError, arguments: &[&str]) -> Diagnostic {
    let problem = Diagnostic::error("prompts::text", format!("the prompt {name:?} {error}"));
    match error {
        PromptTextError::Unknown(wrong) => match did_you_mean(wrong, arguments.iter().copied()) {
            Some(meant) => problem.hint(format!("did you mean {{{meant}}}? {{{{{wrong}}}}} stands for itself")),
            None => problem
                .hint(format!("add [prompts.{name}.arguments.{wrong}], or write {{{{{wrong}}}}} for the text itself")),
        },
        PromptTextError::Unused(argument) => {
            problem.hint(format!("write {{{argument}}} in it, or remove the argument"))
        }
        PromptTextError::TooLong | PromptTextError::Empty => problem,
    }
}

table! {
    /// One prompt. It runs nothing: its text, with the arguments in it, is one message of the
    /// person.
    pub(crate) PROMPT "Prompt" {
        /// The text. `{name}` stands for an argument, `{{name}}` for itself.
        "text": Text, {"minLength": 1, "maxLength": PROMPT_BYTES_MAX, "examples": ["Review this code:\n{code}"]};
        /// The file of the text, relative to the manifest, instead of `text`.
        "file": Text, {"minLength": 1, "examples": ["prompts/review.md"]};
        /// A name for people.
        "title": Text, {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "examples": ["Code review"]};
        /// A description for people.
        "description": Text, {"examples": ["Looks for mistakes in a piece of code."]};
        /// Pictures for user interfaces.
        "icons": List(&Table(&ICON)),
            {"maxItems": ICONS_MAX, "examples": [[{"src": "https://acme.example/icon.png", "sizes": ["48x48"]}]]};
        /// The arguments, by name. The text names each.
        "arguments": Named(&Table(&ARGUMENT)),
            {"propertyNames": {"pattern": "^[A-Za-z0-9_-]{1,64}$"}, "maxProperties": ARGUMENTS_MAX};
    }
    other names { "template" => "text", "path" => "file", "args" => "arguments", "icon" => "icons" }
}

table! {
    /// One argument of a prompt.
    pub(crate) ARGUMENT "PromptArgument" {
        /// A name for people.
        "title": Text, {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "examples": ["Code"]};
        /// A description for people.
        "description": Text, {"examples": ["The code to review."]};
        /// True if the prompt cannot be fetched without it.
        "required": Flag, {"default": false, "examples": [true]};
        /// Values that clients offer while a person types. Others are accepted all the same.
        "values": List(&Text), {"maxItems": VALUES_MAX, "examples": [["Rust", "Python"]]};
    }
    other names { "enum" => "values", "choices" => "values", "optional" => "required" }
}

/// The prompts, in the order of the file.
pub(crate) fn read(root: &Section<'_>, problems: &mut Problems) -> Vec<PromptRule> {
    let Some(entry) = root.get("prompts") else { return Vec::new() };
    let entries = entry.entries(PROMPTS_MAX, "prompts::too_many", "prompts", problems);
    entries.iter().filter_map(|entry| read_one(entry, problems)).collect()
}

fn read_one(entry: &Entry<'_>, problems: &mut Problems) -> Option<PromptRule> {
    if let Err(error) = names::check_tool(entry.key) {
        problems.add(entry.key_error("prompts::name", format!("prompt name {:?} {error}", entry.key)));
    }
    let section = entry.table(&PROMPT, problems)?;
    let arguments: Vec<ArgumentRule> = match section.get("arguments") {
        Some(arguments) => {
            let all = arguments.entries(ARGUMENTS_MAX, "prompts::too_many", "arguments", problems);
            all.iter().filter_map(|entry| read_argument(entry, problems)).collect()
        }
        None => Vec::new(),
    };
    let source = read_source(entry, &section, &arguments, problems);
    let title = section.get("title").and_then(|entry| texts::line(&entry, "prompts::text", problems));
    let description = section.get("description").and_then(|entry| texts::lines(&entry, "prompts::text", problems));
    let icons = section.get("icons").and_then(|entry| icons::read(&entry, problems)).unwrap_or_default();
    let name = entry.key.to_owned();
    let span = entry.key_span.clone();
    Some(PromptRule { name, span, title, description, icons, source: source?, arguments })
}

fn read_source(
    entry: &Entry<'_>,
    section: &Section<'_>,
    arguments: &[ArgumentRule],
    problems: &mut Problems,
) -> Option<PromptSource> {
    match (section.get("text"), section.get("file")) {
        (Some(text), None) => {
            let names: Vec<&str> = arguments.iter().map(|argument| argument.name.as_str()).collect();
            match PromptText::parse(text.string(problems)?, &names) {
                Ok(text) => Some(PromptSource::Text(text)),
                Err(error) => problems.refuse(wrong_text(entry.key, &error, &names).at(text.span.clone())),
            }
        }
        (None, Some(file)) => paths::host_path(&file, problems).map(PromptSource::File),
        (Some(_), Some(file)) => {
            // Both are read, so that the type of each is checked.
            let message = format!("the prompt {:?} has a text and a file", entry.key);
            problems.refuse(file.key_error("prompts::text", message).hint("keep one of both"))
        }
        (None, None) => {
            let message = format!("the prompt {:?} has no text", entry.key);
            let problem = entry.key_error("manifest::missing", message);
            problems.refuse(problem.hint("add text = \"…\", or file = \"prompts/NAME.md\""))
        }
    }
}

fn read_argument(entry: &Entry<'_>, problems: &mut Problems) -> Option<ArgumentRule> {
    if let Err(error) = names::check_tool(entry.key) {
        problems.add(entry.key_error("prompts::name", format!("argument name {:?} {error}", entry.key)));
    }
    let section = entry.table(&ARGUMENT, problems)?;
    let title = section.get("title").and_then(|entry| texts::line(&entry, "prompts::text", problems));
    let description = section.get("description").and_then(|entry| texts::lines(&entry, "prompts::text", problems));
    let required = section.get("required").and_then(|entry| entry.boolean(problems)).unwrap_or_default();
    let values = section.get("values").map(|entry| read_values(&entry, problems)).unwrap_or_default();
    let name = entry.key.to_owned();
    let span = entry.key_span.clone();
    Some(ArgumentRule { name, span, title, description, required, values })
}

/// Values that are offered as completions.
pub(crate) fn read_values(entry: &Entry<'_>, problems: &mut Problems) -> Vec<String> {
    let mut values = Vec::new();
    for (text, span) in entry.strings(VALUES_MAX, problems).unwrap_or_default() {
        if !text.is_empty() && text.len() <= VALUE_BYTES_MAX && !text.chars().any(char::is_control) {
            values.push(text.to_owned());
            continue;
        }
        let problem =
            Diagnostic::error("prompts::values", format!("{text:?} is not a value that can be offered")).at(span);
        problems.add(problem.hint(format!("write 1 to {VALUE_BYTES_MAX} bytes without control characters")));
    }
    values
}
