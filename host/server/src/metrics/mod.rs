//! The server's figures for Prometheus: a page at an address of its own. Must not hold: counters;
//! each part of the server has its own.
//!
//! Labels are the names of a tool and its component, and words of a fixed set. None comes from a
//! caller. Tools that left the catalog leave the page. So the manifest's tools bound the number of
//! series.
mod listen;
mod page;
mod process;
mod requests;

pub use listen::{BoundPage, ServedPage};
pub use page::{MetricSources, Page};
pub use requests::RequestCounters;
