//! The custom sections of a binary, read and written without parsing anything else of it. Must not
//! hold: the meaning of their texts.
//!
//! | file | holds |
//! |---|---|
//! | `requested_permissions.rs`, `metadata.rs` | the section of each |
//! | `producers.rs` | the section that compilers write |
pub mod metadata;
pub mod producers;
pub mod requested_permissions;

use serde::{Deserialize, Serialize};

/// The first eight bytes of a core module: magic, version 1.
const MODULE_PREAMBLE: [u8; 8] = *b"\0asm\x01\0\0\0";

/// Magic, version and layer stand before the first section.
const PREAMBLE_BYTES: usize = 8;

/// The id of custom sections.
const CUSTOM: u8 = 0;

/// Sections that are searched. A component of many parts has hundreds, and each costs nanoseconds.
const SECTIONS_MAX: usize = 100_000;

/// True if these bytes are a core module: a program for WASI preview 1, or nothing that runs.
#[must_use]
pub fn is_module(binary: &[u8]) -> bool {
    binary.starts_with(&MODULE_PREAMBLE)
}

/// Why a section with a text cannot be read. The message completes the sentence "the requested
/// permissions …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum SectionDamage {
    /// There are two sections.
    #[error("are there twice")]
    Twice,
    /// The text is longer than it may be.
    #[error("have more than {bytes_max} bytes")]
    TooLong {
        /// The most bytes that it may have.
        bytes_max: usize,
    },
    /// The bytes are not a text.
    #[error("are not UTF-8 text")]
    NotText,
    /// Another version, or none.
    #[error("have a version that this program does not know")]
    Version,
    /// The binary has too many sections to search.
    #[error("lie among too many sections")]
    Sections,
}

/// The text in the custom section with this name, after a byte with this version. Reads nothing
/// else of the binary.
fn carried_text<'b>(
    binary: &'b [u8],
    name: &str,
    version: u8,
    bytes_max: usize,
) -> Result<Option<&'b str>, SectionDamage> {
    let mut found = None;
    for (count, section) in Sections::of(binary).enumerate() {
        if count == SECTIONS_MAX {
            return Err(SectionDamage::Sections);
        }
        let Some(content) = section.custom(name) else { continue };
        if found.replace(content).is_some() {
            return Err(SectionDamage::Twice);
        }
    }
    let Some(content) = found else { return Ok(None) };
    match content.split_first() {
        Some((read, text)) if *read == version => {
            if text.len() > bytes_max {
                return Err(SectionDamage::TooLong { bytes_max });
            }
            std::str::from_utf8(text).map(Some).map_err(|_| SectionDamage::NotText)
        }
        _ => Err(SectionDamage::Version),
    }
}

/// The sections of a binary at its top level, up to the first unreadable one.
pub struct Sections<'b> {
    rest: &'b [u8],
}

/// One section.
pub struct CustomSection<'b> {
    kind: u8,
    content: &'b [u8],
    /// With kind and length.
    whole: &'b [u8],
}

/// The binary with one custom section of this name, whose content is a version and a body, in place
/// of those that it has.
#[must_use]
pub fn replaced(binary: &[u8], name: &str, version: u8, body: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = binary.iter().take(PREAMBLE_BYTES).copied().collect();
    for section in Sections::of(binary).filter(|section| section.custom(name).is_none()) {
        out.extend_from_slice(section.whole);
    }
    let mut content = Vec::with_capacity(body.len() + name.len() + 8);
    push_length(&mut content, name.len());
    content.extend_from_slice(name.as_bytes());
    content.push(version);
    content.extend_from_slice(body);
    out.push(CUSTOM);
    push_length(&mut out, content.len());
    out.extend_from_slice(&content);
    out
}

impl<'b> Sections<'b> {
    /// Those of this binary.
    #[must_use]
    pub fn of(binary: &'b [u8]) -> Self {
        Self { rest: binary.get(PREAMBLE_BYTES..).unwrap_or_default() }
    }
}

impl<'b> Iterator for Sections<'b> {
    type Item = CustomSection<'b>;

    fn next(&mut self) -> Option<CustomSection<'b>> {
        let all = self.rest;
        let (kind, rest) = all.split_first()?;
        let (length, rest) = length(rest)?;
        let (content, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some(CustomSection { kind: *kind, content, whole: all.get(..all.len() - rest.len())? })
    }
}

impl<'b> CustomSection<'b> {
    /// Its content, if it is a custom section with this name.
    #[must_use]
    pub fn custom(&self, name: &str) -> Option<&'b [u8]> {
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
