//! Header fields: the largest number of them.
use http::header::HeaderMap;

/// Bytes that a field costs in addition to its name and value. HTTP/2 counts this way (RFC 9113,
/// section 6.5.2), and it keeps empty fields from being free.
const FIELD_BYTES: usize = 32;

/// Checks the number and the size of a message's fields. Returns its bytes either way.
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
