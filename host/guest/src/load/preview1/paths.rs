//! Paths that are not UTF-8. A component's strings must be UTF-8, and the engine ends a guest that
//! passes any other. POSIX paths are bytes, so programs do pass such paths. The adapter's functions
//! that take a path get a check in front, which answers `EILSEQ`.
use wasm_encoder::{BlockType, Encode, Function, MemArg, Module, RawSection, SectionId, ValType};
use wasmparser::{ExternalKind, Parser, Payload};

use super::sections::{count_functions, count_types, encoded, longer};

/// `EILSEQ` of WASI preview 1.
const EILSEQ: i32 = 25;

/// The functions that take paths, with the parameters where one begins. The next parameter is its
/// length.
const FUNCTIONS: [(&str, &[u32]); 10] = [
    ("path_create_directory", &[1]),
    ("path_filestat_get", &[2]),
    ("path_filestat_set_times", &[2]),
    ("path_link", &[2, 5]),
    ("path_open", &[2]),
    ("path_readlink", &[1]),
    ("path_remove_directory", &[1]),
    ("path_rename", &[1, 4]),
    ("path_symlink", &[0, 3]),
    ("path_unlink_file", &[1]),
];

/// `(i32, i32) -> i32`.
const IS_UTF8_TYPE: [u8; 6] = [0x60, 2, 0x7f, 0x7f, 1, 0x7f];

/// The parts of an adapter that are read.
#[derive(Default)]
struct AdapterParts<'a> {
    sections: Vec<(u8, &'a [u8])>,
    /// The number of parameters by type.
    parameters: Vec<u32>,
    types: u32,
    functions_imported: u32,
    /// Types of the adapter's own functions.
    functions: Vec<u32>,
    exports: Vec<AdapterExport<'a>>,
}

/// An export, and its bytes in the section.
struct AdapterExport<'a> {
    name: &'a str,
    function: Option<u32>,
    bytes: &'a [u8],
}

/// A function that checks paths before it calls another.
struct PathCheck<'p> {
    name: &'p str,
    ty: u32,
    parameters: u32,
    /// The checked function.
    function: u32,
    paths: &'p [u32],
}

/// The adapter, with a check of each path. `None` if it cannot be read.
pub(super) fn with_path_checks(adapter: &[u8]) -> Option<Vec<u8>> {
    AdapterParts::read(adapter)?.with_path_checks()
}

impl<'a> AdapterParts<'a> {
    fn read(module: &'a [u8]) -> Option<Self> {
        let mut parts = Self::default();
        for payload in Parser::new(0).parse_all(module) {
            let payload = payload.ok()?;
            if let Some((id, range)) = payload.as_section() {
                parts.sections.push((id, module.get(range)?));
            }
            match payload {
                Payload::TypeSection(section) => {
                    parts.types = count_types(section.clone())?;
                    for ty in section.into_iter_err_on_gc_types() {
                        parts.parameters.push(u32::try_from(ty.ok()?.params().len()).ok()?);
                    }
                }
                Payload::ImportSection(section) => parts.functions_imported = count_functions(section)?,
                Payload::FunctionSection(section) => {
                    parts.functions = section.into_iter().collect::<Result<_, _>>().ok()?;
                }
                Payload::ExportSection(section) => parts.exports = AdapterExport::all(section, module)?,
                _ => {}
            }
        }
        Some(parts)
    }

    fn with_path_checks(&self) -> Option<Vec<u8>> {
        let first = self.functions_imported.checked_add(u32::try_from(self.functions.len()).ok()?)?;
        let path_checks = self.path_checks()?;
        let mut types = vec![encoded(&self.types)];
        types.extend(path_checks.iter().map(|path_checks| encoded(&path_checks.ty)));
        let mut code = vec![encoded(&is_utf8())];
        code.extend(path_checks.iter().map(|path_checks| encoded(&path_checks.body(first))));
        let mut module = Module::new();
        for (id, section) in &self.sections {
            let id = *id;
            let data = match id {
                id if id == SectionId::Type as u8 => longer(section, &[IS_UTF8_TYPE.to_vec()])?,
                id if id == SectionId::Function as u8 => longer(section, &types)?,
                id if id == SectionId::Code as u8 => longer(section, &code)?,
                id if id == SectionId::Export as u8 => self.exported(&path_checks, first)?,
                _ => section.to_vec(),
            };
            module.section(&RawSection { id, data: &data });
        }
        Some(module.finish())
    }

    /// The functions to add.
    fn path_checks(&self) -> Option<Vec<PathCheck<'a>>> {
        let mut path_checks = Vec::with_capacity(FUNCTIONS.len());
        for (name, paths) in FUNCTIONS {
            let function = self.exports.iter().find(|export| export.name == name)?.function?;
            let own = usize::try_from(function.checked_sub(self.functions_imported)?).ok()?;
            let ty = *self.functions.get(own)?;
            let parameters = *self.parameters.get(usize::try_from(ty).ok()?)?;
            path_checks.push(PathCheck { name, ty, parameters, function, paths });
        }
        Some(path_checks)
    }

    /// The exports. Those of checked functions lead to the added ones, which begin at `first`.
    fn exported(&self, path_checks: &[PathCheck<'_>], first: u32) -> Option<Vec<u8>> {
        let mut section = encoded(&u32::try_from(self.exports.len()).ok()?);
        for export in &self.exports {
            match path_checks.iter().position(|path_checks| path_checks.name == export.name) {
                Some(place) => {
                    export.name.encode(&mut section);
                    section.push(0);
                    first.checked_add(1)?.checked_add(u32::try_from(place).ok()?)?.encode(&mut section);
                }
                None => section.extend(export.bytes),
            }
        }
        Some(section)
    }
}

impl<'a> AdapterExport<'a> {
    fn all(section: wasmparser::ExportSectionReader<'a>, module: &'a [u8]) -> Option<Vec<Self>> {
        let end = section.range().end;
        let mut exports: Vec<(usize, Self)> = Vec::new();
        for export in section.into_iter_with_offsets() {
            let (at, export) = export.ok()?;
            let function = (export.kind == ExternalKind::Func).then_some(export.index);
            exports.push((at, Self { name: export.name, function, bytes: &[] }));
        }
        let ends: Vec<usize> = exports.iter().skip(1).map(|(at, _)| *at).chain([end]).collect();
        let whole = |((at, export), end): ((usize, Self), usize)| Some(Self { bytes: module.get(at..end)?, ..export });
        exports.into_iter().zip(ends).map(whole).collect()
    }
}

impl PathCheck<'_> {
    fn body(&self, is_utf8: u32) -> Function {
        let mut body = Function::new([]);
        let mut code = body.instructions();
        for path in self.paths {
            code.local_get(*path).local_get(path + 1).call(is_utf8).i32_eqz();
            code.if_(BlockType::Empty).i32_const(EILSEQ).return_().end();
        }
        for parameter in 0..self.parameters {
            code.local_get(parameter);
        }
        code.call(self.function).end();
        body
    }
}

/// True if the bytes at the address are UTF-8; the second parameter is their number. It follows the
/// table of well-formed sequences in the Unicode standard: the first byte decides how many bytes
/// follow, and the range of the second.
fn is_utf8() -> Function {
    const AT: u32 = 0;
    const END: u32 = 1;
    const BYTE: u32 = 2;
    const FOLLOW: u32 = 3;
    const LOWEST: u32 = 4;
    const HIGHEST: u32 = 5;
    const LOCALS: u32 = 4;
    let here = MemArg { offset: 0, align: 0, memory_index: 0 };
    let mut body = Function::new([(LOCALS, ValType::I32)]);
    let mut code = body.instructions();
    code.local_get(AT).local_get(END).i32_add().local_set(END);
    code.loop_(BlockType::Empty);
    code.local_get(AT).local_get(END).i32_eq().if_(BlockType::Empty).i32_const(1).return_().end();
    code.local_get(AT).i32_load8_u(here).local_set(BYTE);
    code.local_get(AT).i32_const(1).i32_add().local_set(AT);
    code.local_get(BYTE).i32_const(0x80).i32_lt_u().br_if(0);
    code.local_get(BYTE).i32_const(0xc2).i32_sub().i32_const(0xf4 - 0xc2).i32_gt_u();
    code.if_(BlockType::Empty).i32_const(0).return_().end();
    code.i32_const(1).local_get(BYTE).i32_const(0xe0).i32_ge_u().i32_add();
    code.local_get(BYTE).i32_const(0xf0).i32_ge_u().i32_add().local_set(FOLLOW);
    code.i32_const(0xa0).i32_const(0x90).i32_const(0x80).local_get(BYTE).i32_const(0xf0).i32_eq().select();
    code.local_get(BYTE).i32_const(0xe0).i32_eq().select().local_set(LOWEST);
    code.i32_const(0x9f).i32_const(0x8f).i32_const(0xbf).local_get(BYTE).i32_const(0xf4).i32_eq().select();
    code.local_get(BYTE).i32_const(0xed).i32_eq().select().local_set(HIGHEST);
    code.loop_(BlockType::Empty);
    code.local_get(AT).local_get(END).i32_eq().if_(BlockType::Empty).i32_const(0).return_().end();
    code.local_get(AT).i32_load8_u(here).local_get(LOWEST).i32_sub();
    code.local_get(HIGHEST).local_get(LOWEST).i32_sub().i32_gt_u();
    code.if_(BlockType::Empty).i32_const(0).return_().end();
    code.local_get(AT).i32_const(1).i32_add().local_set(AT);
    code.i32_const(0x80).local_set(LOWEST).i32_const(0xbf).local_set(HIGHEST);
    code.local_get(FOLLOW).i32_const(1).i32_sub().local_tee(FOLLOW).br_if(0).end();
    code.br(0).end().unreachable().end();
    body
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use wasm_encoder::{
        CodeSection, ExportKind, ExportSection, FunctionSection, MemorySection, MemoryType, TypeSection,
    };
    use wasmtime::{Engine, Instance, Store};

    use super::super::ADAPTER;
    use super::*;

    /// A module with nothing but the check.
    fn looker() -> Vec<u8> {
        let mut types = TypeSection::new();
        let mut functions = FunctionSection::new();
        let mut memories = MemorySection::new();
        types.ty().function([ValType::I32, ValType::I32], [ValType::I32]);
        functions.function(0);
        memories.memory(MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None });
        let mut exports = ExportSection::new();
        let mut code = CodeSection::new();
        exports.export("look", ExportKind::Func, 0).export("memory", ExportKind::Memory, 0);
        code.function(&is_utf8());
        let mut module = Module::new();
        module.section(&types).section(&functions).section(&memories).section(&exports).section(&code);
        module.finish()
    }

    #[test]
    fn the_look_takes_what_rust_takes() {
        let mut store = Store::new(&Engine::default(), ());
        let module = wasmtime::Module::new(store.engine(), looker()).unwrap();
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let memory = instance.get_memory(&mut store, "memory").unwrap();
        let look = instance.get_typed_func::<(i32, i32), i32>(&mut store, "look").unwrap();
        let edges = [
            0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0,
            0xf1, 0xf3, 0xf4, 0xf5, 0xff,
        ];
        let mut texts = vec![Vec::<u8>::new()];
        for length in 0..4 {
            let shorter: Vec<_> = texts.iter().filter(|text| text.len() == length).cloned().collect();
            texts.extend(shorter.iter().flat_map(|text| edges.map(|byte| [text.as_slice(), &[byte]].concat())));
        }
        assert!(texts.len() > 280_000);
        for text in texts {
            // At the very end of memory, so that reading past the text would trap.
            let at = 65_536 - text.len();
            memory.write(&mut store, at, &text).unwrap();
            let looked = look.call(&mut store, (i32::try_from(at).unwrap(), i32::try_from(text.len()).unwrap()));
            assert_eq!(looked.unwrap() == 1, std::str::from_utf8(&text).is_ok(), "{text:x?}");
        }
    }

    #[test]
    fn every_function_of_the_adapter_that_takes_a_path_looks_at_it() {
        let taking: Vec<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
        let parts = AdapterParts::read(ADAPTER).unwrap();
        let mut named: Vec<&str> =
            parts.exports.iter().map(|export| export.name).filter(|name| name.starts_with("path_")).collect();
        named.sort_unstable();
        assert_eq!(named, taking);
        let looked = with_path_checks(ADAPTER).unwrap();
        wasmparser::validate(&looked).unwrap();
        let before: Vec<_> = parts.exports.iter().map(|export| (export.name, export.function)).collect();
        let looked = AdapterParts::read(&looked).unwrap();
        let after: Vec<_> = looked.exports.iter().map(|export| (export.name, export.function)).collect();
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before.0, after.0);
            assert_eq!(before.1 != after.1, taking.contains(&before.0), "{}", before.0);
        }
    }
}
