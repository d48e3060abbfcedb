//! A tool's definition in the protocol's terms. Every field that is not JSON and every broken rule
//! of MCP is reported at once.
use std::time::{Duration, Instant};

use toolcell_mcp::{DefinitionBounds, DefinitionProblem, Map, Tool, ToolDefinition, ToolHints};
use toolcell_policy::{LoadLimit, LoadLimits, ToolPolicy};
use toolcell_sandbox::contract;

use super::content;

/// Memory in bytes that the compiled schemas of one component may take, roughly. A thousand tools
/// of twenty subschemas each take half of it.
const SCHEMAS_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Overrides the component's texts with the manifest's: the operator writes for its own clients.
pub fn overrule(tool: &mut contract::Tool, said: &ToolPolicy) {
    if let Some(title) = said.title() {
        tool.title = Some(title.to_owned());
    }
    if let Some(description) = said.description() {
        description.clone_into(&mut tool.description);
    }
    let said = said.hints();
    if !said.said().is_empty() {
        let own = tool.hints.unwrap_or(contract::Hints {
            read_only: None,
            destructive: None,
            idempotent: None,
            open_world: None,
        });
        tool.hints = Some(contract::Hints {
            read_only: said.read_only.or(own.read_only),
            destructive: said.destructive.or(own.destructive),
            idempotent: said.idempotent.or(own.idempotent),
            open_world: said.open_world.or(own.open_world),
        });
    }
}

/// Time and memory left for the definitions of one component.
#[derive(Clone, Copy, Debug)]
pub struct DefinitionBudget {
    /// Memory, in bytes.
    memory_bytes: usize,
    until: Option<Instant>,
}

impl DefinitionBudget {
    /// Budget of a component whose compilation has this much time left.
    pub fn within(time: Duration) -> Self {
        Self { memory_bytes: SCHEMAS_BYTES_MAX, until: Instant::now().checked_add(time) }
    }

    /// True if nothing more may be compiled.
    pub fn is_used_up(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    fn bounds(&self) -> DefinitionBounds {
        let bounds = DefinitionBounds::default();
        DefinitionBounds {
            memory_bytes_max: bounds.memory_bytes_max.min(self.memory_bytes),
            until: self.until,
            ..bounds
        }
    }
}

/// Compiles the definition under the name that clients see, and takes its cost from the budget. A
/// definition that is too large is not examined further.
pub fn compile(
    exposed_name: String,
    tool: contract::Tool,
    limits: &LoadLimits,
    budget: &mut DefinitionBudget,
) -> Result<Tool, Vec<DefinitionProblem>> {
    if weigh(&tool) > limits.definition_bytes() {
        return Err(vec![too_large(limits)]);
    }
    let mut problems = Vec::new();
    let input_schema = keep(&mut problems, schema("input-schema-json", &tool.input_schema_json));
    let output_schema = tool.output_schema_json.as_deref().map(|text| schema("output-schema-json", text)).transpose();
    let output_schema = keep(&mut problems, output_schema);
    let meta = keep(&mut problems, content::meta(tool.meta_json).map_err(|message| problem("meta-json", message)));
    let definition = ToolDefinition {
        name: exposed_name,
        title: tool.title,
        description: tool.description,
        // Stands in for a schema that is not JSON, so that the other fields are still checked.
        input_schema: input_schema.unwrap_or_else(|| serde_json::json!({"type": "object"})),
        output_schema: output_schema.flatten(),
        hints: tool.hints.map(hints).unwrap_or_default(),
        icons: content::icons(tool.icons),
        meta: meta.unwrap_or_else(Map::new),
    };
    match Tool::compile(definition, &budget.bounds()) {
        Ok(tool) if problems.is_empty() => {
            budget.memory_bytes = budget.memory_bytes.saturating_sub(tool.schemas_bytes());
            Ok(tool)
        }
        Ok(_) => Err(problems),
        Err(more) => {
            problems.extend(more);
            Err(problems)
        }
    }
}

/// Bytes of all texts of the tool.
fn weigh(tool: &contract::Tool) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let icon = |icon: &contract::Icon| {
        icon.src.len() + optional(&icon.mime_type) + icon.sizes.iter().map(String::len).sum::<usize>()
    };
    let given = [&tool.name, &tool.description, &tool.input_schema_json];
    given.iter().map(|text| text.len()).sum::<usize>()
        + optional(&tool.title)
        + optional(&tool.output_schema_json)
        + optional(&tool.meta_json)
        + tool.icons.iter().map(icon).sum::<usize>()
}

fn too_large(limits: &LoadLimits) -> DefinitionProblem {
    let limit = LoadLimit::Definition;
    let key = limit.spec().key;
    let message = format!("is larger than {} (limit \"{key}\")", limits.show(limit));
    let hint = Some(format!("say less in it, or raise {key} in the component's `load` table"));
    DefinitionProblem { hint, ..problem("definition", message) }
}

fn keep<T>(problems: &mut Vec<DefinitionProblem>, value: Result<T, DefinitionProblem>) -> Option<T> {
    value.map_err(|problem| problems.push(problem)).ok()
}

fn schema(field: &str, text: &str) -> Result<serde_json::Value, DefinitionProblem> {
    serde_json::from_str(text).map_err(|error| problem(field, format!("is not JSON: {error}")))
}

fn problem(field: &str, message: String) -> DefinitionProblem {
    DefinitionProblem { field: field.to_owned(), message, hint: None }
}

fn hints(hints: contract::Hints) -> ToolHints {
    ToolHints {
        title: None,
        read_only: hints.read_only,
        destructive: hints.destructive,
        idempotent: hints.idempotent,
        open_world: hints.open_world,
    }
}
