//! Escapes of JSON, JavaScript, HTML and URLs, read letter by letter.
//!
//! | escape | stands for |
//! |---|---|
//! | `%41`, `%u0041` | a byte, a code unit |
//! | `\u0041`, `\u{41}`, `\x41` | a code unit, a character, a byte |
//! | `\n`, `\/`, `\"`, and so on | the control character, or the sign itself |
//! | `&#65;`, `&#x41;`, `&amp;`, and where HTML reads them so without `;` | the character |
use super::entities::{NAME_BYTES_MAX, named};

/// An unfinished escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartialEscape {
    /// `%`
    Percent,
    /// `\`
    Backslash,
    /// A fixed number of digits; `left` of them are missing.
    Fixed { left: u8, unit: EscapeUnit, value: u32 },
    /// `\u{`, and digits.
    Braced { value: u32 },
    /// The first half of a surrogate pair; `announced` once the `\` or `%` of the second half was
    /// read.
    Half { high: u32, announced: bool },
    /// `&`
    Ampersand,
    /// `&#`
    Reference,
    /// `&#x`, or `&#` and digits.
    Number { radix: u32, value: Option<u32> },
    /// `&` and letters.
    Name { text: [u8; NAME_BYTES_MAX], bytes: u8 },
}

/// The meaning of an escape with a fixed number of digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EscapeUnit {
    /// A byte.
    Byte,
    /// A code unit of UTF-16. `high` is the first half, if this is the second half of a surrogate
    /// pair.
    Code { high: Option<u32> },
}

/// The meaning of an escape: some bytes of UTF-8, or one byte of any encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EscapedLetter {
    text: [u8; 4],
    bytes: u8,
}

/// What one more byte makes of an escape. Both fields may be set: `&#6` has a meaning, and so does
/// `&#65`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EscapeStep {
    pub(super) on: Option<PartialEscape>,
    pub(super) found: Option<EscapedLetter>,
}

impl EscapedLetter {
    pub(super) const fn of_byte(byte: u8) -> Self {
        Self { text: [byte, 0, 0, 0], bytes: 1 }
    }

    fn of_code(value: u32) -> Option<Self> {
        let mut text = [0; 4];
        let bytes = char::from_u32(value)?.encode_utf8(&mut text).len();
        Some(Self { text, bytes: u8::try_from(bytes).ok()? })
    }

    fn of_name(name: &[u8], closed: bool) -> Option<Self> {
        let mut text = [0; 4];
        let bytes = named(name, closed, &mut text);
        (bytes > 0).then_some(Self { text, bytes: u8::try_from(bytes).ok()? })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.text.get(..usize::from(self.bytes)).unwrap_or_default()
    }

    /// The byte, if there is only one.
    pub(super) const fn single(&self) -> Option<u8> {
        let [first, ..] = self.text;
        if self.bytes == 1 { Some(first) } else { None }
    }
}

impl EscapeStep {
    const fn on(partial: PartialEscape) -> Self {
        Self { on: Some(partial), found: None }
    }

    const fn found(letter: Option<EscapedLetter>) -> Self {
        Self { on: None, found: letter }
    }
}

const fn code_units(high: Option<u32>) -> PartialEscape {
    PartialEscape::Fixed { left: 4, unit: EscapeUnit::Code { high }, value: 0 }
}

const BYTE_DIGITS: PartialEscape = PartialEscape::Fixed { left: 2, unit: EscapeUnit::Byte, value: 0 };

impl PartialEscape {
    /// The escape that a byte begins.
    pub(super) const fn begin(byte: u8) -> Option<Self> {
        match byte {
            b'%' => Some(Self::Percent),
            b'\\' => Some(Self::Backslash),
            b'&' => Some(Self::Ampersand),
            _ => None,
        }
    }

    /// The effect of the next byte.
    pub(super) fn step(self, byte: u8) -> EscapeStep {
        match self {
            Self::Percent if byte == b'u' => EscapeStep::on(code_units(None)),
            Self::Percent => BYTE_DIGITS.step(byte),
            Self::Backslash => escaped(byte),
            Self::Fixed { left, unit, value } => fixed(left, unit, value, byte),
            Self::Braced { value } if byte == b'}' => EscapeStep::found(EscapedLetter::of_code(value)),
            Self::Braced { value } => {
                grown(value, 16, byte).map_or_else(EscapeStep::default, |value| EscapeStep::on(Self::Braced { value }))
            }
            Self::Half { high, announced: false } if matches!(byte, b'\\' | b'%') => {
                EscapeStep::on(Self::Half { high, announced: true })
            }
            Self::Half { high, announced: true } if byte == b'u' => EscapeStep::on(code_units(Some(high))),
            Self::Half { .. } => EscapeStep::default(),
            Self::Ampersand if byte == b'#' => EscapeStep::on(Self::Reference),
            Self::Ampersand => name(&[], byte),
            Self::Reference if matches!(byte, b'x' | b'X') => EscapeStep::on(Self::Number { radix: 16, value: None }),
            Self::Reference => number(10, None, byte),
            Self::Number { radix, value } => number(radix, value, byte),
            Self::Name { text, bytes } => name(text.get(..usize::from(bytes)).unwrap_or_default(), byte),
        }
    }
}

/// The escape that begins with a backslash and this byte.
fn escaped(byte: u8) -> EscapeStep {
    match byte {
        b'u' => EscapeStep::on(code_units(None)),
        b'x' => EscapeStep::on(BYTE_DIGITS),
        b'b' => EscapeStep::found(Some(EscapedLetter::of_byte(8))),
        b'f' => EscapeStep::found(Some(EscapedLetter::of_byte(12))),
        b'n' => EscapeStep::found(Some(EscapedLetter::of_byte(b'\n'))),
        b'r' => EscapeStep::found(Some(EscapedLetter::of_byte(b'\r'))),
        b't' => EscapeStep::found(Some(EscapedLetter::of_byte(b'\t'))),
        byte if byte.is_ascii_punctuation() => EscapeStep::found(Some(EscapedLetter::of_byte(byte))),
        _ => EscapeStep::default(),
    }
}

fn fixed(left: u8, unit: EscapeUnit, value: u32, byte: u8) -> EscapeStep {
    // JavaScript's `\u{41}` begins like `\u0041`.
    if byte == b'{' && left == 4 && unit == (EscapeUnit::Code { high: None }) {
        return EscapeStep::on(PartialEscape::Braced { value: 0 });
    }
    let Some(value) = grown(value, 16, byte) else { return EscapeStep::default() };
    if left > 1 {
        return EscapeStep::on(PartialEscape::Fixed { left: left - 1, unit, value });
    }
    match (unit, value) {
        (EscapeUnit::Byte, value) => EscapeStep::found(u8::try_from(value).ok().map(EscapedLetter::of_byte)),
        (EscapeUnit::Code { high: Some(high) }, 0xdc00..=0xdfff) => {
            EscapeStep::found(EscapedLetter::of_code(0x1_0000 + ((high - 0xd800) << 10) + (value - 0xdc00)))
        }
        (EscapeUnit::Code { high: None }, 0xd800..=0xdbff) => {
            EscapeStep::on(PartialEscape::Half { high: value, announced: false })
        }
        (EscapeUnit::Code { .. }, value) => EscapeStep::found(EscapedLetter::of_code(value)),
    }
}

/// A number with one more digit; `None` for another character, or past the last code point.
fn grown(value: u32, radix: u32, byte: u8) -> Option<u32> {
    let digit = char::from(byte).to_digit(radix)?;
    Some(value * radix + digit).filter(|value| *value <= 0x10_ffff)
}

fn number(radix: u32, value: Option<u32>, byte: u8) -> EscapeStep {
    if byte == b';' {
        return EscapeStep::found(value.and_then(EscapedLetter::of_code));
    }
    let Some(value) = grown(value.unwrap_or(0), radix, byte) else { return EscapeStep::default() };
    EscapeStep { on: Some(PartialEscape::Number { radix, value: Some(value) }), found: EscapedLetter::of_code(value) }
}

fn name(before: &[u8], byte: u8) -> EscapeStep {
    if byte == b';' {
        return EscapeStep::found(EscapedLetter::of_name(before, true));
    }
    let mut text = [0; NAME_BYTES_MAX];
    let bytes = before.len() + 1;
    let (Some(name), true) = (text.get_mut(..bytes), byte.is_ascii_alphanumeric()) else {
        return EscapeStep::default();
    };
    for (place, letter) in name.iter_mut().zip(before.iter().chain([&byte])) {
        *place = *letter;
    }
    let found = EscapedLetter::of_name(name, false);
    let bytes = u8::try_from(bytes).unwrap_or(u8::MAX);
    EscapeStep { on: Some(PartialEscape::Name { text, bytes }), found }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The meaning of a complete escape.
    fn read(escape: &str) -> Option<Vec<u8>> {
        let (first, rest) = escape.as_bytes().split_first()?;
        let mut step = EscapeStep::on(PartialEscape::begin(*first)?);
        for byte in rest {
            step = step.on?.step(*byte);
        }
        step.found.map(|letter| letter.bytes().to_vec())
    }

    #[test]
    fn each_escape_stands_for_what_its_language_says() {
        for (escape, meant) in [
            ("%2f", "/"),
            ("%2F", "/"),
            ("%u002B", "+"),
            ("\\/", "/"),
            ("\\n", "\n"),
            ("\\u002B", "+"),
            ("\\u{2b}", "+"),
            ("\\x2b", "+"),
            ("\\u00e9", "é"),
            ("\\ud83d\\ude00", "😀"),
            ("&amp;", "&"),
            ("&amp", "&"),
            ("&sol;", "/"),
            ("&#47;", "/"),
            ("&#0000000047", "/"),
            ("&#x2F;", "/"),
            ("&#X2f", "/"),
            ("&eacute;", "é"),
            ("&yuml;", "ÿ"),
            ("&DiacriticalGrave;", "`"),
        ] {
            assert_eq!(read(escape).map(|text| String::from_utf8(text).unwrap()).as_deref(), Some(meant), "{escape}");
        }
    }

    #[test]
    fn what_is_no_escape_stands_for_nothing() {
        for text in [
            "%",
            "%4",
            "%4x",
            "%u004",
            "\\q",
            "\\u004",
            "\\ud83d",
            "\\ud83dx",
            "&",
            "&;",
            "&#;",
            "&#x;",
            "&sol",
            "&none;",
            "&#1114112",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
