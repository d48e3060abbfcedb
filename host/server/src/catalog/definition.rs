//! A tool's definition in the protocol's terms. Every field that is not JSON and every broken rule
//! of MCP is reported at once.
use toolcell_mcp::{DefinitionProblem, Map, McpTool, PromptArgument, TaskPlan, ToolDefinition, ToolHints};
use toolcell_policy::{LoadLimit, LoadLimits, TaskRule, ToolPolicy};
use toolcell_sandbox::contract;
use toolcell_schema::{SchemaFindings, ToolFindings};

use super::{apps, content};

/// Replaces the component's texts with the manifest's: the operator writes for its own clients.
pub fn overrule(tool: &mut contract::GuestTool, said: &ToolPolicy) {
    if let Some(title) = said.title() {
        tool.title = Some(title.to_owned());
    }
    if let Some(description) = said.description() {
        description.clone_into(&mut tool.description);
    }
    apps::link(tool, said.view());
    let said = said.hints();
    if !said.said().is_empty() {
        let own = tool.hints.unwrap_or(contract::GuestToolHints {
            read_only: None,
            destructive: None,
            idempotent: None,
            open_world: None,
        });
        tool.hints = Some(contract::GuestToolHints {
            read_only: said.read_only.or(own.read_only),
            destructive: said.destructive.or(own.destructive),
            idempotent: said.idempotent.or(own.idempotent),
            open_world: said.open_world.or(own.open_world),
        });
    }
}

/// The calls of a tool that become tasks, in the protocol's terms.
pub const fn task_plan(rule: TaskRule) -> TaskPlan {
    match rule {
        TaskRule::Never => TaskPlan::Never,
        TaskRule::After(time) => TaskPlan::After(time),
        TaskRule::Always => TaskPlan::Always,
    }
}

/// Why no further tool of a component is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListingStop {
    /// No time is left for the schemas.
    TooLate,
    /// The process that checked the schemas found enough problems.
    Problems,
}

/// Takes the findings about the schemas of tool number `place`.
///
/// # Errors
/// Neither this tool nor any after it can be checked.
pub fn found(schemas: &mut SchemaFindings, place: usize) -> Result<ToolFindings, ListingStop> {
    match schemas.tools.get_mut(place) {
        Some(findings) => Ok(std::mem::take(findings)),
        None if schemas.too_late => Err(ListingStop::TooLate),
        None => Err(ListingStop::Problems),
    }
}

/// Checks the definition under the name that clients see. One that is too large is not examined
/// further. Its schemas were compiled in another process, which found this.
pub fn compile(
    exposed_name: String,
    tool: contract::GuestTool,
    limits: &LoadLimits,
    found: ToolFindings,
) -> Result<McpTool, Vec<DefinitionProblem>> {
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
    match McpTool::checked_elsewhere(definition, found) {
        Ok(tool) if problems.is_empty() => Ok(tool),
        Ok(_) => Err(problems),
        Err(more) => {
            problems.extend(more);
            Err(problems)
        }
    }
}

/// Compiles the definition of a prompt under the name that clients see. Its arguments are checked
/// by the protocol.
pub fn prompt(
    exposed_name: String,
    prompt: contract::GuestPrompt,
    limits: &LoadLimits,
) -> Result<McpTool, Vec<DefinitionProblem>> {
    let contract::GuestPrompt { name, title, description, arguments, icons, meta_json } = prompt;
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let bytes = |argument: &contract::GuestPromptArgument| {
        let values: usize = argument.values.iter().map(String::len).sum();
        argument.name.len() + optional(&argument.title) + optional(&argument.description) + values
    };
    if arguments.iter().map(bytes).sum::<usize>() > limits.definition_bytes() {
        return Err(vec![too_large(limits)]);
    }
    let entry =
        contract::GuestTool { title, description: description.unwrap_or_default(), icons, meta_json, ..unlisted(name) };
    let arguments = arguments.into_iter().map(|argument| {
        let contract::GuestPromptArgument { name, title, description, required, values } = argument;
        PromptArgument { name, title, description, required, values }
    });
    compile(exposed_name, entry, limits, ToolFindings::default())?.into_prompt(arguments.collect())
}

/// The entry of a component's completions, which no client lists.
pub fn completion(component: &str, limits: &LoadLimits) -> Result<McpTool, Vec<DefinitionProblem>> {
    let name = "completion".to_owned();
    let entry = compile(name.clone(), unlisted(name), limits, ToolFindings::default())?;
    Ok(entry.into_unlisted(format!("completion/{component}")))
}

/// The entry that reads a component's resources, which no client lists.
pub fn reading(component: &str, limits: &LoadLimits) -> Result<McpTool, Vec<DefinitionProblem>> {
    let name = "resources".to_owned();
    let entry = compile(name.clone(), unlisted(name), limits, ToolFindings::default())?;
    Ok(entry.into_unlisted(format!("resources/{component}")))
}

/// A definition that takes any object.
fn unlisted(name: String) -> contract::GuestTool {
    contract::GuestTool {
        name,
        title: None,
        description: String::new(),
        input_schema_json: r#"{"type":"object"}"#.to_owned(),
        output_schema_json: None,
        hints: None,
        icons: Vec::new(),
        meta_json: None,
    }
}

/// Bytes of all texts of the tool.
fn weigh(tool: &contract::GuestTool) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let given = [&tool.name, &tool.description, &tool.input_schema_json];
    given.iter().map(|text| text.len()).sum::<usize>()
        + optional(&tool.title)
        + optional(&tool.output_schema_json)
        + optional(&tool.meta_json)
        + tool.icons.iter().map(icon_bytes).sum::<usize>()
}

/// Bytes of all texts of an icon.
pub fn icon_bytes(icon: &contract::GuestIcon) -> usize {
    let mime_type = icon.mime_type.as_ref().map_or(0, String::len);
    icon.src.len() + mime_type + icon.sizes.iter().map(String::len).sum::<usize>()
}

/// Problem: a definition is past the limit on its bytes.
pub fn too_large(limits: &LoadLimits) -> DefinitionProblem {
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

fn hints(hints: contract::GuestToolHints) -> ToolHints {
    ToolHints {
        title: None,
        read_only: hints.read_only,
        destructive: hints.destructive,
        idempotent: hints.idempotent,
        open_world: hints.open_world,
    }
}
