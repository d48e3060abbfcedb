//! Regular expressions: their memory, their cost per byte, and the keyword `pattern`.
//!
//! In general, matching takes time in proportion to bytes × states of the automaton. Most patterns
//! have a small deterministic automaton, for which a byte costs one step, whatever the text.
//! Walking the automaton at load tells which.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind, meta};
use serde_json::{Map, Value};

use super::meter::{pay, stop};
use super::view::{Metered, MeteredValue};

/// Compiled size of one pattern, in bytes: five letters of any script, one after the other, or 200
/// characters of any kind.
pub(super) const COMPILED_BYTES_MAX: usize = 256 * 1024;

/// Bytes of its deterministic automaton that a pattern may cache, for each thread that matches. As
/// much is walked at load.
pub(super) const CACHE_BYTES: usize = 512 * 1024;

/// How many threads are assumed to match one pattern at once: each has a cache.
const CACHES: usize = 2;

/// Most letter classes in one pattern, such as `\s`. The validator expands each and parses the
/// pattern again for it.
const LETTERS_MAX: usize = 64;

/// Classes in brackets in one pattern, such as `[a-z]`. The pattern of a 64-bit number has 76.
const BRACKETS_MAX: usize = 256;

/// Longest pattern that is applied, in bytes. Matching is linear, compiling is not free.
const APPLIED_BYTES_MAX: usize = 1_024;

/// Most steps of walking one automaton at load, in transitions. A pattern for a date takes 200, one
/// for any letters 20,000.
const WALK_MAX: usize = 100_000;

/// Most steps of all walks of one schema. Further patterns count as slow as possible.
pub(super) const WALKS_MAX: usize = 400_000;

/// Steps per byte in a deterministic automaton, prefilters included.
const BYTE_STEPS: u64 = 6;

/// Steps per byte and state in any other automaton.
const STATE_STEPS: u64 = 20;

/// Steps of starting a match.
const BEGIN_STEPS: u64 = 100;

/// The problem of a pattern that is none, and how to correct the most frequent ones.
pub(super) const NOT_RUN: &str = "is not a regular expression that this host can run";
pub(super) const NOT_RUN_HINT: &str = "patterns are those of JavaScript: ^ and $ in place of \\A and \\Z";

/// One compiled pattern.
pub(super) struct Pattern {
    regex: meta::Regex,
    /// As written in the schema.
    text: Box<str>,
    /// Steps per byte of a text.
    pub(super) byte_steps: u64,
    /// Memory, with its caches, in bytes.
    pub(super) bytes: usize,
}

/// Why a pattern is not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternRefusal {
    /// It is not a pattern.
    NotRun,
    /// It has look-around or a back-reference, see [`is_irregular`].
    Irregular,
    /// It is longer than [`APPLIED_BYTES_MAX`], has more than [`LETTERS_MAX`] or [`BRACKETS_MAX`]
    /// classes, or compiles to more than [`COMPILED_BYTES_MAX`].
    Large,
}

impl Pattern {
    /// Compiles a pattern. `walks` is the remaining budget for walking automata.
    pub(super) fn compile(text: &str, walks: &mut usize) -> Result<Self, PatternRefusal> {
        if is_irregular(text) {
            return Err(PatternRefusal::Irregular);
        }
        let letters = text.as_bytes().windows(2).filter(|pair| is_class(pair)).count();
        let brackets = text.bytes().filter(|byte| *byte == b'[').count();
        if text.len() > APPLIED_BYTES_MAX || letters > LETTERS_MAX || brackets > BRACKETS_MAX {
            return Err(PatternRefusal::Large);
        }
        let translated = jsonschema_regex::to_rust_regex(text).map_err(|()| PatternRefusal::NotRun)?;
        let config = meta::Config::new().nfa_size_limit(Some(COMPILED_BYTES_MAX)).hybrid_cache_capacity(CACHE_BYTES);
        let built = meta::Builder::new().configure(config).build(&translated);
        let regex = built.map_err(|error| match error.size_limit() {
            Some(_) => PatternRefusal::Large,
            None => PatternRefusal::NotRun,
        })?;
        let (states, walked) = walk(&translated, walks);
        let (byte_steps, cache_bytes) = match walked {
            Some(bytes) => (BYTE_STEPS, bytes),
            None => (STATE_STEPS.saturating_mul(states as u64), CACHE_BYTES),
        };
        let bytes = regex.memory_usage().saturating_add(cache_bytes.saturating_mul(CACHES));
        Ok(Self { regex, text: text.into(), byte_steps, bytes })
    }

    /// True if a text matches. Also true if the steps are used up, or the engine fails.
    fn fits(&self, text: &str) -> bool {
        if !pay(BEGIN_STEPS.saturating_add(self.byte_steps.saturating_mul(text.len() as u64))) {
            return true;
        }
        // The engine has panicked on some patterns (rust-lang/regex#1344).
        catch_unwind(AssertUnwindSafe(|| self.regex.is_match(text))).unwrap_or_else(|_| {
            stop();
            true
        })
    }
}

/// True if a pattern is valid ECMAScript but not a regular language: it has look-around or
/// back-references. Matching it may take exponential time, so it is not applied.
pub(crate) fn is_irregular(text: &str) -> bool {
    text.len() <= APPLIED_BYTES_MAX && has_look_around(text) && jsonschema_regex::is_valid_ecma_regex(text)
}

/// True if a pattern has look-around or a back-reference.
fn has_look_around(text: &str) -> bool {
    let mut in_class = false;
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'\\' => {
                let refers = matches!(after, [b'1'..=b'9', ..] | [b'k', b'<', ..]);
                if refers && !in_class {
                    return true;
                }
                rest = after.get(1..).unwrap_or_default();
            }
            b'[' => in_class = true,
            b']' => in_class = false,
            b'(' if !in_class && [&b"?="[..], b"?!", b"?<=", b"?<!"].iter().any(|group| after.starts_with(group)) => {
                return true;
            }
            _ => {}
        }
    }
    false
}

/// True if this may be a class; after another backslash it is not.
fn is_class(pair: &[u8]) -> bool {
    matches!(pair, [b'\\', b'd' | b'D' | b'w' | b'W' | b's' | b'S' | b'p' | b'P'])
}

/// The number of states of a pattern's automaton, and the memory of its whole deterministic one, if
/// that is small.
fn walk(translated: &str, walks: &mut usize) -> (usize, Option<usize>) {
    let build = |kind: MatchKind, reverse: bool| {
        let config = DFA::config().match_kind(kind).cache_capacity(CACHE_BYTES).minimum_cache_clear_count(Some(0));
        let thompson = thompson::Config::new()
            .reverse(reverse)
            .nfa_size_limit(Some(2 * COMPILED_BYTES_MAX))
            .which_captures(thompson::WhichCaptures::None);
        DFA::builder().configure(config.unicode_word_boundary(true)).thompson(thompson).build(translated).ok()
    };
    // An automaton that was not built counts as large as possible.
    let unknown = COMPILED_BYTES_MAX / size_of::<usize>();
    let Some(forward) = build(MatchKind::LeftmostFirst, false) else { return (unknown, None) };
    let states = forward.get_nfa().states().len();
    let Some(backward) = build(MatchKind::All, true) else { return (states, None) };
    let states = states.max(backward.get_nfa().states().len());
    let bytes = Walk::of(&forward, Anchored::No, walks)
        .and_then(|bytes| Some(bytes.saturating_add(Walk::of(&backward, Anchored::Yes, walks)?)));
    (states, bytes)
}

/// A walk through all states of a deterministic automaton.
struct Walk<'d> {
    dfa: &'d DFA,
    cache: Cache,
    seen: HashSet<LazyStateID>,
    ahead: Vec<LazyStateID>,
    steps: usize,
}

impl<'d> Walk<'d> {
    /// The memory of all states; `None` if they do not fit, or if the automaton quits at some byte.
    fn of(dfa: &'d DFA, anchored: Anchored, walks: &mut usize) -> Option<usize> {
        let steps = WALK_MAX.min(*walks);
        let mut walk = Self { dfa, cache: dfa.create_cache(), seen: HashSet::new(), ahead: Vec::new(), steps };
        let whole = walk.all(anchored);
        *walks -= steps - walk.steps;
        whole.map(|()| walk.cache.memory_usage())
    }

    fn all(&mut self, anchored: Anchored) -> Option<()> {
        let dfa = self.dfa;
        let looks = dfa.get_nfa().look_set_any();
        if looks.contains_word_unicode() {
            return None;
        }
        // One byte of each kind that look-behind distinguishes.
        let behind: &[Option<u8>] =
            if looks.is_empty() { &[None] } else { &[None, Some(b'\n'), Some(b'\r'), Some(b'a'), Some(b'-')] };
        for behind in behind {
            let config = start::Config::new().anchored(anchored).look_behind(*behind);
            let id = dfa.start_state(&mut self.cache, &config).ok()?;
            self.reach(id)?;
        }
        let bytes: Vec<u8> = dfa.byte_classes().representatives(..).filter_map(|unit| unit.as_u8()).collect();
        while let Some(id) = self.ahead.pop() {
            for byte in &bytes {
                self.steps = self.steps.checked_sub(1)?;
                let next = dfa.next_state(&mut self.cache, id, *byte).ok()?;
                self.reach(next)?;
            }
            let end = dfa.next_eoi_state(&mut self.cache, id).ok()?;
            self.reach(end)?;
        }
        Some(())
    }

    fn reach(&mut self, id: LazyStateID) -> Option<()> {
        if id.is_quit() || id.is_unknown() {
            return None;
        }
        if !id.is_dead() && self.seen.insert(id) {
            self.ahead.push(id);
        }
        Some(())
    }
}

impl<'i> Keyword<'i, Metered> for Arc<Pattern> {
    fn validate(&self, instance: MeteredValue<'i>) -> Result<(), ValidationError<'i>> {
        if Keyword::is_valid(self, instance) {
            return Ok(());
        }
        // A failure is reported with a copy of the text.
        pay(instance.0.as_str().map_or(0, |text| text.len() as u64));
        Err(ValidationError::custom(format!("must match the pattern {}", self.text)))
    }

    fn is_valid(&self, instance: MeteredValue<'i>) -> bool {
        instance.0.as_str().is_none_or(|text| self.fits(text))
    }
}

/// The result of compiling a keyword.
type MadeKeyword<'a> = Result<Box<dyn for<'i> Keyword<'i, Metered>>, ValidationError<'a>>;

/// The keyword `pattern` with these compiled patterns.
pub(super) fn keyword(
    patterns: HashMap<String, Arc<Pattern>>,
) -> impl for<'a> Fn(&'a Map<String, Value>, &'a Value, Location) -> MadeKeyword<'a> + Send + Sync + 'static {
    move |_: &Map<String, Value>, text: &Value, _: Location| {
        let pattern = text.as_str().and_then(|text| patterns.get(text));
        match pattern {
            Some(pattern) => Ok(Box::new(Arc::clone(pattern))),
            None => Err(ValidationError::custom("is a pattern that was not checked")),
        }
    }
}
