//! What a registry knows its users by.
use std::fmt;

use zeroize::Zeroizing;

/// Something that a registry knows its users by.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A name and a password or token in its place.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: Zeroizing<String>,
    },
    /// A token that the server of tokens takes for others (`refresh_token`).
    IdentityToken(Zeroizing<String>),
    /// A token that the registry itself takes.
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
