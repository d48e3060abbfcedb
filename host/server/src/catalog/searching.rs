//! Tools that clients search for instead of reading a list of all: the manifest's settings, applied
//! to the tools of a generation.

use std::collections::BTreeSet;
use toolcell_mcp::{SearchBounds, SearchError, ToolList};
use toolcell_policy::{Discovery, Manifest};

use super::{CallTarget, CatalogEntry};

/// The settings of a manifest whose clients search.
#[derive(PartialEq, Eq)]
pub(crate) struct Searching {
    bounds: SearchBounds,
    /// Components whose tools are listed unless `tools` says otherwise.
    components: BTreeSet<String>,
    /// Tools with a setting of their own, by component and own name.
    tools: Vec<((String, String), bool)>,
}

impl Searching {
    /// `None` if clients get a list of all tools.
    pub(crate) fn of(manifest: &Manifest) -> Option<Self> {
        let server = manifest.server();
        if server.discovery() == Discovery::List {
            return None;
        }
        let bounds = SearchBounds {
            query_bytes_max: server.find_query_bytes(),
            results_max: server.find_results(),
            result_bytes_max: server.find_output_bytes(),
            text_bytes_max: server.find_text_bytes(),
        };
        let mut searching = Self { bounds, components: BTreeSet::new(), tools: Vec::new() };
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
        let is_listed = |entry: &CatalogEntry| entry.target().is_some_and(|target| self.lists(target));
        list.searched(self.bounds, |place| entries.get(place).is_some_and(is_listed))
    }
}
