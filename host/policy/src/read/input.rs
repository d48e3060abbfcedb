//! Reads the JSON Schema of a tool's arguments, written out or in short.
//!
//! | written | means |
//! |---|---|
//! | `city = "where"` | a text, described so |
//! | `days = "integer: how many"` | of this type (`string`, `integer`, `number`, `boolean`, `object`, `array`), described so |
//! | `days = { type = "integer", minimum = 1 }` | this schema |
//! | `"days?" = …` | a call may leave it out; so may it what has a `default` |
//! | `type = "object"` among the keys | the table is the whole schema, as it is |

use serde_json::{Map, Value, json};

use super::{Entry, Problems};

/// The most arguments that the short form has.
const PROPERTIES_MAX: usize = 256;

/// The types of JSON Schema that an argument may have.
const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "object", "array"];

/// The schema; `None` if something is wrong, which is reported.
pub(crate) fn read(entry: &Entry<'_>, problems: &mut Problems) -> Option<Map<String, Value>> {
    let section = entry.section(problems)?;
    if section.get("type").and_then(|entry| entry.as_str()) == Some("object") {
        return match entry.json(problems)? {
            Value::Object(schema) => Some(schema),
            _ => None,
        };
    }
    if section.len() > PROPERTIES_MAX {
        let message = format!("input has {} arguments, at most {PROPERTIES_MAX} are allowed", section.len());
        return problems.refuse(entry.key_error("program::input", message));
    }
    let before = problems.errors();
    let mut properties = Map::new();
    let mut required = Vec::new();
    for entry in section.entries() {
        let (name, optional) = entry.key.strip_suffix('?').map_or((entry.key, false), |name| (name, true));
        let Some(schema) = property(&entry, problems) else { continue };
        if !optional && schema.get("default").is_none() {
            required.push(Value::from(name));
        }
        if properties.insert(name.to_owned(), schema).is_some() {
            let message = format!("the argument {name:?} appears twice");
            problems.add(entry.key_error("program::input", message));
        }
    }
    if problems.errors() > before {
        return None;
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    Some(schema)
}

/// The schema of one argument.
fn property(entry: &Entry<'_>, problems: &mut Problems) -> Option<Value> {
    let wrong = |message: String, hint: &str| entry.key_error("program::input", message).hint(hint);
    if entry.key.trim_end_matches('?').is_empty() {
        return problems.refuse(wrong("an argument has no name".to_owned(), "write input = { text = \"what it is\" }"));
    }
    if entry.is_table() {
        return entry.json(problems);
    }
    let Some(text) = entry.as_str() else {
        return entry.wrong_type("a description, or a table with a JSON Schema", problems);
    };
    let (ty, description) = match text.split_once(':') {
        Some((ty, description)) if TYPES.contains(&ty.trim()) => (ty.trim(), description.trim()),
        _ if TYPES.contains(&text.trim()) => (text.trim(), ""),
        _ => ("string", text.trim()),
    };
    if description.is_empty() && text.trim().is_empty() {
        return problems.refuse(wrong(format!("{} is empty", entry.key), "describe the argument: a model reads it"));
    }
    Some(if description.is_empty() { json!({"type": ty}) } else { json!({"type": ty, "description": description}) })
}
