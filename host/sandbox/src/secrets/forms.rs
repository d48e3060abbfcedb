//! The forms in which a value travels: plain, and in the encodings that HTTP, JSON and people use.
//! Pure.
use zeroize::Zeroizing;

/// A shorter value is only searched in its plain form: its encodings are too short to distinguish
/// from other text.
const ENCODED_BYTES_MIN: usize = 8;

type SecretForm = Zeroizing<Vec<u8>>;

/// Every form of `value` that is searched. Some may be equal.
pub(crate) fn forms(value: &[u8]) -> Vec<SecretForm> {
    let mut forms = vec![Zeroizing::new(value.to_vec()), json(value)];
    if value.len() >= ENCODED_BYTES_MIN {
        forms.extend([percent(value, UPPER, b"%20"), percent(value, LOWER, b"%20"), percent(value, UPPER, b"+")]);
        forms.extend([hex(value, UPPER), hex(value, LOWER)]);
        for alphabet in [b"+/", b"-_"] {
            forms.extend((0..3).map(|before| base64_core(value, before, alphabet)));
        }
    }
    forms
}

const UPPER: &[u8; 16] = b"0123456789ABCDEF";
const LOWER: &[u8; 16] = b"0123456789abcdef";

fn digits(byte: u8, digits: &[u8; 16]) -> impl Iterator<Item = u8> + '_ {
    [byte >> 4, byte & 15].into_iter().filter_map(|nibble| digits.get(usize::from(nibble)).copied())
}

fn hex(value: &[u8], alphabet: &[u8; 16]) -> SecretForm {
    Zeroizing::new(value.iter().flat_map(|byte| digits(*byte, alphabet)).collect())
}

/// Percent-encoded, except for the unreserved characters of RFC 3986, section 2.3.
pub(crate) fn percent(value: &[u8], alphabet: &[u8; 16], space: &[u8]) -> SecretForm {
    let mut form = Zeroizing::new(Vec::with_capacity(value.len() * 3));
    for byte in value {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => form.push(*byte),
            b' ' => form.extend_from_slice(space),
            _ => {
                form.push(b'%');
                form.extend(digits(*byte, alphabet));
            }
        }
    }
    form
}

/// As part of a query (RFC 3986, section 3.4).
pub(crate) fn percent_query(value: &[u8]) -> SecretForm {
    percent(value, UPPER, b"%20")
}

/// The form within a JSON string, with only the necessary escapes.
fn json(value: &[u8]) -> SecretForm {
    let mut form = Zeroizing::new(Vec::with_capacity(value.len()));
    for byte in value {
        match byte {
            b'"' | b'\\' => form.extend_from_slice(&[b'\\', *byte]),
            b'\n' => form.extend_from_slice(b"\\n"),
            b'\r' => form.extend_from_slice(b"\\r"),
            b'\t' => form.extend_from_slice(b"\\t"),
            _ => form.push(*byte),
        }
    }
    form
}

/// The characters that depend only on `value` in the base64 of a text with `before` bytes (modulo
/// 3) before it and anything after it.
fn base64_core(value: &[u8], before: usize, alphabet: &[u8; 2]) -> SecretForm {
    let mut text = Zeroizing::new(vec![0; before]);
    text.extend_from_slice(value);
    let whole = base64(&text, alphabet);
    // The first and the last character with only bits of the value.
    let from = (before * 8).div_ceil(6);
    let to = text.len() * 8 / 6;
    Zeroizing::new(whole.get(from..to).unwrap_or_default().to_vec())
}

/// Base64 (RFC 4648) without padding. `alphabet` has its last two characters.
pub(crate) fn base64(text: &[u8], alphabet: &[u8; 2]) -> SecretForm {
    let [plus, slash] = *alphabet;
    let letter = |six: u32| match u8::try_from(six & 63).unwrap_or(0) {
        it @ 0..=25 => b'A' + it,
        it @ 26..=51 => b'a' + (it - 26),
        it @ 52..=61 => b'0' + (it - 52),
        62 => plus,
        _ => slash,
    };
    let mut form = Zeroizing::new(Vec::with_capacity(text.len().div_ceil(3) * 4));
    for group in text.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        let letters = [18, 12, 6, 0].map(|shift| letter(bits >> shift));
        form.extend(letters.into_iter().take(group.len() + 1));
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        // RFC 4648, section 10, without padding.
        for (text, encoded) in
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE")]
        {
            assert_eq!(*base64(text.as_bytes(), b"+/"), encoded.as_bytes(), "{text}");
        }
        assert_eq!(*base64(&[0xfb, 0xff], b"-_"), b"-_8");
    }

    #[test]
    fn a_core_holds_only_what_the_value_decides() {
        let value = b"0123456789";
        for before in 0..3 {
            let core = base64_core(value, before, b"+/");
            for (head, tail) in [(0, 0), (255, 255), (65, 66)] {
                let text = [vec![head; before], value.to_vec(), vec![tail; 2]].concat();
                let whole = base64(&text, b"+/");
                assert!(whole.windows(core.len()).any(|window| window == core.as_slice()), "{before} {head}");
            }
        }
    }

    #[test]
    fn short_values_are_looked_for_as_they_are() {
        assert!(forms(b"1234567").iter().all(|form| **form == b"1234567"));
        assert!(forms(b"12345678").iter().any(|form| **form != b"12345678"));
    }
}
