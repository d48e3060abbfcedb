//! Processes of this binary that can be killed. Must not hold: what is said to them.
//!
//! | file | holds |
//! |---|---|
//! | `command.rs` | what is started, with which arguments and environment |
//! | `starter.rs` | the thread that starts processes, reads their last words and reaps them |
//! | `handle.rs` | one process: killing it, its end, its memory |
//! | `words.rs` | the last bytes of what a process wrote to standard error |

mod command;
mod handle;
mod starter;
mod words;

pub use command::Command;
pub use handle::{End, Memory, Process};
pub use starter::Starter;
pub use words::LAST_WORDS_BYTES_MAX;
