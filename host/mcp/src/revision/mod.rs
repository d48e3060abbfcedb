//! The protocol's revisions, the features of each, and the writers of definitions and results. This
//! is the only folder in which revisions differ.

mod definition;
mod prompt;
mod resource;
mod result;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::content::CallResult;
use crate::declared::DeclaredResource;
use crate::frame::json_text;
use crate::method::{Feature, Method};
use crate::task::TaskPlan;
use crate::tool::{McpTool, ToolDefinition};

pub(crate) use definition::{push_definition, push_implementation};
pub(crate) use prompt::{push_prompt, push_prompt_result};
pub(crate) use resource::{push_declared, push_entry, push_resource, push_resource_contents};
pub(crate) use result::push_result;

/// One published revision of the Model Context Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Revision {
    /// 2024-11-05, legacy.
    V2024_11_05,
    /// 2025-03-26, legacy, with batches.
    V2025_03_26,
    /// 2025-06-18, legacy.
    V2025_06_18,
    /// 2025-11-25, the newest legacy one.
    V2025_11_25,
    /// 2026-07-28, modern: no handshake, every request carries its version.
    V2026_07_28,
}

impl Revision {
    /// Every revision served, newest first.
    pub const ALL: [Self; 5] =
        [Self::V2026_07_28, Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26, Self::V2024_11_05];

    /// The newest revision that begins with `initialize`.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of this name, if it is served.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.name() == name)
    }

    /// True if requests carry their version themselves (2026-07-28 and later).
    #[must_use]
    pub const fn is_modern(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }

    /// True if it has this method.
    pub(crate) fn has(self, method: Method) -> bool {
        method.is_for(self.is_modern()) && (method.feature() != Some(Feature::Tasks) || self.features().tasks)
    }

    /// The entry of `tools/list` for this definition, for programs that show the client's view.
    #[must_use]
    pub fn definition_json(self, definition: &ToolDefinition) -> String {
        json_text(|out| push_definition(out, definition, TaskPlan::Never, self.features()))
    }

    /// The entry of `prompts/list` for this entry; `None` if it is not a prompt.
    #[must_use]
    pub fn prompt_json(self, tool: &McpTool) -> Option<String> {
        let prompt = tool.prompt()?;
        Some(json_text(|out| push_prompt(out, tool.definition(), prompt, self.features())))
    }

    /// The entry of `resources/list` or `resources/templates/list` for this resource.
    #[must_use]
    pub fn resource_json(self, declared: &DeclaredResource) -> String {
        json_text(|out| push_declared(out, declared, self.features()))
    }

    /// The result of `tools/call` without the server's identity, for programs that show the
    /// client's view.
    #[must_use]
    pub fn result_json(self, result: &CallResult) -> String {
        json_text(|out| push_result(out, result, self.features(), ""))
    }

    pub(crate) const fn features(self) -> &'static Features {
        match self {
            Self::V2024_11_05 => &V2024_11_05,
            Self::V2025_03_26 => &V2025_03_26,
            Self::V2025_06_18 => &V2025_06_18,
            Self::V2025_11_25 => &V2025_11_25,
            Self::V2026_07_28 => &V2026_07_28,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The features of one revision. Anything that it lacks is left out or written as text.
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
    /// Elicitation by pages, forms with titled and multiple choices, sampling with tools and
    /// several blocks.
    pub(crate) rich_asks: bool,
    /// `resultType` and the server's identity on every result, caching hints on lists.
    pub(crate) typed_results: bool,
    /// True if errors for unreadable requests have no `id`.
    pub(crate) absent_ids: bool,
    /// Calls that become tasks.
    pub(crate) tasks: bool,
    /// True if a stream of a session begins with an event that has an id and no data.
    pub(crate) primed_streams: bool,
}

/// The kind of structured results that a revision carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Structured {
    /// None: only the text block.
    No,
    /// Objects only, and output schemas of `type: "object"` only.
    Objects,
    /// Any JSON value, any output schema.
    Any,
}

/// Text, images and embedded resources; a tool has a name, a description and an input schema.
const V2024_11_05: Features = Features {
    batches: false,
    hints: false,
    titles: false,
    icons: false,
    metas: false,
    audio: false,
    links: false,
    last_modified: false,
    progress_message: false,
    structured: Structured::No,
    elicitation: false,
    rich_asks: false,
    typed_results: false,
    absent_ids: false,
    tasks: false,
    primed_streams: false,
};

const V2025_03_26: Features =
    Features { batches: true, hints: true, audio: true, progress_message: true, ..V2024_11_05 };

const V2025_06_18: Features = Features {
    batches: false,
    titles: true,
    metas: true,
    links: true,
    last_modified: true,
    structured: Structured::Objects,
    elicitation: true,
    ..V2025_03_26
};

const V2025_11_25: Features =
    Features { icons: true, rich_asks: true, absent_ids: true, tasks: true, primed_streams: true, ..V2025_06_18 };

const V2026_07_28: Features =
    Features { structured: Structured::Any, typed_results: true, primed_streams: false, ..V2025_11_25 };
