//! An answer's JSON as the schema of the tool's results has it. Real answers differ from their
//! documents, and the host takes structured content only where it fits.

use serde_json::Value;

/// Differences that are named. 3: an answer that differs more often differs everywhere.
const NAMED_MAX: usize = 3;

/// Levels of a structured result. The host takes 120.
const LEVELS_MAX: usize = 110;

/// What may be structured content of an answer.
pub enum Fit {
    /// All of it, as it came.
    Whole,
    /// This part of it. The text names what differs, as the beginning of a sentence.
    Part(Value, String),
    /// Nothing of it. The text says why, as the beginning of a sentence.
    Not(String),
}

/// What of this JSON text fits a schema of answers, which has names and types alone. What does not
/// is null, which each of them takes.
pub fn fit(schema: &Value, text: &str) -> Fit {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else {
        return Fit::Not("the answer has a text or a number that cannot be passed on".to_owned());
    };
    if levels(&value) > LEVELS_MAX {
        return Fit::Not(format!("the answer has more than {LEVELS_MAX} levels"));
    }
    let mut differences = Vec::new();
    if members(&value) != colons(text) {
        differences.push("has a name twice in one object".to_owned());
    }
    fit_in(schema, &mut value, "", &mut differences);
    if differences.is_empty() {
        return Fit::Whole;
    }
    let more = differences.len().saturating_sub(NAMED_MAX);
    differences.truncate(NAMED_MAX);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Fit::Part(value, format!("the answer {}{more}", differences.join(", ")))
}

/// Makes null what does not fit, and notes it.
fn fit_in(schema: &Value, value: &mut Value, place: &str, differences: &mut Vec<String>) {
    if !has_kind(schema, value) || !has_variant(schema, value) {
        let kind = kind(value);
        differences.push(if place.is_empty() { format!("is {kind}") } else { format!("has {kind} for {place:?}") });
        *value = Value::Null;
        return;
    }
    let inside = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if let Some(schema) = property(schema, name) {
                    fit_in(schema, member, &inside(name), differences);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                if let Some(schema) = schema.get("items") {
                    fit_in(schema, item, &inside(&index.to_string()), differences);
                }
            }
        }
        _ => {}
    }
}

fn fits(schema: &Value, value: &Value) -> bool {
    has_kind(schema, value)
        && has_variant(schema, value)
        && match value {
            Value::Object(members) => {
                members.iter().all(|(name, member)| property(schema, name).is_none_or(|schema| fits(schema, member)))
            }
            Value::Array(items) => schema.get("items").is_none_or(|schema| items.iter().all(|item| fits(schema, item))),
            _ => true,
        }
}

fn property<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema.get("properties")?.get(name)
}

fn has_variant(schema: &Value, value: &Value) -> bool {
    let variants = schema.get("anyOf").and_then(Value::as_array);
    variants.is_none_or(|variants| variants.iter().any(|variant| fits(variant, value)))
}

fn has_kind(schema: &Value, value: &Value) -> bool {
    let is_kind = |kind: &Value| match (kind.as_str(), value) {
        (Some("null"), Value::Null)
        | (Some("boolean"), Value::Bool(_))
        | (Some("number"), Value::Number(_))
        | (Some("string"), Value::String(_))
        | (Some("array"), Value::Array(_))
        | (Some("object"), Value::Object(_)) => true,
        (Some("integer"), Value::Number(number)) => number.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => false,
    };
    match schema.get("type") {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(is_kind),
        Some(one) => is_kind(one),
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn levels(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(levels).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or_default(),
        _ => 1,
    }
}

/// Members of all objects.
fn members(value: &Value) -> usize {
    match value {
        Value::Object(inside) => inside.len() + inside.values().map(members).sum::<usize>(),
        Value::Array(items) => items.iter().map(members).sum(),
        _ => 0,
    }
}

/// Colons outside of texts: one for each member as it is written.
fn colons(json: &str) -> usize {
    let mut count = 0;
    let mut is_text = false;
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_text = !is_text,
            b'\\' if is_text => drop(bytes.next()),
            b':' if !is_text => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;
    use serde_json::json;

    fn of(schema: &Value, text: &str) -> (String, String) {
        match fit(schema, text) {
            Fit::Whole => ("whole".to_owned(), String::new()),
            Fit::Part(value, differs) => (value.to_string(), differs),
            Fit::Not(why) => (String::new(), why),
        }
    }

    #[test]
    fn what_differs_is_null_and_named_and_the_rest_stays() {
        let schema = json!({"type": "object", "properties": {
            "id": {"type": ["integer", "null"]},
            "list": {"type": ["array", "null"], "items": {"type": ["string", "null"]}},
            "either": {"anyOf": [{"type": ["object", "null"], "properties": {"a": {"type": ["string", "null"]}}},
                                 {"type": ["number", "null"]}]},
        }});
        for text in [
            r#"{"id": 5.0, "list": ["a:", null], "either": {"a": "\"b:"}, "more": [1]}"#,
            r#"{"either": 1.5}"#,
            r#"{"id": 123456789012345678901234567890}"#,
            "{}",
        ] {
            assert_eq!(of(&schema, text).0, "whole", "{text}");
        }
        for (text, value, differs) in [
            (r#"{"id":"12","list":["a"]}"#, r#"{"id":null,"list":["a"]}"#, r#"the answer has a text for "id""#),
            (
                r#"{"id":1.5,"list":["a",{}]}"#,
                r#"{"id":null,"list":["a",null]}"#,
                r#"the answer has a number for "id", has an object for "list.1""#,
            ),
            (r#"{"either":{"a":1}}"#, r#"{"either":null}"#, r#"the answer has an object for "either""#),
            ("[]", "null", "the answer is a list"),
            (r#"{"x":1,"x":2}"#, r#"{"x":2}"#, "the answer has a name twice in one object"),
            (
                r#"{"list":[1,2,3,4]}"#,
                r#"{"list":[null,null,null,null]}"#,
                "the answer has a number for \"list.0\", has a number for \"list.1\", has a number for \"list.2\", \
                 and 1 more",
            ),
        ] {
            assert_eq!(of(&schema, text), (value.to_owned(), differs.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_the_host_would_not_take_is_left_to_the_text() {
        for text in [
            r#"{"a":"\ud800"}"#.to_owned(),
            r#"{"a":1e999}"#.to_owned(),
            format!("{}{}", "[".repeat(115), "]".repeat(115)),
        ] {
            assert!(matches!(fit(&json!({}), &text), Fit::Not(_)), "{text}");
        }
    }
}
