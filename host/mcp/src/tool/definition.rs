//! Definitions of tools, and the rules for listing them.

use serde_json::Value;
use toolcell_schema::{DefinitionProblem, Schema, SchemaBounds, SchemaUse, portable, sanitize};

use crate::content::{ContentIcon, Map};

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

/// The bounds of a definition. Every client gets all of it, and every model reads it.
#[derive(Clone, Debug)]
pub struct DefinitionBounds {
    /// Longest name, in bytes. 64: the least that the common model APIs accept.
    pub name_bytes_max: usize,
    /// Longest title, in bytes. 256: two lines on any screen.
    pub title_bytes_max: usize,
    /// Longest description, in bytes. 16 KiB: about 4,000 tokens, far more than is useful.
    pub description_bytes_max: usize,
    /// Icons. 16: every size and theme.
    pub icons_max: usize,
    /// Longest icon URI, in bytes. 64 KiB: a `data:` URI of a 48-pixel picture is a tenth of it.
    pub icon_bytes_max: usize,
    /// Largest `_meta`, in bytes of compact JSON. 16 KiB, as the description.
    pub meta_bytes_max: usize,
    /// The bounds of each schema; their memory is for both.
    pub schemas: SchemaBounds,
}

impl Default for DefinitionBounds {
    fn default() -> Self {
        Self {
            name_bytes_max: 64,
            title_bytes_max: 256,
            description_bytes_max: 16 * 1024,
            icons_max: 16,
            icon_bytes_max: 64 * 1024,
            meta_bytes_max: 16 * 1024,
            schemas: SchemaBounds::default(),
        }
    }
}

/// Cleans the texts of the definition, and returns the problems outside its schemas.
pub(super) fn checked(
    mut definition: ToolDefinition,
    bounds: &DefinitionBounds,
) -> (ToolDefinition, Vec<DefinitionProblem>) {
    let mut problems = Vec::new();
    check_name(&definition.name, bounds, &mut problems);
    definition.title = definition.title.map(|title| sanitize::line(&title).into_owned());
    definition.hints.title = definition.hints.title.map(|title| sanitize::line(&title).into_owned());
    definition.description = sanitize::text(&definition.description).into_owned();
    for (field, text, bytes_max) in [
        ("title", definition.title.as_deref(), bounds.title_bytes_max),
        ("annotations/title", definition.hints.title.as_deref(), bounds.title_bytes_max),
        ("description", Some(definition.description.as_str()), bounds.description_bytes_max),
    ] {
        if text.is_some_and(|text| text.len() > bytes_max) {
            problems.push(DefinitionProblem::new(field, format!("longer than {bytes_max} bytes")));
        }
    }
    check_icons(&definition.icons, bounds, &mut problems);
    let meta_bytes = serde_json::to_string(&definition.meta).map_or(usize::MAX, |text| text.len());
    if meta_bytes > bounds.meta_bytes_max {
        let text = format!("{meta_bytes} bytes, more than {}", bounds.meta_bytes_max);
        problems.push(DefinitionProblem::new("_meta", text));
    }
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

fn check_name(name: &str, bounds: &DefinitionBounds, problems: &mut Vec<DefinitionProblem>) {
    let fits = (1..=bounds.name_bytes_max).contains(&name.len());
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !fits || !plain {
        let shown: String = sanitize::line(name).chars().take(bounds.name_bytes_max).collect();
        let hint = format!("1 to {} of A-Z a-z 0-9 _ -", bounds.name_bytes_max);
        problems.push(DefinitionProblem::new("name", format!("{shown:?} is not a valid tool name")).hint(hint));
    }
}

pub(super) fn check_icons(icons: &[ContentIcon], bounds: &DefinitionBounds, problems: &mut Vec<DefinitionProblem>) {
    if icons.len() > bounds.icons_max {
        problems.push(DefinitionProblem::new("icons", format!("more than {}", bounds.icons_max)));
        return;
    }
    for (place, icon) in icons.iter().enumerate() {
        let field = format!("icons/{place}/src");
        if !(icon.src.starts_with("https://") || icon.src.starts_with("data:")) {
            problems.push(DefinitionProblem::new(&field, "neither an https: nor a data: URI"));
        }
        if icon.src.len() > bounds.icon_bytes_max {
            problems.push(DefinitionProblem::new(&field, format!("longer than {} bytes", bounds.icon_bytes_max)));
        }
    }
}
