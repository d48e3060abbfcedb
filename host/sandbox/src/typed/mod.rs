//! Functions over WIT values as tools: their types, JSON Schemas and the conversion both ways.
mod decode;
mod encode;
mod functions;
mod path;
mod schema;
mod ty;

pub use functions::LeftOut;
pub(crate) use functions::{Functions, NoFunctionDocs};

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests;
