//! Header fields: the ones that guests may not set, and the largest number of them. Must not hold:
//! values that the host adds.
use http::header::{self, HeaderMap, HeaderName};

/// Fixed cost of a field, in bytes, beside its name and value. HTTP/2 counts so (RFC 9113, section
/// 6.5.2), and it keeps empty fields from being free.
const FIELD_BYTES: usize = 32;

/// True if a field belongs to the connection, the proxy or the host: a guest can neither set it nor
/// see it. These are the fields of RFC 9110, section 7.6.1, and those that could forge or smuggle a
/// request.
pub(super) fn is_forbidden(name: &HeaderName) -> bool {
    const NAMES: [HeaderName; 5] =
        [header::CONNECTION, header::HOST, header::TE, header::TRAILER, header::TRANSFER_ENCODING];
    NAMES.contains(name)
        || *name == header::UPGRADE
        || matches!(name.as_str(), "keep-alive" | "http2-settings")
        || name.as_str().starts_with("proxy-")
}

/// Checks that a message has no more fields, and no larger ones, than it may; either way returns
/// its bytes.
pub(super) fn check(fields: &HeaderMap, fields_max: usize, bytes_max: usize) -> Result<usize, usize> {
    let bytes = bytes(fields);
    if fields.len() > fields_max || bytes > bytes_max { Err(bytes) } else { Ok(bytes) }
}

/// Bytes of names and values, with their separators as HTTP/1.1 writes them.
fn bytes(fields: &HeaderMap) -> usize {
    const SEPARATORS: usize = ": \r\n".len();
    fields.iter().map(|(name, value)| name.as_str().len() + value.len() + SEPARATORS).sum()
}

/// The largest list of fields that HTTP/2 accepts for these limits, by its own count.
pub(super) fn list_bytes_max(fields_max: usize, bytes_max: usize) -> u32 {
    super::fault::clamped(fields_max.saturating_mul(FIELD_BYTES).saturating_add(bytes_max))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use http::HeaderValue;

    use super::*;

    #[test]
    fn what_belongs_to_the_connection_or_the_host_is_forbidden_and_nothing_else() {
        let forbidden = [
            "connection",
            "host",
            "http2-settings",
            "keep-alive",
            "proxy-authenticate",
            "proxy-authorization",
            "proxy-connection",
            "proxy-status",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
        ];
        for name in forbidden {
            assert!(is_forbidden(&HeaderName::from_static(name)), "{name}");
        }
        for name in ["authorization", "content-length", "cookie", "accept-encoding", "x-host", "expect", "via"] {
            assert!(!is_forbidden(&HeaderName::from_static(name)), "{name}");
        }
    }

    #[test]
    fn fields_are_counted_by_number_and_by_size() {
        let mut fields = HeaderMap::new();
        fields.append("a", HeaderValue::from_static("12"));
        fields.append("a", HeaderValue::from_static(""));
        // "a: 12\r\n" and "a: \r\n"
        assert_eq!(check(&fields, 2, 12), Ok(12));
        assert_eq!(check(&fields, 1, 12), Err(12));
        assert_eq!(check(&fields, 2, 11), Err(12));
    }
}
