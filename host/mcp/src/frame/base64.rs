//! Base64 (RFC 4648, standard alphabet, padded): written straight into a frame, and read strictly.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub(crate) fn push_base64(out: &mut Vec<u8>, data: &[u8]) {
    let start = out.len();
    let encoded_bytes = data.len().div_ceil(3) * 4;
    out.resize(start + encoded_bytes, 0);
    let written = out.get_mut(start..).map(|room| STANDARD.encode_slice(data, room));
    debug_assert!(matches!(written, Some(Ok(bytes)) if bytes == encoded_bytes), "{written:?}");
}

pub(crate) fn base64(data: &[u8]) -> String {
    STANDARD.encode(data)
}

/// Reads an encoding; `None` for anything that [`push_base64`] does not write.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
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
        for text in [
            "A", "AA", "AAA", "A===", "====", "=", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "Zm9v\n", "Zm 9", "Zm-_",
            "Zm9vA", "é===",
        ] {
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
}
