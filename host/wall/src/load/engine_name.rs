//! The name of the two engines. It covers everything that compiled code depends on, except for the
//! one of them that it is for.
use serde::{Deserialize, Serialize};

/// The name of a program's two engines, a digest. Code for one of them works in the same one of
/// every pair with this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineName([u8; 32]);

impl EngineName {
    /// The engine with this digest.
    #[must_use]
    pub const fn new(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// The digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}
