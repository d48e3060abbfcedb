//! The server's figures for Prometheus: a page at an address of its own. Must not hold: counters;
//! each part of the server has its own.
//!
//! Labels are the names of a tool and its component, and words of a fixed set. None comes from a
//! caller. Tools that left the catalog leave the page, and a tool comes there with its first call.
//! As many tools as the manifest says have series of their own; the rest count together.
mod listen;
mod page;
mod plain;
mod process;
mod tools;

pub use listen::{BoundPage, ServedPage};
pub use page::{MetricSources, Page};
pub use tools::NamedTools;
