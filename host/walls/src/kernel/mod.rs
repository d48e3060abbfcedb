//! The walls that the kernel puts around a process. Must not hold: links, or how processes start.
//!
//! A process calls [`enter`] before it starts a thread, makes ready what it will run, and then
//! calls [`Entered::seal`]. Between the two it may map compiled code; after the second it may not.
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
pub use elsewhere::{Entered, close_inherited, enter};
#[cfg(target_os = "linux")]
pub use linux::{Entered, close_inherited, enter};
pub use probe::{PROBE_TIME_MAX, ProbeError, answer_probe, probe};
pub use report::{Report, ReportError, State};
pub use rights::{Access, Folder, Rights};
pub use wall::Wall;
