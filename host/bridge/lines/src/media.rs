//! Media types, as documents, requests and answers write them.

/// Media types that are texts, next to `text/…`, by their ends.
const TEXTS: [&str; 9] = ["xml", "yaml", "csv", "javascript", "graphql", "sql", "ndjson", "jsonl", "json-seq"];

/// True for JSON, also in another's form such as `application/problem+json`.
#[must_use]
pub fn is_json(media: &str) -> bool {
    let media = essence(media);
    media == "application/json" || (media.ends_with("+json") && !media.contains('*')) || media == "text/json"
}

/// True for media that a model reads and writes as they are.
#[must_use]
pub fn is_text(media: &str) -> bool {
    let media = essence(media);
    media.starts_with("text/") || is_json(&media) || TEXTS.iter().any(|end| media.ends_with(end))
}

/// A media type without its parameters, in lower case.
#[must_use]
pub fn essence(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The parameter `charset` of a media type, in lower case.
#[must_use]
pub fn charset(media: &str) -> Option<String> {
    let parameters = media.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let mut values = parameters.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    values.next().map(|(_, value)| value.trim().trim_matches('"').to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charset_is_found_however_it_is_written() {
        for (media, expected) in [
            ("text/plain; Charset=\"ISO-8859-1\"", Some("iso-8859-1")),
            ("text/plain;a=b;charset=utf-8", Some("utf-8")),
            ("text/plain; version=1", None),
            ("text/plain", None),
        ] {
            assert_eq!(charset(media).as_deref(), expected, "{media}");
        }
    }

    #[test]
    fn texts_are_what_a_model_reads() {
        for media in ["text/x", "application/csv", "application/jsonl", "application/x-ndjson", "a/b+json; v=1"] {
            assert!(is_text(media), "{media}");
        }
        for media in ["", "image/png", "application/pdf"] {
            assert!(!is_text(media), "{media}");
        }
    }
}
