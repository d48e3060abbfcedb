//! Tools: their definitions, and the checks at load and at every call.

mod definition;
mod list;
mod parameter;
mod prompt;
mod resource;
mod search;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::value::RawValue;
use toolcell_schema::{
    ArgumentProblems, DefinitionProblem, NarrowedArgument, Patience, SchemaBounds, Schemas, ToolFindings,
};

use crate::content::{CallResult, ContentKind, ResultContent};
use crate::frame::scan;
use crate::task::TaskPlan;

pub use definition::{ToolDefinition, ToolHints};
pub(crate) use list::{ListedEntries, first_of};
pub use list::{NameCollisions, ToolList};
pub use prompt::{McpPrompt, PROMPT_ARGUMENTS_MAX, PROMPT_VALUES_MAX, PromptArgument};
pub use search::{CALL_TOOL, DESCRIBE_TOOLS, FIND_TOOLS, RUN_CODE, SearchBounds, SearchError, ToolGroups};
pub(crate) use search::{InnerCall, OwnTool};

/// Deepest nesting of a tool's structured result: a client's 128 without the frame around it.
const STRUCTURED_DEPTH_MAX: usize = 120;

/// Bytes of JSON whose parsing takes about 50 µs.
const LONG_BYTES: usize = 16 * 1024;

/// One tool, with its schemas unless another process applies them.
#[derive(Clone, Debug)]
pub struct McpTool {
    definition: ToolDefinition,
    /// The definition with portable schemas, if they differ from the written ones.
    served: Option<Box<ToolDefinition>>,
    /// `None` if another process checks them.
    schemas: Option<Arc<Schemas>>,
    /// The places of the patterns in its schemas that are not applied.
    unapplied: Vec<String>,
    checks_arguments: bool,
    /// The parameters that HTTP clients repeat in headers.
    parameters: Vec<parameter::Parameter>,
    offered: prompt::Offered,
    task: TaskPlan,
    /// True if clients show a view for its results.
    has_view: bool,
}

impl McpTool {
    /// Checks a definition, cleans its texts (see [`crate::sanitize`]) and compiles its schemas.
    ///
    /// # Errors
    /// Every problem found, not only the first.
    pub fn compile(definition: ToolDefinition) -> Result<Self, Vec<DefinitionProblem>> {
        Self::of(definition, |definition| {
            let input = &definition.input_schema;
            let output = definition.output_schema.as_ref();
            Schemas::compile(input, output, &SchemaBounds::default()).map(|schemas| Some(Arc::new(schemas)))
        })
    }

    /// Checks a definition whose schemas were compiled by another process, which found these
    /// problems, and are checked by another process. Here they are only scanned, in time
    /// proportional to their size, not compiled.
    ///
    /// The catalog passes its results through [`finish_checked`](Self::finish_checked).
    ///
    /// # Errors
    /// Every problem, as [`compile`](Self::compile) would report it.
    pub fn checked_elsewhere(definition: ToolDefinition, found: ToolFindings) -> Result<Self, Vec<DefinitionProblem>> {
        let ToolFindings { problems: found, unapplied } = found;
        let tool = Self::of(definition, |definition| {
            let input = &definition.input_schema;
            let output = definition.output_schema.as_ref();
            // The other process may be wrong if it found nothing.
            let found = if found.is_empty() { Schemas::check(input, output) } else { found };
            if found.is_empty() { Ok(None) } else { Err(found) }
        })?;
        Ok(Self { unapplied, ..tool })
    }

    fn of(
        definition: ToolDefinition,
        schemas: impl FnOnce(&ToolDefinition) -> Result<Option<Arc<Schemas>>, Vec<DefinitionProblem>>,
    ) -> Result<Self, Vec<DefinitionProblem>> {
        let (definition, mut problems) = definition::checked(definition);
        let schemas = schemas(&definition).unwrap_or_else(|found| {
            problems.extend(found);
            None
        });
        let parameters = parameter::parameters(&definition.input_schema, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let offered = prompt::Offered::default();
        let has_view = definition.view().is_some();
        let task = TaskPlan::Never;
        let served = definition::served(&definition);
        let unapplied = schemas.iter().flat_map(|schemas| schemas.unapplied()).cloned().collect();
        Ok(Self { definition, served, schemas, unapplied, checks_arguments: true, parameters, offered, task, has_view })
    }

    /// Leaves the check of arguments to the tool. It must refuse exactly what the input schema
    /// refuses, and explains it better.
    #[must_use]
    pub fn checking_its_own_arguments(self) -> Self {
        Self { checks_arguments: false, ..self }
    }

    /// Makes its calls tasks.
    #[must_use]
    pub fn in_tasks(self, task: TaskPlan) -> Self {
        Self { task, ..self }
    }

    /// Which calls become tasks.
    #[must_use]
    pub fn task(&self) -> TaskPlan {
        self.task
    }

    /// The definition as clients see it: its schemas are in their [portable
    /// form](toolcell_schema::portable).
    #[must_use]
    pub fn served(&self) -> &ToolDefinition {
        self.served.as_deref().unwrap_or(&self.definition)
    }

    /// The definition as written. Values are checked by its schemas, and locks pin it.
    #[must_use]
    pub fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// The places of the patterns in its schemas that are [not
    /// applied](toolcell_schema::Schema::unapplied).
    #[must_use]
    pub fn unapplied_patterns(&self) -> &[String] {
        &self.unapplied
    }

    /// True if another process applies its schemas.
    #[must_use]
    pub fn is_checked_elsewhere(&self) -> bool {
        self.schemas.is_none()
    }

    /// Its schemas; `None` where they are applied elsewhere.
    fn schemas(&self) -> Option<&Schemas> {
        self.schemas.as_deref()
    }

    /// True if arguments are checked against the input schema here.
    fn checks_here(&self) -> bool {
        self.checks_arguments && !self.is_checked_elsewhere()
    }

    /// Checks arguments against the input schema, unless that is done elsewhere. A check takes at
    /// most 100,000,000 steps, about a tenth of a second. It is aborted at the end of `patience`.
    ///
    /// # Errors
    /// Each failing place with the rule it breaks, up to a bound; or that the check would take
    /// longer.
    pub fn check_arguments(&self, arguments: &RawValue, patience: &Patience) -> Result<(), ArgumentProblems> {
        if !self.checks_here() {
            return Ok(());
        }
        let schema = self.schemas().ok_or_else(ArgumentProblems::unchecked)?.input();
        match schema.rewritten(arguments.get()) {
            Some(rewritten) => schema.check(&rewritten, patience),
            None => schema.check(arguments.get(), patience),
        }
    }

    /// Arguments in the form that the input schema means (see
    /// [`Schema::rewritten`](toolcell_schema::Schema::rewritten)): those that
    /// [`check_arguments`](Self::check_arguments) checks. `None` if they are unchanged, or checked
    /// elsewhere.
    #[must_use]
    pub fn rewritten(&self, arguments: &RawValue) -> Option<String> {
        self.schemas().filter(|_| self.checks_here())?.input().rewritten(arguments.get())
    }

    /// Arguments in the form that the input schema means, wherever it is applied; `None` if they
    /// are unchanged. A tool that checks its own arguments gets them as they are.
    #[must_use]
    pub fn conformed(&self, arguments: &RawValue) -> Option<String> {
        let schema = self.checks_arguments.then_some(&self.definition.input_schema)?;
        toolcell_schema::conformed(schema, arguments.get())
    }

    /// This tool for callers whose arguments meet further conditions: clients see these in its
    /// input schema. `None` if its schemas are applied here, or clients see nothing of it.
    #[must_use]
    pub fn narrowed<'c>(&self, conditions: impl IntoIterator<Item = NarrowedArgument<'c>>) -> Option<Self> {
        if !self.is_checked_elsewhere() {
            return None;
        }
        let input_schema = toolcell_schema::narrowed(&self.definition.input_schema, conditions);
        let shown = ToolDefinition { input_schema, ..self.definition.clone() };
        let served = definition::served(&shown).unwrap_or_else(|| Box::new(shown));
        Some(Self { served: Some(served), ..self.clone() })
    }

    /// True if checking these arguments may take longer than a thread with other duties can spare,
    /// a tenth of a millisecond.
    pub(crate) fn takes_long(&self, arguments: &RawValue) -> bool {
        let text = arguments.get();
        match self.schemas() {
            Some(schemas) if self.checks_arguments => schemas.input().is_long(text),
            _ => text.len() > LONG_BYTES,
        }
    }

    /// True if [`finish`](Self::finish) may take longer than a thread with other duties can spare.
    #[must_use]
    pub fn finishing_takes_long(&self, result: &CallResult) -> bool {
        let Some(value) = &result.structured else { return false };
        let schema = self.schemas().and_then(Schemas::output).filter(|_| !result.is_error);
        value.get().len() > LONG_BYTES || schema.is_some_and(|schema| schema.is_long(value.get()))
    }

    /// The result for arguments that did not pass [`check_arguments`](Self::check_arguments).
    #[must_use]
    pub fn refuse_arguments(&self, problems: &impl fmt::Display) -> CallResult {
        let name = &self.definition.name;
        CallResult::error(format!("The arguments do not fit the input schema of {name}:\n{problems}"))
    }

    /// Finishes the tool's result. Structured content is checked against the output schema, and
    /// mirrored in a text block if the tool wrote no text. A result that does not conform, or
    /// cannot be checked in the time of [`check_arguments`](Self::check_arguments), becomes an
    /// error result.
    #[must_use]
    pub fn finish(&self, result: CallResult, patience: &Patience) -> CheckedResult {
        self.finish_by(result, |schemas, text| match schemas {
            Some(schemas) => schemas.output()?.check(text, patience).err().map(|problems| problems.to_string()),
            None => Some("- (root): nothing has checked it".to_owned()),
        })
    }

    /// Finishes a result like [`finish`](Self::finish), for a tool whose schemas are checked
    /// elsewhere: `problems` are the findings there.
    #[must_use]
    pub fn finish_checked(&self, result: CallResult, problems: Option<String>) -> CheckedResult {
        self.finish_by(result, |_, _| problems)
    }

    /// Finishes a result. `check` returns the problems of a structured part according to the output
    /// schema.
    fn finish_by(
        &self,
        mut result: CallResult,
        check: impl FnOnce(Option<&Schemas>, &str) -> Option<String>,
    ) -> CheckedResult {
        if let Some(complaint) = self.complaint(&result, check) {
            let meta = std::mem::take(&mut result.meta);
            let text = format!("The result of {} is unusable: {complaint}", self.definition.name);
            return CheckedResult::replaced(CallResult { meta, ..CallResult::error(text) }, complaint);
        }
        let has_text = result.content.iter().any(|content| matches!(content.kind, ContentKind::Text(_)));
        if let Some(value) = result.structured.as_ref().filter(|_| !has_text) {
            result.content.push(ResultContent::text(value.get()));
        }
        CheckedResult::conforming(result)
    }

    /// True if the tool has a view, and clients without views would get no text (ext-apps,
    /// "Graceful Degradation"). A structured part is mirrored in a text.
    fn lacks_text(&self, result: &CallResult) -> bool {
        let says =
            |content: &ResultContent| matches!(&content.kind, ContentKind::Text(text) if !text.trim().is_empty());
        self.has_view && !result.is_error && result.structured.is_none() && !result.content.iter().any(says)
    }

    /// The problem of a result, if there is one.
    fn complaint(
        &self,
        result: &CallResult,
        check: impl FnOnce(Option<&Schemas>, &str) -> Option<String>,
    ) -> Option<String> {
        let has_schema = self.definition.output_schema.is_some() && !result.is_error;
        if self.lacks_text(result) {
            return Some("it has a view, so its result needs a text for clients that show none".to_owned());
        }
        let Some(value) = &result.structured else {
            return has_schema.then(|| "its output schema asks for structured content, and there is none".to_owned());
        };
        match scan::check_value(value.get(), STRUCTURED_DEPTH_MAX) {
            Err(fault) => return Some(format!("its structured content cannot be taken: {fault}")),
            Ok(Some(key)) => return Some(format!("its structured content has the key {key:?} twice in one object")),
            Ok(None) => {}
        }
        let problems = has_schema.then(|| check(self.schemas(), value.get())).flatten()?;
        Some(format!("its structured content does not fit its output schema:\n{problems}"))
    }
}

/// The checked result of a call: a result that conforms to its tool's output schema, or an error in
/// its place. Only [`McpTool::finish`] makes one from a tool's result.
#[derive(Clone, Debug)]
pub struct CheckedResult {
    result: CallResult,
    complaint: Option<String>,
    blames_arguments: bool,
}

impl CheckedResult {
    /// A failed call that no tool has answered; `text` is the reason for the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self::conforming(CallResult::error(text))
    }

    pub(crate) fn conforming(result: CallResult) -> Self {
        Self { result, complaint: None, blames_arguments: false }
    }

    fn replaced(result: CallResult, complaint: String) -> Self {
        Self { result, complaint: Some(complaint), blames_arguments: false }
    }

    /// The problem of the result that this error replaces.
    #[must_use]
    pub fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref()
    }

    /// Notes that the arguments caused the error. For prompts and resources that is a different
    /// error.
    #[must_use]
    pub fn blaming_arguments(self, blames_arguments: bool) -> Self {
        Self { blames_arguments, ..self }
    }

    /// True if the arguments caused the error.
    pub(crate) fn blames_arguments(&self) -> bool {
        self.blames_arguments
    }

    /// The result.
    #[must_use]
    pub fn into_result(self) -> CallResult {
        self.result
    }
}

impl Deref for CheckedResult {
    type Target = CallResult;

    fn deref(&self) -> &CallResult {
        &self.result
    }
}
