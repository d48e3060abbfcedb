//! The body of a request: JSON, the fields of a form, a text, or the bytes of a file.
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use toolcell_bridge_lines::{Body, BodyForm, FieldStyle, Style};

use crate::document::Document;
use crate::limits::SCHEMA_TEXT_BYTES_MAX;
use crate::media::{as_utf8, essence, is_json, is_media, is_text};
use crate::names::{clipped, shown};
use crate::parameters::{Parameters, query_style};
use crate::schema::{SchemaUse, add_text, inlined, is_bytes};

/// Media types of one body that are looked at. 20: real documents have up to six.
const MEDIA_MAX: usize = 20;

/// Fields of a form with an encoding of their own. 200: Stripe's largest form has 60.
const FIELDS_MAX: usize = 200;

/// Levels of a schema that are searched for bytes: a list of files in a choice has four.
const BYTES_LEVELS_MAX: usize = 6;

/// Schemas of one body that are searched for bytes. 500: the largest forms have some hundred
/// fields.
const BYTES_VISITS_MAX: usize = 500;

/// Operations on a JSON value (RFC 6902).
const PATCH: &str = "application/json-patch+json";

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
) -> Result<Option<Box<Body>>, String> {
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
    let mut names = BTreeMap::new();
    let mut schema = schema(document, &choice, parameters, bytes_max, &mut names);
    if let Some(Value::String(text)) = written.get("description")
        && !schema.contains_key("description")
    {
        let text = clipped(text, SCHEMA_TEXT_BYTES_MAX);
        schema.insert("description".to_owned(), text.into());
    }
    let mut files = Files::default();
    match choice.form {
        BodyForm::Json => {}
        BodyForm::Pairs => drop(schema.insert("type".to_owned(), "object".into())),
        BodyForm::Parts => {
            schema.insert("type".to_owned(), "object".into());
            files.make(&mut schema, &names);
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
    let mut body = Body { names, files: files.named, ..plain(argument, choice.media, choice.form) };
    body.others_are_files = files.are_others;
    match choice.form {
        BodyForm::Pairs => body.styles = styles(choice.written),
        BodyForm::Parts => body.part_media = part_media(choice.written),
        BodyForm::Json | BodyForm::Text | BodyForm::File => {}
    }
    Ok(Some(Box::new(body)))
}

/// A body that is the JSON text of this argument.
pub(crate) const fn json(argument: String, media: String) -> Body {
    plain(argument, media, BodyForm::Json)
}

/// A body of which the document says nothing more.
const fn plain(argument: String, media: String, form: BodyForm) -> Body {
    Body {
        argument,
        media,
        form,
        names: BTreeMap::new(),
        styles: BTreeMap::new(),
        files: Vec::new(),
        others_are_files: false,
        part_media: BTreeMap::new(),
    }
}

/// The first of the media types that is JSON; without one, a form, a text, or bytes. JSON with
/// bytes in it comes behind a form with files, since a model has them as files.
fn chosen<'d>(document: &Document<'d>, content: &'d Map<String, Value>) -> Option<Choice<'d>> {
    let rank = |choice: &Choice<'_>| match choice.form {
        BodyForm::Json if choice.has_bytes(document) => 4,
        // Documents may say object here as well, and it is a list.
        BodyForm::Json if essence(&choice.media) == PATCH && !choice.is_list(document) => 1,
        BodyForm::Json => 0,
        BodyForm::Pairs => 2,
        BodyForm::Parts => 3,
        BodyForm::Text => 5,
        BodyForm::File => 6,
    };
    let choices = content.iter().take(MEDIA_MAX).filter(|(media, _)| is_media(media));
    choices.filter_map(|(media, written)| Choice::of(document, media, written)).min_by_key(rank)
}

impl<'d> Choice<'d> {
    fn of(document: &Document<'d>, media: &str, written: &'d Value) -> Option<Self> {
        let essence = essence(media);
        let own = || as_utf8(media);
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

    fn is_list(&self, document: &Document<'_>) -> bool {
        let schema = self.written.get("schema").and_then(|schema| document.followed(schema).ok());
        schema.is_some_and(|schema| schema.get("type").and_then(Value::as_str) == Some("array"))
    }

    /// True if something in the schema is bytes.
    fn has_bytes(&self, document: &Document<'_>) -> bool {
        let mut visits = 0;
        self.written.get("schema").is_some_and(|schema| has_bytes(document, schema, 0, &mut visits))
    }
}

fn has_bytes(document: &Document<'_>, schema: &Value, level: usize, visits: &mut usize) -> bool {
    *visits += 1;
    if level > BYTES_LEVELS_MAX || *visits > BYTES_VISITS_MAX {
        return false;
    }
    let Ok(Value::Object(written)) = document.followed(schema) else { return false };
    let mut inside = |schema: &Value| has_bytes(document, schema, level + 1, visits);
    let one = |key: &str| written.get(key).into_iter();
    let lists = ["allOf", "oneOf", "anyOf"].iter().filter_map(|key| written.get(*key)?.as_array()).flatten();
    let properties = written.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    is_bytes(written) || one("items").chain(one("additionalProperties")).chain(lists).chain(properties).any(&mut inside)
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
    names: &mut BTreeMap<String, String>,
) -> Map<String, Value> {
    let written = choice.written.get("schema").unwrap_or(&Value::Null);
    if matches!(choice.form, BodyForm::Text | BodyForm::File) {
        let text = document.followed(written).ok().and_then(|schema| schema.get("description")?.as_str());
        let text = text.map(|text| clipped(text, SCHEMA_TEXT_BYTES_MAX)).filter(|text| !text.is_empty());
        return text.into_iter().map(|text| ("description".to_owned(), text.into())).collect();
    }
    let is_form = matches!(choice.form, BodyForm::Pairs | BodyForm::Parts);
    let usage = if is_form { SchemaUse::Fields } else { SchemaUse::Input };
    let made = inlined(document, written, usage, bytes_max);
    parameters.is_cut |= made.is_cut;
    *names = made.names;
    match made.schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Fields of a form that are files.
#[derive(Default)]
struct Files {
    /// By their names in the request.
    named: Vec<String>,
    /// True if fields that have no name are.
    are_others: bool,
}

impl Files {
    /// Gives the fields of a form that are files the schema of one, in each of its variants, and
    /// notes them. `names` are those of fields that have others in the request.
    fn make(&mut self, schema: &mut Map<String, Value>, names: &BTreeMap<String, String>) {
        for (name, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
            let name = names.get(name).unwrap_or(name);
            if made_file(property) && !self.named.contains(name) {
                self.named.push(name.clone());
            }
        }
        self.are_others |= schema.get_mut("additionalProperties").is_some_and(made_file);
        for variant in schema.get_mut("anyOf").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(variant) = variant {
                self.make(variant, names);
            }
        }
    }
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

/// How fields of a form are written, where the document says so: by `style` and `explode`, or as
/// JSON by `contentType`, which counts without those two.
fn styles(media: &Value) -> BTreeMap<String, FieldStyle> {
    encoding(media).filter_map(|(name, written)| Some((name.clone(), field_style(written)?))).collect()
}

/// How the fields of a form are written.
fn encoding(media: &Value) -> impl Iterator<Item = (&String, &Value)> {
    media.get("encoding").and_then(Value::as_object).into_iter().flatten().take(FIELDS_MAX)
}

fn field_style(written: &Value) -> Option<FieldStyle> {
    let text = |key: &str| written.get(key).and_then(Value::as_str);
    let explode = written.get("explode").and_then(Value::as_bool);
    let style = match text("style") {
        None if explode.is_none() => {
            return text("contentType").filter(|media| is_json(media)).map(|_| FieldStyle::JSON);
        }
        style => query_style(style.unwrap_or("form"))?,
    };
    Some(FieldStyle { style, explode: explode.unwrap_or(style == Style::Form) })
}

/// The media types of parts, where the document names one for a field.
fn part_media(media: &Value) -> BTreeMap<String, String> {
    let named = encoding(media).filter_map(|(name, style)| Some((name, style.get("contentType")?.as_str()?)));
    let one = named.filter(|(_, media)| is_media(media) && media.contains('/') && !media.contains(['*', ',']));
    one.map(|(name, media)| (name.clone(), media.to_owned())).collect()
}
