//! The section `[apps]`: views that clients show for the results of tools, what each may reach, and
//! the tools that name them.

use serde_json::{Map, Value, json};

use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::ComponentPolicy;
use crate::manifest::resources::{FILE_SIZE, URI_BYTES_MAX};
use crate::names::meant_or;
use crate::read::{Entry, Problems, Section, paths, texts};
use crate::settings::accessors;
use crate::table::table;

/// Views of one manifest. A server has a few.
pub const APPS_MAX: usize = 64;

/// Begins the address of each view.
const SCHEME: &str = "ui://";

/// Origins of one kind that a view may reach: nobody would check a longer list.
const ORIGINS_MAX: usize = 32;

/// The longest origin, in bytes: a host name of 253 with its scheme, a wildcard and a port.
const ORIGIN_BYTES_MAX: usize = 272;

/// The schemes of origins.
const ORIGIN_SCHEMES: [&str; 4] = ["https://", "wss://", "http://", "ws://"];

/// Keys of `csp` with their names for clients.
const CSP_KEYS: [(&str, &str); 4] = [
    ("connect_domains", "connectDomains"),
    ("resource_domains", "resourceDomains"),
    ("frame_domains", "frameDomains"),
    ("base_uri_domains", "baseUriDomains"),
];

/// Words for permissions with their names for clients.
const PERMISSIONS: [(&str, &str); 4] = [
    ("camera", "camera"),
    ("microphone", "microphone"),
    ("geolocation", "geolocation"),
    ("clipboard-write", "clipboardWrite"),
];

/// The words alone.
const PERMISSION_WORDS: [&str; 4] = [PERMISSIONS[0].0, PERMISSIONS[1].0, PERMISSIONS[2].0, PERMISSIONS[3].0];

accessors! {
    /// One `[apps."ui://…"]`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct AppRule {
        /// Its address.
        pub(crate) uri: String => &str,
        /// The place of its address in the manifest.
        pub(crate) span: Span => Span,
        /// The file of its document, relative to the manifest; `None`: a tool reads it.
        pub(crate) file: Option<String> => Option<&str>,
        /// Bytes of the largest document.
        pub(crate) file_bytes_max: u64 => u64,
        /// A name for people.
        pub(crate) title: Option<String> => Option<&str>,
        /// A description.
        pub(crate) description: Option<String> => Option<&str>,
        /// Its reach and what it asks of clients: `_meta.ui` of its content.
        pub(crate) meta: Map<String, Value> => &Map<String, Value>,
    }
}

/// The keys of a tool's table that are about views. Both keys may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolView {
    /// The view of its results, and its place in the manifest.
    pub(crate) app: Option<(String, Span)>,
    /// Who calls the tool: `model`, `app`.
    pub(crate) visibility: Option<Vec<&'static str>>,
}

/// The callers that a tool may name.
const VISIBILITY: [&str; 2] = ["model", "app"];

table! {
    /// One view: a page that clients with MCP Apps show for tools' results. It reaches only what is
    /// said here.
    pub(crate) APP "App" {
        /// The file of the page, relative to the manifest. Without it a tool of some component
        /// reads the address.
        "file": Text, {"minLength": 1, "examples": ["views/chart.html"]};
        /// Bytes of the largest page.
        "file_size": Limit(&FILE_SIZE), {"examples": ["256KiB"]};
        /// A name for people.
        "title": Text, {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "examples": ["Chart"]};
        /// A description.
        "description": Text, {"examples": ["Shows a chart that can be zoomed."]};
        /// The origins that the page may reach; none by default.
        "csp": Table(&CSP), {};
        /// Powers of the browser that the page asks for; none by default.
        "permissions": List(&Words(&PERMISSION_WORDS)), {"maxItems": PERMISSIONS.len(), "examples": [["clipboard-write"]]};
        /// The origin that the page has in clients that give out some. Its form is the client's.
        "domain": Text, {"minLength": 1, "maxLength": texts::LINE_CHARS_MAX, "examples": ["a904794854a047f6.example.com"]};
        /// True: the page wants a border around it; false: none. By default the client decides.
        "prefers_border": Flag, {"examples": [true]};
    }
    other names {
        "html" => "file", "path" => "file", "size" => "file_size", "border" => "prefers_border",
        "prefersBorder" => "prefers_border", "permission" => "permissions",
    }
}

table! {
    /// The origins that a view may reach, by purpose. Each is a scheme and a host, such as
    /// `https://api.example.com`, perhaps with `*.` before the host and a port after it.
    pub(crate) CSP "AppCsp" {
        /// Requests of scripts.
        "connect_domains": List(&Text), {"maxItems": ORIGINS_MAX, "examples": [["https://api.example.com"]]};
        /// Scripts, styles, pictures, fonts and sounds.
        "resource_domains": List(&Text), {"maxItems": ORIGINS_MAX, "examples": [["https://*.example.com"]]};
        /// Frames in the page.
        "frame_domains": List(&Text), {"maxItems": ORIGINS_MAX, "examples": [["https://video.example.com"]]};
        /// Bases of relative addresses.
        "base_uri_domains": List(&Text), {"maxItems": ORIGINS_MAX, "examples": [["https://cdn.example.com"]]};
    }
    other names {
        "connect" => "connect_domains", "connectDomains" => "connect_domains", "resources" => "resource_domains",
        "resourceDomains" => "resource_domains", "frames" => "frame_domains", "frameDomains" => "frame_domains",
        "baseUriDomains" => "base_uri_domains",
    }
}

impl ToolView {
    /// The address of the view of its results.
    #[must_use]
    pub fn app(&self) -> Option<&str> {
        self.app.as_ref().map(|(uri, _)| uri.as_str())
    }

    /// The members of `_meta.ui` of its definition, as clients get them.
    #[must_use]
    pub fn meta(&self) -> Map<String, Value> {
        let app = self.app().map(|uri| ("resourceUri".to_owned(), json!(uri)));
        let visibility = self.visibility.as_ref().map(|visibility| ("visibility".to_owned(), json!(visibility)));
        app.into_iter().chain(visibility).collect()
    }

    pub(crate) const fn is_said(&self) -> bool {
        self.app.is_some() || self.visibility.is_some()
    }
}

/// The views, in the order of the file.
pub(crate) fn read(root: &Section<'_>, problems: &mut Problems) -> Vec<AppRule> {
    let Some(entry) = root.get("apps") else { return Vec::new() };
    let entries = entry.entries(APPS_MAX, "apps::too_many", "views", problems);
    entries.iter().filter_map(|entry| read_one(entry, problems)).collect()
}

fn read_one(entry: &Entry<'_>, problems: &mut Problems) -> Option<AppRule> {
    let uri = check_uri(entry.key).map_err(|problem| problems.add(problem.at(entry.key_span.clone())));
    let section = entry.table(&APP, problems)?;
    let file = section.get("file").map(|file| paths::host_path(&file, problems));
    let file_bytes_max = section.number(&FILE_SIZE, problems).unwrap_or(FILE_SIZE.default);
    let title = section.get("title").and_then(|entry| texts::line(&entry, "apps::text", problems));
    let description = section.get("description").and_then(|entry| texts::lines(&entry, "apps::text", problems));
    let meta = read_meta(&section, problems);
    let uri = uri.ok()?.to_owned();
    let span = entry.key_span.clone();
    // It is wrong, there, or not wanted.
    let file = file.map_or(Some(None), |file| file.map(Some))?;
    Some(AppRule { uri, span, file, file_bytes_max, title, description, meta })
}

/// An address of a view: `ui://` with an authority, in plain characters and one spelling.
fn check_uri(text: &str) -> Result<&str, Diagnostic> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let path = text.strip_prefix(SCHEME).filter(|path| path.bytes().all(plain) && text.len() <= URI_BYTES_MAX);
    let parts = |path: &str| path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if path.is_some_and(parts) {
        return Ok(text);
    }
    let message = format!("{text:?} is not the address of a view");
    Err(Diagnostic::error("apps::uri", message)
        .hint("write ui://NAME/PATH in letters, digits and -._~, such as \"ui://chart/view\""))
}

/// The members of `_meta.ui`, as the extension names them.
fn read_meta(section: &Section<'_>, problems: &mut Problems) -> Map<String, Value> {
    let mut meta = Map::new();
    if let Some(csp) = section.get("csp").and_then(|entry| entry.table(&CSP, problems)) {
        let said = CSP_KEYS.iter().filter_map(|(key, name)| {
            let origins = read_origins(&csp.get(key)?, problems);
            Some(((*name).to_owned(), json!(origins)))
        });
        meta.insert("csp".to_owned(), Value::Object(said.collect()));
    }
    if let Some(entry) = section.get("permissions") {
        let words = entry.strings(PERMISSIONS.len(), problems).unwrap_or_default();
        let named = words.into_iter().filter_map(|(word, span)| {
            let found = PERMISSIONS.iter().find(|(known, _)| *known == word);
            if found.is_none() {
                problems.add(unknown_word("permission", word, &PERMISSION_WORDS).at(span));
            }
            found.map(|(_, name)| ((*name).to_owned(), json!({})))
        });
        meta.insert("permissions".to_owned(), Value::Object(named.collect()));
    }
    if let Some(domain) = section.get("domain").and_then(|entry| texts::line(&entry, "apps::text", problems)) {
        meta.insert("domain".to_owned(), json!(domain));
    }
    if let Some(border) = section.get("prefers_border").and_then(|entry| entry.boolean(problems)) {
        meta.insert("prefersBorder".to_owned(), json!(border));
    }
    meta
}

fn unknown_word(what: &str, word: &str, known: &[&str]) -> Diagnostic {
    let problem = Diagnostic::error("apps::word", format!("unknown {what} {word:?}"));
    problem.hint(meant_or(word, known.iter().copied(), format!("there are: {}", known.join(", "))))
}

fn read_origins(entry: &Entry<'_>, problems: &mut Problems) -> Vec<String> {
    let mut origins = Vec::new();
    for (text, span) in entry.strings(ORIGINS_MAX, problems).unwrap_or_default() {
        if is_origin(text) {
            origins.push(text.to_owned());
            continue;
        }
        let problem = Diagnostic::error("apps::origin", format!("{text:?} is not an origin that a view can reach"));
        problems.add(problem.at(span).hint("write a scheme and a host, such as \"https://api.example.com\""));
    }
    origins
}

/// True for a scheme, a host that may begin with `*.`, and perhaps a port. Clients put it into a
/// header as it is, so nothing else may be in it.
fn is_origin(text: &str) -> bool {
    let rest = ORIGIN_SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
    let Some(rest) = rest.filter(|_| text.len() <= ORIGIN_BYTES_MAX) else { return false };
    let (host, port) = rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port)));
    let host = host.strip_prefix("*.").unwrap_or(host);
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|number| number > 0) && !port.starts_with(['+', '0']);
    host.split('.').all(label) && port.is_none_or(is_port)
}

/// Tools that name a view which is not there.
pub(crate) fn check(apps: &[AppRule], components: &[ComponentPolicy], problems: &mut Problems) {
    let tools = components.iter().flat_map(|component| &component.tools);
    for (uri, span) in tools.filter_map(|tool| tool.view.app.as_ref()) {
        if apps.iter().any(|app| app.uri == *uri) {
            continue;
        }
        let problem = Diagnostic::error("apps::unknown", format!("there is no view {uri}")).at(span.clone());
        let otherwise = format!("add [apps.\"{uri}\"] with file = \"FILE.html\"");
        problems.add(problem.hint(meant_or(uri, apps.iter().map(|app| app.uri.as_str()), otherwise)));
    }
}

/// The keys `app` and `visibility` of a tool.
pub(crate) fn read_tool(section: &Section<'_>, problems: &mut Problems) -> ToolView {
    let app = section.get("app").and_then(|entry| {
        let text = entry.string(problems)?;
        let uri = check_uri(text).map_err(|problem| problems.add(problem.at(entry.span.clone()))).ok()?;
        Some((uri.to_owned(), entry.span))
    });
    let visibility = section.get("visibility").map(|entry| read_visibility(&entry, problems));
    ToolView { app, visibility }
}

fn read_visibility(entry: &Entry<'_>, problems: &mut Problems) -> Vec<&'static str> {
    let words = entry.strings(VISIBILITY.len(), problems).unwrap_or_default();
    if words.is_empty() {
        let problem = entry.error("apps::visibility", "visibility is empty: nothing could call the tool");
        problems.add(problem.hint("write [\"model\"], [\"app\"], or both"));
    }
    let known = words.into_iter().filter_map(|(word, span)| {
        let found = VISIBILITY.into_iter().find(|known| *known == word);
        if found.is_none() {
            problems.add(unknown_word("caller of a tool", word, &VISIBILITY).at(span));
        }
        found
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_perhaps_a_port_and_nothing_else() {
        for (text, is_it) in [
            ("https://api.example.com", true),
            ("wss://*.example.com:8443", true),
            ("http://127.0.0.1:3000", true),
            ("https://localhost", true),
            ("https://", false),
            ("https://*", false),
            ("https://a.*.b", false),
            ("https://a/b", false),
            ("https://a:0", false),
            ("https://a:070", false),
            ("https://a:99999", false),
            ("https://a;script-src *", false),
            ("https://a 'unsafe-eval'", false),
            ("https://A.example", false),
            ("https://u@a", false),
            ("data:", false),
            ("*", false),
            ("'self'", false),
        ] {
            assert_eq!(is_origin(text), is_it, "{text}");
        }
        assert!(!is_origin(&format!("https://{}", "a".repeat(300))));
    }

    #[test]
    fn an_address_has_the_scheme_and_one_spelling() {
        for (text, is_it) in [
            ("ui://chart/view", true),
            ("ui://chart", true),
            ("ui://a-b.c/_/~", true),
            ("ui://", false),
            ("ui:///x", false),
            ("ui://a//b", false),
            ("ui://a/../b", false),
            ("ui://a/%2e%2e", false),
            ("ui://a/{b}", false),
            ("ui://a?b", false),
            ("https://a", false),
            ("UI://a", false),
        ] {
            assert_eq!(check_uri(text).is_ok(), is_it, "{text}");
        }
        assert!(check_uri(&format!("ui://{}", "a".repeat(URI_BYTES_MAX))).is_err());
    }
}
