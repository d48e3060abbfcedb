//! Tools that are searched instead of listed: the two tools of the host, `find_tools` and
//! `call_tool`, the list that clients see, and the answer of a search. Must not hold: calls.

mod index;
mod words;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use index::{VisibleTools, WordIndex};

use super::{McpTool, ToolDefinition, ToolHints, ToolList};
use crate::content::{CallResult, Map, ResultContent};
use crate::frame::{Object, echo, push_number};
use crate::revision::{Features, Revision, push_definition};
use crate::task::TaskPlan;

/// The name of the tool that finds tools.
pub const FIND_TOOLS: &str = "find_tools";

/// The name of the tool that calls them.
pub const CALL_TOOL: &str = "call_tool";

/// Tools that `find_tools` returns by default.
const RESULTS_USUAL: usize = 5;

/// The bounds of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchBounds {
    /// Longest query, in bytes. 1 KiB: a paragraph.
    pub query_bytes_max: usize,
    /// Tools of one answer. 20: more would be a list again.
    pub results_max: usize,
    /// Most bytes of definitions in one answer. 64 KiB: about 16,000 tokens.
    pub result_bytes_max: usize,
    /// Bytes of a tool's texts that are searched. 8 KiB: more than most definitions have.
    pub text_bytes_max: usize,
}

impl Default for SearchBounds {
    fn default() -> Self {
        Self { query_bytes_max: 1024, results_max: 20, result_bytes_max: 64 * 1024, text_bytes_max: 8 * 1024 }
    }
}

/// Why a list cannot be searched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// Tools have the names of the host's own.
    #[error("{} is a name of the host's own tools", names.join(", "))]
    Taken {
        /// The names.
        names: Vec<String>,
    },
    /// A definition of the host's own tools is invalid: a bug in this crate.
    #[error("the host's own tools cannot be defined")]
    Own,
}

/// The search of one list.
#[derive(Debug)]
pub(super) struct ListSearch {
    bounds: SearchBounds,
    find: Arc<McpTool>,
    call: Arc<McpTool>,
    /// The words of the whole list.
    index: Arc<WordIndex>,
    /// Which entries of the whole list are tools.
    tools: Arc<[bool]>,
    seen: VisibleTools,
    /// Which tools of the whole list clients see without searching.
    pinned: Arc<[bool]>,
    /// The list that clients see: the host's own tools, and the pinned ones.
    shown: Box<ToolList>,
}

/// The words of a list, for tools that search it.
#[derive(Debug)]
pub(super) struct ToolWords(WordIndex);

impl ToolWords {
    pub(super) fn of(tools: &[Arc<McpTool>]) -> Self {
        let text_bytes_max = SearchBounds::default().text_bytes_max;
        Self(WordIndex::of(tools.iter().map(|tool| &**tool), text_bytes_max))
    }

    /// The places of the tools that have one of the words, the best first, among those that `may`
    /// allows.
    pub(super) fn find(&self, words: &str, may: Vec<bool>) -> Vec<usize> {
        self.0.find(words, &self.0.seen(may))
    }
}

/// One of the host's own tools.
#[derive(Clone, Debug)]
pub(crate) enum OwnTool {
    Find,
    Call(Arc<McpTool>),
}

/// The call that a call of `call_tool` stands for.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InnerCall {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) arguments: Option<Box<RawValue>>,
}

#[derive(serde::Deserialize)]
struct Query {
    query: String,
    limit: Option<f64>,
}

impl ListSearch {
    pub(super) fn of(list: &ToolList, bounds: SearchBounds, pinned: Vec<bool>) -> Result<Self, SearchError> {
        let taken = [FIND_TOOLS, CALL_TOOL].into_iter().filter(|name| list.find(name).is_some());
        let names: Vec<String> = taken.map(str::to_owned).collect();
        if !names.is_empty() {
            return Err(SearchError::Taken { names });
        }
        let compiled = |definition| McpTool::compile(definition).map_err(|_| SearchError::Own);
        let find = Arc::new(compiled(find_tools(&bounds))?);
        let call = Arc::new(compiled(call_tool())?);
        let index = Arc::new(WordIndex::of(list.tools().iter().map(|tool| &**tool), bounds.text_bytes_max));
        let tools: Arc<[bool]> = list.tools().iter().map(|entry| entry.is_tool()).collect();
        let seen = index.seen(tools.to_vec());
        let pinned: Arc<[bool]> = pinned.into();
        let shown = shown(list, [&find, &call], &pinned);
        Ok(Self { bounds, find, call, index, tools, seen, pinned, shown })
    }

    /// The search of a part of its list.
    pub(super) fn part(&self, part: &ToolList, may: Vec<bool>) -> Self {
        let find = Arc::clone(&self.find);
        let call = Arc::clone(&self.call);
        let shown = shown(part, [&find, &call], &self.pinned);
        let index = Arc::clone(&self.index);
        let pinned = Arc::clone(&self.pinned);
        let tools = Arc::clone(&self.tools);
        let may = may.into_iter().zip(&*tools).map(|(may, is_tool)| may && *is_tool).collect();
        Self { bounds: self.bounds, find, call, seen: index.seen(may), index, tools, pinned, shown }
    }

    /// The list that clients see.
    pub(super) fn shown(&self) -> &ToolList {
        &self.shown
    }

    pub(super) fn own(&self, name: &str) -> Option<OwnTool> {
        match name {
            FIND_TOOLS => Some(OwnTool::Find),
            CALL_TOOL => Some(OwnTool::Call(Arc::clone(&self.call))),
            _ => None,
        }
    }

    /// The answer to a call of `find_tools`. `whole` has the tools by their index.
    pub(super) fn answer(
        &self,
        tool: impl Fn(usize) -> Option<Arc<McpTool>>,
        arguments: &RawValue,
        revision: Revision,
    ) -> CallResult {
        let SearchBounds { query_bytes_max, results_max, result_bytes_max, .. } = self.bounds;
        let refused = |problem: String| self.find.refuse_arguments(&format!("- {problem}"));
        // The longest query, with each byte escaped, and the other members.
        if arguments.get().len() > query_bytes_max.saturating_mul(6).saturating_add(256) {
            return refused(too_long(query_bytes_max));
        }
        if let Err(problems) = self.find.check_arguments(arguments, &toolcell_schema::Patience::default()) {
            return self.find.refuse_arguments(&problems);
        }
        let Ok(Query { query, limit }) = serde_json::from_str(arguments.get()) else {
            return refused("the arguments cannot be read".to_owned());
        };
        if query.len() > query_bytes_max {
            return refused(too_long(query_bytes_max));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the schema has checked its range")]
        let limit = limit.map_or(RESULTS_USUAL.min(results_max), |limit| limit as usize).clamp(1, results_max);
        let found = self.index.find(&query, &self.seen);
        // Icons are useless to a model, and may be most of a definition.
        let features = Features { icons: false, ..*revision.features() };
        let mut definitions = Vec::new();
        let mut too_large = 0_usize;
        for tool in found.iter().take(limit).filter_map(|place| tool(*place)) {
            let before = definitions.len();
            if before > 0 {
                definitions.push(b',');
            }
            push_definition(&mut definitions, tool.served(), TaskPlan::Never, &features);
            if definitions.len() > result_bytes_max {
                definitions.truncate(before);
                too_large += 1;
            }
        }
        structured(&definitions, found.len(), too_large)
    }
}

/// The result of a search, as a value and as text.
fn structured(definitions: &[u8], matched: usize, too_large: usize) -> CallResult {
    let mut json = Vec::with_capacity(definitions.len() + 64);
    let mut object = Object::open(&mut json);
    let tools = object.key("tools");
    tools.push(b'[');
    tools.extend_from_slice(definitions);
    tools.push(b']');
    push_number(object.key("matched"), matched);
    if too_large > 0 {
        push_number(object.key("tooLarge"), too_large);
    }
    object.close();
    let text = String::from_utf8(json).unwrap_or_default();
    let content = vec![ResultContent::text(text.as_str())];
    CallResult { content, structured: RawValue::from_string(text).ok(), ..CallResult::default() }
}

fn too_long(query_bytes_max: usize) -> String {
    format!("/query is longer than {query_bytes_max} bytes (limit \"find_query\")")
}

impl InnerCall {
    /// Reads the arguments of `call_tool`.
    ///
    /// # Errors
    ///
    /// The answer that tells the model what is missing.
    pub(crate) fn read(call: &McpTool, arguments: &RawValue) -> Result<Self, Box<CallResult>> {
        serde_json::from_str(arguments.get())
            .map_err(|_| Box::new(call.refuse_arguments(&format!("- {}", Self::lacks(arguments)))))
    }

    /// The first problem of the arguments.
    fn lacks(arguments: &RawValue) -> String {
        let given: Map = serde_json::from_str(arguments.get()).unwrap_or_default();
        if !given.get("name").is_some_and(Value::is_string) {
            return "/name must be the name of a tool, a string".to_owned();
        }
        let other = given.keys().find(|key| !["name", "arguments"].contains(&key.as_str()));
        let other = other.map_or_else(String::new, |key| format!(", and no /{}", echo(key)));
        format!("there may be /name and /arguments{other}")
    }

    /// The answer if this caller has no such tool.
    pub(crate) fn unknown(name: &str) -> CallResult {
        CallResult::error(format!("Unknown tool: {}\nhint: {FIND_TOOLS} finds the tools that there are", echo(name)))
    }
}

/// The entries of a list that clients see. Only tools are searched.
fn shown(list: &ToolList, own: [&Arc<McpTool>; 2], pinned: &[bool]) -> Box<ToolList> {
    let is_pinned = |place: usize| pinned.get(list.in_whole(place)) == Some(&true);
    let is_shown = |(place, entry): &(usize, &Arc<McpTool>)| is_pinned(*place) || !entry.is_tool();
    let pinned = list.tools().iter().enumerate().filter(is_shown).map(|(_, tool)| tool);
    Box::new(ToolList::plain(list.generation(), own.into_iter().chain(pinned).map(Arc::clone).collect()))
}

fn find_tools(bounds: &SearchBounds) -> ToolDefinition {
    let description = format!(
        "Finds tools of this server, which has more than it lists. Describe what should be done, in a few words of \
         English: what with, and to what. The result holds the definitions of the tools that fit best, with the \
         schema of their arguments. Call one with {CALL_TOOL}. Search again with other words if none fits."
    );
    let limit = json!({
        "type": "integer", "minimum": 1, "maximum": bounds.results_max,
        "description": format!("Most tools of the answer; {} by default.", RESULTS_USUAL.min(bounds.results_max)),
    });
    let query = json!({
        "type": "string", "minLength": 1, "maxLength": bounds.query_bytes_max,
        "description": "What the tool should do, such as \"convert units of temperature\".",
    });
    let input = json!({
        "type": "object", "properties": {"query": query, "limit": limit}, "required": ["query"],
        "additionalProperties": false,
    });
    let output = json!({
        "type": "object",
        "properties": {
            "tools": {
                "type": "array",
                "description": "Definitions, the best match first.",
                "items": {"type": "object", "required": ["name", "inputSchema"]},
            },
            "matched": {"type": "integer", "description": "Tools that have a word of the query."},
            "tooLarge": {"type": "integer", "description": "Tools left out because the answer would be too large."},
        },
        "required": ["tools", "matched"],
    });
    definition(FIND_TOOLS, "Find tools", description, input, Some(output), true)
}

fn call_tool() -> ToolDefinition {
    let description = format!(
        "Calls a tool that {FIND_TOOLS} has found: its name, and arguments that fit the schema in its definition. \
         The result is the tool's own."
    );
    let input = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of the tool, as it was found."},
            "arguments": {"type": "object", "description": "Its arguments; none by default."},
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    definition(CALL_TOOL, "Call a tool", description, input, None, false)
}

fn definition(
    name: &str,
    title: &str,
    description: String,
    input: Value,
    output: Option<Value>,
    reads: bool,
) -> ToolDefinition {
    // The called tool may do anything, so there are no hints.
    let hints =
        ToolHints { read_only: reads.then_some(true), open_world: reads.then_some(false), ..ToolHints::default() };
    ToolDefinition {
        title: Some(title.to_owned()),
        output_schema: output,
        hints,
        ..ToolDefinition::new(name, description, input)
    }
}
