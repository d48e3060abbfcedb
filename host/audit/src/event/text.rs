//! Texts from outside, of which records keep a bounded part.

use serde::{Serialize, Serializer};

/// The longest text that comes from outside (a request's id, a cause), in bytes. Enough to
/// recognise it; a record must not grow with what a client sends.
pub const TEXT_BYTES_MAX: usize = 1_024;

/// The longest arguments that are recorded whole, in bytes: the arguments of most calls, and an
/// eighth of the largest record even if every byte is escaped.
pub const ARGUMENTS_BYTES_MAX: usize = 2_048;

/// A text from outside: one longer than [`TEXT_BYTES_MAX`] is cut, with `…` at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clipped<'a>(pub &'a str);

/// A call's arguments: longer ones than [`ARGUMENTS_BYTES_MAX`] are cut, with `…` at the end, and
/// are no longer JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgumentsText<'a>(pub &'a str);

impl<'a> From<&'a str> for Clipped<'a> {
    fn from(text: &'a str) -> Self {
        Self(text)
    }
}

impl Serialize for Clipped<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_cut(self.0, TEXT_BYTES_MAX, serializer)
    }
}

impl Serialize for ArgumentsText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_cut(self.0, ARGUMENTS_BYTES_MAX, serializer)
    }
}

fn serialize_cut<S: Serializer>(text: &str, bytes_max: usize, serializer: S) -> Result<S::Ok, S::Error> {
    if text.len() <= bytes_max {
        return serializer.serialize_str(text);
    }
    let end = text.floor_char_boundary(bytes_max);
    serializer.collect_str(&format_args!("{}…", text.get(..end).unwrap_or_default()))
}
