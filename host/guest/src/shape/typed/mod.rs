//! Functions over WIT values as tools: their types, JSON Schemas, descriptions and the conversion
//! both ways.
//!
//! | file | holds |
//! |---|---|
//! | `exports.rs` | the functions that a component exports for models |
//! | `functions.rs`, `names.rs` | those that become tools, their names, and calling them |
//! | `ty.rs`, `fields.rs`, `path.rs` | types as JSON can carry them; objects; places in a value |
//! | `decode.rs`, `encode.rs` | JSON → values, and back |
//! | `streams.rs` | streams and futures in results, read to their end |
//! | `schema.rs`, `weight.rs` | types → JSON Schema, and its size before it is written |
//! | `listing.rs`, `describe.rs` | functions as listed tools, and the text that wins |
//! | `texts.rs`, `wit.rs`, `section.rs` | texts: by their names, of `.wit` files, in a component |
mod decode;
mod describe;
mod encode;
mod exports;
mod fields;
mod functions;
mod listing;
mod names;
mod path;
mod schema;
mod section;
mod streams;
mod texts;
mod ty;
mod weight;
mod wit;

pub use describe::Descriptions;
pub(crate) use exports::{READERS, is_of_runtime, left_out_all};
pub(crate) use functions::TypedFunctions;
pub use section::annotate;
pub use texts::WitTexts;
pub use wit::WitError;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests;
