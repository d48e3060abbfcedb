//! Reads the metadata that a component carries, with the readers of a manifest's entry.

use super::{Entry, Problems, Section, texts};
use crate::diagnostic::Diagnostic;
use crate::limits::{LIMITS, Limit, LoadLimit};
use crate::manifest::hints;
use crate::metadata::{METADATA_BYTES_MAX, Metadata, Suggested, Suggestion};
use crate::names;
use crate::parse::document;
use crate::table::table;

/// The most tools: as many as a component may list by default.
const TOOLS_MAX: usize = 1_000;

table! {
    /// All that an author suggests.
    pub(crate) METADATA "Metadata" {
        /// Limits of each call.
        "limits": Table(&LIMITS), {};
        /// Limits of loading.
        "load": Table(&LOAD_OF_METADATA), {};
        /// The tools, by their own names.
        "tools": Named(&Table(&TOOL_OF_METADATA)), {};
    }
}

table! {
    /// Limits of loading that depend on the component.
    pub(crate) LOAD_OF_METADATA "MetadataLoad" {
        /// Wall clock of making native code.
        "compile_time": Limit(LoadLimit::CompileTime.spec()), {};
        /// Memory of each process that loads it.
        "compile_memory": Limit(LoadLimit::CompileMemory.spec()), {};
    }
}

table! {
    /// One tool.
    pub(crate) TOOL_OF_METADATA "MetadataTool" {
        /// A name for people.
        "title": Text, {};
        /// A description for models.
        "description": Text, {};
        /// The tool only reads.
        "read_only": Flag, {};
        /// The tool may destroy something.
        "destructive": Flag, {};
        /// A second call changes nothing more.
        "idempotent": Flag, {};
        /// The tool deals with an open world.
        "open_world": Flag, {};
        /// Limits of each call.
        "limits": Table(&LIMITS), {};
    }
}

/// Reads the whole text.
pub(crate) fn parse(text: &str) -> Result<Metadata, Vec<Diagnostic>> {
    let read = document(text, METADATA_BYTES_MAX, "metadata::too_large", "the metadata has", read);
    read.map(|(metadata, _)| metadata)
}

fn read(root: &Section<'_>, problems: &mut Problems) -> Metadata {
    root.check_keys(&METADATA, problems);
    let mut suggested = limits(root, problems);
    if let Some(section) = root.get("load").and_then(|entry| entry.table(&LOAD_OF_METADATA, problems)) {
        for limit in [LoadLimit::CompileTime, LoadLimit::CompileMemory] {
            suggested.extend(section.number(limit.spec(), problems).map(|value| Suggested::Load(limit, value)));
        }
    }
    let mut suggestions: Vec<Suggestion> = suggested.into_iter().map(|what| Suggestion { tool: None, what }).collect();
    let tools = root.get("tools").map(|entry| entry.entries(TOOLS_MAX, "tools::too_many", "tools", problems));
    for entry in tools.unwrap_or_default() {
        let tool = entry.key.to_owned();
        let suggested = read_tool(&entry, problems).into_iter();
        suggestions.extend(suggested.map(|what| Suggestion { tool: Some(tool.clone()), what }));
    }
    Metadata { suggestions }
}

fn read_tool(entry: &Entry<'_>, problems: &mut Problems) -> Vec<Suggested> {
    if let Err(error) = names::check_tool(entry.key) {
        problems.add(entry.key_error("tools::name", format!("tool name {:?} {error}", entry.key)));
    }
    let Some(section) = entry.table(&TOOL_OF_METADATA, problems) else { return Vec::new() };
    let title = section.get("title").and_then(|entry| texts::line(&entry, "tools::text", problems));
    let description = section.get("description").and_then(|entry| texts::lines(&entry, "tools::text", problems));
    let description = description.filter(|text| !text.trim().is_empty());
    let mut suggested: Vec<Suggested> = title.map(Suggested::Title).into_iter().collect();
    suggested.extend(description.map(Suggested::Description));
    suggested.extend(hints::read(&section, problems).said().into_iter().map(|(key, said)| Suggested::Hint(key, said)));
    suggested.extend(limits(&section, problems));
    suggested
}

/// The limits of calls that a table `limits` sets, in the order of reports.
fn limits(parent: &Section<'_>, problems: &mut Problems) -> Vec<Suggested> {
    let Some(section) = parent.get("limits").and_then(|entry| entry.table(&LIMITS, problems)) else {
        return Vec::new();
    };
    let set = |limit: Limit| section.number(limit.spec(), problems).map(|value| Suggested::Limit(limit, value));
    Limit::ALL.into_iter().filter_map(set).collect()
}
