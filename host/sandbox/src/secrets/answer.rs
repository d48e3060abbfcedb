//! Removes secret values from everything that a sandbox process sends to people: every text and
//! every byte. The process itself removes nothing.
//!
//! Promise: a secret that guests hold is taken out of all that they say.
use std::borrow::Cow;

use toolcell_wall::asking::{GuestQuestion, Inquiry, QuestionForm, QuestionPage};
use toolcell_wall::contract::{ContentHints, GuestContent, GuestIcon, GuestResourceBody, GuestResult};
use toolcell_wall::failure::CallFailure;

use super::Redactor;

/// Replaces the values in a result.
pub(crate) fn result(redactor: &Redactor, result: &mut GuestResult) {
    if redactor.is_empty() {
        return;
    }
    result.content.iter_mut().for_each(|item| content(redactor, item));
    optional(redactor, &mut result.structured_json);
    optional(redactor, &mut result.meta_json);
}

/// Replaces the values in each text of a failure. A guest controls most of them.
pub(crate) fn failure(redactor: &Redactor, failure: &mut CallFailure) {
    match failure {
        CallFailure::InvalidInput(message)
        | CallFailure::Failed(message)
        | CallFailure::Unfit { problems: message } => {
            text(redactor, message);
        }
        // The reason contains the guest's last output.
        CallFailure::Trapped { reason, detail } => {
            text(redactor, reason);
            text(redactor, detail);
        }
        CallFailure::Host { detail } => text(redactor, detail),
        CallFailure::Asked { refused } => optional(redactor, refused),
        _ => {}
    }
}

/// Removes the values from a question, since it leaves the host.
pub(crate) fn inquiry(redactor: &Redactor, mut asked: Inquiry) -> Inquiry {
    match &mut asked.question {
        GuestQuestion::Form(QuestionForm { message, schema_json: other })
        | GuestQuestion::Page(QuestionPage { message, url: other }) => {
            text(redactor, message);
            text(redactor, other);
        }
        GuestQuestion::Sampling(params) => text(redactor, params),
        GuestQuestion::Roots => {}
    }
    asked
}

/// The beginning of a text that was cut, without the values. Its end is dropped if a value may have
/// begun there, since half a value would not be found.
pub(crate) fn beginning(redactor: &Redactor, beginning: &str) -> String {
    let clean = redactor.stream().push(beginning.as_bytes());
    String::from_utf8_lossy(&clean).into_owned()
}

fn content(redactor: &Redactor, item: &mut GuestContent) {
    match item {
        GuestContent::Text(piece) => {
            text(redactor, &mut piece.text);
            annotations(redactor, &mut piece.annotations);
            optional(redactor, &mut piece.meta_json);
        }
        GuestContent::Image(media) | GuestContent::Audio(media) => {
            bytes(redactor, &mut media.data);
            text(redactor, &mut media.mime_type);
            annotations(redactor, &mut media.annotations);
            optional(redactor, &mut media.meta_json);
        }
        GuestContent::ResourceLink(link) => {
            text(redactor, &mut link.uri);
            text(redactor, &mut link.name);
            for part in [&mut link.title, &mut link.description, &mut link.mime_type, &mut link.meta_json] {
                optional(redactor, part);
            }
            link.icons.iter_mut().for_each(|shown| icon(redactor, shown));
            annotations(redactor, &mut link.annotations);
        }
        GuestContent::EmbeddedResource(resource) => {
            text(redactor, &mut resource.uri);
            optional(redactor, &mut resource.mime_type);
            match &mut resource.body {
                GuestResourceBody::Text(body) => text(redactor, body),
                GuestResourceBody::Blob(body) => bytes(redactor, body),
            }
            annotations(redactor, &mut resource.annotations);
            optional(redactor, &mut resource.meta_json);
        }
    }
}

fn icon(redactor: &Redactor, icon: &mut GuestIcon) {
    text(redactor, &mut icon.src);
    optional(redactor, &mut icon.mime_type);
    icon.sizes.iter_mut().for_each(|size| text(redactor, size));
}

fn annotations(redactor: &Redactor, annotations: &mut Option<ContentHints>) {
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
    use toolcell_wall::contract::{EmbeddedResource, GuestLink, MediaContent, TextContent};

    use super::*;

    const KEY: &str = "sk-live-0123456789";

    fn redactor() -> Redactor {
        Redactor::new([("KEY", KEY.as_bytes())].into_iter())
    }

    /// A result that holds the value in each of its texts and bytes.
    fn everywhere() -> GuestResult {
        let key = || KEY.to_owned();
        let meta_json = || Some(key());
        let annotations = || Some(ContentHints { audience: Vec::new(), priority: None, last_modified: Some(key()) });
        let media = || MediaContent {
            data: KEY.as_bytes().to_vec(),
            mime_type: key(),
            annotations: annotations(),
            meta_json: meta_json(),
        };
        let embedded = |body| {
            GuestContent::EmbeddedResource(EmbeddedResource {
                uri: key(),
                mime_type: Some(key()),
                body,
                annotations: annotations(),
                meta_json: meta_json(),
            })
        };
        let icon = GuestIcon { src: key(), mime_type: Some(key()), sizes: vec![key()], theme: None };
        let content = vec![
            GuestContent::Text(TextContent { text: key(), annotations: annotations(), meta_json: meta_json() }),
            GuestContent::Image(media()),
            GuestContent::Audio(media()),
            GuestContent::ResourceLink(GuestLink {
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
            embedded(GuestResourceBody::Text(key())),
            embedded(GuestResourceBody::Blob(KEY.as_bytes().to_vec())),
        ];
        GuestResult { content, structured_json: Some(key()), is_error: false, meta_json: meta_json() }
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
            CallFailure::InvalidInput(key()),
            CallFailure::Failed(key()),
            CallFailure::Unfit { problems: key() },
            CallFailure::Trapped { reason: key(), detail: key() },
            CallFailure::Host { detail: key() },
            CallFailure::Asked { refused: Some(key()) },
        ] {
            failure(&redactor(), &mut failed);
            assert!(!format!("{failed:?}").contains(KEY), "{failed:?}");
        }
    }

    #[test]
    fn no_question_keeps_a_value() {
        let key = || KEY.to_owned();
        for question in [
            GuestQuestion::Form(QuestionForm { message: key(), schema_json: key() }),
            GuestQuestion::Page(QuestionPage { message: key(), url: key() }),
            GuestQuestion::Sampling(key()),
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
