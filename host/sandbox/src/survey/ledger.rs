//! The bounds of what a component may be made of, and the sums that are held to them.
use toolcell_policy::{INSTANCES_MAX, MEMORIES_MAX, TABLES_MAX};
use wasmparser_engine::BinaryReaderError;

use crate::engine::COMPONENT_BYTES_MAX;
use crate::slots::INSTANCE_BYTES_MAX;

/// A bound on what a component is made of. None can be set: each is far above what language runtimes come to, and what is
/// past it costs the host memory or time that its bytes do not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadBound {
    /// Components, and types of components and instances, inside each other. The parser recurses for each.
    Nesting,
    /// Types that hold one another. The engine recurses for each.
    TypeDepth,
    /// Entries of the component model's sections.
    Items,
    /// Parts of types and of instances, counted wherever they stand: each is copied there.
    Expansion,
    /// Steps of instantiation, counted as often as they are taken.
    Steps,
    /// Component instances inside each other.
    InstanceDepth,
    /// Component instances.
    ComponentInstances,
    /// Core instances of one call.
    Instances,
    /// Memories of one call.
    Memories,
    /// Tables of one call.
    Tables,
    /// Functions between components and the host, each compiled.
    Trampolines,
    /// Bytes of the host's own records of one instance.
    HostBytes,
    /// Bytes that one instantiation copies.
    CopiedBytes,
    /// Core modules.
    Modules,
    /// Types of core modules.
    CoreTypes,
    /// Imports of core modules, counted for each instance.
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
    /// Blocks inside each other in one function.
    BlockDepth,
    /// Work that one function gives the compiler.
    FunctionWork,
    /// Work that all functions give the compiler.
    Work,
}

/// How many bounds there are.
const BOUNDS: usize = LoadBound::Work as usize + 1;

impl LoadBound {
    /// The most there may be.
    #[must_use]
    pub const fn max(self) -> u64 {
        match self {
            // Composed components have three or four.
            Self::Nesting => 32,
            // The engine's own bound, which it comes to after it has recursed.
            Self::TypeDepth => 100,
            // Components of interpreters have some 3,000.
            Self::Items => 100_000,
            // The same have some 20,000; each takes the engine some 200 bytes.
            Self::Expansion => 500_000,
            Self::Steps => 200_000,
            // Each is a frame of the thread's stack here.
            Self::InstanceDepth => 32,
            // Each has tables of handles of its own.
            Self::ComponentInstances => 500,
            Self::Instances => INSTANCES_MAX as u64,
            Self::Memories => MEMORIES_MAX as u64,
            Self::Tables => TABLES_MAX as u64,
            // All of WASI has some 300. Compiling one takes about 0.1 ms.
            Self::Trampolines => 10_000,
            // What a slot of the pool has room for; the same holds outside of the pool.
            Self::HostBytes => INSTANCE_BYTES_MAX as u64,
            // As much as a file may hold once: some 50 ms.
            Self::CopiedBytes => COMPONENT_BYTES_MAX,
            // The engine's own bound in one component; this is in all of them.
            Self::Modules => 1_000,
            // The largest runtimes have some thousand.
            Self::CoreTypes => 100_000,
            Self::CoreImports => 100_000,
            // CPython has 15,000, Clang made WebAssembly some 120,000. Each takes memory until all are compiled.
            Self::Functions => 200_000,
            // More than a slot of the pool has room for.
            Self::Globals => 100_000,
            Self::CoreExports => 200_000,
            Self::ElementSegments => 20_000,
            Self::Elements => 2_000_000,
            // The engine's own bound in one module; this is in all of them.
            Self::DataSegments => 100_000,
            // Compilers of C make one block for each case of a `switch`: interpreters have some hundred.
            Self::BlockDepth => 5_000,
            Self::FunctionWork => 30_000_000,
            Self::Work => 2_000_000_000,
        }
    }

    /// What is counted, in the plural.
    #[must_use]
    pub const fn counted(self) -> &'static str {
        match self {
            Self::Nesting => "components and types inside each other",
            Self::TypeDepth => "types inside each other",
            Self::Items => "entries in its component sections",
            Self::Expansion => "parts of types and instances, counted wherever they are used",
            Self::Steps => "steps of instantiation",
            Self::InstanceDepth => "component instances inside each other",
            Self::ComponentInstances => "component instances",
            Self::Instances => "core instances",
            Self::Memories => "memories",
            Self::Tables => "tables",
            Self::Trampolines => "functions between components and the host",
            Self::HostBytes => "bytes of the host's memory for one instance (globals, imports, function references)",
            Self::CopiedBytes => "bytes copied for one instance (data and element segments)",
            Self::Modules => "core modules",
            Self::CoreTypes => "core types",
            Self::CoreImports => "core imports",
            Self::Functions => "functions",
            Self::Globals => "globals",
            Self::CoreExports => "core exports",
            Self::ElementSegments => "element segments",
            Self::Elements => "elements of segments",
            Self::DataSegments => "data segments",
            Self::BlockDepth => "blocks inside each other in one function",
            Self::FunctionWork => "units of work for the compiler in one function (blocks × values that live in them)",
            Self::Work => "units of work for the compiler",
        }
    }

    /// Whether it is one of the counts that every call is held to as well.
    pub(crate) const fn is_of_calls(self) -> bool {
        matches!(self, Self::Instances | Self::Memories | Self::Tables)
    }
}

/// A bound that a component does not keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at least {found} {}, and {} may be (found at byte {offset})", .bound.counted(), .bound.max())]
pub struct Excess {
    /// Which.
    pub bound: LoadBound,
    /// How many were counted until it was clear: there may be more.
    pub found: u64,
    /// Where in the file that was.
    pub offset: usize,
}

/// Why a component is not handed to the engine.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// It is made of too much.
    Excess(Excess),
    /// Its bytes are none of a component.
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

/// What is referred to is not there.
pub(crate) fn missing(what: &str, offset: usize) -> Refusal {
    Refusal::Broken(format!("{what} (at offset {offset:#x})"))
}

/// Sums, one for each bound.
pub(crate) struct Ledger {
    sums: [u64; BOUNDS],
    /// Where in the file the reading is.
    pub(crate) offset: usize,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { sums: [0; BOUNDS], offset: 0 }
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

    /// Holds a number to a bound without adding it to anything.
    pub(crate) fn holds(&self, bound: LoadBound, found: u64) -> Result<(), Excess> {
        if found > bound.max() { Err(Excess { bound, found, offset: self.offset }) } else { Ok(()) }
    }

    /// The sum of a bound.
    pub(crate) fn sum(&self, bound: LoadBound) -> u64 {
        self.sums.get(bound as usize).copied().unwrap_or_default()
    }

    /// Begins a sum anew.
    pub(crate) fn begin(&mut self, bound: LoadBound) {
        if let Some(sum) = self.sums.get_mut(bound as usize) {
            *sum = 0;
        }
    }
}
