//! Results of calls in one revision. Content that the revision does not support becomes text.

use crate::content::{CallResult, ContentAnnotations, ContentKind, Map, ResourceBody, ResourceLink, ResultContent};
use crate::frame::{Object, push_base64, push_list};
use crate::meta::{RESERVED_PREFIX, SERVER_INFO};

use super::definition::push_icons;
use super::resource::push_resource_contents;
use super::{Features, Structured};

/// Appends the result of one `tools/call`. `identity` is the server's `Implementation` as JSON.
pub(crate) fn push_result(out: &mut Vec<u8>, result: &CallResult, features: &Features, identity: &str) {
    let mut object = Object::open(out);
    if features.typed_results {
        object.text("resultType", "complete");
    }
    let structured = result.structured.as_ref().map(|value| value.get());
    // Legacy clients check errors against the output schema as well, and show nothing of a
    // mismatch. The text contains it anyway.
    let is_legacy_error = result.is_error && !features.typed_results;
    let carried = structured.filter(|value| carries(features, value) && !is_legacy_error);
    push_contents(object.key("content"), result, structured.filter(|_| carried.is_none()), features);
    if let Some(value) = carried {
        object.raw("structuredContent", value);
    }
    object.flag("isError", result.is_error);
    push_result_meta(&mut object, &result.meta, features, identity);
}

fn carries(features: &Features, value: &str) -> bool {
    match features.structured {
        Structured::No => false,
        Structured::Objects => value.trim_start().starts_with('{'),
        Structured::Any => true,
    }
}

/// `left_out` is a structured value that the revision does not support. It becomes text for the
/// model.
fn push_contents(out: &mut Vec<u8>, result: &CallResult, left_out: Option<&str>, features: &Features) {
    let said = |value: &str| {
        result.content.iter().any(|content| matches!(&content.kind, ContentKind::Text(text) if text == value))
    };
    let left_out = left_out.filter(|value| !said(value)).map(ResultContent::text);
    push_list(out, result.content.iter().chain(&left_out), |out, content| push_content(out, content, features));
}

pub(super) fn push_content(out: &mut Vec<u8>, content: &ResultContent, features: &Features) {
    let mut object = Object::open(out);
    match &content.kind {
        ContentKind::Text(text) => push_text(&mut object, text),
        ContentKind::Image { data, mime_type } => push_media(&mut object, "image", data, mime_type),
        ContentKind::Audio { data, mime_type } if features.audio => push_media(&mut object, "audio", data, mime_type),
        ContentKind::Audio { data, mime_type } => {
            let text = format!("[{mime_type}, {} bytes: this protocol revision carries no audio]", data.len());
            push_text(&mut object, &text);
        }
        ContentKind::ResourceLink(link) if features.links => push_link(&mut object, link, features),
        ContentKind::ResourceLink(link) => push_text(&mut object, &format!("{}: {}", link.name, link.uri)),
        ContentKind::EmbeddedResource { uri, mime_type, body } => {
            object.text("type", "resource");
            push_resource_contents(object.key("resource"), uri, mime_type.as_deref(), body, None);
        }
    }
    if let Some(annotations) = &content.annotations {
        push_annotations(&mut object, annotations, features);
    }
    let uri = match &content.kind {
        ContentKind::ResourceLink(link) => &link.uri,
        ContentKind::EmbeddedResource { uri, .. } => uri,
        ContentKind::Text(_) | ContentKind::Image { .. } | ContentKind::Audio { .. } => "",
    };
    if let Some(meta) = content.meta_json(uri).filter(|_| features.metas) {
        object.raw("_meta", &meta);
    }
}

fn push_text(object: &mut Object<'_>, text: &str) {
    object.text("type", "text");
    object.text("text", text);
}

fn push_media(object: &mut Object<'_>, kind: &str, data: &[u8], mime_type: &str) {
    object.text("type", kind);
    push_bytes(object.key("data"), data);
    object.text("mimeType", mime_type);
}

fn push_bytes(out: &mut Vec<u8>, data: &[u8]) {
    out.push(b'"');
    push_base64(out, data);
    out.push(b'"');
}

fn push_link(object: &mut Object<'_>, link: &ResourceLink, features: &Features) {
    object.text("type", "resource_link");
    object.text("uri", &link.uri);
    object.text("name", &link.name);
    object.text_if("title", link.title.as_deref());
    object.text_if("description", link.description.as_deref());
    object.text_if("mimeType", link.mime_type.as_deref());
    if let Some(size) = link.size_bytes {
        object.json("size", &size);
    }
    if features.icons {
        push_icons(object, &link.icons);
    }
}

/// Appends the content of a resource as a member of it.
pub(super) fn push_body(resource: &mut Object<'_>, body: &ResourceBody) {
    match body {
        ResourceBody::Text(text) => resource.text("text", text),
        ResourceBody::Blob(data) => push_bytes(resource.key("blob"), data),
    }
}

pub(super) fn push_annotations(object: &mut Object<'_>, annotations: &ContentAnnotations, features: &Features) {
    let priority = annotations.priority.filter(|priority| !priority.is_nan());
    let last_modified = annotations.last_modified.as_deref().filter(|_| features.last_modified);
    if annotations.audience.is_empty() && priority.is_none() && last_modified.is_none() {
        return;
    }
    let mut entry = Object::open(object.key("annotations"));
    if !annotations.audience.is_empty() {
        let roles: Vec<&str> = annotations.audience.iter().map(|role| role.name()).collect();
        entry.json("audience", &roles);
    }
    if let Some(priority) = priority {
        entry.json("priority", &priority.clamp(0.0, 1.0));
    }
    entry.text_if("lastModified", last_modified);
}

/// Appends the result's `_meta`: the host's keys without the protocol's own, and the server's
/// identity.
pub(super) fn push_result_meta(object: &mut Object<'_>, meta: &Map, features: &Features, identity: &str) {
    let own: Vec<_> = meta.iter().filter(|(key, _)| !key.starts_with(RESERVED_PREFIX)).collect();
    let identified = features.typed_results && !identity.is_empty();
    if own.is_empty() && !identified {
        return;
    }
    let mut members = Object::open(object.key("_meta"));
    own.into_iter().for_each(|(key, value)| members.json(key, value));
    if identified {
        members.raw(SERVER_INFO, identity);
    }
}
