//! Definitions of tools and the server's identity, as one revision writes them.

use crate::content::{ContentIcon, IconTheme, Map};
use crate::frame::{Object, push_list};
use crate::server::ServerInfo;
use crate::task::TaskPlan;
use crate::tool::{ToolDefinition, ToolHints};

use super::{Features, Structured};

/// Appends one entry of `tools/list`.
pub(crate) fn push_definition(out: &mut Vec<u8>, definition: &ToolDefinition, task: TaskPlan, features: &Features) {
    let mut object = Object::open(out);
    object.text("name", &definition.name);
    if features.titles {
        object.text_if("title", definition.title.as_deref());
    }
    object.text("description", &definition.description);
    object.json("inputSchema", &definition.input_schema);
    if let Some(schema) = definition.output_schema.as_ref().filter(|schema| carries(features, schema)) {
        object.json("outputSchema", schema);
    }
    // A revision with annotations but without titles has the title there.
    let stray_title = definition.title.as_deref().filter(|_| !features.titles);
    let title = definition.hints.title.as_deref().or(stray_title);
    if features.hints && (title.is_some() || definition.hints != ToolHints::default()) {
        push_hints(object.key("annotations"), &definition.hints, title);
    }
    if features.icons {
        push_icons(&mut object, &definition.icons);
    }
    // In 2026-07-28 the server decides, and lists do not show it.
    if let Some(support) = task.support().filter(|_| features.tasks && !features.typed_results) {
        Object::open(object.key("execution")).text("taskSupport", support);
    }
    if features.metas {
        push_meta(&mut object, &definition.meta);
    }
}

/// True if the revision can carry this output schema, and values that conform to it.
fn carries(features: &Features, schema: &serde_json::Value) -> bool {
    match features.structured {
        Structured::No => false,
        Structured::Objects => schema.get("type").and_then(serde_json::Value::as_str) == Some("object"),
        Structured::Any => true,
    }
}

fn push_hints(out: &mut Vec<u8>, hints: &ToolHints, title: Option<&str>) {
    let mut object = Object::open(out);
    object.text_if("title", title);
    for (key, hint) in [
        ("readOnlyHint", hints.read_only),
        ("destructiveHint", hints.destructive),
        ("idempotentHint", hints.idempotent),
        ("openWorldHint", hints.open_world),
    ] {
        if let Some(hint) = hint {
            object.flag(key, hint);
        }
    }
}

/// Appends `icons`, if there are any.
pub(super) fn push_icons(object: &mut Object<'_>, icons: &[ContentIcon]) {
    if icons.is_empty() {
        return;
    }
    push_list(object.key("icons"), icons, |out, icon| {
        let mut entry = Object::open(out);
        entry.text("src", &icon.src);
        entry.text_if("mimeType", icon.mime_type.as_deref());
        if !icon.sizes.is_empty() {
            entry.json("sizes", &icon.sizes);
        }
        entry.text_if(
            "theme",
            icon.theme.map(|theme| match theme {
                IconTheme::Light => "light",
                IconTheme::Dark => "dark",
            }),
        );
    });
}

/// Appends `_meta`, unless it is empty.
pub(super) fn push_meta(object: &mut Object<'_>, meta: &Map) {
    if !meta.is_empty() {
        object.json("_meta", meta);
    }
}

/// Appends the server's identity (`Implementation`).
pub(crate) fn push_implementation(out: &mut Vec<u8>, info: &ServerInfo, features: &Features) {
    let mut object = Object::open(out);
    object.text("name", &info.name);
    if features.titles {
        object.text_if("title", info.title.as_deref());
    }
    object.text("version", &info.version);
    if features.icons {
        object.text_if("description", info.description.as_deref());
        object.text_if("websiteUrl", info.website_url.as_deref());
        push_icons(&mut object, &info.icons);
    }
}
