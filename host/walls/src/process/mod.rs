//! Processes of this binary that can be killed. Must not hold: the messages to them.
//!
//! | file | holds |
//! |---|---|
//! | `command.rs` | what is started, with which arguments and environment |
//! | `first.rs` | starting it in a namespace of process ids of its own |
//! | `child.rs` | a child: its number, its pipe, waiting for it |
//! | `starter.rs` | the thread that starts processes, reads their last words and reaps them |
//! | `handle.rs` | one process: killing it, its end, its memory |
//! | `together.rs` | the memory of all processes together |
//! | `thread.rs` | a thread instead of a process, where there are no walls |
//! | `words.rs` | the last bytes of what a process wrote to standard error |

mod child;
mod command;
#[cfg(target_os = "linux")]
mod first;
mod handle;
mod starter;
mod thread;
mod together;
mod words;

pub(crate) use child::Child;
pub use command::Command;
pub use handle::{End, Memory, Process};
pub use starter::Starter;
pub use thread::{Program, Threads};
pub use words::LAST_WORDS_BYTES_MAX;
