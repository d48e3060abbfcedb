//! A look at a component's bytes before the engine sees them: everything in them is counted, in the
//! unit of its cost.
//!
//! The engine's parser recurses, its types are expanded, and each instance is made as often as it
//! is named. A few bytes can stand for gigabytes. So nesting, counts, sizes and the cost of
//! instantiation are bounded here first, by a pass that builds nothing.
//!
//! Must not hold: compiling, or judgement on merely invalid components, which is the engine's.
mod code;
mod evaluation;
mod item;
mod ledger;
mod module;
mod reading;
mod scope;
mod types;

use serde::{Deserialize, Serialize};

use ledger::Ledger;
pub(crate) use ledger::Refusal;
pub use ledger::{COMPONENT_BYTES_MAX, Excess, LoadBound};
use module::Parts;

use crate::engine::TABLE_ELEMENTS;

/// Bytes of the host's own records up to which an instance is made anywhere, also on a thread with
/// other duties. Most components have less than a tenth of it.
const LIGHT_HOST_BYTES: u64 = 64 << 10;
/// Bytes that instantiation copies, up to which it is light: about 100 µs at most.
const LIGHT_COPIED_BYTES: u64 = 1 << 20;
/// Core instances up to which instantiation is light: each takes a few microseconds.
const LIGHT_INSTANCES: u64 = 16;

/// Records that the adapter for WASI preview 1 brings with it: three core instances and their
/// trampolines. An estimate, rounded up.
const ADAPTER_HOST_BYTES: u64 = 16 << 10;

/// The host's cost of one instance of a component.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Survey {
    parts: Parts,
}

impl Survey {
    /// Counts everything but the code of functions. The time is linear in the bytes. Only an
    /// instance that is made again is counted again, up to the bounds.
    ///
    /// # Errors
    /// The first bound that does not hold, or the place where the bytes are broken.
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut ledger = Ledger::default();
        let parts = reading::survey(bytes, &mut ledger)?;
        Ok(Self { parts })
    }

    /// Counts a module that is a program, which the adapter makes a component of.
    ///
    /// # Errors
    /// As [`Survey::of`].
    pub(crate) fn of_program(module: &[u8]) -> Result<Self, Refusal> {
        let mut survey = Self::of(module)?;
        survey.parts.host_bytes = survey.parts.host_bytes.saturating_add(ADAPTER_HOST_BYTES);
        Ok(survey)
    }

    /// Counts the cost of compiling each function. It reads all code, so it runs only before
    /// compiling.
    ///
    /// # Errors
    /// As [`Survey::of`].
    pub(crate) fn check_code(bytes: &[u8]) -> Result<(), Refusal> {
        code::check(bytes, &mut Ledger::default())
    }

    /// True if each of its tables fits a slot of the pool.
    pub(crate) fn fits_pool(&self) -> bool {
        self.parts.table_elements_max <= TABLE_ELEMENTS as u64
    }

    /// Linear memories of one instance.
    pub(crate) fn memories(&self) -> u64 {
        self.parts.memories
    }

    /// Bytes of the host's own memory that one instance takes, beside its memories and tables.
    pub(crate) fn host_bytes(&self) -> u64 {
        self.parts.host_bytes
    }

    /// True if making an instance takes so little that any thread may do it.
    pub(crate) fn is_light(&self) -> bool {
        self.parts.host_bytes <= LIGHT_HOST_BYTES
            && self.parts.copied_bytes <= LIGHT_COPIED_BYTES
            && self.parts.instances <= LIGHT_INSTANCES
    }
}

#[cfg(test)]
mod tests;
