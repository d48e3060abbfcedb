//! From an answer to a result: JSON as structured content, other media as text, pictures, sounds or
//! resources, and a status of failure as an error with what the server says.

use serde::de::IgnoredAny;
use toolcell_bridge_lines::{OutputForm, Request};
use toolkit::http::Answer;
use toolkit::{CallResult, Content, EmbeddedResource, Failure, ResourceBody};

/// Largest answer, in bytes. 900 KiB: the host takes a result of 1 MiB by default.
const BYTES_MAX: usize = 900 * 1024;

/// Bytes of an error that a model reads. 8 KiB: some services answer with whole pages.
const ERROR_BYTES_MAX: usize = 8 * 1024;

/// Fields that an answer without a body is told by.
const FIELDS: [&str; 5] = ["content-type", "content-length", "etag", "last-modified", "location"];

/// An answer that is read.
struct Came<'a> {
    status: u16,
    media: String,
    fields: Vec<(&'static str, String)>,
    url: &'a str,
    body: Vec<u8>,
}

pub fn result(request: &Request, url: &str, answer: Answer) -> Result<CallResult, Failure> {
    let media = answer.field("content-type").unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let fields = FIELDS.iter().filter_map(|name| Some((*name, answer.field(name)?.to_owned()))).collect();
    let status = answer.status;
    let body = answer.read(BYTES_MAX.saturating_add(1))?;
    made(request, Came { status, media, fields, url, body })
}

fn made(request: &Request, came: Came<'_>) -> Result<CallResult, Failure> {
    if !(200..300).contains(&came.status) {
        return Ok(error(&came));
    }
    if came.body.len() > BYTES_MAX {
        return Err(Failure::Failed(format!("the answer is larger than {BYTES_MAX} bytes: ask for less")));
    }
    if came.body.is_empty() {
        let mut result = CallResult::text(head(&came));
        // Neither schema requires a member.
        result.structured_json = (request.output != OutputForm::Free).then(|| "{}".to_owned());
        return Ok(result);
    }
    let is_json = came.media == "application/json" || came.media.ends_with("+json") || came.media == "text/json";
    match json(&came.body).filter(|_| is_json || request.output != OutputForm::Free) {
        Some(text) => Ok(structured(request.output, text)),
        None if request.output != OutputForm::Free => {
            Err(Failure::Failed(format!("the server answers with {:?}, and not with JSON", came.media)))
        }
        None => Ok(CallResult::new(vec![content(came)])),
    }
}

/// The text of a body that is JSON.
fn json(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(body).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim();
    serde_json::from_str::<IgnoredAny>(text).ok().map(|_| text)
}

fn structured(output: OutputForm, text: &str) -> CallResult {
    let structured = match output {
        OutputForm::Result => format!("{{\"result\":{text}}}"),
        OutputForm::Free if !text.starts_with('{') => return CallResult::text(text),
        OutputForm::Free | OutputForm::Object => text.to_owned(),
    };
    let mut result = CallResult::new(Vec::new());
    result.structured_json = Some(structured);
    result
}

/// A body that is not JSON.
fn content(came: Came<'_>) -> Content {
    let Came { media, url, body, .. } = came;
    let is_text = media.is_empty()
        || media.starts_with("text/")
        || ["xml", "javascript", "yaml", "json"].iter().any(|end| media.ends_with(end));
    let body = match String::from_utf8(body) {
        Ok(text) if is_text => return Content::text(text),
        Ok(text) => text.into_bytes(),
        Err(bytes) => bytes.into_bytes(),
    };
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
    if (300..400).contains(&came.status) {
        text.push_str("\nRedirects are not followed.");
    }
    let end = came.body.len().min(ERROR_BYTES_MAX);
    let said = String::from_utf8_lossy(came.body.get(..end).unwrap_or_default());
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

    fn of(output: &str, status: u16, media: &str, body: &[u8]) -> Result<CallResult, Failure> {
        let request = json!({"method": "GET", "path": "/", "accept": "*/*", "parameters": [], "output": output});
        let request = serde_json::from_value(request).unwrap();
        let fields = vec![("etag", "x".to_owned())];
        made(
            &request,
            Came { status, media: media.to_owned(), fields, url: "https://a.example/x", body: body.to_vec() },
        )
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
            let result = of(output, 200, "application/json", body).unwrap();
            assert_eq!(result.structured_json.as_deref(), structured, "{output}");
        }
        assert_eq!(of("free", 200, "application/json", b"[1]").unwrap().only_text(), Some("[1]"));
        let failure = of("object", 200, "text/html", b"<p>").unwrap_err();
        assert_eq!(failure.message(), "the server answers with \"text/html\", and not with JSON");
    }

    #[test]
    fn other_media_are_what_they_are() {
        assert_eq!(of("free", 200, "text/csv", b"a,b").unwrap().only_text(), Some("a,b"));
        let content = |media: &str| of("free", 200, media, b"\x89\x00").unwrap().content.remove(0);
        assert!(matches!(content("image/png"), Content::Image(image) if image.data == b"\x89\x00"));
        assert!(matches!(content("audio/wav"), Content::Audio(_)));
        let is_of = |resource: &EmbeddedResource| {
            resource.uri == "https://a.example/x" && resource.mime_type.as_deref() == Some("application/pdf")
        };
        assert!(matches!(content("application/pdf"), Content::EmbeddedResource(resource) if is_of(&resource)));
        assert_eq!(of("free", 204, "", b"").unwrap().only_text(), Some("HTTP 204\netag: x"));
        let failure = of("free", 200, "text/csv", &vec![b'a'; BYTES_MAX + 1]).unwrap_err();
        assert_eq!(failure.message(), "the answer is larger than 921600 bytes: ask for less");
    }

    #[test]
    fn a_status_of_failure_is_an_error_with_what_the_server_says() {
        let missing = of("object", 404, "application/json", b"{\"message\":\"no such pet\"}").unwrap();
        assert!(missing.is_error && missing.structured_json.is_none());
        assert_eq!(missing.only_text(), Some("HTTP 404\netag: x\n\n{\"message\":\"no such pet\"}"));
        let moved = of("free", 302, "text/html", b"").unwrap();
        assert_eq!(moved.only_text(), Some("HTTP 302\netag: x\nRedirects are not followed."));
        let long = of("free", 500, "text/plain", &vec![b'a'; 100_000]).unwrap();
        assert!(long.only_text().unwrap().len() < ERROR_BYTES_MAX + 100);
        assert_eq!(of("free", 500, "image/png", b"\x89\x00").unwrap().only_text(), Some("HTTP 500\netag: x"));
    }
}
