//! The host's own tools, `find_tools`, `call_tool` and `describe_tools`: the list that clients see,
//! and the answers of those that answer by themselves. Must not hold: calls.

mod declarations;
mod index;
mod words;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use index::VisibleTools;
pub(super) use index::WordIndex;

use super::{McpTool, ToolDefinition, ToolHints, ToolList};
use crate::content::{CallResult, Map, ResultContent};
use crate::frame::{Object, echo, push_number};
use crate::revision::{Features, Revision, push_definition};
use crate::task::TaskPlan;

/// The name of the tool that finds tools.
pub const FIND_TOOLS: &str = "find_tools";

/// The name of the tool that calls them.
pub const CALL_TOOL: &str = "call_tool";

/// The name of the tool that describes tools to writers of scripts.
pub const DESCRIBE_TOOLS: &str = "describe_tools";

/// The name of the tool that runs scripts.
pub const RUN_CODE: &str = "run_code";

/// Tools that `find_tools` returns by default.
const RESULTS_USUAL: usize = 5;

/// Components that the text of `find_tools` names. Each is some ten tokens of every request.
const GROUPS_SAID: usize = 12;

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
    /// None if all tools are listed.
    call: Option<Arc<McpTool>>,
    /// Where there are scripts.
    describe: Option<Describing>,
    groups: Arc<ToolGroups>,
    /// The words of the whole list.
    index: Arc<WordIndex>,
    /// Which entries of the whole list a search may find: tools, but those for views alone.
    findable: Arc<[bool]>,
    seen: VisibleTools,
    /// Which tools of the whole list clients see without searching.
    pinned: Arc<[bool]>,
    /// The list that clients see: the host's own tools, and the pinned ones.
    shown: Box<ToolList>,
}

/// Whose tools they are, for the text of `find_tools`.
#[derive(Clone, Debug, Default)]
pub struct ToolGroups {
    /// The component of each entry of the whole list, by its name.
    pub components: Vec<Arc<str>>,
    /// What the operator says of the tools, in place of what the host would say.
    pub text: Option<String>,
}

/// The tool that describes tools, and the tools that scripts may call, by their places in the whole
/// list.
#[derive(Clone, Debug)]
struct Describing {
    tool: Arc<McpTool>,
    callable: Arc<[bool]>,
}

/// One of the host's own tools.
#[derive(Clone, Debug)]
pub(crate) enum OwnTool {
    /// `find_tools` or `describe_tools`.
    Answering,
    Call(Arc<McpTool>),
}

/// The call that a call of `call_tool` stands for.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InnerCall {
    pub(crate) name: String,
    pub(crate) arguments: Option<Box<RawValue>>,
}

#[derive(serde::Deserialize)]
struct Query {
    query: String,
    limit: Option<f64>,
}

impl ListSearch {
    /// A search of a list whose `pinned` tools are listed as well; of a list that is listed whole,
    /// without.
    pub(super) fn of(
        list: &ToolList,
        bounds: SearchBounds,
        pinned: Option<Vec<bool>>,
        groups: ToolGroups,
    ) -> Result<Self, SearchError> {
        let taken = [FIND_TOOLS, CALL_TOOL].into_iter().filter(|name| list.find(name).is_some());
        let names: Vec<String> = taken.map(str::to_owned).collect();
        if !names.is_empty() {
            return Err(SearchError::Taken { names });
        }
        let call = pinned.is_some().then(|| call_of(list)).transpose()?;
        let find = compiled(find_tools(&bounds, &groups.said(list), call.is_some()))?;
        let index = Arc::new(WordIndex::of(list.tools().iter().map(|tool| &**tool), bounds.text_bytes_max));
        let findable: Arc<[bool]> = list.tools().iter().map(|entry| entry.is_for_models()).collect();
        let seen = index.seen(findable.to_vec());
        let pinned: Arc<[bool]> = pinned.unwrap_or_else(|| vec![true; list.tools().len()]).into();
        let groups = Arc::new(groups);
        let shown = Box::new(ToolList::plain(list.generation(), Vec::new()));
        let search = Self { bounds, find, call, describe: None, groups, index, findable, seen, pinned, shown };
        Ok(search.showing(list))
    }

    /// With `describe_tools`. Scripts may call the `callable` tools.
    pub(super) fn scripted(mut self, list: &ToolList, callable: Vec<bool>) -> Result<Self, SearchError> {
        if list.find(DESCRIBE_TOOLS).is_some() {
            return Err(SearchError::Taken { names: vec![DESCRIBE_TOOLS.to_owned()] });
        }
        self.describe = Some(Describing { tool: compiled(declarations::describe_tools())?, callable: callable.into() });
        Ok(self.showing(list))
    }

    /// The search of a part of its list.
    pub(super) fn part(&self, part: &ToolList, may: Vec<bool>) -> Self {
        let may = may.into_iter().zip(&*self.findable).map(|(may, findable)| may && *findable).collect();
        // What is said of tools is said of those that the caller sees.
        let find = compiled(find_tools(&self.bounds, &self.groups.said(part), self.call.is_some()));
        let search = Self {
            bounds: self.bounds,
            find: find.unwrap_or_else(|_| Arc::clone(&self.find)),
            call: self.call.as_ref().map(|call| call_of(part).unwrap_or_else(|_| Arc::clone(call))),
            describe: self.describe.clone().filter(|_| part.find(RUN_CODE).is_some()),
            groups: Arc::clone(&self.groups),
            index: Arc::clone(&self.index),
            findable: Arc::clone(&self.findable),
            seen: self.index.seen(may),
            pinned: Arc::clone(&self.pinned),
            shown: Box::new(ToolList::plain(part.generation(), Vec::new())),
        };
        search.showing(part)
    }

    /// With the list that clients see.
    fn showing(self, list: &ToolList) -> Self {
        let describe = self.describe.as_ref().map(|describing| &describing.tool);
        let own = [Some(&self.find), self.call.as_ref(), describe].into_iter().flatten();
        let shown = shown(list, own, &self.pinned);
        Self { shown, ..self }
    }

    /// The list that clients see.
    pub(super) fn shown(&self) -> &ToolList {
        &self.shown
    }

    pub(super) fn own(&self, name: &str) -> Option<OwnTool> {
        match name {
            FIND_TOOLS => Some(OwnTool::Answering),
            CALL_TOOL => self.call.as_ref().map(|call| OwnTool::Call(Arc::clone(call))),
            DESCRIBE_TOOLS => self.describe.as_ref().map(|_| OwnTool::Answering),
            _ => None,
        }
    }

    /// The answer to a call of `describe_tools`, for a caller who sees this list.
    pub(super) fn described(&self, list: &ToolList, arguments: &RawValue) -> CallResult {
        let Some(Describing { tool, callable }) = &self.describe else {
            return CallResult::error("there are no scripts");
        };
        declarations::answer(tool, arguments, self.bounds.result_bytes_max, |name| {
            let (place, entry) = list.find(name).filter(|(_, entry)| entry.is_for_models())?;
            Some((Arc::clone(entry), callable.get(place) == Some(&true)))
        })
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
            push_definition(&mut definitions, tool.served(), tool.task(), &features);
            if definitions.len() > result_bytes_max {
                definitions.truncate(before);
                too_large += 1;
            }
        }
        structured(&definitions, found.len(), too_large)
    }
}

/// `call_tool` for the tools of this list. A call of it becomes a task if that of its tool does.
fn call_of(list: &ToolList) -> Result<Arc<McpTool>, SearchError> {
    let call = McpTool::compile(call_tool()).map_err(|_| SearchError::Own)?;
    Ok(Arc::new(if list.has_tasks() { call.in_tasks(TaskPlan::After(Duration::ZERO)) } else { call }))
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

impl ToolGroups {
    /// A sentence on the tools of a list that a search may find: the components with most of them,
    /// their numbers and an example of each. Begins with a blank.
    fn said(&self, list: &ToolList) -> String {
        if let Some(text) = &self.text {
            return format!(" {text}");
        }
        let mut groups: Vec<(&str, usize, &str)> = Vec::new();
        let mut total = 0_usize;
        for (place, entry) in list.tools().iter().enumerate().filter(|(_, entry)| entry.is_for_models()) {
            let Some(component) = self.components.get(list.in_whole(place)) else { continue };
            total += 1;
            match groups.iter_mut().find(|(name, _, _)| *name == &**component) {
                Some((_, count, _)) => *count += 1,
                None => groups.push((component, 1, &entry.definition().name)),
            }
        }
        if groups.is_empty() {
            return String::new();
        }
        groups.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
        let left = groups.len().saturating_sub(GROUPS_SAID);
        let named = groups.iter().take(GROUPS_SAID).map(|(name, count, example)| match count {
            1 => (*example).to_owned(),
            count => format!("{name} ({count}, such as {example})"),
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let more = if left == 0 { String::new() } else { format!(", and {left} more") };
        format!(" There are {total}: {named}{more}.")
    }
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
fn shown<'t>(list: &'t ToolList, own: impl Iterator<Item = &'t Arc<McpTool>>, pinned: &[bool]) -> Box<ToolList> {
    let is_pinned = |place: usize| pinned.get(list.in_whole(place)) == Some(&true);
    let is_shown = |(place, entry): &(usize, &Arc<McpTool>)| is_pinned(*place) || !entry.is_tool();
    let pinned = list.tools().iter().enumerate().filter(is_shown).map(|(_, tool)| tool);
    Box::new(ToolList::plain(list.generation(), own.chain(pinned).map(Arc::clone).collect()))
}

fn compiled(definition: ToolDefinition) -> Result<Arc<McpTool>, SearchError> {
    McpTool::compile(definition).map(Arc::new).map_err(|_| SearchError::Own)
}

fn find_tools(bounds: &SearchBounds, said: &str, has_more: bool) -> ToolDefinition {
    let listed = if has_more { ", which has more than it lists" } else { "" };
    let call = if has_more { format!(" Call one with {CALL_TOOL}.") } else { String::new() };
    let description = format!(
        "Finds tools of this server{listed}.{said} Describe what should be done, in a few words of English: what \
         with, and to what. The result holds the definitions of the tools that fit best, with the schema of their \
         arguments.{call} Search again with other words if none fits."
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
