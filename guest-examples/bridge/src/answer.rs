//! From an answer to a result: JSON as structured content, other media as text, pictures, sounds or
//! resources, and a status of failure as an error with what the server says.

use serde::de::IgnoredAny;
use serde_json::Value;
use toolcell_bridge_lines::{OutputForm, Request, charset, essence, is_json, is_text};
use toolkit::http::Answer;
use toolkit::{CallResult, Content, EmbeddedResource, Failure, ResourceBody};

use crate::fit::{Fit, fit};
use crate::text::decoded;

/// Largest answer, in bytes. 900 KiB: the host takes a result of 1 MiB by default.
const BYTES_MAX: usize = 900 * 1024;

/// Largest answer that is a text and structured content at once, in bytes.
const BOTH_BYTES_MAX: usize = BYTES_MAX / 2;

/// Bytes of an error that a model reads. 8 KiB: some services answer with whole pages.
const ERROR_BYTES_MAX: usize = 8 * 1024;

/// Fields that an answer without a body is told by.
const FIELDS: [&str; 7] =
    ["content-type", "content-length", "content-encoding", "etag", "last-modified", "location", "retry-after"];

/// The status by which a request with a condition is answered. It leads nowhere.
const NOT_MODIFIED: u16 = 304;

/// An answer that is read.
struct Came<'a> {
    status: u16,
    /// Without its parameters.
    media: String,
    charset: Option<String>,
    /// How the body is packed, if it is.
    packed: Option<String>,
    fields: Vec<(&'static str, String)>,
    url: &'a str,
    body: Vec<u8>,
}

/// The result of an answer. `output` is the schema of structured content, where the tool has one.
pub fn result(request: &Request, output: Option<&Value>, url: &str, answer: Answer) -> Result<CallResult, Failure> {
    let media = answer.field("content-type").unwrap_or_default();
    let charset = charset(media);
    let media = essence(media);
    let packed = answer.field("content-encoding").map(|how| how.trim().to_ascii_lowercase());
    let packed = packed.filter(|how| !how.is_empty() && how != "identity");
    let fields = FIELDS.iter().filter_map(|name| Some((*name, answer.field(name)?.to_owned()))).collect();
    let status = answer.status;
    let broken = |failure: Failure| {
        Failure::Failed(format!("HTTP {status}, and then the answer breaks off: {}", failure.message()))
    };
    let body = answer.read(BYTES_MAX.saturating_add(1)).map_err(broken)?;
    Ok(made(request, output, Came { status, media, charset, packed, fields, url, body }))
}

/// A status of success is not an error, whatever comes with it: a model that reads of an error makes the
/// request again.
fn made(request: &Request, output: Option<&Value>, came: Came<'_>) -> CallResult {
    if !(200..300).contains(&came.status) {
        return error(&came);
    }
    if came.body.len() > BYTES_MAX {
        return unread(request, &came, &format!("The answer is larger than {BYTES_MAX} bytes: ask for less."));
    }
    if let (Some(how), false) = (&came.packed, came.body.is_empty()) {
        return unread(request, &came, &format!("The answer is packed with {how:?}, which a bridge does not read."));
    }
    if came.body.is_empty() {
        return without_structure(request, vec![Content::text(head(&came))]);
    }
    let json = json(&came).filter(|_| is_json(&came.media) || request.output != OutputForm::Free);
    match (json, request.output) {
        (Some(text), output_form) => structured(output_form, output, &came, text),
        (None, OutputForm::Free) => CallResult::new(vec![content(came)]),
        (None, OutputForm::Object | OutputForm::Result) => {
            let media = if came.media.is_empty() { "of no media type" } else { &came.media };
            let note = format!("HTTP {}. The answer is {media}, and not the JSON of the API's document.", came.status);
            without_structure(request, vec![Content::text(note), content(came)])
        }
    }
}

/// A result that has nothing for its schema, none of which requires a member.
fn without_structure(request: &Request, content: Vec<Content>) -> CallResult {
    let mut result = CallResult::new(content);
    result.structured_json = (request.output != OutputForm::Free).then(|| "{}".to_owned());
    result
}

/// An answer whose body cannot be given. It is an error where the request changed nothing.
fn unread(request: &Request, came: &Came<'_>, why: &str) -> CallResult {
    let mut result = without_structure(request, vec![Content::text(format!("{}\n{why}", head(came)))]);
    result.is_error = matches!(request.method.as_str(), "GET" | "HEAD");
    result
}

/// The text of a body that is JSON.
fn json(came: &Came<'_>) -> Option<String> {
    let text = decoded(&came.body, came.charset.as_deref())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).trim();
    serde_json::from_str::<IgnoredAny>(text).ok().map(|_| text.to_owned())
}

fn structured(form: OutputForm, output: Option<&Value>, came: &Came<'_>, text: String) -> CallResult {
    let whole = match form {
        OutputForm::Free if !text.starts_with('{') => return CallResult::text(text),
        OutputForm::Result => format!("{{\"result\":{text}}}"),
        OutputForm::Free | OutputForm::Object => text.clone(),
    };
    let fit = fit(output.unwrap_or(&Value::Null), &whole);
    let (value, differs) = match fit {
        Fit::Whole => {
            let mut result = CallResult::new(Vec::new());
            result.structured_json = Some(whole);
            return result;
        }
        Fit::Part(Value::Object(part), differs) if text.len() <= BOTH_BYTES_MAX => {
            (Value::Object(part).to_string(), differs)
        }
        Fit::Part(_, differs) | Fit::Not(differs) => ("{}".to_owned(), differs),
    };
    let note = format!("HTTP {}, but {differs}. The structured content lacks that; all of it is here.", came.status);
    let mut result = CallResult::new(vec![Content::text(note), Content::text(text)]);
    result.structured_json = (form != OutputForm::Free || value != "{}").then_some(value);
    result
}

/// A body that is not JSON.
fn content(came: Came<'_>) -> Content {
    let Came { media, charset, url, body, .. } = came;
    if media.is_empty() || is_text(&media) {
        if let Some(text) = decoded(&body, charset.as_deref()) {
            return Content::text(text);
        }
    }
    match media.split('/').next() {
        Some("image") => Content::image(body, &media),
        Some("audio") => Content::audio(body, &media),
        _ => Content::EmbeddedResource(EmbeddedResource {
            uri: url.to_owned(),
            mime_type: Some(media).filter(|media| !media.is_empty()),
            body: ResourceBody::Blob(body),
            annotations: None,
            meta_json: None,
        }),
    }
}

/// The status, and what the server says of it.
fn error(came: &Came<'_>) -> CallResult {
    let mut text = head(came);
    if (300..400).contains(&came.status) && came.status != NOT_MODIFIED {
        text.push_str("\nRedirects are not followed.");
    }
    let end = came.body.len().min(ERROR_BYTES_MAX);
    let beginning = came.body.get(..end).unwrap_or_default();
    let said = decoded(beginning, came.charset.as_deref());
    let said = said.unwrap_or_else(|| String::from_utf8_lossy(beginning).into_owned());
    let is_text = !said.chars().any(|character| character.is_control() && !character.is_whitespace());
    if !said.trim().is_empty() && is_text {
        text.push_str(&format!("\n\n{}", said.trim()));
        text.push_str(if came.body.len() > end { "…" } else { "" });
    }
    let mut result = CallResult::text(text);
    result.is_error = true;
    result
}

/// The status and some fields, a line each.
fn head(came: &Came<'_>) -> String {
    let lines = came.fields.iter().map(|(name, value)| format!("\n{name}: {value}"));
    format!("HTTP {}{}", came.status, lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn came<'a>(status: u16, media: &str, body: &[u8]) -> Came<'a> {
        let fields = vec![("etag", "x".to_owned())];
        let (charset, media) = (charset(media), essence(media));
        Came { status, media, charset, packed: None, fields, url: "https://a.example/x", body: body.to_vec() }
    }

    fn request(method: &str, output: &str) -> Request {
        let request = json!({"method": method, "path": "/", "accept": "*/*", "parameters": [], "output": output});
        serde_json::from_value(request).unwrap()
    }

    fn of(output: &str, status: u16, media: &str, body: &[u8]) -> CallResult {
        let schema = match output {
            "free" => None,
            "object" => Some(json!({"type": "object", "properties": {"id": {"type": ["integer", "null"]}}})),
            _ => Some(json!({"type": "object", "properties": {"result": {"type": ["array", "null"]}}})),
        };
        made(&request("POST", output), schema.as_ref(), came(status, media, body))
    }

    fn texts(result: &CallResult) -> Vec<&str> {
        assert!(result.content.iter().all(|content| matches!(content, Content::Text(_))), "{result:?}");
        let texts = result.content.iter().filter_map(|content| match content {
            Content::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    #[test]
    fn json_is_structured_by_the_schema() {
        for (output, body, structured) in [
            ("object", &b" {\"a\": 1}\n"[..], Some("{\"a\": 1}")),
            ("result", b"[1]", Some("{\"result\":[1]}")),
            ("free", b"\xef\xbb\xbf{}", Some("{}")),
            ("free", b"[1]", None),
            ("object", b"", Some("{}")),
        ] {
            let result = of(output, 200, "application/json", body);
            assert_eq!(result.structured_json.as_deref(), structured, "{output}");
        }
        assert_eq!(of("free", 200, "application/json", b"[1]").only_text(), Some("[1]"));
        let latin = of("object", 200, "application/json; charset=ISO-8859-1", b"{\"a\":\"\xe9\"}");
        assert_eq!(latin.structured_json.as_deref(), Some("{\"a\":\"é\"}"));
    }

    #[test]
    fn a_status_of_success_is_a_result_whatever_comes_with_it() {
        let text = of("object", 200, "text/plain", b"created 17");
        assert_eq!((text.is_error, text.structured_json.as_deref()), (false, Some("{}")));
        let note = "HTTP 200. The answer is text/plain, and not the JSON of the API's document.";
        assert_eq!(texts(&text), [note, "created 17"]);
        let differs = of("object", 201, "application/json", b"{\"id\":\"12\",\"n\":1}");
        assert_eq!((differs.is_error, differs.structured_json.as_deref()), (false, Some("{\"id\":null,\"n\":1}")));
        let note =
            "HTTP 201, but the answer has a text for \"id\". The structured content lacks that; all of it is here.";
        assert_eq!(texts(&differs), [note, "{\"id\":\"12\",\"n\":1}"]);
        for (output, body) in [("object", "[1]"), ("object", "null"), ("result", "{}")] {
            let other = of(output, 200, "application/json", body.as_bytes());
            assert!(!other.is_error && texts(&other)[1] == body, "{output} {body}: {other:?}");
            let structured: Value = serde_json::from_str(other.structured_json.as_deref().unwrap()).unwrap();
            assert!(structured.as_object().unwrap().values().all(Value::is_null), "{structured}");
        }
        let twice = of("free", 200, "application/json", b"{\"a\":1,\"a\":2}");
        assert_eq!(twice.structured_json.as_deref(), Some("{\"a\":2}"));
        let large = format!("{{\"id\":\"{}\"}}", "a".repeat(BOTH_BYTES_MAX));
        assert_eq!(of("object", 200, "application/json", large.as_bytes()).structured_json.as_deref(), Some("{}"));
    }

    #[test]
    fn a_body_that_cannot_be_given_is_an_error_only_of_what_changed_nothing() {
        let large =
            |method: &str| made(&request(method, "object"), None, came(200, "text/csv", &vec![b'a'; BYTES_MAX + 1]));
        let packed = |method: &str| {
            made(
                &request(method, "free"),
                None,
                Came { packed: Some("gzip".to_owned()), ..came(200, "text/csv", b"\x1f") },
            )
        };
        let said = "HTTP 200\netag: x\nThe answer is larger than 921600 bytes: ask for less.";
        assert_eq!((large("POST").is_error, large("POST").only_text()), (false, Some(said)));
        assert_eq!((large("GET").is_error, large("GET").only_text()), (true, Some(said)));
        let said = "HTTP 200\netag: x\nThe answer is packed with \"gzip\", which a bridge does not read.";
        assert_eq!((packed("PUT").is_error, packed("PUT").only_text()), (false, Some(said)));
        assert!(packed("HEAD").is_error && packed("HEAD").structured_json.is_none());
    }

    #[test]
    fn other_media_are_what_they_are() {
        for media in ["text/csv", "application/csv", "application/jsonl", "application/x-ndjson", ""] {
            assert_eq!(of("free", 200, media, b"a,b").only_text(), Some("a,b"), "{media}");
        }
        assert_eq!(of("free", 200, "text/plain; charset=latin1", b"\xe9").only_text(), Some("é"));
        let content = |media: &str| of("free", 200, media, b"\x89\x00").content.remove(0);
        assert!(matches!(content("image/png"), Content::Image(image) if image.data == b"\x89\x00"));
        assert!(matches!(content("audio/wav"), Content::Audio(_)));
        let is_of = |resource: &EmbeddedResource| {
            resource.uri == "https://a.example/x" && resource.mime_type.as_deref() == Some("application/pdf")
        };
        assert!(matches!(content("application/pdf"), Content::EmbeddedResource(resource) if is_of(&resource)));
        assert_eq!(of("free", 204, "", b"").only_text(), Some("HTTP 204\netag: x"));
    }

    #[test]
    fn a_status_of_failure_is_an_error_with_what_the_server_says() {
        let missing = of("object", 404, "application/json", b"{\"message\":\"no such pet\"}");
        assert!(missing.is_error && missing.structured_json.is_none());
        assert_eq!(missing.only_text(), Some("HTTP 404\netag: x\n\n{\"message\":\"no such pet\"}"));
        let moved = of("free", 302, "text/html", b"");
        assert_eq!(moved.only_text(), Some("HTTP 302\netag: x\nRedirects are not followed."));
        assert_eq!(of("free", 304, "", b"").only_text(), Some("HTTP 304\netag: x"));
        let long = of("free", 500, "text/plain", &vec![b'a'; 100_000]);
        assert!(long.only_text().unwrap().len() < ERROR_BYTES_MAX + 100);
        assert_eq!(of("free", 500, "image/png", b"\x89\x00").only_text(), Some("HTTP 500\netag: x"));
    }
}
