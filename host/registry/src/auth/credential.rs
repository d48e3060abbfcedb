//! Credentials for a registry.
use std::fmt;

use zeroize::Zeroizing;

/// A credential for a registry.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A name, and a password or a token that stands in for one.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: Zeroizing<String>,
    },
    /// A token that the token server exchanges for others (`refresh_token`).
    IdentityToken(Zeroizing<String>),
    /// A token that the registry itself accepts.
    RegistryToken(Zeroizing<String>),
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password { .. } => "Password(…)",
            Self::IdentityToken(_) => "IdentityToken(…)",
            Self::RegistryToken(_) => "RegistryToken(…)",
        })
    }
}
