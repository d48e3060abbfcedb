//! Tools that the host can serve. Documents and servers have patterns of other engines and names
//! that nobody sees: such a part is left open, and the tool stays.
use serde_json::Value;
use toolcell_bridge_lines::OutputForm;

use crate::definitions::{ToolCall, ToolDefinition};

/// The tool as the host takes it, with one sentence on each part that is left open. `check` says
/// why the host does not take a definition, as the end of a sentence.
///
/// # Errors
/// The host takes it in no form. The reason is the end of a sentence.
pub(crate) fn served(
    mut tool: ToolDefinition,
    check: &dyn Fn(&ToolDefinition) -> Result<(), String>,
) -> Result<(ToolDefinition, Vec<String>), String> {
    let Err(first) = check(&tool) else { return Ok((tool, Vec::new())) };
    let without_patterns = |reason: &str| format!("its patterns are left out, because as written it {reason}");
    let without_output = |reason: &str| format!("its answers have no schema, because as written it {reason}");
    let mut looser = tool.clone();
    let has_patterns = remove_patterns(&mut looser.input);
    let checked = if has_patterns { check(&looser) } else { Err(first.clone()) };
    let second = match checked {
        Ok(()) => return Ok((looser, vec![without_patterns(&first)])),
        Err(second) => second,
    };
    // Patterns stay where the fault is in the schema of answers alone.
    if remove_output(&mut tool) && check(&tool).is_ok() {
        return Ok((tool, vec![without_output(&first)]));
    }
    if !has_patterns || !remove_output(&mut looser) {
        return Err(second);
    }
    check(&looser).map(|()| (looser, vec![without_patterns(&first), without_output(&second)]))
}

/// Removes the schema of its answers. True if there was one.
fn remove_output(tool: &mut ToolDefinition) -> bool {
    if let ToolCall::Http(request) = &mut tool.call {
        request.output = OutputForm::Free;
    }
    tool.output.take().is_some()
}

/// Removes patterns where the schema accepts more without them. True if there was one.
fn remove_patterns(schema: &mut Value) -> bool {
    let Value::Object(members) = schema else { return false };
    let mut found = members.shift_remove("pattern").is_some();
    let mut parts: Vec<&mut Value> = Vec::new();
    for (keyword, value) in members.iter_mut() {
        match (keyword.as_str(), value) {
            ("items" | "additionalProperties", part) => parts.push(part),
            ("anyOf", Value::Array(variants)) => parts.extend(variants),
            ("properties", Value::Object(properties)) => parts.extend(properties.values_mut()),
            _ => {}
        }
    }
    // All of them: none may be skipped.
    for part in parts {
        found |= remove_patterns(part);
    }
    found
}
