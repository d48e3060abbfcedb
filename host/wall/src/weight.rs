//! The size of an answer: every text of it as the guest made it, every byte as base64, and the
//! memory of lists within an item. What goes to the client may be larger: JSON escapes texts, a
//! control character as six bytes, and structured content may go out as text too.
//!
//! Promise: an answer ends only its own call.
use toolcell_audit::Usage;
use toolcell_policy::{Limit, Limits};

use crate::contract::{ContentHints, GuestContent, GuestIcon, GuestLink, GuestResourceBody, GuestResult};
use crate::failure::CallFailure;

/// Bytes and content items of an answer. Pictures, sounds and blobs count as base64, as they are
/// sent; texts count before they are escaped, and structured content counts once. The braces and
/// keys around them do not count. An icon, and a size of one, counts its
/// memory in addition to its texts, since it may have none.
#[must_use]
pub fn weigh(result: &GuestResult) -> (u64, usize) {
    let content: usize = result.content.iter().map(content).sum();
    let bytes = content + optional(&result.structured_json) + optional(&result.meta_json);
    (bytes as u64, result.content.len())
}

/// The outcome of a call, checked against the limits on its output. Its bytes are noted in the
/// usage.
///
/// # Errors
/// The failure that it already was, or the exceeded limit.
pub fn hold(
    outcome: Result<GuestResult, CallFailure>,
    limits: &Limits,
    usage: &mut Usage,
) -> Result<GuestResult, CallFailure> {
    let (bytes, items) = match &outcome {
        Ok(result) => weigh(result),
        Err(CallFailure::InvalidInput(text) | CallFailure::Failed(text)) => (text.len() as u64, 0),
        Err(_) => return outcome,
    };
    usage.output_bytes = bytes;
    if bytes > limits.output_bytes() {
        return Err(CallFailure::over(Limit::Output, limits));
    }
    if items > limits.output_items() {
        return Err(CallFailure::over(Limit::OutputItems, limits));
    }
    outcome
}

fn content(item: &GuestContent) -> usize {
    match item {
        GuestContent::Text(text) => text.text.len() + annotations(&text.annotations) + optional(&text.meta_json),
        GuestContent::Image(media) | GuestContent::Audio(media) => {
            let described = media.mime_type.len() + annotations(&media.annotations) + optional(&media.meta_json);
            base64(media.data.len()) + described
        }
        GuestContent::ResourceLink(link) => resource_link(link),
        GuestContent::EmbeddedResource(resource) => {
            let body = match &resource.body {
                GuestResourceBody::Text(text) => text.len(),
                GuestResourceBody::Blob(bytes) => base64(bytes.len()),
            };
            let described = resource.uri.len() + optional(&resource.mime_type) + optional(&resource.meta_json);
            body + described + annotations(&resource.annotations)
        }
    }
}

fn resource_link(link: &GuestLink) -> usize {
    let texts = [&link.title, &link.description, &link.mime_type, &link.meta_json];
    let texts: usize = texts.into_iter().map(optional).sum();
    let icons: usize = link.icons.iter().map(icon).sum();
    link.uri.len() + link.name.len() + texts + icons + annotations(&link.annotations)
}

fn icon(icon: &GuestIcon) -> usize {
    let sizes: usize = icon.sizes.iter().map(|size| size_of::<String>() + size.len()).sum();
    size_of::<GuestIcon>() + icon.src.len() + optional(&icon.mime_type) + sizes
}

/// The names of roles are sent for each; the longest has nine bytes.
fn annotations(annotations: &Option<ContentHints>) -> usize {
    annotations.as_ref().map_or(0, |annotations| 9 * annotations.audience.len() + optional(&annotations.last_modified))
}

fn optional(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

fn base64(bytes: usize) -> usize {
    bytes.div_ceil(3).saturating_mul(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{GuestRole, MediaContent, TextContent};

    #[test]
    fn nothing_that_is_sent_is_left_out() {
        let annotations =
            ContentHints { audience: vec![GuestRole::User], priority: None, last_modified: Some("x".repeat(1_000)) };
        let icon = GuestIcon { src: "s".repeat(10), mime_type: None, sizes: vec!["z".repeat(100)], theme: None };
        let link = GuestLink {
            uri: "u".into(),
            name: "n".into(),
            title: None,
            description: Some("d".into()),
            mime_type: None,
            size: None,
            annotations: None,
            icons: vec![icon],
            meta_json: None,
        };
        let picture =
            MediaContent { data: vec![0; 4], mime_type: "m".into(), annotations: None, meta_json: Some("{}".into()) };
        let text = TextContent { text: "t".into(), annotations: Some(annotations), meta_json: None };
        let rows = [
            (GuestContent::Text(text), 1 + 9 + 1_000),
            (GuestContent::ResourceLink(link), 3 + 110 + (size_of::<GuestIcon>() + size_of::<String>()) as u64),
            (GuestContent::Image(picture), 8 + 1 + 2),
        ];
        for (item, bytes) in rows {
            let result = GuestResult { content: vec![item], structured_json: None, is_error: false, meta_json: None };
            assert_eq!(weigh(&result), (bytes, 1));
        }
        let mut usage = Usage::default();
        let failed = hold(Err(CallFailure::Failed("four".into())), &Limits::default(), &mut usage);
        assert_eq!((failed, usage.output_bytes), (Err(CallFailure::Failed("four".into())), 4));
    }
}
