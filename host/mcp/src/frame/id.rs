//! Request ids and progress tokens: a string, or an integer that every JSON reader holds exactly.

use std::fmt;

use super::scan;

/// The largest magnitude of an integer id: 2^53. Past it, readers that use 64-bit floats
/// (JavaScript among them) confuse neighbours, so that the echo could be another id.
pub(crate) const INTEGER_MAX: i64 = 1 << 53;

/// A request's id, or a progress token, which has the same form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestId {
    /// An integer within ±2^53.
    Integer(i64),
    /// Any string.
    Text(Box<str>),
}

impl RequestId {
    /// Reads an id from its JSON text; `None` for anything but a string or such an integer.
    pub(crate) fn parse(value: &str) -> Option<Self> {
        if let Some(text) = scan::string(value) {
            return Some(Self::Text(text.into()));
        }
        let number: i64 = value.parse().ok()?;
        let plain = !value.starts_with('+');
        (plain && (-INTEGER_MAX..=INTEGER_MAX).contains(&number)).then_some(Self::Integer(number))
    }

    /// Appends the id as JSON.
    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        match self {
            Self::Integer(number) => super::push_number(out, *number),
            Self::Text(text) => super::push_string(out, text),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}
