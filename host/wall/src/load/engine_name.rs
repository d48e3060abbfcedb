//! The name of an engine. It covers everything that compiled code depends on.
use serde::{Deserialize, Serialize};

/// The name of an engine, a digest. Code of one engine works in every engine with the same name.
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
