//! The walls on Linux. Must not hold: walls' names and reports.
//!
//! | file | holds |
//! |---|---|
//! | `enter.rs` | the order in which they are built |
//! | `namespaces.rs` | namespaces, and the empty root folder |
//! | `capabilities.rs` | giving up capabilities |
//! | `folders.rs` | Landlock |
//! | `limits.rs` | limits of memory, files and dumps |
//! | `filter/` | the system calls that are left |
//! | `refusal.rs` | the kernel's answers |
//! | `syscalls.rs` | system calls that no safe crate of the tree offers |

mod capabilities;
mod enter;
mod filter;
mod folders;
mod limits;
mod namespaces;
mod refusal;
mod syscalls;

pub use enter::{Entered, enter};
pub(crate) use syscalls::{FirstProcess, start_first};
pub use syscalls::{
    close_inherited, end_on_abort, free_large_blocks, has_address_space, heap_bytes, keep_descriptors, trim_heap,
};
