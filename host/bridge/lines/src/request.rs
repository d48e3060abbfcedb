//! The line of a tool's requests: over HTTP, or to another MCP server.
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The request of a tool over HTTP.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The method, in capitals.
    pub method: String,
    /// From the root of the server, with `{NAME}` in a parameter's place.
    pub path: String,
    /// In the order of the document.
    pub parameters: Vec<Parameter>,
    /// How the body is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Box<Body>>,
    /// The value of `Accept`.
    pub accept: String,
    /// How an answer in JSON becomes structured content.
    pub output: OutputForm,
}

/// One parameter of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name in the request.
    pub name: String,
    /// The argument that has its value.
    pub argument: String,
    /// Where it stands.
    pub place: Place,
    /// How its value is written.
    pub style: Style,
    /// True if each item of a list, and each member of an object, stands by itself.
    pub explode: bool,
}

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// In the path.
    Path,
    /// In the query.
    Query,
    /// In a header.
    Header,
}

/// How a parameter's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// Items with commas between them.
    Simple,
    /// `name=value`, as forms have it.
    Form,
    /// Items with blanks between them.
    Space,
    /// Items with bars between them.
    Pipe,
    /// `name[member]=value`.
    Deep,
    /// One JSON text.
    Json,
}

/// How a request's body is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// The argument that has it.
    pub argument: String,
    /// Its media type; without a boundary for [`BodyForm::Parts`].
    pub media: String,
    /// How the argument becomes bytes.
    pub form: BodyForm,
    /// Names of fields in the request, by their members of the argument. The others are the same.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
    /// How fields of [`BodyForm::Pairs`] are written, where the document says so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub styles: BTreeMap<String, FieldStyle>,
    /// Fields of [`BodyForm::Parts`] that may be files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// True if fields of [`BodyForm::Parts`] that the document does not name may be files.
    #[serde(default, skip_serializing_if = "is_false")]
    pub others_are_files: bool,
    /// Media types of parts, by their fields, where the document names them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub part_media: BTreeMap<String, String>,
}

/// How a field of a form is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldStyle {
    /// How its value is written.
    pub style: Style,
    /// True if each item of a list, and each member of an object, stands by itself.
    pub explode: bool,
}

impl FieldStyle {
    /// One JSON text.
    pub const JSON: Self = Self { style: Style::Json, explode: false };
}

/// How an argument becomes a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BodyForm {
    /// A JSON text.
    Json,
    /// The fields of a form, `application/x-www-form-urlencoded`.
    Pairs,
    /// The fields of a form with files, `multipart/form-data`.
    Parts,
    /// A text as it is.
    Text,
    /// The bytes of a file.
    File,
}

/// How an answer in JSON becomes structured content, which is an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputForm {
    /// As it is where it is an object; there is no output schema.
    Free,
    /// As it is, by the output schema.
    Object,
    /// As the member `result`, by the output schema.
    Result,
}

/// The call of a tool of another MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteCall {
    /// The tool's name there.
    pub remote: String,
    /// Arguments that modern requests repeat in headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirrored: Vec<MirroredParameter>,
}

/// An argument that a header repeats (2026-07-28, "Custom Headers from Tool Parameters").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirroredParameter {
    /// The header without `Mcp-Param-`.
    pub header: String,
    /// Names of members that lead to the value.
    pub path: Vec<String>,
}

const fn is_false(value: &bool) -> bool {
    !*value
}

impl MirroredParameter {
    /// The header's value for these arguments; `None` where they have none.
    #[must_use]
    pub fn value(&self, arguments: &Value) -> Option<String> {
        let value = self.path.iter().try_fold(arguments, |value, name| value.get(name))?;
        match value {
            Value::String(text) => Some(header_text(text)),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// The bytes of a picture or a file in an answer; `None` if the text is not base64.
#[must_use]
pub fn bytes_of_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// A text as a header has it: other characters than printable ASCII in base64.
pub(crate) fn header_text(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        && text.trim() == text
        && !text.starts_with("=?base64?");
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_header_repeats_what_can_stand_in_one() {
        let of = |value: Value| {
            let parameter = MirroredParameter { header: "A".to_owned(), path: vec!["in".to_owned(), "a".to_owned()] };
            parameter.value(&json!({"in": {"a": value}}))
        };
        for (value, expected) in [
            (json!("eu"), Some("eu")),
            (json!(""), Some("")),
            (json!(" eu"), Some("=?base64?IGV1?=")),
            (json!("a\r\nb"), Some("=?base64?YQ0KYg==?=")),
            (json!("é"), Some("=?base64?w6k=?=")),
            (json!("=?base64?"), Some("=?base64?PT9iYXNlNjQ/?=")),
            (json!(42), Some("42")),
            (json!(true), Some("true")),
            (json!(null), None),
            (json!(["eu"]), None),
        ] {
            assert_eq!(of(value.clone()).as_deref(), expected, "{value}");
        }
    }
}
