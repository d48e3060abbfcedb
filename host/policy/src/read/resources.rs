//! Reads `[components.NAME.resources]`. Must not hold: what tools the component has.

use super::{Entry, Problems, Section, texts};
use crate::diagnostic::Diagnostic;
use crate::manifest::{RESOURCES_MAX, ResourceRule, UriTemplate};
use crate::names;
use crate::table::table;

/// The argument that is given the address where the manifest names none.
const ARGUMENT: &str = "uri";

/// Longest MIME type, in characters.
const MIME_TYPE_CHARS_MAX: usize = 127;

table! {
    /// How the resources of one address are read: by a call of a tool.
    pub(crate) RESOURCE "Resource" {
        /// The tool that reads them, by its own name, without prefix. What it embeds, or else its
        /// texts, pictures and sounds, is what they hold.
        "tool" required: Text, {"pattern": "^[A-Za-z0-9_-]{1,64}$", "examples": ["notebook_read"]};
        /// The argument of the tool that is given the address.
        "argument": Text, {"minLength": 1, "maxLength": 128, "default": "uri", "examples": ["note"]};
        /// A name for programs; the last part of the address by default.
        "name": Text, {"minLength": 1, "maxLength": 128, "examples": ["index"]};
        /// A name for people.
        "title": Text, {"minLength": 1, "maxLength": 128, "examples": ["Index of the notes"]};
        /// What it is.
        "description": Text, {"examples": ["All notes, with a line on each."]};
        /// What kind of data it is.
        "mime_type": Text, {"maxLength": 127, "examples": ["text/markdown"]};
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
        problems.add(Diagnostic::error("resources::too_many", message).at(entry.key_span));
        return Vec::new();
    }
    section.entries().iter().filter_map(|entry| read_one(entry, problems)).collect()
}

fn read_one(entry: &Entry<'_>, problems: &mut Problems) -> Option<ResourceRule> {
    let uri = UriTemplate::parse(entry.key).map_err(|wrong| {
        let message = format!("the address {:?} {wrong}", entry.key);
        let problem = Diagnostic::error("resources::uri", message).at(entry.key_span.clone());
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
        problems.add(
            Diagnostic::error("manifest::missing", message)
                .at(entry.key_span.clone())
                .hint("add tool = \"NAME\", a tool of this component, without its prefix"),
        );
        return None;
    };
    let name = tool.string(problems)?;
    if let Err(error) = names::check_tool(name) {
        problems.add(Diagnostic::error("tools::name", format!("tool name {name:?} {error}")).at(tool.span));
        return None;
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
    problems.add(
        Diagnostic::error("resources::mime_type", format!("{text:?} is no MIME type"))
            .at(entry.span.clone())
            .hint("write one such as \"text/markdown\""),
    );
    None
}
