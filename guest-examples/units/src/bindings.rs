//! The world of `wit/units.wit`, generated. Holds nothing written by hand.
#![allow(missing_docs, unsafe_code, rust_2018_idioms, clippy::all)]

wit_bindgen::generate!({ path: "wit", world: "units" });

pub use self::exports::examples::units::conversion::{Dimension, Guest, Mismatch, Problem, Quantity, Rounding, Unit};

export!(Units with_types_in self);
use super::Units;
