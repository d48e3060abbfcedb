//! The section in which a component carries its author's metadata: reading and writing it.
//!
//! It is a custom section named `toolcell-metadata` at the top level of the component or module,
//! with one byte, the version 1, before a text.
use toolcell_policy::METADATA_BYTES_MAX;

use super::{SectionDamage, carried_text, replaced};

/// The section's name.
const NAME: &str = "toolcell-metadata";

/// The version that is written and read.
const VERSION: u8 = 1;

/// Finds the metadata of a component or module: unparsed text. Reads nothing else of it.
///
/// # Errors
/// [`SectionDamage`]: the section exists but cannot be read.
pub fn carried_metadata(binary: &[u8]) -> Result<Option<&str>, SectionDamage> {
    carried_text(binary, NAME, VERSION, METADATA_BYTES_MAX)
}

/// The component or module with this metadata in place of its own.
#[must_use]
pub fn with_metadata(binary: &[u8], text: &str) -> Vec<u8> {
    replaced(binary, NAME, VERSION, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::requested_permissions::with_permissions;
    use super::*;

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn metadata_stands_beside_requested_permissions_and_is_there_once() {
        assert_eq!(carried_metadata(EMPTY), Ok(None));
        let first = with_metadata(&with_permissions(EMPTY, "keyvalue = true"), "[load]");
        assert_eq!(carried_metadata(&first), Ok(Some("[load]")));
        let second = with_metadata(&first, "");
        assert_eq!(carried_metadata(&second), Ok(Some("")));
        assert_eq!(with_metadata(&second, "[load]"), first);
        assert_eq!(
            with_permissions(&with_metadata(EMPTY, "a"), "b").len(),
            with_metadata(&with_permissions(EMPTY, "b"), "a").len()
        );
    }

    #[test]
    fn hostile_sections_are_damaged_and_cost_nothing() {
        let once = with_metadata(EMPTY, "[load]");
        let section = once.strip_prefix(EMPTY).unwrap();
        assert_eq!(carried_metadata(&[EMPTY, section, section].concat()), Err(SectionDamage::Twice));
        let longest = with_metadata(EMPTY, &"#".repeat(METADATA_BYTES_MAX));
        assert!(carried_metadata(&longest).is_ok_and(|text| text.is_some()));
        let too_long = with_metadata(EMPTY, &"#".repeat(METADATA_BYTES_MAX + 1));
        let damage = SectionDamage::TooLong { bytes_max: 65_536 };
        assert_eq!(carried_metadata(&too_long), Err(damage));
        // A length of 1 GiB with nothing after it: the section is incomplete, so it does not count.
        let claimed = [EMPTY, &[0, 0x80, 0x80, 0x80, 0x80, 4], &section[2..]].concat();
        assert_eq!(carried_metadata(&claimed), Ok(None));
        assert!((0..once.len()).all(|cut| carried_metadata(&once[..cut]) == Ok(None)));
    }
}
