//! The pinned state: bytes of each component, and of each tool the definition, the grants, and the
//! calls to confirm.
use std::collections::BTreeMap;

use serde_json::Value;
use toolcell_mcp::{Revision, Tool as Served};
use toolcell_sandbox::Digest;

use super::confirmation::ConfirmationRule;
use super::grants;
use crate::catalog::{Catalog, LoadedComponent, Offer};

/// All that is pinned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// By the component's name in the manifest.
    pub components: BTreeMap<String, PinnedComponent>,
}

/// One component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinnedComponent {
    /// As the manifest writes it.
    pub source: String,
    /// `sha256:…` of its bytes.
    pub digest: String,
    /// Number of its bytes.
    pub size_bytes: u64,
    /// The version of the tool contract that it exports.
    pub contract: String,
    /// By the name that clients see.
    pub tools: BTreeMap<String, PinnedTool>,
}

/// One tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinnedTool {
    /// `sha256:…` of [`definition`](Self::definition) as JSON with sorted keys and without spaces.
    pub definition_digest: String,
    /// The definition as clients see it.
    pub definition: Value,
    /// `sha256:…` of the canonical form of its grants.
    pub grants_digest: String,
    /// Its grants in words, one a line, sorted.
    pub grants: Vec<String>,
    /// Rule for calls that a person confirms.
    pub confirmed: ConfirmationRule,
}

impl Lock {
    /// The lock of this catalog.
    pub fn of(catalog: &Catalog) -> Self {
        let component = |component: &std::sync::Arc<LoadedComponent>| {
            (component.name().to_owned(), PinnedComponent::of(catalog, component))
        };
        Self { components: catalog.components().iter().map(component).collect() }
    }

    /// The digest of each component's bytes.
    pub fn digests(&self) -> BTreeMap<String, String> {
        self.components.iter().map(|(name, component)| (name.clone(), component.digest.clone())).collect()
    }

    /// Number of pinned tools.
    pub fn tools(&self) -> usize {
        self.components.values().map(|component| component.tools.len()).sum()
    }

    /// The component of this name, or the one with a tool of this name.
    pub fn component_named(&self, name: &str) -> Option<&str> {
        let by_tool = || self.components.iter().find(|(_, component)| component.tools.contains_key(name));
        let found = self.components.get_key_value(name).or_else(by_tool);
        found.map(|(name, _)| name.as_str())
    }
}

impl PinnedComponent {
    fn of(catalog: &Catalog, component: &std::sync::Arc<LoadedComponent>) -> Self {
        let inspection = component.inspection();
        let own = catalog.offers().filter(|offer| std::sync::Arc::ptr_eq(offer.component(), component));
        Self {
            source: component.policy().source().to_string(),
            digest: component.digest().to_owned(),
            size_bytes: inspection.size_bytes(),
            contract: inspection.contract_version().unwrap_or("none").to_owned(),
            tools: own.map(|offer| (offer.tool().definition().name.clone(), PinnedTool::of(&offer))).collect(),
        }
    }
}

impl PinnedTool {
    fn of(offer: &Offer<'_>) -> Self {
        let definition = definition(offer.tool());
        let mut granted = offer.grants().canonical();
        let mut words = grants::words(offer.grants());
        // A program's command line decides what its tool does as much as the grants do.
        if let Some(program) = offer.program() {
            granted = serde_json::json!({"grants": granted, "program": program.canonical()});
            words.extend(program.words());
            words.sort();
        }
        // Without rules for callers, everybody may call, and the lock has no line for it.
        if let Some(called_by) = offer.called_by() {
            granted = serde_json::json!({"granted": granted, "callers": called_by});
            words.extend(called_by.iter().cloned());
            words.sort();
        }
        let confirmed = offer.component().policy().tool_approval(offer.own_name()).into();
        Self {
            definition_digest: digest(&definition),
            definition,
            grants_digest: digest(&granted),
            grants: words,
            confirmed,
        }
    }
}

/// The definition as the newest revision lists it, with sorted keys.
fn definition(tool: &Served) -> Value {
    let json = Revision::V2026_07_28.definition_json(tool.definition());
    sorted(serde_json::from_str(&json).unwrap_or_default())
}

/// `sha256:…` of a value whose keys are sorted.
pub fn digest(value: &Value) -> String {
    Digest::of(value.to_string().as_bytes()).to_string()
}

/// This value with the keys of all objects sorted.
pub fn sorted(value: Value) -> Value {
    match value {
        Value::Object(entries) => {
            let entries: BTreeMap<String, Value> = entries.into_iter().collect();
            Value::Object(entries.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}
