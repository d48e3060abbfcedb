//! A function of the host that is called and recorded.
use std::collections::HashMap;
use std::fs::File;
use std::future::{Future, poll_fn};
use std::os::unix::fs::FileExt as _;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
use toolcell_wall::tape::{self, CUT, DROP, OWN_FILE, TAPE_BYTES_MAX, TAPE_ENTRIES_MAX, TAPE_VALUES_MAX, WrittenEntry};
use wasmtime::AsContextMut as _;
use wasmtime::component::{
    Instance, InstancePre, ResourceAny, ResourceDynamic, ResourceType, Type, Val, types::ComponentFunc,
};

use super::direct::NotedFunction;
use super::linking::{GuestStore, LinkedFunction, handle_type};
use super::values::{self, Shown, ShownBytes};
use crate::engine::errors::one_line;
use crate::engine::fuel::HostFuel;
use crate::engine::limiter::MemoryLimiter;
use crate::wasi::state::CallState;

/// Fuel that one function of the relay uses at most, without values: some hundred instructions.
const RELAY_FUEL: u64 = 2_000;

/// Fuel that it uses for each value at most: it drops a handle, or makes room for a list.
const RELAY_VALUE_FUEL: u64 = 100;

/// Bytes of memories and tables that the relay begins with, at most: a page, and a table of its
/// functions. What it needs for long arguments is the guest's.
const RELAY_BYTES_MAX: u64 = 1 << 20;

/// Bytes of lines after which they are written: some five hundred functions.
const UNWRITTEN_BYTES_MAX: usize = 64 << 10;

/// Bytes that most lines have room in.
const LINE_BYTES: usize = 256;

/// A recording that is being made.
pub(crate) struct Recorder {
    relay: Relay,
    /// What the guest's handles stand for, by their numbers.
    handles: HashMap<u32, ResourceAny>,
    /// Handles that the guest has got.
    given: u32,
    tape: SharedTape,
}

/// The relay of a call. It is made for the first function that goes through it.
enum Relay {
    Linked(InstancePre<CallState>),
    Made(Instance),
}

/// The end of a tape, which is also reached while a function has the store.
#[derive(Clone)]
struct SharedTape(Arc<Mutex<TapeWriter>>);

impl SharedTape {
    fn writer(&self) -> MutexGuard<'_, TapeWriter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outcome of this work. What waits on the tape is written while the work waits.
    async fn flushed_in<W: Future>(self, work: W) -> W::Output {
        let mut work = pin!(work);
        poll_fn(|context| {
            let polled = work.as_mut().poll(context);
            if polled.is_pending() {
                self.writer().flush();
            }
            polled
        })
        .await
    }
}

/// The end of a tape that is written.
///
/// A write for each line would take as long as some functions. So lines wait until the guest waits,
/// has computed for a tick of the clock, or ends, and until they are many. A process that is killed
/// leaves whole lines, and lacks what it called since.
struct TapeWriter {
    file: Arc<File>,
    /// Bytes of it that are written.
    written: u64,
    /// Lines that are not written yet.
    unwritten: Vec<u8>,
    bytes: u64,
    entries: usize,
    values: usize,
    /// True once an entry did not fit. Nothing follows it.
    is_full: bool,
}

impl TapeWriter {
    fn new(file: Arc<File>) -> Self {
        Self { file, written: 0, unwritten: Vec::new(), bytes: 0, entries: 0, values: 0, is_full: false }
    }

    /// Adds an entry. Returns the number of its values.
    fn add<V: Serialize>(&mut self, entry: &WrittenEntry<'_, V>) -> wasmtime::Result<usize> {
        let begin = self.begin_line();
        entry.write(&mut self.unwritten)?;
        let values = tape::count_values(self.unwritten.get(begin..).unwrap_or_default());
        self.end_line(begin, values);
        Ok(values)
    }

    /// Adds the line of a function that gave this number or time, and used nothing.
    fn add_note<S: Serialize>(&mut self, head: &NoteHead, shown: &S) -> wasmtime::Result<()> {
        let begin = self.begin_line();
        self.unwritten.extend_from_slice(&head.begin);
        serde_json::to_writer(&mut self.unwritten, shown)?;
        self.unwritten.extend_from_slice(NOTE_END);
        self.end_line(begin, head.values);
        Ok(())
    }

    /// The place of the next line.
    fn begin_line(&mut self) -> usize {
        self.unwritten.reserve(LINE_BYTES);
        self.unwritten.len()
    }

    /// Counts the line that begins here and has this number of values.
    fn end_line(&mut self, begin: usize, values: usize) {
        let bytes = self.unwritten.len().saturating_sub(begin);
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.entries += 1;
        self.values = self.values.saturating_add(values);
        let bytes_max = TAPE_BYTES_MAX.saturating_sub(tape::cut_line().len() as u64);
        let fits = self.bytes <= bytes_max && self.entries < TAPE_ENTRIES_MAX && self.values < TAPE_VALUES_MAX;
        if self.is_full {
            self.forget();
        } else if !fits {
            self.unwritten.truncate(begin);
            self.cut();
        } else if self.unwritten.len() >= UNWRITTEN_BYTES_MAX {
            self.flush();
        }
    }

    /// Notes that the rest did not fit.
    fn cut(&mut self) {
        self.unwritten.extend(tape::cut_line());
        self.flush();
        self.is_full = true;
    }

    /// Writes what waits, in whole lines.
    fn flush(&mut self) {
        if !self.unwritten.is_empty() {
            self.is_full |= self.file.write_all_at(&self.unwritten, self.written).is_err();
            self.written = self.written.saturating_add(self.unwritten.len() as u64);
            self.forget();
        }
    }

    /// Forgets the lines that wait. One long line does not keep its memory.
    fn forget(&mut self) {
        self.unwritten.clear();
        self.unwritten.shrink_to(UNWRITTEN_BYTES_MAX);
    }
}

impl Drop for TapeWriter {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Recorder {
    /// A recording into this file. Functions go through an instance of this relay.
    pub(crate) fn new(file: Arc<File>, relay: InstancePre<CallState>) -> Self {
        Self {
            relay: Relay::Linked(relay),
            handles: HashMap::new(),
            given: 0,
            tape: SharedTape(Arc::new(Mutex::new(TapeWriter::new(file)))),
        }
    }

    /// Notes in this file that the call is not recorded after all, and why, so that nobody replays
    /// it.
    pub(crate) fn cut(file: &Arc<File>, why: &str) {
        let entry: WrittenEntry<'_, ()> =
            WrittenEntry { function: CUT, arguments: None, results: None, counted: 0, fuel: 0, ended: Some(why) };
        // A text has JSON. It is written when the writer is dropped.
        let _ = TapeWriter::new(Arc::clone(file)).add(&entry);
    }

    /// Writes what waits.
    pub(crate) fn flush(&self) {
        self.tape.writer().flush();
    }

    /// Writes what waits. Nothing follows it: the file is given to another call.
    pub(crate) fn end(&self) {
        let mut writer = self.tape.writer();
        writer.flush();
        writer.is_full = true;
    }

    /// Keeps a file of the call's own folder, which is its answer.
    pub(crate) fn own_file(&self, path: &str, read: &Result<Vec<u8>, String>) {
        let result = match read {
            Ok(bytes) => OwnFile::Ok(ShownBytes(bytes)),
            Err(why) => OwnFile::Err(why),
        };
        let entry = WrittenEntry {
            function: OWN_FILE,
            arguments: Some([OwnFile::Path(path)]),
            results: Some([result]),
            counted: 0,
            fuel: 0,
            ended: None,
        };
        // Bytes and texts have JSON.
        let _ = self.tape.writer().add(&entry);
    }
}

/// What is kept of a file of the call's own folder.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum OwnFile<'f> {
    Ok(ShownBytes<'f>),
    Err(&'f str),
    #[serde(untagged)]
    Path(&'f str),
}

fn recorder<'s>(store: &'s mut GuestStore<'_>) -> wasmtime::Result<&'s mut Recorder> {
    let recorder = store.data_mut().tape().and_then(super::CallTape::recorder);
    recorder.ok_or_else(|| wasmtime::Error::msg("a call is recorded without a tape"))
}

/// The relay of the call.
async fn relay(store: &mut GuestStore<'_>) -> wasmtime::Result<Instance> {
    let linked = match &recorder(store)?.relay {
        Relay::Made(relay) => return Ok(*relay),
        Relay::Linked(linked) => linked.clone(),
    };
    // What the relay computes and holds costs the guest nothing.
    let fuel = store.get_fuel()?;
    let limiter = std::mem::replace(&mut store.data_mut().limiter, MemoryLimiter::new(RELAY_BYTES_MAX));
    let made = linked.instantiate_async(store.as_context_mut()).await;
    store.data_mut().limiter = limiter;
    store.set_fuel(fuel)?;
    let made = made?;
    recorder(store)?.relay = Relay::Made(made);
    Ok(made)
}

/// Calls a function of the host for a guest, and records it.
pub(super) async fn pass(
    mut store: GuestStore<'_>,
    function: &LinkedFunction,
    ty: &ComponentFunc,
    arguments: &[Val],
    results: &mut [Val],
) -> wasmtime::Result<()> {
    let relay = relay(&mut store).await?;
    let relayed = function.relayed.and_then(|function| relay.get_func(store.as_context_mut(), function));
    let relayed = relayed.ok_or_else(|| wasmtime::Error::msg("the relay lacks a function"))?;
    let used = HostUse::begin(&store)?;
    // What the guest's handles stand for.
    let mut numbers = Vec::new();
    let typed = arguments.iter().zip(ty.params());
    let given = typed.map(|(value, (_, ty))| from_guest(&mut store, value, &ty, &mut numbers));
    let given = given.collect::<wasmtime::Result<Vec<Val>>>()?;
    let tape = recorder(&mut store)?.tape.clone();
    let outcome = tape.flushed_in(relayed.call_async(store.as_context_mut(), &given, results)).await;
    let arguments = Shown::unless_empty(arguments, &numbers);
    if let Err(error) = outcome {
        let ended = one_line(&error);
        let entry = WrittenEntry { arguments, ended: Some(&ended), ..used.entry(&store, &function.name) };
        let values = recorder(&mut store)?.tape.writer().add(&entry)?;
        used.give_back(&mut store, values)?;
        return Err(error);
    }
    let mut numbers = Vec::new();
    for (value, ty) in results.iter_mut().zip(ty.results()) {
        if values::has_handles(&ty) {
            *value = to_guest(&mut store, value, &ty, &mut numbers)?;
        }
    }
    let results = Shown::unless_empty(results, &numbers);
    let entry = WrittenEntry { arguments, results, ..used.entry(&store, &function.name) };
    let values = recorder(&mut store)?.tape.writer().add(&entry)?;
    used.give_back(&mut store, values)
}

/// What was used when a function of the host began.
struct HostUse {
    /// The guest's fuel.
    fuel: u64,
    host: HostFuel,
}

impl HostUse {
    fn begin(store: &GuestStore<'_>) -> wasmtime::Result<Self> {
        Ok(Self { fuel: store.get_fuel()?, host: store.data().fuel })
    }

    /// An entry with what was used since.
    fn entry<'e, V: Serialize>(&self, store: &GuestStore<'_>, function: &'e str) -> WrittenEntry<'e, V> {
        let after = store.data().fuel;
        WrittenEntry {
            function,
            arguments: None,
            results: None,
            counted: after.calls().saturating_sub(self.host.calls()),
            fuel: after.work().saturating_sub(self.host.work()),
            ended: None,
        }
    }

    /// Gives the fuel back that the relay used for this number of values. Tasks of the guest may
    /// have run meanwhile, so no more is given back than the relay can have used.
    fn give_back(&self, store: &mut GuestStore<'_>, values: usize) -> wasmtime::Result<()> {
        let left = store.get_fuel()?;
        let most = RELAY_FUEL.saturating_add(RELAY_VALUE_FUEL.saturating_mul(values as u64));
        store.set_fuel(left.saturating_add(self.fuel.saturating_sub(left).min(most)))
    }
}

/// The lines of a function that needs no relay.
pub(super) struct NoteHead {
    name: String,
    /// A line up to its result.
    begin: Vec<u8>,
    /// Values of a line.
    values: usize,
}

/// The end of such a line, where the function counted once and used no fuel.
const NOTE_END: &[u8] = b"],\"counted\":1}\n";

impl NoteHead {
    /// That of a function whose results have this number of values.
    pub(super) fn new(name: &str, values: usize) -> Self {
        let name_json = Value::from(name);
        let begin = format!("{{\"call\":{name_json},\"gave\":[").into_bytes();
        let values = values + tape::count_values(&begin) + tape::count_values(NOTE_END);
        Self { name: name.to_owned(), begin, values }
    }
}

/// Calls a function that needs no relay, and records it.
pub(super) fn note<R, S: Serialize>(
    store: &mut GuestStore<'_>,
    head: &NoteHead,
    function: &NotedFunction<R, S>,
) -> wasmtime::Result<R> {
    let before = HostUse::begin(store)?;
    let outcome = (function.call)(store.data_mut());
    let ended = outcome.as_ref().err().map(one_line);
    let shown = outcome.as_ref().ok().map(function.show);
    let entry = WrittenEntry { results: None, ended: ended.as_deref(), ..before.entry(store, &head.name) };
    let mut tape = recorder(store)?.tape.writer();
    match shown {
        Some(shown) if entry.counted == 1 && entry.fuel == 0 => tape.add_note(head, &shown)?,
        shown => drop(tape.add(&WrittenEntry { results: shown.map(|shown| [shown]), ..entry })?),
    }
    drop(tape);
    outcome
}

/// Drops what a guest's handle stands for, and records it.
pub(super) async fn dropped(mut store: GuestStore<'_>, number: u32) -> wasmtime::Result<()> {
    let Some(inner) = recorder(&mut store)?.handles.remove(&number) else { return Ok(()) };
    let used = HostUse::begin(&store)?;
    let tape = recorder(&mut store)?.tape.clone();
    let outcome = tape.flushed_in(inner.resource_drop_async(store.as_context_mut())).await;
    let ended = outcome.as_ref().err().map(one_line);
    let entry = WrittenEntry { arguments: Some([number]), ended: ended.as_deref(), ..used.entry(&store, DROP) };
    let values = recorder(&mut store)?.tape.writer().add(&entry)?;
    used.give_back(&mut store, values)?;
    outcome
}

/// A guest's value with what its handles stand for. Their numbers are added.
fn from_guest(store: &mut GuestStore<'_>, value: &Val, ty: &Type, numbers: &mut Vec<u32>) -> wasmtime::Result<Val> {
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
fn to_guest(store: &mut GuestStore<'_>, value: &Val, ty: &Type, numbers: &mut Vec<u32>) -> wasmtime::Result<Val> {
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
    store: &mut GuestStore<'_>,
    number: u32,
    ty: &ResourceType,
) -> wasmtime::Result<ResourceAny> {
    let ty = handle_type(ty).ok_or_else(|| wasmtime::Error::msg("a handle of a type that is not imported"))?;
    ResourceDynamic::new_own(number, ty).try_into_resource_any(store.as_context_mut())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const NOW: &str = "wasi:clocks/monotonic-clock#now";

    fn writer() -> TapeWriter {
        TapeWriter::new(Arc::new(tempfile::tempfile().unwrap()))
    }

    fn entry<V: Serialize>(result: V) -> WrittenEntry<'static, [V; 1]> {
        WrittenEntry { function: NOW, arguments: None, results: Some([result]), counted: 1, fuel: 0, ended: None }
    }

    #[test]
    fn a_note_is_the_line_of_its_entry() {
        let mut noted = writer();
        noted.add_note(&NoteHead::new(NOW, 0), &u64::MAX).unwrap();
        let mut added = writer();
        added.add(&entry(u64::MAX)).unwrap();
        assert_eq!(noted.unwritten, added.unwritten);
        assert_eq!((noted.bytes, noted.values, noted.entries), (added.bytes, added.values, added.entries));
    }

    #[test]
    fn what_does_not_fit_is_cut_at_a_line_and_the_tape_can_be_read() {
        let many = |writer: &mut TapeWriter| {
            let head = NoteHead::new(NOW, 0);
            (0..=TAPE_ENTRIES_MAX as u64).for_each(|number| writer.add_note(&head, &number).unwrap());
        };
        let long = |writer: &mut TapeWriter| {
            let half = "x".repeat(usize::try_from(TAPE_BYTES_MAX / 2).unwrap());
            for _ in 0..3 {
                writer.add(&entry(half.as_str())).unwrap();
            }
        };
        let valued = |writer: &mut TapeWriter| {
            let values = vec![0; TAPE_VALUES_MAX / 2];
            for _ in 0..3 {
                writer.add(&entry(&values)).unwrap();
            }
        };
        for (fills, kept) in [(&many as &dyn Fn(&mut TapeWriter), TAPE_ENTRIES_MAX - 1), (&long, 1), (&valued, 1)] {
            let mut writer = writer();
            fills(&mut writer);
            writer.flush();
            let mut bytes = vec![0; usize::try_from(writer.written).unwrap()];
            writer.file.read_exact_at(&mut bytes, 0).unwrap();
            let entries = tape::read(&bytes).unwrap();
            assert_eq!(entries.len(), kept + 1);
            assert_eq!(entries.last().unwrap().function, CUT);
            assert!(writer.unwritten.capacity() <= UNWRITTEN_BYTES_MAX);
        }
    }
}
