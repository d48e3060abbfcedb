//! Where Go's runtime keeps the end of its data, behind which its heap begins.
//!
//! The runtime's table of the module (`moduledata` in `runtime/symtab.go`) has the bounds of each
//! part of the data, in the order of their addresses. The search looks for that order, and only in
//! modules that declare themselves Go's.

use wasm_encoder::{ConstExpr, Encode};
use wasmparser::{DataKind, DataSectionReader, Operator};

/// The custom section that Go's linker begins a module with.
pub(super) const BUILD_ID: &str = "go:buildid";

/// Words of the table from the beginning of the module's data to its end. They are noptrdata,
/// enoptrdata, data, edata, bss, ebss, noptrbss, enoptrbss, covctrs, ecovctrs, end.
pub(super) const BOUNDS: usize = 11;

/// The least address of data: Go's own arguments and guards against null lie below.
const DATA_MIN: u64 = 4096;

/// Bytes of data that are searched for the table at most; the largest programs have some tens of
/// megabytes.
const DATA_BYTES_MAX: u64 = 256 << 20;

/// The table of a module.
pub(super) struct GoTable {
    /// The address of the word `end`.
    end_at: u32,
}

impl GoTable {
    /// The table in a module's data; `None` if it cannot be found with certainty.
    pub(super) fn find(section: DataSectionReader<'_>, memory_bytes: u64) -> Option<Self> {
        let data = image(section, memory_bytes.min(DATA_BYTES_MAX))?;
        let (words, _) = data.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let is_table = |bounds: &[u64]| is_table(bounds, data.len() as u64, memory_bytes);
        let mut tables = words.windows(BOUNDS).enumerate().filter(|(_, bounds)| is_table(bounds));
        let (first, _) = tables.next()?;
        let end_at = first.checked_add(BOUNDS)?.checked_sub(1)?.checked_mul(8)?;
        let end_at = u32::try_from(end_at).ok()?;
        tables.next().is_none().then_some(Self { end_at })
    }

    /// A data segment that puts the end of the data, and so the beginning of the heap, there.
    pub(super) fn moved(&self, address: i32) -> Vec<u8> {
        let mut segment = vec![0];
        ConstExpr::i32_const(self.end_at.cast_signed()).encode(&mut segment);
        u64::from(address.cast_unsigned()).to_le_bytes().as_slice().encode(&mut segment);
        segment
    }
}

/// True if these words are the bounds of the parts of a module's data.
fn is_table(bounds: &[u64], data_bytes: u64, memory_bytes: u64) -> bool {
    let [data, .., enoptrbss, covctrs, ecovctrs, end] = bounds else {
        return false;
    };
    // Without coverage counters the last bounds are equal, and no initialized data lies behind
    // them.
    let last = [enoptrbss, covctrs, ecovctrs].into_iter().all(|bound| bound == end);
    last && *data >= DATA_MIN && *end >= data_bytes && *end <= memory_bytes && bounds.is_sorted()
}

/// The memory before the module runs, up to its last byte that is set.
pub(super) fn image(section: DataSectionReader<'_>, bytes_max: u64) -> Option<Vec<u8>> {
    let mut image = Vec::new();
    for data in section {
        let data = data.ok()?;
        let DataKind::Active { memory_index: 0, offset_expr } = data.kind else {
            return None;
        };
        let Ok(Operator::I32Const { value }) = offset_expr.get_operators_reader().read() else {
            return None;
        };
        let from = usize::try_from(value.cast_unsigned()).ok()?;
        let to = from.checked_add(data.data.len())?;
        (to as u64 <= bytes_max).then_some(())?;
        if image.len() < to {
            image.resize(to, 0);
        }
        image.get_mut(from..to)?.copy_from_slice(data.data);
    }
    Some(image)
}
