//! The `package-docs` section of a component, in which WIT's comments survive its build: found,
//! read, put in.
//!
//! The section holds a version (0 or 1) and JSON. Component tools write it into WIT packages. The
//! format also allows it in a component, so it is read there, and unreadable parts are ignored.
use super::texts::WitTexts;
use toolcell_wall::sections::{self, Sections};

/// The section's name.
const NAME: &str = "package-docs";

/// The version that is written. Version 0 is read, too.
const VERSION: u8 = 1;

/// Bytes of a section that is read. A thousand functions with a paragraph each need half of it.
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
