//! The contract's plain types (`wit/types.wit`, `prompts.wit`, `resources.wit`), as a guest
//! returned them.
use serde::{Deserialize, Serialize};

/// Who a piece of content is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuestRole {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Hints about a piece of content, for the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContentHints {
    /// Who the content is for; empty if unknown.
    pub audience: Vec<GuestRole>,
    /// From 0.0 (optional) to 1.0 (effectively required).
    pub priority: Option<f64>,
    /// ISO 8601, such as `2026-01-12T15:00:58Z`.
    pub last_modified: Option<String>,
}

/// The background an icon is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Theme {
    /// A light one.
    Light,
    /// A dark one.
    Dark,
}

/// A picture for a user interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestIcon {
    /// An `https:` or `data:` URI.
    pub src: String,
    /// Such as `image/png`.
    pub mime_type: Option<String>,
    /// Such as `48x48`, or `any` for a scalable picture.
    pub sizes: Vec<String>,
    /// The background it is drawn for; `None` for any.
    pub theme: Option<Theme>,
}

/// Hints of a tool about its own behaviour. The host never trusts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestToolHints {
    /// Only reads; changes nothing.
    pub read_only: Option<bool>,
    /// May destroy something. Only relevant if `read_only` is not true.
    pub destructive: Option<bool>,
    /// Calling it again with the same arguments has no further effect.
    pub idempotent: Option<bool>,
    /// Deals with an open world, such as the web, rather than a closed one, such as its own store.
    pub open_world: Option<bool>,
}

/// One tool, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestTool {
    /// Unique in the component.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// Tells the model when to use it, and for what.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema_json: String,
    /// JSON Schema of [`GuestResult::structured_json`].
    pub output_schema_json: Option<String>,
    /// Its hints about its own behaviour.
    pub hints: Option<GuestToolHints>,
    /// Pictures for user interfaces.
    pub icons: Vec<GuestIcon>,
    /// A JSON object for the definition's `_meta`.
    pub meta_json: Option<String>,
}

/// A piece of text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Hints for the client.
    pub annotations: Option<ContentHints>,
    /// A JSON object for its `_meta`.
    pub meta_json: Option<String>,
}

/// A picture or a sound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MediaContent {
    /// Its bytes, not encoded.
    pub data: Vec<u8>,
    /// Such as `image/png` or `audio/wav`.
    pub mime_type: String,
    /// Hints for the client.
    pub annotations: Option<ContentHints>,
    /// A JSON object for its `_meta`.
    pub meta_json: Option<String>,
}

/// A pointer to something the client may fetch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuestLink {
    /// The address.
    pub uri: String,
    /// A name for programs.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// Its use.
    pub description: Option<String>,
    /// Such as `text/markdown`.
    pub mime_type: Option<String>,
    /// In bytes, before any encoding.
    pub size: Option<u64>,
    /// Hints for the client.
    pub annotations: Option<ContentHints>,
    /// Pictures for user interfaces.
    pub icons: Vec<GuestIcon>,
    /// A JSON object for its `_meta`.
    pub meta_json: Option<String>,
}

/// The body of an embedded resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuestResourceBody {
    /// Text.
    Text(String),
    /// Bytes, not encoded.
    Blob(Vec<u8>),
}

/// A resource carried inside the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmbeddedResource {
    /// Its address.
    pub uri: String,
    /// Such as `text/markdown`.
    pub mime_type: Option<String>,
    /// Its body.
    pub body: GuestResourceBody,
    /// Hints for the client.
    pub annotations: Option<ContentHints>,
    /// A JSON object for its `_meta`.
    pub meta_json: Option<String>,
}

/// One piece of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum GuestContent {
    /// A text.
    Text(TextContent),
    /// A picture.
    Image(MediaContent),
    /// A sound.
    Audio(MediaContent),
    /// A pointer to a resource.
    ResourceLink(GuestLink),
    /// A resource.
    EmbeddedResource(EmbeddedResource),
}

/// The answer of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuestResult {
    /// Its pieces.
    pub content: Vec<GuestContent>,
    /// One JSON value.
    pub structured_json: Option<String>,
    /// The call ran and failed in a way that the model should read about.
    pub is_error: bool,
    /// A JSON object for the result's `_meta`.
    pub meta_json: Option<String>,
}

/// One argument of a prompt. Its value is a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestPromptArgument {
    /// Unique in the prompt.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// Its use.
    pub description: Option<String>,
    /// The host refuses to get the prompt without it.
    pub required: bool,
    /// Values that the host offers as completions.
    pub values: Vec<String>,
}

/// One prompt, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestPrompt {
    /// Unique in the component.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// Its use, for people.
    pub description: Option<String>,
    /// In the order in which people are asked for them.
    pub arguments: Vec<GuestPromptArgument>,
    /// Pictures for user interfaces.
    pub icons: Vec<GuestIcon>,
    /// A JSON object for the definition's `_meta`.
    pub meta_json: Option<String>,
}

/// A variable of a template of addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateVariable {
    /// Its name in the template.
    pub name: String,
    /// Values that the host offers as completions.
    pub values: Vec<String>,
}

/// One resource, or a template of many addresses, as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedResource {
    /// The address, or the template. Unique in the component.
    pub uri: String,
    /// A name for programs.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// Its use.
    pub description: Option<String>,
    /// Such as `text/markdown`.
    pub mime_type: Option<String>,
    /// In bytes, before any encoding.
    pub size: Option<u64>,
    /// Hints for the client.
    pub annotations: Option<ContentHints>,
    /// Pictures for user interfaces.
    pub icons: Vec<GuestIcon>,
    /// A JSON object for the definition's `_meta`.
    pub meta_json: Option<String>,
    /// Variables of the template that have known values.
    pub variables: Vec<TemplateVariable>,
}
