//! The server's figures, as Prometheus reads them: a page at an address of its own. Must not hold: what is counted, or
//! where; each thing counts itself.
//!
//! Labels are a tool's name, its component's, and words of a fixed set. Nothing that a caller chose is among them, and
//! what the catalog lists no more is not on the page: there are as many series as the manifest has tools for.
mod listen;
mod page;
mod process;
mod requests;

pub use listen::{Bound, Listening};
pub use page::{Page, Sources};
pub use requests::Requests;
