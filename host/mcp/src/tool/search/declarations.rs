//! Tools as TypeScript declares them, for models that write scripts: the tool `describe_tools`.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;
use toolcell_schema::{typescript, typescript_comment};

use super::{DESCRIBE_TOOLS, FIND_TOOLS, RUN_CODE, definition};
use crate::content::CallResult;
use crate::frame::echo;
use crate::tool::{McpTool, ToolDefinition};

/// Tools of one answer. More than a script of a page calls.
const NAMES_MAX: usize = 50;

/// Names that `tools` has for itself in a script.
const OWN: [&str; 4] = ["call", "find", "describe", "then"];

#[derive(serde::Deserialize)]
struct Named {
    names: Vec<String>,
}

pub(super) fn describe_tools() -> ToolDefinition {
    let description = format!(
        "Declares tools in TypeScript, for scripts of {RUN_CODE}: their arguments and what they return. Ask for all \
         that a script will call at once, before it is written."
    );
    let input = json!({
        "type": "object",
        "properties": {
            "names": {
                "type": "array", "minItems": 1, "maxItems": NAMES_MAX, "items": {"type": "string"},
                "description": "The names of the tools.",
            },
        },
        "required": ["names"],
        "additionalProperties": false,
    });
    definition(DESCRIBE_TOOLS, "Describe tools for scripts", description, input, None, true)
}

/// The answer to a call of `describe_tools`. `find` gives a tool, and whether scripts may call it.
/// Tools whose declarations do not fit into `bytes_max` are named.
pub(super) fn answer(
    tool: &McpTool,
    arguments: &RawValue,
    bytes_max: usize,
    find: impl Fn(&str) -> Option<(Arc<McpTool>, bool)>,
) -> CallResult {
    if let Err(problems) = tool.check_arguments(arguments, &toolcell_schema::Patience::default()) {
        return tool.refuse_arguments(&problems);
    }
    let Ok(Named { names }) = serde_json::from_str(arguments.get()) else {
        return tool.refuse_arguments(&"- the arguments cannot be read");
    };
    let mut declared = String::new();
    let mut notes = String::new();
    for name in names.iter().take(NAMES_MAX) {
        let note = match find(name) {
            None => format!("there is no tool {}; {FIND_TOOLS} finds tools", echo(name)),
            Some((_, false)) => format!("{name}: scripts may not call it"),
            Some((tool, true)) => {
                let declaration = declaration(tool.served());
                if declared.len().saturating_add(declaration.len()) <= bytes_max {
                    declared.push_str(&declaration);
                    continue;
                }
                format!("{name}: does not fit into this answer; ask for fewer")
            }
        };
        let _ = writeln!(notes, "// {note}");
    }
    let declared =
        if declared.is_empty() { String::new() } else { format!("declare const tools: {{\n{declared}}};\n") };
    CallResult::text(format!("{declared}{notes}").trim_end().to_owned())
}

/// One tool, as a method of `tools`.
fn declaration(definition: &ToolDefinition) -> String {
    let name = definition.name.as_str();
    let mut out = typescript_comment(&definition.description, 1);
    let arguments = typescript(&definition.input_schema, 1);
    let needs_any = definition.input_schema.get("required").and_then(|names| names.as_array());
    let mark = if needs_any.is_some_and(|names| !names.is_empty()) { "" } else { "?" };
    let result = definition.output_schema.as_ref().map_or_else(|| "unknown".to_owned(), |schema| typescript(schema, 1));
    let property = alias(name);
    let _ = if OWN.contains(&property.as_str()) {
        writeln!(
            out,
            "  call(name: {}, arguments{mark}: {arguments}): Promise<{result}>;",
            serde_json::Value::from(name)
        )
    } else {
        writeln!(out, "  {property}(arguments{mark}: {arguments}): Promise<{result}>;")
    };
    out
}

/// The property of `tools` for a tool: its name with `_` for what no identifier has.
fn alias(name: &str) -> String {
    let legal = |letter: char| if letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$') { letter } else { '_' };
    let digit = if name.starts_with(|first: char| first.is_ascii_digit()) { "_" } else { "" };
    format!("{digit}{}", name.chars().map(legal).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_declared_as_a_method() {
        let input = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let mut definition = ToolDefinition::new("get-weather", "Weather\nof a city.", input);
        definition.output_schema = Some(json!({"type": "object", "properties": {"high": {"type": "number"}}}));
        let expected = "  /** Weather of a city. */\n  get_weather(arguments: {\n    city: string;\n  }): \
                        Promise<{\n    high?: number;\n  }>;\n";
        assert_eq!(declaration(&definition), expected);
        let bare = ToolDefinition::new("2day", "", json!({"type": "object"}));
        assert_eq!(declaration(&bare), "  _2day(arguments?: Record<string, unknown>): Promise<unknown>;\n");
        let own = ToolDefinition::new("find", "", json!({"type": "object"}));
        assert!(declaration(&own).contains("call(name: \"find\","), "{}", declaration(&own));
    }
}
