//! Base64 (RFC 4648, standard alphabet, padded): written straight into a frame, and read strictly.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the encoding of `data`.
pub(crate) fn push_base64(out: &mut Vec<u8>, data: &[u8]) {
    out.reserve(data.len().div_ceil(3) * 4);
    for group in data.chunks(3) {
        let mut bits: u32 = 0;
        for place in 0..3 {
            bits = (bits << 8) | u32::from(group.get(place).copied().unwrap_or(0));
        }
        for place in 0..4_usize {
            if place > group.len() {
                out.push(b'=');
                continue;
            }
            let sextet = (bits >> (18 - 6 * place)) & 0x3F;
            out.push(ALPHABET.get(sextet as usize).copied().unwrap_or(b'='));
        }
    }
}

/// Reads an encoding; `None` for anything that [`push_base64`] does not write.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let groups = text.as_bytes().chunks(4);
    let last = groups.len().checked_sub(1);
    for (place, group) in groups.enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if group.len() != 4 || padding > 2 || (padding > 0 && Some(place) != last) {
            return None;
        }
        let mut bits: u32 = 0;
        for byte in group.iter().take(4 - padding) {
            bits = (bits << 6) | sextet(*byte)?;
        }
        bits <<= 6 * padding;
        let [_, bytes @ ..] = bits.to_be_bytes();
        let (kept, rest) = bytes.split_at_checked(3 - padding)?;
        // Bits that stand for nothing must be zero, or two texts would mean the same.
        if rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        out.extend_from_slice(kept);
    }
    Some(out)
}

fn sextet(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::{decode_base64, push_base64};

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        for length in 0..20 {
            let data: Vec<u8> = (0..length).map(|byte| byte * 37 + 200).map(|byte: u32| byte as u8).collect();
            let mut out = Vec::new();
            push_base64(&mut out, &data);
            assert_eq!(decode_base64(std::str::from_utf8(&out).unwrap()), Some(data));
        }
        for text in ["A", "AA", "AAA", "A===", "====", "Zh==", "Zm9=", "Zg==Zg==", "Zm9v\n", "Zm-v", "Zm9vA", "é==="] {
            assert_eq!(decode_base64(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_vectors_of_rfc_4648_come_out() {
        for (data, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut out = Vec::new();
            push_base64(&mut out, data.as_bytes());
            assert_eq!(out, expected.as_bytes(), "{data:?}");
            assert_eq!(decode_base64(expected).as_deref(), Some(data.as_bytes()));
        }
        let mut out = Vec::new();
        push_base64(&mut out, &[0xFB, 0xFF, 0xFE]);
        assert_eq!(out, b"+//+");
    }

    #[test]
    fn what_is_not_the_one_encoding_of_anything_is_not_read() {
        for text in ["Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9v\n", "Zm 9", "Zm-_", "Zh==", "Zm9=", "="] {
            assert_eq!(decode_base64(text), None, "{text:?}");
        }
    }
}
