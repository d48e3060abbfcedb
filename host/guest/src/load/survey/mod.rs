//! Reads a component's bytes before the engine does, and counts everything in them, in units of its
//! cost.
//!
//! The engine's parser recurses, its types are expanded, and each instance is made as often as it
//! is named. A few bytes can expand to gigabytes. So nesting, counts, sizes and the cost of
//! instantiation are checked here first, by a pass that builds nothing.
//!
//! Must not hold: compiling, or refusing components that are merely invalid; the engine does that.
//!
//! | file | holds |
//! |---|---|
//! | `reading.rs` | the pass over the bytes |
//! | `ledger.rs` | the bounds, and the sums that are held to them |
//! | `scope.rs`, `item.rs` | nesting, and the items of an index space |
//! | `types.rs`, `module.rs`, `code.rs` | types, core modules, and code of functions |
//! | `references.rs` | the functions of a core module that references may call |
//! | `canonical.rs` | functions between components and the host, and the built-ins of the component model |
//! | `evaluation.rs` | instantiation, played through |
mod canonical;
mod code;
mod evaluation;
mod item;
mod ledger;
mod module;
mod reading;
mod references;
mod scope;
mod types;

use ledger::Ledger;
pub(crate) use ledger::Refusal;
pub use ledger::{Excess, LoadBound};
use toolcell_wall::load::cost::InstanceCost;
use toolcell_wall::load::facts::GuestEngine;

/// Records that the adapter for WASI preview 1 brings with it: three core instances and their
/// trampolines. An estimate, rounded up.
const ADAPTER_HOST_BYTES: u64 = 16 << 10;

/// What is known of a component before the engine reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SurveyedComponent {
    /// What one instance of it costs the host.
    pub(crate) cost: InstanceCost,
    /// The engine that it needs.
    pub(crate) engine: GuestEngine,
}

/// Counts everything of a component except the code of its functions. The time is linear in the
/// bytes, except that an instance that is made again is counted again, up to the bounds.
///
/// # Errors
/// The first bound that is exceeded, or where the bytes are malformed.
pub(crate) fn component(bytes: &[u8]) -> Result<SurveyedComponent, Refusal> {
    let mut ledger = Ledger::default();
    let parts = reading::survey(bytes, &mut ledger)?;
    if ledger.engine == GuestEngine::Async {
        ledger.holds(LoadBound::WaitingParts, parts.waiting_parts)?;
    }
    Ok(SurveyedComponent { cost: parts.into(), engine: ledger.engine })
}

/// Counts a module that is a program, which the adapter turns into a component.
///
/// # Errors
/// As [`component`].
pub(crate) fn program(module: &[u8]) -> Result<SurveyedComponent, Refusal> {
    let mut surveyed = component(module)?;
    surveyed.cost.host_bytes = surveyed.cost.host_bytes.saturating_add(ADAPTER_HOST_BYTES);
    Ok(surveyed)
}

/// Counts the cost of compiling each function. It reads all code, so it runs only before compiling.
///
/// # Errors
/// As [`component`].
pub(crate) fn check_code(bytes: &[u8]) -> Result<(), Refusal> {
    code::check(bytes, &mut Ledger::default())
}

#[cfg(test)]
mod tests;
