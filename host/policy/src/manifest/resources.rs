//! The resources of a component: their addresses, and the tool or the mount that each is read from.

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, Span};
use crate::grants::{Grants, MountKind};
use crate::limits::{Spec, spec};
use crate::manifest::prompts::read_values;
use crate::names::{self, meant_or};
use crate::quantity::MIB;
use crate::read::{Entry, Problems, Section, paths, texts};
use crate::settings::accessors;
use crate::table::table;

/// Rules of one component. Clients show what they list.
pub const RESOURCES_MAX: usize = 64;

/// Longest address, in bytes: what clients and proxies take.
pub(crate) const URI_BYTES_MAX: usize = 2_048;

/// Bytes of a file that is read as a resource.
pub(crate) const FILE_SIZE: Spec = spec! {
    "file_size" Bytes { min: 1, default: MIB, max: 16 * MIB },
    "A larger file is not read: the host keeps the whole of it in memory, and a model reads less."
};

/// Files of a mount that are listed.
pub(crate) const FILES_LISTED: Spec = spec! {
    "files" Count { min: 1, default: 1_000, max: 10_000 },
    "Further files can be read, and are not listed. The host keeps each one's name in memory, and looks at all of them \
     after a change."
};

/// Most variables of an address.
const VARIABLES_MAX: usize = 8;

/// An address, or a template of addresses (a subset of RFC 6570).
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
    parts: Vec<UriPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum UriPart {
    Text(String),
    Segment(String),
    Rest(String),
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
            return Err("has characters that are not allowed in an address");
        }
        let scheme = text.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
        let in_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(in_scheme) {
            return Err("must begin with a scheme, such as note:");
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (part, after) = UriPart::first_of(rest)?;
            parts.push(part);
            rest = after;
        }
        if parts.iter().filter(|part| !matches!(part, UriPart::Text(_))).count() > VARIABLES_MAX {
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
        self.parts.iter().any(|part| !matches!(part, UriPart::Text(_)))
    }

    /// The names of its variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            UriPart::Text(_) => None,
            UriPart::Segment(name) | UriPart::Rest(name) => Some(name.as_str()),
        })
    }

    /// The text before the variable, where `{+name}` at its end is its only variable: the form that
    /// a folder's files have.
    #[must_use]
    pub fn folder(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [UriPart::Text(text), UriPart::Rest(_)] if text.ends_with('/') => Some(text),
            _ => None,
        }
    }

    /// The text before its only variable and the text after it, and true for `{+name}`.
    #[must_use]
    pub fn around_variable(&self) -> Option<(&str, &str, bool)> {
        let (text, variable, behind) = match self.parts.as_slice() {
            [UriPart::Text(text), variable] => (text, variable, ""),
            [UriPart::Text(text), variable, UriPart::Text(behind)] => (text, variable, behind.as_str()),
            _ => return None,
        };
        match variable {
            UriPart::Text(_) => None,
            UriPart::Segment(_) => Some((text, behind, false)),
            UriPart::Rest(_) => Some((text, behind, true)),
        }
    }

    /// True if it stands for this address. Takes steps in proportion to the address, for each part.
    #[must_use]
    pub fn matches(&self, uri: &str) -> bool {
        let bytes = uri.as_bytes();
        if bytes.len() > URI_BYTES_MAX {
            return false;
        }
        // Most addresses do not even match the first text.
        if let Some(UriPart::Text(text)) = self.parts.first()
            && !uri.starts_with(text.as_str())
        {
            return false;
        }
        // Positions where the parts so far may end.
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

impl UriPart {
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
        let (part, name): (fn(String) -> Self, _) = match name.strip_prefix('+') {
            Some(name) => (Self::Rest, name),
            None => (Self::Segment, name),
        };
        let named = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if named { Ok((part(name.to_owned()), rest)) } else { Err("has a variable other than {name} and {+name}") }
    }

    /// The positions where it may end, given those where it may begin.
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
            let stops = matches!(self, Self::Segment(_)) && bytes.get(place).is_some_and(|byte| b"/?#".contains(byte));
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
        /// The tool that reads them, by its own name, without prefix. Where the host reads a mount
        /// or state, the tool whose callers read it; `None`: callers of all tools of the component.
        pub(crate) tool: Option<String> => Option<&str>,
        /// The mount whose files they are, if they are files.
        pub(crate) files: Option<MountFiles> => Option<&MountFiles>,
        /// The entries of state that they are, if they are entries.
        pub(crate) entries: Option<StateEntries> => Option<&StateEntries>,
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
        /// Values that are offered for variables of its address, by their names.
        pub(crate) values: BTreeMap<String, Vec<String>> => &BTreeMap<String, Vec<String>>,
    }
}

accessors! {
    /// The files of a mount, as resources.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct MountFiles {
        /// The mount's path in the guest's tree.
        pub(crate) mount: String => &str,
        /// The folder of the host, relative to the manifest, as it was written.
        pub(crate) path: String => &str,
        /// The bytes of the largest file that is read.
        pub(crate) file_bytes_max: u64 => u64,
        /// Most files that are listed.
        pub(crate) files_max: usize => usize,
    }
}

/// Entries of a component's state (`wasi:keyvalue`), as resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateEntries {
    /// The name of the bucket.
    pub bucket: String,
    /// The key of the one entry; `None`: the variable of the address is the key.
    pub key: Option<String>,
}

/// A tool of a component, and the arguments in its input schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolArguments<'t> {
    /// Its own name, without prefix.
    pub name: &'t str,
    /// The named arguments; empty if it takes anything.
    pub known: Vec<String>,
    /// The required arguments.
    pub required: Vec<String>,
}

impl ResourceRule {
    /// Compares it with the tools that the component has.
    #[must_use]
    pub fn check(&self, component: &str, tools: &[ToolArguments<'_>]) -> Option<Diagnostic> {
        let uri = &self.uri.text;
        let name = self.tool.as_deref()?;
        let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
            let message = format!("component {component:?} has no tool {name:?} to read {uri}");
            return Some(self.unknown(message, name, tools.iter().map(|tool| tool.name).collect()));
        };
        if self.is_read_by_host() {
            return None;
        }
        if !tool.known.is_empty() && !tool.known.contains(&self.argument) {
            let message = format!("tool {name:?} takes no argument {:?} for the address of {uri}", self.argument);
            return Some(self.unknown(message, &self.argument, tool.known.iter().map(String::as_str).collect()));
        }
        let other = tool.required.iter().find(|required| **required != self.argument)?;
        let message = format!("tool {name:?} asks for {other:?} as well, so it cannot read {uri}");
        Some(self.problem(message).hint("only a tool that needs no argument but the address can read resources"))
    }

    /// True if the host reads them itself, without a call.
    #[must_use]
    pub fn is_read_by_host(&self) -> bool {
        self.files.is_some() || self.entries.is_some()
    }

    fn unknown(&self, message: String, wrong: &str, known: Vec<&str>) -> Diagnostic {
        let otherwise = format!("there are: {}", known.join(", "));
        self.problem(message).hint(meant_or(wrong, known, otherwise))
    }

    fn problem(&self, message: String) -> Diagnostic {
        Diagnostic::error("resources::tool", message).at(self.span.clone())
    }
}

/// The argument that is given the address where the manifest names none.
const ARGUMENT: &str = "uri";

/// Bytes of a bucket's name, as guests may open them.
const BUCKET_BYTES_MAX: usize = 64;

/// Bytes of a key, as state takes them.
const KEY_BYTES_MAX: usize = 512;

/// Longest MIME type, in characters.
const MIME_TYPE_CHARS_MAX: usize = 127;

table! {
    /// The resources of one address: `tool`, `mount` or `keyvalue`.
    pub(crate) RESOURCE "Resource" {
        /// The tool that reads them, without prefix. They hold what it embeds, or else its texts,
        /// pictures and sounds. With `mount` or `keyvalue`: the tool whose callers read them, in
        /// place of all tools of the component.
        "tool": Text, {"pattern": "^[A-Za-z0-9_-]{1,64}$", "examples": ["notebook_read"]};
        /// The mount of the component whose files they are. The address ends with `/{+path}`, the
        /// file's path in the mount.
        "mount": Text, {"pattern": "^/", "examples": ["/docs"]};
        /// Bytes of the largest file of the mount that is read.
        "file_size": Limit(&FILE_SIZE), {"examples": ["64KiB"]};
        /// Files of the mount that are listed.
        "files": Limit(&FILES_LISTED), {"examples": [100]};
        /// The bucket of the component's state whose entries they are, such as `default`. The
        /// address ends with its only variable, `{key}` or `{+key}`, for the key.
        "keyvalue": Text, {"minLength": 1, "maxLength": BUCKET_BYTES_MAX, "examples": ["default"]};
        /// The key of the one entry that the address stands for: it has no variable.
        "key": Text, {"minLength": 1, "maxLength": KEY_BYTES_MAX, "examples": ["index"]};
        /// The argument of the tool that is given the address.
        "argument": Text,
            {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "default": "uri", "examples": ["note"]};
        /// A name for programs. By default the last part of the address; for a template its title,
        /// or else the tool.
        "name": Text, {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "examples": ["index"]};
        /// A name for people.
        "title": Text,
            {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "examples": ["Index of the notes"]};
        /// A description.
        "description": Text, {"examples": ["All notes, with a line on each."]};
        /// The media type of the data.
        "mime_type": Text, {"maxLength": MIME_TYPE_CHARS_MAX, "examples": ["text/markdown"]};
        /// Values that clients offer for variables of the address, by the variable's name.
        "values": Named(&List(&Text)), {"maxProperties": VARIABLES_MAX, "examples": [{"topic": ["disk", "network"]}]};
    }
    other names {
        "type" => "mime_type", "mimeType" => "mime_type", "read" => "tool", "arg" => "argument",
        "folder" => "mount", "path" => "mount", "size" => "file_size", "bucket" => "keyvalue", "state" => "keyvalue",
    }
}

/// The rules of a component, in the order of the file.
pub(crate) fn read(section: &Section<'_>, grants: &Grants, problems: &mut Problems) -> Vec<ResourceRule> {
    let Some(entry) = section.get("resources") else { return Vec::new() };
    let entries = entry.entries(RESOURCES_MAX, "resources::too_many", "entries", problems);
    entries.iter().filter_map(|entry| read_one(entry, grants, problems)).collect()
}

fn read_one(entry: &Entry<'_>, grants: &Grants, problems: &mut Problems) -> Option<ResourceRule> {
    let uri = UriTemplate::parse(entry.key).map_err(|wrong| {
        let message = format!("the address {:?} {wrong}", entry.key);
        let problem = entry.key_error("resources::uri", message);
        problems
            .add(problem.hint("write an address such as \"note:///index\", or a template such as \"note:///{name}\""));
    });
    let section = entry.table(&RESOURCE, problems)?;
    let is_folder = section.get("mount").is_some();
    let is_state = section.get("keyvalue").is_some();
    let files = is_folder.then(|| read_files(entry, &section, grants, uri.as_ref().ok(), problems));
    let entries = is_state.then(|| read_entries(entry, &section, grants, uri.as_ref().ok(), problems));
    if !is_folder {
        refuse_keys(&section, &["file_size", "files"], "without mount", problems);
    }
    if !is_state {
        refuse_keys(&section, &["key"], "without keyvalue", problems);
    }
    let tool = if is_folder || is_state {
        section.get("tool").map(|tool| tool_name(&tool, problems))
    } else {
        Some(read_tool(entry, &section, problems))
    };
    let argument = match section.get("argument") {
        Some(argument) => texts::line(&argument, "resources::text", problems)?,
        None => ARGUMENT.to_owned(),
    };
    let mut line = |key: &str| section.get(key).and_then(|entry| texts::line(&entry, "resources::text", problems));
    let name = line("name");
    let title = line("title");
    let description = section.get("description").and_then(|entry| texts::lines(&entry, "resources::text", problems));
    let mime_type = section.get("mime_type").and_then(|entry| read_mime_type(&entry, problems));
    let uri = uri.ok()?;
    let span = entry.key_span.clone();
    let values = section.get("values").map(|entry| read_variables(&entry, &uri, problems)).unwrap_or_default();
    // Each is invalid, present, or absent.
    let tool = tool.map_or(Some(None), |tool| tool.map(Some))?;
    let files = files.map_or(Some(None), |files| files.map(Some))?;
    let entries = entries.map_or(Some(None), |entries| entries.map(Some))?;
    Some(ResourceRule { uri, span, tool, files, entries, argument, name, title, description, mime_type, values })
}

/// Values of variables in the address.
fn read_variables(entry: &Entry<'_>, uri: &UriTemplate, problems: &mut Problems) -> BTreeMap<String, Vec<String>> {
    let mut values = BTreeMap::new();
    for entry in entry.entries(VARIABLES_MAX, "resources::too_many", "variables", problems) {
        if uri.variables().all(|name| name != entry.key) {
            let message = format!("the address {} has no variable {{{}}}", uri.as_str(), entry.key);
            problems.add(entry.key_error("resources::values", message));
        }
        values.insert(entry.key.to_owned(), read_values(&entry, problems));
    }
    values
}

fn read_tool(entry: &Entry<'_>, section: &Section<'_>, problems: &mut Problems) -> Option<String> {
    let Some(tool) = section.get("tool") else {
        let message = format!("nothing says which tool reads {}", entry.key);
        return problems.refuse(
            entry
                .key_error("manifest::missing", message)
                .hint("add tool = \"NAME\", a tool of this component, without its prefix, or mount = \"/FOLDER\", or keyvalue = \"BUCKET\""),
        );
    };
    tool_name(&tool, problems)
}

fn tool_name(tool: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let name = tool.string(problems)?;
    if let Err(error) = names::check_tool(name) {
        return problems.refuse(tool.error("tools::name", format!("tool name {name:?} {error}")));
    }
    Some(name.to_owned())
}

/// Reports keys without effect.
fn refuse_keys(section: &Section<'_>, keys: &[&str], beside: &str, problems: &mut Problems) {
    for entry in keys.iter().filter_map(|key| section.get(key)) {
        let message = format!("{} {beside} can never apply", entry.key);
        problems.add(entry.key_error("resources::mount", message).hint("remove it"));
    }
}

/// Entries of the component's state.
fn read_entries(
    entry: &Entry<'_>,
    section: &Section<'_>,
    grants: &Grants,
    uri: Option<&UriTemplate>,
    problems: &mut Problems,
) -> Option<StateEntries> {
    refuse_keys(section, &["argument", "mount"], "with keyvalue", problems);
    let written = section.get("keyvalue")?;
    let bucket = written.string(problems)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if !(1..=BUCKET_BYTES_MAX).contains(&bucket.len()) || !bucket.bytes().all(plain) {
        let message = format!("{bucket:?} is not a bucket name: 1 to {BUCKET_BYTES_MAX} of A-Z a-z 0-9 . _ -");
        return problems
            .refuse(written.error("resources::keyvalue", message).hint("a guest that names none uses \"default\""));
    }
    if grants.keyvalue().is_none() {
        let problem = written.error("resources::keyvalue", "the component keeps no state");
        return problems.refuse(problem.hint("grant it some: keyvalue = { quota = \"1MiB\" }"));
    }
    let key = match section.get("key") {
        None => None,
        Some(named) => {
            let text = named.string(problems)?;
            if !(1..=KEY_BYTES_MAX).contains(&text.len()) {
                let message = format!("a key has 1 to {KEY_BYTES_MAX} bytes, and this one {}", text.len());
                return problems.refuse(named.error("resources::keyvalue", message));
            }
            Some(text.to_owned())
        }
    };
    let (fits, hint) = match &key {
        Some(_) => (uri.is_none_or(|uri| !uri.has_variables()), "use no variable where `key` is named"),
        None => (
            uri.is_none_or(|uri| uri.around_variable().is_some_and(|(_, behind, _)| behind.is_empty())),
            "end it with its only variable, such as \"note:///{+key}\", or name one `key`",
        ),
    };
    if !fits {
        let message = format!("the address {:?} does not say which key it stands for", entry.key);
        problems.add(entry.key_error("resources::keyvalue", message).hint(hint));
        return None;
    }
    Some(StateEntries { bucket: bucket.to_owned(), key })
}

/// The files of a mount of the component's own.
fn read_files(
    entry: &Entry<'_>,
    section: &Section<'_>,
    grants: &Grants,
    uri: Option<&UriTemplate>,
    problems: &mut Problems,
) -> Option<MountFiles> {
    refuse_keys(section, &["argument"], "with mount", problems);
    let mut number = |spec: &'static Spec| section.number(spec, problems).unwrap_or(spec.default);
    let file_bytes_max = number(&FILE_SIZE);
    let files_max = number(&FILES_LISTED);
    let files_max = usize::try_from(files_max).unwrap_or(usize::MAX);
    if uri.is_some_and(|uri| uri.folder().is_none()) {
        let message = format!("the address {:?} has no place for the path of a file of the mount", entry.key);
        let hint = "end it with /{+path} and use no other variable, such as \"file:///docs/{+path}\"";
        problems.add(entry.key_error("resources::mount", message).hint(hint));
    }
    let written = section.get("mount")?;
    let mount = written.string(problems)?;
    let guest = paths::guest_path(mount)
        .map_err(|wrong| problems.add(written.error("resources::mount", format!("the mount {mount:?} {wrong}"))))
        .ok()?;
    let found = grants.files().iter().find(|known| known.guest() == guest);
    match found.map(|found| found.kind()) {
        Some(MountKind::Host { path, .. }) => {
            Some(MountFiles { mount: guest, path: path.clone(), file_bytes_max, files_max })
        }
        Some(MountKind::Scratch { .. }) => {
            let message = format!("{mount:?} is scratch space, which is gone after each call");
            problems.refuse(written.error("resources::mount", message).hint("name a mount with a path"))
        }
        None => {
            let message = format!("the component has no mount {mount:?}");
            let known = grants.files().iter().map(|mount| mount.guest());
            let otherwise = format!("add it to the component's filesystem table: {mount:?} = {{ path = \"FOLDER\" }}");
            problems.refuse(written.error("resources::mount", message).hint(meant_or(mount, known, otherwise)))
        }
    }
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
            .error("resources::mime_type", format!("{text:?} is not a MIME type"))
            .hint("write one such as \"text/markdown\""),
    )
}
