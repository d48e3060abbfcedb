//! Values that HTTP headers repeat from the body of a request (2026-07-28, "Request Metadata"):
//! their encoding, and their comparison.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::frame::{RpcError, decode_base64};

/// The text around a value that is base64 of UTF-8 (2026-07-28, "Value Encoding").
const SENTINEL: (&str, &str) = ("=?base64?", "?=");

/// The headers of a message that may repeat its arguments.
pub struct Mirrored(HeaderMap);

/// The difference between a header and the body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    Missing,
    Twice,
    Unreadable,
    Different,
}

impl Mirrored {
    pub(crate) fn of(headers: HeaderMap) -> Self {
        Self(headers)
    }

    /// The one value of a header, decoded.
    pub(crate) fn get(&self, name: &HeaderName) -> Result<Option<Cow<'_, str>>, Mismatch> {
        single(&self.0, name)?.map(|value| decoded(value).ok_or(Mismatch::Unreadable)).transpose()
    }
}

impl Mismatch {
    /// The error that answers the request. `name` is the header's name as the specification writes
    /// it.
    pub(crate) fn error(&self, name: &str) -> RpcError {
        let text = match self {
            Self::Missing => format!("Header mismatch: the header {name} is missing"),
            Self::Twice => format!("Header mismatch: the header {name} came more than once"),
            Self::Unreadable => {
                format!("Header mismatch: the header {name} holds characters or base64 that no value may have")
            }
            Self::Different => format!("Header mismatch: the header {name} does not say what the body says"),
        };
        RpcError::header(text)
    }
}

/// The one value of a header, undecoded.
pub(crate) fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, Mismatch> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() { Err(Mismatch::Twice) } else { Ok(first) }
}

/// The decoded value; `None` for forbidden characters or invalid base64.
pub(crate) fn decoded(value: &HeaderValue) -> Option<Cow<'_, str>> {
    let text = value.to_str().ok()?;
    let (before, after) = SENTINEL;
    let Some(encoded) = text.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)) else {
        return Some(Cow::Borrowed(text));
    };
    String::from_utf8(decode_base64(encoded)?).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_as_the_specification_writes_them() {
        for (value, expected) in [
            ("us-west1", Some("us-west1")),
            ("=?base64?SGVsbG8sIOS4lueVjA==?=", Some("Hello, 世界")),
            ("=?base64?IHBhZGRlZCA=?=", Some(" padded ")),
            ("=?base64?bGluZTEKbGluZTI=?=", Some("line1\nline2")),
            ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", Some("=?base64?literal?=")),
            ("=?base64??=", Some("")),
            ("=?base64?SGVsbG8=", Some("=?base64?SGVsbG8=")),
            ("SGVsbG8=?=", Some("SGVsbG8=?=")),
            ("=?BASE64?SGVsbG8=?=", Some("=?BASE64?SGVsbG8=?=")),
            ("=?base64?SGVsbG8?=", None),
            ("=?base64?SGVs!!!bG8=?=", None),
            ("=?base64?SGVsbG9=?=", None),
            ("=?base64?/w==?=", None),
        ] {
            let header = HeaderValue::from_str(value).unwrap();
            assert_eq!(decoded(&header).as_deref(), expected, "{value}");
        }
        assert_eq!(decoded(&HeaderValue::from_bytes(b"caf\xc3\xa9").unwrap()), None);
    }
}
