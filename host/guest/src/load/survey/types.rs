//! Types of the component model, read one declaration at a time. The engine's parser recurses into
//! each nested one; this reader stops at the allowed depth.
use toolcell_wall::load::facts::GuestEngine;
use wasmparser::{
    BinaryReader, ComponentAlias, ComponentDefinedType, ComponentExternName, ComponentImport, ComponentType,
    ComponentTypeRef, CoreType,
};

use super::evaluation::Step;
use super::item::{Item, Kind, Size};
use super::ledger::{LoadBound, Refusal, missing};
use super::scope::Scopes;

type Result<T> = std::result::Result<T, Refusal>;

/// The first byte of a component's type.
const COMPONENT: u8 = 0x41;
/// The first byte of an instance's type.
const INSTANCE: u8 = 0x42;

/// Reads a section of types.
pub(crate) fn section<'a>(mut reader: BinaryReader<'a>, scopes: &mut Scopes<'a, '_>) -> Result<()> {
    for _ in 0..reader.read_var_u32()? {
        let item = one(&mut reader, scopes)?;
        scopes.step(Step::Push(Kind::Type, item))?;
    }
    Ok(())
}

/// Reads one type.
fn one<'a>(reader: &mut BinaryReader<'a>, scopes: &mut Scopes<'a, '_>) -> Result<Item<'a>> {
    scopes.ledger.offset = reader.original_position();
    let mut ahead = reader.clone();
    let first = ahead.read_u8()?;
    if first != COMPONENT && first != INSTANCE {
        let ty: ComponentType<'a> = reader.read()?;
        if is_async(&ty) {
            scopes.ledger.engine = GuestEngine::Async;
        }
        let size = size(&ty, scopes)?.checked(scopes.ledger)?;
        return Ok(Item::Plain(size));
    }
    *reader = ahead;
    scopes.begin_type()?;
    for _ in 0..reader.read_var_u32()? {
        declaration(reader, first == COMPONENT, scopes)?;
    }
    scopes.end_type(first == COMPONENT)
}

/// Reads one declaration in a type of a component or of an instance.
fn declaration<'a>(reader: &mut BinaryReader<'a>, in_component: bool, scopes: &mut Scopes<'a, '_>) -> Result<()> {
    scopes.ledger.offset = reader.original_position();
    match reader.read_u8()? {
        0x00 => core(&reader.read()?, scopes),
        0x01 => {
            let item = one(reader, scopes)?;
            scopes.step(Step::Push(Kind::Type, item))
        }
        0x02 => {
            let alias: ComponentAlias<'a> = reader.read()?;
            scopes.alias(&alias)
        }
        0x03 if in_component => {
            let import: ComponentImport<'a> = reader.read()?;
            scopes.import_of_type(import.ty)
        }
        0x04 => {
            let name: ComponentExternName<'a> = reader.read()?;
            let ty: ComponentTypeRef = reader.read()?;
            scopes.export_of_type(name.name, ty)
        }
        other => Err(missing(&format!("{other:#x} begins no declaration of a type"), scopes.ledger.offset)),
    }
}

/// Counts a type of core modules.
pub(crate) fn core(ty: &CoreType<'_>, scopes: &mut Scopes<'_, '_>) -> Result<()> {
    let count = match ty {
        CoreType::Rec(group) => group.types().len(),
        CoreType::Module(declarations) => declarations.len(),
    };
    Ok(scopes.ledger.add(LoadBound::CoreTypes, count.max(1) as u64)?)
}

/// True for types of the component model's async part.
fn is_async(ty: &ComponentType<'_>) -> bool {
    match ty {
        ComponentType::Func(function) => function.async_,
        ComponentType::Defined(ty) => {
            matches!(ty, ComponentDefinedType::Future(_) | ComponentDefinedType::Stream(_))
        }
        _ => false,
    }
}

fn size(ty: &ComponentType<'_>, scopes: &Scopes<'_, '_>) -> Result<Size> {
    let function = match ty {
        ComponentType::Defined(ty) => return defined(ty, scopes),
        ComponentType::Func(function) => function,
        ComponentType::Resource { .. } | ComponentType::Component(_) | ComponentType::Instance(_) => {
            return Ok(Size::ONE);
        }
    };
    let params = function.params.iter().map(|(_, ty)| *ty);
    holding(params.chain(function.result), scopes)
}

fn defined(ty: &ComponentDefinedType<'_>, scopes: &Scopes<'_, '_>) -> Result<Size> {
    use ComponentDefinedType::{
        Borrow, Enum, FixedLengthList, Flags, Future, List, Map, Option, Own, Primitive, Record, Result, Stream, Tuple,
        Variant,
    };
    match ty {
        Primitive(_) | Own(_) | Borrow(_) => Ok(Size::ONE),
        Record(fields) => holding(fields.iter().map(|(_, ty)| *ty), scopes),
        Variant(cases) => {
            let size = holding(cases.iter().filter_map(|case| case.ty), scopes)?;
            Ok(Size { parts: size.parts.saturating_add(cases.len() as u64), ..size })
        }
        List(ty) | FixedLengthList(ty, _) | Option(ty) => holding([*ty], scopes),
        Map(key, value) => holding([*key, *value], scopes),
        Tuple(types) => holding(types.iter().copied(), scopes),
        Flags(names) | Enum(names) => Ok(Size { parts: 1 + names.len() as u64, depth: 1 }),
        Result { ok, err } => holding(ok.iter().chain(err).copied(), scopes),
        Future(ty) | Stream(ty) => holding(*ty, scopes),
    }
}

fn holding(types: impl IntoIterator<Item = wasmparser::ComponentValType>, scopes: &Scopes<'_, '_>) -> Result<Size> {
    types.into_iter().try_fold(Size::ONE, |size, ty| Ok(size.holding(scopes.value(ty)?)))
}
