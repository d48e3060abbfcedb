//! Bounds that no manifest sets: they are the shape of what runs a call. Must not hold: limits with a key.

/// Core instances of one call. The largest language runtime measured (CPython) has 14; a component made of thousands of
/// tiny ones costs the host memory that the limit on memory does not see. Fixed, because each call's place in the pool
/// of instances has this shape.
pub const INSTANCES_MAX: usize = 64;

/// Linear memories of one call: as instances.
pub const MEMORIES_MAX: usize = 64;

/// Tables of one call: as instances, each of which may have several.
pub const TABLES_MAX: usize = 128;
