//! The body of a request: JSON, or the fields of a form.
use serde_json::{Map, Value, json};
use toolcell_bridge_lines::Body;

use crate::document::Document;
use crate::limits::SCHEMA_TEXT_BYTES_MAX;
use crate::names::{clipped, shown};
use crate::parameters::Parameters;
use crate::schema::{SchemaUse, inlined};

/// Media types of one body that are looked at. 20: real documents have up to six.
const MEDIA_MAX: usize = 20;

/// Fields of a form with an encoding of their own. 200: Stripe's largest form has 60.
const FIELDS_MAX: usize = 200;

/// The fields of a form.
const FORM: &str = "application/x-www-form-urlencoded";

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
    let media = || content.iter().take(MEDIA_MAX);
    let json = media().find(|(media, _)| is_json(media) && is_media(media));
    let Some((media, written_media)) = json.or_else(|| media().find(|(media, _)| is_form(media))) else {
        let first = content.keys().next().map_or("nothing", String::as_str);
        if is_required {
            return Err(format!("has a body of {}, and JSON and forms are made only", shown(first)));
        }
        parameters.notes.push(format!("its body is left out: it is {}", shown(first)));
        return Ok(None);
    };
    let made = inlined(document, written_media.get("schema").unwrap_or(&json!({})), SchemaUse::Input, bytes_max);
    parameters.is_cut |= made.is_cut;
    let mut schema = match made.schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    if let Some(Value::String(text)) = written.get("description")
        && !schema.contains_key("description")
    {
        let text = clipped(text, SCHEMA_TEXT_BYTES_MAX);
        schema.insert("description".to_owned(), text.into());
    }
    let form = !is_json(media);
    if form {
        schema.insert("type".to_owned(), "object".into());
    }
    let argument = parameters.names.unique("body", crate::limits::NAME_CHARS_MAX);
    parameters.properties.insert(argument.clone(), schema.into());
    if is_required {
        parameters.required.push(argument.clone());
    }
    let media = if form { FORM.to_owned() } else { media.clone() };
    let deep = if form { deep(written_media) } else { Vec::new() };
    Ok(Some(Body { argument, media, form, deep }))
}

/// The fields that the document writes as `name[member]`.
fn deep(media: &Value) -> Vec<String> {
    let encoding = media.get("encoding").and_then(Value::as_object);
    let is_deep = |style: &Value| style.get("style").and_then(Value::as_str) == Some("deepObject");
    let fields = encoding.into_iter().flatten().filter(|(_, style)| is_deep(style));
    fields.take(FIELDS_MAX).map(|(name, _)| name.clone()).collect()
}

/// True for JSON, also in another's form such as `application/problem+json`.
pub(crate) fn is_json(media: &str) -> bool {
    let media = essence(media);
    media == "application/json" || (media.ends_with("+json") && !media.contains('*')) || media == "text/json"
}

fn is_form(media: &str) -> bool {
    essence(media) == FORM
}

/// True if a header may hold it.
pub(crate) fn is_media(media: &str) -> bool {
    const BYTES_MAX: usize = 200;
    media.len() <= BYTES_MAX && media.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

/// A media type without its parameters.
fn essence(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
