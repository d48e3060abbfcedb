//! The protocol's revisions: which there are, what each can carry, and how definitions and results are
//! written for one. The only folder in which revisions differ.

mod definition;
mod features;
mod json;
mod resource;
mod result;
mod v2024_11_05;
mod v2025_03_26;
mod v2025_06_18;
mod v2025_11_25;
mod v2026_07_28;

#[cfg(test)]
mod tests;

use std::fmt;

pub(crate) use definition::{push_definition, push_implementation};
pub(crate) use features::{Features, Structured};
pub(crate) use resource::{push_declared, push_resource, push_resource_contents};
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

    /// Whether requests carry their version themselves (2026-07-28 and later).
    #[must_use]
    pub const fn is_modern(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }

    pub(crate) const fn features(self) -> &'static Features {
        match self {
            Self::V2024_11_05 => &v2024_11_05::FEATURES,
            Self::V2025_03_26 => &v2025_03_26::FEATURES,
            Self::V2025_06_18 => &v2025_06_18::FEATURES,
            Self::V2025_11_25 => &v2025_11_25::FEATURES,
            Self::V2026_07_28 => &v2026_07_28::FEATURES,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
