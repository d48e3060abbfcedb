//! The `package-docs` section of a component, in which WIT's comments survive its build: found,
//! read, put in.
//!
//! Its bytes are a version (0 or 1) and JSON. Component tools write it into packages of WIT. The
//! format does not forbid it in a component, so it is read as far as it can be, and an unreadable
//! part is ignored.
use super::texts::WitTexts;
use toolcell_wall::sections::{self, Sections};

/// The section's name.
const NAME: &str = "package-docs";

/// The version that is written. The first one, 0, is read as well.
const VERSION: u8 = 1;

/// Bytes of a section that is read: a thousand functions with a paragraph each take half of it.
const SECTION_BYTES_MAX: usize = 1 << 20;

/// The WIT comments that the component carries.
pub(super) fn texts(component: &[u8]) -> WitTexts {
    let section = Sections::of(component).find_map(|section| section.custom(NAME));
    let Some((version, json)) = section.and_then(<[u8]>::split_first) else { return WitTexts::default() };
    if *version > VERSION || json.len() > SECTION_BYTES_MAX {
        return WitTexts::default();
    }
    serde_json::from_slice(json).map(|docs| WitTexts::from_json(&docs)).unwrap_or_default()
}

/// The component with these texts in place of its own.
#[must_use]
pub fn annotate(component: &[u8], texts: &WitTexts) -> Vec<u8> {
    sections::replaced(component, NAME, VERSION, texts.to_json().to_string().as_bytes())
}
