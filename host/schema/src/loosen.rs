//! The patterns of a schema that take more than linear time, and the schema without them. That
//! schema accepts at least what the written one accepts.

use serde_json::{Map, Value, json};

use crate::keywords;
use crate::pattern::is_irregular;

/// The schema without its irregular patterns; `None` if it has none.
pub(crate) fn loosened(schema: &Value) -> Option<Value> {
    if !has_irregular(schema) {
        return None;
    }
    let mut schema = schema.clone();
    loosen(&mut schema);
    Some(schema)
}

/// The places of the patterns that are not applied because they have look-around or
/// back-references, as paths such as `properties/mail/pattern`.
#[must_use]
pub fn unapplied_patterns(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if has_irregular(schema) {
        find(schema, "", &mut found);
    }
    found
}

/// Adds the places in a schema at this path, which is empty or ends with `/`.
fn find(schema: &Value, at: &str, found: &mut Vec<String>) {
    let Some(members) = schema.as_object() else { return };
    if members.get("pattern").and_then(Value::as_str).is_some_and(is_irregular) {
        found.push(format!("{at}pattern"));
    }
    let named = members.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
    found.extend(named.filter(|(name, _)| is_irregular(name)).map(|(name, _)| format!("{at}patternProperties/{name}")));
    for keywords::Child { place: [keyword, name], number, schema, .. } in keywords::children(members) {
        let below = match number {
            Some(number) => format!("{at}{keyword}/{number}/"),
            None if name.is_empty() => format!("{at}{keyword}/"),
            None => format!("{at}{keyword}/{name}/"),
        };
        find(schema, &below, found);
    }
}

fn has_irregular(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else { return false };
    let pattern = members.get("pattern").and_then(Value::as_str);
    pattern.is_some_and(is_irregular)
        || irregular_names(members)
        || keywords::children(members).iter().any(|child| has_irregular(child.schema))
}

fn irregular_names(members: &Map<String, Value>) -> bool {
    let patterns = members.get("patternProperties").and_then(Value::as_object);
    patterns.is_some_and(|patterns| patterns.keys().any(|pattern| is_irregular(pattern)))
}

/// Removes the patterns, and relaxes keywords that would accept less without them. True if the
/// schema accepts more now, or may: a reference may name one that does.
fn loosen(schema: &mut Value) -> bool {
    let Some(members) = schema.as_object_mut() else { return false };
    let mut looser = ["$ref", "$dynamicRef", "$recursiveRef"].iter().any(|keyword| members.contains_key(*keyword));
    if members.get("pattern").and_then(Value::as_str).is_some_and(is_irregular) {
        members.shift_remove("pattern");
        looser = true;
    }
    if irregular_names(members) {
        if let Some(Value::Object(patterns)) = members.get_mut("patternProperties") {
            patterns.retain(|pattern, _| !is_irregular(pattern));
        }
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
        let parts = parts.into_iter().fold(false, |looser, part| loosen(part) | looser);
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
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::{loosened, unapplied_patterns};

    #[test]
    fn what_stands_around_an_irregular_pattern_accepts_no_less_without_it() {
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
            assert_eq!(loosened(&written), Some(expected), "{written}");
        }
        let places = json!({"properties": {"a": look, "b": {"anyOf": [{}, look]}}, "items": look, "patternProperties": {"(?=a)": look}});
        let expected = [
            "patternProperties/(?=a)",
            "properties/a/pattern",
            "properties/b/anyOf/1/pattern",
            "items/pattern",
            "patternProperties/(?=a)/pattern",
        ];
        assert_eq!(unapplied_patterns(&places), expected);
        let none: [Value; 3] = [json!(true), json!({"pattern": "^a"}), json!({"pattern": "("})];
        assert!(none.iter().all(|schema| loosened(schema).is_none()));
    }
}
