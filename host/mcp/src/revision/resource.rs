//! Resources, as one revision writes them.

use crate::content::ResourceBody;
use crate::frame::Object;
use crate::resources::Kept;

use super::Features;
use super::result::{push_annotations, push_body};

/// Appends one entry of `resources/list`.
pub(crate) fn push_resource(out: &mut Vec<u8>, kept: &Kept, features: &Features) {
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

/// Appends what a resource holds, as a member of an embedded resource or of `contents`.
pub(crate) fn push_resource_contents(out: &mut Vec<u8>, uri: &str, mime_type: Option<&str>, body: &ResourceBody) {
    let mut resource = Object::open(out);
    resource.text("uri", uri);
    resource.text_if("mimeType", mime_type);
    push_body(&mut resource, body);
    resource.close();
}
