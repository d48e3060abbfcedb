//! What one revision can carry. Each revision's file fills one of these in.

/// Which structured results a revision carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Structured {
    /// None: the text mirror has to do.
    No,
    /// Objects only, and output schemas of `type: "object"` only.
    Objects,
    /// Any JSON value, any output schema.
    Any,
}

/// What one revision can carry; what it cannot is left out or said in text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    /// Arrays of messages.
    pub(crate) batches: bool,
    /// `annotations` of tools (the hints).
    pub(crate) hints: bool,
    /// `title` of tools and of the server.
    pub(crate) titles: bool,
    /// `icons`, and `description` and `websiteUrl` of the server.
    pub(crate) icons: bool,
    /// `_meta` of tools and of content.
    pub(crate) metas: bool,
    /// `audio` content.
    pub(crate) audio: bool,
    /// `resource_link` content.
    pub(crate) links: bool,
    /// `lastModified` of content annotations.
    pub(crate) last_modified: bool,
    /// `message` of progress notifications.
    pub(crate) progress_message: bool,
    /// `structuredContent` and `outputSchema`.
    pub(crate) structured: Structured,
    /// Elicitation.
    pub(crate) elicitation: bool,
    /// Elicitation by pages, forms with titles of choices and choices of several, sampling with tools and several blocks.
    pub(crate) rich_asks: bool,
    /// `resultType` and the server's identity on every result, caching hints on lists.
    pub(crate) typed_results: bool,
}
