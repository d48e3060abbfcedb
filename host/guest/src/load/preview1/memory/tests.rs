//! Small modules, and their adapted forms.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use wasm_encoder::{
    CodeSection, CustomSection, DataSection, ExportKind, ExportSection, FunctionSection, GlobalSection, GlobalType,
    MemorySection, MemoryType, TypeSection,
};

use super::go::{BOUNDS, BUILD_ID, image};
use super::*;

/// Bounds of data as Go's linker lays them out.
const TABLE: [u64; BOUNDS] = [8192, 8400, 8400, 9000, 9008, 20_000, 20_000, 70_000, 70_000, 70_000, 70_000];

/// The address of the table.
const TABLE_AT: usize = 8208;

/// The differences from module to module.
struct Small {
    section: &'static str,
    globals: bool,
    export: &'static str,
    maximum: Option<u64>,
    data: Vec<(i32, [u64; BOUNDS])>,
}

impl Default for Small {
    fn default() -> Self {
        Self { section: "name", globals: true, export: "memory", maximum: None, data: vec![(8208, TABLE)] }
    }
}

impl Small {
    fn go() -> Self {
        Self { section: BUILD_ID, ..Self::default() }
    }

    /// A module of two pages. Its only function asks for the size of its memory twice, and means
    /// something else once.
    fn module(&self) -> Vec<u8> {
        let mut module = Module::new();
        module.section(&CustomSection { name: self.section.into(), data: [].as_slice().into() });
        let mut types = TypeSection::new();
        types.ty().function([], [ValType::I32]);
        module.section(&types);
        module.section(FunctionSection::new().function(0));
        let memory =
            MemoryType { minimum: 2, maximum: self.maximum, memory64: false, shared: false, page_size_log2: None };
        module.section(MemorySection::new().memory(memory));
        if self.globals {
            let number = GlobalType { val_type: ValType::I64, mutable: true, shared: false };
            module.section(GlobalSection::new().global(number, &ConstExpr::i64_const(0)));
        }
        module.section(ExportSection::new().export("_start", ExportKind::Func, 0).export(
            self.export,
            ExportKind::Memory,
            0,
        ));
        let mut start = Function::new([]);
        // 63 is `memory.size` too, followed by 0 where the number is longer.
        start.instructions().memory_size(0).i32_const(63).i32_add().memory_size(0).i32_add().end();
        module.section(CodeSection::new().function(&start));
        let mut data = DataSection::new();
        for (at, words) in &self.data {
            data.active(0, &ConstExpr::i32_const(*at), words.map(u64::to_le_bytes).concat());
        }
        module.section(&data);
        module.finish()
    }
}

/// A module's first and last possible pages, its data, and the number of `memory.size` in its
/// functions.
fn read(module: &[u8]) -> (u64, Option<u64>, Vec<u8>, Vec<usize>) {
    wasmparser::Validator::new().validate_all(module).unwrap();
    let mut pages = 0;
    let mut maximum = None;
    let mut data = Vec::new();
    let mut sizes = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        match payload.unwrap() {
            Payload::MemorySection(section) => {
                let memory = section.into_iter().next().unwrap().unwrap();
                (pages, maximum) = (memory.initial, memory.maximum);
            }
            Payload::CodeSectionEntry(body) => {
                let operators = body.get_operators_reader().unwrap().into_iter().map(Result::unwrap);
                sizes.push(operators.filter(|operator| matches!(operator, Operator::MemorySize { .. })).count());
            }
            Payload::DataSection(section) => data = image(section, u64::MAX).unwrap(),
            _ => {}
        }
    }
    (pages, maximum, data, sizes)
}

#[test]
fn a_module_gets_pages_that_memory_size_does_not_tell_of() {
    for (globals, maximum) in [(true, None), (false, None), (true, Some(2)), (true, Some(MEMORY_PAGES_MAX))] {
        let small = Small { globals, maximum, ..Small::default() };
        let module = small.module();
        let widened = with_room(&small.module()).unwrap();
        let (pages, most, data, sizes) = read(&widened);
        assert_eq!(pages, 2 + PAGES);
        assert_eq!(most, maximum.map(|pages| (pages + PAGES).min(MEMORY_PAGES_MAX)));
        assert_eq!(data, read(&module).2, "data stays as it is");
        assert_eq!((read(&module).3, sizes), (vec![2], vec![0, 2, 0]), "only what is added asks");
        assert!(with_room(&widened).is_none(), "it has a cabi_realloc now");
    }
}

#[test]
fn the_heap_of_go_begins_behind_the_pages() {
    let module = Small::go().module();
    let widened = with_room(&Small::go().module()).unwrap();
    let (pages, _, data, sizes) = read(&widened);
    assert_eq!(pages, 2 + PAGES);
    let end_at = TABLE_AT + 8 * (BOUNDS - 1);
    assert_eq!(data[end_at..end_at + 8], ((2 + PAGES) * PAGE).to_le_bytes());
    assert_eq!(data[..end_at], read(&module).2[..end_at], "nothing else of the data is changed");
    assert_eq!(sizes, [2, 2, 0], "it is told the size as it is");
}

#[test]
fn what_is_not_plainly_gos_table_is_left_alone() {
    let table = |change: &dyn Fn(&mut [u64; BOUNDS])| {
        let mut table = TABLE;
        change(&mut table);
        Small { data: vec![(8208, table)], ..Small::go() }
    };
    for (why, small) in [
        ("no table", table(&|bounds| bounds.fill(0))),
        ("two tables", Small { data: vec![(8208, TABLE), (12_000, TABLE)], ..Small::go() }),
        ("bounds out of order", table(&|bounds| bounds[3] = 8000)),
        ("an end outside of memory", table(&|bounds| bounds[7..].fill(3 * PAGE))),
        ("data behind the end", Small { data: vec![(8208, TABLE), (80_000, [1; BOUNDS])], ..Small::go() }),
        ("counters of coverage", table(&|bounds| bounds[9..].fill(70_008))),
    ] {
        let module = small.module();
        assert_eq!(read(&with_room(&module).unwrap()).2, read(&module).2, "{why}");
    }
}

#[test]
fn a_module_that_gives_memory_itself_or_does_not_read_is_as_it_is() {
    for (why, module) in [
        ("it has its own", Small { export: REALLOC, ..Small::default() }.module()),
        ("no memory", b"\0asm\x01\0\0\0".to_vec()),
        ("cut short", b"\0asm\x01\0\0\0\x0b".to_vec()),
        ("nothing", Vec::new()),
    ] {
        assert!(with_room(&module).is_none(), "{why}");
    }
}
