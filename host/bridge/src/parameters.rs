//! Parameters of an operation: which argument each is, and how its value is written.
use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value, json};
use toolcell_bridge_lines::{Parameter, Place, Style};

use crate::document::Document;
use crate::limits::{PARAMETERS_BYTES_MAX, PARAMETERS_MAX, SCHEMA_TEXT_BYTES_MAX, VISIT_BYTES};
use crate::merge::json_bytes;
use crate::names::{Names, clipped, of_argument, shown};
use crate::schema::{Inlined, SchemaUse, add_text, inlined, opened};
use crate::target::Target;

/// Longest name of a parameter, in bytes.
const NAME_BYTES_MAX: usize = 200;

/// Longest name of an argument, in characters: what the APIs of models take.
const ARGUMENT_CHARS_MAX: usize = 64;

/// Headers that OpenAPI ignores as parameters: bodies, answers and security say them.
const HEADERS_IGNORED: [&str; 3] = ["accept", "content-type", "authorization"];

/// Headers that belong to the connection, or to the host.
const HEADERS_OF_HOST: [&str; 14] = [
    "accept-encoding",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Parameters of an operation, and their schemas.
#[derive(Default)]
pub(crate) struct Parameters {
    pub(crate) list: Vec<Parameter>,
    pub(crate) properties: Map<String, Value>,
    pub(crate) required: Vec<String>,
    pub(crate) names: Names,
    pub(crate) is_cut: bool,
    /// Bytes of its schemas, or what was looked at for them.
    spent: usize,
    /// Parameters that are not used, with the reason.
    pub(crate) notes: Vec<String>,
}

/// Headers and parts of the query that the host fills in.
#[derive(Default)]
pub(crate) struct Filled {
    /// In lower case.
    pub(crate) headers: BTreeSet<String>,
    pub(crate) query: BTreeSet<String>,
}

/// The parameters of an operation. `Err` is why there can be no request, as the end of a sentence.
pub(crate) fn of_operation(
    document: &Document<'_>,
    target: &Target<'_>,
    parts: [&Value; 2],
    filled: &Filled,
    bytes_max: usize,
) -> Result<Parameters, String> {
    let mut parameters = Parameters::default();
    for written in written(document, parts)? {
        parameters.add(document, target, written, filled, bytes_max)?;
    }
    for name in placeholders(target.path) {
        if !parameters.list.iter().any(|known| known.place == Place::Path && known.name == name) {
            return Err(format!("does not declare the parameter {} of its path", shown(name)));
        }
    }
    for (part, name) in target.in_query() {
        let is_known = |known: &Parameter| known.place == Place::Query && known.name == part;
        if !parameters.list.iter().any(is_known) && !filled.query.contains(part) {
            return Err(format!("does not declare the parameter {} of its path", shown(name)));
        }
    }
    Ok(parameters)
}

/// Parameters of the path and of the operation. The operation's win.
fn written<'a>(document: &Document<'a>, parts: [&'a Value; 2]) -> Result<Vec<&'a Map<String, Value>>, String> {
    let mut all: Vec<&Map<String, Value>> = Vec::new();
    let mut places: HashMap<[&str; 2], usize> = HashMap::new();
    let lists: Vec<&Vec<Value>> = parts.into_iter().filter_map(|part| part.get("parameters")?.as_array()).collect();
    if lists.iter().any(|list| list.len() > PARAMETERS_MAX) {
        return Err(format!("has more than {PARAMETERS_MAX} parameters"));
    }
    for parameter in lists.into_iter().flatten() {
        let Value::Object(parameter) = document.followed(parameter)? else { continue };
        let of = ["name", "in"].map(|key| parameter.get(key).and_then(Value::as_str).unwrap_or_default());
        let known = places.get(&of).and_then(|place| all.get_mut(*place));
        match known {
            Some(known) => *known = parameter,
            None => {
                places.insert(of, all.len());
                all.push(parameter);
            }
        }
    }
    Ok(all)
}

/// The names in braces of a path.
pub(crate) fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|part| part.split_once('}').map(|(name, _)| name))
}

impl Parameters {
    fn add(
        &mut self,
        document: &Document<'_>,
        target: &Target<'_>,
        written: &Map<String, Value>,
        filled: &Filled,
        bytes_max: usize,
    ) -> Result<(), String> {
        let text = |key: &str| written.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = text("name");
        let in_query = target.in_query().find(|(_, placeholder)| *placeholder == name).map(|(part, _)| part);
        // Some documents call a part of the query that their path names one of the path.
        let (name, place) = match (text("in"), in_query) {
            ("path" | "query", Some(part)) if !placeholders(target.path).any(|known| known == name) => (part, "query"),
            (place, _) => (name, place),
        };
        let place = match place {
            "path" => Place::Path,
            "query" => Place::Query,
            "header" => Place::Header,
            other => {
                let other = if other == "cookie" { "a cookie" } else { "in a place that is not known" };
                return self.left_out(written, name, other);
            }
        };
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return self.left_out(written, name, "a parameter without a proper name");
        }
        if place == Place::Path && !placeholders(target.path).any(|known| known == name) {
            return Ok(());
        }
        if place == Place::Header {
            let header = name.to_ascii_lowercase();
            if filled.headers.contains(&header) {
                return Ok(());
            }
            if HEADERS_IGNORED.contains(&header.as_str()) {
                if header == "authorization" && written.get("required") == Some(&Value::Bool(true)) {
                    let why = "OpenAPI wants a security scheme for it; a secret of the manifest can be it";
                    self.notes.push(format!("the required header {} is left out: {why}", shown(name)));
                }
                return Ok(());
            }
            if HEADERS_OF_HOST.contains(&header.as_str()) {
                self.notes.push(format!("the header {} is left to the host", shown(name)));
                return Ok(());
            }
            if !is_header(name) {
                return self.left_out(written, name, "a header without a proper name");
            }
        }
        if place == Place::Query && filled.query.contains(name) {
            return Ok(());
        }
        let content = written.get("content").and_then(Value::as_object).and_then(|content| content.iter().next());
        let style = match (content, place) {
            (Some((media, _)), _) if crate::media::is_json(media) => Some(Style::Json),
            (Some(_), _) => return self.left_out(written, name, "of a media type that is not JSON"),
            (None, Place::Query) if text("style").is_empty() => Some(Style::Form),
            (None, Place::Query) => query_style(text("style")),
            (None, _) => matches!(text("style"), "" | "simple").then_some(Style::Simple),
        };
        let Some(style) = style else { return self.left_out(written, name, "of a style that is not known") };
        let schema = content.and_then(|(_, content)| content.get("schema")).or_else(|| written.get("schema"));
        let explode = written.get("explode").and_then(Value::as_bool).unwrap_or(style == Style::Form);
        let argument = self.names.unique(&of_argument(name), ARGUMENT_CHARS_MAX);
        let is_required = text("in") == "path" || written.get("required") == Some(&Value::Bool(true));
        let made = self.inlined(document, schema.unwrap_or(&json!({})), bytes_max);
        let mut made = match made.schema {
            Value::Object(made) => made,
            _ => Map::new(),
        };
        let description = clipped(text("description"), SCHEMA_TEXT_BYTES_MAX);
        if !description.is_empty() {
            made.insert("description".to_owned(), description.into());
        }
        if argument != of_argument(name) {
            add_text(&mut made, &format!("It is {} of the {}.", shown(name), place_word(place)));
        }
        set_kind(&mut made, style);
        self.properties.insert(argument.clone(), made.into());
        if is_required {
            self.required.push(argument.clone());
        }
        self.list.push(Parameter { name: name.to_owned(), argument, place, style, explode });
        Ok(())
    }

    /// The schema of a parameter. Those of one operation share [`PARAMETERS_BYTES_MAX`]; behind
    /// that each has its type and description alone.
    fn inlined(&mut self, document: &Document<'_>, schema: &Value, bytes_max: usize) -> Inlined {
        let made = match PARAMETERS_BYTES_MAX.saturating_sub(self.spent) {
            0 => opened(document, schema, SchemaUse::Input),
            left => inlined(document, schema, SchemaUse::Input, bytes_max.min(left)),
        };
        self.spent += json_bytes(&made.schema).max(made.visits * VISIT_BYTES);
        self.is_cut |= made.is_cut;
        made
    }

    /// Notes a parameter that is not used; without a required one, the operation is left out.
    fn left_out(&mut self, written: &Map<String, Value>, name: &str, what: &str) -> Result<(), String> {
        if written.get("required") == Some(&Value::Bool(true)) {
            return Err(format!("requires {}, which is {what}", shown(name)));
        }
        self.notes.push(format!("the parameter {} is left out: it is {what}", shown(name)));
        Ok(())
    }
}

/// Sets the type of a parameter whose schema says none: what its style can write. A JSON text may
/// be any value.
fn set_kind(schema: &mut Map<String, Value>, style: Style) {
    let says = ["type", "anyOf", "enum", "const"].iter().any(|key| schema.contains_key(*key));
    if says || style == Style::Json {
        return;
    }
    let is_object = style == Style::Deep || schema.contains_key("additionalProperties");
    schema.insert("type".to_owned(), if is_object { "object" } else { "string" }.into());
}

/// The style of this name for what stands in a query.
pub(crate) fn query_style(name: &str) -> Option<Style> {
    match name {
        "form" => Some(Style::Form),
        "spaceDelimited" => Some(Style::Space),
        "pipeDelimited" => Some(Style::Pipe),
        "deepObject" => Some(Style::Deep),
        _ => None,
    }
}

const fn place_word(place: Place) -> &'static str {
    match place {
        Place::Path => "path",
        Place::Query => "query",
        Place::Header => "header",
    }
}

/// True for a name that HTTP takes: RFC 9110, section 5.6.2.
pub(crate) fn is_header(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}
