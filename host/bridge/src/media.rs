//! Media types, as documents write them.
pub(crate) use toolcell_bridge_lines::{charset, essence, is_json, is_text};

/// True if a header may hold it.
pub(crate) fn is_media(media: &str) -> bool {
    const BYTES_MAX: usize = 200;
    media.len() <= BYTES_MAX && media.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

/// The media type of a body that is sent as UTF-8, whatever the document says of its characters.
pub(crate) fn as_utf8(media: &str) -> String {
    if charset(media).is_none_or(|charset| matches!(charset.as_str(), "utf-8" | "utf8")) {
        return media.to_owned();
    }
    let is_charset = |part: &str| part.trim().to_ascii_lowercase().starts_with("charset=");
    let parts: Vec<&str> = media.split(';').filter(|part| !is_charset(part)).collect();
    format!("{}; charset=utf-8", parts.join(";").trim_end())
}
