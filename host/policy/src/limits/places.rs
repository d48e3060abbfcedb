//! Where a manifest sets limits of calls.

use std::sync::Arc;

use super::{Limit, Limits};
use crate::diagnostic::Span;
use crate::settings::accessors;

accessors! {
    /// The place of one limit in a manifest.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct LimitPlace {
        /// The limit.
        pub(crate) limit: Limit => Limit,
        /// The path of the table that sets it: `components.weather.limits`.
        pub(crate) table: Arc<str> => &Arc<str>,
        /// The place of its key.
        pub(crate) span: Span => Span,
    }
}

/// The places of all limits that a manifest sets for a tool, one for each limit. Cloning is cheap:
/// tools without limits of their own share those of their component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LimitPlaces(Arc<[LimitPlace]>);

/// Limits, and where each is set.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlacedLimits {
    pub(crate) limits: Limits,
    pub(crate) places: LimitPlaces,
}

impl Default for LimitPlaces {
    fn default() -> Self {
        Self(Arc::new([]))
    }
}

impl LimitPlaces {
    /// The place of a limit; `None`: its built-in default holds.
    pub(crate) fn of(&self, limit: Limit) -> Option<&LimitPlace> {
        self.0.iter().find(|place| place.limit == limit)
    }

    /// These, below places that win over them.
    pub(crate) fn under(&self, more_specific: Vec<LimitPlace>) -> Self {
        if more_specific.is_empty() {
            return self.clone();
        }
        let is_left = |place: &&LimitPlace| more_specific.iter().all(|other| other.limit != place.limit);
        let inherited: Vec<LimitPlace> = self.0.iter().filter(is_left).cloned().collect();
        Self(more_specific.into_iter().chain(inherited).collect())
    }
}
