//! A function of the host that is called and recorded.
use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;

use serde_json::{Value, json};
use toolcell_wall::tape::{self, CUT, DROP, OWN_FILE, TAPE_BYTES_MAX, TAPE_ENTRIES_MAX, TAPE_VALUES_MAX, TapeEntry};
use wasmtime::component::{
    Func, Instance, ResourceAny, ResourceDynamic, ResourceType, Type, Val, types::ComponentFunc,
};
use wasmtime::{AsContextMut as _, StoreContextMut};

use super::linking::{HANDLE_TYPES_MAX, HandleTypes, LinkedFunction};
use super::{entry, values};
use crate::engine::errors::one_line;
use crate::engine::fuel::HostFuel;
use crate::wasi::state::CallState;

/// Fuel that one function of the relay uses at most, without values: some hundred instructions.
const RELAY_FUEL: u64 = 2_000;

/// Fuel that it uses for each value at most: it drops a handle, or makes room for a list.
const RELAY_VALUE_FUEL: u64 = 100;

/// A recording that is being made.
pub(crate) struct Recorder {
    relay: Option<Instance>,
    /// What the guest's handles stand for, by their numbers.
    handles: HashMap<u32, ResourceAny>,
    /// Handles that the guest has got.
    given: u32,
    tape: TapeWriter,
}

/// The end of a tape that is written.
struct TapeWriter {
    file: File,
    bytes: u64,
    entries: usize,
    values: usize,
    /// True once an entry did not fit. Nothing follows it.
    is_full: bool,
}

impl TapeWriter {
    /// Writes an entry. Returns the number of its values.
    fn write(&mut self, entry: &TapeEntry) -> usize {
        let line = tape::line(entry);
        let values = tape::count_values(&line);
        self.bytes = self.bytes.saturating_add(line.len() as u64);
        self.entries += 1;
        self.values = self.values.saturating_add(values);
        if self.is_full {
            return values;
        }
        let cut = tape::line(&TapeEntry { function: CUT.to_owned(), ..TapeEntry::default() });
        let bytes_max = TAPE_BYTES_MAX.saturating_sub(cut.len() as u64);
        self.is_full = self.bytes > bytes_max || self.entries >= TAPE_ENTRIES_MAX || self.values >= TAPE_VALUES_MAX;
        // One write for each line: what a process that is killed leaves is whole lines.
        let line = if self.is_full { cut } else { line };
        self.is_full |= self.file.write_all(&line).is_err();
        values
    }
}

impl Recorder {
    /// A recording into this file.
    pub(crate) fn new(file: File) -> Self {
        let tape = TapeWriter { file, bytes: 0, entries: 0, values: 0, is_full: false };
        Self { relay: None, handles: HashMap::new(), given: 0, tape }
    }

    /// From now on, functions go through this instance.
    pub(crate) fn begin(&mut self, relay: Instance) {
        self.relay = Some(relay);
    }

    /// Notes that the call is not recorded after all, so that nobody replays it.
    pub(crate) fn cut(&mut self) {
        self.tape.bytes = TAPE_BYTES_MAX;
        self.tape.write(&entry(CUT, Vec::new()));
    }

    /// Keeps a file of the call's own folder, which is its answer.
    pub(crate) fn own_file(&mut self, path: &str, read: &Result<Vec<u8>, String>) {
        let mut entry = entry(OWN_FILE, vec![json!(path)]);
        let bytes = |bytes: &Vec<u8>| Val::List(bytes.iter().copied().map(Val::U8).collect());
        let shown = read.as_ref().map_or_else(
            |why| Ok(json!({ "err": why })),
            |read| values::to_json(&bytes(read), &mut [].iter()).map(|bytes| json!({ "ok": bytes })),
        );
        entry.results = shown.into_iter().collect();
        self.tape.write(&entry);
    }
}

fn recorder<'s>(store: &'s mut StoreContextMut<'_, CallState>) -> wasmtime::Result<&'s mut Recorder> {
    let recorder = store.data_mut().tape().and_then(super::CallTape::recorder);
    recorder.ok_or_else(|| wasmtime::Error::msg("a call is recorded without a tape"))
}

/// A function of the host that is being called.
struct PassingCall {
    entry: TapeEntry,
    /// The relay's function.
    relayed: Func,
    /// The arguments, with what the guest's handles stand for.
    arguments: Vec<Val>,
    /// The guest's fuel, and that of host functions.
    fuel: u64,
    host_fuel: HostFuel,
}

/// Calls a function of the host for a guest, and records it.
pub(super) async fn pass(
    mut store: StoreContextMut<'_, CallState>,
    function: &LinkedFunction,
    ty: &ComponentFunc,
    arguments: &[Val],
    results: &mut [Val],
) -> wasmtime::Result<()> {
    let call = PassingCall::begin(&mut store, function, ty, arguments)?;
    let outcome = call.relayed.call_async(store.as_context_mut(), &call.arguments, results).await;
    call.end(&mut store, ty, outcome, results)
}

impl PassingCall {
    fn begin(
        store: &mut StoreContextMut<'_, CallState>,
        function: &LinkedFunction,
        ty: &ComponentFunc,
        arguments: &[Val],
    ) -> wasmtime::Result<Self> {
        let mut numbers = Vec::new();
        let mut inner = Vec::with_capacity(arguments.len());
        for (value, (_, ty)) in arguments.iter().zip(ty.params()) {
            inner.push(from_guest(store, value, &ty, &mut numbers)?);
        }
        let entry = entry(&function.name, json_of(arguments, &numbers)?);
        let relay = recorder(store)?.relay.zip(function.relayed);
        let relayed = relay.and_then(|(relay, function)| relay.get_func(store.as_context_mut(), function));
        let relayed = relayed.ok_or_else(|| wasmtime::Error::msg("the relay lacks a function"))?;
        Ok(Self { entry, relayed, arguments: inner, fuel: store.get_fuel()?, host_fuel: store.data().fuel })
    }

    fn end(
        self,
        store: &mut StoreContextMut<'_, CallState>,
        ty: &ComponentFunc,
        outcome: wasmtime::Result<()>,
        results: &mut [Val],
    ) -> wasmtime::Result<()> {
        let Self { mut entry, fuel, host_fuel, .. } = self;
        count(&mut entry, host_fuel, store.data().fuel);
        if let Err(error) = outcome {
            entry.ended = Some(one_line(&error));
            let values = recorder(store)?.tape.write(&entry);
            give_back(store, fuel, values)?;
            return Err(error);
        }
        let mut numbers = Vec::new();
        for (value, ty) in results.iter_mut().zip(ty.results()) {
            if values::has_handles(&ty) {
                *value = to_guest(store, value, &ty, &mut numbers)?;
            }
        }
        entry.results = json_of(results, &numbers)?;
        let values = recorder(store)?.tape.write(&entry);
        give_back(store, fuel, values)
    }
}

/// Gives the fuel back that the relay used for this number of values. Tasks of the guest may have
/// run meanwhile, so no more is given back than the relay can have used.
fn give_back(store: &mut StoreContextMut<'_, CallState>, before: u64, values: usize) -> wasmtime::Result<()> {
    let left = store.get_fuel()?;
    let most = RELAY_FUEL.saturating_add(RELAY_VALUE_FUEL.saturating_mul(values as u64));
    store.set_fuel(left.saturating_add(before.saturating_sub(left).min(most)))
}

/// Drops what a guest's handle stands for, and records it.
pub(super) async fn dropped(mut store: StoreContextMut<'_, CallState>, number: u32) -> wasmtime::Result<()> {
    let Some(inner) = recorder(&mut store)?.handles.remove(&number) else { return Ok(()) };
    let mut entry = entry(DROP, vec![json!(number)]);
    let before = store.data().fuel;
    let fuel = store.get_fuel()?;
    let outcome = inner.resource_drop_async(store.as_context_mut()).await;
    count(&mut entry, before, store.data().fuel);
    entry.ended = outcome.as_ref().err().map(one_line);
    let values = recorder(&mut store)?.tape.write(&entry);
    give_back(&mut store, fuel, values)?;
    outcome
}

fn count(entry: &mut TapeEntry, before: HostFuel, after: HostFuel) {
    entry.counted = after.calls().saturating_sub(before.calls());
    entry.fuel = after.work().saturating_sub(before.work());
}

/// A guest's value with what its handles stand for. Their numbers are added.
fn from_guest(
    store: &mut StoreContextMut<'_, CallState>,
    value: &Val,
    ty: &Type,
    numbers: &mut Vec<u32>,
) -> wasmtime::Result<Val> {
    if !values::has_handles(ty) {
        return Ok(value.clone());
    }
    values::exchanged(value, ty, &mut |handle: ResourceAny, _: &ResourceType| {
        let handle = ResourceDynamic::try_from_resource_any(handle, store.as_context_mut())?;
        let number = handle.rep();
        numbers.push(number);
        let handles = &mut recorder(store)?.handles;
        // A handle that is given away stands for nothing from now on.
        let inner = if handle.owned() { handles.remove(&number) } else { handles.get(&number).copied() };
        inner.ok_or_else(|| wasmtime::Error::msg("a handle stands for nothing"))
    })
}

/// A value of the host with handles for the guest. Their numbers are added.
fn to_guest(
    store: &mut StoreContextMut<'_, CallState>,
    value: &Val,
    ty: &Type,
    numbers: &mut Vec<u32>,
) -> wasmtime::Result<Val> {
    values::exchanged(value, ty, &mut |inner: ResourceAny, ty: &ResourceType| {
        let recorder = recorder(store)?;
        recorder.given = recorder.given.saturating_add(1);
        let number = recorder.given;
        recorder.handles.insert(number, inner);
        numbers.push(number);
        guest_handle(store, number, ty)
    })
}

/// The guest's handle of this number.
pub(super) fn guest_handle(
    store: &mut StoreContextMut<'_, CallState>,
    number: u32,
    ty: &ResourceType,
) -> wasmtime::Result<ResourceAny> {
    let ty = HandleTypes::of_linked(ty, HANDLE_TYPES_MAX);
    let ty = ty.ok_or_else(|| wasmtime::Error::msg("a handle of a type that is not imported"))?;
    ResourceDynamic::new_own(number, ty).try_into_resource_any(store.as_context_mut())
}

/// Values as JSON, whose handles have these numbers.
pub(super) fn json_of(values: &[Val], numbers: &[u32]) -> wasmtime::Result<Vec<Value>> {
    let mut numbers = numbers.iter();
    values.iter().map(|value| values::to_json(value, &mut numbers)).collect()
}
