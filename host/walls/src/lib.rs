//! Walls between the host and untrusted code: processes that can be killed, the rights that the
//! kernel leaves them, and the link between the host and such a process.
//!
//! Must not hold: what the frames on a link mean, components, policy, MCP.
//!
//! | folder | holds |
//! |---|---|
//! | `background.rs` | threads that give way to others |
//! | `door.rs` | frames for one operation that the host does for such a process |
//! | `drill.rs` | the power of native code, in builds for tests |
//! | `folder/` | folders that are handed over, counted by both sides |
//! | `kernel/` | the walls a process puts around itself, and which of them a machine gives |
//! | `link/` | frames and descriptors between two processes |
//! | `memory_file.rs` | files in memory that one process writes and others read |
//! | `process/` | starting a process of this same binary, and ending it for certain |

pub mod background;
pub mod door;
#[cfg(all(feature = "drill", target_os = "linux"))]
pub mod drill;
pub mod folder;
pub mod kernel;
pub mod link;
pub mod memory_file;
pub mod process;
