//! The tools and prompts of one generation: order, names, and lists that are encoded once per
//! revision.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::value::RawValue;

use super::McpTool;
use super::search::{DESCRIBE_TOOLS, ListSearch, OwnTool, SearchBounds, SearchError, ToolGroups, WordIndex};
use crate::content::CallResult;
use crate::frame::{RpcError, scan};
use crate::revision::{Revision, push_definition, push_prompt};
use crate::task::TaskPlan;

/// Longest page in bytes, past its first entry. 1 MiB: as much as a result may have by default, and
/// far more definitions than a model reads.
const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// Two or more tools of one list have the same name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than one tool is called {}", names.join(", "))]
pub struct NameCollisions {
    /// The names, sorted.
    pub names: Vec<String>,
}

/// The entries that one method lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListedEntries {
    /// Those of `tools/list`.
    Tools,
    /// Those of `prompts/list`.
    Prompts,
}

/// The entries of one generation, in the order they are listed: tools, prompts, and what the host
/// calls for other methods. A prompt is stored under its [path](super::McpPrompt::path), which is
/// never a tool's name.
#[derive(Debug)]
pub struct ToolList {
    generation: u64,
    tools: Vec<Arc<McpTool>>,
    places: HashMap<Box<str>, usize>,
    /// The index of each tool in the whole list, if this is a part of one.
    whole: Option<Vec<usize>>,
    /// `Some` if clients search the tools instead of listing them.
    search: Option<ListSearch>,
    /// The words of its tools, once somebody beneath a call searched them.
    words: OnceLock<Box<WordIndex>>,
    /// One for each revision, of tools and then of prompts.
    listings: [[OnceLock<EncodedList>; Revision::ALL.len()]; 2],
    /// True if any entry is a prompt.
    has_prompts: bool,
    /// True if calls of any entry may become tasks.
    has_tasks: bool,
}

/// The entries of a list, encoded and separated by commas.
#[derive(Debug)]
struct EncodedList {
    /// Every answer with a page shares these bytes.
    json: Bytes,
    /// The end of each entry in `json`.
    ends: Vec<usize>,
    /// A fingerprint of this list, equal across processes.
    fingerprint: u64,
}

/// One page of a listing.
pub(crate) struct ListPage {
    /// Entries, separated by commas.
    pub(crate) json: Bytes,
    pub(crate) next_cursor: Option<String>,
}

impl ToolList {
    /// Makes a list. `generation` is for logs.
    ///
    /// # Errors
    /// Some names are not unique.
    pub fn new(generation: u64, tools: Vec<Arc<McpTool>>) -> Result<Self, NameCollisions> {
        let mut seen = HashSet::with_capacity(tools.len());
        let named = tools.iter().map(|tool| &tool.definition().name);
        let mut names: Vec<String> = named.filter(|name| !seen.insert(*name)).cloned().collect();
        if names.is_empty() {
            return Ok(Self::plain(generation, tools));
        }
        names.sort_unstable();
        names.dedup();
        Err(NameCollisions { names })
    }

    /// A list of tools whose names are unique.
    pub(super) fn plain(generation: u64, tools: Vec<Arc<McpTool>>) -> Self {
        let names = tools.iter().map(|tool| Box::from(tool.definition().name.as_str()));
        let places = names.zip(0..).collect();
        let has_prompts = tools.iter().any(|tool| tool.prompt().is_some());
        let has_tasks = tools.iter().any(|tool| tool.task() != TaskPlan::Never);
        let (whole, search, words, listings) = Default::default();
        Self { generation, tools, places, whole, search, words, listings, has_prompts, has_tasks }
    }

    /// Makes clients search this list instead of reading it. They see `find_tools`, `call_tool`,
    /// and the `pinned` tools. All others can still be called.
    ///
    /// # Errors
    /// A tool has the name of one of these two.
    pub fn searched(self, bounds: SearchBounds, pinned: impl Fn(usize) -> bool) -> Result<Self, SearchError> {
        self.searched_in_groups(bounds, pinned, ToolGroups::default())
    }

    /// The same, with a text on the tools' components in the description of `find_tools`.
    ///
    /// # Errors
    /// As those of [`searched`](Self::searched).
    pub fn searched_in_groups(
        self,
        bounds: SearchBounds,
        pinned: impl Fn(usize) -> bool,
        groups: ToolGroups,
    ) -> Result<Self, SearchError> {
        let pinned = (0..self.tools.len()).map(pinned).collect();
        let search = ListSearch::of(&self, bounds, Some(pinned), groups)?;
        Ok(Self { search: Some(search), ..self })
    }

    /// Adds what writers of scripts need: `describe_tools`, and `find_tools` where all tools are
    /// listed. Scripts may call the `callable` tools.
    ///
    /// # Errors
    /// A tool has the name of one of these.
    pub fn scripted(
        mut self,
        bounds: SearchBounds,
        callable: impl Fn(usize) -> bool,
        groups: ToolGroups,
    ) -> Result<Self, SearchError> {
        let callable = (0..self.tools.len()).map(callable).collect();
        let search = match self.search.take() {
            Some(search) => search,
            None => ListSearch::of(&self, bounds, None, groups)?,
        };
        let search = search.scripted(&self, callable)?;
        Ok(Self { search: Some(search), ..self })
    }

    /// A list of the tools at some indices of this one, in its order. Its [`find`](Self::find)
    /// returns indices in this whole list.
    #[must_use]
    pub fn part(&self, has: impl Fn(usize) -> bool) -> Self {
        self.part_with(has, |_| None)
    }

    /// The same, with other tools of the same names in the place of some.
    #[must_use]
    pub fn part_with(&self, has: impl Fn(usize) -> bool, instead: impl Fn(usize) -> Option<Arc<McpTool>>) -> Self {
        let kept: Vec<bool> = (0..self.tools.len()).map(has).collect();
        let tools = self.tools.iter().enumerate().filter(|(place, _)| kept.get(*place) == Some(&true));
        let (whole, tools): (Vec<usize>, Vec<Arc<McpTool>>) =
            tools.map(|(place, tool)| (place, instead(place).unwrap_or_else(|| Arc::clone(tool)))).unzip();
        let part = Self { whole: Some(whole), ..Self::plain(self.generation, tools) };
        let search = self.search.as_ref().map(|search| search.part(&part, kept));
        Self { search, ..part }
    }

    /// The generation it was made for.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The entries, in order.
    #[must_use]
    pub fn tools(&self) -> &[Arc<McpTool>] {
        &self.tools
    }

    /// True if it has prompts.
    #[must_use]
    pub fn has_prompts(&self) -> bool {
        self.has_prompts
    }

    /// True if calls of some tools may become tasks.
    #[must_use]
    pub fn has_tasks(&self) -> bool {
        self.has_tasks
    }

    /// True if any prompt has arguments.
    #[must_use]
    pub fn has_arguments(&self) -> bool {
        self.has_prompts && self.tools.iter().any(|tool| tool.prompt().is_some_and(|it| !it.arguments().is_empty()))
    }

    /// The entry of this name and its index, in the whole list if this is a part of one. A prompt
    /// is found by its path.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<(usize, &Arc<McpTool>)> {
        let place = *self.places.get(name)?;
        Some((self.in_whole(place), self.tools.get(place)?))
    }

    /// A digest of both lists, equal across processes.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let newest = Revision::V2026_07_28;
        let tools = self.listing(ListedEntries::Tools, newest).fingerprint;
        if !self.has_prompts {
            return tools;
        }
        let mut hasher = DefaultHasher::new();
        (tools, self.listing(ListedEntries::Prompts, newest).fingerprint).hash(&mut hasher);
        hasher.finish()
    }

    /// The index in the whole list of the tool at an index of this one.
    pub(super) fn in_whole(&self, place: usize) -> usize {
        self.whole.as_ref().map_or(place, |whole| whole.get(place).copied().unwrap_or(usize::MAX))
    }

    /// The entries that clients see in lists: these, unless clients search the tools.
    #[must_use]
    pub fn shown(&self) -> &Self {
        self.search.as_ref().map_or(self, ListSearch::shown)
    }

    /// The host's own tool of this name, if clients search the list.
    pub(crate) fn own(&self, name: &str) -> Option<OwnTool> {
        self.search.as_ref()?.own(name)
    }

    /// The tools among those that `may` names by their places here, those that fit the words best
    /// first. Without words these are the first ones.
    #[must_use]
    pub fn fitting(&self, words: &str, may: Vec<bool>, most: usize) -> Vec<&Arc<McpTool>> {
        let places = if words.trim().is_empty() {
            may.iter().enumerate().filter(|(_, may)| **may).map(|(place, _)| place).take(most).collect()
        } else {
            let tools = self.tools.iter().map(|tool| &**tool);
            let bytes_max = SearchBounds::default().text_bytes_max;
            let index = self.words.get_or_init(|| Box::new(WordIndex::of(tools, bytes_max)));
            index.find(words, &index.seen(may))
        };
        places.into_iter().take(most).filter_map(|place| self.tools.get(place)).collect()
    }

    /// The answer to a call of one of the host's own tools that answers by itself.
    pub(crate) fn answer_own(&self, name: &str, arguments: &RawValue, revision: Revision) -> CallResult {
        match &self.search {
            Some(search) if name == DESCRIBE_TOOLS => search.described(self, arguments),
            _ => self.find_tools(arguments, revision),
        }
    }

    /// The answer to a call of `find_tools`.
    pub(crate) fn find_tools(&self, arguments: &RawValue, revision: Revision) -> CallResult {
        let tool = |in_whole: usize| {
            let place = match &self.whole {
                Some(whole) => whole.binary_search(&in_whole).ok()?,
                None => in_whole,
            };
            self.tools.get(place).map(Arc::clone)
        };
        match &self.search {
            Some(search) => search.answer(tool, arguments, revision),
            None => CallResult::error("this list is not searched"),
        }
    }

    /// True if clients of one revision see the same list of tools: equal definitions in the same
    /// order, as far as the revision shows their fields. The code behind them may differ.
    #[must_use]
    pub fn same_listing_in(&self, other: &Self, revision: Revision) -> bool {
        self.same_in(other, ListedEntries::Tools, revision)
    }

    /// True if clients of one revision see the same list of this kind.
    pub(crate) fn same_in(&self, other: &Self, listed: ListedEntries, revision: Revision) -> bool {
        self.listing(listed, revision).json == other.listing(listed, revision).json
    }

    /// The number of pages of `tools/list`, with at most this many tools each.
    #[must_use]
    pub fn pages(&self, size: usize) -> usize {
        let listing = self.listing(ListedEntries::Tools, Revision::V2026_07_28);
        let mut pages = 1;
        let mut last = listing.page_end(0, size);
        while last < listing.ends.len() {
            pages += 1;
            last = listing.page_end(last, size);
        }
        pages
    }

    /// The page at a cursor (its JSON text), or the first one. It has at most `size` entries, and
    /// at most 1 MiB unless a single entry is longer.
    ///
    /// A cursor is bound to the listing, not to the process: any replica that serves the same list
    /// takes it.
    pub(crate) fn page(
        &self,
        listed: ListedEntries,
        revision: Revision,
        cursor: Option<&str>,
        size: usize,
    ) -> Result<ListPage, RpcError> {
        // One fingerprint for all revisions: a change that a peer's revision does not show may
        // still move entries.
        let fingerprint = self.listing(listed, Revision::V2026_07_28).fingerprint;
        let listing = self.listing(listed, revision);
        let entries = listing.ends.len();
        let first = match cursor {
            Some(cursor) => first_of(cursor, fingerprint, listed.name(), entries)?,
            None => 0,
        };
        let last = listing.page_end(first, size);
        let next_cursor = (last < entries).then(|| format!("{fingerprint:016x}{last:x}"));
        Ok(ListPage { json: listing.between(first, last), next_cursor })
    }

    fn listing(&self, listed: ListedEntries, revision: Revision) -> &EncodedList {
        let shown = self.shown();
        let [tools, prompts] = &shown.listings;
        let [v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28] = match listed {
            ListedEntries::Tools => tools,
            ListedEntries::Prompts => prompts,
        };
        let place = match revision {
            Revision::V2024_11_05 => v2024_11_05,
            Revision::V2025_03_26 => v2025_03_26,
            Revision::V2025_06_18 => v2025_06_18,
            Revision::V2025_11_25 => v2025_11_25,
            Revision::V2026_07_28 => v2026_07_28,
        };
        place.get_or_init(|| EncodedList::encode(&shown.tools, listed, revision))
    }
}

impl EncodedList {
    fn encode(tools: &[Arc<McpTool>], listed: ListedEntries, revision: Revision) -> Self {
        let mut json = Vec::new();
        let mut ends = Vec::with_capacity(tools.len());
        let is_listed = |tool: &&Arc<McpTool>| match listed {
            ListedEntries::Tools => tool.is_tool(),
            ListedEntries::Prompts => tool.prompt().is_some(),
        };
        for tool in tools.iter().filter(is_listed) {
            if !json.is_empty() {
                json.push(b',');
            }
            match tool.prompt() {
                Some(prompt) => push_prompt(&mut json, tool.definition(), prompt, revision.features()),
                None => push_definition(&mut json, tool.served(), tool.task(), revision.features()),
            }
            ends.push(json.len());
        }
        let mut hasher = DefaultHasher::new();
        json.hash(&mut hasher);
        Self { json: json.into(), ends, fingerprint: hasher.finish() }
    }

    /// The index after the last entry of the page that begins here.
    fn page_end(&self, first: usize, size: usize) -> usize {
        let entries = self.ends.len();
        let last = first.saturating_add(size.max(1)).min(entries);
        let bytes_end = self.begin_of(first).saturating_add(PAGE_BYTES_MAX);
        let rest = self.ends.get(first..last).unwrap_or_default();
        let fitting = rest.partition_point(|end| *end <= bytes_end);
        first.saturating_add(fitting.max(1)).min(entries)
    }

    /// The byte where an entry begins.
    fn begin_of(&self, place: usize) -> usize {
        let before = place.checked_sub(1).and_then(|before| self.ends.get(before));
        before.map_or(0, |end| end + 1)
    }

    /// The entries from one place up to another.
    fn between(&self, first: usize, last: usize) -> Bytes {
        let from = self.begin_of(first);
        let to = last.checked_sub(1).and_then(|place| self.ends.get(place)).copied().unwrap_or(0);
        if from < to { self.json.slice(from..to) } else { Bytes::new() }
    }
}

impl ListedEntries {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
        }
    }
}

/// The first entry of the page at this cursor, in a list of this length.
pub(crate) fn first_of(cursor: &str, fingerprint: u64, name: &str, entries: usize) -> Result<usize, RpcError> {
    let text = scan::string(cursor).ok_or_else(|| RpcError::params("The cursor must be a string"))?;
    let unknown = || RpcError::params("The cursor is not one that this server gave");
    let (mark, place) = text.split_at_checked(16).ok_or_else(unknown)?;
    let mark = scan::hex(mark).ok_or_else(unknown)?;
    let first = scan::hex(place).and_then(|first| usize::try_from(first).ok()).ok_or_else(unknown)?;
    if mark != fingerprint {
        return Err(RpcError::params(format!(
            "The cursor is stale: the list of {name} has changed; list again without a cursor"
        )));
    }
    if first == 0 || first >= entries { Err(unknown()) } else { Ok(first) }
}
