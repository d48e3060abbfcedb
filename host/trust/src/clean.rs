//! Texts of others in sentences of ours: printable, short, on one line.

use crate::limits::{IDENTITY_BYTES_MAX, REASON_CHARS_MAX};

/// The text with `?` for every character that could change a line, cut after
/// [`REASON_CHARS_MAX`].
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned: String = text.chars().take(REASON_CHARS_MAX).map(shown).collect();
    if text.chars().nth(REASON_CHARS_MAX).is_some() {
        cleaned.push('…');
    }
    cleaned
}

/// Says if a text may be an identity, an issuer or a pattern: ASCII that prints, in bounds.
pub(crate) fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.len() <= IDENTITY_BYTES_MAX && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Letters in hexadecimal.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn shown(character: char) -> char {
    if matches!(character, ' '..='~' | '…') { character } else { '?' }
}
