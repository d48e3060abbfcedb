//! Media types, as documents and requests write them.

/// Media types that are texts, next to `text/…`, by their ends.
const TEXTS: [&str; 9] = ["xml", "yaml", "csv", "javascript", "graphql", "sql", "ndjson", "jsonl", "json-seq"];

/// True for JSON, also in another's form such as `application/problem+json`.
pub(crate) fn is_json(media: &str) -> bool {
    let media = essence(media);
    media == "application/json" || (media.ends_with("+json") && !media.contains('*')) || media == "text/json"
}

/// True for media that a model reads and writes as they are.
pub(crate) fn is_text(media: &str) -> bool {
    let media = essence(media);
    media.starts_with("text/") || is_json(&media) || TEXTS.iter().any(|end| media.ends_with(end))
}

/// True if a header may hold it.
pub(crate) fn is_media(media: &str) -> bool {
    const BYTES_MAX: usize = 200;
    media.len() <= BYTES_MAX && media.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

/// A media type without its parameters.
pub(crate) fn essence(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
