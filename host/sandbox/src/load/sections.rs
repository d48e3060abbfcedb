//! The custom sections of a binary, found and put in without parsing anything else of it. Must not
//! hold: the names of sections, or what is in them.

/// Magic, version and layer stand before the first section.
const PREAMBLE_BYTES: usize = 8;

/// The number of custom sections among all kinds.
const CUSTOM: u8 = 0;

/// The sections of a binary at its top level, up to the first unreadable one.
pub(crate) struct Sections<'b> {
    rest: &'b [u8],
}

pub(crate) struct Section<'b> {
    kind: u8,
    content: &'b [u8],
    /// With kind and length.
    whole: &'b [u8],
}

/// The binary with one custom section of this name, whose content is a version and a body, in place
/// of those that it has.
pub(crate) fn replaced(binary: &[u8], name: &str, version: u8, body: &[u8]) -> Vec<u8> {
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
    pub(crate) fn of(binary: &'b [u8]) -> Self {
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
    pub(crate) fn custom(&self, name: &str) -> Option<&'b [u8]> {
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
