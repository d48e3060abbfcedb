//! Definitions of tools, and the rules for listing them.

use serde_json::Value;
use toolcell_schema::{DefinitionProblem, Schema, SchemaUse, portable, sanitize};

use crate::content::{ContentIcon, Map};

/// Longest name, in bytes. 64: the least that the common model APIs accept.
pub(super) const NAME_BYTES_MAX: usize = 64;

/// Longest title, in bytes. 256: two lines on any screen.
pub(super) const TITLE_BYTES_MAX: usize = 256;

/// Longest description, in bytes. 16 KiB: about 4,000 tokens, far more than is useful.
pub(super) const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;

/// Icons. 16: every size and theme.
const ICONS_MAX: usize = 16;

/// Longest icon URI, in bytes. 64 KiB: a `data:` URI of a 48-pixel picture is a tenth of it.
const ICON_BYTES_MAX: usize = 64 * 1024;

/// Largest `_meta`, in bytes of compact JSON. 16 KiB, as the description.
const META_BYTES_MAX: usize = 16 * 1024;

/// A tool's hints about its own behaviour. Clients must not trust these; the host never does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolHints {
    /// A name for people; clients differ in the title they show.
    pub title: Option<String>,
    /// Only reads; changes nothing.
    pub read_only: Option<bool>,
    /// May destroy something.
    pub destructive: Option<bool>,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// Deals with an open world, such as the web.
    pub open_world: Option<bool>,
}

/// One tool as clients see it (2026-07-28, Tools, "Data Types").
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// Unique in its list: 1 to 64 of `A-Z a-z 0-9 _ -` (the protocol allows more; many model APIs
    /// do not).
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// Its purpose and use, for the model.
    pub description: String,
    /// JSON Schema of the arguments; its `type` is `object`.
    pub input_schema: Value,
    /// JSON Schema of the structured result.
    pub output_schema: Option<Value>,
    /// Its hints about its own behaviour.
    pub hints: ToolHints,
    /// Pictures for user interfaces.
    pub icons: Vec<ContentIcon>,
    /// Its `_meta`; empty: none.
    pub meta: Map,
}

impl ToolDefinition {
    /// The view that clients show for the tool's results (ext-apps, `McpUiToolMeta`), in either
    /// form.
    #[must_use]
    pub fn view(&self) -> Option<&str> {
        let nested = self.meta.get("ui").and_then(|ui| ui.get("resourceUri"));
        nested.or_else(|| self.meta.get("ui/resourceUri")).and_then(Value::as_str)
    }

    /// True if only views may call the tool (ext-apps, `visibility`): no model, and no other tool.
    #[must_use]
    pub fn is_for_views_alone(&self) -> bool {
        let visibility = self.meta.get("ui").and_then(|ui| ui.get("visibility")).and_then(Value::as_array);
        visibility.is_some_and(|who| !who.is_empty() && who.iter().all(|who| who.as_str() == Some("app")))
    }

    /// A definition with the required members only.
    pub fn new(name: impl Into<String>, description: impl Into<String>, input_schema: Value) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema,
            output_schema: None,
            hints: ToolHints::default(),
            icons: Vec::new(),
            meta: Map::new(),
        }
    }
}

/// Cleans the texts of the definition, and returns the problems outside its schemas.
pub(super) fn checked(mut definition: ToolDefinition) -> (ToolDefinition, Vec<DefinitionProblem>) {
    let mut problems = Vec::new();
    check_name(&definition.name, &mut problems);
    definition.title = definition.title.map(|title| sanitize::line(&title).into_owned());
    definition.hints.title = definition.hints.title.map(|title| sanitize::line(&title).into_owned());
    definition.description = sanitize::text(&definition.description).into_owned();
    for (field, text, bytes_max) in [
        ("title", definition.title.as_deref(), TITLE_BYTES_MAX),
        ("annotations/title", definition.hints.title.as_deref(), TITLE_BYTES_MAX),
        ("description", Some(definition.description.as_str()), DESCRIPTION_BYTES_MAX),
    ] {
        if text.is_some_and(|text| text.len() > bytes_max) {
            problems.push(DefinitionProblem::new(field, format!("longer than {bytes_max} bytes")));
        }
    }
    check_icons(&definition.icons, &mut problems);
    check_meta(&definition.meta, &mut problems);
    Schema::clean(&mut definition.input_schema);
    if let Some(schema) = &mut definition.output_schema {
        Schema::clean(schema);
    }
    (definition, problems)
}

/// The definition with portable schemas; `None` if its own already are.
pub(super) fn served(definition: &ToolDefinition) -> Option<Box<ToolDefinition>> {
    let input_schema = portable(&definition.input_schema, SchemaUse::Arguments);
    let output_schema = definition.output_schema.as_ref().map(|schema| portable(schema, SchemaUse::Result));
    if input_schema == definition.input_schema && output_schema == definition.output_schema {
        return None;
    }
    Some(Box::new(ToolDefinition { input_schema, output_schema, ..definition.clone() }))
}

fn check_name(name: &str, problems: &mut Vec<DefinitionProblem>) {
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len());
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !fits || !plain {
        let shown: String = sanitize::line(name).chars().take(NAME_BYTES_MAX).collect();
        let hint = format!("1 to {NAME_BYTES_MAX} of A-Z a-z 0-9 _ -");
        problems.push(DefinitionProblem::new("name", format!("{shown:?} is not a valid tool name")).hint(hint));
    }
}

pub(super) fn check_meta(meta: &Map, problems: &mut Vec<DefinitionProblem>) {
    let bytes = serde_json::to_string(meta).map_or(usize::MAX, |text| text.len());
    if bytes > META_BYTES_MAX {
        problems.push(DefinitionProblem::new("_meta", format!("{bytes} bytes, more than {META_BYTES_MAX}")));
    }
}

pub(super) fn check_icons(icons: &[ContentIcon], problems: &mut Vec<DefinitionProblem>) {
    if icons.len() > ICONS_MAX {
        problems.push(DefinitionProblem::new("icons", format!("more than {ICONS_MAX}")));
        return;
    }
    for (place, icon) in icons.iter().enumerate() {
        let field = format!("icons/{place}/src");
        if !(icon.src.starts_with("https://") || icon.src.starts_with("data:")) {
            problems.push(DefinitionProblem::new(&field, "neither an https: nor a data: URI"));
        }
        if icon.src.len() > ICON_BYTES_MAX {
            problems.push(DefinitionProblem::new(&field, format!("longer than {ICON_BYTES_MAX} bytes")));
        }
    }
}
