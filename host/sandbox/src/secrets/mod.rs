//! Values that a guest must not see, or not show. Their sources are the server's business.
//!
//! A value leaves this folder in three ways only. It goes into the requests that the manifest names
//! (`http`), and to the guest if the manifest exposes it. Its name appears in the marks of a
//! [`Redactor`].
//!
//! | file | holds |
//! |---|---|
//! | `live.rs` | values that change with time |
//! | `answer.rs` | everything that a sandbox process says, without values |
//! | `redact.rs` | values replaced by their names in one text |
//! | `scan.rs` | values found in a text, in any form |
//! | `patterns.rs`, `forms.rs` | the values that are looked for, and the forms of one |
//! | `escapes.rs`, `entities.rs` | escapes, and the names of HTML's characters |
//! | `lanes.rs` | base64 and hexadecimal digits |
pub(crate) mod answer;
mod entities;
mod escapes;
mod forms;
mod lanes;
mod live;
mod patterns;
mod redact;
mod scan;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use toolcell_policy::{Delivery, Secret};
use zeroize::Zeroizing;

pub use live::{CallLogins, HeldSecret, LiveSecret, NoValue, ValueInTime};
pub use redact::Redactor;

pub(crate) use forms::percent_query;
pub(crate) use redact::RedactedStream;

/// A shorter value and its encodings cannot be distinguished from other text, which is worth a
/// warning. Shorter values are searched only in plain form, and below four bytes not at all.
pub const SECRET_BYTES_SAFE: usize = 8;

/// Bytes of a secret's value: as much as a header may carry by default.
pub const SECRET_BYTES_MAX: usize = 32 << 10;

/// A secret's value. Wiped from memory when dropped; shown by no formatter.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Zeroizing<String>);

impl SecretValue {
    /// A value of 1 to [`SECRET_BYTES_MAX`] bytes without control characters.
    ///
    /// # Errors
    /// What is wrong with the value, to follow the secret's name. It does not contain the value.
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

    /// True if it is too short to be distinguished from other text.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.0.len() < SECRET_BYTES_SAFE
    }

    /// The value itself, for the place it was made for.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretValue(…)")
    }
}

/// The secrets of one tool, with their values.
#[derive(Default)]
pub(crate) struct Secrets {
    held: Vec<(Secret, HeldSecret)>,
    all: Redactor,
    injected: Redactor,
}

impl Secrets {
    pub(crate) fn new(held: Vec<(Secret, HeldSecret)>) -> Self {
        let all = Redactor::of(held.iter().map(|(secret, value)| (secret.name(), value)));
        let injected = held.iter().filter(|(secret, _)| !matches!(secret.delivery(), Delivery::Expose));
        let injected = Redactor::of(injected.map(|(secret, value)| (secret.name(), value)));
        Self { held, all, injected }
    }

    /// These secrets, with those that a call brings in place of its caller's.
    pub(crate) fn of_call(self: &Arc<Self>, logins: &CallLogins) -> Arc<Self> {
        if logins.is_empty() {
            return Arc::clone(self);
        }
        let brought = |held: &HeldSecret| match held {
            HeldSecret::OfCaller(login) => logins.of(login).map(|live| HeldSecret::Live(Arc::clone(live))),
            HeldSecret::Fixed(_) | HeldSecret::Live(_) => None,
        };
        let held = self.held.iter().map(|(secret, held)| {
            let held = brought(held).unwrap_or_else(|| held.clone());
            (secret.clone(), held)
        });
        Arc::new(Self::new(held.collect()))
    }

    /// Each with its value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Secret, &HeldSecret)> {
        self.held.iter().map(|(secret, value)| (secret, value))
    }

    /// Those too short to be distinguished from other text.
    pub(crate) fn short(&self) -> impl Iterator<Item = &Secret> {
        let is_short = |value: &HeldSecret| value.fixed().is_some_and(SecretValue::is_short);
        self.iter().filter(move |(_, value)| is_short(value)).map(|(secret, _)| secret)
    }

    /// Those that have no value now, with the reason.
    pub(crate) fn lacking(&self) -> impl Iterator<Item = (&Secret, String)> {
        self.iter().filter_map(|(secret, held)| match held {
            HeldSecret::Fixed(_) | HeldSecret::OfCaller(_) => None,
            HeldSecret::Live(live) => Some((secret, live.lack()?)),
        })
    }

    /// Finds every value.
    pub(crate) const fn redactor(&self) -> &Redactor {
        &self.all
    }

    /// Finds the values that guests never hold.
    pub(crate) const fn injected(&self) -> &Redactor {
        &self.injected
    }
}
