//! The relay: a component that imports the interfaces of this host, and exports each of their
//! functions again.
//!
//! The engine calls a host function only for a guest. While a call is recorded, its guest gets
//! functions that note what goes through them. These call the relay, and so reach the functions
//! that the guest would call without a recording. The relay depends on the host alone, and not on
//! any component.
use std::collections::BTreeSet;

use toolcell_wall::load::facts::GuestEngine;
use wasm_encoder::{
    BlockType, CanonicalFunctionSection, CodeSection, ComponentSection as _, ConstExpr, EntityType, ExportKind,
    ExportSection, Function, FunctionSection, GlobalSection, GlobalType, ImportSection, InstructionSink, MemorySection,
    MemoryType, Module, TypeSection, ValType,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::abi::{AbiVariant, WasmSignature, WasmType};
use wit_parser::{
    Function as WitFunction, Handle, InterfaceId, LiftLowerAbi, ManglingAndAbi, Resolve, ResourceIntrinsic, SizeAlign,
    Type, TypeDefKind, TypeId, WasmExport, WasmExportKind, WasmImport, WorldId, WorldItem, WorldKey,
};

/// The texts of the interfaces.
const TEXTS: &[(&str, &[&str])] = &[
    ("io.wit", &[include_str!("../../../../wit/deps/io.wit")]),
    ("clocks.wit", &[include_str!("../../../../wit/deps/clocks.wit")]),
    ("random.wit", &[include_str!("../../../../wit/deps/random.wit")]),
    ("filesystem.wit", &[include_str!("../../../../wit/deps/filesystem.wit")]),
    ("sockets.wit", &[include_str!("../../../../wit/deps/sockets.wit")]),
    ("cli.wit", &[include_str!("../../../../wit/deps/cli.wit")]),
    ("http.wit", &[include_str!("../../../../wit/deps/http.wit")]),
    ("config.wit", &["package wasi:config@0.2.0-rc.1;", include_str!("../../../../wit/deps/config/store.wit")]),
    (
        "keyvalue.wit",
        &[
            "package wasi:keyvalue@0.2.0-draft;",
            include_str!("../../../../wit/deps/keyvalue/store.wit"),
            include_str!("../../../../wit/deps/keyvalue/atomic.wit"),
            include_str!("../../../../wit/deps/keyvalue/batch.wit"),
        ],
    ),
    ("logging.wit", &[include_str!("logging.wit")]),
    (
        "mcp.wit",
        &[
            include_str!("../../../../wit/host.wit"),
            include_str!("../../../../wit/types.wit"),
            include_str!("../../../../wit/asking.wit"),
            include_str!("../../../../wit/calling.wit"),
            include_str!("../../../../wit/resources.wit"),
        ],
    ),
];

/// The interfaces with functions.
const RELAYED: &[&str] = &[
    "wasi:io/error@0.2.12",
    "wasi:io/poll@0.2.12",
    "wasi:io/streams@0.2.12",
    "wasi:clocks/monotonic-clock@0.2.12",
    "wasi:clocks/wall-clock@0.2.12",
    "wasi:random/random@0.2.12",
    "wasi:random/insecure@0.2.12",
    "wasi:random/insecure-seed@0.2.12",
    "wasi:cli/environment@0.2.12",
    "wasi:cli/exit@0.2.12",
    "wasi:cli/stdin@0.2.12",
    "wasi:cli/stdout@0.2.12",
    "wasi:cli/stderr@0.2.12",
    "wasi:cli/terminal-stdin@0.2.12",
    "wasi:cli/terminal-stdout@0.2.12",
    "wasi:cli/terminal-stderr@0.2.12",
    "wasi:filesystem/types@0.2.12",
    "wasi:filesystem/preopens@0.2.12",
    "wasi:sockets/network@0.2.12",
    "wasi:sockets/instance-network@0.2.12",
    "wasi:sockets/ip-name-lookup@0.2.12",
    "wasi:sockets/tcp@0.2.12",
    "wasi:sockets/tcp-create-socket@0.2.12",
    "wasi:sockets/udp@0.2.12",
    "wasi:sockets/udp-create-socket@0.2.12",
    "wasi:http/types@0.2.12",
    "wasi:http/outgoing-handler@0.2.12",
    "wasi:config/store@0.2.0-rc.1",
    "wasi:keyvalue/store@0.2.0-draft",
    "wasi:keyvalue/atomics@0.2.0-draft",
    "wasi:keyvalue/batch@0.2.0-draft",
    "wasi:logging/logging@0.1.0-draft",
    "toolcell:mcp/asking@1.3.0",
    "toolcell:mcp/calling@1.3.0",
    "toolcell:mcp/cancellation@1.3.0",
    "toolcell:mcp/log@1.3.0",
    "toolcell:mcp/progress@1.3.0",
    "toolcell:mcp/request@1.3.0",
    "toolcell:mcp/updates@1.3.0",
];

/// The package of the relay's exports.
pub(super) const PACKAGE: &str = "toolcell:relay";

/// Core functions have their classic names: the encoder takes both kinds.
const NAMES: ManglingAndAbi = ManglingAndAbi::Legacy(LiftLowerAbi::Sync);

/// Bytes of a page of memory.
const PAGE_BYTES: i32 = 65_536;

/// The start of what a call allocates.
const HEAP_START: i32 = 16;

/// Alignment of what is allocated, for every type.
const ALIGN: i32 = 16;

/// Why there is no relay: the host's own texts do not fit together.
#[derive(Debug, thiserror::Error)]
#[error("the relay of recordings cannot be made: {0}")]
pub struct RelayError(String);

impl RelayError {
    fn of(error: &impl std::fmt::Display) -> Self {
        // With its causes, where it has some.
        Self(format!("{error:#}"))
    }
}

/// The relay's name for a function or an interface, which may hold only letters, digits and
/// hyphens: `[method]output-stream.write` → `f-method-output-stream-write`.
pub(super) fn relay_name(name: &str) -> String {
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("f-{}", name.trim_start_matches('[').chars().map(word).collect::<String>())
}

/// The component for guests of this engine that import these interfaces, with or without a version:
/// the same bytes each time. Imports that no relay has are left out.
///
/// # Errors
/// [`RelayError`]: a fault of this program, which its tests would find.
pub fn component<S: AsRef<str>>(engine: GuestEngine, imports: &[S]) -> Result<Vec<u8>, RelayError> {
    let mut bytes = plain(&relayed(imports))?;
    if engine == GuestEngine::Async {
        // A component is compiled for that engine if it has an async function of the component
        // model. Nothing calls this one.
        let mut unused = CanonicalFunctionSection::new();
        unused.waitable_set_new();
        unused.append_to_component(&mut bytes);
    }
    Ok(bytes)
}

/// The interfaces that a relay for these imports has.
fn relayed<S: AsRef<str>>(imports: &[S]) -> Vec<&'static str> {
    let wanted: BTreeSet<&str> = imports.iter().map(|import| interface_name(import.as_ref())).collect();
    RELAYED.iter().copied().filter(|name| wanted.contains(interface_name(name))).collect()
}

/// An interface without its version, by the name that it has now.
pub(super) fn interface_name(import: &str) -> &str {
    match import.split_once('@').map_or(import, |(name, _)| name) {
        // An earlier draft's name of it.
        "wasi:config/runtime" => "wasi:config/store",
        name => name,
    }
}

fn plain(interfaces: &[&'static str]) -> Result<Vec<u8>, RelayError> {
    let relay = Relay::parse(interfaces).map_err(|error| RelayError(format!("{error:#}")))?;
    let mut module = relay.module()?;
    embed_component_metadata(&mut module, &relay.resolve, relay.world, StringEncoding::UTF8)
        .map_err(|error| RelayError::of(&error))?;
    let encoder = ComponentEncoder::default().validate(false).module(&module);
    encoder.and_then(|mut encoder| encoder.encode()).map_err(|error| RelayError::of(&error))
}

/// The interfaces as this crate's parser reads them.
struct Relay {
    resolve: Resolve,
    world: WorldId,
    /// Those that go through.
    relayed: Vec<InterfaceId>,
}

/// A function that goes through.
struct Relayed<'r> {
    interface: InterfaceId,
    function: &'r WitFunction,
    /// The export of the same type.
    exported: &'r WitFunction,
    export: &'r WorldKey,
}

impl Relay {
    fn parse(interfaces: &[&str]) -> Result<Self, Box<dyn std::error::Error>> {
        let mut resolve = Resolve::default();
        for (name, parts) in TEXTS {
            resolve.push_source(name, &package_text(parts))?;
        }
        let relayed = interfaces_named(&resolve, interfaces)?;
        let text = world_text(&resolve, &relayed);
        let package = resolve.push_source("relay.wit", &text)?;
        let world = resolve.select_world(&[package], Some("relay"))?;
        Ok(Self { resolve, world, relayed })
    }

    /// Each function with the export of the same type.
    fn functions(&self) -> Result<Vec<Relayed<'_>>, RelayError> {
        let mut relayed = Vec::new();
        let missing = || RelayError("an export has no import".to_owned());
        let exports = &self.resolve.worlds.get(self.world).ok_or_else(missing)?.exports;
        for interface in self.relayed.iter().copied() {
            let name = self.resolve.id_of(interface).ok_or_else(missing)?;
            let own = relay_name(&name);
            let is_own = |key: &WorldKey| self.resolve.name_world_key(key) == format!("{PACKAGE}/{own}");
            let (export, item) = exports.iter().find(|(key, _)| is_own(key)).ok_or_else(missing)?;
            let WorldItem::Interface { id: exported, .. } = item else { return Err(missing()) };
            let exported = &self.resolve.interfaces.get(*exported).ok_or_else(missing)?.functions;
            for function in self.resolve.interfaces.get(interface).ok_or_else(missing)?.functions.values() {
                let exported = exported.get(&relay_name(&function.name)).ok_or_else(missing)?;
                relayed.push(Relayed { interface, function, exported, export });
            }
        }
        Ok(relayed)
    }

    /// The relay's code: each function calls the one it stands for.
    fn module(&self) -> Result<Vec<u8>, RelayError> {
        let mut sizes = SizeAlign::default();
        sizes.fill(&self.resolve);
        let mut code = RelayCode::default();
        let functions = self.functions()?;
        // Imports come first, since they number functions.
        let mut bodies = Vec::new();
        for relayed in &functions {
            bodies.push(self.import(&mut code, relayed)?);
        }
        let realloc = code.imported;
        code.add_allocator();
        for (relayed, body) in functions.iter().zip(&bodies) {
            let size = relayed.function.result.as_ref().map_or(0, |ty| sizes.size(ty).size_wasm32());
            let size = i32::try_from(size).map_err(|error| RelayError::of(&error))?;
            let name = |kind| {
                let interface = Some(relayed.export);
                self.resolve.wasm_export_name(NAMES, WasmExport::Func { interface, func: relayed.exported, kind })
            };
            code.add_body(body, size, [name(WasmExportKind::Normal), name(WasmExportKind::PostReturn)]);
        }
        let memory = self.resolve.wasm_export_name(NAMES, WasmExport::Memory);
        let allocator = self.resolve.wasm_export_name(NAMES, WasmExport::Realloc);
        code.exports.export(&memory, ExportKind::Memory, 0);
        code.exports.export(&allocator, ExportKind::Func, realloc);
        Ok(code.finish())
    }

    /// Imports one function, and what drops the handles that are lent to it.
    fn import(&self, code: &mut RelayCode, relayed: &Relayed<'_>) -> Result<Body, RelayError> {
        let Relayed { interface, function, exported, .. } = *relayed;
        let key = WorldKey::Interface(interface);
        let inner = self.resolve.wasm_signature(AbiVariant::GuestImport, function);
        let outer = self.resolve.wasm_signature(AbiVariant::GuestExport, exported);
        let name = WasmImport::Func { interface: Some(&key), func: function };
        let (module, field) = self.resolve.wasm_import_name(NAMES, name);
        let called = code.import(&module, &field, &inner);
        let mut lent = Vec::new();
        let mut place = 0;
        for param in &function.params {
            let flat = self.flat_count(&param.ty);
            if let Some(Lent { resource, is_list }) = self.lent(&param.ty) {
                let owner = self.owner(resource).ok_or_else(|| RelayError("a resource has no owner".to_owned()))?;
                let intrinsic = ResourceIntrinsic::ImportedDrop;
                let import = WasmImport::ResourceIntrinsic { interface: Some(&owner), resource, intrinsic };
                let (module, field) = self.resolve.wasm_import_name(NAMES, import);
                lent.push(LentHandle { place, is_list, drop: code.import_drop(module, field) });
            }
            place += flat;
        }
        if inner.indirect_params && !lent.is_empty() {
            return Err(RelayError(format!("{} lends a handle among many parameters", function.name)));
        }
        Ok(Body { called, inner, outer, lent })
    }

    /// The number of core parameters of a type.
    fn flat_count(&self, ty: &Type) -> u32 {
        let mut storage = [WasmType::I32; Resolve::MAX_FLAT_PARAMS + 1];
        let mut flat = wit_parser::abi::FlatTypes::new(&mut storage);
        self.resolve.push_flat(ty, &mut flat);
        u32::try_from(flat.to_vec().len()).unwrap_or(u32::MAX)
    }

    /// The handle that a parameter lends: one, or a list of them.
    fn lent(&self, ty: &Type) -> Option<Lent> {
        let Type::Id(id) = ty else { return None };
        match &self.resolve.types.get(*id)?.kind {
            TypeDefKind::Handle(Handle::Borrow(resource)) => {
                Some(Lent { resource: self.resource(*resource), is_list: false })
            }
            TypeDefKind::List(element) => {
                self.lent(element).map(|Lent { resource, .. }| Lent { resource, is_list: true })
            }
            TypeDefKind::Type(ty) => self.lent(ty),
            _ => None,
        }
    }

    /// The resource behind its other names.
    fn resource(&self, id: TypeId) -> TypeId {
        match self.resolve.types.get(id).map(|ty| &ty.kind) {
            Some(TypeDefKind::Type(Type::Id(behind))) => self.resource(*behind),
            _ => id,
        }
    }

    fn owner(&self, resource: TypeId) -> Option<WorldKey> {
        match self.resolve.types.get(resource)?.owner {
            wit_parser::TypeOwner::Interface(interface) => Some(WorldKey::Interface(interface)),
            _ => None,
        }
    }
}

/// The text of a package: its files, which name it once or each.
fn package_text(parts: &[&str]) -> String {
    let lines = || parts.iter().flat_map(|part| part.lines());
    let is_name = |line: &&str| line.starts_with("package ");
    let named = lines().find(is_name).into_iter();
    named.chain(lines().filter(|line| !is_name(line))).flat_map(|line| [line, "\n"]).collect()
}

/// The interfaces of these names.
fn interfaces_named(resolve: &Resolve, names: &[&str]) -> Result<Vec<InterfaceId>, RelayError> {
    let named = |name: &&str| {
        let found = resolve.interfaces.iter().find(|(id, _)| resolve.id_of(*id).as_deref() == Some(*name));
        found.map(|(id, _)| id).ok_or_else(|| RelayError(format!("{name} has no text")))
    };
    names.iter().map(named).collect()
}

/// A world that imports each interface, and exports an interface with functions of the same types.
fn world_text(resolve: &Resolve, interfaces: &[InterfaceId]) -> String {
    let mut text = format!("package {PACKAGE};\n");
    let mut world = String::from("world relay {\n");
    for id in interfaces.iter().copied() {
        let Some(interface) = resolve.interfaces.get(id) else { continue };
        let name = resolve.id_of(id).unwrap_or_default();
        let own = relay_name(&name);
        world += &format!("  import {name};\n  export {own};\n");
        text += &format!("interface {own} {{\n");
        if !interface.types.is_empty() {
            let types: Vec<String> = interface.types.keys().map(|name| format!("%{name}")).collect();
            text += &format!("  use {name}.{{{}}};\n", types.join(", "));
        }
        for function in interface.functions.values() {
            let params = function.params.iter().enumerate();
            let params: Vec<String> =
                params.map(|(number, param)| format!("p{number}: {}", show(resolve, &param.ty))).collect();
            let result = function.result.as_ref().map(|ty| format!(" -> {}", show(resolve, ty))).unwrap_or_default();
            text += &format!("  {}: func({}){result};\n", relay_name(&function.name), params.join(", "));
        }
        text += "}\n";
    }
    text + &world + "}\n"
}

/// A type as WIT writes it, by its name where it has one.
fn show(resolve: &Resolve, ty: &Type) -> String {
    let Type::Id(id) = ty else { return primitive(ty).to_owned() };
    let Some(of) = resolve.types.get(*id) else { return String::new() };
    if let Some(name) = &of.name {
        return format!("%{name}");
    }
    let named = |id: &TypeId| show(resolve, &Type::Id(*id));
    let shown = |ty: &Option<Type>| ty.as_ref().map_or_else(|| "_".to_owned(), |ty| show(resolve, ty));
    match &of.kind {
        TypeDefKind::Handle(Handle::Own(resource)) => named(resource),
        TypeDefKind::Handle(Handle::Borrow(resource)) => format!("borrow<{}>", named(resource)),
        TypeDefKind::List(element) => format!("list<{}>", show(resolve, element)),
        TypeDefKind::Option(some) => format!("option<{}>", show(resolve, some)),
        TypeDefKind::Tuple(tuple) => {
            let types: Vec<String> = tuple.types.iter().map(|ty| show(resolve, ty)).collect();
            format!("tuple<{}>", types.join(", "))
        }
        TypeDefKind::Result(result) => match (&result.ok, &result.err) {
            (None, None) => "result".to_owned(),
            (ok, None) => format!("result<{}>", shown(ok)),
            (ok, err) => format!("result<{}, {}>", shown(ok), shown(err)),
        },
        TypeDefKind::Type(ty) => show(resolve, ty),
        _ => String::new(),
    }
}

fn primitive(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::S8 => "s8",
        Type::S16 => "s16",
        Type::S32 => "s32",
        Type::S64 => "s64",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Char => "char",
        Type::String => "string",
        Type::ErrorContext | Type::Id(_) => "",
    }
}

/// A parameter that lends handles.
struct Lent {
    resource: TypeId,
    is_list: bool,
}

/// Handles that a function lends to the relay, which must give them up before it returns.
struct LentHandle {
    /// The core parameter.
    place: u32,
    /// True if it is the start of a list, whose length follows.
    is_list: bool,
    /// The function that drops one.
    drop: u32,
}

/// What a function of the relay does.
struct Body {
    called: u32,
    inner: WasmSignature,
    outer: WasmSignature,
    lent: Vec<LentHandle>,
}

/// The sections of the relay's module.
#[derive(Default)]
struct RelayCode {
    types: TypeSection,
    imports: ImportSection,
    functions: FunctionSection,
    exports: ExportSection,
    code: CodeSection,
    /// Functions that are imported.
    imported: u32,
    /// Functions in all.
    count: u32,
    drops: Vec<(String, String, u32)>,
}

impl RelayCode {
    fn add_type(&mut self, params: &[ValType], results: &[ValType]) -> u32 {
        let index = self.types.len();
        self.types.ty().function(params.iter().copied(), results.iter().copied());
        index
    }

    fn import(&mut self, module: &str, field: &str, signature: &WasmSignature) -> u32 {
        let ty = self.add_type(&core_types(&signature.params), &core_types(&signature.results));
        self.imports.import(module, field, EntityType::Function(ty));
        self.imported += 1;
        self.count += 1;
        self.imported - 1
    }

    /// The function that drops a handle, imported once.
    fn import_drop(&mut self, module: String, field: String) -> u32 {
        let known = self.drops.iter().find(|(in_module, name, _)| *in_module == module && *name == field);
        if let Some((_, _, index)) = known {
            return *index;
        }
        let ty = self.add_type(&[ValType::I32], &[]);
        self.imports.import(&module, &field, EntityType::Function(ty));
        self.imported += 1;
        self.count += 1;
        let index = self.imported - 1;
        self.drops.push((module, field, index));
        index
    }

    fn add_function(&mut self, ty: u32, body: &Function) -> u32 {
        self.functions.function(ty);
        self.code.function(body);
        self.count += 1;
        self.count - 1
    }

    /// The allocator: it goes on from the last allocation, and begins anew after each call.
    fn add_allocator(&mut self) {
        const OLD: u32 = 0;
        const OLD_BYTES: u32 = 1;
        const NEW_BYTES: u32 = 3;
        const PLACE: u32 = 4;
        let ty = self.add_type(&[ValType::I32; 4], &[ValType::I32]);
        let mut body = Function::new([(1, ValType::I32)]);
        let mut sink = body.instructions();
        allocate(&mut sink, PLACE, |sink| {
            sink.local_get(NEW_BYTES);
        });
        // Nothing grows but lists that the engine is still reading: what was there comes along.
        sink.local_get(PLACE).local_get(OLD).local_get(OLD_BYTES).memory_copy(0, 0);
        sink.local_get(PLACE).end();
        self.add_function(ty, &body);
    }

    /// One function, and what is called once its result is read.
    fn add_body(&mut self, body: &Body, result_bytes: i32, [name, post_return]: [String; 2]) {
        let params = core_types(&body.outer.params);
        let results = core_types(&body.outer.results);
        let count = u32::try_from(params.len()).unwrap_or(u32::MAX);
        let place = count;
        let each = count + 1;
        let end = count + 2;
        let kept = count + 3;
        let kept_type = results.first().copied().unwrap_or(ValType::I32);
        let mut function = Function::new([(3, ValType::I32), (1, kept_type)]);
        let mut sink = function.instructions();
        if body.inner.retptr {
            allocate(&mut sink, place, |sink| {
                sink.i32_const(result_bytes);
            });
        }
        (0..count).for_each(|param| {
            sink.local_get(param);
        });
        if body.inner.retptr {
            sink.local_get(place);
        }
        sink.call(body.called);
        if !body.inner.results.is_empty() {
            sink.local_set(kept);
        }
        for lent in &body.lent {
            if lent.is_list {
                drop_each(&mut sink, lent, each, end);
            } else {
                sink.local_get(lent.place).call(lent.drop);
            }
        }
        if body.inner.retptr {
            sink.local_get(place);
        } else if !results.is_empty() {
            sink.local_get(kept);
        }
        sink.end();
        let ty = self.add_type(&params, &results);
        let index = self.add_function(ty, &function);
        self.exports.export(&name, ExportKind::Func, index);
        let mut after = Function::new([]);
        after.instructions().i32_const(HEAP_START).global_set(0).end();
        let ty = self.add_type(&results, &[]);
        let index = self.add_function(ty, &after);
        self.exports.export(&post_return, ExportKind::Func, index);
    }

    fn finish(self) -> Vec<u8> {
        let mut memories = MemorySection::new();
        let memory = MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None };
        memories.memory(memory);
        let mut globals = GlobalSection::new();
        let heap = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
        globals.global(heap, &ConstExpr::i32_const(HEAP_START));
        let mut module = Module::new();
        module.section(&self.types).section(&self.imports).section(&self.functions).section(&memories);
        module.section(&globals).section(&self.exports).section(&self.code);
        module.finish()
    }
}

/// Sets `place` to the start of new bytes, whose number `bytes` pushes. Traps if there is no room.
fn allocate(sink: &mut InstructionSink<'_>, place: u32, bytes: impl FnOnce(&mut InstructionSink<'_>)) {
    sink.global_get(0).local_tee(place);
    bytes(sink);
    sink.i32_add().i32_const(ALIGN - 1).i32_add().i32_const(-ALIGN).i32_and().global_set(0);
    // A sum past the end of all numbers starts anew, below the place.
    sink.global_get(0).local_get(place).i32_lt_u().if_(BlockType::Empty).unreachable().end();
    // Pages that are missing, if any.
    sink.global_get(0).i32_const(PAGE_BYTES - 1).i32_add().i32_const(16).i32_shr_u();
    sink.memory_size(0).i32_gt_u().if_(BlockType::Empty);
    sink.global_get(0).i32_const(PAGE_BYTES - 1).i32_add().i32_const(16).i32_shr_u().memory_size(0).i32_sub();
    sink.memory_grow(0).i32_const(-1).i32_eq().if_(BlockType::Empty).unreachable().end().end();
}

/// Drops each handle of a list.
fn drop_each(sink: &mut InstructionSink<'_>, lent: &LentHandle, each: u32, end: u32) {
    let word = wasm_encoder::MemArg { offset: 0, align: 2, memory_index: 0 };
    sink.local_get(lent.place).local_tee(each);
    sink.local_get(lent.place + 1).i32_const(2).i32_shl().i32_add().local_set(end);
    sink.block(BlockType::Empty).loop_(BlockType::Empty);
    sink.local_get(each).local_get(end).i32_ge_u().br_if(1);
    sink.local_get(each).i32_load(word).call(lent.drop);
    sink.local_get(each).i32_const(4).i32_add().local_set(each).br(0);
    sink.end().end();
}

fn core_types(types: &[WasmType]) -> Vec<ValType> {
    let core = |ty: &WasmType| match ty {
        WasmType::I64 | WasmType::PointerOrI64 => ValType::I64,
        WasmType::F32 => ValType::F32,
        WasmType::F64 => ValType::F64,
        WasmType::I32 | WasmType::Pointer | WasmType::Length => ValType::I32,
    };
    types.iter().map(core).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_relay_has_what_its_component_imports_in_any_version_and_no_more() {
        assert_eq!(relayed(&["wasi:config/runtime@0.2.0-draft", "acme:x/y"]), ["wasi:config/store@0.2.0-rc.1"]);
        for imports in [&["wasi:io/streams@0.2.0"][..], &["wasi:http/types@0.2.3", "wasi:cli/exit"], &[]] {
            let bytes = component(GuestEngine::Sync, imports).unwrap();
            wasmparser::Validator::new_with_features(wasmparser::WasmFeatures::all()).validate_all(&bytes).unwrap();
        }
    }

    #[test]
    fn the_relay_is_the_same_each_time_and_lends_handles_only_where_it_can_give_them_back() {
        let relay = Relay::parse(RELAYED).unwrap();
        let relayed = relay.functions().unwrap();
        assert!(relayed.len() > 200, "{}", relayed.len());
        for Relayed { function, .. } in &relayed {
            for param in &function.params {
                let shown = show(&relay.resolve, &param.ty);
                let inside = shown.matches("borrow<").count();
                assert_eq!(inside, usize::from(relay.lent(&param.ty).is_some()), "{}: {shown}", function.name);
            }
        }
        for engine in [GuestEngine::Sync, GuestEngine::Async] {
            let bytes = component(engine, RELAYED).unwrap();
            assert_eq!(bytes, component(engine, RELAYED).unwrap());
            wasmparser::Validator::new_with_features(wasmparser::WasmFeatures::all()).validate_all(&bytes).unwrap();
        }
    }
}
