//! The tools of one generation: order, names, and their listing encoded once per revision.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};

use super::Tool;
use crate::frame::{RpcError, scan};
use crate::revision::{Revision, push_definition};

/// Two or more tools of one list have the same name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than one tool is called {}", names.join(", "))]
pub struct NameCollisions {
    /// The names, sorted.
    pub names: Vec<String>,
}

/// The tools of one generation, in the order they are listed.
#[derive(Debug)]
pub struct ToolList {
    generation: u64,
    tools: Vec<Arc<Tool>>,
    places: HashMap<Box<str>, usize>,
    /// The index of each tool in the whole list, if this is a part of one.
    whole: Option<Vec<usize>>,
    listings: [OnceLock<Listing>; Revision::ALL.len()],
}

/// The entries of `tools/list`, encoded with commas between.
#[derive(Debug)]
struct Listing {
    json: Vec<u8>,
    /// The end of each entry in `json`.
    ends: Vec<usize>,
    /// A fingerprint of this listing, equal across processes.
    fingerprint: u64,
}

/// One page of a listing.
pub(crate) struct ToolPage<'l> {
    /// Entries with commas between.
    pub(crate) json: &'l [u8],
    pub(crate) next_cursor: Option<String>,
}

impl ToolList {
    /// Makes a list. `generation` is for logs.
    ///
    /// # Errors
    /// Some names are not unique.
    pub fn new(generation: u64, tools: Vec<Arc<Tool>>) -> Result<Self, NameCollisions> {
        let mut places = HashMap::with_capacity(tools.len());
        let mut names = Vec::new();
        for (place, tool) in tools.iter().enumerate() {
            let name = &tool.definition().name;
            if places.insert(Box::from(name.as_str()), place).is_some() {
                names.push(name.clone());
            }
        }
        if names.is_empty() {
            return Ok(Self { generation, tools, places, whole: None, listings: Default::default() });
        }
        names.sort_unstable();
        names.dedup();
        Err(NameCollisions { names })
    }

    /// A list of the tools at some places of this one, in its order. Its [`find`](Self::find)
    /// returns places in this whole list.
    #[must_use]
    pub fn part(&self, has: impl Fn(usize) -> bool) -> Self {
        let kept = self.tools.iter().enumerate().filter(|(place, _)| has(*place));
        let (whole, tools): (Vec<usize>, Vec<Arc<Tool>>) = kept.map(|(place, tool)| (place, Arc::clone(tool))).unzip();
        let names = tools.iter().map(|tool| Box::from(tool.definition().name.as_str()));
        let places = names.zip(0..).collect();
        Self { generation: self.generation, tools, places, whole: Some(whole), listings: Default::default() }
    }

    /// The generation it was made for.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The tools, in order.
    #[must_use]
    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// The tool of this name and its index, in the whole list if this is a part of one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<(usize, &Arc<Tool>)> {
        let place = *self.places.get(name)?;
        let in_whole = self.whole.as_ref().map_or(Some(place), |whole| whole.get(place).copied());
        Some((in_whole?, self.tools.get(place)?))
    }

    /// True if clients see the same list: equal definitions in the same order. The code behind them
    /// may differ.
    #[must_use]
    pub fn same_listing(&self, other: &Self) -> bool {
        self.same_listing_in(other, Revision::V2026_07_28)
    }

    /// True if clients of one revision see the same list. They do not see every field of a
    /// definition.
    #[must_use]
    pub fn same_listing_in(&self, other: &Self, revision: Revision) -> bool {
        self.listing(revision).json == other.listing(revision).json
    }

    /// The page at a cursor (its JSON text); the first one without.
    ///
    /// A cursor is bound to the listing, not to the process: any replica that serves the same list
    /// takes it.
    pub(crate) fn page(&self, revision: Revision, cursor: Option<&str>, size: usize) -> Result<ToolPage<'_>, RpcError> {
        // One fingerprint for all revisions: a reload that a peer's revision cannot see still moves
        // entries.
        let fingerprint = self.listing(Revision::V2026_07_28).fingerprint;
        let first = match cursor {
            Some(cursor) => self.first_of(cursor, fingerprint)?,
            None => 0,
        };
        let listing = self.listing(revision);
        let last = first.saturating_add(size.max(1)).min(self.tools.len());
        let from = match first.checked_sub(1).and_then(|before| listing.ends.get(before)) {
            Some(end) => end + 1,
            None => 0,
        };
        let to = last.checked_sub(1).and_then(|place| listing.ends.get(place)).copied().unwrap_or(0);
        let next_cursor = (last < self.tools.len()).then(|| format!("{fingerprint:016x}{last:x}"));
        Ok(ToolPage { json: listing.json.get(from..to).unwrap_or_default(), next_cursor })
    }

    fn first_of(&self, cursor: &str, fingerprint: u64) -> Result<usize, RpcError> {
        let text = scan::string(cursor).ok_or_else(|| RpcError::params("The cursor must be a string"))?;
        let unknown = || RpcError::params("The cursor is not one that this server gave");
        let (mark, place) = text.split_at_checked(16).ok_or_else(unknown)?;
        let hex = |part: &str| !part.is_empty() && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !hex(mark) || !hex(place) {
            return Err(unknown());
        }
        let mark = u64::from_str_radix(mark, 16).map_err(|_| unknown())?;
        let first = usize::from_str_radix(place, 16).map_err(|_| unknown())?;
        if mark != fingerprint {
            return Err(RpcError::params(
                "The cursor is stale: the list of tools has changed; list again without a cursor",
            ));
        }
        if first == 0 || first >= self.tools.len() { Err(unknown()) } else { Ok(first) }
    }

    fn listing(&self, revision: Revision) -> &Listing {
        let [v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28] = &self.listings;
        let place = match revision {
            Revision::V2024_11_05 => v2024_11_05,
            Revision::V2025_03_26 => v2025_03_26,
            Revision::V2025_06_18 => v2025_06_18,
            Revision::V2025_11_25 => v2025_11_25,
            Revision::V2026_07_28 => v2026_07_28,
        };
        place.get_or_init(|| Listing::encode(&self.tools, revision))
    }
}

impl Listing {
    fn encode(tools: &[Arc<Tool>], revision: Revision) -> Self {
        let mut json = Vec::new();
        let mut ends = Vec::with_capacity(tools.len());
        for tool in tools {
            if !json.is_empty() {
                json.push(b',');
            }
            push_definition(&mut json, tool.definition(), revision.features());
            ends.push(json.len());
        }
        let mut hasher = DefaultHasher::new();
        json.hash(&mut hasher);
        Self { json, ends, fingerprint: hasher.finish() }
    }
}
