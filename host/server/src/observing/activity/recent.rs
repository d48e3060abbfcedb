//! Calls that ended recently: what they printed, and how long each part took. The audit keeps
//! neither.
//!
//! Nothing is kept without a console.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwapOption;
use toolcell_mcp::sanitize;

/// Calls that are kept, the newest ones. Their texts take at most 2 MiB, and so do the names of
/// their requests.
const CALLS: usize = 256;

/// Bytes of text that are kept of one call: a page.
const PRINTED_BYTES_MAX: usize = 8 << 10;

/// Requests of one call that are kept. A chart cannot show more.
const REQUESTS_MAX: usize = 32;

/// Bytes of the name of a request.
const NAME_BYTES_MAX: usize = 256;

/// Calls that ended recently.
#[derive(Default)]
pub struct RecentCalls {
    is_open: AtomicBool,
    places: Box<[ArcSwapOption<RecentCall>]>,
}

/// One of them.
#[derive(Debug)]
pub struct RecentCall {
    id: u64,
    /// The beginning of what it printed and logged.
    pub printed: String,
    /// The parts of its time, in the order of their start.
    pub parts: Vec<CallPart>,
}

/// A part of a call's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPart {
    /// `asked`, `queue`, `instantiate`, `run`, or the method and server of a request.
    pub name: String,
    /// From the start of the call to the start of the part.
    pub start: Duration,
    pub took: Duration,
    /// True for a request, or for a question of the guest: these lie within `run`.
    pub is_request: bool,
    /// True if the request failed.
    pub failed: bool,
}

/// Notes about a running call.
#[derive(Debug, Default)]
pub(super) struct CallNotes {
    printed: String,
    runs: Option<Instant>,
    instantiated: Option<Instant>,
    ran: Option<Instant>,
    requests: Vec<CallPart>,
    /// Times of waiting for a person, before and while the guest ran.
    asked: Vec<CallPart>,
}

impl RecentCalls {
    /// Keeps no calls yet.
    pub(super) fn new() -> Self {
        let places = (0..CALLS).map(|_| ArcSwapOption::empty()).collect();
        Self { is_open: AtomicBool::new(false), places }
    }

    /// Starts keeping calls.
    pub fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// The call of this number, if it is still kept.
    pub fn find(&self, id: u64) -> Option<Arc<RecentCall>> {
        self.place(id)?.load_full().filter(|call| call.id == id)
    }

    pub(super) fn keep(&self, call: RecentCall) {
        if let Some(place) = self.place(call.id) {
            place.store(Some(Arc::new(call)));
        }
    }

    fn place(&self, id: u64) -> Option<&ArcSwapOption<RecentCall>> {
        self.places.get(usize::try_from(id % CALLS as u64).ok()?)
    }
}

impl CallNotes {
    pub(super) fn runs(&mut self) {
        self.runs.get_or_insert_with(Instant::now);
    }

    pub(super) fn instantiated(&mut self) {
        self.instantiated.get_or_insert_with(Instant::now);
    }

    pub(super) fn ran(&mut self) {
        self.ran.get_or_insert_with(Instant::now);
    }

    /// Adds a wait for a person that began this long after the call.
    pub(super) fn asked(&mut self, start: Duration, took: Duration) {
        if self.asked.len() < REQUESTS_MAX {
            let is_request = self.runs.is_some();
            self.asked.push(CallPart { name: "asked".to_owned(), start, took, is_request, failed: false });
        }
    }

    /// Adds the beginning of a line.
    pub(super) fn printed(&mut self, line: &str) {
        let room = PRINTED_BYTES_MAX.saturating_sub(self.printed.len());
        if room < 2 {
            return;
        }
        let cut = |line: &str| line.get(..line.floor_char_boundary(room - 1)).unwrap_or_default().to_owned();
        // Cut before sanitizing: the rest is not kept.
        self.printed.push_str(&cut(&sanitize::line(&cut(line))));
        self.printed.push('\n');
    }

    /// Adds a request that began at this time.
    pub(super) fn requested(&mut self, began: Instant, name: &str, request: SystemTime, failed: bool) {
        if self.requests.len() < REQUESTS_MAX {
            let took = request.elapsed().unwrap_or_default();
            let start = began.elapsed().saturating_sub(took);
            let name = name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or_default().to_owned();
            self.requests.push(CallPart { name, start, took, is_request: true, failed });
        }
    }

    /// The call with this number, which began at this time and ends now.
    pub(super) fn end(self, id: u64, began: Instant) -> RecentCall {
        let since = |at: Instant| at.saturating_duration_since(began);
        let part = |name: &str, start: Duration, end: Duration| CallPart {
            name: name.to_owned(),
            start,
            took: end.saturating_sub(start),
            is_request: false,
            failed: false,
        };
        let end = since(self.ran.unwrap_or_else(Instant::now));
        let runs = self.runs.map_or(end, since);
        let (within, before): (Vec<CallPart>, Vec<CallPart>) =
            self.asked.into_iter().partition(|asked| asked.is_request);
        // A call enters the queue once a person has answered.
        let queued = before.last().map_or(Duration::ZERO, |asked| asked.start.saturating_add(asked.took));
        let mut parts = before;
        parts.push(part("queue", queued, runs));
        if self.runs.is_some() {
            let instantiated = self.instantiated.map_or(end, since);
            parts.push(part("instantiate", runs, instantiated));
            if self.instantiated.is_some() {
                parts.push(part("run", instantiated, end));
            }
        }
        let mut requests = self.requests;
        requests.extend(within);
        requests.sort_by_key(|request| request.start);
        parts.append(&mut requests);
        RecentCall { id, printed: self.printed, parts }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_newest_calls_are_kept_and_each_is_bounded() {
        let calls = RecentCalls::new();
        for id in 1..=CALLS as u64 + 1 {
            calls.keep(CallNotes::default().end(id, Instant::now()));
        }
        assert!(calls.find(1).is_none(), "another took its place");
        assert!(calls.find(2).is_some() && calls.find(CALLS as u64 + 1).is_some());
        assert!(calls.find(CALLS as u64 + 2).is_none());
        let mut notes = CallNotes::default();
        let began = Instant::now();
        notes.printed("first\u{1b}[2J");
        (0..REQUESTS_MAX + 5).for_each(|_| notes.requested(began, &"é".repeat(1_000), SystemTime::now(), true));
        (0..100).for_each(|_| notes.printed(&"é".repeat(5_000)));
        let call = notes.end(1, began);
        assert!(call.printed.starts_with("first") && !call.printed.contains('\u{1b}'));
        assert!(call.printed.len() <= PRINTED_BYTES_MAX, "{}", call.printed.len());
        assert!(call.printed.len() > PRINTED_BYTES_MAX - 8, "{}", call.printed.len());
        assert_eq!(call.parts.iter().filter(|part| part.is_request).count(), REQUESTS_MAX);
        assert!(call.parts.iter().all(|part| part.name.len() <= NAME_BYTES_MAX));
    }

    #[test]
    fn the_time_before_a_person_is_no_time_in_a_queue() {
        let mut notes = CallNotes::default();
        let began = Instant::now();
        notes.asked(Duration::ZERO, Duration::from_secs(40));
        notes.runs = began.checked_add(Duration::from_secs(41));
        notes.instantiated = began.checked_add(Duration::from_secs(42));
        notes.asked(Duration::from_secs(43), Duration::from_secs(7));
        notes.ran = began.checked_add(Duration::from_secs(60));
        let parts = notes.end(1, began).parts;
        let shown = |part: &CallPart| (part.name.clone(), part.start.as_secs(), part.took.as_secs(), part.is_request);
        let parts: Vec<_> = parts.iter().map(shown).collect();
        let expected = [
            ("asked", 0, 40, false),
            ("queue", 40, 1, false),
            ("instantiate", 41, 1, false),
            ("run", 42, 18, false),
            ("asked", 43, 7, true),
        ];
        assert_eq!(parts, expected.map(|(name, start, took, within)| (name.to_owned(), start, took, within)));
    }

    #[test]
    fn a_call_has_the_parts_that_it_came_to() {
        let names = |call: &RecentCall| call.parts.iter().map(|part| part.name.clone()).collect::<Vec<_>>();
        let began = Instant::now();
        let mut notes = CallNotes::default();
        assert_eq!(names(&CallNotes::default().end(1, began)), ["queue"]);
        notes.runs();
        notes.instantiated();
        notes.requested(began, "GET http://one.example", SystemTime::now(), false);
        notes.ran();
        let call = notes.end(1, began);
        assert_eq!(names(&call), ["queue", "instantiate", "run", "GET http://one.example"]);
        let [queue, instantiate, run, _] = &call.parts[..] else { panic!("{:?}", call.parts) };
        assert_eq!((queue.start + queue.took, instantiate.start + instantiate.took), (instantiate.start, run.start));
    }
}
