//! Compiles a schema into a validator, after counting its memory.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use jsonschema::ValidationOptions;
use serde_json::Value;

use super::cost::{Guard, count};
use super::graph::{self, Graph, Traits};
use super::meter::Rates;
use super::pattern::{
    CACHE_BYTES, COMPILED_BYTES_MAX, NOT_RUN, NOT_RUN_HINT, Pattern, PatternRefusal, WALKS_MAX, keyword,
};
use super::view::Metered;
use super::{DETAIL_ERROR_BYTES, Schema, problems};
use crate::bounds::{BYTES_MAX, DefinitionProblem, LARGE_PATTERNS_MAX, SchemaBounds};
use crate::{loosen, sanitize};

/// Memory of one JSON value of a schema, in bytes: in the listing, in the validator, and in the
/// copy for rewriting arguments.
const VALUE_BYTES: usize = 520;

/// Memory of one subschema besides its values, in bytes.
const SUBSCHEMA_BYTES: usize = 1_200;

/// Steps per byte of a text that is checked for a format or encoding, or parsed.
const FORMAT_BYTE_STEPS: u64 = 30;
const PARSED_BYTE_STEPS: u64 = 80;

/// Steps of a division, whatever the number of digits.
const DIVIDED_STEPS: u64 = 1_000;

/// How to correct patterns that are too large.
const LARGE_HINT: &str = "bound the length with minLength and maxLength, in place of a counted repetition";

/// Steps of applying a subschema to a value, besides its keywords.
const APPLIED_STEPS: u64 = 4;

/// Steps of a value, besides its subschemas.
const VALUE_STEPS: u64 = 10;

impl Schema {
    /// Checks a schema against the bounds and compiles it. `field` names it in problems.
    ///
    /// # Errors
    /// Every problem found, up to a bound.
    pub fn compile(field: &str, schema: &Value, bounds: &SchemaBounds) -> Result<Self, Vec<DefinitionProblem>> {
        if let Some(problem) = Self::too_large(field, schema) {
            return Err(vec![problem]);
        }
        let draft = dialect(field, schema).map_err(|problem| vec![problem])?;
        let mut graph = Graph::build(field, schema)?;
        let mut memory = DefinitionMemory { field, bounds, bytes: 0 };
        memory
            .take("", count(schema) * VALUE_BYTES + graph.len() * SUBSCHEMA_BYTES + 2 * graph.places_bytes)
            .map_err(|problem| vec![problem])?;
        let patterns = Patterns::compile(&graph, &mut memory).map_err(|problem| vec![problem])?;
        let loosened = (!patterns.left_out.is_empty()).then(|| loosen::loosened(schema, &patterns.left_out));
        let schema = loosened.as_ref().unwrap_or(schema);
        if loosened.is_some() {
            graph = Graph::build(field, schema)?;
        }
        let (guard, counts) = Guard::new(field, &graph).map_err(|problem| vec![problem])?;
        memory.take("", counts.kept_bytes).map_err(|problem| vec![problem])?;
        let options = jsonschema::options_for::<Metered>().with_draft(draft);
        let built = build(options, patterns.by_text, schema);
        let validator = built.map_err(|error| vec![problems::of_schema(field, &error)])?;
        let rates = Rates { name_byte: patterns.name_byte, ..rates(graph.traits, counts.applied) };
        let subschemas = graph.len();
        let bytes = memory.bytes;
        let byte_steps = patterns.byte;
        let applied = counts.applied;
        let written = schema.clone();
        let unapplied = patterns.unapplied;
        Ok(Self { validator, written, unapplied, subschemas, guard, rates, byte_steps, applied, bytes })
    }

    /// The problem of a schema that is too long.
    pub(crate) fn too_large(field: &str, schema: &Value) -> Option<DefinitionProblem> {
        let bytes = serde_json::to_string(schema).map_or(usize::MAX, |text| text.len());
        let message = format!("{bytes} bytes, more than {BYTES_MAX}");
        (bytes > BYTES_MAX).then(|| DefinitionProblem::new(field, message))
    }

    /// Compiles the schema of a form. The form's parser has bounded it, and it has no patterns or
    /// references. At most `applied` of its subschemas apply to one value.
    ///
    /// # Errors
    /// The problem, as a sentence about the schema.
    pub fn of_form(schema: &Value, applied: usize) -> Result<Self, String> {
        let options = jsonschema::options_for::<Metered>().with_draft(jsonschema::Draft::Draft202012);
        let built = build(options.should_validate_formats(true), HashMap::new(), schema);
        let validator = built.map_err(|error| format!("is wrong at {}: {error}", error.instance_path()))?;
        let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let reads_texts = fields.into_iter().any(|(_, field)| field.get("format").is_some());
        let rates = rates(Traits { reads_texts, ..Traits::default() }, applied);
        Ok(Self {
            validator,
            written: schema.clone(),
            unapplied: Vec::new(),
            subschemas: applied,
            guard: None,
            rates,
            byte_steps: 0,
            applied,
            bytes: 0,
        })
    }
}

fn build<'s>(
    options: ValidationOptions<'s, Arc<dyn jsonschema::Retrieve>, Metered>,
    patterns: HashMap<String, Arc<Pattern>>,
    schema: &Value,
) -> Result<jsonschema::Validator<Metered>, jsonschema::ValidationError<'static>> {
    let engine = jsonschema::PatternOptions::regex().size_limit(COMPILED_BYTES_MAX).dfa_size_limit(CACHE_BYTES);
    options.offline().with_pattern_options(engine).with_keyword("pattern", keyword(patterns)).build(schema)
}

fn rates(traits: Traits, applied: usize) -> Rates {
    let text_byte = match traits {
        Traits { parses_texts: true, .. } => PARSED_BYTE_STEPS,
        Traits { reads_texts: true, .. } => FORMAT_BYTE_STEPS,
        _ => 0,
    };
    Rates {
        value: VALUE_STEPS + APPLIED_STEPS.saturating_mul(applied as u64),
        name_byte: 0,
        text_byte,
        text_squared: traits.reads_patterns,
        problem: DETAIL_ERROR_BYTES + traits.quoted_bytes as u64,
        divided: traits.divided.map(|digits| digits + DIVIDED_STEPS),
        problems_copy: traits.copies_items,
    }
}

/// The memory of a definition, counted up to its bound.
struct DefinitionMemory<'b> {
    field: &'b str,
    bounds: &'b SchemaBounds,
    bytes: usize,
}

impl DefinitionMemory<'_> {
    /// Counts memory for the part at this place.
    fn take(&mut self, pointer: &str, bytes: usize) -> Result<(), DefinitionProblem> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= self.bounds.memory_bytes_max {
            return Ok(());
        }
        let field = graph::place(self.field, pointer);
        let most = self.bounds.memory_bytes_max / 1024;
        let problem =
            DefinitionProblem::new(field, format!("compiling it takes more memory than the {most} KiB left for it"));
        Err(problem.hint("use fewer and simpler patterns, and fewer subschemas"))
    }
}

/// The patterns of one schema.
#[derive(Default)]
struct Patterns {
    by_text: HashMap<String, Arc<Pattern>>,
    /// Those that are not applied.
    left_out: HashSet<String>,
    /// The places of those.
    unapplied: Vec<String>,
    /// Steps per byte of a text, for the most expensive pattern.
    byte: u64,
    /// Steps per byte of a member's name, for all patterns for names.
    name_byte: u64,
}

impl Patterns {
    fn compile(graph: &Graph, memory: &mut DefinitionMemory<'_>) -> Result<Self, DefinitionProblem> {
        let mut walks = WALKS_MAX;
        let mut large = 0;
        let mut found = Self::default();
        for written in &graph.patterns {
            let place = graph::place(memory.field, &written.place);
            if memory.bounds.until.is_some_and(|until| Instant::now() >= until) {
                return Err(DefinitionProblem::new(place, "there was no time left to compile it"));
            }
            if found.left_out.contains(&written.text) {
                found.unapplied.push(place);
                continue;
            }
            let known = found.by_text.get(&written.text).cloned();
            let is_new = known.is_none();
            let pattern = match known.map_or_else(|| Pattern::compile(&written.text, &mut walks).map(Arc::new), Ok) {
                Ok(pattern) => pattern,
                Err(PatternRefusal::NotRun) => {
                    return Err(DefinitionProblem::new(place, NOT_RUN).hint(NOT_RUN_HINT));
                }
                Err(refusal) => {
                    large += usize::from(refusal == PatternRefusal::Large);
                    if large > LARGE_PATTERNS_MAX {
                        let message = format!("one of more than {LARGE_PATTERNS_MAX} patterns that are too large");
                        return Err(DefinitionProblem::new(place, message).hint(LARGE_HINT));
                    }
                    found.left_out.insert(written.text.clone());
                    found.unapplied.push(place);
                    continue;
                }
            };
            if written.of_names {
                found.name_byte = found.name_byte.saturating_add(pattern.byte_steps);
                // The validator compiles these a second time.
                memory.take(&written.place, pattern.bytes)?;
            } else {
                found.byte = found.byte.max(pattern.byte_steps);
            }
            if is_new {
                memory.take(&written.place, pattern.bytes + written.text.len())?;
                found.by_text.insert(written.text.clone(), pattern);
            }
        }
        Ok(found)
    }
}

/// The dialect that `$schema` names; 2020-12 if it names none (2026-07-28, "Schema Dialect").
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
            let problem = DefinitionProblem::new(place, format!("unknown dialect {shown:?}"));
            Err(problem.hint("draft-04, draft-06, draft-07, 2019-09 or 2020-12; leave $schema out for 2020-12"))
        }
    }
}
