//! Resources, as one revision writes them.

use crate::content::ResourceBody;
use crate::declared::{DeclaredResource, ResourceEntry};
use crate::frame::Object;
use crate::resources::KeptResource;

use super::Features;
use super::definition::{push_icons, push_meta};
use super::result::{push_annotations, push_body};

/// Appends one entry of `resources/list` or `resources/templates/list`, for a declared resource.
pub(crate) fn push_declared(out: &mut Vec<u8>, declared: &DeclaredResource, features: &Features) {
    let mut entry = Object::open(out);
    entry.text(if declared.is_template { "uriTemplate" } else { "uri" }, &declared.uri);
    entry.text("name", &declared.name);
    entry.text_if("title", declared.title.as_deref().filter(|_| features.titles));
    entry.text_if("description", declared.description.as_deref());
    entry.text_if("mimeType", declared.mime_type.as_deref());
    if let Some(bytes) = declared.more.size_bytes {
        entry.json("size", &bytes);
    }
    if let Some(annotations) = &declared.more.annotations {
        push_annotations(&mut entry, annotations, features);
    }
    if features.icons {
        push_icons(&mut entry, &declared.more.icons);
    }
    if features.metas {
        push_meta(&mut entry, &declared.more.meta);
    }
}

/// Appends one entry of `resources/list`, for a resource below a template.
pub(crate) fn push_entry(out: &mut Vec<u8>, listed: &ResourceEntry) {
    let mut entry = Object::open(out);
    entry.text("uri", &listed.uri);
    entry.text("name", &listed.name);
    entry.text_if("mimeType", listed.mime_type.as_deref());
    entry.json("size", &listed.size_bytes);
}

/// Appends one entry of `resources/list`, for an embedded resource.
pub(crate) fn push_resource(out: &mut Vec<u8>, kept: &KeptResource, features: &Features) {
    let mut entry = Object::open(out);
    entry.text("uri", &kept.uri);
    entry.text("name", kept.name());
    let first = kept.parts.first();
    entry.text_if("mimeType", first.and_then(|part| part.mime_type.as_deref()));
    entry.json("size", &kept.size_bytes());
    if let Some(annotations) = first.and_then(|part| part.annotations.as_ref()) {
        push_annotations(&mut entry, annotations, features);
    }
}

/// Appends the contents of a resource, as a member of an embedded resource or of `contents`. `meta`
/// is a JSON object, for revisions that have one.
pub(crate) fn push_resource_contents(
    out: &mut Vec<u8>,
    uri: &str,
    mime_type: Option<&str>,
    body: &ResourceBody,
    meta: Option<&str>,
) {
    let mut resource = Object::open(out);
    resource.text("uri", uri);
    resource.text_if("mimeType", mime_type);
    push_body(&mut resource, body);
    if let Some(meta) = meta {
        resource.raw("_meta", meta);
    }
}
