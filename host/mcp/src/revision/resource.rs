//! Resources, as one revision writes them.

use crate::content::ResourceBody;
use crate::frame::Object;
use crate::resources::{DeclaredResource, KeptResource};

use super::Features;
use super::result::{push_annotations, push_body};

/// Appends one entry of `resources/list` or `resources/templates/list`, for a declared resource.
pub(crate) fn push_declared(out: &mut Vec<u8>, declared: &DeclaredResource, features: &Features) {
    let mut entry = Object::open(out);
    entry.text(if declared.is_template { "uriTemplate" } else { "uri" }, &declared.uri);
    entry.text("name", &declared.name);
    entry.text_if("title", declared.title.as_deref().filter(|_| features.titles));
    entry.text_if("description", declared.description.as_deref());
    entry.text_if("mimeType", declared.mime_type.as_deref());
    entry.close();
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
    entry.close();
}

/// Appends the contents of a resource, as a member of an embedded resource or of `contents`.
pub(crate) fn push_resource_contents(out: &mut Vec<u8>, uri: &str, mime_type: Option<&str>, body: &ResourceBody) {
    let mut resource = Object::open(out);
    resource.text("uri", uri);
    resource.text_if("mimeType", mime_type);
    push_body(&mut resource, body);
    resource.close();
}
