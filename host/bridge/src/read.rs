//! A document's text as a value: JSON, or YAML 1.2's core schema.
//!
//! Anchors and aliases are read, and what they repeat counts: a text that would be a thousand times
//! as large as it is ends with an error. Tags and merge keys are refused.
use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

use crate::BridgeError;
use crate::limits::DOCUMENT_BYTES_MAX;

/// Values of a document in YAML, repeated ones included. 2 million: GitHub's document has 700,000.
const VALUES_MAX: usize = 2_000_000;

/// Deepest nesting of a document in YAML: serde_json's own bound for JSON.
const DEPTH_MAX: usize = 128;

/// The value of a document's text.
///
/// # Errors
/// It is neither JSON nor YAML, or exceeds a bound.
pub fn read(text: &str) -> Result<Value, BridgeError> {
    let hint = "an OpenAPI document is JSON or YAML";
    if text.len() > DOCUMENT_BYTES_MAX {
        let problem = format!("the document is larger than {DOCUMENT_BYTES_MAX} bytes");
        return Err(BridgeError::new(problem, "cut it down to the operations that you need"));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{') {
        let error = match serde_json::from_str(text) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        return Err(BridgeError::new(format!("the document is not JSON: {error}"), hint));
    }
    yaml(text).map_err(|problem| BridgeError::new(format!("the document {problem}"), hint))
}

/// A list or an object that is being read.
enum Open {
    List(Vec<Value>),
    /// With the key whose value comes next.
    Object(Map<String, Value>, Option<String>),
}

/// A list or an object with its anchor, and the number of values before it.
struct Level {
    open: Open,
    anchor: usize,
    before: usize,
}

/// A value that aliases repeat.
struct Anchored {
    value: Value,
    values: usize,
}

#[derive(Default)]
struct Reader {
    levels: Vec<Level>,
    anchors: HashMap<usize, Anchored>,
    values: usize,
    whole: Option<Value>,
}

/// `Err` is the end of a sentence.
fn yaml(text: &str) -> Result<Value, String> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| format!("is not YAML: {error}"))?;
        reader.event(event)?;
    }
    reader.whole.ok_or_else(|| "is empty".to_owned())
}

impl Reader {
    fn event(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                Err("has a tag (`!name`), which JSON does not have".to_owned())
            }
            Event::Scalar(text, style, anchor, None) => {
                if let Some(Level { open: Open::Object(fields, key @ None), .. }) = self.levels.last_mut() {
                    if text == "<<" && style == ScalarStyle::Plain {
                        return Err("has a merge key (`<<`): write its members out".to_owned());
                    }
                    if fields.contains_key(text.as_ref()) {
                        return Err(format!("has {} twice in one object", crate::names::shown(&text)));
                    }
                    *key = Some(text.into_owned());
                    return Ok(());
                }
                let value = scalar(&text, style);
                self.count(1)?;
                self.place(value, anchor, 1);
                Ok(())
            }
            Event::Alias(anchor) => {
                let Some(Anchored { value, values }) = self.anchors.get(&anchor) else {
                    return Err("has an alias inside of what it repeats".to_owned());
                };
                if self.awaits_key() {
                    return Err("has a key that is not text".to_owned());
                }
                let values = *values;
                if self.values + values > VALUES_MAX {
                    return Err(too_many());
                }
                let value = value.clone();
                self.count(values)?;
                self.place(value, 0, values);
                Ok(())
            }
            Event::SequenceStart(anchor, None) => self.open(Open::List(Vec::new()), anchor),
            Event::MappingStart(anchor, None) => self.open(Open::Object(Map::new(), None), anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Level { open, anchor, before }) = self.levels.pop() else { return Ok(()) };
                let value = match open {
                    Open::List(items) => Value::Array(items),
                    Open::Object(fields, _) => Value::Object(fields),
                };
                self.place(value, anchor, self.values - before);
                Ok(())
            }
            Event::DocumentStart(_) if self.whole.is_some() => Err("has several documents in it".to_owned()),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                Ok(())
            }
        }
    }

    fn open(&mut self, open: Open, anchor: usize) -> Result<(), String> {
        if self.levels.len() >= DEPTH_MAX {
            return Err(format!("is nested deeper than {DEPTH_MAX}"));
        }
        if self.awaits_key() {
            return Err("has a key that is not text".to_owned());
        }
        let before = self.values;
        self.count(1)?;
        self.levels.push(Level { open, anchor, before });
        Ok(())
    }

    fn count(&mut self, values: usize) -> Result<(), String> {
        self.values += values;
        if self.values > VALUES_MAX { Err(too_many()) } else { Ok(()) }
    }

    fn awaits_key(&self) -> bool {
        matches!(self.levels.last(), Some(Level { open: Open::Object(_, None), .. }))
    }

    fn place(&mut self, value: Value, anchor: usize, values: usize) {
        if anchor > 0 {
            self.anchors.insert(anchor, Anchored { value: value.clone(), values });
        }
        match self.levels.last_mut().map(|level| &mut level.open) {
            None => self.whole = Some(value),
            Some(Open::List(items)) => items.push(value),
            Some(Open::Object(fields, key)) => {
                if let Some(key) = key.take() {
                    fields.insert(key, value);
                }
            }
        }
    }
}

fn too_many() -> String {
    format!("has more than {VALUES_MAX} values, those that aliases repeat included")
}

/// A value of the core schema (YAML 1.2.2, section 10.3.2).
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let is_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'-' | b'+');
    if !text.bytes().any(|byte| byte.is_ascii_digit()) || !text.bytes().all(is_number) {
        return None;
    }
    match text.parse::<i64>() {
        Ok(integer) => Some(integer.into()),
        Err(_) => text.parse::<f64>().ok().and_then(Number::from_f64),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_and_json_are_the_same_document() {
        let text = "\u{feff}openapi: 3.0.3\npaths:\n  /a:\n    get: &get\n      responses: {200: {description: ok}}\n      n: [1, -2.5, 1e3, yes, \"1\", 2026-01-01, 1.2.3, ~]\n    put: *get\n";
        let get = json!({"responses": {"200": {"description": "ok"}}, "n": [1, -2.5, 1000.0, "yes", "1", "2026-01-01", "1.2.3", null]});
        assert_eq!(read(text).unwrap(), json!({"openapi": "3.0.3", "paths": {"/a": {"get": get, "put": get}}}));
        assert_eq!(read(" {\"a\": 1}").unwrap(), json!({"a": 1}));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let bomb = (1..12).fold("a0: &a0 [x]\n".to_owned(), |text, level| {
            let before = format!("*a{}, ", level - 1).repeat(10);
            format!("{text}a{level}: &a{level} [{}]\n", before.trim_end_matches(", "))
        });
        let deep = "[".repeat(200);
        for (text, problem) in [
            ("", "the document is empty"),
            ("{\"a\": }", "the document is not JSON: expected value at line 1 column 7"),
            ("a: !!binary x", "the document has a tag (`!name`), which JSON does not have"),
            ("a: &a {x: 1}\nb:\n  <<: *a", "the document has a merge key (`<<`): write its members out"),
            ("a: 1\na: 2", "the document has \"a\" twice in one object"),
            ("a: &a [*a]", "the document has an alias inside of what it repeats"),
            ("? [x]\n: 1", "the document has a key that is not text"),
            ("a: 1\n---\nb: 2", "the document has several documents in it"),
            (&deep, "the document is nested deeper than 128"),
            (&bomb, "the document has more than 2000000 values, those that aliases repeat included"),
        ] {
            assert_eq!(read(text).unwrap_err().problem, problem);
        }
    }
}
