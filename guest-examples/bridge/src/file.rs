//! A file in the arguments: its bytes as text or as base64, and what its sender calls it.

use serde_json::Value;
use toolcell_bridge_lines::bytes_of_base64;
use toolkit::Failure;

/// Longest media type, in bytes.
const MEDIA_BYTES_MAX: usize = 200;

pub struct File {
    pub name: Option<String>,
    pub media: Option<String>,
    pub bytes: Vec<u8>,
}

impl File {
    pub fn of(argument: &str, value: &Value) -> Result<Self, Failure> {
        let member = |name: &str| value.get(name).and_then(Value::as_str);
        let bytes = match (member("text"), member("base64")) {
            (Some(text), None) => text.as_bytes().to_vec(),
            (None, Some(text)) => bytes_of_base64(text)
                .ok_or_else(|| Failure::invalid(format!("the base64 of {argument:?} is not base64")))?,
            _ => {
                return Err(Failure::invalid(format!("{argument:?} is a file: either its text or its base64")));
            }
        };
        let media = member("media_type").map(str::to_owned);
        if media.as_deref().is_some_and(|media| !is_media(media)) {
            let problem = format!("the media_type of {argument:?} is not one, such as image/png");
            return Err(Failure::invalid(problem));
        }
        Ok(Self { name: member("filename").map(str::to_owned), media, bytes })
    }
}

/// True for a media type that a header may hold.
fn is_media(media: &str) -> bool {
    let is_plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    media.len() <= MEDIA_BYTES_MAX && media.contains('/') && media.bytes().all(is_plain)
}
