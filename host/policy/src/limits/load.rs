//! The limits of loading a component, before any call.

use std::time::Duration;

use super::limits;
use crate::quantity::{GIB, HOUR, KIB, MIB, MINUTE};
use crate::table::{Keys, table};

table! {
    /// Limits of loading a component. The most specific wins: built-in default, `defaults.load`,
    /// the component's. Past one, the component is an error of the manifest, and nothing is served.
    /// Listing its tools counts as a call under its `limits`.
    pub(crate) LOAD "Load" {}
    and Keys::These(&LoadLimit::KEYS);
    other names { "size" => "component_size", "time" => "compile_time", "timeout" => "compile_time" }
}

limits! {
    /// Every limit of loading one component, resolved: built-in default < `defaults.load` < the
    /// component's.
    LoadLimit, LoadLimits;
    /// The component's file.
    ComponentSize component_bytes: u64 = "component_size" Bytes { min: KIB, default: 128 * MIB, max: 128 * MIB },
        like ["8MiB"],
        "Compiling takes memory and time in proportion. The largest language runtime measured (CPython) makes 18 MB.";
    /// Wall clock of compiling it. With walls the process that compiles is then killed. Without
    /// them a compiler cannot be stopped: its work is thrown away once it is done.
    CompileTime compile_time: Duration = "compile_time" Millis { min: 1, default: 2 * MINUTE, max: HOUR },
        like ["30s"],
        "Compiling takes about a second per megabyte. A component that takes longer is refused.";
    /// Memory of each process that loads it, held by the kernel. Nothing holds it without walls.
    CompileMemory compile_memory_bytes: u64 = "compile_memory" Bytes { min: 64 * MIB, default: 4 * GIB, max: 256 * GIB },
        like ["1GiB"],
        "The largest components measured take half a GiB on two cores. Each further core adds what one function takes.";
    /// Tools it may list.
    Tools tools: usize = "tools" Count { min: 1, default: 1_000, max: 10_000 }, like [50],
        "A model cannot choose among more, and each costs a compiled schema.";
    /// All that it says of one tool (name, title, description, schemas, icons and meta).
    Definition definition_bytes: usize = "definition" Bytes { min: 64, default: 256 * KIB, max: 4 * MIB },
        like ["16KiB"],
        "Every client lists it and every model reads it. The default holds two of the largest schemas there may be.";
}
