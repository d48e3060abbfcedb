//! A bridge's definitions in its component: the pages behind the main module's memory get them, and
//! a marker in its data says where they are. Every other section stays as it is, byte by byte.
//!
//! An allocator takes memory up to the end that was known when the module was linked, and then
//! grows the memory. So nothing of the guest ever lies in pages that were added behind that end.
use crate::leb::{push_signed, push_unsigned, take, take_byte, take_unsigned};

/// Begins the marker in the bridge's data. The address and the length follow, each four bytes, the
/// lowest first.
pub const MAGIC: [u8; 16] = *b"toolcell.bridge\x01";

/// Bytes of a page of WebAssembly.
const PAGE_BYTES: u64 = 64 * 1024;

/// First bytes of a component, and of a core module.
const COMPONENT: [u8; 8] = *b"\0asm\x0d\0\x01\0";
const MODULE: [u8; 8] = *b"\0asm\x01\0\0\0";

/// Sections: a core module of a component; memory, data and the number of data segments of a
/// module.
const CORE_MODULE: u8 = 1;
const MEMORY: u8 = 5;
const DATA: u8 = 11;
const DATA_COUNT: u8 = 12;

/// `i32.const` and `end`.
const I32_CONST: u8 = 0x41;
const END: u8 = 0x0b;

/// Why definitions cannot be embedded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// Not a component, or cut off.
    #[error("it is not a component")]
    NotComponent,
    /// No module with the marker, or several.
    #[error("it is not a bridge: {0} of its modules have the mark of one")]
    NotBridge(usize),
    /// The main module is not laid out as a bridge's.
    #[error("its main module has no memory of its own, or other data than a bridge has")]
    Layout,
    /// The definitions do not fit into 32-bit memory.
    #[error("the definitions are too large")]
    TooLarge,
}

/// One section: its identifier, its body, and all its bytes.
struct Section<'a> {
    id: u8,
    body: &'a [u8],
    whole: &'a [u8],
}

/// The component with these definitions.
///
/// # Errors
/// The component is not a bridge.
pub fn embedded(component: &[u8], definitions: &[u8]) -> Result<Vec<u8>, EmbedError> {
    let mut rest = component.strip_prefix(&COMPONENT).ok_or(EmbedError::NotComponent)?;
    let sections = sections(&mut rest).ok_or(EmbedError::NotComponent)?;
    let is_main = |section: &&Section<'_>| section.id == CORE_MODULE && marker(section.body).is_some();
    let main = sections.iter().filter(is_main).count();
    if main != 1 {
        return Err(EmbedError::NotBridge(main));
    }
    let mut out = COMPONENT.to_vec();
    for section in &sections {
        if is_main(&section) {
            push_section(&mut out, CORE_MODULE, &module(section.body, definitions)?);
        } else {
            out.extend_from_slice(section.whole);
        }
    }
    Ok(out)
}

/// The definitions of a bridge's component; `None` if it is not one, or has none.
#[must_use]
pub fn extracted(component: &[u8]) -> Option<Vec<u8>> {
    let mut rest = component.strip_prefix(&COMPONENT)?;
    let sections = sections(&mut rest)?;
    let mut main = sections.iter().filter(|section| section.id == CORE_MODULE && marker(section.body).is_some());
    let mut rest = main.next().filter(|_| main.next().is_none())?.body.strip_prefix(&MODULE)?;
    let data = self::sections(&mut rest)?.into_iter().find(|section| section.id == DATA)?;
    let at = marker(data.body)? + MAGIC.len() + 4;
    let length = u32::from_le_bytes(data.body.get(at..at + 4)?.try_into().ok()?);
    // The segment that was added is the last one.
    let start = data.body.len().checked_sub(usize::try_from(length).ok()?)?;
    data.body.get(start..).filter(|_| start > at).map(<[u8]>::to_vec)
}

/// The place of the marker.
fn marker(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MAGIC.len()).position(|window| window == MAGIC)
}

fn module(bytes: &[u8], definitions: &[u8]) -> Result<Vec<u8>, EmbedError> {
    let mut rest = bytes.strip_prefix(&MODULE).ok_or(EmbedError::Layout)?;
    let sections = sections(&mut rest).ok_or(EmbedError::Layout)?;
    let memory = sections.iter().find(|section| section.id == MEMORY).ok_or(EmbedError::Layout)?;
    let memory = Memory::read(memory.body).ok_or(EmbedError::Layout)?;
    let address = memory.pages.checked_mul(PAGE_BYTES).and_then(|end| u32::try_from(end).ok());
    let address = address.ok_or(EmbedError::TooLarge)?;
    let length = u32::try_from(definitions.len()).map_err(|_| EmbedError::TooLarge)?;
    let pages = memory.pages + u64::from(length).div_ceil(PAGE_BYTES);
    if pages > u64::from(u32::MAX) / PAGE_BYTES {
        return Err(EmbedError::TooLarge);
    }
    let mut out = MODULE.to_vec();
    for section in &sections {
        match section.id {
            MEMORY => push_section(&mut out, MEMORY, &memory.with(pages)),
            DATA_COUNT => {
                let mut body = section.body;
                let count = take_unsigned(&mut body).ok_or(EmbedError::Layout)?;
                let mut body = Vec::new();
                push_unsigned(&mut body, count + 1);
                push_section(&mut out, DATA_COUNT, &body);
            }
            DATA => push_section(&mut out, DATA, &data(section.body, address, definitions)?),
            _ => out.extend_from_slice(section.whole),
        }
    }
    Ok(out)
}

/// The data section with the definitions behind all others, and the marker that points at them.
fn data(body: &[u8], address: u32, definitions: &[u8]) -> Result<Vec<u8>, EmbedError> {
    let mut segments = body;
    let count = take_unsigned(&mut segments).ok_or(EmbedError::Layout)?;
    let at = marker(segments).ok_or(EmbedError::Layout)? + MAGIC.len();
    let mut segments = segments.to_vec();
    let length = u32::try_from(definitions.len()).map_err(|_| EmbedError::TooLarge)?;
    let place = segments.get_mut(at..at + 8).ok_or(EmbedError::Layout)?;
    let values = address.to_le_bytes().into_iter().chain(length.to_le_bytes());
    place.iter_mut().zip(values).for_each(|(byte, value)| *byte = value);
    let mut out = Vec::with_capacity(segments.len() + definitions.len() + 32);
    push_unsigned(&mut out, count + 1);
    out.extend_from_slice(&segments);
    // An active segment of the first memory.
    out.push(0);
    out.push(I32_CONST);
    // An address past 2 GiB is written as the negative number with the same bits.
    push_signed(&mut out, i32::from_le_bytes(address.to_le_bytes()));
    out.push(END);
    push_unsigned(&mut out, u64::from(length));
    out.extend_from_slice(definitions);
    Ok(out)
}

/// The only memory of a module.
struct Memory {
    flags: u8,
    pages: u64,
    pages_max: Option<u64>,
}

impl Memory {
    fn read(mut body: &[u8]) -> Option<Self> {
        if take_unsigned(&mut body)? != 1 {
            return None;
        }
        let flags = take_byte(&mut body)?;
        // Neither shared, nor of 64 bits, nor with pages of another size.
        if flags > 1 {
            return None;
        }
        let pages = take_unsigned(&mut body)?;
        let pages_max = if flags == 1 { Some(take_unsigned(&mut body)?) } else { None };
        body.is_empty().then_some(Self { flags, pages, pages_max })
    }

    fn with(&self, pages: u64) -> Vec<u8> {
        let mut body = vec![1, self.flags];
        push_unsigned(&mut body, pages);
        if let Some(most) = self.pages_max {
            push_unsigned(&mut body, most.max(pages));
        }
        body
    }
}

fn sections<'a>(bytes: &mut &'a [u8]) -> Option<Vec<Section<'a>>> {
    let mut sections = Vec::new();
    while !bytes.is_empty() {
        let begin = *bytes;
        let id = take_byte(bytes)?;
        let length = take_unsigned(bytes)?;
        let body = take(bytes, length)?;
        let whole = begin.get(..begin.len() - bytes.len())?;
        sections.push(Section { id, body, whole });
    }
    Some(sections)
}

fn push_section(out: &mut Vec<u8>, id: u8, body: &[u8]) {
    out.push(id);
    push_unsigned(out, body.len() as u64);
    out.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module with two pages, the marker at 8, and a section of its own behind.
    fn bridge_module(with_count: bool) -> Vec<u8> {
        let mut module = MODULE.to_vec();
        push_section(&mut module, MEMORY, &[1, 1, 2, 2]);
        if with_count {
            push_section(&mut module, DATA_COUNT, &[1]);
        }
        let mut data = vec![1, 0, I32_CONST, 8, END, 24];
        data.extend_from_slice(&MAGIC);
        data.extend_from_slice(&[0xff; 8]);
        push_section(&mut module, DATA, &data);
        push_section(&mut module, 0, b"\x04rest");
        module
    }

    fn component(modules: &[Vec<u8>]) -> Vec<u8> {
        let mut component = COMPONENT.to_vec();
        push_section(&mut component, 7, b"type");
        modules.iter().for_each(|module| push_section(&mut component, CORE_MODULE, module));
        push_section(&mut component, 0, b"\x03end");
        component
    }

    #[test]
    fn definitions_lie_behind_the_memory_and_the_marker_points_at_them() {
        for with_count in [false, true] {
            let made = embedded(&component(&[MODULE.to_vec(), bridge_module(with_count)]), b"{}").unwrap();
            let mut expected = MODULE.to_vec();
            push_section(&mut expected, MEMORY, &[1, 1, 3, 3]);
            if with_count {
                push_section(&mut expected, DATA_COUNT, &[2]);
            }
            let mut data = vec![2, 0, I32_CONST, 8, END, 24];
            data.extend_from_slice(&MAGIC);
            data.extend_from_slice(&[0, 0, 2, 0, 2, 0, 0, 0]);
            data.extend_from_slice(&[0, I32_CONST, 0x80, 0x80, 0x08, END, 2, b'{', b'}']);
            push_section(&mut expected, DATA, &data);
            push_section(&mut expected, 0, b"\x04rest");
            assert_eq!(made, component(&[MODULE.to_vec(), expected]));
            assert_eq!(extracted(&made).as_deref(), Some(&b"{}"[..]));
        }
    }

    #[test]
    fn what_is_not_a_bridge_is_refused() {
        let bridge = bridge_module(false);
        for (bytes, error) in [
            (MODULE.to_vec(), EmbedError::NotComponent),
            (component(&[MODULE.to_vec()]), EmbedError::NotBridge(0)),
            (component(&[bridge.clone(), bridge.clone()]), EmbedError::NotBridge(2)),
            (component(std::slice::from_ref(&bridge))[..40].to_vec(), EmbedError::NotComponent),
            (component(&[[&MODULE[..], &MAGIC].concat()]), EmbedError::Layout),
        ] {
            assert_eq!(embedded(&bytes, b"{}"), Err(error));
        }
        let whole = component(&[bridge]);
        assert_eq!(extracted(&whole), None, "it has no definitions");
        for end in 0..whole.len() {
            let _ = embedded(&whole[..end], b"{}");
            assert_eq!(extracted(&whole[..end]), None);
        }
    }
}
