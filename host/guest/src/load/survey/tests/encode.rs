//! The binary format, as far as bombs need it. Nothing is checked: the output may be malformed.

/// The first bytes of a component.
pub const COMPONENT: [u8; 8] = *b"\0asm\x0d\0\x01\0";
/// The first bytes of a core module.
pub const MODULE: [u8; 8] = *b"\0asm\x01\0\0\0";

/// An unsigned number in LEB128.
pub fn number(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// A signed number in LEB128.
pub fn signed(value: usize) -> Vec<u8> {
    let mut bytes = number(value);
    if let Some(last) = bytes.last_mut().filter(|last| **last >= 0x40) {
        *last |= 0x80;
        bytes.push(0);
    }
    bytes
}

/// A name.
pub fn name(text: &str) -> Vec<u8> {
    [number(text.len()), text.as_bytes().to_vec()].concat()
}

/// The name of an import or export of a component.
pub fn extern_name(text: &str) -> Vec<u8> {
    [vec![0], name(text)].concat()
}

/// A section with these bytes.
pub fn section(id: u8, body: &[u8]) -> Vec<u8> {
    [vec![id], number(body.len()), body.to_vec()].concat()
}

/// A section that is a list.
pub fn list<I: AsRef<[u8]>>(id: u8, entries: &[I]) -> Vec<u8> {
    let mut body = number(entries.len());
    entries.iter().for_each(|entry| body.extend_from_slice(entry.as_ref()));
    section(id, &body)
}

/// A section with the same entry many times.
pub fn times(id: u8, count: usize, entry: &[u8]) -> Vec<u8> {
    section(id, &[number(count), entry.repeat(count)].concat())
}

/// A component of these sections.
pub fn component(sections: &[Vec<u8>]) -> Vec<u8> {
    [COMPONENT.to_vec(), sections.concat()].concat()
}

/// A core module of these sections.
pub fn module(sections: &[Vec<u8>]) -> Vec<u8> {
    [MODULE.to_vec(), sections.concat()].concat()
}

/// A module inside a component.
pub fn inner_module(sections: &[Vec<u8>]) -> Vec<u8> {
    section(1, &module(sections))
}

/// A component inside another.
pub fn inner_component(sections: &[Vec<u8>]) -> Vec<u8> {
    section(4, &component(sections))
}

/// A core module with this many globals.
pub fn globals(count: usize) -> Vec<u8> {
    times(6, count, &[0x7f, 0x00, 0x41, 0x00, 0x0b])
}

/// A core module with one function of type `() -> ()`, with these locals and this code.
pub fn function(locals: usize, code: &[u8]) -> Vec<Vec<u8>> {
    let declared = if locals == 0 { vec![0] } else { [vec![1], number(locals), vec![0x7f]].concat() };
    let body = [declared, code.to_vec(), vec![0x0b]].concat();
    vec![list(1, &[[0x60, 0, 0]]), list(3, &[[0]]), section(10, &[number(1), number(body.len()), body].concat())]
}

/// Nested components, each of which instantiates the one below `width` times. The lowest consists
/// of these sections.
pub fn levels(count: usize, width: usize, lowest: &[Vec<u8>]) -> Vec<u8> {
    let mut sections = vec![inner_component(lowest)];
    for level in 0..count {
        // Captures the component before it.
        let alias = list(6, &[[vec![0x04, 0x02, 0x01], number(level)].concat()]);
        sections.push(inner_component(&[alias, times(5, width, &[0x00, 0x00, 0x00])]));
    }
    sections.push(list(5, &[[vec![0x00], number(count), vec![0x00]].concat()]));
    component(&sections)
}
