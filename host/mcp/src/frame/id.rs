//! Request ids and progress tokens: a string, or an integer that every JSON reader holds exactly.

use std::fmt;

use super::scan;

/// The largest magnitude of an integer id: 2^53. Past it, readers that use 64-bit floats
/// (JavaScript among them) confuse neighbours, so that the echo could be another id.
pub(crate) const INTEGER_MAX: i64 = 1 << 53;

/// Longest id, in bytes of its text. Clients' ids have at most about 40. Each open request and
/// stream keeps its own several times.
const TEXT_BYTES_MAX: usize = 1_024;

/// A request's id, or a progress token, which has the same form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestId {
    /// An integer within ±2^53.
    Integer(i64),
    /// A string of at most 1,024 bytes.
    Text(Box<str>),
}

impl RequestId {
    /// Reads an id from its JSON text; `None` for anything but such a string or integer.
    pub(crate) fn parse(value: &str) -> Option<Self> {
        if let Some(text) = scan::string(value) {
            return (text.len() <= TEXT_BYTES_MAX).then(|| Self::Text(text.into()));
        }
        let number = integer(value)?;
        (-INTEGER_MAX..=INTEGER_MAX).contains(&number).then_some(Self::Integer(number))
    }

    /// Says what a JSON text that is not an id must be, to follow the member's name.
    pub(crate) fn requirement(value: &str) -> String {
        match scan::string(value) {
            Some(_) => format!("must have at most {TEXT_BYTES_MAX} bytes"),
            None => "must be a string or an integer within ±2^53".to_owned(),
        }
    }

    /// Appends the id as JSON.
    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        match self {
            Self::Integer(number) => super::push_number(out, *number),
            Self::Text(text) => super::push_string(out, text),
        }
    }
}

/// The integer that a JSON number stands for, however it is written: `1`, `1.0`, `10e-1`. Some
/// clients only have floats.
pub(crate) fn integer(number: &str) -> Option<i64> {
    /// A number with more digits cannot be an id.
    const DIGITS_MAX: usize = 18;
    if number.len() <= DIGITS_MAX && number.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.parse().ok();
    }
    let (negative, unsigned) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let digits = [whole, fraction].concat();
    let point = i64::try_from(whole.len()).ok()?.checked_add(exponent)?;
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let digits = digits.trim_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    // The remaining digits begin at position `leading`, and the decimal point is at `point`.
    let before_point = usize::try_from(point.checked_sub(i64::try_from(leading).ok()?)?).ok()?;
    if digits.len() > before_point || before_point > DIGITS_MAX {
        return None;
    }
    let zeros = u32::try_from(before_point - digits.len()).ok()?;
    let value = digits.parse::<i64>().ok()?.checked_mul(10_i64.checked_pow(zeros)?)?;
    Some(if negative { -value } else { value })
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RequestId, TEXT_BYTES_MAX, integer};

    #[test]
    fn the_text_of_an_id_is_bounded_however_it_is_written() {
        for written in ["x", "\\u0078", "\\n", "é"] {
            let bytes = if written == "é" { 2 } else { 1 };
            let id = |bytes_max: usize| format!("\"{}\"", written.repeat(bytes_max / bytes));
            assert!(RequestId::parse(&id(TEXT_BYTES_MAX)).is_some(), "{written}");
            let long = id(TEXT_BYTES_MAX + 2);
            assert_eq!(RequestId::parse(&long), None, "{written}");
            assert_eq!(RequestId::requirement(&long), "must have at most 1024 bytes");
        }
    }

    #[test]
    fn an_integer_is_one_however_it_is_written() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("-0.0", 0),
            ("0e999999999", 0),
            ("1.0", 1),
            ("-1.000", -1),
            ("1e3", 1_000),
            ("1.5E1", 15),
            ("1200e-2", 12),
            ("0.001e+3", 1),
            ("9007199254740992.0", 1 << 53),
            ("9.007199254740993e15", (1 << 53) + 1),
        ] {
            assert_eq!(integer(text), Some(value), "{text}");
        }
        for text in [
            "1.5",
            "0.1",
            "1e-1",
            "1e19",
            "1e999999999999999999999",
            "1e-9223372036854775808",
            "1e9223372036854775807",
            "9007199254740992.5",
            "12345678901234567890",
            "+1",
            "",
            "-",
            ".5",
            "1e",
            "1.0.0",
            "true",
            "null",
            "[1]",
        ] {
            assert_eq!(integer(text), None, "{text}");
        }
        assert_eq!(integer(&format!("1{}.{}", "0".repeat(17), "0".repeat(100_000))), Some(10_i64.pow(17)));
    }
}
