//! The form that tries a tool: fields from its input schema, and arguments from its fields.
//!
//! A schema whose properties are plain gets a field for each: text, number, yes or no, a choice, a
//! list with a line for each value, a group of fields, or JSON for anything else. Any other schema
//! gets one field for all arguments as JSON. An empty field is omitted, unless the schema requires
//! a text; a required one that may be null becomes null.
//!
//! Must not hold: checks of values against the schema, which the call itself makes.

mod fields;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::bounds::JSON_BYTES;

/// The name of the field that holds all arguments as JSON.
pub const ARGUMENTS: &str = "arguments";

/// Numbers that JSON cannot express. Tools of typed components accept their names as texts.
const UNWRITTEN: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// A field of the form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The name in the form, by indices: `argument-0`, and `argument-0-2` within it.
    pub name: String,
    /// The argument's name.
    pub argument: String,
    /// The schema's description; may be empty.
    pub description: String,
    /// True if the schema requires it.
    pub required: bool,
    /// True if the schema also accepts null.
    pub nullable: bool,
    /// The kind of its values.
    pub kind: FieldKind,
    /// The schema's default as text; empty if there is none, or if it is long or has invisible
    /// characters.
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
    /// A number, or the name of one that JSON lacks: `NaN`, `Infinity`, `-Infinity`.
    AnyNumber,
    /// Yes or no.
    Boolean,
    /// One of these values; the form sends its index.
    Choice(Vec<Value>),
    /// Values of this kind, one per line.
    Lines(Box<FieldKind>),
    /// An object of these.
    Group(Vec<Field>),
    /// JSON text.
    Json,
}

/// The fields for a schema; empty if one field takes all arguments as JSON.
#[must_use]
pub fn fields(schema: &str) -> Vec<Field> {
    parse(schema).map_or_else(Vec::new, |schema| fields::of(&schema))
}

/// True if the schema accepts no arguments: then the form is a button.
#[must_use]
pub fn takes_nothing(schema: &str) -> bool {
    parse(schema).is_some_and(|schema| {
        let no_properties = schema.get("properties").is_none_or(|all| all.as_object().is_some_and(Map::is_empty));
        no_properties && schema.get("additionalProperties") == Some(&Value::Bool(false))
    })
}

/// The arguments of a submitted form, as JSON text.
///
/// # Errors
///
/// One sentence for the person: a field has an invalid value.
pub fn arguments(schema: &str, sent: &[(String, String)]) -> Result<String, String> {
    let text = |name: &str| sent.iter().find(|(field, _)| field == name).map_or("", |(_, text)| text.as_str());
    if let Some((_, whole)) = sent.iter().find(|(field, _)| field == ARGUMENTS) {
        let whole = if whole.trim().is_empty() { "{}" } else { whole.as_str() };
        return whole_arguments(whole);
    }
    object(&fields(schema), "", &text)
}

/// An object of the fields that are not omitted. `path` precedes their names in errors.
fn object<'s>(fields: &[Field], path: &str, text: &impl Fn(&str) -> &'s str) -> Result<String, String> {
    let mut members = Vec::new();
    for field in fields {
        let name = format!("{path}{}", crate::text::words(&field.argument, 60));
        let value = match &field.kind {
            FieldKind::Group(_) if !field.required && is_untouched(field, text) => None,
            FieldKind::Group(_) if field.nullable && is_untouched(field, text) => Some("null".to_owned()),
            FieldKind::Group(fields) => Some(object(fields, &format!("{name}."), text)?),
            _ => value(field, &name, text(&field.name))?,
        };
        members.extend(value.map(|value| format!("{}:{value}", Value::from(field.argument.as_str()))));
    }
    Ok(format!("{{{}}}", members.join(",")))
}

/// True if nothing was filled in.
fn is_untouched<'s>(field: &Field, text: &impl Fn(&str) -> &'s str) -> bool {
    match &field.kind {
        FieldKind::Group(fields) => fields.iter().all(|field| is_untouched(field, text)),
        _ => text(&field.name).trim().is_empty(),
    }
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

/// JSON text of one argument; `None` if it is omitted.
fn value(field: &Field, name: &str, text: &str) -> Result<Option<String>, String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return match field.kind {
            _ if field.required && field.nullable => Ok(Some("null".to_owned())),
            FieldKind::Lines(_) if field.required => Ok(Some("[]".to_owned())),
            FieldKind::Text if field.required || !text.is_empty() => {
                Ok(Some(Value::from(line_feeds(text)).to_string()))
            }
            _ if field.required => Err(format!("\"{name}\" is required.")),
            _ => Ok(None),
        };
    }
    let FieldKind::Lines(each) = &field.kind else { return one(&field.kind, name, text).map(Some) };
    let lines = trimmed.lines().map(str::trim).filter(|line| !line.is_empty());
    let values: Result<Vec<String>, String> = lines.map(|line| one(each, name, line)).collect();
    Ok(Some(format!("[{}]", values?.join(","))))
}

/// JSON text of a non-empty value.
fn one(kind: &FieldKind, name: &str, text: &str) -> Result<String, String> {
    let trimmed = text.trim();
    match kind {
        FieldKind::Text => Ok(Value::from(line_feeds(text)).to_string()),
        FieldKind::Integer | FieldKind::Number => number(trimmed).ok_or_else(|| format!("\"{name}\" is not a number.")),
        FieldKind::AnyNumber if UNWRITTEN.contains(&trimmed) => Ok(Value::from(trimmed).to_string()),
        FieldKind::AnyNumber => number(trimmed).ok_or_else(|| format!("\"{name}\" is not a number.")),
        FieldKind::Boolean => match trimmed {
            "true" | "false" => Ok(trimmed.to_owned()),
            _ => Err(format!("\"{name}\" is neither true nor false.")),
        },
        FieldKind::Choice(values) => {
            let chosen = trimmed.parse().ok().and_then(|index: usize| values.get(index));
            chosen.map(Value::to_string).ok_or_else(|| format!("\"{name}\" is not one of its choices."))
        }
        FieldKind::Json | FieldKind::Lines(_) | FieldKind::Group(_) => {
            let raw: Result<Box<RawValue>, _> = serde_json::from_str(trimmed);
            raw.map(|raw| raw.get().to_owned())
                .map_err(|problem| format!("\"{name}\" is not JSON: {}. A text stands in quotes.", place_of(&problem)))
        }
    }
}

/// Browsers send line breaks as CR and LF.
fn line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// A JSON number, unchanged.
fn number(text: &str) -> Option<String> {
    let raw: Box<RawValue> = serde_json::from_str(text).ok()?;
    raw.get().starts_with(|first: char| first == '-' || first.is_ascii_digit()).then(|| raw.get().to_owned())
}

fn place_of(problem: &serde_json::Error) -> String {
    format!("line {}, column {}", problem.line(), problem.column())
}

fn parse(schema: &str) -> Option<Value> {
    if schema.len() > JSON_BYTES {
        return None;
    }
    serde_json::from_str(schema).ok().filter(Value::is_object)
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
                FieldKind::Text,
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
            ("argument-4", ""),
            ("argument-5", ""),
            ("argument-6", "[1, 2.50]"),
        ];
        let json = r#"{"city":"Bern\n\"x\"","days":1e2,"scale":7,"exact":true,"note":"","at":[1, 2.50]}"#;
        assert_eq!(arguments(SCHEMA, &sent(&form)).as_deref(), Ok(json));
        assert_eq!(arguments(SCHEMA, &[]).as_deref(), Ok(r#"{"city":"","note":""}"#));
    }

    const TYPED: &str = r##"{"type":"object","required":["quantity","to","tag"],"additionalProperties":false,"$defs":{
        "unit":{"type":"string","enum":["metre","foot"]},
        "quantity":{"type":"object","required":["value","unit"],"properties":{
            "value":{"type":"number"},"unit":{"$ref":"#/$defs/unit"},"about":{"type":"object","properties":{"by":{"type":"string"}}}}}},
        "properties":{"quantity":{"$ref":"#/$defs/quantity","description":"How much"},
            "ratio":{"anyOf":[{"type":"number"},{"enum":["NaN","Infinity","-Infinity"]},{"type":"string"},{"type":"null"}]},
            "to":{"anyOf":[{"$ref":"#/$defs/unit"},{"type":"null"}]},"tag":{"type":["string","null"]},
            "sizes":{"type":"array","items":{"type":"integer"}},"names":{"items":{"$ref":"#/$defs/unit"},"type":"array"},
            "other":{"allOf":[{"$ref":"#/$defs/quantity"}]}}}"##;

    #[test]
    fn references_groups_and_lists_become_fields() {
        let fields = fields(TYPED);
        let [quantity, ratio, to, tag, sizes, names, other] = &fields[..] else { panic!("{fields:?}") };
        let FieldKind::Group(parts) = &quantity.kind else { panic!("{quantity:?}") };
        assert_eq!((quantity.description.as_str(), parts[1].name.as_str()), ("How much", "argument-0-1"));
        assert!(matches!(&parts[1].kind, FieldKind::Choice(units) if units.len() == 2), "{parts:?}");
        assert!(matches!(&parts[2].kind, FieldKind::Group(about) if about[0].name == "argument-0-2-0"), "{parts:?}");
        assert!(ratio.kind == FieldKind::AnyNumber && ratio.nullable);
        assert!(matches!(to.kind, FieldKind::Choice(_)) && to.nullable && tag.kind == FieldKind::Text && tag.nullable);
        assert_eq!(sizes.kind, FieldKind::Lines(Box::new(FieldKind::Integer)));
        assert_eq!(names.kind, FieldKind::Lines(Box::new(FieldKind::Text)));
        assert!(matches!(other.kind, FieldKind::Group(_)) && !other.required);
        let form = [
            ("argument-0-0", "1.50"),
            ("argument-0-1", "1"),
            ("argument-1", "-Infinity"),
            ("argument-2", ""),
            ("argument-4", " 1\r\n\r\n2 "),
            ("argument-5", "metre\nfoot"),
        ];
        let json = r#"{"quantity":{"value":1.50,"unit":"foot"},"ratio":"-Infinity","to":null,"tag":null,"sizes":[1,2],"names":["metre","foot"]}"#;
        assert_eq!(arguments(TYPED, &sent(&form)).as_deref(), Ok(json));
        for (form, problem) in [
            (vec![], "\"quantity.value\" is required."),
            (vec![("argument-0-0", "1"), ("argument-0-1", "7")], "\"quantity.unit\" is not one of its choices."),
            (vec![("argument-0-0", "1"), ("argument-0-1", "0"), ("argument-4", "1\nx")], "\"sizes\" is not a number."),
            (vec![("argument-0-0", "1"), ("argument-0-1", "0"), ("argument-6-0", "1")], "\"other.unit\" is required."),
        ] {
            assert_eq!(arguments(TYPED, &sent(&form)).unwrap_err(), problem);
        }
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
            r##"{"$ref":"#"}"##,
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
