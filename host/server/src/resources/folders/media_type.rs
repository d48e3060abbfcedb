//! Media types of files, by the end of their names.

/// Extensions with their media types: those that a model or a client is likely to get.
const BY_END: [(&str, &str); 48] = [
    ("aac", "audio/aac"),
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("c", "text/x-c"),
    ("cpp", "text/x-c++"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("go", "text/x-go"),
    ("gz", "application/gzip"),
    ("h", "text/x-c"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ics", "text/calendar"),
    ("java", "text/x-java"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("log", "text/plain"),
    ("markdown", "text/markdown"),
    ("md", "text/markdown"),
    ("mjs", "text/javascript"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("py", "text/x-python"),
    ("rs", "text/x-rust"),
    ("sh", "application/x-sh"),
    ("sql", "application/sql"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("ts", "text/typescript"),
    ("txt", "text/plain"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webp", "image/webp"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

/// The media type of text with an unknown extension.
pub const TEXT: &str = "text/plain";

/// The media type of bytes with an unknown extension.
pub const BYTES: &str = "application/octet-stream";

/// The media type of this extension.
pub fn of_name(name: &str) -> Option<&'static str> {
    let (_, end) = name.rsplit_once('.')?;
    let end = end.to_ascii_lowercase();
    BY_END.binary_search_by(|(known, _)| (*known).cmp(end.as_str())).ok().and_then(|place| {
        let (_, media_type) = BY_END.get(place)?;
        Some(*media_type)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_in_order_and_tell_the_type_in_any_case() {
        assert!(BY_END.is_sorted_by(|(one, _), (next, _)| one < next));
        for (name, media_type) in [
            ("a.md", Some("text/markdown")),
            ("A.B.PNG", Some("image/png")),
            ("md", None),
            ("a.unknown", None),
            ("a.", None),
        ] {
            assert_eq!(of_name(name), media_type, "{name}");
        }
    }
}
