//! A schema without the patterns that are not applied. It accepts at least what the written one
//! accepts.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::keywords;

/// The schema without these patterns.
pub(crate) fn loosened(schema: &Value, left_out: &HashSet<String>) -> Value {
    let mut schema = schema.clone();
    loosen(&mut schema, left_out);
    schema
}

/// Removes the patterns, and relaxes keywords that would accept less without them. True if the
/// schema accepts more now, or may: a reference may name one that does.
fn loosen(schema: &mut Value, left_out: &HashSet<String>) -> bool {
    let Some(members) = schema.as_object_mut() else { return false };
    let mut looser = keywords::REFERENCES.iter().any(|keyword| members.contains_key(*keyword));
    if members.get("pattern").and_then(Value::as_str).is_some_and(|pattern| left_out.contains(pattern)) {
        members.shift_remove("pattern");
        looser = true;
    }
    if let Some(Value::Object(patterns)) = members.get_mut("patternProperties")
        && patterns.keys().any(|pattern| left_out.contains(pattern))
    {
        patterns.retain(|pattern, _| !left_out.contains(pattern));
        // The names that the patterns matched are unknown now.
        members.shift_remove("additionalProperties");
        looser = true;
    }
    let mut of_keyword = Map::new();
    for (keyword, value) in members.iter_mut().filter(|(keyword, _)| keywords::holds_schemas(keyword)) {
        let parts: Vec<&mut Value> = match value {
            Value::Object(named) if keywords::is_map(keyword) => named.values_mut().collect(),
            Value::Array(listed) => listed.iter_mut().collect(),
            single => vec![single],
        };
        // All of them: none may be skipped.
        let parts = parts.into_iter().fold(false, |looser, part| loosen(part, left_out) | looser);
        of_keyword.insert(keyword.clone(), Value::Bool(parts));
    }
    let is = |keyword: &str| of_keyword.get(keyword) == Some(&Value::Bool(true));
    if is("not") {
        members.shift_remove("not");
    }
    if is("if") {
        ["if", "then", "else"].iter().for_each(|keyword| drop(members.shift_remove(*keyword)));
    }
    if is("contains") {
        members.shift_remove("maxContains");
    }
    if is("oneOf")
        && let Some(branches) = members.shift_remove("oneOf")
    {
        match members.entry("allOf").or_insert_with(|| json!([])) {
            Value::Array(all) => all.push(json!({"anyOf": branches})),
            other => *other = json!([{"anyOf": branches}]),
        }
    }
    let defines = |keyword: &String| matches!(keyword.as_str(), "$defs" | "definitions");
    looser |= of_keyword.iter().any(|(keyword, looser)| !defines(keyword) && *looser == Value::Bool(true));
    if looser {
        // Members that a removed pattern matched would count as unevaluated now.
        members.shift_remove("unevaluatedProperties");
        members.shift_remove("unevaluatedItems");
    }
    looser
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::loosened;

    #[test]
    fn what_stands_around_a_pattern_accepts_no_less_without_it() {
        let left_out = ["^(?!admin)\\w+$", "(?=a)"].map(str::to_owned).into();
        let look = json!({"type": "string", "pattern": "^(?!admin)\\w+$"});
        let plain = json!({"type": "string"});
        for (written, expected) in [
            (json!({"properties": {"a": look}}), json!({"properties": {"a": plain}})),
            (json!({"not": look}), json!({})),
            (json!({"if": look, "then": {"minLength": 1}, "else": false}), json!({})),
            (json!({"oneOf": [look, {"type": "null"}]}), json!({"allOf": [{"anyOf": [plain, {"type": "null"}]}]})),
            (json!({"contains": look, "maxContains": 1}), json!({"contains": plain})),
            (
                json!({"patternProperties": {"(?=a)": {}, "^b": {}}, "additionalProperties": false}),
                json!({"patternProperties": {"^b": {}}}),
            ),
            (
                json!({"allOf": [{"patternProperties": {"(?=a)": {}}}], "unevaluatedProperties": false}),
                json!({"allOf": [{"patternProperties": {}}]}),
            ),
            (json!({"contains": look, "unevaluatedItems": false}), json!({"contains": plain})),
            (json!({"not": {"$ref": "#/$defs/a"}, "$defs": {"a": look}}), json!({"$defs": {"a": plain}})),
        ] {
            assert_eq!(loosened(&written, &left_out), expected, "{written}");
        }
    }
}
