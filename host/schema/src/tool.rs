//! The schemas of tools: of a tool's arguments, and of its structured result.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{DefinitionProblem, Schema, SchemaBounds};

/// The fields of a definition, as its problems name them.
const INPUT: &str = "inputSchema";
const OUTPUT: &str = "outputSchema";

/// Memory in bytes that the compiled schemas of one component may take, roughly. A thousand tools
/// of twenty subschemas each take half of it.
const SCHEMAS_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Problems of a component after which further tools are skipped: they most likely repeat the same
/// mistake.
const PROBLEMS_MAX: usize = 20;

/// The schemas of one tool, compiled.
#[derive(Debug)]
pub struct Schemas {
    input: Schema,
    output: Option<Schema>,
}

impl Schemas {
    /// Compiles both. The output schema gets the memory that the input schema leaves.
    ///
    /// # Errors
    /// Every problem found, up to a bound.
    pub fn compile(
        input: &Value,
        output: Option<&Value>,
        bounds: &SchemaBounds,
    ) -> Result<Self, Vec<DefinitionProblem>> {
        let mut problems = Vec::new();
        problems.extend(not_of_objects(input));
        let input = compile(INPUT, input, bounds, &mut problems);
        let memory_bytes_max = bounds.memory_bytes_max.saturating_sub(input.as_ref().map_or(0, Schema::bytes));
        let bounds = SchemaBounds { memory_bytes_max, ..*bounds };
        let output = output.and_then(|output| compile(OUTPUT, output, &bounds, &mut problems));
        match input {
            Some(input) if problems.is_empty() => Ok(Self { input, output }),
            _ => Err(problems),
        }
    }

    /// The problems that can be found without compiling: a schema that is not an object, or too
    /// large. For schemas that are compiled elsewhere.
    #[must_use]
    pub fn check(input: &Value, output: Option<&Value>) -> Vec<DefinitionProblem> {
        let mut problems: Vec<_> = not_of_objects(input).into_iter().collect();
        for (field, schema) in [(INPUT, Some(input)), (OUTPUT, output)] {
            let Some(schema) = schema else { continue };
            problems.extend(not_an_object(field, schema).or_else(|| Schema::too_large(field, schema)));
        }
        problems
    }

    /// The schema of the arguments.
    #[must_use]
    pub fn input(&self) -> &Schema {
        &self.input
    }

    /// The schema of the structured result, if there is one.
    #[must_use]
    pub fn output(&self) -> Option<&Schema> {
        self.output.as_ref()
    }

    /// The places of their patterns that are [not applied](Schema::unapplied).
    pub fn unapplied(&self) -> impl Iterator<Item = &String> {
        self.input.unapplied().iter().chain(self.output.iter().flat_map(Schema::unapplied))
    }

    /// Their memory, in bytes, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.input.bytes() + self.output.as_ref().map_or(0, Schema::bytes)
    }
}

fn not_of_objects(input: &Value) -> Option<DefinitionProblem> {
    if input.get("type").and_then(Value::as_str) == Some("object") {
        return None;
    }
    let problem = DefinitionProblem::new(format!("{INPUT}/type"), "must be \"object\"");
    Some(problem.hint("for a tool without arguments: {\"type\":\"object\",\"additionalProperties\":false}"))
}

fn not_an_object(field: &str, schema: &Value) -> Option<DefinitionProblem> {
    (!schema.is_object()).then(|| DefinitionProblem::new(field, "must be a JSON object"))
}

fn compile(
    field: &str,
    schema: &Value,
    bounds: &SchemaBounds,
    problems: &mut Vec<DefinitionProblem>,
) -> Option<Schema> {
    if let Some(problem) = not_an_object(field, schema) {
        problems.push(problem);
        return None;
    }
    Schema::compile(field, schema, bounds).map_err(|found| problems.extend(found)).ok()
}

/// Time and memory that are left for the schemas of one component.
#[derive(Clone, Copy, Debug)]
pub struct SchemaBudget {
    /// Memory, in bytes.
    memory_bytes: usize,
    until: Option<Instant>,
}

impl SchemaBudget {
    /// The budget of a component with this much time.
    #[must_use]
    pub fn within(time: Duration) -> Self {
        Self { memory_bytes: SCHEMAS_BYTES_MAX, until: Instant::now().checked_add(time) }
    }

    /// The same memory, with this much time from now on.
    #[must_use]
    pub fn again_within(self, time: Duration) -> Self {
        Self { until: Instant::now().checked_add(time), ..self }
    }

    /// True if nothing more may be compiled.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// The bounds of the next tool.
    #[must_use]
    pub fn bounds(&self) -> SchemaBounds {
        let memory_bytes_max = SchemaBounds::default().memory_bytes_max.min(self.memory_bytes);
        SchemaBounds { memory_bytes_max, until: self.until }
    }

    /// Uses this much memory, in bytes.
    pub fn take(&mut self, bytes: usize) {
        self.memory_bytes = self.memory_bytes.saturating_sub(bytes);
    }
}

/// The schemas of one tool, as texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaTexts {
    /// The schema of its arguments.
    pub input: String,
    /// The schema of its structured result.
    pub output: Option<String>,
}

/// Largest schemas of a tool that compile within a millisecond, in bytes, if they are simple.
const SIMPLE_BYTES_MAX: usize = 4 * 1024;

/// Parts of keywords that take longer to compile: patterns, references, and unevaluated members. A
/// backslash may hide one.
const NOT_SIMPLE: [&str; 5] = ["attern", "Ref\"", "$ref", "nevaluated", "\\"];

impl SchemaTexts {
    /// True if compiling them takes a millisecond at most.
    #[must_use]
    pub fn are_simple(&self) -> bool {
        let texts = [Some(&self.input), self.output.as_ref()];
        let bytes: usize = texts.iter().flatten().map(|text| text.len()).sum();
        let is_simple = |text: &&String| NOT_SIMPLE.iter().all(|part| !text.contains(part));
        bytes <= SIMPLE_BYTES_MAX && texts.iter().flatten().all(is_simple)
    }

    /// Compiles them within the budget.
    ///
    /// # Errors
    /// Every problem found, up to a bound. A text that is not JSON stands for a schema that accepts
    /// anything; whoever parses the definition reports it.
    pub fn compile(&self, budget: &mut SchemaBudget) -> Result<Schemas, Vec<DefinitionProblem>> {
        compile_texts(&self.input, self.output.as_deref(), budget)
    }
}

fn compile_texts(
    input: &str,
    output: Option<&str>,
    budget: &mut SchemaBudget,
) -> Result<Schemas, Vec<DefinitionProblem>> {
    let parsed = |text: &str| {
        let mut schema: Value = serde_json::from_str(text).ok()?;
        Schema::clean(&mut schema);
        Some(schema)
    };
    let input = parsed(input).unwrap_or_else(|| json!({"type": "object"}));
    let output = output.and_then(parsed);
    let schemas = Schemas::compile(&input, output.as_ref(), &budget.bounds())?;
    budget.take(schemas.bytes());
    Ok(schemas)
}

/// Findings about the schemas of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFindings {
    /// Why the tool cannot be served.
    pub problems: Vec<DefinitionProblem>,
    /// The places of patterns that are [not applied](Schema::unapplied), if it has no problems.
    pub unapplied: Vec<String>,
}

/// Findings about the schemas of a component's tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaFindings {
    /// Those of each tool, in the order of the tools. If there are fewer than tools, the last tools
    /// were skipped.
    pub tools: Vec<ToolFindings>,
    /// True if there was no time for them.
    pub too_late: bool,
}

impl SchemaFindings {
    /// Compiles the schemas of all tools, each given by its input and output schema, and keeps only
    /// what was found. A tool without schemas is skipped.
    pub fn of<'t>(
        tools: impl IntoIterator<Item = Option<(&'t str, Option<&'t str>)>>,
        mut budget: SchemaBudget,
    ) -> Self {
        let mut found = Self::default();
        let mut problems = 0;
        for texts in tools {
            if problems >= PROBLEMS_MAX {
                break;
            }
            if budget.is_used_up() {
                found.too_late = true;
                break;
            }
            let of_tool = match texts.map(|(input, output)| compile_texts(input, output, &mut budget)) {
                None => ToolFindings::default(),
                Some(Ok(schemas)) => {
                    ToolFindings { unapplied: schemas.unapplied().cloned().collect(), ..ToolFindings::default() }
                }
                Some(Err(problems)) => ToolFindings { problems, ..ToolFindings::default() },
            };
            problems += of_tool.problems.len();
            found.tools.push(of_tool);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    fn findings(tools: &[(&str, Option<&str>)], time: Duration) -> SchemaFindings {
        SchemaFindings::of(tools.iter().copied().map(Some), SchemaBudget::within(time))
    }

    #[test]
    fn each_tool_s_problems_are_found_in_its_place_and_a_component_s_in_all_are_few() {
        let good = (r#"{"type":"object"}"#, Some(r#"{"type":"string"}"#));
        let text = "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"http://x\"}}}";
        let time = Duration::from_secs(600);
        let found = findings(&[good, (text, None), ("[]", Some("7")), ("not JSON", None), good], time);
        let said: Vec<Vec<String>> =
            found.tools.iter().map(|tool| tool.problems.iter().map(ToString::to_string).collect()).collect();
        assert!(said[0].is_empty() && said[3].is_empty() && said[4].is_empty(), "{said:?}");
        assert!(said[1][0].starts_with("inputSchema/properties/a/$ref: \"http://x\" leaves the schema"), "{said:?}");
        let none = "inputSchema/type: must be \"object\"";
        assert!(said[2][0].starts_with(none), "{said:?}");
        assert_eq!(said[2][1..], ["inputSchema: must be a JSON object", "outputSchema: must be a JSON object"]);
        let many: Vec<_> = (0..100).map(|_| ("[]", None)).collect();
        let cut = findings(&many, time);
        assert!(!cut.too_late && cut.tools.len() == 10, "{}", cut.tools.len());
        let skipped = SchemaFindings::of([None, Some(("[]", None))], SchemaBudget::within(time));
        assert_eq!(skipped.tools.iter().map(|tool| tool.problems.len()).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(findings(&many, Duration::ZERO), SchemaFindings { tools: Vec::new(), too_late: true });
    }

    #[test]
    fn the_memory_of_a_component_s_schemas_is_shared_by_its_tools() {
        let mut budget = SchemaBudget::within(Duration::from_secs(600));
        let texts = SchemaTexts {
            input: r#"{"type":"object","properties":{"a":{"pattern":"^[a-z]+$"}}}"#.to_owned(),
            output: Some(r#"{"pattern":"^[0-9]+$"}"#.to_owned()),
        };
        let schemas = texts.compile(&mut budget).unwrap();
        assert_eq!(budget.memory_bytes, SCHEMAS_BYTES_MAX - schemas.bytes());
        budget.take(SCHEMAS_BYTES_MAX - 2 * schemas.bytes() + 1);
        let problems = texts.compile(&mut budget).unwrap_err();
        let text = problems[0].to_string();
        assert!(text.contains("compiling it takes more memory than the"), "{text}");
        let checked = Schemas::check(&json!({"type": "object"}), None);
        assert_eq!(checked, []);
        let large = json!({"type": "object", "description": "x".repeat(70_000)});
        let found = Schemas::check(&large, Some(&json!([])));
        let said: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(said, ["inputSchema: 70034 bytes, more than 65536", "outputSchema: must be a JSON object"]);
    }
}
