//! Readers of streams and futures, which are added to a component whose functions return some.
//!
//! The engine hands the host a stream of any type, but reads only those whose type the host knew
//! when it was built. Guests can read every type. So a small component is added for each such
//! component: it reads a piece of a stream, and returns the piece as a list. It is a guest like any
//! other, under the same limits, and has no imports.
//!
//! | file | holds |
//! |---|---|
//! | `types.rs` | the types of streams, written again for the readers |
//! | `modules.rs` | the code of a reader |
mod modules;
mod types;

use std::collections::HashSet;

use wasm_encoder::{
    CanonicalOption, ComponentBuilder, ComponentExportKind, ComponentExportSection, ComponentInstanceSection,
    ComponentSection, ComponentSectionId, ComponentValType, ExportKind, ModuleArg, PrimitiveValType, RawSection,
    ValType,
};
use wasmparser::component_types::{ComponentDefinedType, ComponentDefinedTypeId, ComponentEntityType};
use wasmparser::types::{Types, TypesRef};
use wasmparser::{Parser, Payload, ValidPayload, Validator, WasmFeatures};

use crate::shape::typed::{READERS, is_of_runtime};
use modules::{Kind, Reader};
use types::{Copies, Written};

/// Bump when readers change.
pub(crate) const FORMAT: u8 = 1;

/// Readers of one component: one for each type of stream or future. Real interfaces have a few.
const READERS_MAX: usize = 64;

/// The component with readers for the streams and futures that its functions return. `None` if it
/// needs none, or if it is not valid: the engine then says why. Only for bytes whose parts are
/// counted.
pub(crate) fn added(bytes: &[u8]) -> Option<Vec<u8>> {
    let (types, exports) = typed(bytes)?;
    let types = types.as_ref();
    let wanted = returned(types, &exports);
    if wanted.is_empty() {
        return None;
    }
    let readers = component(types, &wanted)?;
    let mut whole = bytes.to_vec();
    append(&mut whole, &RawSection { id: ComponentSectionId::Component.into(), data: &readers });
    let mut instances = ComponentInstanceSection::new();
    instances.instantiate(types.component_count(), std::iter::empty::<(&str, ComponentExportKind, u32)>());
    append(&mut whole, &instances);
    let mut exported = ComponentExportSection::new();
    exported.export(READERS, ComponentExportKind::Instance, types.component_instance_count(), None);
    append(&mut whole, &exported);
    Some(whole)
}

fn append(bytes: &mut Vec<u8>, section: &impl ComponentSection) {
    section.append_to_component(bytes);
}

/// The types of a component, and the names of its exports. Code of functions is not looked at.
fn typed(bytes: &[u8]) -> Option<(Types, Vec<String>)> {
    let mut validator = Validator::new_with_features(WasmFeatures::all());
    let mut depth = 0_usize;
    let mut names = Vec::new();
    let mut types = None;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.ok()?;
        match &payload {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth = depth.checked_sub(1)?,
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section.clone() {
                    names.push(export.ok()?.name.name.to_owned());
                }
            }
            _ => {}
        }
        if let ValidPayload::End(ended) = validator.payload(&payload).ok()? {
            types = Some(ended);
        }
    }
    Some((types?, names))
}

/// The streams and futures in the results of a component's functions, each type once at least.
fn returned(types: TypesRef<'_>, exports: &[String]) -> Vec<ComponentDefinedTypeId> {
    let mut found = Found { types, seen: HashSet::new(), wanted: Vec::new() };
    for name in exports.iter().filter(|name| !is_of_runtime(name)) {
        match types.component_item_for_export(name).map(|item| item.ty) {
            Some(ComponentEntityType::Instance(instance)) => {
                for item in types.get(instance).into_iter().flat_map(|instance| instance.exports.values()) {
                    found.item(item.ty);
                }
            }
            Some(item) => found.item(item),
            None => {}
        }
    }
    found.wanted
}

struct Found<'t> {
    types: TypesRef<'t>,
    seen: HashSet<ComponentDefinedTypeId>,
    wanted: Vec<ComponentDefinedTypeId>,
}

impl Found<'_> {
    fn item(&mut self, item: ComponentEntityType) {
        let ComponentEntityType::Func(function) = item else { return };
        let result = self.types.get(function).and_then(|function| types::defined(function.result));
        let mut ahead: Vec<_> = result.into_iter().collect();
        while let Some(id) = ahead.pop() {
            let Some(ty) = self.types.get(id).filter(|_| self.seen.insert(id)) else { continue };
            if matches!(ty, ComponentDefinedType::Stream { .. } | ComponentDefinedType::Future { .. }) {
                self.wanted.push(id);
            }
            ahead.extend(types::parts(ty));
        }
    }
}

/// The component of the readers for these types. `None` if none of them can be read.
fn component(types: TypesRef<'_>, wanted: &[ComponentDefinedTypeId]) -> Option<Vec<u8>> {
    let mut copies = Copies::new(types);
    let shared = Shared::add(copies.builder());
    let mut done = HashSet::new();
    for id in wanted {
        let (kind, payload) = match types.get(*id)? {
            ComponentDefinedType::Stream { ty, .. } => (Kind::Stream, *ty),
            ComponentDefinedType::Future { ty, .. } => (Kind::Future, *ty),
            _ => continue,
        };
        let item = match payload {
            Some(ty) => copies.value(ty, 0),
            None => Some(Written::NOTHING),
        };
        let Some((item, whole)) = item.zip(copies.value(wasmparser::component_types::ComponentValType::Type(*id), 0))
        else {
            continue;
        };
        let ComponentValType::Type(index) = whole.ty else { continue };
        let Some(count) = modules::items_at_once(item.layout.size) else { continue };
        if done.len() < READERS_MAX && done.insert(index) {
            // A list of nothings is as long as one of anything.
            let item = payload.map_or(ComponentValType::Primitive(PrimitiveValType::Bool), |_| item.ty);
            shared.add_reader(copies.builder(), &Wanted { kind, index, item, count, number: done.len() });
        }
    }
    (!done.is_empty()).then(|| copies.finish())
}

/// One type to read.
struct Wanted {
    kind: Kind,
    /// The type of the stream or future.
    index: u32,
    /// The type of an item of the list that is returned.
    item: ComponentValType,
    /// Items that are read at once.
    count: u32,
    number: usize,
}

/// What all readers use: indices in their component.
struct Shared {
    instance: u32,
    memory: u32,
    realloc: u32,
    new_set: u32,
    drop_set: u32,
    join: u32,
    get: u32,
    set: u32,
}

impl Shared {
    fn add(builder: &mut ComponentBuilder) -> Self {
        let module = builder.core_module(None, &modules::memory());
        let instance = builder.core_instantiate(None, module, std::iter::empty::<(&str, ModuleArg)>());
        Self {
            instance,
            memory: builder.core_alias_export(None, instance, "memory", ExportKind::Memory),
            realloc: builder.core_alias_export(None, instance, "realloc", ExportKind::Func),
            new_set: builder.waitable_set_new(),
            drop_set: builder.waitable_set_drop(),
            join: builder.waitable_join(),
            get: builder.context_get(ValType::I32, 0),
            set: builder.context_set(ValType::I32, 0),
        }
    }

    /// Adds `read-N`, which takes a stream and returns a piece of it, and the rest unless it has
    /// ended: `async func(from: stream<T>) -> tuple<list<T>, option<stream<T>>>`.
    fn add_reader(&self, builder: &mut ComponentBuilder, wanted: &Wanted) {
        let Wanted { kind, index, item, count, number } = *wanted;
        let from = ComponentValType::Type(index);
        let (list, ty) = builder.type_defined(None);
        ty.list(item);
        let (rest, ty) = builder.type_defined(None);
        ty.option(from);
        let (piece, ty) = builder.type_defined(None);
        ty.tuple([ComponentValType::Type(list), ComponentValType::Type(rest)]);
        let piece = ComponentValType::Type(piece);
        let (function, mut ty) = builder.type_function(None);
        ty.async_(true).params([("from", from)]).result(Some(piece));
        let memory = CanonicalOption::Memory(self.memory);
        let reads = [CanonicalOption::UTF8, memory, CanonicalOption::Realloc(self.realloc), CanonicalOption::Async];
        let (read, drop) = match kind {
            Kind::Stream => (builder.stream_read(index, reads), builder.stream_drop_readable(index)),
            Kind::Future => (builder.future_read(index, reads), builder.future_drop_readable(index)),
        };
        let returns = builder.task_return(Some(piece), [CanonicalOption::UTF8, memory]);
        let built_ins = builder.core_instantiate_exports(
            None,
            [
                ("read", ExportKind::Func, read),
                ("drop", ExportKind::Func, drop),
                ("return", ExportKind::Func, returns),
                ("new-set", ExportKind::Func, self.new_set),
                ("drop-set", ExportKind::Func, self.drop_set),
                ("join", ExportKind::Func, self.join),
                ("get", ExportKind::Func, self.get),
                ("set", ExportKind::Func, self.set),
            ],
        );
        let module = builder.core_module(None, &Reader { kind, count }.module());
        let with = [("memory", ModuleArg::Instance(self.instance)), ("built-ins", ModuleArg::Instance(built_ins))];
        let instance = builder.core_instantiate(None, module, with);
        let begin = builder.core_alias_export(None, instance, "begin", ExportKind::Func);
        let go_on = builder.core_alias_export(None, instance, "go-on", ExportKind::Func);
        let lifts = [CanonicalOption::UTF8, memory, CanonicalOption::Async, CanonicalOption::Callback(go_on)];
        let lifted = builder.lift_func(None, begin, function, lifts);
        builder.export(format!("read-{number}").as_str(), ComponentExportKind::Func, lifted, None);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A component with these types and a function of this type.
    fn component_of(types: &str, function: &str) -> Vec<u8> {
        let text = format!(
            r#"(component (core module $m (memory (export "memory") 1) (func (export "f") (result i32) unreachable)
                    (func (export "g") (param i32) (result i32) unreachable))
                (core instance $i (instantiate $m)) {types}
                (func $f {function}) (export "f" (func $f)))"#
        );
        wat::parse_str(text).unwrap()
    }

    /// A component whose function returns this type.
    fn returning(types: &str, ty: &str) -> Vec<u8> {
        component_of(
            types,
            &format!("(result {ty}) (canon lift (core func $i \"f\") (memory (core memory $i \"memory\")))"),
        )
    }

    fn readers(bytes: &[u8]) -> Option<usize> {
        let whole = added(bytes)?;
        let (types, _) = typed(&whole).unwrap();
        Validator::new_with_features(WasmFeatures::all()).validate_all(&whole).unwrap();
        let types = types.as_ref();
        match types.component_item_for_export(READERS).unwrap().ty {
            ComponentEntityType::Instance(instance) => {
                let exports = types[instance].exports.values();
                Some(exports.filter(|item| matches!(item.ty, ComponentEntityType::Func(_))).count())
            }
            _ => None,
        }
    }

    #[test]
    fn each_type_of_stream_in_a_result_gets_a_reader() {
        for (types, ty, count) in [
            ("", "u32", None),
            ("", "(stream u8)", Some(1)),
            ("", "(future string)", Some(1)),
            ("", "(stream)", Some(1)),
            ("", "(tuple (stream) (future) (stream u8) (stream u8))", Some(3)),
            ("(type $a (future char)) (type $b (stream $a))", "(stream $b)", Some(3)),
            (
                "(type $own (record (field \"a\" u8) (field \"b\" (stream (option f64))))) (export $r \"r\" (type $own))",
                "(stream $r)",
                Some(2),
            ),
            (
                "(type $own (enum \"a\" \"b\")) (export $e \"e\" (type $own))",
                "(tuple (stream u8) (future (result (error $e))))",
                Some(2),
            ),
            (
                "(type $own (variant (case \"a\") (case \"b\" (list string)))) (export $v \"v\" (type $own))",
                "(stream $v)",
                Some(1),
            ),
            ("(type $own (flags \"a\" \"b\" \"c\")) (export $g \"g\" (type $own))", "(future $g)", Some(1)),
            ("(type $own (resource (rep i32))) (export $h \"h\" (type $own))", "(stream (own $h))", None),
        ] {
            assert_eq!(readers(&returning(types, ty)), count, "{types} {ty}");
        }
        let parameter = component_of("", "(param \"s\" (stream u8)) (result u32) (canon lift (core func $i \"g\"))");
        assert_eq!(readers(&parameter), None, "nothing reads arguments");
        let whole = added(&returning("", "(stream u8)")).unwrap();
        assert_eq!(added(&whole[..whole.len() - 1]), None, "what is not valid is the engine's to refuse");
    }

    #[test]
    fn values_lie_in_memory_as_the_canonical_abi_says() {
        for (types, ty, size) in [
            ("", "u8", 1),
            ("", "(option char)", 8),
            ("", "string", 8),
            ("", "(tuple u8 u64 u8)", 24),
            ("", "(option u8)", 2),
            ("", "(option u64)", 16),
            ("", "(result u8 (error string))", 12),
            ("", "(result)", 1),
            ("", "(tuple (stream u8) u8)", 8),
            ("(type $own (enum \"a\")) (export $e \"e\" (type $own))", "$e", 1),
            (
                "(type $own (flags \"a\" \"b\" \"c\" \"d\" \"e\" \"f\" \"g\" \"h\" \"i\")) (export $g \"g\" (type $own))",
                "$g",
                2,
            ),
            (
                "(type $own (variant (case \"a\" u16) (case \"b\" (tuple u8 u8 u8)))) (export $v \"v\" (type $own))",
                "$v",
                6,
            ),
        ] {
            let (parsed, exports) = typed(&returning(types, &format!("(stream {ty})"))).unwrap();
            let parsed = parsed.as_ref();
            let wanted = returned(parsed, &exports);
            let ComponentDefinedType::Stream { ty: Some(item), .. } = &parsed[wanted[0]] else { panic!("no stream") };
            assert_eq!(Copies::new(parsed).value(*item, 0).unwrap().layout.size, size, "{ty}");
        }
        assert_eq!(modules::items_at_once(4_096), Some(1));
        assert_eq!(modules::items_at_once(4_097), None);
    }
}
