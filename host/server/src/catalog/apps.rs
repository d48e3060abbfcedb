//! Views that clients show for results of tools (ext-apps): those of files are read once, when the
//! generation is built, and kept.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolcell_mcp::{DeclaredResource, Map, ResourceMore, ResourceReader, ToolList};
use toolcell_policy::{AppRule, ComponentPolicy, Diagnostic, Manifest, ToolView, UriTemplate};
use toolcell_sandbox::{ComponentDigest, contract};

use super::entry::CatalogEntry;
use super::held::{HeldBody, HeldFile, HeldFiles};
use crate::files::file;
use crate::files::file::absolute;

/// Stands for all of them where records name a component. No component's name has a dot.
pub const APPS: &str = "manifest.apps";

/// Begins the address of each view.
const SCHEME: &str = "ui://";

/// The media type of a view (ext-apps, "Content Requirements").
const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// Begins a document of HTML 5, in any case.
const DOCTYPE: &str = "<!doctype html";

/// The key in `_meta` that belongs to views.
const UI: &str = "ui";

/// All views of a manifest, in its order.
#[derive(Default)]
pub struct Apps {
    all: Vec<App>,
}

/// One view.
pub struct App {
    rule: AppRule,
    /// Its document; `None` if a tool returns it.
    document: Option<Arc<str>>,
    /// `sha256:…` of all that clients get of it.
    digest: String,
}

/// The files of a manifest's views.
pub fn files(manifest: &Manifest, folder: &Path) -> BTreeSet<PathBuf> {
    manifest.apps().iter().filter_map(AppRule::file).map(|file| absolute(&folder.join(file))).collect()
}

impl Apps {
    /// Reads the views.
    pub fn build(manifest: &Manifest, folder: &Path, problems: &mut Vec<Diagnostic>) -> Self {
        let mut all = Vec::new();
        for rule in manifest.apps() {
            match rule.file().map(|written| read(rule, written, folder)).transpose() {
                Ok(document) => {
                    let said = json!([rule.uri(), rule.title(), rule.description(), rule.meta(), document]);
                    let digest = ComponentDigest::of(said.to_string().as_bytes()).to_string();
                    all.push(App { rule: rule.clone(), document: document.map(Arc::from), digest });
                }
                Err(problem) => problems.push(problem),
            }
        }
        Self { all }
    }

    /// The views.
    pub fn all(&self) -> &[App] {
        &self.all
    }

    /// `sha256:…` of all of them.
    pub fn digest(&self) -> String {
        let each: Vec<&str> = self.all.iter().map(|app| app.digest.as_str()).collect();
        ComponentDigest::of(json!(each).to_string().as_bytes()).to_string()
    }

    /// True if clients get the same from both.
    pub fn is_like(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }

    /// The `_meta` of a view's content; `None` if the address belongs to no view. A view that the
    /// manifest does not mention may reach nothing.
    pub fn meta_of(&self, uri: &str) -> Option<Map> {
        let known = || self.all.iter().find(|app| app.rule.uri() == uri);
        uri.starts_with(SCHEME).then(|| known().map(App::meta).unwrap_or_default())
    }

    /// The documents, as resources for callers who see a tool that names them.
    pub fn held(&self, tools: &ToolList) -> HeldFiles {
        let mut held = HeldFiles::default();
        for app in &self.all {
            let Some(document) = &app.document else { continue };
            let uri = app.rule.uri();
            let naming = tools.tools().iter().filter(|tool| tool.definition().view() == Some(uri));
            let entries = naming.map(|tool| tool.definition().name.clone()).collect();
            let file = HeldFile {
                holder: APPS,
                declared: held.declared.len(),
                mime_type: MIME_TYPE.to_owned(),
                body: HeldBody::Text(Arc::clone(document)),
                meta: app.meta(),
                digest: app.digest.clone(),
            };
            held.declared.push(app.declared(ResourceReader::Held { entries, version: app.digest.clone() }));
            held.files.insert(uri.to_owned(), file);
        }
        held
    }

    /// Finds views that nothing provides or no tool uses, and tools that name missing views.
    /// `guests` are the addresses that components declare.
    pub fn check(
        &self,
        entries: &[CatalogEntry],
        components: &[&ComponentPolicy],
        guests: &[&UriTemplate],
    ) -> Vec<Diagnostic> {
        let tools = || entries.iter().map(|entry| entry.tool());
        let is_read = |uri: &str| {
            let mut rules = components.iter().flat_map(|component| component.resources());
            rules.any(|rule| rule.uri().matches(uri)) || guests.iter().any(|address| address.matches(uri))
        };
        let mut problems = Vec::new();
        for App { rule, document, .. } in &self.all {
            let uri = rule.uri();
            if document.is_none() && !is_read(uri) {
                let message = format!("nothing reads the view {uri}");
                let hint = "add file = \"FILE.html\", or the address to the resources of a component";
                problems.push(Diagnostic::error("apps::unread", message).at(rule.span()).hint(hint));
            }
            if tools().all(|tool| tool.definition().view() != Some(uri)) {
                let hint = format!("add app = \"{uri}\" to a tool: [components.NAME.tools.TOOL]");
                let problem = Diagnostic::error("apps::unused", format!("no tool names the view {uri}"));
                problems.push(problem.at(rule.span()).hint(hint));
            }
        }
        for tool in tools() {
            let Some(uri) = tool.definition().view() else { continue };
            if self.all.iter().all(|app| app.rule.uri() != uri) && !is_read(uri) {
                let name = &tool.definition().name;
                let message = format!("the tool {name} names the view {uri:?}, which does not exist");
                let hint = "add it to [apps] with a file; until then clients show the tool's text";
                problems.push(Diagnostic::warning("apps::missing", message).hint(hint));
            }
        }
        problems
    }
}

impl App {
    /// Its address.
    pub fn uri(&self) -> &str {
        self.rule.uri()
    }

    /// Its name for people, if it has one.
    pub fn title(&self) -> Option<&str> {
        self.rule.title()
    }

    /// Its purpose, if the manifest says it.
    pub fn description(&self) -> Option<&str> {
        self.rule.description()
    }

    /// The file that it is read from, as in the manifest. `None` if a component provides it.
    pub fn file(&self) -> Option<&str> {
        self.rule.file()
    }

    /// What the lock pins of it: everything that clients get, the document by its digest.
    pub fn pinned(&self) -> Value {
        json!({
            "uri": self.uri(), "title": self.rule.title(), "description": self.rule.description(),
            "_meta": self.meta(), "digest": self.digest,
        })
    }

    /// Bytes of its document.
    pub fn bytes(&self) -> u64 {
        self.document.as_ref().map_or(0, |document| document.len() as u64)
    }

    /// `sha256:…` of all that clients get of it.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    fn meta(&self) -> Map {
        let said = self.rule.meta();
        if said.is_empty() { Map::new() } else { Map::from_iter([(UI.to_owned(), Value::Object(said.clone()))]) }
    }

    fn declared(&self, reader: ResourceReader) -> DeclaredResource {
        let uri = self.uri();
        DeclaredResource {
            uri: uri.to_owned(),
            is_template: false,
            name: uri.rsplit('/').next().unwrap_or(uri).to_owned(),
            title: self.rule.title().map(str::to_owned),
            description: self.rule.description().map(str::to_owned),
            mime_type: Some(MIME_TYPE.to_owned()),
            reader,
            variables: Vec::new(),
            more: ResourceMore::default(),
        }
    }
}

/// Adds what the manifest says about a tool's view to its definition. A `_meta` that is not an
/// object stays, and is reported with the definition.
pub fn link(tool: &mut contract::GuestTool, view: &ToolView) {
    let said = view.meta();
    if said.is_empty() {
        return;
    }
    let own = tool.meta_json.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or("{}");
    let Ok(Value::Object(mut meta)) = serde_json::from_str(own) else { return };
    let mut ui = match meta.remove(UI) {
        Some(Value::Object(ui)) => ui,
        _ => Map::new(),
    };
    if view.app().is_some() {
        // An older name for the same.
        meta.remove("ui/resourceUri");
    }
    ui.extend(said);
    meta.insert(UI.to_owned(), Value::Object(ui));
    tool.meta_json = Some(Value::Object(meta).to_string());
}

/// Reads the document of a file.
fn read(rule: &AppRule, written: &str, folder: &Path) -> Result<String, Diagnostic> {
    let wrong = |problem: String| {
        let message = format!("the view {}: {written} {problem}", rule.uri());
        Diagnostic::error("apps::file", message).at(rule.span())
    };
    let bytes = file::read(&folder.join(written), rule.file_bytes_max());
    let bytes = bytes.map_err(|error| match error {
        file::Unreadable::TooLarge { .. } => wrong(format!("{error} (limit \"file_size\")")),
        file::Unreadable::Otherwise(_) => wrong(error.to_string()).hint("paths are relative to the manifest's folder"),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8 text".to_owned()))?;
    let begins = text.trim_start().get(..DOCTYPE.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(DOCTYPE));
    if begins {
        Ok(text)
    } else {
        Err(wrong(format!("does not begin with {DOCTYPE}>")).hint("a view is a page of HTML 5"))
    }
}

#[cfg(test)]
mod tests {
    use toolcell_policy::{Source, parse};

    use super::*;

    fn linked(meta: Option<&str>, keys: &str) -> Option<String> {
        let text = format!(
            "version = 1\n[apps.'ui://a/b']\nfile = 'b.html'\n[components.c]\nsource = 'c.wasm'\n[components.c.tools.t]\n{keys}\n"
        );
        let manifest = parse(&Source { name: "m.toml", text: &text }).unwrap().manifest;
        let view = manifest.components()[0].tools()[0].view().clone();
        let mut tool = contract::GuestTool {
            name: "t".to_owned(),
            title: None,
            description: String::new(),
            input_schema_json: "{}".to_owned(),
            output_schema_json: None,
            hints: None,
            icons: Vec::new(),
            meta_json: meta.map(str::to_owned),
        };
        link(&mut tool, &view);
        tool.meta_json
    }

    #[test]
    fn what_the_manifest_says_of_a_view_wins_and_the_rest_stays() {
        let app = "app = 'ui://a/b'";
        for (meta, keys, expected) in [
            (None, "title = 'T'", None),
            (None, app, Some(r#"{"ui":{"resourceUri":"ui://a/b"}}"#)),
            (Some("{}"), "visibility = ['app']", Some(r#"{"ui":{"visibility":["app"]}}"#)),
            (
                Some(r#"{"a":1,"ui":{"resourceUri":"ui://x","visibility":["model"]},"ui/resourceUri":"ui://x"}"#),
                app,
                Some(r#"{"a":1,"ui":{"resourceUri":"ui://a/b","visibility":["model"]}}"#),
            ),
            (Some(r#"{"ui":7}"#), app, Some(r#"{"ui":{"resourceUri":"ui://a/b"}}"#)),
            (Some("[]"), app, Some("[]")),
            (Some("{"), app, Some("{")),
        ] {
            assert_eq!(linked(meta, keys).as_deref(), expected, "{meta:?} {keys}");
        }
    }
}
