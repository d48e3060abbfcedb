//! A component other than the recorded one: what it asks for, next to what the recorded call asked
//! for.
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};
use toolcell_wall::failure::{QUESTIONS_MAX, ReplayQuestion};
use toolcell_wall::tape::TapeEntry;
use toolcell_wall::uses::{Use, UseReader};
use wasmtime::component::Type;

use super::requests::Requests;
use super::{made_up, values};

/// Functions of one call that are answered without the recording. A request takes some fifteen.
const MADE_UP_MAX: usize = 10_000;

/// Times that a call goes on after it was refused something: a guest may ask for the same again.
const REFUSED_MAX: usize = 100;

/// The first handle of an answer that no recording has. Recordings have as many handles as
/// functions.
const FIRST_HANDLE: u32 = 1 << 30;

/// The addresses that names have which the recorded call did not look up: 192.0.2.1 and on, which
/// no machine has.
const ADDRESSES_MAX: u8 = 254;

/// The function that sends a request.
const SEND: &str = "wasi:http/outgoing-handler#handle";

/// The functions that read a stream.
const READS: [&str; 2] =
    ["wasi:io/streams#[method]input-stream.read", "wasi:io/streams#[method]input-stream.blocking-read"];

/// What the recorded call asked for.
struct RecordedCall {
    reader: UseReader,
    uses: BTreeSet<Use>,
    /// The requests that it sent, by their places on the tape.
    sent: BTreeMap<usize, SentRequest>,
    requests: Requests,
}

struct SentRequest {
    reached: Use,
    /// Its place among the requests that were built.
    built: usize,
}

/// Both calls, as far as the new one has come.
pub(super) struct Comparison {
    recorded: RecordedCall,
    uses: UseReader,
    requests: Requests,
    /// Recorded requests whose answers were given, by their places on the tape, each with the place
    /// of the new one among those that were built.
    answered: BTreeMap<usize, usize>,
    questions: Vec<ReplayQuestion>,
    /// Names in `questions` that were only looked up.
    looked_up: BTreeSet<String>,
    made_up: usize,
    refused: usize,
    handles: u32,
    /// What is left of what streams gave, by their handles: the guest reads in smaller pieces.
    rests: HashMap<u32, std::vec::IntoIter<u8>>,
    /// Look-ups that are answered here, by their handles: the address, until it was given.
    lookups: HashMap<u32, Option<u8>>,
}

/// Where a question's answer is.
pub(super) enum Answered {
    /// At this place of the tape.
    At(usize),
    /// The tape may have it, as it was asked.
    AsAsked,
    /// The tape has no such request.
    Nowhere,
}

impl Comparison {
    /// Of a call that asked for this.
    pub(super) fn new<'e>(entries: impl Iterator<Item = &'e TapeEntry>) -> Self {
        let mut reader = UseReader::default();
        let mut requests = Requests::default();
        let mut uses = BTreeSet::new();
        let mut sent = BTreeMap::new();
        for (place, entry) in entries.enumerate() {
            if let Some(request) = sending(entry, &reader, &requests) {
                sent.insert(place, request);
            }
            uses.extend(reader.read(entry));
            requests.note(entry);
        }
        Self {
            recorded: RecordedCall { reader, uses, sent, requests },
            uses: UseReader::default(),
            requests: Requests::default(),
            answered: BTreeMap::new(),
            questions: Vec::new(),
            looked_up: BTreeSet::new(),
            made_up: 0,
            refused: 0,
            handles: FIRST_HANDLE,
            rests: HashMap::new(),
            lookups: HashMap::new(),
        }
    }

    /// Where the answer of a request is: with the recorded one of the same URL, headers and body.
    /// Both may be built in any order.
    pub(super) fn find(&self, asked: &TapeEntry, is_unused: impl Fn(usize) -> bool) -> Answered {
        if asked.function != SEND {
            return Answered::AsAsked;
        }
        // Its handle says nothing: another request may have it.
        let request = sending(asked, &self.uses, &self.requests).filter(|_| self.are_comparable());
        let Some(request) = request else { return Answered::Nowhere };
        let is_same = |(place, recorded): &(&usize, &SentRequest)| {
            let is_equal = || {
                let built = self.requests.get(request.built)?;
                let recorded = self.recorded.requests.get(recorded.built)?;
                Some(built.has_headers_of(recorded) && built.may_become(recorded))
            };
            recorded.reached == request.reached && is_unused(**place) && is_equal() == Some(true)
        };
        let found = self.recorded.sent.iter().find(is_same);
        found.map_or(Answered::Nowhere, |(place, _)| Answered::At(*place))
    }

    /// False if the requests of one call are larger than what is kept of them.
    fn are_comparable(&self) -> bool {
        self.requests.are_whole() && self.recorded.requests.are_whole()
    }

    /// True if an entry answers this question for another handle of the same file or store.
    pub(super) fn is_alike(&self, entry: &TapeEntry, asked: &TapeEntry) -> bool {
        let is_same = |(one, other): (&Value, &Value)| one == other || self.recorded.reader.are_of_the_same(one, other);
        entry.function == asked.function
            && entry.arguments.len() == asked.arguments.len()
            && entry.arguments.iter().zip(&asked.arguments).all(is_same)
    }

    /// True if the guest reads a stream.
    pub(super) fn reads(asked: &TapeEntry) -> bool {
        read_stream(asked).is_some()
    }

    /// True if an entry has the next bytes of the stream that the guest reads. How many it reads at
    /// once says nothing.
    pub(super) fn is_next_read(entry: &TapeEntry, asked: &TapeEntry) -> bool {
        READS.contains(&entry.function.as_str()) && entry.arguments.first() == asked.arguments.first()
    }

    /// What is left of what the stream gave before, if the guest reads one.
    pub(super) fn rest(&mut self, asked: &TapeEntry) -> Option<TapeEntry> {
        let stream = read_stream(asked)?;
        let rest = self.rests.get_mut(&stream)?;
        let piece: Vec<u8> = rest.by_ref().take(count_to_read(asked)).collect();
        if rest.as_slice().is_empty() {
            self.rests.remove(&stream);
        }
        Some(TapeEntry { results: vec![json!({ "ok": values::ShownBytes(&piece) })], counted: 1, ..asked.clone() })
    }

    /// The answer with as many bytes as the guest reads at once. What is left comes next.
    pub(super) fn piece(&mut self, asked: &TapeEntry, mut found: TapeEntry) -> TapeEntry {
        let Some(stream) = read_stream(asked) else { return found };
        let bytes = found.results.first().and_then(|result| result.get("ok")).and_then(values::recorded_bytes);
        let Some(bytes) = bytes.filter(|bytes| bytes.len() > count_to_read(asked)) else { return found };
        self.rests.insert(stream, bytes.into_iter());
        if let Some(piece) = self.rest(asked) {
            found.results = piece.results;
        }
        found
    }

    /// Notes the answer that the guest gets, and its place on the tape.
    pub(super) fn note(&mut self, answer: &TapeEntry, place: usize) {
        let request = sending(answer, &self.uses, &self.requests);
        if let Some(request) = request {
            self.answered.insert(place, request.built);
        }
        drop(self.uses.read(answer));
        self.requests.note(answer);
    }

    /// An answer that the tape does not have, for a guest that goes on. `None` if the call ends.
    pub(super) fn make_up(&mut self, asked: &TapeEntry, ty: Option<&Type>, is_stream: bool) -> Option<TapeEntry> {
        if self.made_up >= MADE_UP_MAX {
            self.ask(asked, None);
            return None;
        }
        self.made_up += 1;
        let results = match self.known(asked) {
            Some(result) => Some(vec![result]),
            None if is_stream || made_up::reaches_nothing(&asked.function) || self.is_stream(asked) => self.granted(ty),
            None => return self.refuse(asked, ty),
        };
        let Some(results) = results else {
            self.ask(asked, None);
            return None;
        };
        let answer = TapeEntry { results, counted: 1, ..asked.clone() };
        drop(self.uses.read(&answer));
        self.requests.note(&answer);
        Some(answer)
    }

    /// The questions that the recording does not answer, once the call is over.
    pub(super) fn questions(&mut self) -> Vec<ReplayQuestion> {
        // Bodies are written after their requests are sent.
        for (place, built) in std::mem::take(&mut self.answered) {
            let Some(recorded) = self.recorded.sent.get(&place) else { continue };
            let new = self.requests.get(built);
            let old = self.recorded.requests.get(recorded.built);
            let has_body = matches!((new, old), (Some(new), Some(old)) if new.has_body_of(old));
            if !has_body || !self.are_comparable() {
                let name = format!("{} with another body", recorded.reached);
                self.push(ReplayQuestion::new(Some(name), true, &super::entry(SEND, Vec::new())));
            }
        }
        self.questions.clone()
    }

    fn granted(&mut self, ty: Option<&Type>) -> Option<Vec<Value>> {
        let Some(ty) = ty else { return Some(Vec::new()) };
        let handles = &mut self.handles;
        let mut next = || {
            *handles = handles.wrapping_add(1);
            *handles
        };
        made_up::granted(ty, &mut next).map(|result| vec![result])
    }

    /// What follows from what the guest has built itself.
    fn known(&mut self, asked: &TapeEntry) -> Option<Value> {
        let first = asked.arguments.first();
        match asked.function.as_str() {
            // All are ready.
            "wasi:io/poll#poll" => {
                let waiting = first.and_then(Value::as_array).map_or(0, Vec::len);
                Some((0..waiting).map(Value::from).collect())
            }
            "wasi:sockets/ip-name-lookup#[method]resolve-address-stream.resolve-next-address" => {
                let address = self.lookups.get_mut(&first.and_then(values::recorded_handle)?)?.take();
                Some(json!({ "ok": address.map(|last| json!({"some": {"ipv4": [192, 0, 2, last]}})) }))
            }
            "toolcell:mcp/cancellation#is-cancelled" => Some(json!(false)),
            _ => self.requests.headers_read(asked),
        }
    }

    /// True if a function writes to the body of a request.
    fn is_stream(&self, asked: &TapeEntry) -> bool {
        let handle = asked.arguments.first().and_then(values::recorded_handle);
        asked.function.starts_with("wasi:io/streams#[method]output-stream.")
            && handle.is_some_and(|handle| self.requests.place(handle).is_some())
    }

    /// Refuses what reaches outside, and notes the question.
    fn refuse(&mut self, asked: &TapeEntry, ty: Option<&Type>) -> Option<TapeEntry> {
        let name_of_request = sending(asked, &self.uses, &self.requests).map(|sent| self.name_of_request(&sent));
        let lookup = asked.function == "wasi:sockets/ip-name-lookup#resolve-addresses";
        let result = if lookup { self.look_up(ty) } else { ty.and_then(made_up::refused) };
        let answer = TapeEntry { results: result.into_iter().collect(), counted: 1, ..asked.clone() };
        let reached = self.uses.read(&answer);
        match (name_of_request, reached.as_slice()) {
            (Some(name), _) => self.push(ReplayQuestion::new(Some(name), true, asked)),
            (None, []) => self.ask(asked, None),
            (None, all) => all.iter().for_each(|reached| self.ask(asked, Some(reached))),
        }
        self.refused += 1;
        let goes_on = !answer.results.is_empty() && self.questions.len() < QUESTIONS_MAX && self.refused < REFUSED_MAX;
        goes_on.then_some(answer)
    }

    /// A look-up that finds an address which no machine has, so that a connection to it has a name.
    fn look_up(&mut self, ty: Option<&Type>) -> Option<Value> {
        let last = u8::try_from(self.lookups.len()).ok().filter(|count| *count < ADDRESSES_MAX)?;
        let result = self.granted(ty)?.pop()?;
        let handle = result.get("ok").and_then(values::recorded_handle)?;
        self.lookups.insert(handle, Some(last + 1));
        Some(result)
    }

    /// A request in words, with what differs where the recorded call sent one of the same URL.
    fn name_of_request(&self, request: &SentRequest) -> String {
        let mut recorded = self.recorded.sent.iter().filter(|(_, sent)| sent.reached == request.reached).peekable();
        if recorded.peek().is_none() {
            return request.reached.to_string();
        }
        if !self.are_comparable() {
            return format!("{} with more than is compared", request.reached);
        }
        let Some((_, left)) = recorded.find(|(place, _)| !self.answered.contains_key(*place)) else {
            return format!("{} once more", request.reached);
        };
        let new = self.requests.get(request.built);
        let old = self.recorded.requests.get(left.built);
        let has_headers = matches!((new, old), (Some(new), Some(old)) if new.has_headers_of(old));
        let what = if has_headers { "another body" } else { "other headers" };
        format!("{} with {what}", request.reached)
    }

    /// Notes a question.
    fn ask(&mut self, asked: &TapeEntry, reached: Option<&Use>) {
        match reached {
            Some(Use::Lookup(name)) => drop(self.looked_up.insert(name.clone())),
            // The connection says more than the look-up for it.
            Some(Use::Socket { name: Some(name), .. }) if self.looked_up.remove(name) => {
                let lookup = Use::Lookup(name.clone()).to_string();
                self.questions.retain(|question| question.name.as_ref() != Some(&lookup));
            }
            _ => {}
        }
        let is_new = reached.is_some_and(|reached| !self.recorded.uses.contains(reached));
        self.push(ReplayQuestion::new(reached.map(Use::to_string), is_new, asked));
    }

    fn push(&mut self, question: ReplayQuestion) {
        let is_said = question.is_new && question.name.is_some();
        let is_known =
            |known: &ReplayQuestion| known.name == question.name && (is_said || known.asked == question.asked);
        if self.questions.len() < QUESTIONS_MAX && !self.questions.iter().any(is_known) {
            self.questions.push(question);
        }
    }
}

/// The stream that a function reads.
fn read_stream(asked: &TapeEntry) -> Option<u32> {
    if READS.contains(&asked.function.as_str()) {
        asked.arguments.first().and_then(values::recorded_handle)
    } else {
        None
    }
}

/// Bytes that a function reads at once, at most.
fn count_to_read(asked: &TapeEntry) -> usize {
    let count = asked.arguments.get(1).and_then(Value::as_u64);
    count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX)
}

/// The request that a function sends.
fn sending(entry: &TapeEntry, uses: &UseReader, requests: &Requests) -> Option<SentRequest> {
    if entry.function != SEND {
        return None;
    }
    let built = entry.arguments.first().and_then(values::recorded_handle).and_then(|handle| requests.place(handle))?;
    Some(SentRequest { reached: uses.request(entry)?, built })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::entry;
    use super::*;

    #[test]
    fn a_guest_that_only_waits_comes_to_an_end_and_is_named() {
        let mut comparison = Comparison::new([].iter());
        let waits = entry("wasi:io/poll#[method]pollable.block", vec![json!({"handle": 1})]);
        for _ in 0..MADE_UP_MAX {
            assert!(comparison.make_up(&waits, None, false).is_some());
        }
        assert!(comparison.make_up(&waits, None, false).is_none());
        let questions = comparison.questions();
        assert_eq!(questions.len(), 1);
        assert!(questions[0].asked.contains("pollable.block"), "{questions:?}");
    }

    #[test]
    fn a_request_that_is_too_large_to_compare_gets_no_recorded_answer() {
        let fields = "wasi:http/types#[constructor]fields";
        let append = |value: &str| {
            entry(
                "wasi:http/types#[method]fields.append",
                vec![json!({"handle": 1}), json!("a"), json!({"text": value})],
            )
        };
        let with = |entry: TapeEntry, result: Value| TapeEntry { results: vec![result], ..entry };
        let request = |value: &str| {
            let begun = entry("wasi:http/types#[constructor]outgoing-request", vec![json!({"handle": 1})]);
            let authority = "wasi:http/types#[method]outgoing-request.set-authority";
            [
                with(entry(fields, Vec::new()), json!({"handle": 1})),
                with(append(value), json!({"ok": null})),
                with(begun, json!({"handle": 2})),
                with(entry(authority, vec![json!({"handle": 2}), json!({"some": "a.example"})]), json!({"ok": null})),
            ]
        };
        let sent = with(entry(SEND, vec![json!({"handle": 2}), Value::Null]), json!({"ok": {"handle": 3}}));
        let recorded = [&request("x")[..], std::slice::from_ref(&sent)].concat();
        for (value, is_found) in [("x".to_owned(), true), ("y".to_owned(), false), ("x".repeat(17 << 20), false)] {
            let mut comparison = Comparison::new(recorded.iter());
            request(&value).iter().enumerate().for_each(|(place, entry)| comparison.note(entry, place));
            let found = comparison.find(&sent, |_| true);
            assert_eq!(matches!(found, Answered::At(4)), is_found);
            assert_eq!(matches!(found, Answered::Nowhere), !is_found);
        }
    }

    #[test]
    fn a_stream_is_read_in_pieces_of_any_size() {
        let read = |count: u64| {
            entry("wasi:io/streams#[method]input-stream.blocking-read", vec![json!({"handle": 1}), json!(count)])
        };
        let mut comparison = Comparison::new([].iter());
        let found = TapeEntry { results: vec![json!({"ok": {"text": "hello"}})], ..read(2) };
        assert_eq!(comparison.piece(&read(2), found).results, [json!({"ok": {"text": "he"}})]);
        assert_eq!(comparison.rest(&read(1)).unwrap().results, [json!({"ok": {"text": "l"}})]);
        assert_eq!(comparison.rest(&read(9)).unwrap().results, [json!({"ok": {"text": "lo"}})]);
        assert!(comparison.rest(&read(9)).is_none());
    }
}
