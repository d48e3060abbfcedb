//! Reading and replacing sections of a module; every other byte is kept.
use std::ops::Range;

use wasm_encoder::Encode;
use wasmparser::{BinaryReader, ImportSectionReader, TypeRef, TypeSectionReader};

/// The module with another body for this section. The old one lies between `start` and `end`.
pub(super) fn replace(module: &[u8], section: Range<usize>, number: u8, body: &[u8]) -> Option<Vec<u8>> {
    // The section's number and its size come before the body. The size may be encoded longer than
    // necessary.
    let Range { start, end } = section;
    let mut before = start.checked_sub(1)?;
    while before > 0 && module.get(before - 1)? & 0x80 != 0 && start - before < 5 {
        before -= 1;
    }
    if *module.get(before.checked_sub(1)?)? != number {
        return None;
    }
    let mut replaced = module.get(..before)?.to_vec();
    body.encode(&mut replaced);
    replaced.extend(module.get(end..)?);
    Some(replaced)
}

/// An item as a section holds it.
pub(super) fn encoded<T: Encode + ?Sized>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

/// A section with more items at its end.
pub(super) fn longer(section: &[u8], items: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut reader = BinaryReader::new(section, 0);
    let count = reader.read_var_u32().ok()?;
    let mut longer = Vec::with_capacity(section.len());
    count.checked_add(u32::try_from(items.len()).ok()?)?.encode(&mut longer);
    longer.extend(section.get(reader.current_position()..)?);
    longer.extend(items.concat());
    Some(longer)
}

/// The number of types. A section itself counts groups of types.
pub(super) fn count_types(section: TypeSectionReader<'_>) -> Option<u32> {
    let mut count = 0_usize;
    for group in section {
        count = count.checked_add(group.ok()?.types().len())?;
    }
    u32::try_from(count).ok()
}

/// The number of imported functions, which come before the module's own.
pub(super) fn count_functions(section: ImportSectionReader<'_>) -> Option<u32> {
    let mut count = 0_u32;
    for import in section.into_imports() {
        if matches!(import.ok()?.ty, TypeRef::Func(_)) {
            count = count.checked_add(1)?;
        }
    }
    Some(count)
}
