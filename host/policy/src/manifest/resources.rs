//! Resources that a component's tools read: which addresses, and by which tool. Must not hold: how they are read, or what a
//! tool answers.

use crate::diagnostic::{Diagnostic, Span};
use crate::names::did_you_mean;
use crate::settings::accessors;

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
    /// What is wrong with it, as the end of a sentence that begins with it.
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

    /// Whether it stands for many addresses.
    #[must_use]
    pub fn has_variables(&self) -> bool {
        self.parts.iter().any(|part| !matches!(part, Part::Text(_)))
    }

    /// Whether it stands for this address. Takes steps in proportion to the address, for each part.
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

    /// Where it may end, from where it may begin.
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
        /// Which addresses.
        pub(crate) uri: UriTemplate => &UriTemplate,
        pub(crate) span: Span,
        /// The tool that reads them, by its own name, without prefix.
        pub(crate) tool: String => &str,
        /// The argument of the tool that is given the address.
        pub(crate) argument: String => &str,
        /// What programs call it; `None`: the last part of its address.
        pub(crate) name: Option<String> => Option<&str>,
        /// What people call it.
        pub(crate) title: Option<String> => Option<&str>,
        /// What it is.
        pub(crate) description: Option<String> => Option<&str>,
        /// What kind of data it is.
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
