//! The part of a manifest about one component, as a manifest of its own: all that a sandbox process
//! gets.
use crate::manifest::CODE;
use toml_edit::{DocumentMut, Item, Table, TableLike};

/// Sections that every component's meaning depends on.
const SHARED: [&str; 3] = ["version", "defaults", "oauth"];

/// What a replay needs of a component's table: it reaches nothing, so no right is among it.
const REPLAYED: [&str; 8] = ["prefix", "skip_unsupported", "exports", "limits", "load", "args", "stdin", "wasi"];

/// What a replay needs of a tool's table.
const REPLAYED_OF_TOOL: [&str; 11] = [
    "title",
    "description",
    "input",
    "args",
    "stdin",
    "env",
    "files",
    "output",
    "output_schema",
    "exit_codes",
    "limits",
];

/// Takes excerpts from a manifest's text.
#[derive(Clone, Debug)]
pub struct Excerpts(DocumentMut);

impl Excerpts {
    /// Of a text that [`crate::parse`] takes; `None` of one that is not TOML.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    /// The manifest of this component alone: its table, and the sections that give it defaults and
    /// logins. It has nothing of other components, callers or the server.
    ///
    /// ```
    /// use toolcell_policy::{Excerpts, Source, parse};
    ///
    /// let text = "version = 1\n[defaults.limits]\ndeadline = \"5s\"\n[components.a]\nsource = \"a.wasm\"\n\
    ///             [components.b]\nsource = \"b.wasm\"\n";
    /// let excerpt = Excerpts::of(text).map(|excerpts| excerpts.component("a")).unwrap_or_default();
    /// let manifest = parse(&Source { name: "a", text: &excerpt }).map(|parsed| parsed.manifest).ok();
    /// let components = manifest.as_ref().map(|manifest| manifest.components());
    /// assert_eq!(components.map(|all| (all.len(), all[0].limits().deadline().as_secs())), Some((1, 5)));
    /// ```
    #[must_use]
    pub fn component(&self, name: &str) -> String {
        let mut excerpt = DocumentMut::new();
        for section in SHARED {
            if let Some(item) = self.0.get(section) {
                excerpt.insert(section, item.clone());
            }
        }
        if name == CODE {
            if let Some(code) = self.0.get(CODE) {
                excerpt.insert(CODE, unlisted(code.clone()));
            }
            return excerpt.to_string();
        }
        let all = self.0.get("components").and_then(Item::as_table_like);
        if let Some(component) = all.and_then(|all| all.get(name)) {
            let mut components = Table::new();
            components.set_implicit(true);
            excerpt.insert("apps", Item::Table(views(component)));
            components.insert(name, unlisted(component.clone()));
            excerpt.insert("components", Item::Table(components));
        }
        excerpt.to_string()
    }
}

/// A manifest in which recorded calls of a component are replayed: `excerpt` is its part of the
/// manifest that they were recorded with, `source` the file of its bytes. It has the limits and
/// tools of that part, and no right but scratch space. `None` if the text is not such a part.
#[must_use]
pub fn to_replay(excerpt: &str, name: &str, source: &str) -> Option<String> {
    let recorded: DocumentMut = excerpt.parse().ok()?;
    let component = recorded.get("components")?.as_table_like()?.get(name)?.as_table_like()?;
    let mut kept = kept(component, &REPLAYED);
    kept.insert("source", toml_edit::value(source));
    if let Some(scratch) = component.get("filesystem").and_then(Item::as_table_like).map(scratch) {
        kept.insert("filesystem", Item::Table(scratch));
    }
    let mut tools = Table::new();
    for (tool, item) in component.get("tools").and_then(Item::as_table_like).into_iter().flat_map(|tools| tools.iter())
    {
        tools.insert(tool, Item::Table(self::kept(item.as_table_like()?, &REPLAYED_OF_TOOL)));
    }
    kept.insert("tools", Item::Table(tools));
    let mut components = Table::new();
    components.set_implicit(true);
    components.insert(name, Item::Table(kept));
    let mut manifest = DocumentMut::new();
    for section in ["version", "defaults"] {
        if let Some(item) = recorded.get(section) {
            manifest.insert(section, item.clone());
        }
    }
    manifest.insert("components", Item::Table(components));
    Some(manifest.to_string())
}

fn kept(table: &dyn TableLike, keys: &[&str]) -> Table {
    keys.iter().filter_map(|key| Some(((*key).to_owned(), table.get(key)?.clone()))).collect()
}

fn scratch(filesystem: &dyn TableLike) -> Table {
    let is_scratch = |item: &Item| item.as_table_like().is_some_and(|mount| mount.contains_key("scratch"));
    filesystem.iter().filter(|(_, item)| is_scratch(item)).map(|(path, item)| (path.to_owned(), item.clone())).collect()
}

/// The views that tools of a component name. Only their names are needed.
fn views(component: &Item) -> Table {
    let tools = component.get("tools").and_then(Item::as_table_like);
    let named = tools.into_iter().flat_map(|tools| tools.iter()).filter_map(|(_, tool)| tool.get("app")?.as_str());
    named.map(|uri| (uri.to_owned(), Item::Table(Table::new()))).collect()
}

/// A component without its `listed`: that is about the whole list, which only the host has.
fn unlisted(mut component: Item) -> Item {
    if let Some(component) = component.as_table_like_mut() {
        component.remove("listed");
        let tools = component.get_mut("tools").and_then(Item::as_table_like_mut);
        for (_, tool) in tools.into_iter().flat_map(|tools| tools.iter_mut()) {
            if let Some(tool) = tool.as_table_like_mut() {
                tool.remove("listed");
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, parse};

    #[test]
    fn an_excerpt_means_to_its_component_what_the_whole_manifest_means() {
        let text = r#"version = 1
            components.first = { source = "1.wasm", env = { A = "one" }, limits = { deadline = "1s" } }
            [server]
            name = "ANN"
            discovery = "search"
            [defaults]
            limits = { fuel = 5_000_000, deadline = "7s" }
            [components.second]
            source = "2.wasm"
            listed = true
            [components.second.network]
            http = ["GET https://example.com/*"]
            [components.second.secrets]
            KEY = { from = "env:KEY", header = "Authorization", value = "Bearer {}", for = "https://example.com" }
            [components.second.tools.one]
            network = {}
            listed = false
            app = "ui://second/one"
            [apps."ui://second/one"]
            file = "ANN.html"
            [components.third]
            source = "3.wasm"
            instance = "per-caller"
            "#;
        let whole = parse(&Source { name: "whole", text }).map_err(|problems| format!("{problems:?}")).unwrap();
        let excerpts = Excerpts::of(text).unwrap();
        for policy in whole.manifest.components() {
            let excerpt = excerpts.component(policy.name());
            let parsed = parse(&Source { name: "excerpt", text: &excerpt });
            let alone = parsed.map_err(|problems| format!("{problems:?}\n{excerpt}")).unwrap().manifest;
            assert_eq!(alone.components().len(), 1, "{excerpt}");
            assert_eq!(alone.components()[0].canonical(), policy.canonical(), "{excerpt}");
            assert_eq!(excerpt.contains("1.wasm"), policy.name() == "first");
            assert!(!excerpt.contains("ANN"), "nothing of others: {excerpt}");
        }
        assert!(Excerpts::of("version = ").is_none());
    }

    #[test]
    fn a_replay_has_the_limits_and_tools_of_a_component_and_no_right() {
        let recorded = r#"version = 1
            [defaults.limits]
            fuel = 5_000_000
            [components.jq]
            source = "oci://registry.example/jq:1@sha256:0000000000000000000000000000000000000000000000000000000000000000"
            filesystem = { "/in" = { read = "in" }, "/tmp" = { scratch = "1MiB" } }
            env = { HOME = { from = "HOME" }, A = "one" }
            approval = "always"
            prewarm = 3
            network = { http = ["GET https://example.com/*"] }
            secrets = { KEY = { from = "env:KEY", expose = true } }
            [components.jq.tools.query]
            description = "Queries."
            args = ["{filter}"]
            input = { filter = "a filter" }
            files = { "/tmp/in.json" = "{filter}" }
            limits = { deadline = "2s" }
            network = {}
            "#;
        let text = to_replay(recorded, "jq", "new.wasm").unwrap();
        let parsed = parse(&Source { name: "replay", text: &text });
        let manifest = parsed.map_err(|problems| format!("{problems:?}\n{text}")).unwrap().manifest;
        let policy = &manifest.components()[0];
        assert!(text.contains("source = \"new.wasm\""), "{text}");
        assert_eq!(policy.tool_limits("query").deadline().as_secs(), 2);
        assert_eq!(policy.limits().fuel(), 5_000_000);
        for right in ["network", "env = {", "secrets", "approval", "prewarm", "read = "] {
            assert!(!text.contains(right), "{right}: {text}");
        }
        assert!(to_replay(recorded, "other", "a.wasm").is_none() && to_replay("version =", "jq", "a.wasm").is_none());
    }
}
