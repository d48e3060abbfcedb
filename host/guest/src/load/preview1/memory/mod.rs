//! Room for the adapter in a module's memory. Must not hold: making components, or a program's
//! rights.
//!
//! The adapter keeps its state in the module's own memory. It grows the memory by these pages at
//! the module's first call of WASI. Many modules treat these pages as their own, and overwrite the
//! adapter's state. wasi-libc before `__heap_end` gives all existing memory to its heap at the
//! first `malloc`. Go since 1.24 takes every page behind its data, even pages that others grew.
//!
//! So the adapter gets pages behind the module's initial ones, from an added `cabi_realloc`: the
//! adapter calls it if a module exports it. Until the module grows its memory, `memory.size`
//! answers as if these pages did not exist. For Go, [`go`] moves the beginning of the heap behind
//! them.

mod go;

use wasm_encoder::{BlockType, ConstExpr, Encode, Function, Module, RawSection, SectionId, ValType};
use wasmparser::{BinaryReader, FunctionBody, MemorySectionReader, MemoryType, Operator, Parser, Payload};

use super::sections::{count_functions, count_types, encoded, longer};

/// The export that the adapter asks for memory.
const REALLOC: &str = "cabi_realloc";

/// Bytes of a page of memory.
const PAGE: u64 = 65_536;

/// Pages for the adapter: one for its state and one for its stack. Two are spare.
const PAGES: u64 = 4;

/// Pages that a memory of 32-bit addresses can have.
const MEMORY_PAGES_MAX: u64 = 65_536;

/// `memory.size` in its usual encoding. Its operands confirm a match.
const MEMORY_SIZE: [u8; 2] = [0x3f, 0];

/// The parts of a module that are read.
struct ModuleParts<'a> {
    sections: Vec<(u8, &'a [u8])>,
    bodies: Vec<FunctionBody<'a>>,
    types: u32,
    functions_imported: u32,
    memory: MemoryType,
    go: Option<go::GoTable>,
}

/// The module with room for the adapter. `None`, and the module stays unchanged, if it provides
/// memory for the adapter itself, has no memory of its own, or cannot be read.
pub(crate) fn with_room(module: &[u8]) -> Option<Vec<u8>> {
    ModuleParts::read(module)?.widened()
}

impl<'a> ModuleParts<'a> {
    fn read(module: &'a [u8]) -> Option<Self> {
        let mut sections = Vec::new();
        let mut bodies = Vec::new();
        let mut memory = None;
        let mut go = None;
        let mut types = 0;
        let mut functions_imported = 0;
        let mut by_go = false;
        for payload in Parser::new(0).parse_all(module) {
            let payload = payload.ok()?;
            if let Some((id, range)) = payload.as_section() {
                sections.push((id, module.get(range)?));
            }
            match payload {
                Payload::CustomSection(custom) => by_go |= custom.name() == go::BUILD_ID,
                Payload::TypeSection(section) => types = count_types(section)?,
                Payload::ImportSection(section) => functions_imported = count_functions(section)?,
                Payload::MemorySection(section) => memory = Some(only(section)?),
                Payload::ExportSection(section) => {
                    for export in section {
                        (export.ok()?.name != REALLOC).then_some(())?;
                    }
                }
                Payload::CodeSectionEntry(body) => bodies.push(body),
                Payload::DataSection(section) if by_go => go = go::GoTable::find(section, memory?.initial * PAGE),
                _ => {}
            }
        }
        Some(Self { sections, bodies, types, functions_imported, memory: memory?, go })
    }

    /// The module with [`PAGES`] more pages, which its `cabi_realloc` hands out.
    fn widened(&self) -> Option<Vec<u8>> {
        let added = self.added()?;
        let mut widened = Module::new();
        let mut has_globals = false;
        for (id, section) in &self.sections {
            let id = *id;
            // Globals come before exports, in a section that a module need not have.
            if id == SectionId::Export as u8 && !has_globals {
                let data = longer(&[0], &[global(added.first)])?;
                widened.section(&RawSection { id: SectionId::Global as u8, data: &data });
            }
            has_globals |= id == SectionId::Global as u8;
            let data = match id {
                id if id == SectionId::Type as u8 => longer(section, &[SIZE_TYPE.to_vec(), REALLOC_TYPE.to_vec()])?,
                id if id == SectionId::Function as u8 => {
                    longer(section, &[encoded(&self.types), encoded(&self.types.checked_add(1)?)])?
                }
                id if id == SectionId::Memory as u8 => self.larger_memory()?,
                id if id == SectionId::Global as u8 => longer(section, &[global(added.first)])?,
                id if id == SectionId::Export as u8 => longer(section, &[exported(added.functions.checked_add(1)?)])?,
                id if id == SectionId::Code as u8 => self.code(&added)?,
                id if id == SectionId::Data as u8 => match &self.go {
                    Some(go) => longer(section, &[go.moved(added.behind)])?,
                    None => section.to_vec(),
                },
                _ => section.to_vec(),
            };
            widened.section(&RawSection { id, data: &data });
        }
        Some(widened.finish())
    }

    fn added(&self) -> Option<Added> {
        let pages = self.memory.initial.checked_add(PAGES).filter(|pages| *pages < MEMORY_PAGES_MAX)?;
        let functions = self.count(SectionId::Function)?.checked_add(self.functions_imported)?;
        let address = |pages: u64| u32::try_from(pages * PAGE).ok().map(u32::cast_signed);
        let first = address(self.memory.initial)?;
        let behind = address(pages)?;
        Some(Added { functions, next: self.count(SectionId::Global).unwrap_or(0), first, behind })
    }

    fn larger_memory(&self) -> Option<Vec<u8>> {
        let mut memory = vec![1, u8::from(self.memory.maximum.is_some())];
        self.memory.initial.checked_add(PAGES)?.encode(&mut memory);
        if let Some(maximum) = self.memory.maximum {
            maximum.checked_add(PAGES)?.min(MEMORY_PAGES_MAX).encode(&mut memory);
        }
        Some(memory)
    }

    /// All functions. Those that ask for `memory.size` call the first added one instead. The added
    /// ones follow.
    fn code(&self, added: &Added) -> Option<Vec<u8>> {
        let mut code = Vec::new();
        u32::try_from(self.bodies.len()).ok()?.checked_add(2)?.encode(&mut code);
        for body in &self.bodies {
            // Go's heap begins behind the pages and never sees them.
            let bytes = if self.go.is_some() { body.as_bytes().to_vec() } else { asking(body, added.functions)? };
            bytes.as_slice().encode(&mut code);
        }
        let pages = i32::try_from(self.memory.initial).ok()?;
        size(pages).encode(&mut code);
        realloc(added.next, added.behind).encode(&mut code);
        Some(code)
    }

    /// The number of items of a section.
    fn count(&self, wanted: SectionId) -> Option<u32> {
        let (_, section) = self.sections.iter().find(|(id, _)| *id == wanted as u8)?;
        BinaryReader::new(section, 0).read_var_u32().ok()
    }
}

/// The positions of the added items.
struct Added {
    /// The number of functions without the added ones: the index of the first added one.
    functions: u32,
    /// The global with the address that is given out next.
    next: u32,
    /// The address of the adapter's pages.
    first: i32,
    /// The address behind them.
    behind: i32,
}

/// `() -> i32`.
const SIZE_TYPE: [u8; 4] = [0x60, 0, 1, 0x7f];

/// `(i32, i32, i32, i32) -> i32`.
const REALLOC_TYPE: [u8; 8] = [0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f];

/// The answer of `memory.size` without the adapter's pages, until the module grows its memory
/// behind them.
fn size(pages: i32) -> Function {
    let with_room = pages.saturating_add(PAGES as i32);
    let mut body = Function::new([]);
    body.instructions()
        .memory_size(0)
        .i32_const(with_room)
        .i32_eq()
        .if_(BlockType::Result(ValType::I32))
        .i32_const(pages)
        .else_()
        .memory_size(0)
        .end()
        .end();
    body
}

/// `cabi_realloc`: hands out memory in steps of 16 bytes, and traps at the end. It never frees or
/// grows a piece, since the adapter does neither.
fn realloc(next: u32, end: i32) -> Function {
    const SIZE: u32 = 3;
    let mut body = Function::new([]);
    body.instructions()
        .global_get(next)
        .global_get(next)
        .local_get(SIZE)
        .i32_add()
        .i32_const(15)
        .i32_add()
        .i32_const(-16)
        .i32_and()
        .global_set(next)
        .global_get(next)
        .i32_const(end)
        .i32_gt_u()
        .if_(BlockType::Empty)
        .unreachable()
        .end()
        .end();
    body
}

/// A function's bytes, with calls of `size` in place of `memory.size`.
fn asking(body: &FunctionBody<'_>, size: u32) -> Option<Vec<u8>> {
    let bytes = body.as_bytes();
    if !bytes.windows(MEMORY_SIZE.len()).any(|pair| pair == MEMORY_SIZE) {
        return Some(bytes.to_vec());
    }
    let from = body.range().start;
    let within = |at: usize| at.checked_sub(from);
    let mut rewritten = Vec::with_capacity(bytes.len());
    let mut copied = 0;
    let mut operators = body.get_operators_reader().ok()?;
    while !operators.eof() {
        let (operator, at) = operators.read_with_offset().ok()?;
        if matches!(operator, Operator::MemorySize { .. }) {
            rewritten.extend(bytes.get(copied..within(at)?)?);
            wasm_encoder::Instruction::Call(size).encode(&mut rewritten);
            copied = within(operators.original_position())?;
        }
    }
    rewritten.extend(bytes.get(copied..)?);
    Some(rewritten)
}

/// `(mut i32)`, which begins with that address.
fn global(address: i32) -> Vec<u8> {
    let mut item = vec![0x7f, 1];
    ConstExpr::i32_const(address).encode(&mut item);
    item
}

/// The function of that index, as [`REALLOC`].
fn exported(function: u32) -> Vec<u8> {
    let mut item = encoded(REALLOC);
    item.push(0);
    function.encode(&mut item);
    item
}

/// The module's memory, if it has exactly one, of the plain kind.
fn only(section: MemorySectionReader<'_>) -> Option<MemoryType> {
    let mut memories = section.into_iter();
    let memory = memories.next()?.ok()?;
    (memories.next().is_none() && !memory.memory64 && !memory.shared && memory.page_size_log2.is_none())
        .then_some(memory)
}

#[cfg(test)]
mod tests;
