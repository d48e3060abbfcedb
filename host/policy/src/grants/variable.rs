//! Environment variables. Must not hold: the host's environment.

use crate::diagnostic::Span;

/// One environment variable of the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvVar {
    pub(crate) name: String,
    pub(crate) source: EnvSource,
    pub(crate) span: Span,
}

/// Where its value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvSource {
    /// The manifest.
    Text(String),
    /// The host's variable of this name; a load error where that is missing.
    Host(String),
}

impl EnvVar {
    /// The name the guest sees.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the value comes from.
    #[must_use]
    pub const fn source(&self) -> &EnvSource {
        &self.source
    }

    /// Where the manifest says so.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span.clone()
    }
}
