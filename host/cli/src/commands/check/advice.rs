//! Advice on tools that load, and that clients or models make less of than they could. Must not
//! hold: problems of a manifest or a component.
use serde_json::{Value, json};
use toolcell_mcp::{Catalog as _, ToolDefinition};
use toolcell_policy::Style;
use toolcell_server::catalog::Catalog;

use crate::terminal::yellow;

/// Most tools that are shown; the rest is counted. `--json` has them all.
const SHOWN_MAX: usize = 40;

/// Deepest part of a schema that is looked at. JSON of definitions is no deeper.
const DEPTH_MAX: usize = 128;

/// Keywords that no strict client takes, in any place.
const REFUSED: [&str; 6] = ["not", "if", "dependentSchemas", "dependentRequired", "patternProperties", "propertyNames"];

/// Keywords that no strict client takes in the root of a tool's arguments.
const REFUSED_IN_ROOT: [&str; 5] = ["anyOf", "oneOf", "allOf", "enum", "const"];

/// Longest name of a property that strict clients take, in characters.
const NAME_CHARS_MAX: usize = 64;

/// Advice on one tool.
#[derive(Debug)]
pub struct Advice {
    tool: String,
    component: String,
    /// Missing texts, and the first rule of clients that its schema breaks.
    problems: Vec<String>,
}

/// Advice on each tool that something can be said of.
pub fn of_all(catalog: &Catalog) -> Vec<Advice> {
    let tools = catalog.tools().tools().iter().enumerate().filter(|(_, tool)| tool.is_tool());
    tools
        .filter_map(|(index, tool)| {
            let (component, _) = catalog.tool_source(index)?;
            let problems = of(tool.definition());
            let advice =
                Advice { tool: tool.definition().name.clone(), component: component.name().to_owned(), problems };
            (!advice.problems.is_empty()).then_some(advice)
        })
        .collect()
}

/// A warning with a line for each tool.
pub fn shown(advice: &[Advice], style: Style) -> String {
    let width = advice.iter().take(SHOWN_MAX).map(|one| one.tool.len()).max().unwrap_or_default();
    let mut text = format!("{}: clients make less of these tools than they could\n", yellow("warning", style));
    for Advice { tool, problems, .. } in advice.iter().take(SHOWN_MAX) {
        text.push_str(&format!("  {tool:<width$}  {}\n", problems.join("; ")));
    }
    if advice.len() > SHOWN_MAX {
        text.push_str(&format!("  and {} more\n", advice.len() - SHOWN_MAX));
    }
    text + "  hint: a component says it, or [components.NAME.tools.TOOL] does: description, title, read_only, destructive\n"
}

/// Advice as JSON: `tool`, `component` and `problems`.
pub fn to_json(advice: &[Advice]) -> Value {
    let one = |Advice { tool, component, problems }: &Advice| json!({"tool": tool, "component": component, "problems": problems});
    advice.iter().map(one).collect()
}

fn of(definition: &ToolDefinition) -> Vec<String> {
    let description = definition.description.trim();
    let is_made_up = description.starts_with("Calls ") && description.ends_with(" of the component.");
    let hints = &definition.hints;
    let missing: Vec<&str> = [
        (description.is_empty() || is_made_up, "no description"),
        (definition.title.is_none(), "no title"),
        (hints.read_only.is_none() && hints.destructive.is_none(), "no hints"),
    ]
    .into_iter()
    .filter_map(|(is_missing, what)| is_missing.then_some(what))
    .collect();
    let mut problems = Vec::new();
    if !missing.is_empty() {
        problems.push(missing.join(", "));
    }
    problems.extend(of_root(&definition.input_schema).or_else(|| of_schema(&definition.input_schema, "", 0)));
    problems
}

/// The first rule that the root breaks.
fn of_root(schema: &Value) -> Option<String> {
    let refused = REFUSED_IN_ROOT.into_iter().find(|keyword| schema.get(keyword).is_some())?;
    Some(format!("strict clients refuse {refused:?} in the root of its arguments"))
}

/// The first rule that this schema or one in it breaks; `at` is its JSON Pointer.
fn of_schema(schema: &Value, at: &str, depth: usize) -> Option<String> {
    let place = if at.is_empty() { "the arguments" } else { at };
    let object = schema.as_object().filter(|_| depth < DEPTH_MAX)?;
    if schema.get("type").is_some_and(Value::is_array) {
        return Some(format!("{place}: some clients do not read a list of types; write anyOf"));
    }
    if let Some(keyword) = REFUSED.into_iter().find(|keyword| object.contains_key(*keyword)) {
        return Some(format!("{place}: strict clients refuse {keyword:?}"));
    }
    let is = |name: &str| object.get("type").is_some_and(|ty| ty == name);
    if is("array") && !object.contains_key("items") && !object.contains_key("prefixItems") {
        return Some(format!("{place}: strict clients refuse a list without \"items\""));
    }
    let properties = object.get("properties").and_then(Value::as_object);
    let further = object.get("additionalProperties");
    if further.map_or(properties.is_some_and(|has| !has.is_empty()), |further| *further != Value::Bool(false)) {
        return Some(format!("{place}: strict clients want \"additionalProperties\": false"));
    }
    let unusual = |name: &&String| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        name.is_empty() || name.chars().count() > NAME_CHARS_MAX || !name.chars().all(fits)
    };
    if let Some(name) = properties.and_then(|properties| properties.keys().find(unusual)) {
        return Some(format!(
            "{place}: clients refuse {name:?} as a name: letters, digits, _ - . and at most 64 of them"
        ));
    }
    parts(schema).into_iter().find_map(|(path, part)| of_schema(part, &format!("{at}/{path}"), depth + 1))
}

/// The schemas directly in this one, each with its path.
fn parts(schema: &Value) -> Vec<(String, &Value)> {
    let mut parts = Vec::new();
    for keyword in ["properties", "$defs", "definitions"] {
        let named = schema.get(keyword).and_then(Value::as_object).into_iter().flatten();
        parts.extend(named.map(|(name, part)| (format!("{keyword}/{name}"), part)));
    }
    for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        let listed = schema.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate();
        parts.extend(listed.map(|(at, part)| (format!("{keyword}/{at}"), part)));
    }
    parts.extend(schema.get("items").map(|part| ("items".to_owned(), part)));
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcell_mcp::ToolHints;

    use super::*;

    fn told(schema: Value) -> Vec<String> {
        let mut definition = ToolDefinition::new("t", "Does it.", schema);
        definition.title = Some("T".to_owned());
        definition.hints = ToolHints { read_only: Some(true), ..ToolHints::default() };
        of(&definition)
    }

    #[test]
    fn a_tool_that_says_little_is_told_once_with_all_that_is_missing() {
        let schema = json!({"type": "object"});
        let bare = of(&ToolDefinition::new("t", "Calls t of the component.", schema.clone()));
        assert_eq!(bare, ["no description, no title, no hints"]);
        assert!(of(&ToolDefinition::new("t", "", schema.clone()))[0].starts_with("no description"));
        let mut destructive = ToolDefinition::new("t", "Deletes.", schema);
        destructive.title = Some("Delete".to_owned());
        destructive.hints.destructive = Some(true);
        assert_eq!(of(&destructive), Vec::<String>::new());
    }

    #[test]
    fn each_rule_names_its_place() {
        let object =
            |properties: Value| json!({"type": "object", "properties": properties, "additionalProperties": false});
        let long = "n".repeat(NAME_CHARS_MAX + 1);
        for (schema, words) in [
            (
                object(json!({"a": {"type": ["string", "null"]}})),
                "/properties/a: some clients do not read a list of types",
            ),
            (json!({"type": "object", "anyOf": []}), "refuse \"anyOf\" in the root"),
            (object(json!({"a": {"not": {}}})), "/properties/a: strict clients refuse \"not\""),
            (object(json!({"a": {"type": "array"}})), "/properties/a: strict clients refuse a list without \"items\""),
            (json!({"type": "object", "properties": {"a": {}}}), "the arguments: strict clients want"),
            (
                object(json!({"a": {"type": "object", "additionalProperties": true}})),
                "/properties/a: strict clients want",
            ),
            (object(json!({"a b": {}})), "refuse \"a b\" as a name"),
            (object(json!({ long: {} })), "as a name"),
            (
                object(json!({"a": {"type": "array", "items": {"anyOf": [{"type": ["null"]}]}}})),
                "/properties/a/items/anyOf/0: some clients",
            ),
            (json!({"type": "object", "$defs": {"x": {"if": {}}}}), "/$defs/x: strict clients refuse \"if\""),
        ] {
            let told = told(schema.clone());
            assert!(told.len() == 1 && told[0].contains(words), "{schema}: {told:?}");
        }
    }

    #[test]
    fn what_typed_functions_and_careful_authors_write_is_not_told_of() {
        for schema in [
            json!({"type": "object"}),
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
            json!({"type": "object", "additionalProperties": false, "required": ["value"], "properties": {
                "value": {"anyOf": [{"type": "number"}, {"enum": ["NaN"]}]},
                "rounding": {"anyOf": [{"oneOf": [{"const": "none"}, {"type": "object", "properties": {"decimals": {"type": "integer"}}, "required": ["decimals"], "additionalProperties": false}]}, {"type": "null"}]},
                "pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": false, "minItems": 1, "maxItems": 1},
                "flags": {"type": "array", "items": {"type": "string", "enum": ["a"]}, "uniqueItems": true},
            }}),
        ] {
            assert_eq!(told(schema.clone()), Vec::<String>::new(), "{schema}");
        }
    }

    #[test]
    fn the_rest_of_many_is_counted() {
        let one = |number| Advice {
            tool: format!("t{number}"),
            component: "c".to_owned(),
            problems: told(json!({"type": ["object"]})),
        };
        let text = shown(&(0..SHOWN_MAX + 2).map(one).collect::<Vec<_>>(), Style::Plain);
        assert!(text.contains("  t39  ") && !text.contains("t40") && text.contains("  and 2 more\n"), "{text}");
    }

    #[test]
    fn a_deep_schema_is_looked_at_as_far_as_the_bound() {
        let mut schema = json!({"type": ["null"]});
        for _ in 0..DEPTH_MAX {
            schema = json!({"anyOf": [schema]});
        }
        assert_eq!(of_schema(&schema, "", 0), None);
        assert!(of_schema(&schema["anyOf"][0], "", 0).is_some());
    }
}
