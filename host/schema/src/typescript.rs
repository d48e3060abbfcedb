//! JSON Schemas as TypeScript types, for models that write code against them. A type says at most
//! as much as its schema: what has no form in TypeScript is left out, or `unknown`.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::sanitize;

/// Types within types that are written; deeper ones are `unknown`. More than people nest by hand.
const DEPTH_MAX: usize = 12;

/// Bytes of one type at most; what is beyond is `unknown`. About 4,000 tokens.
const BYTES_MAX: usize = 16 << 10;

/// Values of one `enum`, alternatives of one choice, and places of one tuple. More would fill the
/// answer; a wider type stands for the rest.
const CHOICES_MAX: usize = 64;

/// Characters of a comment. Longer descriptions end with an ellipsis.
const COMMENT_CHARS_MAX: usize = 300;

/// The type of the values of a schema, indented for a place this deep.
#[must_use]
pub fn typescript(schema: &Value, indent: usize) -> String {
    let mut writer = Writer { root: schema, left: BYTES_MAX };
    writer.of(schema, Level { depth: 0, indent }).text
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

/// A type as it is written.
#[derive(PartialEq, Eq)]
struct Written {
    text: String,
    form: Form,
}

/// What holds a type together: an operator next to it may bind more strongly.
#[derive(PartialEq, Eq)]
enum Form {
    Single,
    Intersection,
    Union,
}

impl Written {
    fn single(text: impl Into<String>) -> Self {
        Self { text: text.into(), form: Form::Single }
    }

    fn unknown() -> Self {
        Self::single("unknown")
    }

    fn is_unknown(&self) -> bool {
        *self == Self::unknown()
    }

    /// As an operand of an operator that binds most strongly, such as `[]`.
    fn operand(self) -> String {
        if self.form == Form::Single { self.text } else { format!("({})", self.text) }
    }
}

impl Writer<'_> {
    fn of(&mut self, schema: &Value, level: Level) -> Written {
        if level.depth > DEPTH_MAX || self.left == 0 {
            return Written::unknown();
        }
        let written = match schema {
            Value::Bool(false) => Written::single("never"),
            Value::Object(members) => self.of_members(members, level),
            _ => Written::unknown(),
        };
        self.left = self.left.saturating_sub(written.text.len());
        written
    }

    fn of_members(&mut self, schema: &Map<String, Value>, level: Level) -> Written {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let root = self.root;
            let found = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            return found.map_or_else(Written::unknown, |found| self.of(found, level.below()));
        }
        if let Some(value) = schema.get("const") {
            return literal(value);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let beyond = values.iter().skip(CHOICES_MAX).map(kind);
            return union(values.iter().take(CHOICES_MAX).map(literal).chain(beyond).collect());
        }
        let mut parts = self.parts(schema, level);
        parts.retain(|part| !part.is_unknown());
        if parts.is_empty() || says_what_is_within(schema) {
            parts.insert(0, self.own(schema, level));
        }
        intersection(parts)
    }

    /// What the schemas of `oneOf`, `anyOf` and `allOf` say.
    fn parts(&mut self, schema: &Map<String, Value>, level: Level) -> Vec<Written> {
        let mut parts = Vec::new();
        for key in ["oneOf", "anyOf"] {
            if let Some(choices) = schema.get(key).and_then(Value::as_array) {
                let known: Vec<Written> =
                    choices.iter().take(CHOICES_MAX).map(|choice| self.of(choice, level.below())).collect();
                let beyond = choices.iter().skip(CHOICES_MAX);
                let beyond = beyond.map(|choice| choice.get("const").map_or_else(Written::unknown, kind));
                parts.push(union(known.into_iter().chain(beyond).collect()));
            }
        }
        if let Some(all) = schema.get("allOf").and_then(Value::as_array) {
            parts.extend(all.iter().take(CHOICES_MAX).map(|part| self.of(part, level.below())));
        }
        parts
    }

    /// What the schema says besides, by its `type`.
    fn own(&mut self, schema: &Map<String, Value>, level: Level) -> Written {
        match schema.get("type") {
            Some(Value::String(name)) => self.of_type(name, schema, level),
            Some(Value::Array(names)) => {
                let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
                union(names.into_iter().map(|name| self.of_type(name, schema, level)).collect())
            }
            _ if schema.contains_key("properties") => Written::single(self.object(schema, level)),
            _ => Written::unknown(),
        }
    }

    fn of_type(&mut self, name: &str, schema: &Map<String, Value>, level: Level) -> Written {
        Written::single(match name {
            "string" | "boolean" | "null" => name.to_owned(),
            "number" | "integer" => "number".to_owned(),
            "array" => self.array(schema, level),
            "object" => self.object(schema, level),
            _ => return Written::unknown(),
        })
    }

    fn array(&mut self, schema: &Map<String, Value>, level: Level) -> String {
        if let Some(items) = schema.get("prefixItems").and_then(Value::as_array) {
            return self.tuple(items, schema, level);
        }
        let items = schema.get("items").map_or_else(Written::unknown, |items| self.of(items, level.below()));
        format!("{}[]", items.operand())
    }

    /// A tuple: places past `minItems` may be missing, and others may follow unless the schema
    /// forbids them.
    fn tuple(&mut self, items: &[Value], schema: &Map<String, Value>, level: Level) -> String {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok());
        let least = bound("minItems").unwrap_or(0);
        let mut places: Vec<String> = Vec::new();
        for (place, item) in items.iter().take(CHOICES_MAX).enumerate() {
            let item = self.of(item, level.below());
            places.push(if place < least { item.text } else { format!("{}?", item.operand()) });
        }
        let others = match schema.get("items") {
            _ if items.len() > CHOICES_MAX => Some(Written::unknown()),
            _ if bound("maxItems").is_some_and(|most| most <= items.len()) => None,
            Some(Value::Bool(false)) => None,
            Some(others) => Some(self.of(others, level.below())),
            None => Some(Written::unknown()),
        };
        places.extend(others.map(|others| format!("...{}[]", others.operand())));
        format!("[{}]", places.join(", "))
    }

    fn object(&mut self, schema: &Map<String, Value>, level: Level) -> String {
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = match schema.get("additionalProperties") {
            Some(others @ Value::Object(_)) => Some(self.of(others, level.below()).text),
            _ => None,
        };
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
            return format!("Record<string, {}>", others.unwrap_or_else(|| Written::unknown().text));
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
            let of = self.of(property, within).text;
            let _ = writeln!(out, "{}{}{mark}: {of};", spaces(within.indent), typescript_key(name));
        }
        if let Some(others) = others {
            let _ = writeln!(out, "{}[name: string]: {others};", spaces(within.indent));
        }
        let _ = write!(out, "{}}}", spaces(level.indent));
        out
    }
}

fn spaces(indent: usize) -> String {
    "  ".repeat(indent)
}

/// True for a schema that says more than the name of a type.
fn says_what_is_within(schema: &Map<String, Value>) -> bool {
    ["properties", "additionalProperties", "items", "prefixItems"]
        .into_iter()
        .filter_map(|key| schema.get(key))
        .any(|within| !within.is_boolean())
}

fn literal(value: &Value) -> Written {
    match value {
        Value::Array(_) | Value::Object(_) => Written::unknown(),
        value => Written::single(value.to_string()),
    }
}

/// The type of a value that is not written itself.
fn kind(value: &Value) -> Written {
    Written::single(match value {
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Null => "null",
        Value::Array(_) | Value::Object(_) => return Written::unknown(),
    })
}

fn union(types: Vec<Written>) -> Written {
    joined(types, " | ", Form::Union, |one| one.text)
}

fn intersection(types: Vec<Written>) -> Written {
    let text = |one: Written| if one.form == Form::Union { one.operand() } else { one.text };
    joined(types, " & ", Form::Intersection, text)
}

/// The different ones of these types with an operator between them.
fn joined(types: Vec<Written>, operator: &str, form: Form, text: impl Fn(Written) -> String) -> Written {
    let mut different: Vec<Written> = Vec::new();
    for one in types {
        if !different.contains(&one) {
            different.push(one);
        }
    }
    if different.len() > 1 {
        let texts: Vec<String> = different.into_iter().map(text).collect();
        return Written { text: texts.join(operator), form };
    }
    different.pop().unwrap_or_else(Written::unknown)
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
    fn a_type_is_in_parentheses_where_an_operator_beside_it_binds_more_strongly() {
        let object = |name: &str| json!({"type": "object", "properties": {name: {"type": "number"}}});
        let nullable = json!({"type": ["object", "null"], "properties": {"a": {"type": "number"}}});
        let a = "{\n  a?: number;\n}";
        let b = "{\n  b?: number;\n}";
        for (schema, expected) in [
            (json!({"type": "array", "items": nullable}), format!("({a} | null)[]")),
            (json!({"type": "array", "items": {"anyOf": [object("a"), object("b")]}}), format!("({a} | {b})[]")),
            (json!({"type": "array", "items": {"allOf": [object("a"), object("b")]}}), format!("({a} & {b})[]")),
            (json!({"type": "array", "items": {"const": "a b"}}), "\"a b\"[]".to_owned()),
            (json!({"allOf": [{"oneOf": [object("a"), object("b")]}, object("a")]}), format!("({a} | {b}) & {a}")),
        ] {
            assert_eq!(typescript(&schema, 0), expected, "{schema}");
        }
    }

    #[test]
    fn choices_beside_properties_leave_them_written() {
        let properties = json!({"a": {"type": "string"}});
        let a = "{\n  a?: string;\n}";
        let choice = json!([{"properties": {"b": {"const": 1}}}, {"type": "null"}]);
        for (beside, expected) in [
            (json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}), a.to_owned()),
            (json!({"allOf": [{"if": {"required": ["a"]}, "then": {"required": ["b"]}}]}), a.to_owned()),
            (json!({"oneOf": choice}), format!("{a} & ({{\n  b?: 1;\n}} | null)")),
        ] {
            let mut schema = json!({"type": "object", "properties": properties});
            schema.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
            assert_eq!(typescript(&schema, 0), expected, "{schema}");
        }
        let bare = json!({"type": "string", "anyOf": [{"const": "a"}, {"const": "b"}]});
        assert_eq!(typescript(&bare, 0), "\"a\" | \"b\"");
    }

    #[test]
    fn values_and_choices_past_the_bound_widen_the_type() {
        let names: Vec<Value> = (0..CHOICES_MAX + 2).map(|number| json!(format!("v{number}"))).collect();
        let constants: Vec<Value> = names.iter().map(|name| json!({"const": name})).collect();
        let types: Vec<Value> = names.iter().map(|name| json!({"type": "object", "title": name})).collect();
        for (schema, expected) in [
            (json!({"enum": names}), "\"v63\" | string"),
            (json!({"oneOf": constants}), "\"v63\" | string"),
            (json!({"anyOf": types}), "Record<string, unknown> | unknown"),
        ] {
            let written = typescript(&schema, 0);
            assert!(written.ends_with(expected), "{written}");
        }
        let places = json!({"type": "array", "prefixItems": vec![json!(true); CHOICES_MAX + 1], "items": false});
        assert!(typescript(&places, 0).ends_with("unknown?, ...unknown[]]"));
    }

    #[test]
    fn a_tuple_is_as_open_as_its_schema() {
        let items = json!([{"type": "string"}, {"type": ["number", "null"]}]);
        for (more, expected) in [
            (json!({}), "[string?, (number | null)?, ...unknown[]]"),
            (json!({"minItems": 2}), "[string, number | null, ...unknown[]]"),
            (json!({"minItems": 1, "items": false}), "[string, (number | null)?]"),
            (json!({"minItems": 2, "maxItems": 2}), "[string, number | null]"),
            (
                json!({"minItems": 2, "items": {"type": ["string", "null"]}}),
                "[string, number | null, ...(string | null)[]]",
            ),
        ] {
            let mut schema = json!({"type": "array", "prefixItems": items});
            schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(typescript(&schema, 0), expected, "{schema}");
        }
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
