//! Functions over WIT values as tools: their types, JSON Schemas, descriptions and the conversion
//! both ways.
mod decode;
mod describe;
mod encode;
mod fields;
mod functions;
mod listing;
mod names;
mod path;
mod schema;
mod section;
mod texts;
mod ty;
mod weight;
mod wit;

pub use describe::Descriptions;
pub(crate) use functions::{Functions, left_out_all};
pub use section::annotate;
pub use texts::WitTexts;
pub use wit::WitError;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests;
