//! The cost of a check: steps, counted while it runs.
//!
//! The validator cannot be stopped. It sees a value through accessors that count ([`super::view`]).
//! Once the steps are used up, these show an empty value, and it ends. A step is about a nanosecond
//! of one core.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Steps of one check, about a tenth of a second. The largest honest value, 1 MiB of small numbers,
/// takes a third of it.
pub(super) const STEPS_MAX: u64 = 100_000_000;

/// Most steps for finding *every* failing place, and for the bytes of their problems.
pub(super) const DETAIL_STEPS_MAX: u64 = 20_000_000;

/// Steps between two polls of the clock and the cancellation: about a millisecond, like a guest's
/// tick.
const SLICE_STEPS: u64 = 1_000_000;

/// Tells whether the caller of a check has given up. Asked about once a millisecond.
pub trait GivenUp: Send + Sync {
    /// True once the caller has given up.
    fn is_given_up(&self) -> bool;
}

/// How long the caller of a check waits.
#[derive(Clone, Default)]
pub struct Patience {
    /// The deadline. `None`: only the check's own limit.
    pub until: Option<Instant>,
    /// Tells whether the caller has given up. `None`: it never does.
    pub given_up: Option<Arc<dyn GivenUp>>,
}

impl fmt::Debug for Patience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patience").field("until", &self.until).finish_non_exhaustive()
    }
}

impl Patience {
    /// True if the caller no longer waits.
    fn is_over(&self) -> bool {
        self.given_up.as_ref().is_some_and(|given_up| given_up.is_given_up())
            || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Why a check has no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Its steps are used up.
    Spent,
    /// The caller has given up.
    GivenUp,
}

/// The costs of one schema, in steps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    /// Each visit of a member or an element.
    pub(super) value: u64,
    /// Each byte of a member's name: all patterns for names are matched against it.
    pub(super) name_byte: u64,
    /// Each byte of a text that is read as a whole, for formats and encodings.
    pub(super) text_byte: u64,
    /// Reading a text takes time that is quadratic in its length: `"format": "regex"`.
    pub(super) text_squared: bool,
    pub(super) problem: u64,
    /// Each visit of a number, if any is divided: `multipleOf`.
    pub(super) divided: Option<u64>,
    /// Problems are reported with a copy of the value: `unevaluatedItems`.
    pub(super) problems_copy: bool,
}

thread_local! {
    /// Steps left in this slice. 0 outside of checks: unpaid work is not done.
    static LEFT: Cell<u64> = const { Cell::new(0) };
    /// Steps left after this slice.
    static SPARE: Cell<u64> = const { Cell::new(0) };
    static RATES: Cell<Rates> = const { Cell::new(Rates {
        value: 0, name_byte: 0, text_byte: 0, text_squared: false, problem: 0, divided: None,
        problems_copy: false,
    }) };
    static STOPPED: Cell<Option<Stop>> = const { Cell::new(None) };
    static PATIENCE: RefCell<Patience> = const { RefCell::new(Patience { until: None, given_up: None }) };
}

/// The steps of a check, and how long its caller waits.
#[derive(Debug)]
pub(super) struct Meter<'p> {
    pub(super) steps: u64,
    pub(super) rates: Rates,
    pub(super) patience: &'p Patience,
}

impl Meter<'_> {
    /// Runs `check` with the remaining steps, and subtracts those it used. Checks never nest.
    ///
    /// # Errors
    /// [`Stop`] if it was not finished: its result means nothing.
    pub(super) fn run<T>(&mut self, check: impl FnOnce() -> T) -> Result<T, Stop> {
        if self.patience.is_over() {
            return Err(Stop::GivenUp);
        }
        let _end = MeterReset;
        LEFT.set(self.steps.min(SLICE_STEPS));
        SPARE.set(self.steps.saturating_sub(SLICE_STEPS));
        RATES.set(self.rates);
        STOPPED.set(None);
        PATIENCE.replace(self.patience.clone());
        let done = check();
        self.steps = LEFT.get().saturating_add(SPARE.get());
        match STOPPED.get() {
            Some(stop) => Err(stop),
            None => Ok(done),
        }
    }
}

/// Resets the meter, after a panic too.
struct MeterReset;

impl Drop for MeterReset {
    fn drop(&mut self) {
        LEFT.set(0);
        SPARE.set(0);
        PATIENCE.replace(Patience::default());
    }
}

/// The costs of the schema that is applied.
pub(super) fn rates() -> Rates {
    RATES.get()
}

/// Pays for work before it is done. False: it must not be done.
#[inline]
pub(super) fn pay(steps: u64) -> bool {
    let left = LEFT.get();
    match left.checked_sub(steps) {
        Some(rest) => {
            LEFT.set(rest);
            true
        }
        None => pay_from_spare(steps),
    }
}

#[cold]
fn pay_from_spare(steps: u64) -> bool {
    if STOPPED.get().is_some() {
        return false;
    }
    let all = LEFT.get().saturating_add(SPARE.get());
    let over = PATIENCE.with_borrow(Patience::is_over);
    match all.checked_sub(steps).filter(|_| !over) {
        Some(rest) => {
            LEFT.set(rest.min(SLICE_STEPS));
            SPARE.set(rest.saturating_sub(SLICE_STEPS));
            true
        }
        None => {
            LEFT.set(0);
            SPARE.set(0);
            STOPPED.set(Some(if over { Stop::GivenUp } else { Stop::Spent }));
            false
        }
    }
}

/// Ends the check after an internal failure.
pub(super) fn stop() {
    LEFT.set(0);
    SPARE.set(0);
    STOPPED.set(Some(Stop::Spent));
}
