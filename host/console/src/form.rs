//! The form that tries a tool: fields from its input schema, and arguments from its fields.
//!
//! A schema whose properties are plain gets a field for each: text, number, yes or no, a choice, or
//! JSON for anything else. Any other schema gets one field for all arguments as JSON. A field that
//! stays empty is left out, unless the schema requires a text there.
//!
//! Must not hold: checks of values against the schema, which the call itself makes.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::bounds::{FORM_CHOICES, FORM_FIELDS, JSON_BYTES};

/// The name of the field that holds all arguments as JSON.
pub const ARGUMENTS: &str = "arguments";

/// A field of the form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The name in the form: `argument-0`.
    pub name: String,
    /// The argument's name.
    pub argument: String,
    /// Words of the schema about it; may be empty.
    pub description: String,
    /// True if the schema requires it.
    pub required: bool,
    /// The kind of its values.
    pub kind: FieldKind,
    /// The text of the schema's default; empty without one, and for one that is long or hides
    /// letters.
    pub default: String,
}

/// The kind of a field's values.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// Any text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// One of these values; the form sends its index.
    Choice(Vec<Value>),
    /// JSON text.
    Json,
}

/// The fields for a schema; empty if one field takes all arguments as JSON.
#[must_use]
pub fn fields(schema: &str) -> Vec<Field> {
    parse(schema).map_or_else(Vec::new, |schema| fields_of(&schema))
}

/// True if the schema is known to take no arguments: the form is a button.
#[must_use]
pub fn takes_nothing(schema: &str) -> bool {
    parse(schema).is_some_and(|schema| {
        let no_properties = schema.get("properties").is_none_or(|all| all.as_object().is_some_and(Map::is_empty));
        no_properties && schema.get("additionalProperties") == Some(&Value::Bool(false))
    })
}

/// The arguments, as JSON text, that a form was sent with.
///
/// # Errors
/// One sentence for the person, where a field is not what its kind says.
pub fn arguments(schema: &str, sent: &[(String, String)]) -> Result<String, String> {
    let text = |name: &str| sent.iter().find(|(field, _)| field == name).map_or("", |(_, text)| text.as_str());
    if let Some((_, whole)) = sent.iter().find(|(field, _)| field == ARGUMENTS) {
        let whole = if whole.trim().is_empty() { "{}" } else { whole.as_str() };
        return whole_arguments(whole);
    }
    let mut members = Vec::new();
    for field in fields(schema) {
        if let Some(value) = value(&field, text(&field.name))? {
            members.push(format!("{}:{value}", Value::from(field.argument)));
        }
    }
    Ok(format!("{{{}}}", members.join(",")))
}

fn whole_arguments(text: &str) -> Result<String, String> {
    let raw: Box<RawValue> =
        serde_json::from_str(text).map_err(|problem| format!("The arguments are not JSON: {}.", place_of(&problem)))?;
    if raw.get().starts_with('{') {
        Ok(raw.get().to_owned())
    } else {
        Err("The arguments have to be a JSON object: {…}.".to_owned())
    }
}

/// JSON text of one argument; none where it is left out.
fn value(field: &Field, text: &str) -> Result<Option<String>, String> {
    let name = crate::text::words(&field.argument, 60);
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return match field.kind {
            FieldKind::Text if field.required || !text.is_empty() => {
                Ok(Some(Value::from(line_feeds(text)).to_string()))
            }
            _ if field.required => Err(format!("\"{name}\" is required.")),
            _ => Ok(None),
        };
    }
    match &field.kind {
        FieldKind::Text => Ok(Some(Value::from(line_feeds(text)).to_string())),
        FieldKind::Integer | FieldKind::Number => {
            number(trimmed).ok_or_else(|| format!("\"{name}\" is not a number.")).map(Some)
        }
        FieldKind::Boolean => match trimmed {
            "true" | "false" => Ok(Some(trimmed.to_owned())),
            _ => Err(format!("\"{name}\" is neither true nor false.")),
        },
        FieldKind::Choice(values) => {
            let chosen = trimmed.parse().ok().and_then(|index: usize| values.get(index));
            chosen.map(|value| Some(value.to_string())).ok_or_else(|| format!("\"{name}\" is none of its choices."))
        }
        FieldKind::Json => {
            let raw: Result<Box<RawValue>, _> = serde_json::from_str(trimmed);
            raw.map(|raw| Some(raw.get().to_owned()))
                .map_err(|problem| format!("\"{name}\" is not JSON: {}. A text stands in quotes.", place_of(&problem)))
        }
    }
}

/// Browsers send line breaks as CR and LF.
fn line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// A JSON number as it was written.
fn number(text: &str) -> Option<String> {
    let raw: Box<RawValue> = serde_json::from_str(text).ok()?;
    raw.get().starts_with(|first: char| first == '-' || first.is_ascii_digit()).then(|| raw.get().to_owned())
}

fn place_of(problem: &serde_json::Error) -> String {
    format!("line {}, column {}", problem.line(), problem.column())
}

fn parse(schema: &str) -> Option<Map<String, Value>> {
    if schema.len() > JSON_BYTES {
        return None;
    }
    match serde_json::from_str(schema) {
        Ok(Value::Object(schema)) => Some(schema),
        _ => None,
    }
}

fn fields_of(schema: &Map<String, Value>) -> Vec<Field> {
    const OTHER_FORMS: [&str; 6] = ["$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"];
    let properties = schema.get("properties").and_then(Value::as_object);
    let plain = !OTHER_FORMS.iter().any(|key| schema.contains_key(*key));
    let Some(properties) = properties.filter(|all| plain && all.len() <= FORM_FIELDS) else { return Vec::new() };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map_or_else(Vec::new, |names| names.iter().filter_map(Value::as_str).collect());
    // Whatever is required has to have a field.
    if required.iter().any(|name| !properties.contains_key(*name)) {
        return Vec::new();
    }
    let numbered = properties.iter().enumerate();
    numbered.map(|(index, (name, schema))| field(index, name, schema, required.contains(&name.as_str()))).collect()
}

fn field(index: usize, name: &str, schema: &Value, required: bool) -> Field {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    let kind = kind(schema);
    let default = schema.get("default").map_or_else(String::new, |value| default_text(value, &kind));
    // Nobody should send what they cannot see.
    let default = if crate::text::is_plain(&default) { default } else { String::new() };
    let description = Some(text("description")).filter(|text| !text.is_empty()).unwrap_or_else(|| text("title"));
    Field { name: format!("argument-{index}"), argument: name.to_owned(), description, required, kind, default }
}

fn kind(schema: &Value) -> FieldKind {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return if values.len() <= FORM_CHOICES { FieldKind::Choice(values.clone()) } else { FieldKind::Json };
    }
    if let Some(value) = schema.get("const") {
        return FieldKind::Choice(vec![value.clone()]);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => FieldKind::Text,
        Some("integer") => FieldKind::Integer,
        Some("number") => FieldKind::Number,
        Some("boolean") => FieldKind::Boolean,
        _ => FieldKind::Json,
    }
}

fn default_text(value: &Value, kind: &FieldKind) -> String {
    match (kind, value) {
        (FieldKind::Choice(values), value) => {
            values.iter().position(|choice| choice == value).map_or_else(String::new, |index| index.to_string())
        }
        (FieldKind::Text, Value::String(text)) => text.clone(),
        (FieldKind::Text, _) => String::new(),
        (_, value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{FieldKind, arguments, fields, takes_nothing};

    const SCHEMA: &str = r#"{"type":"object","required":["city","note"],"properties":{
        "city":{"type":"string","description":"Where"},"days":{"type":"integer","default":3},
        "scale":{"enum":["C","F",7]},"exact":{"type":"boolean"},"more":{"type":["string","null"]},
        "note":{"type":"string"},"at":{"type":"array"}}}"#;

    fn sent(fields: &[(&str, &str)]) -> Vec<(String, String)> {
        fields.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_schema_becomes_fields_of_their_kinds() {
        let fields = fields(SCHEMA);
        let kinds: Vec<&FieldKind> = fields.iter().map(|field| &field.kind).collect();
        assert!(matches!(
            kinds[..],
            [
                FieldKind::Text,
                FieldKind::Integer,
                FieldKind::Choice(_),
                FieldKind::Boolean,
                FieldKind::Json,
                FieldKind::Text,
                FieldKind::Json
            ]
        ));
        assert_eq!(
            (fields[0].required, fields[0].description.as_str(), fields[1].default.as_str()),
            (true, "Where", "3")
        );
    }

    #[test]
    fn fields_become_arguments() {
        let form = [
            ("argument-0", "Bern\r\n\"x\""),
            ("argument-1", " 1e2 "),
            ("argument-2", "2"),
            ("argument-3", "true"),
            ("argument-4", "null"),
            ("argument-5", ""),
            ("argument-6", "[1, 2.50]"),
        ];
        let json = r#"{"city":"Bern\n\"x\"","days":1e2,"scale":7,"exact":true,"more":null,"note":"","at":[1, 2.50]}"#;
        assert_eq!(arguments(SCHEMA, &sent(&form)).as_deref(), Ok(json));
        assert_eq!(arguments(SCHEMA, &[]).as_deref(), Ok(r#"{"city":"","note":""}"#));
    }

    #[test]
    fn a_field_of_another_kind_is_named() {
        for (field, text, part) in [
            ("argument-1", "x", "\"days\" is not a number."),
            ("argument-1", "\"1\"", "not a number"),
            ("argument-2", "3", "choices"),
            ("argument-3", "yes", "neither"),
            ("argument-6", "[", "not JSON: line 1, column 1."),
        ] {
            let problem = arguments(SCHEMA, &sent(&[(field, text)])).unwrap_err();
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn any_other_schema_takes_its_arguments_as_json() {
        let many: String = (0..65).map(|index| format!("\"p{index}\":{{}},")).collect();
        let many = format!("{{\"properties\":{{{}}}}}", many.trim_end_matches(','));
        for schema in [
            "",
            "true",
            "[]",
            "{}",
            r##"{"$ref":"#/x","properties":{"a":{}}}"##,
            r#"{"properties":{"a":{}},"required":["b"]}"#,
            many.as_str(),
        ] {
            assert_eq!(fields(schema), [], "{schema}");
        }
        let whole = |text: &str| arguments("{}", &sent(&[("arguments", text)]));
        assert_eq!(whole(" {\"a\": 1e400} ").as_deref(), Ok("{\"a\": 1e400}"));
        assert_eq!(whole("").as_deref(), Ok("{}"));
        assert!(whole("[]").is_err() && whole("{").is_err() && whole(&"[".repeat(100_000)).is_err());
        assert!(takes_nothing(r#"{"properties":{},"additionalProperties":false}"#) && !takes_nothing("{}"));
    }
}
