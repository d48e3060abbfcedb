//! From a finished run to the caller's answer.
use toolcell_policy::{Output, Program};

use super::FinishedRun;
use crate::shape::tool_call::ToolAnswer;
use toolcell_wall::contract::{
    EmbeddedResource, GuestContent, GuestResourceBody, GuestResult, MediaContent, TextContent,
};
use toolcell_wall::failure::CallFailure;

/// Bytes of standard output that are shown of a failed run, from its start.
const OUTPUT_OF_FAILURE_BYTES: usize = 16 << 10;

/// The key of a result's `_meta` that holds the exit code, if it is not 0.
const EXIT_CODE_KEY: &str = "toolcell/exit_code";

/// The address of standard output when it becomes a resource.
const STDOUT_URI: &str = "file:///dev/stdout";

/// The answer of a run.
pub(super) fn of(program: &Program, ended: FinishedRun) -> ToolAnswer {
    if !program.is_fine(ended.exit_code) {
        return Ok(failed(&ended));
    }
    let exit_code = ended.exit_code;
    let (content, structured_json) = match program.output() {
        Output::Text { .. } => (texts(ended.stdout, ended.stderr), None),
        Output::Json => (Vec::new(), Some(json(ended.stdout)?)),
        Output::Media { file, mime_type } => {
            let data = ended.file.unwrap_or(Ok(ended.stdout)).map_err(|why| unusable(&why, &ended.last_words))?;
            let uri = file.as_ref().map_or(STDOUT_URI.to_owned(), |path| format!("file://{}", encoded(path)));
            (vec![media(data, mime_type, uri)], None)
        }
    };
    Ok(GuestResult { content, structured_json, is_error: false, meta_json: meta(exit_code) })
}

/// Standard output, then standard error as a separate text. An empty one is left out unless both
/// are.
fn texts(stdout: Vec<u8>, stderr: Vec<u8>) -> Vec<GuestContent> {
    match (stdout.is_empty(), stderr.is_empty()) {
        (_, true) => vec![text(lossy(stdout))],
        (true, false) => vec![text(lossy(stderr))],
        (false, false) => vec![text(lossy(stdout)), text(lossy(stderr))],
    }
}

/// The result of a failed run, for a model: exit code, standard error, and the output so far.
fn failed(ended: &FinishedRun) -> GuestResult {
    let mut shown = format!("the program ended with exit code {}", ended.exit_code);
    let mut section = |title: &str, body: &str| {
        if !body.trim().is_empty() {
            shown.push_str(&format!("\n\n{title}:\n{}", body.trim_end()));
        }
    };
    section("standard error", &plain(&ended.last_words));
    let cut = ended.stdout.len() > OUTPUT_OF_FAILURE_BYTES;
    let start = ended.stdout.get(..OUTPUT_OF_FAILURE_BYTES).unwrap_or(&ended.stdout);
    let title = if cut { "standard output, its start" } else { "standard output" };
    section(title, &plain(&String::from_utf8_lossy(start)));
    GuestResult { content: vec![text(shown)], structured_json: None, is_error: true, meta_json: meta(ended.exit_code) }
}

fn unusable(why: &str, last_words: &str) -> CallFailure {
    let said = plain(last_words);
    CallFailure::Failed(if said.is_empty() { why.to_owned() } else { format!("{why}\n\nit printed:\n{said}") })
}

/// The text without control characters and colours, which a reader would not see as they are.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            // ESC [ parameters final byte: a colour or a movement of the cursor.
            '\u{1b}' if characters.as_str().starts_with('[') => {
                let _ = characters.by_ref().skip(1).find(|c| ('\u{40}'..='\u{7e}').contains(c));
            }
            '\n' | '\t' => plain.push(character),
            character if character.is_control() => {}
            character => plain.push(character),
        }
    }
    plain
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// One JSON value, as it was printed.
fn json(bytes: Vec<u8>) -> Result<String, CallFailure> {
    let printed = lossy(bytes);
    let value = printed.trim();
    match serde_json::from_str::<&serde_json::value::RawValue>(value) {
        Ok(_) => Ok(value.to_owned()),
        Err(error) if value.is_empty() => {
            let _ = error;
            Err(CallFailure::Failed("the program printed nothing, and one JSON value was expected".to_owned()))
        }
        Err(error) => {
            let start: String = plain(value).chars().take(200).collect();
            let message =
                format!("the program printed something else than one JSON value: {error}; it begins {start:?}");
            Err(CallFailure::Failed(message))
        }
    }
}

fn text(text: String) -> GuestContent {
    GuestContent::Text(TextContent { text, annotations: None, meta_json: None })
}

fn media(data: Vec<u8>, mime_type: &str, uri: String) -> GuestContent {
    let of = |data: Vec<u8>| MediaContent { data, mime_type: mime_type.to_owned(), annotations: None, meta_json: None };
    if mime_type.starts_with("image/") {
        return GuestContent::Image(of(data));
    }
    if mime_type.starts_with("audio/") {
        return GuestContent::Audio(of(data));
    }
    let body = match String::from_utf8(data) {
        Ok(text) if is_textual(mime_type) => GuestResourceBody::Text(text),
        Ok(text) => GuestResourceBody::Blob(text.into_bytes()),
        Err(error) => GuestResourceBody::Blob(error.into_bytes()),
    };
    let mime_type = Some(mime_type.to_owned());
    GuestContent::EmbeddedResource(EmbeddedResource { uri, mime_type, body, annotations: None, meta_json: None })
}

fn is_textual(mime_type: &str) -> bool {
    let essence = mime_type.split(';').next().unwrap_or_default().trim();
    let structured = ["+json", "+xml", "/json", "/xml", "/javascript", "/yaml", "/toml"];
    essence.starts_with("text/") || structured.iter().any(|end| essence.ends_with(end))
}

/// A path, percent-encoded for an address.
fn encoded(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn meta(exit_code: u8) -> Option<String> {
    (exit_code != 0).then(|| format!("{{\"{EXIT_CODE_KEY}\":{exit_code}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_shown_without_what_terminals_obey() {
        assert_eq!(plain("\u{1b}[31;1merror\u{1b}[0m: a\tb\r\n\u{7}c\u{1b}"), "error: a\tb\nc");
        assert_eq!(plain("\u{1b}["), "");
    }

    #[test]
    fn an_empty_stream_is_left_out_where_the_other_is_not() {
        let shown = |stdout: &str, stderr: &str| -> Vec<String> {
            let texts = texts(stdout.into(), stderr.into()).into_iter();
            texts
                .map(|content| if let GuestContent::Text(one) = content { one.text } else { "other".to_owned() })
                .collect()
        };
        assert_eq!(shown("", ""), [""]);
        assert_eq!(shown("out", ""), ["out"]);
        assert_eq!(shown("", "why"), ["why"]);
        assert_eq!(shown("out", "why"), ["out", "why"]);
    }

    #[test]
    fn a_path_is_an_address_whatever_it_holds() {
        assert_eq!(encoded("/out/a b%é.png"), "/out/a%20b%25%C3%A9.png");
    }

    #[test]
    fn kinds_of_bytes_are_told_by_their_media_type() {
        let kind = |mime_type: &str, data: &[u8]| match media(data.to_vec(), mime_type, "file:///x".to_owned()) {
            GuestContent::Image(_) => "image",
            GuestContent::Audio(_) => "audio",
            GuestContent::EmbeddedResource(EmbeddedResource { body: GuestResourceBody::Text(_), .. }) => "text",
            GuestContent::EmbeddedResource(_) => "blob",
            _ => "other",
        };
        for (mime_type, data, expected) in [
            ("image/svg+xml", &b"<svg/>"[..], "image"),
            ("audio/wav", b"RIFF", "audio"),
            ("text/csv", b"a,b", "text"),
            ("text/csv; charset=utf-8", b"a,b", "text"),
            ("application/ld+json", b"{}", "text"),
            ("text/csv", b"\xff", "blob"),
            ("application/zip", b"PK", "blob"),
        ] {
            assert_eq!(kind(mime_type, data), expected, "{mime_type}");
        }
    }
}
