//! The result of a call: content blocks, structured JSON, the error flag.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::meta::RESERVED_PREFIX;

/// The scheme of views, which is also the key of `_meta` with a view's settings (MCP Apps).
const VIEW_SCHEME: &str = "ui://";
const VIEW_KEY: &str = "ui";

/// A JSON object, such as the value of a `_meta`.
pub type Map = serde_json::Map<String, serde_json::Value>;

/// The audience of a piece of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Role {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// Hints about one piece of content (2026-07-28, Resources, "Annotations"). Everything is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContentAnnotations {
    /// Its audience; empty if unknown.
    pub audience: Vec<Role>,
    /// From 0.0 (optional) to 1.0 (effectively required). Other values are clamped; NaN is left
    /// out.
    pub priority: Option<f64>,
    /// ISO 8601.
    pub last_modified: Option<String>,
}

/// The background that an icon is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IconTheme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}

/// A picture for a user interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentIcon {
    /// An `https:` or `data:` URI.
    pub src: String,
    /// Such as `image/png`.
    pub mime_type: Option<String>,
    /// Such as `48x48`, or `any`; empty if unknown.
    pub sizes: Vec<String>,
    /// The background that it is drawn for.
    pub theme: Option<IconTheme>,
}

/// The content of an embedded resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes, encoded for the wire by this crate.
    Blob(Vec<u8>),
}

impl ResourceBody {
    /// Its length in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
        }
    }
}

/// A link to something that the client may fetch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceLink {
    /// Its address.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// A description.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its size in bytes, before any encoding.
    pub size_bytes: Option<u64>,
    /// Pictures for user interfaces.
    pub icons: Vec<ContentIcon>,
}

/// The kind of a piece of content, with its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ContentKind {
    /// A piece of text.
    Text(String),
    /// A picture; `data` is encoded for the wire by this crate.
    Image {
        /// The picture's bytes.
        data: Vec<u8>,
        /// Such as `image/png`.
        mime_type: String,
    },
    /// A sound; `data` is encoded for the wire by this crate.
    Audio {
        /// The sound's bytes.
        data: Vec<u8>,
        /// Such as `audio/wav`.
        mime_type: String,
    },
    /// A link to a resource.
    ResourceLink(ResourceLink),
    /// A resource carried inside the result.
    EmbeddedResource {
        /// Its address.
        uri: String,
        /// Its media type.
        mime_type: Option<String>,
        /// Its content.
        body: ResourceBody,
    },
}

/// One piece of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultContent {
    /// Its kind and data.
    pub kind: ContentKind,
    /// Hints about it.
    pub annotations: Option<ContentAnnotations>,
    /// Its `_meta`; empty: none.
    pub meta: Map,
}

impl ResultContent {
    /// A piece of this kind without annotations.
    #[must_use]
    pub fn new(kind: ContentKind) -> Self {
        Self { kind, annotations: None, meta: Map::new() }
    }

    /// A piece of text without annotations.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(ContentKind::Text(text.into()))
    }

    /// Its `_meta` as JSON, at this address if it has one; `None` where nothing is left.
    ///
    /// The protocol's own keys are left out, and so is what a view may reach: only the manifest
    /// says that.
    pub(crate) fn meta_json(&self, uri: &str) -> Option<String> {
        let is_view = uri.get(..VIEW_SCHEME.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(VIEW_SCHEME));
        let of_view = |key: &str| key == VIEW_KEY && is_view;
        let is_own = |key: &str| !key.starts_with(RESERVED_PREFIX) && !of_view(key);
        let own: BTreeMap<_, _> = self.meta.iter().filter(|(key, _)| is_own(key)).collect();
        (!own.is_empty()).then(|| serde_json::to_string(&own).ok()).flatten()
    }
}

/// The part of a prompt's result that no tool has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptParts {
    /// A description; `None`: the prompt's own.
    pub description: Option<String>,
    /// The speaker of each piece, in order. Further pieces are the person's.
    pub roles: Vec<Role>,
}

/// The result of a call.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CallResult {
    /// The pieces, in the tool's order.
    pub content: Vec<ResultContent>,
    /// One JSON value.
    pub structured: Option<Box<RawValue>>,
    /// The call ran and failed in a way that the model should know.
    pub is_error: bool,
    /// The further parts of a prompt's result, whose pieces are messages.
    #[serde(default)]
    pub prompt: PromptParts,
    /// Resources that are kept for the client as if the result embedded them, and that are no part
    /// of the answer: it links to them. Not a part of what is kept of a result.
    #[serde(skip)]
    pub aside: Vec<ResultContent>,
    /// The result's `_meta`; empty: none. Keys under `io.modelcontextprotocol/` belong to the
    /// protocol and are left out.
    pub meta: Map,
}

impl CallResult {
    /// A result that is one piece of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ResultContent::text(text)], ..Self::default() }
    }

    /// A failed call; `text` is the reason for the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// A result that is one JSON value. The writer adds the text block that mirrors it.
    #[must_use]
    pub fn structured(value: Box<RawValue>) -> Self {
        Self { structured: Some(value), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_guest_does_not_say_what_a_view_may_reach() {
        let mut content = ResultContent::text("page");
        content.meta = json!({"ui": {"csp": {}}, "own": 1}).as_object().unwrap().clone();
        for (uri, meta) in [
            ("ui://a/view", r#"{"own":1}"#),
            ("UI://a/view", r#"{"own":1}"#),
            ("ui:x", r#"{"own":1,"ui":{"csp":{}}}"#),
            ("file:///a", r#"{"own":1,"ui":{"csp":{}}}"#),
        ] {
            assert_eq!(content.meta_json(uri).as_deref(), Some(meta), "{uri}");
        }
    }
}
