//! Values that a guest must not see, or not show. Where they come from is the composition root's business.
use std::fmt;

use zeroize::Zeroizing;

/// Bytes of a secret's value: as much as a header may carry by default.
pub const SECRET_BYTES_MAX: usize = 32 << 10;

/// A secret's value. Wiped from memory when dropped; shown by no formatter.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Zeroizing<String>);

impl SecretValue {
    /// A value of 1 to [`SECRET_BYTES_MAX`] bytes without control characters.
    ///
    /// # Errors
    /// What is wrong with it, to stand behind the secret's name; the value is no part of the text.
    pub fn new(value: Zeroizing<String>) -> Result<Self, &'static str> {
        if value.is_empty() {
            return Err("is empty");
        }
        if value.len() > SECRET_BYTES_MAX {
            return Err("is longer than 32 KiB");
        }
        if value.chars().any(char::is_control) {
            return Err("has control characters");
        }
        Ok(Self(value))
    }

    /// The value itself, for the place it was made for.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretValue(…)")
    }
}
