//! Base64 (RFC 4648, standard alphabet, padded), written straight into a frame.

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

#[cfg(test)]
mod tests {
    use super::push_base64;

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
        }
        let mut out = Vec::new();
        push_base64(&mut out, &[0xFB, 0xFF, 0xFE]);
        assert_eq!(out, b"+//+");
    }
}
