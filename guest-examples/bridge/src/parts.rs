//! The fields of a form with files: `multipart/form-data` (RFC 7578). Nothing in a name or a value ends its part.

use serde_json::{Map, Value};
use toolcell_bridge_lines::Body;
use toolkit::Failure;

use crate::file::File;
use crate::query::scalar;

/// The name of a file that has none. Servers take a part without one for text.
const FILE_NAME: &str = "file";

struct Part {
    head: String,
    bytes: Vec<u8>,
    is_file: bool,
}

/// The body, with its media type.
pub fn body(definition: &Body, members: &Map<String, Value>) -> Result<(String, Vec<u8>), Failure> {
    let mut parts = Vec::new();
    for (member, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        let name = definition.names.get(member).unwrap_or(member);
        let media = definition.part_media.get(name).map(String::as_str);
        match value {
            // One JSON text, where the document says so of a list.
            Value::Array(items) if !media.is_some_and(|media| media.ends_with("json")) => {
                for item in items {
                    parts.push(Part::of(definition, name, media, item)?);
                }
            }
            value => parts.push(Part::of(definition, name, media, value)?),
        }
    }
    // Some servers read no field behind a file.
    parts.sort_by_key(|part| part.is_file);
    let boundary = boundary(&parts);
    let mut bytes = Vec::new();
    for part in &parts {
        bytes.extend_from_slice(format!("--{boundary}\r\n{}\r\n\r\n", part.head).as_bytes());
        bytes.extend_from_slice(&part.bytes);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok((format!("{}; boundary={boundary}", definition.media), bytes))
}

impl Part {
    fn of(definition: &Body, name: &str, media: Option<&str>, value: &Value) -> Result<Self, Failure> {
        let mut head = format!("content-disposition: form-data; name=\"{}\"", quoted(name));
        if is_file(definition, name, value) {
            let file = File::of(name, value)?;
            let media = file.media.as_deref().or(media).unwrap_or("application/octet-stream");
            let file_name = quoted(file.name.as_deref().unwrap_or(FILE_NAME));
            head.push_str(&format!("; filename=\"{file_name}\"\r\ncontent-type: {media}"));
            return Ok(Self { head, bytes: file.bytes, is_file: true });
        }
        let is_json = value.is_object() || value.is_array();
        if let Some(media) = media.or(is_json.then_some("application/json")) {
            head.push_str(&format!("\r\ncontent-type: {media}"));
        }
        Ok(Self { head, bytes: scalar(name, value)?.into_bytes(), is_file: false })
    }
}

/// True if the field is a file: one that the document names, or another with the content of one.
fn is_file(definition: &Body, name: &str, value: &Value) -> bool {
    let has_content = ["text", "base64"].iter().any(|member| value.get(member).is_some_and(Value::is_string));
    let is_named = definition.files.iter().any(|file| file == name);
    value.is_object() && (is_named || (definition.others_are_files && has_content))
}

/// A name between quotation marks, as browsers write it.
fn quoted(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for character in name.chars() {
        if character == '"' || character.is_ascii_control() {
            out.push_str(&format!("%{:02X}", u32::from(character)));
        } else {
            out.push(character);
        }
    }
    out
}

/// A line that stands in no part. It is made of their bytes, so the same arguments give the same body.
fn boundary(parts: &[Part]) -> String {
    let bytes = parts.iter().flat_map(|part| &part.bytes);
    // FNV-1a.
    let start = 0xcbf2_9ce4_8422_2325_u64;
    let mut hash = bytes.fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    loop {
        let boundary = format!("toolcell-{hash:016x}");
        let is_in = |part: &Part| part.bytes.windows(boundary.len()).any(|window| window == boundary.as_bytes());
        if !parts.iter().any(is_in) {
            return boundary;
        }
        hash = hash.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn sent(members: &Value) -> Result<(String, String), String> {
        sent_by(
            &json!({
                "argument": "body", "media": "multipart/form-data", "form": "parts", "files": ["photo", "more"],
                "part_media": {"about": "application/vnd.example+json"},
            }),
            members,
        )
    }

    fn sent_by(definition: &Value, members: &Value) -> Result<(String, String), String> {
        let definition = serde_json::from_value(definition.clone()).unwrap();
        let made = body(&definition, members.as_object().unwrap());
        made.map(|(media, bytes)| (media, String::from_utf8(bytes).unwrap()))
            .map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn each_field_is_a_part_and_a_file_has_its_name() {
        let (media, text) = sent(&json!({
            "a": 1, "about": {"k": [1]}, "more": [{"base64": "aGk="}, "https://a.example/b.png"], "none": null,
            "other": {"k": 1}, "photo": {"text": "hi", "filename": "a\"b.txt", "media_type": "text/plain"},
            "tags": ["x", "y"],
        }))
        .unwrap();
        let boundary = media.strip_prefix("multipart/form-data; boundary=").unwrap();
        let parts: Vec<&str> = text.split(&format!("--{boundary}")).collect();
        let field = |name: &str| format!("\r\ncontent-disposition: form-data; name=\"{name}\"");
        let typed = |name: &str, media: &str| format!("{}\r\ncontent-type: {media}", field(name));
        assert_eq!(
            parts,
            [
                String::new(),
                format!("{}\r\n\r\n1\r\n", field("a")),
                format!("{}\r\n\r\n{{\"k\":[1]}}\r\n", typed("about", "application/vnd.example+json")),
                format!("{}\r\n\r\nhttps://a.example/b.png\r\n", field("more")),
                format!("{}\r\n\r\n{{\"k\":1}}\r\n", typed("other", "application/json")),
                format!("{}\r\n\r\nx\r\n", field("tags")),
                format!("{}\r\n\r\ny\r\n", field("tags")),
                format!("{}; filename=\"file\"\r\ncontent-type: application/octet-stream\r\n\r\nhi\r\n", field("more")),
                format!("{}; filename=\"a%22b.txt\"\r\ncontent-type: text/plain\r\n\r\nhi\r\n", field("photo")),
                "--\r\n".to_owned(),
            ]
        );
    }

    #[test]
    fn a_file_has_the_name_of_its_field_in_the_request() {
        let definition = json!({
            "argument": "body", "media": "multipart/form-data", "form": "parts", "files": ["files[]"],
            "names": {"files": "files[]"}, "others_are_files": true,
        });
        let file = json!({"text": "hi"});
        let (_, text) = sent_by(&definition, &json!({"files": [file], "k": file, "o": {"a": 1}, "s": "x"})).unwrap();
        for name in ["files[]", "k"] {
            assert!(text.contains(&format!("name=\"{name}\"; filename=\"file\"\r\n")), "{text}");
        }
        assert!(text.contains("name=\"o\"\r\ncontent-type: application/json\r\n\r\n{\"a\":1}\r\n"), "{text}");
        assert!(text.contains("name=\"s\"\r\n\r\nx\r\n"), "{text}");
    }

    #[test]
    fn nothing_in_a_value_ends_its_part() {
        let (media, _) = sent(&json!({"a": "x"})).unwrap();
        let boundary = media.rsplit('=').next().unwrap();
        // A value cannot hold the boundary that is made of it, so one is put beside it.
        let part = |text: &str| Part { head: String::new(), bytes: text.as_bytes().to_vec(), is_file: false };
        let other = super::boundary(&[part("x"), part(boundary)]);
        assert_ne!(other, boundary);
        let (_, text) = sent(&json!({"a\r\nb: c\"": "x", "photo": {"text": "", "filename": "a\r\nx: y"}})).unwrap();
        assert!(text.contains("name=\"a%0D%0Ab: c%22\"\r\n\r\nx\r\n"), "{text}");
        assert!(text.contains("filename=\"a%0D%0Ax: y\"\r\ncontent-type: "), "{text}");
        assert!(sent(&json!({"photo": {"text": "a", "media_type": "a/b\r\nx: y"}})).is_err());
    }
}
