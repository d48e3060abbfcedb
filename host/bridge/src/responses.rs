//! What an operation answers with: the schema of its structured result, and what a request says
//! that it accepts.
use serde_json::{Map, Value, json};
use toolcell_bridge_lines::OutputForm;

use crate::document::Document;
use crate::media::{is_json, is_media};
use crate::schema::{SchemaUse, inlined};

/// Answers of one operation that are looked at. 60: HTTP has about so many statuses.
const ANSWERS_MAX: usize = 60;

/// Media types that a request names. 5: more only make the line longer.
const ACCEPTED_MAX: usize = 5;

pub(crate) struct Answer {
    pub(crate) output: Option<Value>,
    pub(crate) form: OutputForm,
    pub(crate) accept: String,
    pub(crate) is_cut: bool,
}

/// The answer of an operation. Where its answers of success differ, it has no schema.
pub(crate) fn of_operation(document: &Document<'_>, operation: &Value, bytes_max: usize) -> Answer {
    let mut schemas: Vec<&Value> = Vec::new();
    let mut accepted: Vec<&str> = Vec::new();
    let mut has_json = false;
    let mut is_open = false;
    let empty = Map::new();
    let answers = operation.get("responses").and_then(Value::as_object).unwrap_or(&empty);
    for (_, answer) in answers.iter().take(ANSWERS_MAX).filter(|(status, _)| status.starts_with('2')) {
        let Ok(answer) = document.followed(answer) else { continue };
        let Some(Value::Object(content)) = answer.get("content") else { continue };
        for (media, written) in content {
            if is_media(media) && accepted.len() < ACCEPTED_MAX && !accepted.contains(&media.as_str()) {
                accepted.push(media);
            }
            if !is_json(media) {
                is_open = true;
                continue;
            }
            has_json = true;
            match written.get("schema") {
                Some(schema) if schemas.contains(&schema) => {}
                Some(schema) => schemas.push(schema),
                None => is_open = true,
            }
        }
    }
    let accept = match (has_json, accepted.is_empty()) {
        // What is asked for by name comes first with every server.
        (true, _) => accepted.iter().find(|media| is_json(media)).map_or("application/json", |media| *media).to_owned(),
        (false, false) => accepted.join(", "),
        (false, true) => "application/json, */*;q=0.5".to_owned(),
    };
    let free = |accept| Answer { output: None, form: OutputForm::Free, accept, is_cut: false };
    // An answer that is not JSON could not fit a schema.
    let ([schema], false) = (schemas.as_slice(), is_open) else { return free(accept) };
    let made = inlined(document, schema, SchemaUse::Output, bytes_max);
    let Value::Object(mut schema) = made.schema else { return free(accept) };
    if schema.is_empty() {
        return free(accept);
    }
    let is_object = schema.get("type").is_some_and(|kind| *kind == json!(["object", "null"]));
    let (output, form) = if is_object && !schema.contains_key("anyOf") {
        schema.insert("type".to_owned(), "object".into());
        schema.entry("properties").or_insert_with(|| json!({}));
        (Value::Object(schema), OutputForm::Object)
    } else {
        (json!({"type": "object", "properties": {"result": schema}}), OutputForm::Result)
    };
    Answer { output: Some(output), form, accept, is_cut: made.is_cut }
}
