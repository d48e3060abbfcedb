//! Single keywords of schemas, without what is inside them.
use serde_json::{Map, Value, json};

use crate::limits::PATTERN_BYTES_MAX;
use crate::media::is_text;
use crate::names::is_property;

/// Keywords whose values are numbers, taken as they are.
const NUMBERS: [&str; 2] = ["minimum", "maximum"];

/// Keywords whose values are numbers of characters, items or members. Others are not taken.
const COUNTS: [&str; 6] = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];

/// Lets a choice be `null` as well, where the schema says so (3.0). A type says it by itself.
pub(super) fn made_nullable(mut made: Map<String, Value>, written: &Map<String, Value>) -> Map<String, Value> {
    if written.get("nullable") != Some(&Value::Bool(true)) {
        return made;
    }
    let null = json!({"type": "null"});
    if let Some(Value::Array(variants)) = made.get_mut("anyOf")
        && !variants.contains(&null)
    {
        variants.push(null);
    }
    if let Some(kind @ Value::String(_)) = made.get_mut("type")
        && *kind != "null"
    {
        *kind = json!([kind.clone(), "null"]);
    }
    if let Some(Value::Array(values)) = made.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    made
}

/// Numbers, patterns and formats.
pub(super) fn bounds(written: &Map<String, Value>, made: &mut Map<String, Value>) {
    for key in NUMBERS {
        if let Some(value @ Value::Number(_)) = written.get(key) {
            made.insert(key.to_owned(), value.clone());
        }
    }
    for key in COUNTS {
        if let Some(count) = written.get(key).and_then(Value::as_u64) {
            made.insert(key.to_owned(), count.into());
        }
    }
    if let Some(value @ Value::Number(number)) = written.get("multipleOf")
        && number.as_f64().is_some_and(|number| number > 0.0)
    {
        made.insert("multipleOf".to_owned(), value.clone());
    }
    for (exclusive, inclusive) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match written.get(exclusive) {
            Some(value @ Value::Number(_)) => drop(made.insert(exclusive.to_owned(), value.clone())),
            // In 3.0 it says how the other is meant.
            Some(Value::Bool(true)) => {
                if let Some(value) = made.remove(inclusive) {
                    made.insert(exclusive.to_owned(), value);
                }
            }
            _ => {}
        }
    }
    if let Some(Value::String(pattern)) = written.get("pattern")
        && pattern.len() <= PATTERN_BYTES_MAX
    {
        made.insert("pattern".to_owned(), pattern.as_str().into());
    }
    if let Some(Value::String(format)) = written.get("format")
        && is_property(format)
    {
        made.insert("format".to_owned(), format.as_str().into());
    }
    if is_bytes(written) {
        made.insert("format".to_owned(), "binary".into());
    }
    if written.get("uniqueItems") == Some(&Value::Bool(true)) {
        made.insert("uniqueItems".to_owned(), Value::Bool(true));
    }
}

/// True for a text that is bytes: by its format, or, in 3.1, by its media type where nothing
/// encodes it.
pub(crate) fn is_bytes(written: &Map<String, Value>) -> bool {
    let text = |key: &str| written.get(key).and_then(Value::as_str);
    text("format") == Some("binary")
        || (text("contentMediaType").is_some_and(|media| !is_text(media)) && !written.contains_key("contentEncoding"))
}

/// Adds a sentence to the description.
pub(crate) fn add_text(schema: &mut Map<String, Value>, sentence: &str) {
    let before = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = if before.is_empty() { sentence.to_owned() } else { format!("{before} {sentence}") };
    schema.insert("description".to_owned(), text.into());
}
