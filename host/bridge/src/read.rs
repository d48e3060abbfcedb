//! A document's text as a value: JSON, or YAML 1.2's core schema.
//!
//! Anchors and aliases are read. What an anchor keeps and what an alias repeats counts, in values
//! and in bytes of text: a document that would be a thousand times as large as it is ends with an
//! error. Tags and merge keys are refused.
use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

use crate::BridgeError;
use crate::limits::DOCUMENT_BYTES_MAX;

/// Values of a document, copies included. 2 million: GitHub's document has 700,000, and a value
/// takes some 100 bytes.
const VALUES_MAX: usize = 2_000_000;

/// Bytes of all texts of a document in YAML, copies included. Twice the largest document.
const TEXT_BYTES_MAX: usize = 2 * DOCUMENT_BYTES_MAX;

/// Commas, colons and brackets of a document in JSON, those within texts included. 5 million: a
/// value has one or two before it, and GitHub's document has 700,000 values.
const JSON_MARKS_MAX: usize = 5_000_000;

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
        // Before anything is made: each value but the first stands behind one of these.
        let values = text.bytes().filter(|byte| matches!(byte, b'[' | b'{' | b',' | b':')).count();
        if values > JSON_MARKS_MAX {
            let problem = format!("the document has more than {JSON_MARKS_MAX} commas, colons and brackets");
            return Err(BridgeError::new(problem, "cut it down to the operations that you need"));
        }
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

/// What a value takes.
#[derive(Clone, Copy, Default)]
struct Size {
    values: usize,
    /// Of texts, keys included.
    bytes: usize,
}

/// A list or an object with its anchor, and what the values before it take.
struct Level {
    open: Open,
    anchor: usize,
    before: Size,
}

/// A value that aliases repeat.
struct Anchored {
    value: Value,
    size: Size,
}

#[derive(Default)]
struct Reader {
    levels: Vec<Level>,
    anchors: HashMap<usize, Anchored>,
    /// What all values take, copies included.
    size: Size,
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
                    let bytes = text.len();
                    *key = Some(text.into_owned());
                    return self.count(Size { values: 0, bytes });
                }
                let size = Size { values: 1, bytes: text.len() };
                self.count(size)?;
                self.place(scalar(&text, style), anchor, size)
            }
            Event::Alias(anchor) => {
                let Some(size) = self.anchors.get(&anchor).map(|anchored| anchored.size) else {
                    return Err("has an alias inside of what it repeats".to_owned());
                };
                if self.awaits_key() {
                    return Err("has a key that is not text".to_owned());
                }
                self.count(size)?;
                let value = self.anchors.get(&anchor).map(|anchored| anchored.value.clone());
                self.place(value.unwrap_or_default(), 0, size)
            }
            Event::SequenceStart(anchor, None) => self.open(Open::List(Vec::new()), anchor),
            Event::MappingStart(anchor, None) => self.open(Open::Object(Map::new(), None), anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Level { open, anchor, before }) = self.levels.pop() else { return Ok(()) };
                let value = match open {
                    Open::List(items) => Value::Array(items),
                    Open::Object(fields, _) => Value::Object(fields),
                };
                let values = self.size.values - before.values;
                let bytes = self.size.bytes - before.bytes;
                self.place(value, anchor, Size { values, bytes })
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
        let before = self.size;
        self.count(Size { values: 1, bytes: 0 })?;
        self.levels.push(Level { open, anchor, before });
        Ok(())
    }

    fn count(&mut self, size: Size) -> Result<(), String> {
        self.size.values += size.values;
        self.size.bytes += size.bytes;
        let of = match self.size {
            Size { values, .. } if values > VALUES_MAX => format!("{VALUES_MAX} values"),
            Size { bytes, .. } if bytes > TEXT_BYTES_MAX => format!("{TEXT_BYTES_MAX} bytes of text"),
            Size { .. } => return Ok(()),
        };
        Err(format!("has more than {of}, copies for its anchors and aliases included"))
    }

    fn awaits_key(&self) -> bool {
        matches!(self.levels.last(), Some(Level { open: Open::Object(_, None), .. }))
    }

    fn place(&mut self, value: Value, anchor: usize, size: Size) -> Result<(), String> {
        if anchor > 0 {
            // The copy that aliases repeat.
            self.count(size)?;
            self.anchors.insert(anchor, Anchored { value: value.clone(), size });
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
        Ok(())
    }
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
            (&bomb, "the document has more than 2000000 values, copies for its anchors and aliases included"),
        ] {
            assert_eq!(read(text).unwrap_err().problem, problem);
        }
    }

    #[test]
    fn what_anchors_keep_and_aliases_repeat_counts() {
        let values = "the document has more than 2000000 values, copies for its anchors and aliases included";
        let bytes = "the document has more than 67108864 bytes of text, copies for its anchors and aliases included";
        // Anchors within anchors: each keeps all that is in it.
        let nested = (0..100).map(|level| format!("&a{level} [")).collect::<String>() + &"x,".repeat(50_000);
        let nested = format!("{nested}{}", "]".repeat(100));
        assert_eq!(read(&nested).unwrap_err().problem, values);
        // One long text, often.
        let long = format!("a: &a {}\nb: [{}]", "x".repeat(1_000_000), "*a,".repeat(100));
        assert_eq!(read(&long).unwrap_err().problem, bytes);
        let key = format!("a: &a {{? {}\n : 1}}\nb: [{}]", "x".repeat(1_000), "*a,".repeat(100_000));
        assert_eq!(read(&key).unwrap_err().problem, bytes);
        // Many values of JSON, before any is made.
        let marks = format!("{{\"a\": [{}0]}}", "0,".repeat(5_000_000));
        assert!(read(&marks).unwrap_err().problem.contains("5000000 commas"));
    }
}
