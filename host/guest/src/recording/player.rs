//! A function that is answered from a tape.
use std::collections::HashMap;

use serde_json::Value;
use toolcell_wall::failure::ReplayEnd;
use toolcell_wall::tape::{CUT, DROP, OWN_FILE, TapeEntry};
use wasmtime::component::{ResourceAny, ResourceDynamic, ResourceType, Type, Val, types::ComponentFunc};
use wasmtime_wasi::I32Exit;

use super::comparison::{Answered, Comparison};
use super::linking::{GuestStore, LinkedFunction};
use super::recorder::guest_handle;
use super::{CallTape, entry, values};

/// Functions whose answers stand for any number of calls, when a component other than the recorded
/// one asks for more of them: they change nothing, and nothing depends on their number.
const REPEATABLE: [&str; 9] = [
    "wasi:clocks/",
    "wasi:random/",
    "wasi:cli/environment#",
    "wasi:cli/terminal-",
    "wasi:config/",
    "wasi:filesystem/preopens#",
    "wasi:keyvalue/store#open",
    "toolcell:mcp/cancellation#",
    "toolcell:mcp/request#",
];

/// Functions with which a program ends itself.
const EXIT: &str = "wasi:cli/exit#";

/// A tape that is played.
pub(crate) struct Player {
    entries: Vec<PlayedEntry>,
    /// The first entry that was not used.
    next: usize,
    /// Where the guest is not the recorded one. Otherwise it must ask in the order of the tape.
    comparison: Option<Box<Comparison>>,
    /// Standard output and error, by their handles: true for standard output.
    standard: HashMap<u32, bool>,
}

struct PlayedEntry {
    entry: TapeEntry,
    is_used: bool,
}

/// The error that ends a replayed call.
#[derive(Debug, thiserror::Error)]
#[error("the recording ends here")]
pub(crate) struct EndOfReplay(pub(crate) ReplayEnd);

/// The values of a call of a function.
pub(super) struct Values<'v> {
    pub(super) arguments: &'v [Val],
    pub(super) results: &'v mut [Val],
}

impl Player {
    /// A player of these entries, for the component that was recorded or for another one.
    pub(crate) fn new(entries: Vec<TapeEntry>, is_strict: bool) -> Self {
        let comparison = (!is_strict).then(|| Box::new(Comparison::new(entries.iter())));
        let entries = entries.into_iter().map(|entry| PlayedEntry { entry, is_used: false }).collect();
        Self { entries, next: 0, comparison, standard: HashMap::new() }
    }

    /// The answer to a function of this result.
    fn answer(&mut self, asked: &TapeEntry, ty: Option<&Type>) -> wasmtime::Result<TapeEntry> {
        let Some(mut comparison) = self.comparison.take() else {
            let place = self.in_order(asked);
            return self.take(place, asked);
        };
        if let Some(rest) = comparison.rest(asked) {
            self.comparison = Some(comparison);
            return Ok(rest);
        }
        let is_unused = |place: usize| self.entries.get(place).is_some_and(|found| !found.is_used);
        let place = match comparison.find(asked, is_unused) {
            Answered::At(place) => Some(place),
            Answered::AsAsked => self.next_read(asked).or_else(|| self.anywhere(asked, &comparison)),
            Answered::Nowhere => None,
        };
        let made_up = match place {
            Some(_) => None,
            None => comparison.make_up(asked, ty, self.prints(asked)),
        };
        // The recorded question may have been for other handles.
        let recorded = |found: TapeEntry| TapeEntry { arguments: asked.arguments.clone(), ..found };
        let answer = match made_up {
            Some(answer) => Ok(answer),
            None => self.take(place, asked).map(|found| comparison.piece(asked, recorded(found))),
        };
        if let (Ok(answer), Some(place)) = (&answer, place) {
            comparison.note(answer, place);
        }
        self.comparison = Some(comparison);
        answer
    }

    /// What the drop of a handle counts. Another component than the recorded one may drop any.
    fn drop_of(&mut self, asked: &TapeEntry) -> wasmtime::Result<TapeEntry> {
        if self.comparison.is_none() {
            return self.answer(asked, None);
        }
        match self.unused(|entry| is_same(entry, asked)) {
            Some(place) => self.take(Some(place), asked).map(|found| TapeEntry { ended: None, ..found }),
            None => Ok(TapeEntry { counted: 1, ..asked.clone() }),
        }
    }

    /// The answer at this place of the tape.
    fn take(&mut self, place: Option<usize>, asked: &TapeEntry) -> wasmtime::Result<TapeEntry> {
        let Some(place) = place else { return Err(self.differs(asked)) };
        if let Some(found) = self.entries.get_mut(place) {
            found.is_used = true;
        }
        while self.entries.get(self.next).is_some_and(|entry| entry.is_used) {
            self.next += 1;
        }
        let found = self.entries.get(place).map(|found| found.entry.clone());
        found.ok_or_else(|| wasmtime::Error::msg("the recording lacks an entry"))
    }

    fn in_order(&self, asked: &TapeEntry) -> Option<usize> {
        self.entries.get(self.next).filter(|next| is_same(&next.entry, asked)).map(|_| self.next)
    }

    /// The next bytes of a stream.
    fn next_read(&self, asked: &TapeEntry) -> Option<usize> {
        let read = || self.unused(|entry| Comparison::is_next_read(entry, asked));
        Comparison::reads(asked).then(read).flatten()
    }

    /// The first unused entry that answers.
    fn unused(&self, answers: impl Fn(&TapeEntry) -> bool) -> Option<usize> {
        let mut left = self.entries.iter().enumerate().skip(self.next);
        left.find(|(_, found)| !found.is_used && answers(&found.entry)).map(|(place, _)| place)
    }

    /// The first unused entry of the same question, or else one for another handle of the same
    /// thing. A question that changes nothing gets the last answer again.
    fn anywhere(&self, asked: &TapeEntry, comparison: &Comparison) -> Option<usize> {
        let same = |entry: &TapeEntry| is_same(entry, asked);
        let alike = || self.unused(|entry| comparison.is_alike(entry, asked));
        let is_repeatable = REPEATABLE.iter().any(|begin| asked.function.starts_with(begin));
        let again = || self.entries.iter().rposition(|found| is_repeatable && same(&found.entry));
        self.unused(same).or_else(alike).or_else(again)
    }

    fn differs(&self, asked: &TapeEntry) -> wasmtime::Error {
        let expected = self.entries.get(self.next).map(|next| &next.entry);
        EndOfReplay(ReplayEnd::differs(Some(asked), expected)).into()
    }

    /// Why a call that is over is not the recorded one: it asked for more, or it has an answer and
    /// did not ask for the rest of the tape.
    pub(crate) fn end(&mut self, has_answer: bool) -> Option<ReplayEnd> {
        if let Some(comparison) = &mut self.comparison {
            let questions = comparison.questions();
            return (!questions.is_empty()).then_some(ReplayEnd::Asks(questions));
        }
        let next = self.entries.get(self.next).filter(|_| has_answer)?;
        Some(ReplayEnd::differs(None, Some(&next.entry)))
    }

    /// True if a function writes to standard output or error.
    fn prints(&self, asked: &TapeEntry) -> bool {
        let handle = asked.arguments.first().and_then(values::recorded_handle);
        asked.function.starts_with("wasi:io/streams#[method]output-stream.")
            && handle.is_some_and(|handle| self.standard.contains_key(&handle))
    }

    /// A file of the call's own folder, which is its answer.
    pub(crate) fn own_file(&mut self, path: &str) -> Result<Vec<u8>, String> {
        let asked = entry(OWN_FILE, vec![Value::from(path)]);
        let found = self.answer(&asked, None).map_err(|_| "the recording has no such file".to_owned())?;
        let result = found.results.first();
        match (result.and_then(|result| result.get("ok")), result.and_then(|result| result.get("err"))) {
            (Some(bytes), _) => {
                values::recorded_bytes(bytes).ok_or_else(|| "the recorded file cannot be read".to_owned())
            }
            (None, Some(Value::String(why))) => Err(why.clone()),
            _ => Err("the recording has no such file".to_owned()),
        }
    }

    /// The bytes that a function printed, with true for standard output.
    fn printed(&mut self, entry: &TapeEntry) -> Option<(bool, Vec<u8>)> {
        let is_stdout = match entry.function.as_str() {
            "wasi:cli/stdout#get-stdout" => true,
            "wasi:cli/stderr#get-stderr" => false,
            function => {
                let function = function.strip_prefix("wasi:io/streams#[method]output-stream.")?;
                let to = entry.arguments.first().and_then(values::recorded_handle)?;
                let is_stdout = *self.standard.get(&to)?;
                return Some((is_stdout, values::written_bytes(function, entry.arguments.get(1)?)?));
            }
        };
        let handle = entry.results.first().and_then(values::recorded_handle)?;
        self.standard.insert(handle, is_stdout);
        None
    }
}

/// True if an entry answers this question.
fn is_same(entry: &TapeEntry, asked: &TapeEntry) -> bool {
    entry.function == asked.function && entry.arguments == asked.arguments && entry.function != CUT
}

fn player<'s>(store: &'s mut GuestStore<'_>) -> wasmtime::Result<&'s mut Player> {
    let player = store.data_mut().tape().and_then(CallTape::player);
    player.ok_or_else(|| wasmtime::Error::msg("a call is replayed without a tape"))
}

/// Answers a function from the tape.
pub(super) fn answer(
    mut store: GuestStore<'_>,
    function: &LinkedFunction,
    ty: &ComponentFunc,
    values: Values<'_>,
) -> wasmtime::Result<()> {
    let mut numbers = Vec::new();
    for (value, (_, ty)) in values.arguments.iter().zip(ty.params()) {
        number_handles(&mut store, value, &ty, &mut numbers)?;
    }
    let asked = entry(&function.name, values::to_json(values.arguments, &numbers)?);
    if asked.function.starts_with(EXIT) && player(&mut store)?.comparison.is_some() {
        return Err(end(&asked, "the component ended itself"));
    }
    let result = ty.results().next();
    let found = player(&mut store)?.answer(&asked, result.as_ref())?;
    store.data_mut().fuel.replay(found.counted, found.fuel)?;
    let printed = player(&mut store)?.printed(&found).filter(|_| found.ended.is_none());
    if let Some((is_stdout, bytes)) = printed {
        store.data_mut().print(is_stdout, &bytes)?;
    }
    if let Some(reason) = &found.ended {
        return Err(end(&found, reason));
    }
    if found.results.len() != values.results.len() {
        return Err(wasmtime::Error::msg("the recording has another number of results"));
    }
    for ((result, recorded), ty) in values.results.iter_mut().zip(&found.results).zip(ty.results()) {
        let mut make = |number: u32, ty: &ResourceType| guest_handle(&mut store, number, ty);
        *result = values::from_json(recorded, &ty, &mut make)?;
    }
    Ok(())
}

/// The end of a call in this function, as the host ended it.
fn end(entry: &TapeEntry, reason: &str) -> wasmtime::Error {
    match entry.function.as_str() {
        "wasi:cli/exit#exit" => {
            let is_fine = entry.arguments.first().is_some_and(|status| status.get("ok").is_some());
            I32Exit(i32::from(!is_fine)).into()
        }
        "wasi:cli/exit#exit-with-code" => {
            let code = entry.arguments.first().and_then(Value::as_i64).unwrap_or(1);
            I32Exit(i32::try_from(code).unwrap_or(1)).into()
        }
        _ => EndOfReplay(ReplayEnd::ended(reason)).into(),
    }
}

/// Adds the numbers of a value's handles.
fn number_handles(store: &mut GuestStore<'_>, value: &Val, ty: &Type, numbers: &mut Vec<u32>) -> wasmtime::Result<()> {
    if !values::has_handles(ty) {
        return Ok(());
    }
    let exchanged = values::exchanged(value, ty, &mut |handle: ResourceAny, _: &ResourceType| {
        numbers.push(ResourceDynamic::try_from_resource_any(handle, &mut *store)?.rep());
        Ok(handle)
    });
    exchanged.map(drop)
}

/// A handle that the guest drops.
pub(super) fn dropped(mut store: GuestStore<'_>, number: u32) -> wasmtime::Result<()> {
    let player = player(&mut store)?;
    let found = player.drop_of(&entry(DROP, vec![Value::from(number)]))?;
    store.data_mut().fuel.replay(found.counted, found.fuel)?;
    match &found.ended {
        Some(reason) => Err(end(&found, reason)),
        None => Ok(()),
    }
}
