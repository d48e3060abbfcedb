//! Texts of answers in other characters than UTF-8, by the `charset` of their media type.

/// What the bytes 0x80 to 0x9F are in windows-1252, which the WHATWG reads latin-1 as.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The text of these bytes; `None` where they are not one, or of characters that are not known.
pub fn decoded(bytes: &[u8], charset: Option<&str>) -> Option<String> {
    match charset {
        None | Some("utf-8" | "utf8" | "us-ascii") => std::str::from_utf8(bytes).ok().map(str::to_owned),
        Some("iso-8859-1" | "latin1" | "windows-1252") => Some(bytes.iter().map(|byte| of_windows(*byte)).collect()),
        Some("utf-16" | "utf-16le" | "utf-16be") => of_utf_16(bytes, charset == Some("utf-16be")),
        Some(_) => None,
    }
}

fn of_windows(byte: u8) -> char {
    let index = usize::from(byte).checked_sub(0x80);
    index.and_then(|index| WINDOWS.get(index)).copied().unwrap_or(char::from(byte))
}

/// The mark at the beginning says the order of bytes; without one, the name does.
fn of_utf_16(bytes: &[u8], is_named_big: bool) -> Option<String> {
    let is_big = match bytes {
        [0xfe, 0xff, ..] => true,
        [0xff, 0xfe, ..] => false,
        _ => is_named_big,
    };
    let unit = |pair: &[u8]| {
        let pair = <[u8; 2]>::try_from(pair).ok()?;
        Some(if is_big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) })
    };
    let units: Vec<u16> = bytes.chunks(2).map(unit).collect::<Option<_>>()?;
    let text = String::from_utf16(&units).ok()?;
    Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_by_their_charset() {
        for (bytes, charset, expected) in [
            (&b"caf\xc3\xa9"[..], None, Some("café")),
            (b"caf\xe9 \x80\xa4", Some("iso-8859-1"), Some("café €¤")),
            (b"\xff\xfeh\0\xe9\0", Some("utf-16"), Some("hé")),
            (b"\0h\0\xe9", Some("utf-16be"), Some("hé")),
            (b"h", Some("utf-16"), None),
            (b"\xe9", None, None),
            (b"a", Some("koi8-r"), None),
        ] {
            assert_eq!(decoded(bytes, charset).as_deref(), expected, "{bytes:?}");
        }
    }
}
