//! The pinned state: bytes of each component, and of each tool the definition, the grants, and the
//! calls to confirm.
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolcell_mcp::{McpTool as Served, Revision};
use toolcell_sandbox::{ComponentDigest, export};

use super::confirmation::ConfirmationRule;
use crate::catalog::apps::App;
use crate::catalog::{APPS, Catalog, CatalogEntry, EntryKind, LoadedComponent, Pin, SKILLS, TEXTS, ToolOffer, texts};

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
    /// Each thing that is signed, and by whom, one a line, sorted. Empty where nobody had to sign.
    pub signed_by: Vec<String>,
    /// `sha256:…` of the trusted root that keyless signatures were checked against.
    pub trusted_root: Option<String>,
    /// The version of the tool contract that it exports.
    pub contract: String,
    /// By the name that clients see; a prompt by its path.
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
        let component =
            |component: &Arc<LoadedComponent>| (component.name().to_owned(), PinnedComponent::of(catalog, component));
        let texts = PinnedComponent::of_texts(catalog).map(|texts| (TEXTS.to_owned(), texts));
        let skills = PinnedComponent::of_skills(catalog).map(|skills| (SKILLS.to_owned(), skills));
        let apps = PinnedComponent::of_apps(catalog).map(|apps| (APPS.to_owned(), apps));
        let own = [texts, skills, apps].into_iter().flatten();
        Self { components: catalog.components().iter().map(component).chain(own).collect() }
    }

    /// The bytes of each component.
    pub fn pins(&self) -> BTreeMap<String, Pin> {
        let pin =
            |component: &PinnedComponent| Pin { digest: component.digest.clone(), source: component.source.clone() };
        self.components.iter().map(|(name, component)| (name.clone(), pin(component))).collect()
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
    fn of(catalog: &Catalog, component: &Arc<LoadedComponent>) -> Self {
        let inspection = component.inspection();
        let own = || catalog.offers().filter(|offer| Arc::ptr_eq(offer.component(), component));
        // All declared resources together, with the grants of the export that reads them.
        let reading = own().find(|offer| offer.own_name() == export::RESOURCES).zip(component.pinned_resources());
        let resources = reading.map(|(offer, definition)| {
            (offer.tool().definition().name.clone(), PinnedTool::with(&offer, sorted(definition)))
        });
        Self {
            source: component.policy().source().to_string(),
            digest: component.digest().to_owned(),
            size_bytes: inspection.size_bytes(),
            signed_by: component.signed().by.clone(),
            trusted_root: component.signed().root.clone(),
            contract: inspection.contract_version().unwrap_or("none").to_owned(),
            tools: own()
                .filter(|offer| offer.tool().is_tool() || offer.tool().prompt().is_some())
                .map(|offer| (offer.tool().definition().name.clone(), PinnedTool::of(&offer)))
                .chain(resources)
                .collect(),
        }
    }

    /// The prompts of the manifest itself, all together; `None` without any.
    fn of_texts(catalog: &Catalog) -> Option<Self> {
        let pinned = |entry: &CatalogEntry| {
            let text = entry.text()?;
            let mut definition = definition(&text.entry);
            // Its text is what clients get, so it is not a secret to them.
            if let Some(members) = definition.as_object_mut() {
                members.insert("digest".to_owned(), text.digest.clone().into());
            }
            Some((text.entry.definition().name.clone(), PinnedTool::plain(definition, entry.called_by())))
        };
        let tools: BTreeMap<String, PinnedTool> = catalog.entries.iter().filter_map(pinned).collect();
        Self::plain("[prompts]", texts::digest(catalog), 0, tools)
    }

    /// The skills, all together; `None` without any.
    fn of_skills(catalog: &Catalog) -> Option<Self> {
        let entries = catalog.entries.iter().filter(|entry| matches!(entry.kind, EntryKind::Skill(_)));
        let pinned = entries.zip(catalog.skills.all()).map(|(entry, skill)| {
            let definition = serde_json::from_str(&skill.json).unwrap_or_default();
            (skill.entry.clone(), PinnedTool::plain(definition, entry.called_by()))
        });
        let digest = catalog.skills.digest().to_owned();
        let bytes = catalog.skills.bytes();
        Self::plain("[skills]", digest, bytes, pinned.collect())
    }

    /// The views, all together; `None` without any.
    fn of_apps(catalog: &Catalog) -> Option<Self> {
        let apps = catalog.apps.all().iter();
        let pinned = apps.clone().map(|app| (app.uri().to_owned(), PinnedTool::plain(app.pinned(), None)));
        let bytes = apps.clone().map(App::bytes).sum();
        Self::plain("[apps]", catalog.apps.digest(), bytes, pinned.collect())
    }

    /// An entry for what the manifest itself offers; `None` without any.
    fn plain(source: &str, digest: String, size_bytes: u64, tools: BTreeMap<String, PinnedTool>) -> Option<Self> {
        (!tools.is_empty()).then(|| Self {
            source: source.to_owned(),
            digest,
            size_bytes,
            signed_by: Vec::new(),
            trusted_root: None,
            contract: "none".to_owned(),
            tools,
        })
    }
}

impl PinnedTool {
    /// A pinned entry without grants, for these callers.
    fn plain(definition: Value, called_by: Option<Vec<String>>) -> Self {
        let definition = sorted(definition);
        let grants = called_by.unwrap_or_default();
        Self {
            definition_digest: digest(&definition),
            definition,
            grants_digest: digest(&serde_json::json!(grants)),
            grants,
            confirmed: ConfirmationRule::default(),
        }
    }

    fn of(offer: &ToolOffer<'_>) -> Self {
        Self::with(offer, definition(offer.tool()))
    }

    fn with(offer: &ToolOffer<'_>, definition: Value) -> Self {
        let mut granted = offer.grants().canonical();
        let mut words = offer.grants().lock_lines();
        // A program's command line matters as much as its grants.
        if let Some(program) = offer.program() {
            granted = serde_json::json!({"grants": granted, "program": program.canonical()});
            words.extend(program.words());
            words.sort();
        }
        // The same holds for the function behind a tool with a name of its own.
        let own_name = offer.own_name();
        let function = offer.component().policy().export_of(own_name);
        if function != own_name {
            granted = serde_json::json!({"grants": granted, "function": function});
            words.push(format!("be the function {function}"));
            words.sort();
        }
        // Without rules for callers, everybody may call, and the lock has no line for it.
        if let Some(called_by) = offer.called_by() {
            granted = serde_json::json!({"granted": granted, "callers": called_by});
            words.extend(called_by.iter().cloned());
            words.sort();
        }
        let confirmed = offer.component().policy().tool_approval(own_name).into();
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
    let newest = Revision::V2026_07_28;
    let json = newest.prompt_json(tool).unwrap_or_else(|| newest.definition_json(tool.definition()));
    sorted(serde_json::from_str(&json).unwrap_or_default())
}

/// `sha256:…` of a value whose keys are sorted.
pub fn digest(value: &Value) -> String {
    ComponentDigest::of(value.to_string().as_bytes()).to_string()
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
