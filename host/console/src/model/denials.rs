//! The view of what tools asked for and no grant allows.

use super::Moment;
use crate::bounds::RULE_LINES;
use crate::text::is_plain;

/// The view "Denials".
#[derive(Debug, Clone, Default)]
pub struct Denials {
    /// Groups that are neither muted nor allowed, newest first. At most
    /// [`ROWS`](crate::bounds::ROWS) are shown, and of one component next to others
    /// [`COMPONENT_CARDS`](crate::bounds::COMPONENT_CARDS).
    pub groups: Vec<DenialGroup>,
    /// Groups that are muted.
    pub muted: Vec<DenialGroup>,
    /// Groups that the grants allow which serve now, and that were not denied since.
    pub allowed: Vec<DenialGroup>,
    /// Denials that belong to no group, because there were too many groups.
    pub ungrouped: u64,
}

/// Denials of the same thing.
#[derive(Debug, Clone, Default)]
pub struct DenialGroup {
    /// The name of the group in forms and of its element: ASCII letters and digits, `-` and `_`.
    pub key: String,
    /// The component's name in the manifest.
    pub component: String,
    /// Tools that asked.
    pub tools: Vec<String>,
    /// Callers whose calls asked; the first ones, where there are many.
    pub callers: Vec<String>,
    /// The kind of thing that was asked for: `http`, `tcp`, `filesystem`.
    pub capability: String,
    /// The thing that was asked for: `GET https://x.example/`.
    pub asked: String,
    /// The rule or the reason that decided.
    pub reason: String,
    /// Number of times.
    pub count: u64,
    /// The first time.
    pub first: Moment,
    /// The last time.
    pub last: Moment,
    /// The last call that asked.
    pub last_call: Option<super::CallLink>,
    /// The rule that would allow it; none where nothing can.
    pub rule: Option<AllowingRule>,
}

/// A rule that would allow what was denied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowingRule {
    /// The section of the manifest: `components.weather.network`.
    pub section: String,
    /// The lines there, the one that matters most first.
    pub line: String,
    /// True if the server may write it into the manifest. A page offers that only where it shows
    /// the rule whole.
    pub can_apply: bool,
}

impl AllowingRule {
    /// True if a page shows all of it, each character as itself. What an operator cannot see is not
    /// written by one decision.
    #[must_use]
    pub fn is_shown_whole(&self) -> bool {
        is_plain(&self.section) && self.line.lines().count() <= RULE_LINES && self.line.lines().all(is_plain)
    }
}
