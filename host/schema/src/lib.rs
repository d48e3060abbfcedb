//! JSON Schemas of tools and forms: bounded and compiled at load, applied at every call. Nothing is
//! ever fetched, and patterns run in linear time. The cost of a check is bounded for every schema
//! and value.
//!
//! Deliberately absent: protocols, components, and where a schema comes from. So a host and its
//! sandbox processes compile and apply the very same way.
#![forbid(unsafe_code)]

mod apis;
mod bounds;
mod compile;
mod conform;
mod cost;
mod equal;
mod graph;
mod keywords;
mod loosen;
mod meter;
mod narrow;
mod pattern;
mod portable;
mod problems;
pub mod sanitize;
mod tool;
mod typescript;
mod values;
mod view;

#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;

pub use apis::{
    ApiRule, ApiWarning, ApiWarnings, ListedDefinition, SchemaForms, ShownParts, TOOL_WARNINGS_MAX, api_warnings,
};
pub use bounds::{DefinitionProblem, SchemaBounds};
use cost::Guard;
use meter::{DETAIL_STEPS_MAX, Meter, Rates, STEPS_MAX, Stop};
pub use meter::{GivenUp, Patience};
pub use narrow::{NarrowedArgument, narrowed};
pub use portable::{PORTABLE_INTEGER_MAX, SchemaUse, portable};
pub use problems::{ArgumentProblem, ArgumentProblems, PROBLEMS_BYTES_MAX};
pub use tool::{SchemaBudget, SchemaFindings, SchemaTexts, Schemas, ToolFindings};
pub use typescript::{typescript, typescript_comment, typescript_key};
use view::{Metered, MeteredValue};

/// Most values in one JSON text to check: each takes some 80 bytes meanwhile. 1 MiB of text holds
/// half as many.
const VALUES_MAX: usize = 1_000_000;

/// Bytes that a failing place takes in the validator, and each subschema on the way to it, roughly.
const DETAIL_ERROR_BYTES: u64 = 400;
const DETAIL_LEVEL_BYTES: u64 = 16;

/// Steps that a thread with other duties may take: it must be free again within 100 µs.
const SHORT_STEPS: u64 = 50_000;

/// Steps of parsing one value.
const PARSE_STEPS: u64 = 60;

/// One compiled schema.
pub struct Schema {
    validator: jsonschema::Validator<Metered>,
    /// As written, without the patterns that are not applied.
    written: Value,
    /// The places of those patterns.
    unapplied: Vec<String>,
    subschemas: usize,
    /// Set if a check may visit one value more often than the schema is long.
    guard: Option<Guard>,
    rates: Rates,
    /// Steps of the most expensive byte of a text.
    byte_steps: u64,
    /// Most subschemas that apply to one value.
    applied: usize,
    /// Its memory, in bytes, roughly.
    bytes: usize,
}

impl Schema {
    /// Removes terminal escapes and misleading characters from the titles and descriptions in a
    /// schema.
    pub fn clean(schema: &mut Value) {
        keywords::annotations_mut(schema, &mut |text| {
            if let std::borrow::Cow::Owned(cleaned) = sanitize::text(text) {
                *text = cleaned;
            }
        });
    }

    /// Its memory, in bytes, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The places of its patterns that are not applied, such as
    /// `inputSchema/properties/mail/pattern`: those with look-around or back-references, and those
    /// that are too large.
    #[must_use]
    pub fn unapplied(&self) -> &[String] {
        &self.unapplied
    }

    /// True if checking this text may take longer than a thread with other duties can spare.
    #[must_use]
    pub fn is_long(&self, text: &str) -> bool {
        let bytes = text.len() as u64;
        let each = bytes.saturating_mul(1 + self.byte_steps.max(self.rates.name_byte).max(self.rates.text_byte));
        if each > SHORT_STEPS {
            return true;
        }
        let marks = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count() as u64 + 1;
        each.saturating_add(marks.saturating_mul(PARSE_STEPS + 4 * self.rates.value)) > SHORT_STEPS
    }

    /// Arguments normalised by the schema: without optional members that are `null` where that is
    /// not allowed, and with integers written as such. `None` if nothing changes.
    #[must_use]
    pub fn rewritten(&self, text: &str) -> Option<String> {
        conformed(&self.written, text)
    }

    /// Checks one JSON text.
    ///
    /// # Errors
    /// Each failing place with the rule that it breaks, up to a bound; or that the check took too
    /// long.
    pub fn check(&self, text: &str, patience: &Patience) -> Result<(), ArgumentProblems> {
        if holds_too_many(text) {
            return Err(ArgumentProblems::verdict("it holds too many values to be checked"));
        }
        let value: Value = serde_json::from_str(text).map_err(|_| ArgumentProblems::verdict("it is not valid JSON"))?;
        self.check_value(&value, patience)
    }

    /// Checks one value.
    ///
    /// # Errors
    /// As those of [`check`](Self::check).
    pub fn check_value(&self, value: &Value, patience: &Patience) -> Result<(), ArgumentProblems> {
        self.check_within(value, &mut CheckSteps::default(), patience)
    }

    /// Checks one value with the steps that earlier checks have left.
    ///
    /// # Errors
    /// As those of [`check`](Self::check).
    pub fn check_within(
        &self,
        value: &Value,
        steps: &mut CheckSteps,
        patience: &Patience,
    ) -> Result<(), ArgumentProblems> {
        let mut meter = Meter { steps: steps.0, rates: self.rates, patience };
        let verdict = self.verdict(value, &mut meter);
        steps.0 = meter.steps;
        match verdict? {
            true => Ok(()),
            false => Err(self.problems(value, patience)),
        }
    }

    /// True if a value conforms.
    fn verdict(&self, value: &Value, meter: &mut Meter<'_>) -> Result<bool, ArgumentProblems> {
        if let Some(guard) = &self.guard {
            match meter.run(|| guard.allows(value)) {
                Ok(true) => {}
                Ok(false) => {
                    return Err(ArgumentProblems::verdict("it is nested in a way that would take too long to check"));
                }
                Err(stop) => return Err(unfinished(stop)),
            }
        }
        meter.run(|| self.validator.is_valid(MeteredValue(value))).map_err(unfinished)
    }

    /// All problems of a value that can be found with the remaining steps.
    fn problems(&self, value: &Value, patience: &Patience) -> ArgumentProblems {
        let longest = LongestPath::within(value);
        let level = DETAIL_LEVEL_BYTES.saturating_mul(self.applied as u64).saturating_mul(longest.depth);
        let problem = self.rates.problem.saturating_add(longest.bytes).saturating_add(level);
        let rates = Rates { problem, ..self.rates };
        let mut meter = Meter { steps: DETAIL_STEPS_MAX, rates, patience };
        let told = meter.run(|| ArgumentProblems::of(self.validator.iter_errors(MeteredValue(value))));
        told.unwrap_or_else(|_| ArgumentProblems::verdict("it does not conform, and is too large to say where"))
    }
}

/// The steps that several checks of one call share: as many as one check has.
#[derive(Debug)]
pub struct CheckSteps(u64);

impl Default for CheckSteps {
    fn default() -> Self {
        Self(STEPS_MAX)
    }
}

/// Arguments normalised by a schema as it is written, as by [`Schema::rewritten`].
#[must_use]
pub fn conformed(schema: &Value, text: &str) -> Option<String> {
    if holds_too_many(text) { None } else { conform::rewritten(schema, text) }
}

/// True if a text holds more values than are checked.
fn holds_too_many(text: &str) -> bool {
    // Two bytes of text make one value at most.
    text.len() / 2 >= VALUES_MAX && values::in_text(text) > VALUES_MAX
}

fn unfinished(stop: Stop) -> ArgumentProblems {
    match stop {
        Stop::Spent => {
            ArgumentProblems::verdict("checking it would take too long: it is too large for what its schema asks of it")
        }
        Stop::GivenUp => ArgumentProblems::no_time(),
    }
}

/// The longest path to a value within another.
#[derive(Clone, Copy, Default)]
struct LongestPath {
    /// The length of its JSON Pointer.
    bytes: u64,
    depth: u64,
}

impl LongestPath {
    fn within(value: &Value) -> Self {
        // Characters that a pointer escapes take two bytes.
        let step = |bytes: usize, value| {
            let Self { bytes: below, depth } = Self::within(value);
            Self { bytes: below + 2 * bytes as u64 + 1, depth: depth + 1 }
        };
        let longest =
            |one: Self, other: Self| Self { bytes: one.bytes.max(other.bytes), depth: one.depth.max(other.depth) };
        match value {
            Value::Object(members) => {
                members.iter().map(|(name, value)| step(name.len(), value)).fold(Self::default(), longest)
            }
            Value::Array(elements) => elements.iter().map(|value| step(8, value)).fold(Self::default(), longest),
            _ => Self::default(),
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("subschemas", &self.subschemas).finish_non_exhaustive()
    }
}
