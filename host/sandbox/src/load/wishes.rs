//! The section in which a component carries its wishes: found and put in. Must not hold: what they
//! say.
//!
//! It is a custom section named `toolcell-wishes` at the top level of the component or module. Its
//! content is one byte, the version 1, and a text. Two of them, a longer one or one of another
//! version are as good as damaged: two programs must not see two ceilings.
use serde::{Deserialize, Serialize};
use toolcell_policy::WISHES_BYTES_MAX;

use super::sections::{Sections, replaced};

/// The section's name.
const NAME: &str = "toolcell-wishes";

/// The version that is written and read.
const VERSION: u8 = 1;

/// Sections that are looked through: a component of many parts has hundreds. Each costs
/// nanoseconds.
const SECTIONS_MAX: usize = 100_000;

/// The wishes that a component carries, as it carries them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CarriedWishes {
    /// It has none.
    #[default]
    None,
    /// Their text, which nobody has read. At most [`WISHES_BYTES_MAX`] long.
    Text(String),
    /// Their section cannot be read.
    Damaged(WishesDamage),
}

/// Why a section of wishes cannot be read. The message completes the sentence "the wishes …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum WishesDamage {
    /// There are two sections.
    #[error("are there twice")]
    Twice,
    /// The text is longer than it may be.
    #[error("have more than {WISHES_BYTES_MAX} bytes")]
    TooLong,
    /// The text is none.
    #[error("are not UTF-8 text")]
    NotText,
    /// Another version, or none.
    #[error("have a version that this program does not know")]
    Version,
    /// The binary has more sections than are looked through.
    #[error("lie among too many sections")]
    Sections,
}

/// Finds the wishes of a component or module. Looks at nothing else of it.
#[must_use]
pub fn carried_wishes(binary: &[u8]) -> CarriedWishes {
    let mut found = None;
    for (count, section) in Sections::of(binary).enumerate() {
        if count == SECTIONS_MAX {
            return CarriedWishes::Damaged(WishesDamage::Sections);
        }
        let Some(content) = section.custom(NAME) else { continue };
        if found.replace(content).is_some() {
            return CarriedWishes::Damaged(WishesDamage::Twice);
        }
    }
    match found.map(<[u8]>::split_first) {
        None => CarriedWishes::None,
        Some(Some((&VERSION, text))) if text.len() > WISHES_BYTES_MAX => CarriedWishes::Damaged(WishesDamage::TooLong),
        Some(Some((&VERSION, text))) => match std::str::from_utf8(text) {
            Ok(text) => CarriedWishes::Text(text.to_owned()),
            Err(_) => CarriedWishes::Damaged(WishesDamage::NotText),
        },
        Some(_) => CarriedWishes::Damaged(WishesDamage::Version),
    }
}

/// The component or module with these wishes in place of its own.
#[must_use]
pub fn with_wishes(binary: &[u8], text: &str) -> Vec<u8> {
    replaced(binary, NAME, VERSION, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    fn damaged(binary: &[u8]) -> WishesDamage {
        match carried_wishes(binary) {
            CarriedWishes::Damaged(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn wishes_survive_in_a_component_and_are_there_once() {
        assert_eq!(carried_wishes(EMPTY), CarriedWishes::None);
        let first = with_wishes(EMPTY, "keyvalue = true");
        assert_eq!(carried_wishes(&first), CarriedWishes::Text("keyvalue = true".to_owned()));
        let second = with_wishes(&first, "");
        assert_eq!(carried_wishes(&second), CarriedWishes::Text(String::new()));
        assert_eq!(with_wishes(&second, "keyvalue = true"), first);
        let outer = [EMPTY, &[4, first.len() as u8], &first].concat();
        assert_eq!(carried_wishes(&outer), CarriedWishes::None, "those of a component inside are its own");
    }

    #[test]
    fn hostile_sections_are_damaged_and_cost_nothing() {
        let section = |content: &[u8]| {
            let mut section = vec![0, content.len() as u8 + 16, 15];
            section.extend(NAME.as_bytes());
            section.extend(content);
            section
        };
        assert_eq!(damaged(&[EMPTY, &section(b"\x01a"), &section(b"\x01a")].concat()), WishesDamage::Twice);
        assert_eq!(damaged(&[EMPTY, &section(b"\x01\xff")].concat()), WishesDamage::NotText);
        for unknown in [&b"\x02a"[..], b"", b"\0a"] {
            let reason = damaged(&[EMPTY, &section(unknown)].concat());
            assert_eq!(reason, WishesDamage::Version, "{unknown:?}");
        }
        assert_eq!(damaged(&with_wishes(EMPTY, &"#".repeat(WISHES_BYTES_MAX + 1))), WishesDamage::TooLong);
        assert!(matches!(carried_wishes(&with_wishes(EMPTY, &"#".repeat(WISHES_BYTES_MAX))), CarriedWishes::Text(_)));
        let many = [EMPTY, &[0, 1, 0].repeat(SECTIONS_MAX + 1)].concat();
        assert_eq!(damaged(&many), WishesDamage::Sections);
        let whole = with_wishes(EMPTY, "env = [\"A\"]");
        (0..whole.len()).for_each(|cut| drop(carried_wishes(&whole[..cut])));
        assert_eq!(carried_wishes(b""), CarriedWishes::None);
    }
}
