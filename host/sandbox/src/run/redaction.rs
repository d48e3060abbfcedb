//! Takes secret values out of an answer: every text and every byte of it. Must not hold: the
//! values.
use crate::bindings::contract::{Annotations, CallResult, Content, Failure, Icon, ResourceBody};
use crate::secrets::Redactor;

/// Replaces the values in an answer.
pub(crate) fn answer(redactor: &Redactor, answer: &mut Result<CallResult, Failure>) {
    if redactor.is_empty() {
        return;
    }
    match answer {
        Ok(result) => {
            result.content.iter_mut().for_each(|item| content(redactor, item));
            optional(redactor, &mut result.structured_json);
            optional(redactor, &mut result.meta_json);
        }
        Err(Failure::InvalidInput(message) | Failure::Failed(message)) => text(redactor, message),
    }
}

fn content(redactor: &Redactor, item: &mut Content) {
    match item {
        Content::Text(piece) => {
            text(redactor, &mut piece.text);
            annotations(redactor, &mut piece.annotations);
            optional(redactor, &mut piece.meta_json);
        }
        Content::Image(media) | Content::Audio(media) => {
            bytes(redactor, &mut media.data);
            text(redactor, &mut media.mime_type);
            annotations(redactor, &mut media.annotations);
            optional(redactor, &mut media.meta_json);
        }
        Content::ResourceLink(link) => {
            text(redactor, &mut link.uri);
            text(redactor, &mut link.name);
            for part in [&mut link.title, &mut link.description, &mut link.mime_type, &mut link.meta_json] {
                optional(redactor, part);
            }
            link.icons.iter_mut().for_each(|shown| icon(redactor, shown));
            annotations(redactor, &mut link.annotations);
        }
        Content::EmbeddedResource(resource) => {
            text(redactor, &mut resource.uri);
            optional(redactor, &mut resource.mime_type);
            match &mut resource.body {
                ResourceBody::Text(body) => text(redactor, body),
                ResourceBody::Blob(body) => bytes(redactor, body),
            }
            annotations(redactor, &mut resource.annotations);
            optional(redactor, &mut resource.meta_json);
        }
    }
}

fn icon(redactor: &Redactor, icon: &mut Icon) {
    text(redactor, &mut icon.src);
    optional(redactor, &mut icon.mime_type);
    icon.sizes.iter_mut().for_each(|size| text(redactor, size));
}

fn annotations(redactor: &Redactor, annotations: &mut Option<Annotations>) {
    if let Some(annotations) = annotations {
        optional(redactor, &mut annotations.last_modified);
    }
}

fn optional(redactor: &Redactor, part: &mut Option<String>) {
    if let Some(part) = part {
        text(redactor, part);
    }
}

fn text(redactor: &Redactor, part: &mut String) {
    if let std::borrow::Cow::Owned(clean) = redactor.text(part) {
        *part = clean;
    }
}

fn bytes(redactor: &Redactor, part: &mut Vec<u8>) {
    if let std::borrow::Cow::Owned(clean) = redactor.bytes(part) {
        *part = clean;
    }
}
