//! The walls that the kernel puts around a process. Must not hold: links, or how processes start.
//!
//! A process calls [`enter`] before it starts a thread, prepares what it will run, and then calls
//! [`Entered::seal`]. Between the two it may map compiled code; after the second it may not.
//!
//! | file | holds |
//! |---|---|
//! | `wall.rs` | the walls by name |
//! | `report.rs` | which of them stand |
//! | `rights.rs` | the rights that they leave |
//! | `probe.rs` | which of them a machine gives |
//! | `linux/` | how each is built |
//! | `elsewhere.rs` | other systems, which give none |

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;
mod probe;
mod report;
mod rights;
mod wall;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{
    Entered, close_inherited, end_on_abort, enter, free_large_blocks, has_address_space, heap_bytes, keep_descriptors,
    trim_heap,
};
#[cfg(target_os = "linux")]
pub use linux::{
    Entered, close_inherited, end_on_abort, enter, free_large_blocks, has_address_space, heap_bytes, keep_descriptors,
    trim_heap,
};
#[cfg(target_os = "linux")]
pub(crate) use linux::{FirstProcess, start_first};
pub use probe::{PROBE_TIME_MAX, ProbeError, answer_probe, probe};
pub use report::{Report, ReportError, WallState};
pub use rights::{Access, Folder, Rights};
pub use wall::Wall;

/// The variable with the reason why a process has no namespace of process ids of its own.
pub(crate) const IDS_REFUSED: &str = "TOOLCELL_PROCESS_IDS_REFUSED";

/// The exit code of a process that aborted but could not end by a signal: 128 and the number of the
/// signal, as in a shell.
pub(crate) const ABORTED: i32 = 128 + 6;

/// The score by which the kernel chooses processes to end when memory runs out: the highest. A
/// process may always raise its own, and only root may lower it again.
pub(crate) const ENDS_FIRST: &str = "1000";
