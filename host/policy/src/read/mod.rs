//! Walks the parsed TOML and collects every problem on the way. Must not hold: TOML syntax (see the
//! toml crate), or the later meaning of the values.

pub(crate) mod arguments;
pub(crate) mod callers;
pub(crate) mod component;
pub(crate) mod enclosure;
pub(crate) mod input;
pub(crate) mod limits;
pub(crate) mod metadata;
pub(crate) mod paths;
mod program;
mod scratch;
mod section;
pub(crate) mod texts;

pub(crate) use section::{Entry, Problems, Section};
