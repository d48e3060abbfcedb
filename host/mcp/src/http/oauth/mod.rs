//! The server as a resource of OAuth 2.1 (2026-07-28, "Authorization"): which tokens hold, and what clients are told that
//! show none that does. Must not hold: how keys are fetched, or when.

mod keys;
mod resource;
mod signature;
mod token;

pub use keys::{KeySet, KeySetError};
pub use resource::Resource;
pub use token::{ALGORITHMS, Issuer, TOKEN_BYTES_MAX, TokenFault, UnverifiedToken, Verified};
