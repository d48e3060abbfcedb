//! The server's figures for Prometheus: a page at an address of its own. Must not hold: counters;
//! each part of the server has its own.
//!
//! Labels are the names of a tool and its component, and words of a fixed set, and never come from
//! a caller. A tool appears with its first call, and disappears when it leaves the catalog. The
//! manifest says how many tools have their own series; the rest are counted together.
mod listen;
mod page;
mod plain;
mod process;
mod tools;

pub use listen::{BoundPage, public_fault};
pub use page::{MetricSources, Page};
pub use tools::NamedTools;
