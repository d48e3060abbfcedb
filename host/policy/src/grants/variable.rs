//! Environment variables. Must not hold: the host's environment.

use crate::diagnostic::Span;
use crate::settings::accessors;

accessors! {
    /// One environment variable of the guest.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct EnvVar {
        /// The name the guest sees.
        pub(crate) name: String => &str,
        /// Where the value comes from.
        pub(crate) source: EnvSource => &EnvSource,
        /// Where the manifest says so.
        pub(crate) span: Span => Span,
    }
}

/// Where its value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvSource {
    /// The manifest.
    Text(String),
    /// The host's variable of this name; a load error where that is missing.
    Host(String),
}
