//! Tools: their definitions, and the checks at load and at every call.

mod checked;
mod definition;
mod list;
mod parameter;

use serde_json::value::RawValue;

use crate::content::{CallResult, Content, ContentKind};
use crate::frame::scan;
use crate::schema::{ArgumentProblems, Patience, Schema};

pub use checked::CheckedResult;
pub use definition::{DefinitionBounds, DefinitionProblem, ToolDefinition, ToolHints};
pub use list::{NameCollisions, ToolList};

/// Deepest nesting of a tool's structured result: a client's 128 without the frame around it.
const STRUCTURED_DEPTH_MAX: usize = 120;

/// Bytes of JSON that any reader takes about 50 µs for.
const LONG_BYTES: usize = 16 * 1024;

/// One tool with its schemas compiled.
#[derive(Debug)]
pub struct Tool {
    definition: ToolDefinition,
    input: Schema,
    output: Option<Schema>,
    checks_arguments: bool,
    /// The parameters that HTTP clients repeat in headers.
    parameters: Vec<parameter::Parameter>,
}

impl Tool {
    /// Checks a definition, cleans its texts (see [`crate::sanitize`]) and compiles its schemas.
    ///
    /// # Errors
    /// Every problem found, not only the first.
    pub fn compile(definition: ToolDefinition, bounds: &DefinitionBounds) -> Result<Self, Vec<DefinitionProblem>> {
        let (definition, mut problems) = definition::checked(definition, bounds);
        let input = definition::input_schema(&definition, bounds, &mut problems);
        let output = definition::output_schema(&definition, bounds, input.as_ref(), &mut problems);
        let parameters = parameter::parameters(&definition.input_schema, &mut problems);
        match input {
            Some(input) if problems.is_empty() => {
                Ok(Self { definition, input, output, checks_arguments: true, parameters })
            }
            _ => Err(problems),
        }
    }

    /// Leaves the check of arguments to the tool. It must refuse exactly what the input schema
    /// refuses, and explains it better.
    #[must_use]
    pub fn checking_its_own_arguments(self) -> Self {
        Self { checks_arguments: false, ..self }
    }

    /// The definition as clients see it.
    #[must_use]
    pub fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Memory of its schemas, in bytes, roughly.
    #[must_use]
    pub fn schemas_bytes(&self) -> usize {
        self.input.bytes() + self.output.as_ref().map_or(0, Schema::bytes)
    }

    /// Checks arguments against the input schema, unless the tool does that itself. A check takes
    /// 100,000,000 steps at most, about a tenth of a second. It is given up at the end of
    /// `patience`.
    ///
    /// # Errors
    /// Each failing place with the rule it breaks, up to a bound; or that the check would take
    /// longer.
    pub fn check_arguments(&self, arguments: &RawValue, patience: &Patience) -> Result<(), ArgumentProblems> {
        if self.checks_arguments { self.input.check(arguments.get(), patience) } else { Ok(()) }
    }

    /// True if checking these arguments may take longer than a thread with other duties can spare,
    /// a tenth of a millisecond.
    pub(crate) fn takes_long(&self, arguments: &RawValue) -> bool {
        let text = arguments.get();
        if self.checks_arguments { self.input.is_long(text) } else { text.len() > LONG_BYTES }
    }

    /// True if [`finish`](Self::finish) may take longer than a thread with other duties can spare.
    #[must_use]
    pub fn finishing_takes_long(&self, result: &CallResult) -> bool {
        let Some(value) = &result.structured else { return false };
        let schema = self.output.as_ref().filter(|_| !result.is_error);
        value.get().len() > LONG_BYTES || schema.is_some_and(|schema| schema.is_long(value.get()))
    }

    /// The result for arguments that did not pass [`check_arguments`](Self::check_arguments).
    #[must_use]
    pub fn refuse_arguments(&self, problems: &ArgumentProblems) -> CallResult {
        let name = &self.definition.name;
        CallResult::error(format!("The arguments do not fit the input schema of {name}:\n{problems}"))
    }

    /// Finishes the tool's result. Structured content is checked against the output schema, and
    /// mirrored in a text block if the tool wrote no text. A result that does not conform, or
    /// cannot be checked in the time of [`check_arguments`](Self::check_arguments), becomes an
    /// error result.
    #[must_use]
    pub fn finish(&self, mut result: CallResult, patience: &Patience) -> CheckedResult {
        if let Some(complaint) = self.complaint(&result, patience) {
            let meta = std::mem::take(&mut result.meta);
            let text = format!("The result of {} is unusable: {complaint}", self.definition.name);
            return CheckedResult::replaced(CallResult { meta, ..CallResult::error(text) }, complaint);
        }
        let has_text = result.content.iter().any(|content| matches!(content.kind, ContentKind::Text(_)));
        if let Some(value) = result.structured.as_ref().filter(|_| !has_text) {
            result.content.push(Content::text(value.get()));
        }
        CheckedResult::conforming(result)
    }

    /// The problem of the structured part of a result, if there is one.
    fn complaint(&self, result: &CallResult, patience: &Patience) -> Option<String> {
        let Some(value) = &result.structured else {
            let missing = self.output.is_some() && !result.is_error;
            return missing.then(|| "its output schema asks for structured content, and there is none".to_owned());
        };
        match scan::check_value(value.get(), STRUCTURED_DEPTH_MAX) {
            Err(fault) => return Some(format!("its structured content is {fault}")),
            Ok(scan::Value { duplicate: Some(key), .. }) => {
                return Some(format!("its structured content has the key {key:?} twice in one object"));
            }
            Ok(_) => {}
        }
        let schema = self.output.as_ref().filter(|_| !result.is_error)?;
        let problems = schema.check(value.get(), patience).err()?;
        Some(format!("its structured content does not fit its output schema:\n{problems}"))
    }
}
