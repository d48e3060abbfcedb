//! The restricted JSON Schema of a form: an object of primitive properties (2026-07-28,
//! Elicitation, "Requested Schema").

use serde_json::{Map, Value};
use toolcell_schema::{Patience, Schema, SchemaUse, portable};

use super::ClientAskError;
use crate::frame::scan;

/// Fields of a form. Nobody reads more.
const FIELDS_MAX: usize = 64;

/// Choices of a field: a list that can still be scrolled.
const CHOICES_MAX: usize = 256;

/// Choices of all fields together. Each takes some 2 KB while the form is open.
const CHOICES_IN_ALL_MAX: usize = 2_048;

/// Subschemas that apply to one value of a form: its field, and each choice.
const APPLIED_MAX: usize = CHOICES_MAX + 8;

/// Largest schema of a form, in bytes: choices with titles of a line each.
const FORM_BYTES_MAX: usize = 256 * 1024;

/// Deepest nesting of a form's schema: object, properties, field, items, choices, choice.
const DEPTH_MAX: usize = 8;

const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// A form that can be sent.
#[derive(Debug)]
pub(super) struct ClientForm {
    json: String,
    fields: Vec<String>,
    /// Checks the filled-in content, as arguments and results are checked.
    compiled: Schema,
}

type FormChecked<T = ()> = Result<T, String>;

impl ClientForm {
    /// Reads a form's schema. `rich`: the revision has choices with titles and choices of several.
    pub(super) fn read(text: &str, rich: bool) -> Result<Self, ClientAskError> {
        let invalid = |text: String| ClientAskError::Invalid(format!("its schema {text}"));
        if text.len() > FORM_BYTES_MAX {
            return Err(invalid(format!("has {} bytes, more than {FORM_BYTES_MAX}", text.len())));
        }
        match scan::check_value(text, DEPTH_MAX) {
            Err(fault) => return Err(invalid(format!("cannot be taken: {fault}"))),
            Ok(Some(key)) => return Err(invalid(format!("has the key {key:?} twice in one object"))),
            Ok(None) => {}
        }
        let mut schema: Value = serde_json::from_str(text).map_err(|_| invalid("is not JSON".to_owned()))?;
        let fields = check(&schema, rich).map_err(invalid)?;
        // Cleans the texts that people read.
        Schema::clean(&mut schema);
        let compiled = Schema::of_form(&schema, APPLIED_MAX).map_err(invalid)?;
        Ok(Self { json: portable(&schema, SchemaUse::Form).to_string(), fields, compiled })
    }

    /// The schema to send.
    pub(super) fn schema_json(&self) -> &str {
        &self.json
    }

    /// Accepts the filled-in content, without unknown fields, and without optional ones that are
    /// `null`.
    ///
    /// # Errors
    ///
    /// The places that do not fit, with the rules they break.
    pub(super) fn accept(&self, content: Map<String, Value>) -> Result<String, String> {
        let content: Map<String, Value> =
            content.into_iter().filter(|(key, _)| self.fields.iter().any(|field| field == key)).collect();
        let content = Value::Object(content).to_string();
        let content = self.compiled.rewritten(&content).unwrap_or(content);
        match self.compiled.check(&content, &Patience::default()) {
            Ok(()) => Ok(content),
            Err(problems) => Err(format!("content does not fit the form:\n{problems}")),
        }
    }
}

/// Returns the names of the fields, if the schema is that of a form.
fn check(schema: &Value, rich: bool) -> FormChecked<Vec<String>> {
    let schema = schema.as_object().ok_or("must be an object")?;
    only(schema, &["$schema", "type", "properties", "required"], "")?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("must have \"type\": \"object\"".to_owned());
    }
    let dialect = schema.get("$schema").map(|dialect| dialect.as_str().unwrap_or_default().trim_end_matches('#'));
    if dialect.is_some_and(|dialect| dialect != "https://json-schema.org/draft/2020-12/schema") {
        return Err("must be of draft 2020-12".to_owned());
    }
    let fields = schema.get("properties").and_then(Value::as_object).ok_or("must have properties, as an object")?;
    if fields.len() > FIELDS_MAX {
        return Err(format!("has {} fields, more than {FIELDS_MAX}", fields.len()));
    }
    for (name, field) in fields {
        check_field(field, rich).map_err(|text| format!("is wrong at properties/{name}: {text}"))?;
    }
    let choices: usize = fields.values().map(choices).sum();
    if choices > CHOICES_IN_ALL_MAX {
        return Err(format!("has {choices} choices in all, more than {CHOICES_IN_ALL_MAX}"));
    }
    let required = match schema.get("required") {
        None => Some(Vec::new()),
        Some(required) => strings(required),
    };
    let required = required.ok_or("must have required as a list of names")?;
    if let Some(name) = required.iter().find(|name| !fields.contains_key(**name)) {
        return Err(format!("requires {name:?}, which is not one of its properties"));
    }
    Ok(fields.keys().cloned().collect())
}

/// The number of choices of a field.
fn choices(field: &Value) -> usize {
    let lists = ["enum", "oneOf", "anyOf"].iter().filter_map(|key| field.get(key)?.as_array());
    lists.map(Vec::len).sum::<usize>() + field.get("items").map_or(0, choices)
}

fn check_field(field: &Value, rich: bool) -> FormChecked {
    let field = field.as_object().ok_or("must be an object")?;
    for key in ["title", "description"] {
        if field.get(key).is_some_and(|text| !text.is_string()) {
            return Err(format!("{key} must be a string"));
        }
    }
    check_default(field)?;
    match field.get("type").and_then(Value::as_str) {
        Some("string") if field.contains_key("enum") => {
            only(field, &["type", "title", "description", "enum", "enumNames", "default"], "")?;
            let choices = field.get("enum").and_then(strings).ok_or("enum must be a list of strings")?;
            check_count(choices.len())?;
            let names = field.get("enumNames").map(|names| strings(names).unwrap_or_default().len());
            if names.is_some_and(|names| names != choices.len()) {
                return Err("enumNames must name each choice".to_owned());
            }
            Ok(())
        }
        Some("string") if field.contains_key("oneOf") => {
            only(field, &["type", "title", "description", "oneOf", "default"], "")?;
            known(rich)?;
            check_titled(field.get("oneOf"))
        }
        Some("string") => check_text(field),
        Some("number" | "integer") => {
            only(field, &["type", "title", "description", "minimum", "maximum", "default"], "")
        }
        Some("boolean") => only(field, &["type", "title", "description", "default"], ""),
        Some("array") => {
            only(field, &["type", "title", "description", "minItems", "maxItems", "items", "default"], "")?;
            known(rich)?;
            check_items(field.get("items"))
        }
        _ => Err("type must be string, number, integer, boolean, or array for a choice of several".to_owned()),
    }
}

/// Checks the type of a field's default: clients fill it in.
fn check_default(field: &Map<String, Value>) -> FormChecked {
    let Some(default) = field.get("default") else { return Ok(()) };
    let fits = match field.get("type").and_then(Value::as_str) {
        Some("string") => default.is_string(),
        Some("number") => default.is_number(),
        Some("integer") => default.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some("boolean") => default.is_boolean(),
        Some("array") => strings(default).is_some(),
        _ => true,
    };
    if fits { Ok(()) } else { Err("default must be a value of the field's type".to_owned()) }
}

fn check_text(field: &Map<String, Value>) -> FormChecked {
    only(field, &["type", "title", "description", "minLength", "maxLength", "format", "default"], "")?;
    match field.get("format") {
        Some(format) if !format.as_str().is_some_and(|format| FORMATS.contains(&format)) => {
            Err(format!("format must be one of {}", FORMATS.join(", ")))
        }
        _ => Ok(()),
    }
}

/// Checks the choices of a multiple-choice field.
fn check_items(items: Option<&Value>) -> FormChecked {
    let items = items.and_then(Value::as_object).ok_or("items must be an object")?;
    if items.contains_key("anyOf") {
        only(items, &["anyOf"], "items/")?;
        return check_titled(items.get("anyOf"));
    }
    only(items, &["type", "enum"], "items/")?;
    let choices = items.get("enum").and_then(strings).ok_or("items must have enum, a list of strings, or anyOf")?;
    if items.get("type").and_then(Value::as_str) != Some("string") {
        return Err("items must have \"type\": \"string\"".to_owned());
    }
    check_count(choices.len())
}

fn check_titled(choices: Option<&Value>) -> FormChecked {
    let choices = choices.and_then(Value::as_array).ok_or("choices must be a list")?;
    check_count(choices.len())?;
    let titled = |choice: &Value| {
        let has = |key: &str| choice.get(key).is_some_and(Value::is_string);
        has("const") && has("title") && choice.as_object().is_some_and(|members| members.len() == 2)
    };
    if choices.iter().all(titled) { Ok(()) } else { Err("each choice must be {const, title}, both strings".to_owned()) }
}

fn check_count(choices: usize) -> FormChecked {
    if (1..=CHOICES_MAX).contains(&choices) { Ok(()) } else { Err(format!("there must be 1 to {CHOICES_MAX} choices")) }
}

fn known(rich: bool) -> FormChecked {
    if rich {
        Ok(())
    } else {
        Err("the client's revision has neither titles of choices nor choices of several".to_owned())
    }
}

fn only(object: &Map<String, Value>, keys: &[&str], place: &str) -> FormChecked {
    match object.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(format!("has {place}{key:?}, which is not allowed in forms")),
        None => Ok(()),
    }
}

fn strings(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use serde_json::json;

    use super::*;

    fn several(choices: usize) -> Value {
        let choices: Vec<Value> =
            (0..choices).map(|number| json!({"const": format!("choice-{number}"), "title": "One."})).collect();
        json!({"type": "array", "items": {"anyOf": choices}})
    }

    fn form(fields: &[(&str, Value)]) -> Result<ClientForm, String> {
        let fields: Map<String, Value> =
            fields.iter().map(|(name, field)| ((*name).to_owned(), field.clone())).collect();
        let schema = json!({"type": "object", "properties": fields});
        ClientForm::read(&schema.to_string(), true).map_err(|error| error.to_string())
    }

    fn content(content: Value) -> Map<String, Value> {
        content.as_object().unwrap().clone()
    }

    #[test]
    fn optional_fields_that_are_null_are_left_out_and_integers_written_as_such() {
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "age": {"type": "integer", "maximum": u64::MAX}}});
        let form = ClientForm::read(&schema.to_string(), true).unwrap();
        assert!(!form.schema_json().contains("maximum"), "{}", form.schema_json());
        assert_eq!(form.accept(content(json!({"name": "Ada", "age": null}))).unwrap(), r#"{"name":"Ada"}"#);
        assert_eq!(form.accept(content(json!({"name": "Ada", "age": 36.0}))).unwrap(), r#"{"name":"Ada","age":36}"#);
        assert!(form.accept(content(json!({"name": null}))).is_err());
    }

    #[test]
    fn a_default_has_the_type_of_its_field() {
        let of = |kind: &str, default: Value| {
            let mut field = json!({"type": kind, "default": default});
            if kind == "array" {
                field["items"] = json!({"type": "string", "enum": ["a", "b"]});
            }
            form(&[("f", field)]).map(drop)
        };
        for (kind, right, wrong) in [
            ("string", json!("x"), json!(1)),
            ("number", json!(1.5), json!("1.5")),
            ("integer", json!(2), json!(1.5)),
            ("boolean", json!(false), json!("x")),
            ("array", json!(["a"]), json!("a")),
            ("array", json!([]), json!([1])),
        ] {
            assert_eq!(of(kind, right), Ok(()), "{kind}");
            let said = of(kind, wrong).unwrap_err();
            assert!(said.ends_with("is wrong at properties/f: default must be a value of the field's type"), "{said}");
        }
    }

    #[test]
    fn an_answer_that_takes_too_long_to_check_is_refused_soon() {
        let form = form(&[("which", several(256)), ("mail", json!({"type": "string", "format": "email"}))]).unwrap();
        let honest: Vec<String> = (0..256).map(|number| format!("choice-{number}")).collect();
        assert!(form.accept(content(json!({"which": honest, "mail": "somebody@example.com"}))).is_ok());
        let began = std::time::Instant::now();
        let said = form.accept(content(json!({"which": vec!["choice-255"; 100_000]}))).unwrap_err();
        assert!(said.contains("checking it would take too long"), "{said}");
        assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
    }

    #[test]
    fn a_form_that_is_too_large_to_be_kept_is_not_sent() {
        let many: Vec<(String, Value)> = (0..9).map(|number| (format!("f{number}"), several(256))).collect();
        let many: Vec<(&str, Value)> = many.iter().map(|(name, field)| (name.as_str(), field.clone())).collect();
        let said = form(&many).unwrap_err();
        assert!(said.ends_with("its schema has 2304 choices in all, more than 2048"), "{said}");
        let long = form(&[("f", json!({"type": "string", "title": "t".repeat(300_000)}))]).unwrap_err();
        assert!(long.contains("more than 262144"), "{long}");
    }
}
