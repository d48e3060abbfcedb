//! JSON Schemas as TypeScript types, for models that write code against them. A type says at most
//! as much as its schema: what has no form in TypeScript is left out, or `unknown`.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::sanitize;

/// Types within types that are written; deeper ones are `unknown`. More than people nest by hand.
const DEPTH_MAX: usize = 12;

/// Bytes of one type at most; what is beyond is `unknown`. About 4,000 tokens.
const BYTES_MAX: usize = 16 << 10;

/// Values of one `enum`, and alternatives of one choice.
const CHOICES_MAX: usize = 64;

/// Characters of a comment. Longer descriptions end with an ellipsis.
const COMMENT_CHARS_MAX: usize = 300;

/// The type of the values of a schema, indented for a place this deep.
#[must_use]
pub fn typescript(schema: &Value, indent: usize) -> String {
    let mut writer = Writer { root: schema, left: BYTES_MAX };
    writer.of(schema, Level { depth: 0, indent })
}

/// A text as a comment of one or more lines, indented; empty for an empty text.
#[must_use]
pub fn typescript_comment(text: &str, indent: usize) -> String {
    let text = sanitize::text(text);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("*/", "* /");
    if text.is_empty() {
        return String::new();
    }
    let short: String = text.chars().take(COMMENT_CHARS_MAX).collect();
    let ellipsis = if short.len() < text.len() { "…" } else { "" };
    format!("{}/** {short}{ellipsis} */\n", spaces(indent))
}

/// A name as a key of an object type or a property: in quotes where it is not an identifier.
#[must_use]
pub fn typescript_key(name: &str) -> String {
    if is_identifier(name) { name.to_owned() } else { Value::from(name).to_string() }
}

struct Writer<'s> {
    root: &'s Value,
    left: usize,
}

#[derive(Clone, Copy)]
struct Level {
    depth: usize,
    indent: usize,
}

impl Level {
    const fn below(self) -> Self {
        Self { depth: self.depth + 1, indent: self.indent }
    }

    const fn indented(self) -> Self {
        Self { depth: self.depth + 1, indent: self.indent + 1 }
    }
}

impl Writer<'_> {
    fn of(&mut self, schema: &Value, level: Level) -> String {
        if level.depth > DEPTH_MAX || self.left == 0 {
            return unknown();
        }
        let written = match schema {
            Value::Bool(false) => "never".to_owned(),
            Value::Object(members) => self.of_members(members, level),
            _ => unknown(),
        };
        self.left = self.left.saturating_sub(written.len());
        written
    }

    fn of_members(&mut self, schema: &Map<String, Value>, level: Level) -> String {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let root = self.root;
            let found = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            return found.map_or_else(unknown, |found| self.of(found, level.below()));
        }
        if let Some(value) = schema.get("const") {
            return literal(value);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return union(values.iter().take(CHOICES_MAX).map(literal).collect());
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(choices) = schema.get(key).and_then(Value::as_array) {
                let choices = choices.iter().take(CHOICES_MAX);
                return union(choices.map(|choice| self.of(choice, level.below())).collect());
            }
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            let parts: Vec<String> =
                parts.iter().take(CHOICES_MAX).map(|part| grouped(self.of(part, level.below()))).collect();
            return if parts.is_empty() { unknown() } else { parts.join(" & ") };
        }
        match schema.get("type") {
            Some(Value::String(name)) => self.of_type(name, schema, level),
            Some(Value::Array(names)) => {
                let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
                union(names.into_iter().map(|name| self.of_type(name, schema, level)).collect())
            }
            _ if schema.contains_key("properties") => self.object(schema, level),
            _ => unknown(),
        }
    }

    fn of_type(&mut self, name: &str, schema: &Map<String, Value>, level: Level) -> String {
        match name {
            "string" | "boolean" | "null" => name.to_owned(),
            "number" | "integer" => "number".to_owned(),
            "array" => self.array(schema, level),
            "object" => self.object(schema, level),
            _ => unknown(),
        }
    }

    fn array(&mut self, schema: &Map<String, Value>, level: Level) -> String {
        if let Some(items) = schema.get("prefixItems").and_then(Value::as_array) {
            let items: Vec<String> = items.iter().take(CHOICES_MAX).map(|item| self.of(item, level.below())).collect();
            return format!("[{}]", items.join(", "));
        }
        let items = schema.get("items").map_or_else(unknown, |items| self.of(items, level.below()));
        format!("{}[]", grouped(items))
    }

    fn object(&mut self, schema: &Map<String, Value>, level: Level) -> String {
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = match schema.get("additionalProperties") {
            Some(others @ Value::Object(_)) => Some(self.of(others, level.below())),
            _ => None,
        };
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
            return format!("Record<string, {}>", others.unwrap_or_else(unknown));
        };
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let within = level.indented();
        let mut out = "{\n".to_owned();
        for (name, property) in properties {
            if self.left < out.len() {
                let _ = writeln!(out, "{}// …", spaces(within.indent));
                break;
            }
            let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
            out.push_str(&typescript_comment(description, within.indent));
            let mark = if required.contains(&name.as_str()) { "" } else { "?" };
            let of = self.of(property, within);
            let _ = writeln!(out, "{}{}{mark}: {of};", spaces(within.indent), typescript_key(name));
        }
        if let Some(others) = others {
            let _ = writeln!(out, "{}[name: string]: {others};", spaces(within.indent));
        }
        let _ = write!(out, "{}}}", spaces(level.indent));
        out
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn spaces(indent: usize) -> String {
    "  ".repeat(indent)
}

fn literal(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => unknown(),
        value => value.to_string(),
    }
}

fn union(types: Vec<String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for one in types {
        if !different.contains(&one) {
            different.push(one);
        }
    }
    if different.is_empty() { unknown() } else { different.join(" | ") }
}

/// In parentheses, where an operator behind it would bind more strongly.
fn grouped(written: String) -> String {
    let is_plain = written.starts_with('{') || !written.contains([' ']);
    if is_plain { written } else { format!("({written})") }
}

fn is_identifier(name: &str) -> bool {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_' || first == '$');
    begins && name.chars().all(|next| next.is_ascii_alphanumeric() || next == '_' || next == '$')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_written_as_types() {
        for (schema, expected) in [
            (json!({"type": "string"}), "string"),
            (json!({"type": "integer", "minimum": 1}), "number"),
            (json!({"type": ["string", "null"]}), "string | null"),
            (json!({"enum": ["a", 1, null]}), "\"a\" | 1 | null"),
            (json!({"const": true}), "true"),
            (json!({"type": "array", "items": {"type": ["string", "number"]}}), "(string | number)[]"),
            (json!({"type": "array"}), "unknown[]"),
            (json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}), "[string, number]"),
            (json!({"oneOf": [{"type": "string"}, {"type": "string"}, {"type": "null"}]}), "string | null"),
            (json!({"allOf": [{"type": "string"}, {"enum": ["a", "b"]}]}), "string & (\"a\" | \"b\")"),
            (json!({"type": "object"}), "Record<string, unknown>"),
            (json!({"type": "object", "additionalProperties": {"type": "number"}}), "Record<string, number>"),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "boolean"}}}), "boolean"),
            (json!({"$ref": "https://example.com/a"}), "unknown"),
            (json!({"$ref": "#"}), "unknown"),
            (json!(true), "unknown"),
            (json!(false), "never"),
            (json!({}), "unknown"),
        ] {
            assert_eq!(typescript(&schema, 0), expected, "{schema}");
        }
        let object = json!({
            "type": "object",
            "properties": {
                "a-b": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}}}},
                "city": {"type": "string", "description": "Where. */ alert()"},
            },
            "required": ["city"],
        });
        let expected = "{\n  \"a-b\"?: {\n    x?: number;\n  }[];\n  /** Where. * / alert() */\n  city: string;\n}";
        assert_eq!(typescript(&object, 0), expected);
    }

    #[test]
    fn no_schema_makes_a_type_without_end() {
        let mut wide = Map::new();
        for number in 0..100_000 {
            wide.insert(format!("property_{number}"), json!({"type": "string"}));
        }
        let circle = json!({"anyOf": vec![json!({"$ref": "#"}); 60]});
        for schema in [json!({"type": "object", "properties": wide}), circle] {
            assert!(typescript(&schema, 0).len() < 2 * BYTES_MAX);
        }
    }
}
