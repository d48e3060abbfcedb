//! The schema of a tool's arguments for callers who meet conditions: narrower, as far as single
//! keywords say it. What they do not say is checked all the same, and only not shown.

use serde_json::{Map, Value, json};

/// A condition on one argument.
#[derive(Clone, Copy, Debug)]
pub struct NarrowedArgument<'c> {
    /// The argument.
    pub name: &'c str,
    /// The schema that it has to fit.
    pub schema: &'c Value,
    /// True if it must be there.
    pub required: bool,
}

/// Bounds from below: the greater one holds.
const LEAST: [&str; 5] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];

/// Bounds from above: the smaller one holds.
const MOST: [&str; 5] = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];

/// The schema of arguments that also fit these conditions.
#[must_use]
pub fn narrowed<'c>(schema: &Value, conditions: impl IntoIterator<Item = NarrowedArgument<'c>>) -> Value {
    let mut narrow = schema.clone();
    let Some(members) = narrow.as_object_mut() else { return narrow };
    for condition in conditions {
        if condition.required {
            require(members, condition.name);
        }
        let properties = members.entry("properties").or_insert_with(|| json!({}));
        let Some(properties) = properties.as_object_mut() else { continue };
        match properties.get_mut(condition.name) {
            Some(Value::Object(written)) => merge(written, condition.schema),
            Some(Value::Bool(false)) => {}
            _ => _ = properties.insert(condition.name.to_owned(), condition.schema.clone()),
        }
    }
    narrow
}

fn require(members: &mut Map<String, Value>, name: &str) {
    let required = members.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut()
        && required.iter().all(|listed| listed != name)
    {
        required.push(json!(name));
    }
}

/// Adds the keywords of a condition to the schema of its argument.
fn merge(written: &mut Map<String, Value>, condition: &Value) {
    let Some(condition) = condition.as_object() else { return };
    for (keyword, value) in condition {
        let Some(before) = written.get(keyword) else {
            written.insert(keyword.clone(), value.clone());
            continue;
        };
        let bounds = before.as_f64().zip(value.as_f64());
        let narrower = match keyword.as_str() {
            keyword if LEAST.contains(&keyword) => bounds.is_some_and(|(before, value)| value > before),
            keyword if MOST.contains(&keyword) => bounds.is_some_and(|(before, value)| value < before),
            "type" => before == "number" && value == "integer",
            _ => false,
        };
        if narrower {
            written.insert(keyword.clone(), value.clone());
        } else if keyword == "enum" {
            let listed = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let both = before.as_array().map(|before| before.iter().filter(|one| listed.contains(one)).cloned());
            let both: Vec<Value> = both.into_iter().flatten().collect();
            if !both.is_empty() {
                written.insert(keyword.clone(), Value::Array(both));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use super::*;

    fn narrow(schema: Value, name: &str, condition: &Value) -> Value {
        narrowed(&schema, [NarrowedArgument { name, schema: condition, required: true }])
    }

    #[test]
    fn a_condition_narrows_the_schema_of_its_argument() {
        let of = |property: Value| json!({"type": "object", "properties": {"a": property}, "required": ["a"]});
        for (property, condition, expected) in [
            (
                json!({"type": "string"}),
                json!({"type": "string", "pattern": "^x"}),
                json!({"type": "string", "pattern": "^x"}),
            ),
            (
                json!({"type": "integer", "maximum": 9}),
                json!({"type": "number", "maximum": 5}),
                json!({"type": "integer", "maximum": 5}),
            ),
            (
                json!({"type": "integer", "maximum": 3}),
                json!({"type": "number", "maximum": 5}),
                json!({"type": "integer", "maximum": 3}),
            ),
            (json!({"minLength": 1}), json!({"minLength": 4}), json!({"minLength": 4})),
            (json!({"enum": ["a", "b", "c"]}), json!({"enum": ["b", "c", "d"]}), json!({"enum": ["b", "c"]})),
            (json!({"enum": ["a"]}), json!({"enum": ["z"]}), json!({"enum": ["a"]})),
            (
                json!({"description": "d"}),
                json!({"description": "e", "minimum": 1}),
                json!({"description": "d", "minimum": 1}),
            ),
            (json!(true), json!({"minimum": 1}), json!({"minimum": 1})),
        ] {
            assert_eq!(narrow(of(property), "a", &condition), of(expected));
        }
    }

    #[test]
    fn an_argument_that_the_schema_does_not_name_is_added() {
        let condition = json!({"type": "string"});
        assert_eq!(
            narrow(json!({"type": "object"}), "a", &condition),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}})
        );
        assert_eq!(narrow(json!({"properties": {"a": false}}), "a", &condition)["properties"]["a"], json!(false));
    }
}
