//! The section in which a component carries its permission requests: reading and writing it.
//!
//! It is a custom section named `toolcell-permissions` at the top level of the component or module.
//! Its content is one byte, the version 1, and a text. Two of them, a longer one or another version
//! count as damaged: two programs must not see two different ceilings.
use serde::{Deserialize, Serialize};
use toolcell_policy::REQUESTED_PERMISSIONS_BYTES_MAX;

use super::{SectionDamage, carried_text, replaced};

/// The section's name.
const NAME: &str = "toolcell-permissions";

/// The version that is written and read.
const VERSION: u8 = 1;

/// The permission requests that a component carries, as found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CarriedPermissions {
    /// It carries none.
    #[default]
    None,
    /// Their text, unparsed. At most [`REQUESTED_PERMISSIONS_BYTES_MAX`] long.
    Text(String),
    /// Their section cannot be read.
    Damaged(SectionDamage),
}

/// Finds the permission requests of a component or module. Reads nothing else of it.
#[must_use]
pub fn carried_permissions(binary: &[u8]) -> CarriedPermissions {
    match carried_text(binary, NAME, VERSION, REQUESTED_PERMISSIONS_BYTES_MAX) {
        Ok(None) => CarriedPermissions::None,
        Ok(Some(text)) => CarriedPermissions::Text(text.to_owned()),
        Err(damage) => CarriedPermissions::Damaged(damage),
    }
}

/// The component or module with these permission requests in place of its own.
#[must_use]
pub fn with_permissions(binary: &[u8], text: &str) -> Vec<u8> {
    replaced(binary, NAME, VERSION, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::SECTIONS_MAX;
    use super::*;

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    fn damaged(binary: &[u8]) -> SectionDamage {
        match carried_permissions(binary) {
            CarriedPermissions::Damaged(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn requested_permissions_survive_in_a_component_and_are_there_once() {
        assert_eq!(carried_permissions(EMPTY), CarriedPermissions::None);
        let first = with_permissions(EMPTY, "keyvalue = true");
        assert_eq!(carried_permissions(&first), CarriedPermissions::Text("keyvalue = true".to_owned()));
        let second = with_permissions(&first, "");
        assert_eq!(carried_permissions(&second), CarriedPermissions::Text(String::new()));
        assert_eq!(with_permissions(&second, "keyvalue = true"), first);
        let outer = [EMPTY, &[4, first.len() as u8], &first].concat();
        assert_eq!(carried_permissions(&outer), CarriedPermissions::None, "those of a component inside are its own");
    }

    #[test]
    fn hostile_sections_are_damaged_and_cost_nothing() {
        let section = |content: &[u8]| {
            let mut section = vec![0, content.len() as u8 + 1 + NAME.len() as u8, NAME.len() as u8];
            section.extend(NAME.as_bytes());
            section.extend(content);
            section
        };
        assert_eq!(damaged(&[EMPTY, &section(b"\x01a"), &section(b"\x01a")].concat()), SectionDamage::Twice);
        assert_eq!(damaged(&[EMPTY, &section(b"\x01\xff")].concat()), SectionDamage::NotText);
        for unknown in [&b"\x02a"[..], b"", b"\0a"] {
            let reason = damaged(&[EMPTY, &section(unknown)].concat());
            assert_eq!(reason, SectionDamage::Version, "{unknown:?}");
        }
        let too_long = SectionDamage::TooLong { bytes_max: REQUESTED_PERMISSIONS_BYTES_MAX };
        assert_eq!(damaged(&with_permissions(EMPTY, &"#".repeat(REQUESTED_PERMISSIONS_BYTES_MAX + 1))), too_long);
        assert!(matches!(
            carried_permissions(&with_permissions(EMPTY, &"#".repeat(REQUESTED_PERMISSIONS_BYTES_MAX))),
            CarriedPermissions::Text(_)
        ));
        let many = [EMPTY, &[0, 1, 0].repeat(SECTIONS_MAX + 1)].concat();
        assert_eq!(damaged(&many), SectionDamage::Sections);
        let whole = with_permissions(EMPTY, "env = [\"A\"]");
        (0..whole.len()).for_each(|cut| drop(carried_permissions(&whole[..cut])));
        assert_eq!(carried_permissions(b""), CarriedPermissions::None);
    }
}
