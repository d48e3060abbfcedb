//! The part of a manifest about one component, as a manifest of its own: all that a sandbox process
//! gets.
use crate::manifest::CODE;
use toml_edit::{DocumentMut, Item, Table};

/// Sections that every component's meaning depends on.
const SHARED: [&str; 3] = ["version", "defaults", "oauth"];

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
}
