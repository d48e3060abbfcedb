//! Replacing one section of a module; every other byte is kept. Must not hold: the content of
//! sections.
use std::ops::Range;

/// The module with another body for this section, whose old one lies between `start` and `end`.
pub(super) fn replace(module: &[u8], section: Range<usize>, number: u8, body: &[u8]) -> Option<Vec<u8>> {
    // Before the body stand the section's number and its size, which is as long as its writer made
    // it.
    let Range { start, end } = section;
    let mut before = start.checked_sub(1)?;
    while before > 0 && module.get(before - 1)? & 0x80 != 0 && start - before < 5 {
        before -= 1;
    }
    if *module.get(before.checked_sub(1)?)? != number {
        return None;
    }
    let mut replaced = module.get(..before)?.to_vec();
    replaced.extend(leb(body.len()));
    replaced.extend(body);
    replaced.extend(module.get(end..)?);
    Some(replaced)
}

/// A number as the format writes it: seven bits to a byte.
pub(super) fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}
