//! The resources that a component's tools read: their addresses, and the tool for each. Must not
//! hold: how they are read, or what a tool answers.

use crate::diagnostic::{Diagnostic, Span};
use crate::names::{self, did_you_mean};
use crate::read::{Entry, Problems, Section, texts};
use crate::settings::accessors;
use crate::table::table;

/// Rules of one component. Clients show what they list.
pub const RESOURCES_MAX: usize = 64;

/// Longest address, in bytes: what clients and proxies take.
pub(crate) const URI_BYTES_MAX: usize = 2_048;

/// Most variables of an address.
const VARIABLES_MAX: usize = 8;

/// An address, or a template of addresses (RFC 6570, as far as it goes here).
///
/// | form | stands for | example |
/// |---|---|---|
/// | anything else | itself | `note:///index` |
/// | `{name}` | one or more characters, none of them `/`, `?` or `#` | `note:///{topic}/index` |
/// | `{+name}` | one or more characters | `note:///{+path}` |
///
/// ```
/// use toolcell_policy::UriTemplate;
///
/// for (template, uri, matches) in [
///     ("note:///index", "note:///index", true),
///     ("note:///index", "note:///index2", false),
///     ("note:///{name}", "note:///disk", true),
///     ("note:///{name}", "note:///", false),
///     ("note:///{name}", "note:///a/b", false),
///     ("note:///{+path}", "note:///a/b?c#d", true),
///     ("note:///{a}/x/{b}", "note:///1/x/2", true),
///     ("note:///{+a}/x", "note:///x/x/x", true),
///     ("note:///{+a}/x", "note:///x/x/y", false),
/// ] {
///     assert_eq!(UriTemplate::parse(template).unwrap().matches(uri), matches, "{template} {uri}");
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Segment,
    Rest,
}

impl UriTemplate {
    /// Reads one.
    ///
    /// # Errors
    /// The end of a sentence that begins with the address.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > URI_BYTES_MAX {
            return Err("is longer than 2048 bytes");
        }
        if !text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`'))
        {
            return Err("holds characters that no address has");
        }
        let scheme = text.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
        let in_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(in_scheme) {
            return Err("must begin with a scheme, such as note:");
        }
        let (mut parts, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let (part, after) = Part::first_of(rest)?;
            parts.push(part);
            rest = after;
        }
        if parts.iter().filter(|part| !matches!(part, Part::Text(_))).count() > VARIABLES_MAX {
            return Err("has more than 8 variables");
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True if it stands for many addresses.
    #[must_use]
    pub fn has_variables(&self) -> bool {
        self.parts.iter().any(|part| !matches!(part, Part::Text(_)))
    }

    /// True if it stands for this address. Takes steps in proportion to the address, for each part.
    #[must_use]
    pub fn matches(&self, uri: &str) -> bool {
        let bytes = uri.as_bytes();
        if bytes.len() > URI_BYTES_MAX {
            return false;
        }
        // Where the parts so far may end.
        let mut ends = vec![false; bytes.len() + 1];
        if let Some(start) = ends.first_mut() {
            *start = true;
        }
        for part in &self.parts {
            ends = part.ends(bytes, &ends);
        }
        ends.last().is_some_and(|end| *end)
    }
}

impl Part {
    fn first_of(text: &str) -> Result<(Self, &str), &'static str> {
        let Some(inside) = text.strip_prefix('{') else {
            let end = text.find(['{', '}']).unwrap_or(text.len());
            let (plain, rest) = text.split_at(end);
            if plain.is_empty() {
                return Err("has a } without a {");
            }
            return Ok((Self::Text(plain.to_owned()), rest));
        };
        let (name, rest) = inside.split_once('}').ok_or("has a { without a }")?;
        let (part, name) = match name.strip_prefix('+') {
            Some(name) => (Self::Rest, name),
            None => (Self::Segment, name),
        };
        let named = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if named { Ok((part, rest)) } else { Err("has a variable other than {name} and {+name}") }
    }

    /// The positions at which it may end, from those at which it may begin.
    fn ends(&self, bytes: &[u8], begins: &[bool]) -> Vec<bool> {
        let mut ends = vec![false; begins.len()];
        let mut inside = false;
        for (place, begin) in begins.iter().enumerate() {
            if let Self::Text(text) = self {
                let fits = *begin && bytes.get(place..).is_some_and(|rest| rest.starts_with(text.as_bytes()));
                if let Some(end) = ends.get_mut(place + text.len()).filter(|_| fits) {
                    *end = true;
                }
                continue;
            }
            if let Some(end) = ends.get_mut(place) {
                *end = inside;
            }
            let stops = *self == Self::Segment && bytes.get(place).is_some_and(|byte| b"/?#".contains(byte));
            inside = (inside || *begin) && !stops;
        }
        ends
    }
}

accessors! {
    /// One entry of `[components.NAME.resources]`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ResourceRule {
        /// The addresses that the rule is for.
        pub(crate) uri: UriTemplate => &UriTemplate,
        pub(crate) span: Span,
        /// The tool that reads them, by its own name, without prefix.
        pub(crate) tool: String => &str,
        /// The argument of the tool that is given the address.
        pub(crate) argument: String => &str,
        /// Its name for programs; `None`: the last part of its address.
        pub(crate) name: Option<String> => Option<&str>,
        /// Its name for people.
        pub(crate) title: Option<String> => Option<&str>,
        /// Its description.
        pub(crate) description: Option<String> => Option<&str>,
        /// Its media type.
        pub(crate) mime_type: Option<String> => Option<&str>,
    }
}

/// A tool that a component has, and what its input schema says of its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolArguments<'t> {
    /// Its own name, without prefix.
    pub name: &'t str,
    /// Those that it names; empty where it takes anything.
    pub known: Vec<String>,
    /// Those that it asks for.
    pub required: Vec<String>,
}

impl ResourceRule {
    /// Compares it with the tools that the component has.
    #[must_use]
    pub fn check(&self, component: &str, tools: &[ToolArguments<'_>]) -> Option<Diagnostic> {
        let uri = &self.uri.text;
        let Some(tool) = tools.iter().find(|tool| tool.name == self.tool) else {
            let message = format!("component {component:?} has no tool {:?} to read {uri}", self.tool);
            return Some(self.unknown(message, &self.tool, tools.iter().map(|tool| tool.name).collect()));
        };
        if !tool.known.is_empty() && !tool.known.contains(&self.argument) {
            let message =
                format!("tool {:?} takes no argument {:?} for the address of {uri}", self.tool, self.argument);
            return Some(self.unknown(message, &self.argument, tool.known.iter().map(String::as_str).collect()));
        }
        let other = tool.required.iter().find(|required| **required != self.argument)?;
        let message = format!("tool {:?} asks for {other:?} as well, so it cannot read {uri}", self.tool);
        Some(self.problem(message).hint("only a tool that needs no argument but the address can read resources"))
    }

    fn unknown(&self, message: String, wrong: &str, known: Vec<&str>) -> Diagnostic {
        match did_you_mean(wrong, known.iter().copied()) {
            Some(name) => self.problem(message).hint(format!("did you mean \"{name}\"?")),
            None => self.problem(message).hint(format!("there are: {}", known.join(", "))),
        }
    }

    fn problem(&self, message: String) -> Diagnostic {
        Diagnostic::error("resources::tool", message).at(self.span.clone())
    }
}

/// The argument that is given the address where the manifest names none.
const ARGUMENT: &str = "uri";

/// Longest MIME type, in characters.
const MIME_TYPE_CHARS_MAX: usize = 127;

table! {
    /// The resources of one address, which a call of a tool reads.
    pub(crate) RESOURCE "Resource" {
        /// The tool that reads them, by its own name, without prefix. What it embeds, or else its
        /// texts, pictures and sounds, is what they hold.
        "tool" required: Text, {"pattern": "^[A-Za-z0-9_-]{1,64}$", "examples": ["notebook_read"]};
        /// The argument of the tool that is given the address.
        "argument": Text,
            {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "default": "uri", "examples": ["note"]};
        /// A name for programs; the last part of the address by default.
        "name": Text, {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "examples": ["index"]};
        /// A name for people.
        "title": Text,
            {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "examples": ["Index of the notes"]};
        /// A description.
        "description": Text, {"examples": ["All notes, with a line on each."]};
        /// The media type of the data.
        "mime_type": Text, {"maxLength": MIME_TYPE_CHARS_MAX, "examples": ["text/markdown"]};
    }
    other names {
        "type" => "mime_type", "mimeType" => "mime_type", "read" => "tool", "arg" => "argument",
    }
}

/// The rules of a component, in the order of the file.
pub(crate) fn read(section: &Section<'_>, problems: &mut Problems) -> Vec<ResourceRule> {
    let Some(entry) = section.get("resources") else { return Vec::new() };
    let Some(section) = entry.section(problems) else { return Vec::new() };
    if section.len() > RESOURCES_MAX {
        let message = format!("resources has {} entries, {RESOURCES_MAX} are allowed", section.len());
        problems.add(entry.key_error("resources::too_many", message));
        return Vec::new();
    }
    section.entries().iter().filter_map(|entry| read_one(entry, problems)).collect()
}

fn read_one(entry: &Entry<'_>, problems: &mut Problems) -> Option<ResourceRule> {
    let uri = UriTemplate::parse(entry.key).map_err(|wrong| {
        let message = format!("the address {:?} {wrong}", entry.key);
        let problem = entry.key_error("resources::uri", message);
        problems
            .add(problem.hint("write an address such as \"note:///index\", or a template such as \"note:///{name}\""));
    });
    let section = entry.table(&RESOURCE, problems)?;
    let tool = read_tool(entry, &section, problems);
    let argument = match section.get("argument") {
        Some(argument) => texts::line(&argument, "resources::text", problems)?,
        None => ARGUMENT.to_owned(),
    };
    let mut line = |key: &str| section.get(key).and_then(|entry| texts::line(&entry, "resources::text", problems));
    let (name, title) = (line("name"), line("title"));
    let description = section.get("description").and_then(|entry| texts::lines(&entry, "resources::text", problems));
    let mime_type = section.get("mime_type").and_then(|entry| read_mime_type(&entry, problems));
    let (uri, span) = (uri.ok()?, entry.key_span.clone());
    Some(ResourceRule { uri, span, tool: tool?, argument, name, title, description, mime_type })
}

fn read_tool(entry: &Entry<'_>, section: &Section<'_>, problems: &mut Problems) -> Option<String> {
    let Some(tool) = section.get("tool") else {
        let message = format!("nothing says which tool reads {}", entry.key);
        return problems.refuse(
            entry
                .key_error("manifest::missing", message)
                .hint("add tool = \"NAME\", a tool of this component, without its prefix"),
        );
    };
    let name = tool.string(problems)?;
    if let Err(error) = names::check_tool(name) {
        return problems.refuse(tool.error("tools::name", format!("tool name {name:?} {error}")));
    }
    Some(name.to_owned())
}

fn read_mime_type(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let plain = |c: char| c.is_ascii_graphic() || c == ' ';
    if text.split_once('/').is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty())
        && text.len() <= MIME_TYPE_CHARS_MAX
        && text.chars().all(plain)
    {
        return Some(text.to_owned());
    }
    problems.refuse(
        entry
            .error("resources::mime_type", format!("{text:?} is no MIME type"))
            .hint("write one such as \"text/markdown\""),
    )
}
