//! Limits: what a call, a load, a connection or a caller may use up. Each is declared once, in a
//! table of this folder or next to its section, with its key, unit, bounds, default, example and
//! reason. Must not hold: how a manifest is read, or how a limit is enforced.

mod call;
mod declare;
mod load;
mod places;

pub(crate) use call::LIMITS;
pub use call::{Limit, Limits};
pub(crate) use declare::{limits, spec};
pub(crate) use load::LOAD;
pub use load::{LoadLimit, LoadLimits};
pub use places::LimitPlace;
pub(crate) use places::{LimitPlaces, PlacedLimits};

use std::time::Duration;

use crate::quantity::{Rate, show_bytes, show_count, show_millis};

/// Core instances of one call. The largest language runtime measured (CPython) has 14. A component
/// made of thousands of tiny ones costs the host memory that the limit on memory does not see. No
/// key changes it: each call's slot in the pool of instances has this shape.
pub const INSTANCES_MAX: usize = 64;

/// Linear memories of one call: as many as instances.
pub const MEMORIES_MAX: usize = 64;

/// Tables of one call: as instances, each of which may have several.
pub const TABLES_MAX: usize = 128;

/// The form of a limit in a manifest, and what its number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A plain integer.
    Count,
    /// A size with its unit, `"64MiB"`; the number is bytes.
    Bytes,
    /// A duration with its unit, `"30s"`; the number is milliseconds.
    Millis,
    /// This many in a time, `"600/min"`; the number is [`Rate::number`].
    Rate,
}

/// The declaration of one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// The manifest key.
    pub key: &'static str,
    /// The form in the manifest, and what `default`, `min` and `max` count.
    pub unit: Unit,
    /// The value that holds where no manifest line says otherwise.
    pub default: u64,
    /// The least that can be set.
    pub min: u64,
    /// The most that can be set.
    pub max: u64,
    /// The thing that is counted, and why the default and the bounds are what they are.
    pub reason: &'static str,
}

/// A value outside the bounds of its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} must be between {} and {}", spec.key, spec.show(spec.min), spec.show(spec.max))]
pub struct OutOfRange {
    /// The limit.
    pub spec: &'static Spec,
    /// The value that was asked for, in the limit's unit.
    pub value: u64,
}

impl Spec {
    /// One value of this limit as a manifest would write it, without quotes: `10_000`, `64MiB`,
    /// `1m30s`, `600/min`.
    #[must_use]
    pub fn show(&self, value: u64) -> String {
        match self.unit {
            Unit::Count => show_count(value),
            Unit::Bytes => show_bytes(value),
            Unit::Millis => show_millis(value),
            Unit::Rate => Rate::of_number(value).to_string(),
        }
    }

    /// The value, if it lies within the bounds.
    ///
    /// # Errors
    /// [`OutOfRange`] where it does not.
    pub fn check(&'static self, value: u64) -> Result<u64, OutOfRange> {
        if value < self.min || value > self.max {
            return Err(OutOfRange { spec: self, value });
        }
        Ok(value)
    }
}

/// The type in which the host uses a limit's number.
pub(crate) trait FromNumber {
    /// The number in this type.
    fn from_number(number: u64) -> Self;
}

impl FromNumber for u64 {
    #[inline]
    fn from_number(number: u64) -> Self {
        number
    }
}

impl FromNumber for usize {
    /// The bounds of every count fit a `usize` of any machine wasmtime runs on.
    #[inline]
    fn from_number(number: u64) -> Self {
        Self::try_from(number).unwrap_or(Self::MAX)
    }
}

impl FromNumber for Duration {
    #[inline]
    fn from_number(number: u64) -> Self {
        Self::from_millis(number)
    }
}

impl FromNumber for Rate {
    #[inline]
    fn from_number(number: u64) -> Self {
        Self::of_number(number)
    }
}
