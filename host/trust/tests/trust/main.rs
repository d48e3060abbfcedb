//! Verifies evidence by the real cosign, by Sigstore's public instance and by a mock of it.
//!
//! The folder `fixtures` has a page about where each file comes from.
//!
//! Promise: only components of named signers run.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod accepted;
mod attacks;
mod bounds;
mod evidence;
mod public;
mod signing;
