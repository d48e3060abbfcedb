//! The bounds on the parts of a component, and the sums that are held to them.
use toolcell_policy::{INSTANCES_MAX, MEMORIES_MAX, TABLES_MAX};
use toolcell_wall::load::COMPONENT_BYTES_MAX;
use toolcell_wall::load::cost::WAITING_PARTS_MAX;
use toolcell_wall::load::facts::GuestEngine;
use wasmparser::BinaryReaderError;

use crate::engine::INSTANCE_BYTES_MAX;

/// A bound on the parts of a component. No setting changes it: each is far above what language
/// runtimes need. A component that exceeds one costs the host memory or time that its bytes do not
/// show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadBound {
    /// Components, and types of components and instances, nested in each other. The parser recurses
    /// for each.
    Nesting,
    /// Types nested in each other. The engine recurses for each.
    TypeDepth,
    /// Entries of the component model's sections.
    Items,
    /// Imports and exports of the outermost component. Reports name each.
    ExternNames,
    /// Parts of types and of instances, counted at each use, since each use copies them.
    Expansion,
    /// Steps of instantiation, counted each time they are taken.
    Steps,
    /// Component instances nested in each other.
    InstanceDepth,
    /// Component instances.
    ComponentInstances,
    /// Component instances with functions of their own, in a component that uses the async part of
    /// the component model.
    WaitingParts,
    /// Core instances of one call.
    Instances,
    /// Memories of one call.
    Memories,
    /// Tables of one call.
    Tables,
    /// Functions between components and the host. Each is compiled.
    Trampolines,
    /// Bytes of the host's own records of one instance.
    HostBytes,
    /// Bytes that one instantiation copies.
    CopiedBytes,
    /// Core modules.
    Modules,
    /// Types of core modules.
    CoreTypes,
    /// Imports of core modules, counted once per instance.
    CoreImports,
    /// Functions of core modules.
    Functions,
    /// Globals of core modules.
    Globals,
    /// Exports of core modules.
    CoreExports,
    /// Element segments.
    ElementSegments,
    /// Elements of all element segments.
    Elements,
    /// Data segments.
    DataSegments,
    /// Blocks nested in each other in one function.
    BlockDepth,
    /// Compiler work of one function.
    FunctionWork,
    /// Compiler work of all functions.
    Work,
}

/// Units of work that any component may cost the compiler, whatever its size: some four seconds.
const WORK_MAX: u64 = 20_000_000;
/// Additional units for each byte. Tools in Rust need six, the runtime of JavaScript seven.
const WORK_PER_BYTE: u64 = 64;

/// The number of bounds.
const BOUNDS: usize = LoadBound::Work as usize + 1;

impl LoadBound {
    /// The largest allowed number; for [`Self::Work`], in a file of no bytes.
    #[must_use]
    pub const fn max(self) -> u64 {
        self.facts().0
    }

    /// The counted things, in the plural.
    #[must_use]
    pub const fn counted(self) -> &'static str {
        self.facts().1
    }

    const fn facts(self) -> (u64, &'static str) {
        match self {
            // Composed components have three or four.
            Self::Nesting => (32, "components and types inside each other"),
            // The engine's own bound, which it checks only after it has recursed.
            Self::TypeDepth => (100, "types inside each other"),
            // Tools in Rust have some 700. Runtimes linked from many modules name each symbol.
            Self::Items => (300_000, "entries in its component sections"),
            // A component in one language has some thirty. They are read before it is compiled.
            Self::ExternNames => (10_000, "imports and exports"),
            // Tools in Rust have some 10,000. Each takes the engine some 200 bytes.
            Self::Expansion => (1_000_000, "parts of types and instances, counted wherever they are used"),
            Self::Steps => (600_000, "steps of instantiation"),
            // Each is a stack frame here.
            Self::InstanceDepth => (32, "component instances inside each other"),
            // Each has tables of handles of its own.
            Self::ComponentInstances => (500, "component instances"),
            // Each may wait on a stack of its own.
            Self::WaitingParts => (
                WAITING_PARTS_MAX as u64,
                "component instances with functions of their own, in a component with async functions",
            ),
            Self::Instances => (INSTANCES_MAX as u64, "core instances"),
            Self::Memories => (MEMORIES_MAX as u64, "memories"),
            Self::Tables => (TABLES_MAX as u64, "tables"),
            // All of WASI has some 300. Compiling one takes about 0.1 ms.
            Self::Trampolines => (10_000, "functions between components and the host"),
            // The pool allows an instance half of it, counted exactly; the count here is rounded
            // up. The bound is the same outside of the pool.
            Self::HostBytes => (
                2 * INSTANCE_BYTES_MAX as u64,
                "bytes of the host's memory for one instance (globals, imports, function references)",
            ),
            // As much as a file can hold once: some 50 ms.
            Self::CopiedBytes => (COMPONENT_BYTES_MAX, "bytes copied for one instance (data and element segments)"),
            // The engine's own bound is per component; this one is for all of them together.
            Self::Modules => (1_000, "core modules"),
            // The largest runtimes have some thousand.
            Self::CoreTypes => (100_000, "core types"),
            Self::CoreImports => (200_000, "core imports"),
            // CPython has 15,000, Clang as WebAssembly some 120,000. Each takes memory until all
            // are compiled.
            Self::Functions => (200_000, "functions"),
            // More than fit into a slot of the pool.
            Self::Globals => (100_000, "globals"),
            Self::CoreExports => (200_000, "core exports"),
            Self::ElementSegments => (20_000, "element segments"),
            Self::Elements => (2_000_000, "elements of segments"),
            // The engine's own bound is per module; this one is for all of them together.
            Self::DataSegments => (100_000, "data segments"),
            // C compilers make one block for each case of a `switch`, Go's compiler one for each
            // resume point.
            Self::BlockDepth => (20_000, "blocks inside each other in one function"),
            // The largest function of tools in Rust comes to 130,000. A unit takes the compiler
            // some 50 bytes and 0.2 µs.
            Self::FunctionWork => (
                8_000_000,
                "units of work for the compiler in one function (its blocks, times the values that live in them)",
            ),
            Self::Work => (WORK_MAX, "units of work for the compiler"),
        }
    }

    /// True if every call has a limit on this count, too.
    pub(crate) const fn is_of_calls(self) -> bool {
        matches!(self, Self::Instances | Self::Memories | Self::Tables)
    }
}

/// A bound that a component exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many {}: at least {found}, at most {max} are allowed (at byte {offset})", .bound.counted())]
pub struct Excess {
    /// The bound.
    pub bound: LoadBound,
    /// The count at which it was found; there may be more.
    pub found: u64,
    /// The largest allowed number.
    pub max: u64,
    /// The offset in the file.
    pub offset: usize,
}

/// Why a component is not passed to the engine.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// It has too many parts.
    Excess(Excess),
    /// It is malformed.
    Broken(String),
}

impl From<Excess> for Refusal {
    fn from(excess: Excess) -> Self {
        Self::Excess(excess)
    }
}

impl From<BinaryReaderError> for Refusal {
    fn from(error: BinaryReaderError) -> Self {
        Self::Broken(error.to_string())
    }
}

/// Refuses a reference to something that does not exist.
pub(crate) fn missing(what: &str, offset: usize) -> Refusal {
    Refusal::Broken(format!("{what} (at offset {offset:#x})"))
}

/// The sums, one for each bound.
pub(crate) struct Ledger {
    sums: [u64; BOUNDS],
    /// The offset in the file that is being read.
    pub(crate) offset: usize,
    /// The engine that the component needs, as far as it was read.
    pub(crate) engine: GuestEngine,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { sums: [0; BOUNDS], offset: 0, engine: GuestEngine::Sync }
    }
}

impl Ledger {
    /// Adds to a sum.
    pub(crate) fn add(&mut self, bound: LoadBound, count: u64) -> Result<(), Excess> {
        let Some(sum) = self.sums.get_mut(bound as usize) else { return Ok(()) };
        *sum = sum.saturating_add(count);
        let found = *sum;
        self.holds(bound, found)
    }

    /// Adds compiler work of a component of this size.
    pub(crate) fn work(&mut self, units: u64, bytes: usize) -> Result<(), Excess> {
        let Some(sum) = self.sums.get_mut(LoadBound::Work as usize) else { return Ok(()) };
        *sum = sum.saturating_add(units);
        let found = *sum;
        self.within(LoadBound::Work, found, WORK_MAX.saturating_add(WORK_PER_BYTE.saturating_mul(bytes as u64)))
    }

    /// Checks a number against a bound without adding it to a sum.
    pub(crate) fn holds(&self, bound: LoadBound, found: u64) -> Result<(), Excess> {
        self.within(bound, found, bound.max())
    }

    fn within(&self, bound: LoadBound, found: u64, max: u64) -> Result<(), Excess> {
        #[cfg(feature = "drill")]
        if crate::drill::loads_are_open() {
            return Ok(());
        }
        if found > max { Err(Excess { bound, found, max, offset: self.offset }) } else { Ok(()) }
    }

    /// Resets a sum.
    pub(crate) fn begin(&mut self, bound: LoadBound) {
        if let Some(sum) = self.sums.get_mut(bound as usize) {
            *sum = 0;
        }
    }
}
