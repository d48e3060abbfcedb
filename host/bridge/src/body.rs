//! The body of a request: JSON, the fields of a form, a text, or the bytes of a file.
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use toolcell_bridge_lines::{Body, BodyForm};

use crate::document::Document;
use crate::limits::SCHEMA_TEXT_BYTES_MAX;
use crate::media::{essence, is_json, is_media, is_text};
use crate::names::{clipped, shown};
use crate::parameters::Parameters;
use crate::schema::{SchemaUse, add_text, inlined};

/// Media types of one body that are looked at. 20: real documents have up to six.
const MEDIA_MAX: usize = 20;

/// Fields of a form with an encoding of their own. 200: Stripe's largest form has 60.
const FIELDS_MAX: usize = 200;

/// The fields of a form.
const PAIRS: &str = "application/x-www-form-urlencoded";

/// The fields of a form with files.
const PARTS: &str = "multipart/form-data";

/// Bytes that are not known to be anything else (RFC 2046, section 4.5.1).
const BYTES: &str = "application/octet-stream";

/// One of the media types that a body may have.
struct Choice<'d> {
    form: BodyForm,
    /// As a request says it.
    media: String,
    written: &'d Value,
}

/// The body of an operation, whose schema joins its parameters'. `Err` is why there can be no
/// request, as the end of a sentence.
pub(crate) fn of_operation(
    document: &Document<'_>,
    operation: &Value,
    parameters: &mut Parameters,
    bytes_max: usize,
) -> Result<Option<Body>, String> {
    let Some(written) = operation.get("requestBody") else { return Ok(None) };
    let Value::Object(written) = document.followed(written)? else { return Ok(None) };
    let is_required = written.get("required") == Some(&Value::Bool(true));
    let Some(Value::Object(content)) = written.get("content") else { return Ok(None) };
    let Some(choice) = chosen(document, content) else {
        let first = content.keys().next().map_or("nothing", String::as_str);
        if is_required {
            return Err(format!("has a body of {}, which is not made", shown(first)));
        }
        parameters.notes.push(format!("its body is left out: it is {}", shown(first)));
        return Ok(None);
    };
    let mut schema = schema(document, &choice, parameters, bytes_max);
    if let Some(Value::String(text)) = written.get("description")
        && !schema.contains_key("description")
    {
        let text = clipped(text, SCHEMA_TEXT_BYTES_MAX);
        schema.insert("description".to_owned(), text.into());
    }
    let mut files = Vec::new();
    match choice.form {
        BodyForm::Json => {}
        BodyForm::Pairs => drop(schema.insert("type".to_owned(), "object".into())),
        BodyForm::Parts => {
            schema.insert("type".to_owned(), "object".into());
            files = made_files(&mut schema);
        }
        BodyForm::Text => {
            add_text(&mut schema, &format!("As {}.", choice.media));
            schema.insert("type".to_owned(), "string".into());
        }
        BodyForm::File => schema = file(&schema, &["text", "base64", "media_type"]),
    }
    let argument = parameters.names.unique("body", crate::limits::NAME_CHARS_MAX);
    parameters.properties.insert(argument.clone(), schema.into());
    if is_required {
        parameters.required.push(argument.clone());
    }
    let deep = if choice.form == BodyForm::Pairs { deep(choice.written) } else { Vec::new() };
    let part_media = if choice.form == BodyForm::Parts { part_media(choice.written) } else { BTreeMap::new() };
    Ok(Some(Body { argument, media: choice.media, form: choice.form, deep, files, part_media }))
}

/// A body that is the JSON text of this argument.
pub(crate) const fn json(argument: String, media: String) -> Body {
    let deep = Vec::new();
    let files = Vec::new();
    Body { argument, media, form: BodyForm::Json, deep, files, part_media: BTreeMap::new() }
}

/// The first of the media types that is JSON; without one, a form, a text, or bytes.
fn chosen<'d>(document: &Document<'d>, content: &'d Map<String, Value>) -> Option<Choice<'d>> {
    let rank = |choice: &Choice<'_>| match choice.form {
        BodyForm::Json => 0,
        BodyForm::Pairs => 1,
        BodyForm::Parts => 2,
        BodyForm::Text => 3,
        BodyForm::File => 4,
    };
    let choices = content.iter().take(MEDIA_MAX).filter(|(media, _)| is_media(media));
    choices.filter_map(|(media, written)| Choice::of(document, media, written)).min_by_key(rank)
}

impl<'d> Choice<'d> {
    fn of(document: &Document<'d>, media: &str, written: &'d Value) -> Option<Self> {
        let essence = essence(media);
        let own = || media.to_owned();
        let (form, media) = match essence.as_str() {
            _ if is_json(media) => (BodyForm::Json, own()),
            PAIRS => (BodyForm::Pairs, PAIRS.to_owned()),
            PARTS => (BodyForm::Parts, PARTS.to_owned()),
            // Some documents say so of every body.
            "*/*" | "application/*" if is_value(document, written) => (BodyForm::Json, "application/json".to_owned()),
            _ if essence.starts_with("multipart/") || !essence.contains('/') => return None,
            _ if essence.contains('*') => (BodyForm::File, BYTES.to_owned()),
            _ if is_text(media) => (BodyForm::Text, own()),
            _ => (BodyForm::File, own()),
        };
        Some(Self { form, media, written })
    }
}

/// True if the schema is one of objects or lists.
fn is_value(document: &Document<'_>, written: &Value) -> bool {
    let schema = written.get("schema").and_then(|schema| document.followed(schema).ok());
    schema.is_some_and(|schema| {
        let kind = schema.get("type").and_then(Value::as_str);
        matches!(kind, Some("object" | "array"))
            || ["properties", "allOf", "oneOf", "anyOf"].iter().any(|key| schema.get(key).is_some())
    })
}

/// The schema of a body that has one. A text and bytes have their own.
fn schema(
    document: &Document<'_>,
    choice: &Choice<'_>,
    parameters: &mut Parameters,
    bytes_max: usize,
) -> Map<String, Value> {
    let written = choice.written.get("schema").unwrap_or(&Value::Null);
    if matches!(choice.form, BodyForm::Text | BodyForm::File) {
        let text = document.followed(written).ok().and_then(|schema| schema.get("description")?.as_str());
        let text = text.map(|text| clipped(text, SCHEMA_TEXT_BYTES_MAX)).filter(|text| !text.is_empty());
        return text.into_iter().map(|text| ("description".to_owned(), text.into())).collect();
    }
    let made = inlined(document, written, SchemaUse::Input, bytes_max);
    parameters.is_cut |= made.is_cut;
    match made.schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Gives the fields that are files the schema of one, and names them.
fn made_files(schema: &mut Map<String, Value>) -> Vec<String> {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return Vec::new() };
    let files = properties.iter_mut().filter_map(|(name, property)| made_file(property).then(|| name.clone()));
    files.collect()
}

/// True if the schema is that of a file, or of several, and now says so.
fn made_file(schema: &mut Value) -> bool {
    let Value::Object(members) = schema else { return false };
    if members.get("format").and_then(Value::as_str) == Some("binary") {
        *schema = Value::Object(file(members, &["text", "base64", "filename", "media_type"]));
        return true;
    }
    let mut is_file = members.get_mut("items").is_some_and(made_file);
    for variant in members.get_mut("anyOf").and_then(Value::as_array_mut).into_iter().flatten() {
        is_file |= made_file(variant);
    }
    is_file
}

/// The schema of a file.
fn file(of: &Map<String, Value>, members: &[&str]) -> Map<String, Value> {
    let mut file = Map::new();
    if let Some(text) = of.get("description") {
        file.insert("description".to_owned(), text.clone());
    }
    add_text(&mut file, "A file: its content is either text or base64.");
    file.insert("type".to_owned(), "object".into());
    let members = members.iter().map(|name| ((*name).to_owned(), json!({"type": "string"})));
    file.insert("properties".to_owned(), members.collect::<Map<_, _>>().into());
    file.insert("additionalProperties".to_owned(), false.into());
    file
}

/// The fields that the document writes as `name[member]`.
fn deep(media: &Value) -> Vec<String> {
    let encoding = media.get("encoding").and_then(Value::as_object);
    let is_deep = |style: &Value| style.get("style").and_then(Value::as_str) == Some("deepObject");
    let fields = encoding.into_iter().flatten().filter(|(_, style)| is_deep(style));
    fields.take(FIELDS_MAX).map(|(name, _)| name.clone()).collect()
}

/// The media types of parts, where the document names one for a field.
fn part_media(media: &Value) -> BTreeMap<String, String> {
    let encoding = media.get("encoding").and_then(Value::as_object);
    let fields = encoding.into_iter().flatten().take(FIELDS_MAX);
    let named = fields.filter_map(|(name, style)| Some((name, style.get("contentType")?.as_str()?)));
    let one = named.filter(|(_, media)| is_media(media) && media.contains('/') && !media.contains(['*', ',']));
    one.map(|(name, media)| (name.clone(), media.to_owned())).collect()
}
