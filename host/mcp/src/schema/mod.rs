//! JSON Schemas of tools: bounded and compiled when a definition is loaded, applied at every call.
//! Nothing is ever fetched; patterns run in linear time; what validation may cost is bounded.

mod cost;
mod graph;
mod keywords;
mod problems;

use std::fmt;

use serde_json::Value;

use crate::frame::scan;
use crate::sanitize;
use crate::tool::{DefinitionBounds, DefinitionProblem};

use cost::Guard;
use graph::Graph;
pub use problems::{ArgumentProblem, ArgumentProblems};

/// Compiled size of one pattern, in bytes. What `regex` itself would allow is ten times that.
const PATTERN_COMPILED_BYTES_MAX: usize = 1024 * 1024;

/// How much memory finding *every* failing place may take, in bytes, roughly. Past it only the verdict is given.
const DETAIL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What one failing place takes in the validator, in bytes, roughly.
const DETAIL_ERROR_BYTES: usize = 256;

/// One compiled schema.
pub(crate) struct Schema {
    validator: jsonschema::Validator,
    subschemas: usize,
    /// Present where one value may be looked at more often than the schema is long.
    guard: Option<Guard>,
}

impl Schema {
    /// Takes terminal escapes and characters that mislead out of the titles and descriptions in a schema.
    pub(crate) fn clean(schema: &mut Value) {
        keywords::annotations_mut(schema, &mut |text| {
            if let std::borrow::Cow::Owned(cleaned) = sanitize::text(text) {
                *text = cleaned;
            }
        });
    }

    /// Checks a schema against the bounds and compiles it. `field` names it in problems.
    pub(crate) fn compile(
        field: &str,
        schema: &Value,
        bounds: &DefinitionBounds,
    ) -> Result<Self, Vec<DefinitionProblem>> {
        let bytes = serde_json::to_string(schema).map_or(usize::MAX, |text| text.len());
        if bytes > bounds.schema_bytes_max {
            let message = format!("{bytes} bytes, more than {}", bounds.schema_bytes_max);
            return Err(vec![DefinitionProblem::new(field, message)]);
        }
        let draft = dialect(field, schema).map_err(|problem| vec![problem])?;
        let graph = Graph::build(field, schema, bounds)?;
        let guard = Guard::new(field, &graph).map_err(|problem| vec![problem])?;
        let validator = jsonschema::options()
            .with_draft(draft)
            .offline()
            .with_pattern_options(jsonschema::PatternOptions::regex().size_limit(PATTERN_COMPILED_BYTES_MAX))
            .build(schema)
            .map_err(|error| vec![problems::of_schema(field, &error)])?;
        Ok(Self { validator, subschemas: graph.len(), guard })
    }

    /// Checks one JSON text.
    pub(crate) fn check(&self, text: &str) -> Result<(), ArgumentProblems> {
        let value: Value = serde_json::from_str(text).map_err(|_| ArgumentProblems::verdict("it is not valid JSON"))?;
        if self.guard.as_ref().is_some_and(|guard| !guard.allows(&value)) {
            return Err(ArgumentProblems::verdict("it is nested in a way that would take too long to check"));
        }
        if self.validator.is_valid(&value) {
            return Ok(());
        }
        let values = scan::check_value(text, scan::DEPTH_MAX).map_or(usize::MAX, |found| found.values);
        let weight = values.saturating_mul(DETAIL_ERROR_BYTES).saturating_add(text.len());
        if weight.saturating_mul(self.subschemas) > DETAIL_BYTES_MAX {
            return Err(ArgumentProblems::verdict("it does not conform, and is too large to say where"));
        }
        Err(ArgumentProblems::of(self.validator.iter_errors(&value)))
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("subschemas", &self.subschemas).finish_non_exhaustive()
    }
}

/// The dialect that `$schema` names, 2020-12 where it names none (2026-07-28, "Schema Dialect").
fn dialect(field: &str, schema: &Value) -> Result<jsonschema::Draft, DefinitionProblem> {
    let Some(named) = schema.get("$schema") else { return Ok(jsonschema::Draft::Draft202012) };
    let place = format!("{field}/$schema");
    let Some(uri) = named.as_str() else { return Err(DefinitionProblem::new(place, "must be a string")) };
    match jsonschema::Draft::from_schema_uri(uri) {
        draft @ (jsonschema::Draft::Draft4
        | jsonschema::Draft::Draft6
        | jsonschema::Draft::Draft7
        | jsonschema::Draft::Draft201909
        | jsonschema::Draft::Draft202012) => Ok(draft),
        _ => {
            let shown: String = sanitize::line(uri).chars().take(128).collect();
            let problem = DefinitionProblem::new(place, format!("{shown:?} is no dialect this host knows"));
            Err(problem.hint("draft-04, draft-06, draft-07, 2019-09 or 2020-12; leave $schema out for 2020-12"))
        }
    }
}
