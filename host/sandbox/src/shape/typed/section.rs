//! The `package-docs` section of a component, in which WIT's comments survive its build: found,
//! read, put in. Must not hold: the use of these texts.
//!
//! Its bytes are a version (0 or 1) and JSON. Component tools write it into packages of WIT. The
//! format does not forbid it in a component, so it is read as far as it can be, and an unreadable
//! part is ignored.
use super::texts::WitTexts;

/// The section's name.
const NAME: &str = "package-docs";

/// The version that is written. The first one, 0, is read as well.
const VERSION: u8 = 1;

/// Bytes of a section that is read: a thousand functions with a paragraph each take half of it.
const SECTION_BYTES_MAX: usize = 1 << 20;

/// Magic, version and layer stand before the first section.
const PREAMBLE_BYTES: usize = 8;

/// The number of custom sections among all kinds.
const CUSTOM: u8 = 0;

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
    let mut annotated: Vec<u8> = component.iter().take(PREAMBLE_BYTES).copied().collect();
    for section in Sections::of(component).filter(|section| section.custom(NAME).is_none()) {
        annotated.extend_from_slice(section.whole);
    }
    let json = texts.to_json().to_string();
    let mut content = Vec::with_capacity(json.len() + 16);
    push_length(&mut content, NAME.len());
    content.extend_from_slice(NAME.as_bytes());
    content.push(VERSION);
    content.extend_from_slice(json.as_bytes());
    annotated.push(CUSTOM);
    push_length(&mut annotated, content.len());
    annotated.extend_from_slice(&content);
    annotated
}

/// The sections of a binary at its top level, up to the first unreadable one.
struct Sections<'b> {
    rest: &'b [u8],
}

struct Section<'b> {
    kind: u8,
    content: &'b [u8],
    /// With kind and length.
    whole: &'b [u8],
}

impl<'b> Sections<'b> {
    fn of(binary: &'b [u8]) -> Self {
        Self { rest: binary.get(PREAMBLE_BYTES..).unwrap_or_default() }
    }
}

impl<'b> Iterator for Sections<'b> {
    type Item = Section<'b>;

    fn next(&mut self) -> Option<Section<'b>> {
        let all = self.rest;
        let (kind, rest) = all.split_first()?;
        let (length, rest) = length(rest)?;
        let (content, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some(Section { kind: *kind, content, whole: all.get(..all.len() - rest.len())? })
    }
}

impl<'b> Section<'b> {
    /// Its content, where it is a custom section of this name.
    fn custom(&self, name: &str) -> Option<&'b [u8]> {
        let (length, rest) = length(self.content).filter(|_| self.kind == CUSTOM)?;
        let (found, content) = rest.split_at_checked(length)?;
        (found == name.as_bytes()).then_some(content)
    }
}

/// An unsigned LEB128 number of 32 bits, and the bytes after it.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, bytes.get(at + 1..)?));
        }
    }
    None
}

fn push_length(out: &mut Vec<u8>, mut value: usize) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}
