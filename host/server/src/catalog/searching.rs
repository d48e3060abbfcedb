//! Tools that clients search for, and tools that scripts call: the manifest's settings, applied to
//! the tools of a generation.

use std::collections::BTreeSet;
use toolcell_mcp::{RUN_CODE, SearchBounds, SearchError, ToolGroups, ToolList};
use toolcell_policy::{CODE, Discovery, Manifest};

use super::{CallTarget, CatalogEntry};

/// The settings of a manifest whose clients search, or write scripts.
#[derive(PartialEq, Eq)]
pub(crate) struct Searching {
    bounds: SearchBounds,
    /// True if clients search instead of getting a list of all tools.
    searches: bool,
    /// True if they write scripts.
    has_scripts: bool,
    /// What the operator says of the tools.
    text: Option<String>,
    /// Components whose tools are listed unless `tools` says otherwise.
    components: BTreeSet<String>,
    /// Tools with a setting of their own, by component and own name.
    tools: Vec<((String, String), bool)>,
}

impl Searching {
    /// `None` if clients get a list of all tools, and write no scripts.
    pub(crate) fn of(manifest: &Manifest) -> Option<Self> {
        let server = manifest.server();
        let searches = server.discovery() == Discovery::Search;
        let has_scripts = manifest.component(CODE).is_some();
        if !searches && !has_scripts {
            return None;
        }
        let bounds = SearchBounds {
            query_bytes_max: server.find_query_bytes(),
            results_max: server.find_results(),
            result_bytes_max: server.find_output_bytes(),
            text_bytes_max: server.find_text_bytes(),
        };
        let mut searching = Self {
            bounds,
            searches,
            has_scripts,
            text: server.find_description().map(str::to_owned),
            components: BTreeSet::new(),
            tools: Vec::new(),
        };
        for component in manifest.components() {
            if component.is_listed("") {
                searching.components.insert(component.name().to_owned());
            }
            for tool in component.tools() {
                let name = (component.name().to_owned(), tool.name().to_owned());
                searching.tools.push((name, component.is_listed(tool.name())));
            }
        }
        searching.tools.sort_unstable();
        Some(searching)
    }

    /// True if this tool is listed.
    fn lists(&self, target: &CallTarget) -> bool {
        let name = (target.component.name(), target.name.as_str());
        let found =
            self.tools.binary_search_by(|((component, tool), _)| (component.as_str(), tool.as_str()).cmp(&name));
        match found.ok().and_then(|place| self.tools.get(place)) {
            Some((_, listed)) => *listed,
            None => self.components.contains(name.0),
        }
    }

    /// The list that clients get.
    pub(crate) fn apply(&self, list: ToolList, entries: &[CatalogEntry]) -> Result<ToolList, SearchError> {
        let component =
            |entry: &CatalogEntry| entry.target().map_or_else(String::new, |it| it.component.name().to_owned());
        let groups = ToolGroups {
            components: entries.iter().map(|entry| component(entry).into()).collect(),
            text: self.text.clone(),
        };
        let is_listed = |entry: &CatalogEntry| entry.target().is_some_and(|target| self.lists(target));
        let list = if self.searches {
            list.searched_in_groups(self.bounds, |place| entries.get(place).is_some_and(is_listed), groups.clone())?
        } else {
            list
        };
        let script = list.find(RUN_CODE).and_then(|(place, _)| entries.get(place)?.target());
        let Some(script) = script.filter(|target| self.has_scripts && target.component.name() == CODE) else {
            return Ok(list);
        };
        let grants = script.capabilities.grants();
        let may_call = |place: usize| {
            let target = entries.get(place).and_then(CatalogEntry::target);
            target.is_some_and(|target| {
                let definition = target.tool.definition();
                !definition.is_for_views_alone() && grants.call(&definition.name).is_ok()
            })
        };
        let callable: Vec<bool> = (0..entries.len()).map(may_call).collect();
        list.scripted(self.bounds, |place| callable.get(place) == Some(&true), groups)
    }
}
