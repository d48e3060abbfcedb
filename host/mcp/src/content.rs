//! What a call gives back: content blocks, structured JSON, the error flag. No wire format here; how a
//! revision writes these is in `revision`.

use serde_json::value::RawValue;

/// A JSON object, such as the value of a `_meta`.
pub type Map = serde_json::Map<String, serde_json::Value>;

/// For whom a piece of content is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContentAnnotations {
    /// For whom it is meant; empty: not said.
    pub audience: Vec<Role>,
    /// From 0.0 (optional) to 1.0 (effectively required). Values outside are clamped, NaN is left out.
    pub priority: Option<f64>,
    /// ISO 8601.
    pub last_modified: Option<String>,
}

/// The background an icon is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IconTheme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}

/// A picture for a user interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Icon {
    /// An `https:` or `data:` URI.
    pub src: String,
    /// Such as `image/png`.
    pub mime_type: Option<String>,
    /// Such as `48x48`, or `any`; empty: not said.
    pub sizes: Vec<String>,
    /// The background it is drawn for.
    pub theme: Option<IconTheme>,
}

/// What an embedded resource holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes, encoded for the wire by this crate.
    Blob(Vec<u8>),
}

/// A pointer to something the client may fetch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceLink {
    /// Where it is.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// What kind of data it is.
    pub mime_type: Option<String>,
    /// Its size in bytes, before any encoding.
    pub size_bytes: Option<u64>,
    /// Pictures for user interfaces.
    pub icons: Vec<Icon>,
}

/// What kind a piece of content is, with what belongs to the kind.
#[derive(Clone, Debug, PartialEq)]
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
    /// A pointer to a resource.
    ResourceLink(ResourceLink),
    /// A resource carried inside the result.
    EmbeddedResource {
        /// Where it would be.
        uri: String,
        /// What kind of data it is.
        mime_type: Option<String>,
        /// What it holds.
        body: ResourceBody,
    },
}

/// One piece of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// What it is.
    pub kind: ContentKind,
    /// Hints about it.
    pub annotations: Option<ContentAnnotations>,
    /// Its `_meta`; empty: none.
    pub meta: Map,
}

impl Content {
    /// A piece of this kind with nothing said about it.
    #[must_use]
    pub fn new(kind: ContentKind) -> Self {
        Self { kind, annotations: None, meta: Map::new() }
    }

    /// A piece of text with nothing said about it.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(ContentKind::Text(text.into()))
    }
}

/// What a call gives back.
#[derive(Clone, Debug, Default)]
pub struct CallResult {
    /// The pieces, in the tool's order.
    pub content: Vec<Content>,
    /// One JSON value.
    pub structured: Option<Box<RawValue>>,
    /// The call ran and failed in a way that the model should read about.
    pub is_error: bool,
    /// The result's `_meta`; empty: none. Keys under `io.modelcontextprotocol/` are left out: they are the protocol's.
    pub meta: Map,
}

impl CallResult {
    /// A result that is one piece of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::text(text)], ..Self::default() }
    }

    /// A failed call; `text` tells the model what went wrong.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// A result that is one JSON value; the text block that mirrors it is added on the way out.
    #[must_use]
    pub fn structured(value: Box<RawValue>) -> Self {
        Self { structured: Some(value), ..Self::default() }
    }
}
