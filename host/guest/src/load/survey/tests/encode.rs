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

/// A core module whose code moves many values. Type 0 is `() -> ()`, type 1 takes and returns
/// `values` numbers, type 2 only returns them. Functions 0 to 2 have these types, and `more` others
/// have type 1. Function 0 has one local, a table of one element, and this code.
pub fn wide(values: usize, more: usize, code: &[u8]) -> Vec<Vec<u8>> {
    let numbers = [number(values), vec![0x7f; values]].concat();
    let types = [vec![0x60, 0, 0], [vec![0x60], numbers.repeat(2)].concat(), [vec![0x60, 0], numbers].concat()];
    let functions = [vec![0, 1, 2], vec![1; more]].concat();
    let first = [vec![1, 1, 0x7f], code.to_vec(), vec![0x0b]].concat();
    let mut bodies = [number(functions.len()), number(first.len()), first].concat();
    bodies.extend([3, 0, 0x00, 0x0b].repeat(functions.len() - 1));
    let functions = section(3, &[number(functions.len()), functions].concat());
    vec![list(1, &types), functions, list(4, &[[0x70, 0, 1]]), section(10, &bodies)]
}

/// Functions of many parameters and results, to each of which a reference is allowed.
pub fn referred(values: usize, count: usize) -> Vec<Vec<u8>> {
    let mut sections = wide(values, count, &[]);
    let indices: Vec<u8> = (0..count).flat_map(|at| number(3 + at)).collect();
    sections.insert(3, section(9, &[vec![1, 3, 0], number(count), indices].concat()));
    sections
}

/// A branch table with as many targets, and values that go along.
pub fn branch_table(values: usize, targets: usize) -> Vec<Vec<u8>> {
    let opened = [0x02, 2].repeat(targets);
    let depths: Vec<u8> = (0..targets).flat_map(number).collect();
    let table = [vec![0x10, 2, 0x20, 0, 0x0e], number(targets - 1), depths].concat();
    // After each block, its values are dropped.
    let closed = [vec![0x0b], vec![0x00]].concat().repeat(targets);
    wide(values, 0, &[opened, table, closed].concat())
}

/// The same code many times, with values on the stack.
pub fn over_values(values: usize, count: usize, code: &[u8]) -> Vec<Vec<u8>> {
    wide(values, 0, &[vec![0x10, 2], code.repeat(count), vec![0x1a; values]].concat())
}

/// A component that imports many resources.
pub fn resources(count: usize) -> Vec<u8> {
    let imports: Vec<_> = (0..count).map(|at| [extern_name(&format!("r{at}")), vec![0x03, 0x01]].concat()).collect();
    component(&[list(10, &imports)])
}

/// Sections with few bytes that cost the compiler much, and their names.
pub fn costly() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let block = [0x02, 1, 0x0b];
    let looped = [0x03, 1, 0x0b];
    let counted = [0x03, 0x40, 0x20, 0, 0x41, 3, 0x6a, 0x21, 0, 0x20, 0, 0x0d, 0, 0x0b];
    let leaving = [vec![0x02, 2, 0x41, 0], [0x20, 0, 0x0d, 0].repeat(15_000), vec![0x0b, 0x1a]].concat();
    let written = (0..700).flat_map(|at| [vec![0x20, 0, 0x21], number(at)].concat()).collect();
    let inside = [[0x03, 0x40].repeat(700), written, vec![0x20, 0, 0x0d, 0], vec![0x0b; 700]].concat();
    vec![
        ("locals written in many loops", function(700, &inside)),
        ("500 values to each of 1,000 targets", branch_table(500, 1_000)),
        ("300 values to each of 2,000 targets", branch_table(300, 2_000)),
        ("a value to each of 10,000 targets", branch_table(1, 10_000)),
        ("functions with many parameters that references may call", referred(1_000, 300)),
        ("calls with many operands", over_values(1_000, 1_000, &[0x10, 1])),
        ("calls with some operands", over_values(16, 60_000, &[0x10, 1])),
        ("blocks with many parameters", over_values(1_000, 1_000, &block)),
        ("loops with many parameters", over_values(1_000, 1_000, &looped)),
        ("blocks with one parameter", over_values(1, 60_000, &block)),
        ("branches that take a value along", wide(1, 0, &leaving)),
        ("loops in a row", over_values(0, 20_000, &counted)),
        ("calls through a table", over_values(0, 20_000, &[0x41, 0, 0x11, 0, 0])),
        ("reads from a table", over_values(0, 20_000, &[0x41, 0, 0x25, 0, 0x1a])),
    ]
}
