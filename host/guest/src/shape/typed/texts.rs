//! Descriptions of functions and types, by their names in WIT. They come from WIT's comments, from
//! a `package-docs` section, or from the operator.
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The name of a world whose name is not known, as component tools use it.
const WORLD: &str = "root";

/// Texts of WIT packages, by interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WitTexts {
    /// By the name of the interface: `acme:weather/forecasts`, or `forecasts` if the package is not
    /// known.
    pub(super) interfaces: BTreeMap<String, TextScope>,
    /// Descriptions of the exports of worlds, all worlds together.
    pub(super) world: TextScope,
    /// The name of the first of these worlds.
    pub(super) world_name: Option<String>,
}

/// Texts about one interface, or about worlds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TextScope {
    pub(super) functions: BTreeMap<String, String>,
    pub(super) types: BTreeMap<String, TypeText>,
}

/// Texts about a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TypeText {
    pub(super) text: Option<String>,
    /// Its fields, cases or labels.
    pub(super) parts: BTreeMap<String, String>,
}

impl WitTexts {
    /// Texts about the functions and types of an interface; those of the world for `None`.
    pub(super) fn scope(&self, interface: Option<&str>) -> Option<&TextScope> {
        let Some(interface) = interface else { return Some(&self.world) };
        let short = interface.rsplit_once('/').map_or(interface, |(_, short)| short);
        self.interfaces.get(interface).or_else(|| self.interfaces.get(short))
    }

    /// The texts without those of packages in these namespaces.
    #[must_use]
    pub fn without(mut self, namespaces: &[&str]) -> Self {
        let is_kept = |name: &str| name.split_once(':').is_none_or(|(namespace, _)| !namespaces.contains(&namespace));
        self.interfaces.retain(|name, _| is_kept(name));
        self
    }

    /// The number of described functions, types and parts of types.
    #[must_use]
    pub fn count(&self) -> usize {
        let of_type = |ty: &TypeText| usize::from(ty.text.is_some()) + ty.parts.len();
        let of = |scope: &TextScope| scope.functions.len() + scope.types.values().map(of_type).sum::<usize>();
        of(&self.world) + self.interfaces.values().map(of).sum::<usize>()
    }

    /// Reads the JSON of a `package-docs` section; unexpected parts are ignored.
    pub(super) fn from_json(docs: &Value) -> Self {
        let mut texts = Self::default();
        for (name, interface) in entries(docs, "interfaces") {
            texts.interfaces.entry(name.clone()).or_default().read(interface);
        }
        for (_, world) in entries(docs, "worlds") {
            texts.world.read(world);
            for kind in ["interfaces", "interface_exports"] {
                for (name, interface) in entries(world, kind) {
                    texts.interfaces.entry(name.clone()).or_default().read(interface);
                }
            }
        }
        texts
    }

    /// The JSON of a `package-docs` section. Interfaces go by their short names there.
    pub(super) fn to_json(&self) -> Value {
        let mut interfaces = Map::new();
        for (name, scope) in &self.interfaces {
            let short = name.rsplit_once('/').map_or(name.as_str(), |(_, short)| short);
            interfaces.entry(short).or_insert_with(|| scope.to_json("funcs"));
        }
        let mut docs = Map::new();
        if self.world != TextScope::default() {
            docs.insert(
                "worlds".to_owned(),
                json!({ self.world_name.as_deref().unwrap_or(WORLD): self.world.to_json("func_exports") }),
            );
        }
        if !interfaces.is_empty() {
            docs.insert("interfaces".to_owned(), Value::Object(interfaces));
        }
        Value::Object(docs)
    }
}

impl TextScope {
    /// Adds the texts that are still missing.
    fn read(&mut self, docs: &Value) {
        for kind in ["funcs", "func_exports"] {
            for (name, function) in entries(docs, kind) {
                // The first version of the format has only a text.
                if let Some(text) = text(function).or_else(|| function.get("docs").and_then(text)) {
                    self.functions.entry(name.clone()).or_insert(text);
                }
            }
        }
        for (name, ty) in entries(docs, "types") {
            let known = self.types.entry(name.clone()).or_default();
            known.text = known.text.take().or_else(|| ty.get("docs").and_then(text));
            for (part, docs) in entries(ty, "items") {
                if let Some(text) = text(docs) {
                    known.parts.entry(part.clone()).or_insert(text);
                }
            }
        }
    }

    fn to_json(&self, functions: &str) -> Value {
        let funcs: Map<String, Value> =
            self.functions.iter().map(|(name, text)| (name.clone(), json!({ "docs": text }))).collect();
        let types: Map<String, Value> = self.types.iter().map(|(name, ty)| (name.clone(), ty.to_json())).collect();
        let mut scope = Map::new();
        for (key, value) in [(functions, funcs), ("types", types)] {
            if !value.is_empty() {
                scope.insert(key.to_owned(), Value::Object(value));
            }
        }
        Value::Object(scope)
    }
}

impl TypeText {
    fn to_json(&self) -> Value {
        let mut ty = Map::new();
        if let Some(text) = &self.text {
            ty.insert("docs".to_owned(), json!(text));
        }
        if !self.parts.is_empty() {
            ty.insert("items".to_owned(), json!(self.parts));
        }
        Value::Object(ty)
    }
}

fn entries<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    value.get(key).and_then(Value::as_object).into_iter().flatten()
}

/// The text, unless it is blank.
fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}
