//! The server as an OAuth 2.1 resource (2026-07-28, "Authorization"): checking tokens, and
//! challenging clients. Must not hold: fetching keys.

mod keys;
mod resource;
mod signature;
mod token;

pub use keys::{KeySet, KeySetError};
pub use resource::ProtectedResource;
pub use token::{ALGORITHMS, Issuer, TOKEN_BYTES_MAX, TokenFault, UnverifiedToken, VerifiedClaims};
