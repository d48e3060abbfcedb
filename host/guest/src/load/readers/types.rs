//! Types of a component, written again in another one. To the engine, types of the same structure
//! are the same.
use std::collections::HashMap;

use wasm_encoder::{
    ComponentBuilder, ComponentDefinedTypeEncoder, ComponentExportKind, ComponentValType, PrimitiveValType,
};
use wasmparser::component_types::{self as parsed, ComponentDefinedType, ComponentDefinedTypeId};
use wasmparser::types::TypesRef;

/// Types that are written: more than a function that is a tool may have.
const TYPES_MAX: usize = 4_096;

/// Levels to which they nest: more than those of a tool's function may.
const DEPTH_MAX: usize = 64;

/// A value's place in memory, by the canonical ABI.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// Bytes.
    pub(super) size: u64,
    align: u64,
}

impl Layout {
    const fn of(bytes: u64) -> Self {
        Self { size: bytes, align: bytes }
    }

    /// A pointer and a length.
    const POINTER: Self = Self { size: 8, align: 4 };

    const fn aligned(at: u64, align: u64) -> u64 {
        at.saturating_add(align - 1) / align * align
    }

    /// One after the other.
    fn fields(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut size = 0_u64;
        let mut align = 1;
        for part in parts {
            size = Self::aligned(size, part.align).saturating_add(part.size);
            align = align.max(part.align);
        }
        Self { size: Self::aligned(size, align), align }
    }

    /// One of several, after their number.
    fn cases(count: usize, payloads: impl IntoIterator<Item = Self>) -> Self {
        let number = Self::of(match count {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 4,
        });
        let mut payload = Self { size: 0, align: 1 };
        for part in payloads {
            payload = Self { size: payload.size.max(part.size), align: payload.align.max(part.align) };
        }
        Self::fields([number, Self { size: Self::aligned(payload.size, payload.align), ..payload }])
    }

    fn flags(count: usize) -> Self {
        match count {
            0..=8 => Self::of(1),
            9..=16 => Self::of(2),
            _ => Self { size: 4 * count.div_ceil(32) as u64, align: 4 },
        }
    }
}

/// A type that was written.
#[derive(Clone, Copy)]
pub(super) struct Written {
    pub(super) ty: ComponentValType,
    pub(super) layout: Layout,
}

impl Written {
    /// The item of a stream without a type. It takes no room; a byte stands for it.
    pub(super) const NOTHING: Self =
        Self { ty: ComponentValType::Primitive(PrimitiveValType::Bool), layout: Layout::of(1) };
}

/// The component that types are written into.
pub(super) struct Copies<'t> {
    types: TypesRef<'t>,
    builder: ComponentBuilder,
    /// `None` for a type that cannot be written.
    known: HashMap<ComponentDefinedTypeId, Option<Written>>,
    /// The types by their structure, so that each is written once.
    by_structure: HashMap<String, Written>,
}

impl<'t> Copies<'t> {
    pub(super) fn new(types: TypesRef<'t>) -> Self {
        Self { types, builder: ComponentBuilder::default(), known: HashMap::new(), by_structure: HashMap::new() }
    }

    pub(super) fn builder(&mut self) -> &mut ComponentBuilder {
        &mut self.builder
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.builder.finish()
    }

    /// Writes a type. `None` if it holds a resource, an error-context or a map, or is too large.
    pub(super) fn value(&mut self, ty: parsed::ComponentValType, depth: usize) -> Option<Written> {
        let id = match ty {
            parsed::ComponentValType::Primitive(ty) => return primitive(ty),
            parsed::ComponentValType::Type(id) => id,
        };
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        if depth > DEPTH_MAX || self.known.len() >= TYPES_MAX {
            return None;
        }
        let written = self.defined(id, depth + 1);
        self.known.insert(id, written);
        written
    }

    fn values<'a>(
        &mut self,
        parts: impl IntoIterator<Item = (&'a str, parsed::ComponentValType)>,
        depth: usize,
    ) -> Option<Vec<(&'a str, Written)>> {
        parts.into_iter().map(|(name, ty)| Some((name, self.value(ty, depth)?))).collect()
    }

    /// `Some(None)` for no type.
    fn optional(&mut self, ty: Option<parsed::ComponentValType>, depth: usize) -> Option<Option<Written>> {
        ty.map_or(Some(None), |ty| self.value(ty, depth).map(Some))
    }

    fn defined(&mut self, id: ComponentDefinedTypeId, depth: usize) -> Option<Written> {
        let types = self.types;
        match types.get(id)? {
            ComponentDefinedType::Primitive(ty) => primitive(*ty),
            ComponentDefinedType::Record(record) => {
                let fields = self.values(record.fields.iter().map(|(name, ty)| (name.as_str(), *ty)), depth)?;
                let layout = Layout::fields(fields.iter().map(|(_, part)| part.layout));
                let fields: Vec<_> = fields.iter().map(|(name, part)| (*name, part.ty)).collect();
                Some(self.write(&format!("record {fields:?}"), layout, true, |ty| ty.record(fields.iter().copied())))
            }
            ComponentDefinedType::Variant(variant) => {
                let cases =
                    variant.cases.iter().map(|(name, case)| Some((name.as_str(), self.optional(case.ty, depth)?)));
                let cases: Vec<(&str, Option<Written>)> = cases.collect::<Option<_>>()?;
                let layout = Layout::cases(cases.len(), cases.iter().filter_map(|(_, part)| Some((*part)?.layout)));
                let cases: Vec<_> = cases.iter().map(|(name, part)| (*name, part.map(|part| part.ty))).collect();
                Some(self.write(&format!("variant {cases:?}"), layout, true, |ty| ty.variant(cases.iter().copied())))
            }
            ComponentDefinedType::Enum(names) => {
                let layout = Layout::cases(names.len(), []);
                Some(self.write(&format!("enum {names:?}"), layout, true, |ty| {
                    ty.enum_type(names.iter().map(|name| name.as_str()));
                }))
            }
            ComponentDefinedType::Flags(names) => {
                let layout = Layout::flags(names.len());
                Some(self.write(&format!("flags {names:?}"), layout, true, |ty| {
                    ty.flags(names.iter().map(|name| name.as_str()));
                }))
            }
            other => self.unnamed(other, depth),
        }
    }

    /// Types that have no name in WIT.
    fn unnamed(&mut self, ty: &ComponentDefinedType, depth: usize) -> Option<Written> {
        Some(match ty {
            ComponentDefinedType::List { element, .. } => {
                let item = self.value(*element, depth)?.ty;
                self.write(&format!("list {item:?}"), Layout::POINTER, false, |ty| ty.list(item))
            }
            ComponentDefinedType::FixedLengthList { element, length, .. } => {
                let item = self.value(*element, depth)?;
                let size = item.layout.size.saturating_mul(u64::from(*length));
                let layout = Layout { size, ..item.layout };
                let key = format!("list of {length} {:?}", item.ty);
                self.write(&key, layout, false, |ty| ty.fixed_length_list(item.ty, *length))
            }
            ComponentDefinedType::Tuple(tuple) => {
                let parts = self.values(tuple.types.iter().map(|ty| ("", *ty)), depth)?;
                let layout = Layout::fields(parts.iter().map(|(_, part)| part.layout));
                let parts: Vec<_> = parts.iter().map(|(_, part)| part.ty).collect();
                self.write(&format!("tuple {parts:?}"), layout, false, |ty| ty.tuple(parts.iter().copied()))
            }
            ComponentDefinedType::Option { ty, .. } => {
                let item = self.value(*ty, depth)?;
                let layout = Layout::cases(2, [item.layout]);
                self.write(&format!("option {:?}", item.ty), layout, false, |ty| ty.option(item.ty))
            }
            ComponentDefinedType::Result { ok, err, .. } => {
                let ok = self.optional(*ok, depth)?;
                let err = self.optional(*err, depth)?;
                let layout = Layout::cases(2, ok.iter().chain(&err).map(|part| part.layout));
                let ok = ok.map(|part| part.ty);
                let err = err.map(|part| part.ty);
                self.write(&format!("result {ok:?} {err:?}"), layout, false, |ty| ty.result(ok, err))
            }
            ComponentDefinedType::Stream { ty, .. } => {
                let item = self.optional(*ty, depth)?.map(|part| part.ty);
                self.write(&format!("stream {item:?}"), Layout::of(4), false, |ty| ty.stream(item))
            }
            ComponentDefinedType::Future { ty, .. } => {
                let item = self.optional(*ty, depth)?.map(|part| part.ty);
                self.write(&format!("future {item:?}"), Layout::of(4), false, |ty| ty.future(item))
            }
            _ => return None,
        })
    }

    /// Adds a type, unless there is one of this structure. `is_named`: functions may only use it
    /// under a name.
    fn write(
        &mut self,
        structure: &str,
        layout: Layout,
        is_named: bool,
        write: impl FnOnce(ComponentDefinedTypeEncoder<'_>),
    ) -> Written {
        if let Some(known) = self.by_structure.get(structure) {
            return *known;
        }
        let (mut index, ty) = self.builder.type_defined(None);
        write(ty);
        if is_named {
            index = self.builder.export(format!("t{index}").as_str(), ComponentExportKind::Type, index, None);
        }
        let written = Written { ty: ComponentValType::Type(index), layout };
        self.by_structure.insert(structure.to_owned(), written);
        written
    }
}

fn primitive(ty: wasmparser::PrimitiveValType) -> Option<Written> {
    use wasmparser::PrimitiveValType as Parsed;
    let (ty, layout) = match ty {
        Parsed::Bool => (PrimitiveValType::Bool, Layout::of(1)),
        Parsed::S8 => (PrimitiveValType::S8, Layout::of(1)),
        Parsed::U8 => (PrimitiveValType::U8, Layout::of(1)),
        Parsed::S16 => (PrimitiveValType::S16, Layout::of(2)),
        Parsed::U16 => (PrimitiveValType::U16, Layout::of(2)),
        Parsed::S32 => (PrimitiveValType::S32, Layout::of(4)),
        Parsed::U32 => (PrimitiveValType::U32, Layout::of(4)),
        Parsed::S64 => (PrimitiveValType::S64, Layout::of(8)),
        Parsed::U64 => (PrimitiveValType::U64, Layout::of(8)),
        Parsed::F32 => (PrimitiveValType::F32, Layout::of(4)),
        Parsed::F64 => (PrimitiveValType::F64, Layout::of(8)),
        Parsed::Char => (PrimitiveValType::Char, Layout::of(4)),
        Parsed::String => (PrimitiveValType::String, Layout::POINTER),
        Parsed::ErrorContext => return None,
    };
    Some(Written { ty: ComponentValType::Primitive(ty), layout })
}

/// The defined type that a value may be of.
pub(super) fn defined(ty: Option<parsed::ComponentValType>) -> Option<ComponentDefinedTypeId> {
    match ty? {
        parsed::ComponentValType::Primitive(_) => None,
        parsed::ComponentValType::Type(id) => Some(id),
    }
}

/// The defined types that a type is made of, one level down.
pub(super) fn parts(ty: &ComponentDefinedType) -> Vec<ComponentDefinedTypeId> {
    let one = |ty: &parsed::ComponentValType| defined(Some(*ty));
    match ty {
        ComponentDefinedType::Record(record) => record.fields.values().filter_map(one).collect(),
        ComponentDefinedType::Variant(variant) => variant.cases.values().filter_map(|case| defined(case.ty)).collect(),
        ComponentDefinedType::Tuple(tuple) => tuple.types.iter().filter_map(one).collect(),
        ComponentDefinedType::List { element, .. } | ComponentDefinedType::FixedLengthList { element, .. } => {
            one(element).into_iter().collect()
        }
        ComponentDefinedType::Option { ty, .. } => one(ty).into_iter().collect(),
        ComponentDefinedType::Result { ok, err, .. } => ok.iter().chain(err).filter_map(one).collect(),
        ComponentDefinedType::Stream { ty, .. } | ComponentDefinedType::Future { ty, .. } => {
            defined(*ty).into_iter().collect()
        }
        _ => Vec::new(),
    }
}
