//! Removes secret values from everything that a sandbox process sends to people: every text and
//! every byte. The process itself removes nothing.
//!
//! Promise: a secret that guests hold is taken out of all that they say.
use std::borrow::Cow;

use toolcell_wall::asking::{Form, Inquiry, Page, Question};
use toolcell_wall::contract::{Annotations, CallResult, Content, Icon, ResourceBody};
use toolcell_wall::failure::Failure;

use super::Redactor;

/// Replaces the values in a result.
pub(crate) fn result(redactor: &Redactor, result: &mut CallResult) {
    if redactor.is_empty() {
        return;
    }
    result.content.iter_mut().for_each(|item| content(redactor, item));
    optional(redactor, &mut result.structured_json);
    optional(redactor, &mut result.meta_json);
}

/// Replaces the values in each text of a failure. A guest controls most of them.
pub(crate) fn failure(redactor: &Redactor, failure: &mut Failure) {
    match failure {
        Failure::InvalidInput(message) | Failure::Failed(message) | Failure::Unfit { problems: message } => {
            text(redactor, message);
        }
        // The reason contains the guest's last output.
        Failure::Trapped { reason, detail } => {
            text(redactor, reason);
            text(redactor, detail);
        }
        Failure::Host { detail } => text(redactor, detail),
        Failure::Asked { refused } => optional(redactor, refused),
        _ => {}
    }
}

/// Removes the values from a question, since it leaves the host.
pub(crate) fn inquiry(redactor: &Redactor, mut asked: Inquiry) -> Inquiry {
    match &mut asked.question {
        Question::Form(Form { message, schema_json: other }) | Question::Page(Page { message, url: other }) => {
            text(redactor, message);
            text(redactor, other);
        }
        Question::Sampling(params) => text(redactor, params),
        Question::Roots => {}
    }
    asked
}

/// The beginning of a text that was cut, without the values. Its end is dropped if a value may have
/// begun there, since half a value would not be found.
pub(crate) fn beginning(redactor: &Redactor, beginning: &str) -> String {
    let clean = redactor.stream().push(beginning.as_bytes());
    String::from_utf8_lossy(&clean).into_owned()
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

/// As [`text`], if there is one.
pub(crate) fn optional(redactor: &Redactor, part: &mut Option<String>) {
    if let Some(part) = part {
        text(redactor, part);
    }
}

/// Replaces the values in a text.
pub(crate) fn text(redactor: &Redactor, part: &mut String) {
    if let Cow::Owned(clean) = redactor.text(part) {
        *part = clean;
    }
}

fn bytes(redactor: &Redactor, part: &mut Vec<u8>) {
    if let Cow::Owned(clean) = redactor.bytes(part) {
        *part = clean;
    }
}

#[cfg(test)]
mod tests {
    use toolcell_wall::contract::{EmbeddedResource, MediaContent, ResourceLink, TextContent};

    use super::*;

    const KEY: &str = "sk-live-0123456789";

    fn redactor() -> Redactor {
        Redactor::new([("KEY", KEY.as_bytes())].into_iter())
    }

    /// A result that holds the value in each of its texts and bytes.
    fn everywhere() -> CallResult {
        let key = || KEY.to_owned();
        let meta_json = || Some(key());
        let annotations = || Some(Annotations { audience: Vec::new(), priority: None, last_modified: Some(key()) });
        let media = || MediaContent {
            data: KEY.as_bytes().to_vec(),
            mime_type: key(),
            annotations: annotations(),
            meta_json: meta_json(),
        };
        let embedded = |body| {
            Content::EmbeddedResource(EmbeddedResource {
                uri: key(),
                mime_type: Some(key()),
                body,
                annotations: annotations(),
                meta_json: meta_json(),
            })
        };
        let icon = Icon { src: key(), mime_type: Some(key()), sizes: vec![key()], theme: None };
        let content = vec![
            Content::Text(TextContent { text: key(), annotations: annotations(), meta_json: meta_json() }),
            Content::Image(media()),
            Content::Audio(media()),
            Content::ResourceLink(ResourceLink {
                uri: key(),
                name: key(),
                title: Some(key()),
                description: Some(key()),
                mime_type: Some(key()),
                size: None,
                annotations: annotations(),
                icons: vec![icon],
                meta_json: meta_json(),
            }),
            embedded(ResourceBody::Text(key())),
            embedded(ResourceBody::Blob(KEY.as_bytes().to_vec())),
        ];
        CallResult { content, structured_json: Some(key()), is_error: false, meta_json: meta_json() }
    }

    #[test]
    fn no_text_and_no_byte_of_a_result_keeps_a_value() {
        let mut answer = everywhere();
        result(&redactor(), &mut answer);
        let shown = format!("{answer:?}");
        let bytes = format!("{:?}", KEY.as_bytes());
        assert!(!shown.contains(KEY) && !shown.contains(bytes.trim_matches(['[', ']'])), "{shown}");
    }

    #[test]
    fn no_failure_keeps_a_value() {
        let key = || KEY.to_owned();
        for mut failed in [
            Failure::InvalidInput(key()),
            Failure::Failed(key()),
            Failure::Unfit { problems: key() },
            Failure::Trapped { reason: key(), detail: key() },
            Failure::Host { detail: key() },
            Failure::Asked { refused: Some(key()) },
        ] {
            failure(&redactor(), &mut failed);
            assert!(!format!("{failed:?}").contains(KEY), "{failed:?}");
        }
    }

    #[test]
    fn no_question_keeps_a_value() {
        let key = || KEY.to_owned();
        for question in [
            Question::Form(Form { message: key(), schema_json: key() }),
            Question::Page(Page { message: key(), url: key() }),
            Question::Sampling(key()),
        ] {
            let asked = inquiry(&redactor(), Inquiry { key: "k".to_owned(), question });
            assert!(!format!("{asked:?}").contains(KEY), "{asked:?}");
        }
    }

    #[test]
    fn a_text_that_was_cut_within_a_value_does_not_show_the_beginning_of_it() {
        let text = format!("key: {KEY}, again: {KEY}");
        for cut in 0..text.len() {
            let shown = beginning(&redactor(), &text[..cut]);
            assert!(!shown.contains("sk-l"), "{shown}");
            assert!(cut < 30 || shown.starts_with("key: [redacted:KEY]"), "{shown}");
        }
        assert_eq!(beginning(&Redactor::default(), &text), text);
    }
}
