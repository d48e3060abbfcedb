//! Fields of a form, made of an input schema.
//!
//! References are only followed within the schema. Fields and choices are bounded: anything beyond
//! becomes a field for JSON.

use serde_json::{Map, Value};

use super::{Field, FieldKind, UNWRITTEN};
use crate::bounds::{FORM_CHOICES, FORM_CHOICES_ALL, FORM_DEPTH, FORM_FIELDS, JSON_BYTES};

/// References that are followed in a row.
const HOPS: usize = 8;

/// Keys that lead to another schema. Only one is supported at a time.
const LEADS: [&str; 4] = ["$ref", "allOf", "anyOf", "oneOf"];

/// Other keys that do not restrict the value.
const WORDS: [&str; 8] = ["$schema", "$defs", "$comment", "title", "description", "default", "examples", "deprecated"];

/// Keys of schemas that need JSON instead of fields.
const OTHER_FORMS: [&str; 9] =
    ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "not", "patternProperties", "dependentSchemas"];

/// The fields for a schema; empty if one field takes all arguments as JSON.
pub(super) fn of(schema: &Value) -> Vec<Field> {
    let mut form = FieldsForm { root: schema, fields: FORM_FIELDS, choices: FORM_CHOICES_ALL, bytes: JSON_BYTES };
    let (found, _) = form.resolved(schema);
    found.and_then(|schema| form.fields(schema, "argument", FORM_DEPTH)).unwrap_or_default()
}

/// A form under construction, with what it may still contain.
struct FieldsForm<'s> {
    root: &'s Value,
    fields: usize,
    choices: usize,
    /// Bytes of all choices.
    bytes: usize,
}

impl<'s> FieldsForm<'s> {
    /// The fields of an object. `None` if fields are not suitable, or there are too many.
    fn fields(&mut self, schema: &'s Value, name: &str, depth: usize) -> Option<Vec<Field>> {
        let schema = schema.as_object()?;
        let properties = schema.get("properties")?.as_object()?;
        if OTHER_FORMS.iter().any(|key| schema.contains_key(*key)) || properties.is_empty() {
            return None;
        }
        let names = schema.get("required").and_then(Value::as_array);
        let required: Vec<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
        // Everything required must have a field.
        if required.iter().any(|name| !properties.contains_key(*name)) {
            return None;
        }
        self.fields = self.fields.checked_sub(properties.len())?;
        let numbered = properties.iter().enumerate();
        let field = |(index, (argument, schema)): (usize, (&String, &'s Value))| {
            self.field(format!("{name}-{index}"), argument, schema, required.contains(&argument.as_str()), depth)
        };
        Some(numbered.map(field).collect())
    }

    fn field(&mut self, name: String, argument: &str, schema: &'s Value, required: bool, depth: usize) -> Field {
        let (found, nullable) = self.resolved(schema);
        let kind = found.map_or(FieldKind::Json, |found| self.kind(found, &name, depth));
        let said = |key: &str| [Some(schema), found].into_iter().flatten().find_map(|schema| schema.get(key));
        let words = |key: &str| said(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let description = words("description").or_else(|| words("title")).unwrap_or_default().to_owned();
        let default = said("default").map_or_else(String::new, |value| default_text(value, &kind));
        // Nobody should send invisible characters.
        let default = if crate::text::is_plain(&default) { default } else { String::new() };
        Field { name, argument: argument.to_owned(), description, required, nullable, kind, default }
    }

    /// The kind of a schema other than a reference.
    fn kind(&mut self, schema: &'s Value, name: &str, depth: usize) -> FieldKind {
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return self.choice(values);
        }
        if let Some(value) = schema.get("const") {
            return self.choice(std::slice::from_ref(value));
        }
        match type_of(schema) {
            Some("string") => FieldKind::Text,
            Some("integer") => FieldKind::Integer,
            Some("number") => FieldKind::Number,
            Some("boolean") => FieldKind::Boolean,
            None if any_number(schema).is_some() => FieldKind::AnyNumber,
            Some("array") => self.lines(schema).unwrap_or(FieldKind::Json),
            Some("object") if depth > 0 => {
                self.fields(schema, name, depth - 1).map_or(FieldKind::Json, FieldKind::Group)
            }
            _ => FieldKind::Json,
        }
    }

    /// One of these values, if there is room for them.
    fn choice(&mut self, values: &[Value]) -> FieldKind {
        let left = self.choices.checked_sub(values.len()).filter(|_| values.len() <= FORM_CHOICES);
        let fits = left.is_some() && values.iter().all(|value| takes(value, &mut self.bytes));
        if !fits {
            return FieldKind::Json;
        }
        self.choices = left.unwrap_or_default();
        FieldKind::Choice(values.to_vec())
    }

    /// The kind of a list of values, one per line. Choices are typed as texts.
    fn lines(&self, schema: &'s Value) -> Option<FieldKind> {
        let (items, nullable) = self.resolved(schema.get("items").filter(|_| schema.get("prefixItems").is_none())?);
        let items = items.filter(|_| !nullable)?;
        let is_text = |values: &Vec<Value>| values.iter().all(Value::is_string);
        let each = match items.get("enum").and_then(Value::as_array) {
            Some(values) if is_text(values) => FieldKind::Text,
            Some(_) => return None,
            None if any_number(items).is_some() => FieldKind::AnyNumber,
            None => match type_of(items)? {
                "string" => FieldKind::Text,
                "integer" => FieldKind::Integer,
                "number" => FieldKind::Number,
                "boolean" => FieldKind::Boolean,
                _ => return None,
            },
        };
        Some(FieldKind::Lines(Box::new(each)))
    }

    /// The target of a reference, and true if null is accepted too. `None` if it does not exist, is
    /// too far, or has other keywords next to it.
    fn resolved(&self, schema: &'s Value) -> (Option<&'s Value>, bool) {
        let mut at = schema;
        let mut nullable = false;
        for _ in 0..HOPS {
            let Some(found) = at.as_object() else { return (None, nullable) };
            if let Some(with_null) = any_number(at) {
                return (Some(at), nullable || with_null);
            }
            let leads = found.keys().filter(|key| LEADS.contains(&key.as_str())).count();
            let is_known = |key: &String| LEADS.contains(&key.as_str()) || WORDS.contains(&key.as_str());
            let is_alone = leads == 1 && found.keys().all(is_known);
            let next = match found.get("$ref").and_then(Value::as_str) {
                Some(to) => to.strip_prefix('#').and_then(|to| self.root.pointer(to)),
                None => match LEADS.iter().find_map(|key| members(found, key)) {
                    Some(members) => only(members).map(|(only, with_null)| {
                        nullable |= with_null;
                        only
                    }),
                    None => {
                        let is_nullable = types(at).is_some_and(|types| types.iter().any(|name| name == "null"));
                        return (Some(at), nullable || is_nullable);
                    }
                },
            };
            match next.filter(|_| is_alone) {
                Some(next) => at = next,
                None => return (None, nullable),
            }
        }
        (None, nullable)
    }
}

fn members<'s>(schema: &'s Map<String, Value>, key: &str) -> Option<&'s Vec<Value>> {
    schema.get(key).and_then(Value::as_array)
}

/// True if null is accepted too. `None` unless it is a number, or one of the names of those that
/// JSON lacks. Typed tools also take decimal digits as text.
fn any_number(schema: &Value) -> Option<bool> {
    let members = schema.get("anyOf")?.as_array()?;
    let mut others = members.iter().filter(|member| type_of(member) != Some("null"));
    let is_number = type_of(others.next()?) == Some("number");
    let names = others.next()?.get("enum")?.as_array()?;
    let is_name = |name: &Value| name.as_str().is_some_and(|name| UNWRITTEN.contains(&name));
    let are_texts = others.all(|other| type_of(other) == Some("string"));
    let is_it = is_number && !names.is_empty() && names.iter().all(is_name) && are_texts;
    is_it.then(|| members.iter().any(|member| type_of(member) == Some("null")))
}

/// The only one of these that is not null, and true if null is among them.
fn only(members: &[Value]) -> Option<(&Value, bool)> {
    let is_null = |member: &&Value| type_of(member) == Some("null");
    let mut others = members.iter().filter(|member| !is_null(member));
    let one = others.next()?;
    (others.next().is_none() && members.len() <= 2).then_some((one, members.len() == 2))
}

fn types(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("type").and_then(Value::as_array)
}

/// The only type besides null.
fn type_of(schema: &Value) -> Option<&str> {
    if let Some(types) = types(schema) {
        let mut others = types.iter().filter_map(Value::as_str).filter(|name| *name != "null");
        return others.next().filter(|_| others.next().is_none() && types.len() <= 2);
    }
    let known = schema.get("type").and_then(Value::as_str);
    known.or_else(|| schema.get("properties").map(|_| "object"))
}

/// Takes the bytes of a value from the remaining ones. False if too few remain.
fn takes(value: &Value, left: &mut usize) -> bool {
    let bytes = match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.len(),
        Value::Object(values) => values.keys().map(|key| key.len() + 1).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    let Some(rest) = left.checked_sub(bytes + 8) else { return false };
    *left = rest;
    match value {
        Value::Array(values) => values.iter().all(|value| takes(value, left)),
        Value::Object(values) => values.values().all(|value| takes(value, left)),
        _ => true,
    }
}

fn default_text(value: &Value, kind: &FieldKind) -> String {
    match (kind, value) {
        (FieldKind::Choice(values), value) => {
            values.iter().position(|choice| choice == value).map_or_else(String::new, |index| index.to_string())
        }
        (FieldKind::Text, Value::String(text)) => text.clone(),
        (FieldKind::Lines(each), Value::Array(values)) => {
            let lines: Vec<String> = values.iter().map(|value| default_text(value, each)).collect();
            // Each must survive a round trip.
            let is_line = |line: &String| !line.is_empty() && line.trim() == line && !line.contains(['\n', '\r']);
            if lines.iter().all(is_line) { lines.join("\n") } else { String::new() }
        }
        (FieldKind::Text | FieldKind::Lines(_) | FieldKind::Group(_), _) | (_, Value::Null) => String::new(),
        (_, value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields;
    use super::{Field, FieldKind};

    fn count(fields: &[Field]) -> (usize, usize) {
        fields.iter().fold((0, 0), |(all, choices), field| {
            let (inner, inner_choices) = match &field.kind {
                FieldKind::Group(fields) => count(fields),
                FieldKind::Choice(values) => (0, values.len()),
                _ => (0, 0),
            };
            (all + inner + 1, choices + inner_choices)
        })
    }

    #[test]
    fn references_that_lead_in_circles_or_elsewhere_are_fields_for_json() {
        for (property, defs) in [
            (r##"{"$ref":"#/$defs/a"}"##, r##""a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}"##),
            (r##"{"$ref":"https://elsewhere.example/x"}"##, ""),
            (r##"{"$ref":"#/$defs/none"}"##, ""),
            (r##"{"$ref":"#/$defs/a","minLength":3}"##, r##""a":{"type":"string"}"##),
            (r##"{"anyOf":[{"type":"string"},{"type":"integer"}]}"##, ""),
            (r##"{"type":["string","integer"]}"##, ""),
            (r##"{"allOf":[{"type":"string"}],"anyOf":[{"type":"string"}]}"##, ""),
            (r##"{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"string"}}"##, ""),
        ] {
            let schema = format!(r#"{{"properties":{{"p":{property}}},"$defs":{{{defs}}}}}"#);
            assert_eq!(fields(&schema)[0].kind, FieldKind::Json, "{schema}");
        }
    }

    #[test]
    fn a_schema_that_holds_itself_is_a_form_of_bounded_depth_and_size() {
        let tree = r##"{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{
            "a":{"$ref":"#/$defs/t"},"b":{"$ref":"#/$defs/t"},"c":{"$ref":"#/$defs/t"},"d":{"$ref":"#/$defs/t"}}}}}"##;
        let (all, _) = count(&fields(tree));
        assert!((4..=64).contains(&all), "{all}");
    }

    #[test]
    fn one_long_choice_that_many_fields_name_is_shown_a_bounded_number_of_times() {
        let values: Vec<String> = (0..200).map(|number| format!("\"{number}{}\"", "x".repeat(1_000))).collect();
        let names: Vec<String> = (0..64).map(|number| format!(r##""p{number}":{{"$ref":"#/$defs/e"}}"##)).collect();
        let schema =
            format!(r#"{{"properties":{{{}}},"$defs":{{"e":{{"enum":[{}]}}}}}}"#, names.join(","), values.join(","));
        let (all, choices) = count(&fields(&schema));
        assert_eq!((all, choices), (64, 200), "bytes are spent by the first");
        let short = schema.replace(&"x".repeat(1_000), "x");
        assert_eq!(count(&fields(&short)), (64, 2_000));
    }
}
