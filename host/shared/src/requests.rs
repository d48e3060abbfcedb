//! Idempotent requests: their bounds, and the state of one process in memory.
use std::collections::HashMap;
use std::time::Instant;

use crate::digest::digest;
use crate::{Begun, Claim};

/// Bytes of an answer that is kept: a text that a model reads, or a small picture.
pub const REQUEST_ANSWER_BYTES_MAX: usize = 256 << 10;

/// Most requests of one caller at once. At the default rate of a tool, 600 a minute, a client may
/// give each call a key for seven minutes.
pub const OF_CALLER_MAX: usize = 4_096;

/// Bytes of the answers of one caller. Calls that are running may exceed it.
pub const OF_CALLER_BYTES_MAX: usize = 16 << 20;

/// Most requests of all callers in one process.
const ALL_MAX: usize = 16_384;

/// Bytes of all answers in one process. Calls that are running may exceed it.
const ALL_BYTES_MAX: usize = 64 << 20;

/// A request with a key.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Who sends it.
    pub caller: &'a str,
    /// Its key, unique for the caller.
    pub name: &'a str,
    /// What it asks for. A request with the same key and another content is a conflict.
    pub what: &'a str,
}

/// The requests of one process.
#[derive(Debug, Default)]
pub struct Requests {
    callers: HashMap<String, RequestsOfCaller>,
    all: RequestsRoom,
}

#[derive(Debug, Default)]
struct RequestsOfCaller {
    known: HashMap<String, KnownRequest>,
    used: RequestsRoom,
}

/// The room that requests take.
#[derive(Clone, Copy, Debug, Default)]
struct RequestsRoom {
    requests: usize,
    answer_bytes: usize,
}

#[derive(Debug)]
struct KnownRequest {
    /// Digest of what it asks for.
    what: String,
    until: Instant,
    state: KnownState,
}

#[derive(Debug)]
enum KnownState {
    /// Who runs it.
    Runs(String),
    Ended(String),
}

impl Requests {
    /// Begins this request, unless it has begun already.
    pub fn begin(&mut self, request: &Request<'_>, holder: String, until: Instant) -> Begun {
        let what = digest(request.what);
        let now = Instant::now();
        let known = self.callers.get(request.caller).and_then(|of_caller| of_caller.known.get(request.name));
        if let Some(known) = known.filter(|known| known.until > now) {
            return match &known.state {
                _ if known.what != what => Begun::Other,
                KnownState::Runs(_) => Begun::Runs,
                KnownState::Ended(answer) => Begun::Ended(answer.clone()),
            };
        }
        if known.is_some() || !self.has_room(request.caller) {
            self.forget(now);
        }
        if !self.has_room(request.caller) {
            return Begun::NoRoom;
        }
        let known = KnownRequest { what, until, state: KnownState::Runs(holder.clone()) };
        let of_caller = self.callers.entry(request.caller.to_owned()).or_default();
        of_caller.known.insert(request.name.to_owned(), known);
        of_caller.used.requests += 1;
        self.all.requests += 1;
        Begun::Now(Claim { caller: request.caller.to_owned(), name: request.name.to_owned(), holder })
    }

    /// Keeps the answer to a request until this time. Without an answer the request is removed.
    pub fn end(&mut self, claim: &Claim, answer: &str, until: Instant) {
        let Some(of_caller) = self.callers.get_mut(&claim.caller) else { return };
        let Some(known) = of_caller.known.get_mut(&claim.name) else { return };
        if !matches!(&known.state, KnownState::Runs(holder) if *holder == claim.holder) {
            return;
        }
        if answer.is_empty() {
            of_caller.known.remove(&claim.name);
            of_caller.used.requests -= 1;
            self.all.requests -= 1;
        } else {
            (known.state, known.until) = (KnownState::Ended(answer.to_owned()), until);
            of_caller.used.answer_bytes += answer.len();
            self.all.answer_bytes += answer.len();
        }
    }

    fn has_room(&self, caller: &str) -> bool {
        let used = self.callers.get(caller).map(|of_caller| of_caller.used).unwrap_or_default();
        let has_room = |used: RequestsRoom, most, bytes_max| used.requests < most && used.answer_bytes < bytes_max;
        has_room(used, OF_CALLER_MAX, OF_CALLER_BYTES_MAX) && has_room(self.all, ALL_MAX, ALL_BYTES_MAX)
    }

    /// Removes expired requests.
    fn forget(&mut self, now: Instant) {
        let mut all = RequestsRoom::default();
        self.callers.retain(|_, of_caller| {
            of_caller.known.retain(|_, known| known.until > now);
            let answer_bytes = of_caller.known.values().map(KnownRequest::answer_bytes).sum();
            of_caller.used = RequestsRoom { requests: of_caller.known.len(), answer_bytes };
            all.requests += of_caller.used.requests;
            all.answer_bytes += of_caller.used.answer_bytes;
            !of_caller.known.is_empty()
        });
        self.all = all;
    }
}

impl KnownRequest {
    fn answer_bytes(&self) -> usize {
        match &self.state {
            KnownState::Runs(_) => 0,
            KnownState::Ended(answer) => answer.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn begin(requests: &mut Requests, caller: &str, name: usize) -> Begun {
        let name = name.to_string();
        requests.begin(&Request { caller, name: &name, what: "" }, "me".to_owned(), Instant::now() + MINUTE)
    }

    #[test]
    fn one_caller_fills_its_own_room_and_no_other_s() {
        let mut requests = Requests::default();
        for name in 0..OF_CALLER_MAX {
            assert!(matches!(begin(&mut requests, "ann", name), Begun::Now(_)), "{name}");
        }
        assert_eq!(begin(&mut requests, "ann", OF_CALLER_MAX), Begun::NoRoom);
        assert_eq!(begin(&mut requests, "ann", 7), Begun::Runs);
        assert!(matches!(begin(&mut requests, "ben", 7), Begun::Now(_)));
    }

    #[test]
    fn answers_are_bounded_for_a_caller_and_in_all_and_are_forgotten() {
        let mut requests = Requests::default();
        let answer = "x".repeat(REQUEST_ANSWER_BYTES_MAX);
        let of_caller = OF_CALLER_BYTES_MAX / REQUEST_ANSWER_BYTES_MAX;
        let fill = |requests: &mut Requests, caller: &str, time: Duration| {
            for name in 0..of_caller {
                let Begun::Now(claim) = begin(requests, caller, name) else { panic!("there is room") };
                requests.end(&claim, &answer, Instant::now() + time);
            }
        };
        // All answers to one caller expire at once.
        for (caller, time) in [("ann", MINUTE), ("ben", Duration::ZERO), ("cid", MINUTE), ("dan", MINUTE)] {
            fill(&mut requests, caller, time);
        }
        assert_eq!(requests.all.answer_bytes, ALL_BYTES_MAX);
        assert_eq!(begin(&mut requests, "ann", of_caller), Begun::NoRoom);
        assert_eq!(requests.all.answer_bytes, 3 * OF_CALLER_BYTES_MAX);
        fill(&mut requests, "eve", MINUTE);
        assert_eq!(begin(&mut requests, "fay", 0), Begun::NoRoom);
        assert_eq!(begin(&mut requests, "ann", 7), Begun::Ended(answer));
    }

    #[test]
    fn a_large_question_is_not_kept() {
        let mut requests = Requests::default();
        let large = "x".repeat(1 << 20);
        let request = Request { caller: "ann", name: "a", what: &large };
        assert!(matches!(requests.begin(&request, "me".to_owned(), Instant::now() + MINUTE), Begun::Now(_)));
        assert!(format!("{requests:?}").len() < 1_000);
        assert_eq!(requests.begin(&request, "me".to_owned(), Instant::now()), Begun::Runs);
        let other = Request { what: "y", ..request };
        assert_eq!(requests.begin(&other, "me".to_owned(), Instant::now()), Begun::Other);
    }
}
