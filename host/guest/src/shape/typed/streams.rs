//! Streams and futures in results, read to their end. All that are there are read at once: a guest
//! may fill one before it goes on with another.
use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use toolcell_policy::{Limit, Limits};
use toolcell_wall::failure::LimitReached;
use wasmtime::Store;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Accessor, Component, ComponentExportIndex, Func, Instance, Val};

use super::exports::READERS;
use super::ty::{Ty, TyId, Types};
use crate::wasi::state::CallState;

/// A value in which streams and futures may be.
pub(super) struct TypedValue<'v> {
    pub(super) ty: TyId,
    pub(super) value: &'v mut Val,
}

/// The functions that read a component's streams and futures, by the types of those.
#[derive(Default)]
pub(super) struct Readers(HashMap<TyId, ComponentExportIndex>);

impl Readers {
    /// Those that were added to this component.
    pub(super) fn of(component: &Component, types: &Types) -> Self {
        let mut found = HashMap::new();
        if let Some((ComponentItem::ComponentInstance(instance), index)) = component.get_export(None, READERS) {
            for (name, export) in instance.exports(component.engine()) {
                let ComponentItem::ComponentFunc(function) = export.ty else { continue };
                let ty = function.params().next().and_then(|(_, ty)| types.find(&ty));
                if let Some((ty, index)) = ty.zip(component.get_export_index(Some(&index), name)) {
                    found.insert(ty, index);
                }
            }
        }
        Self(found)
    }

    /// True if every stream and future in these types can be read.
    pub(super) fn cover(&self, types: &Types, roots: impl IntoIterator<Item = TyId>) -> bool {
        let mut seen = HashSet::new();
        let mut ahead: Vec<TyId> = roots.into_iter().filter(|root| types.has_streams(*root)).collect();
        while let Some(ty) = ahead.pop() {
            if matches!(types.get(ty), Ty::Stream(_) | Ty::Future(_)) && !self.0.contains_key(&ty) {
                return false;
            }
            let parts = types.parts(ty).into_iter().filter(|part| types.has_streams(*part));
            ahead.extend(parts.filter(|part| seen.insert(*part)));
        }
        true
    }

    /// Replaces each stream in a value by its items, and each future by its value.
    ///
    /// # Errors
    /// An error of the engine, or a limit: what they hold is more than the call's output.
    pub(super) async fn read_all(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        mut reading: Reading<'_>,
        TypedValue { ty, value }: TypedValue<'_>,
    ) -> wasmtime::Result<()> {
        reading.find(ty, value)?;
        if reading.waiting.is_empty() {
            return Ok(());
        }
        let function =
            |(ty, index): (&TyId, &ComponentExportIndex)| Some((*ty, instance.get_func(&mut *store, index)?));
        let functions: HashMap<TyId, Func> = self.0.iter().filter_map(function).collect();
        store.run_concurrent(async |accessor| reading.run(accessor, &functions).await).await??;
        reading.place(ty, value)
    }
}

/// The items of one stream or future, as far as they are there.
enum Items {
    Bytes(Vec<u8>),
    Values(Vec<Val>),
}

/// A stream or future that is not at its end.
struct Unread {
    number: u32,
    ty: TyId,
    from: Val,
}

/// A piece of one: its items, and the rest.
struct Piece {
    number: u32,
    ty: TyId,
    value: Val,
}

/// The streams and futures of one result. Its value has a number in the place of each.
pub(super) struct Reading<'a> {
    types: &'a Types,
    read: Vec<Items>,
    waiting: Vec<Unread>,
    /// Bytes of the answer that are left. Each value takes one at least.
    output_left: u64,
    /// Bytes of the host's memory that are left.
    host_left: u64,
}

impl<'a> Reading<'a> {
    pub(super) fn new(types: &'a Types, limits: &Limits) -> Self {
        Self {
            types,
            read: Vec::new(),
            waiting: Vec::new(),
            output_left: limits.output_bytes(),
            host_left: limits.host_data_bytes(),
        }
    }

    async fn run(&mut self, accessor: &Accessor<CallState>, functions: &HashMap<TyId, Func>) -> wasmtime::Result<()> {
        // Of many that wait, it polls only those that something came for.
        let mut coming = FuturesUnordered::new();
        loop {
            for unread in std::mem::take(&mut self.waiting) {
                let Some(function) = functions.get(&unread.ty) else { return Err(mismatched()) };
                accessor.with(|mut store| {
                    store.get().called();
                });
                coming.push(piece(accessor, *function, unread));
            }
            let Some(read) = coming.next().await else { return Ok(()) };
            let Piece { number, ty, value } = read?;
            self.take(number, ty, value)?;
        }
    }

    /// Adds a piece to what was read.
    fn take(&mut self, number: u32, ty: TyId, piece: Val) -> wasmtime::Result<()> {
        let Val::Tuple(parts) = piece else { return Err(mismatched()) };
        let Ok([Val::List(items), Val::Option(rest)]) = <[Val; 2]>::try_from(parts) else { return Err(mismatched()) };
        let item_ty = match self.types.get(ty) {
            Ty::Stream(item) | Ty::Future(item) => *item,
            _ => return Err(mismatched()),
        };
        for mut item in items {
            self.charge(&item)?;
            if let Some(item_ty) = item_ty {
                self.find(item_ty, &mut item)?;
            }
            match (self.read.get_mut(number as usize), item) {
                (Some(Items::Bytes(bytes)), Val::U8(byte)) => {
                    bytes.push(byte);
                    self.host_left = self.host_left.saturating_add(size_of::<Val>() as u64 - 1);
                }
                (Some(Items::Values(values)), item) => values.push(item),
                _ => return Err(mismatched()),
            }
        }
        if let Some(from) = rest {
            self.waiting.push(Unread { number, ty, from: *from });
        }
        Ok(())
    }

    /// Counts a value with all its parts.
    fn charge(&mut self, value: &Val) -> wasmtime::Result<()> {
        let mut ahead = vec![value];
        while let Some(value) = ahead.pop() {
            let mut named = 0;
            let mut text = 1;
            match value {
                Val::String(string) => text = string.len().max(1),
                Val::List(values) | Val::Tuple(values) | Val::FixedLengthList(values) => ahead.extend(values),
                Val::Record(fields) => {
                    named = fields.iter().map(|(name, _)| size_of::<String>() + name.len()).sum();
                    ahead.extend(fields.iter().map(|(_, value)| value));
                }
                Val::Variant(name, payload) => {
                    named = name.len();
                    ahead.extend(payload.as_deref());
                }
                Val::Enum(name) => named = name.len(),
                Val::Flags(names) => named = names.iter().map(|name| size_of::<String>() + name.len()).sum(),
                Val::Option(payload) | Val::Result(Ok(payload) | Err(payload)) => ahead.extend(payload.as_deref()),
                _ => {}
            }
            let bytes = size_of::<Val>().saturating_add(named).saturating_add(text);
            self.output_left = take_off(self.output_left, text, Limit::Output)?;
            self.host_left = take_off(self.host_left, bytes, Limit::HostData)?;
        }
        Ok(())
    }

    /// Notes the streams and futures in a value, which gets a number for each.
    fn find(&mut self, ty: TyId, value: &mut Val) -> wasmtime::Result<()> {
        let types = self.types;
        each(types, ty, value, &mut |ty, value| {
            let number = u32::try_from(self.read.len())?;
            let is_bytes = types.is_bytes(ty);
            self.read.push(if is_bytes { Items::Bytes(Vec::new()) } else { Items::Values(Vec::new()) });
            let from = std::mem::replace(value, Val::U32(number));
            self.waiting.push(Unread { number, ty, from });
            Ok(())
        })
    }

    /// Puts what was read in the place of the numbers: an array of a stream's items, bytes as text,
    /// and the one value of a future.
    fn place(&mut self, ty: TyId, value: &mut Val) -> wasmtime::Result<()> {
        let types = self.types;
        each(types, ty, value, &mut |ty, value| {
            let Val::U32(number) = value else { return Err(mismatched()) };
            let items = self.read.get_mut(*number as usize).ok_or_else(mismatched)?;
            *value = match std::mem::replace(items, Items::Bytes(Vec::new())) {
                Items::Bytes(bytes) => Val::String(base64::engine::general_purpose::STANDARD.encode(bytes)),
                Items::Values(items) => Val::List(items),
            };
            let (Ty::Stream(Some(item)) | Ty::Future(Some(item))) = types.get(ty) else { return Ok(()) };
            let Val::List(items) = value else { return Ok(()) };
            items.iter_mut().try_for_each(|value| self.place(*item, value))
        })
    }
}

/// Visits the streams and futures of a value. Those within their items are not there yet.
fn each(
    types: &Types,
    ty: TyId,
    value: &mut Val,
    visit: &mut dyn FnMut(TyId, &mut Val) -> wasmtime::Result<()>,
) -> wasmtime::Result<()> {
    if !types.has_streams(ty) {
        return Ok(());
    }
    match (types.get(ty), value) {
        (Ty::Stream(_) | Ty::Future(_), value) => visit(ty, value),
        (Ty::List(item), Val::List(values)) | (Ty::FixedList(item, _), Val::FixedLengthList(values)) => {
            values.iter_mut().try_for_each(|value| each(types, *item, value, visit))
        }
        (Ty::Tuple(items), Val::Tuple(values)) => {
            items.iter().zip(values).try_for_each(|(item, value)| each(types, *item, value, visit))
        }
        (Ty::Record(fields), Val::Record(values)) => {
            fields.iter().zip(values).try_for_each(|(field, (_, value))| each(types, field.ty, value, visit))
        }
        (Ty::Variant(cases), Val::Variant(name, Some(payload))) => {
            let case = cases.iter().find(|case| case.name == *name).and_then(|case| case.payload);
            case.map_or(Ok(()), |case| each(types, case, payload, visit))
        }
        (Ty::Option(item), Val::Option(Some(payload)))
        | (Ty::Result(Some(item), _), Val::Result(Ok(Some(payload))))
        | (Ty::Result(_, Some(item)), Val::Result(Err(Some(payload)))) => each(types, *item, payload, visit),
        _ => Ok(()),
    }
}

/// Reads one piece.
async fn piece(accessor: &Accessor<CallState>, function: Func, unread: Unread) -> wasmtime::Result<Piece> {
    let Unread { number, ty, from } = unread;
    let mut results = [Val::Bool(false)];
    function.call_concurrent(accessor, &[from], &mut results).await?;
    let [value] = results;
    Ok(Piece { number, ty, value })
}

fn take_off(left: u64, bytes: usize, limit: Limit) -> wasmtime::Result<u64> {
    left.checked_sub(bytes as u64).ok_or_else(|| wasmtime::Error::new(LimitReached(limit)))
}

fn mismatched() -> wasmtime::Error {
    wasmtime::Error::msg("the reader of a stream returned something else than a piece of it")
}
