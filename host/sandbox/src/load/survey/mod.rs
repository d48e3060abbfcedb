//! A look at a component's bytes before the engine sees them: everything in them is counted, in the unit that it costs.
//!
//! The engine's parser recurses, its types are expanded, and each instance is made as often as it is named: a few bytes can
//! stand for gigabytes. So nesting, counts, sizes, and what instantiation comes to are bounded here first, by a pass that
//! builds nothing. Must not hold: how anything is compiled, or judgement on what is merely invalid (that is the engine's).
mod code;
mod evaluation;
mod item;
mod ledger;
mod module;
mod reading;
mod scope;
mod types;

use ledger::Ledger;
pub(crate) use ledger::Refusal;
pub use ledger::{COMPONENT_BYTES_MAX, Excess, LoadBound};
use module::Parts;

use crate::engine::TABLE_ELEMENTS;

/// Bytes of the host's own records up to which an instance is made anywhere, also on a thread with other duties: most
/// components have less than a tenth of it.
const LIGHT_HOST_BYTES: u64 = 64 << 10;
/// Bytes that instantiation copies, up to which it is light: about 100 µs at most.
const LIGHT_COPIED_BYTES: u64 = 1 << 20;
/// Core instances up to which instantiation is light: each takes a few microseconds.
const LIGHT_INSTANCES: u64 = 16;

/// Records that the adapter for WASI preview 1 brings with it: three core instances and their trampolines. An estimate, rounded up.
const ADAPTER_HOST_BYTES: u64 = 16 << 10;

/// What one instance of a component takes of the host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Survey {
    parts: Parts,
}

impl Survey {
    /// Counts everything but the code of functions. Linear in the bytes, but that what is instantiated again is counted again,
    /// up to the bounds.
    ///
    /// # Errors
    /// The first bound that does not hold, or where the bytes are broken.
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut ledger = Ledger::default();
        let parts = reading::survey(bytes, &mut ledger)?;
        Ok(Self { parts })
    }

    /// The same of a module that is a program, which the adapter makes a component of.
    ///
    /// # Errors
    /// As [`Survey::of`].
    pub(crate) fn of_program(module: &[u8]) -> Result<Self, Refusal> {
        let mut survey = Self::of(module)?;
        survey.parts.host_bytes = survey.parts.host_bytes.saturating_add(ADAPTER_HOST_BYTES);
        Ok(survey)
    }

    /// Counts what compiling each function costs. Reads all code: only where it is compiled next.
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
