//! Secrets whose value changes with time, such as the access tokens of a login.
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::SecretValue;

/// There is no value, and the operator knows why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoValue;

/// A value, once it is available.
pub type ValueInTime<'a> = Pin<Box<dyn Future<Output = Result<SecretValue, NoValue>> + Send + 'a>>;

/// A secret whose value changes with time. Each request that carries it asks for the value.
pub trait LiveSecret: Send + Sync {
    /// The value for a request that is sent now. Dropping the future does not affect others that
    /// wait for it.
    fn value(&self) -> ValueInTime<'_>;

    /// A number that grows with each change of [`LiveSecret::known`].
    fn version(&self) -> u64;

    /// The values so far, newest first: all that a server may still send back.
    fn known(&self) -> Vec<SecretValue>;

    /// Why there is no value now, in one sentence without a full stop. Asked at load.
    fn lack(&self) -> Option<String>;
}

/// A secret's value, or the way to get it.
#[derive(Clone)]
pub enum HeldSecret {
    /// It was read at load.
    Fixed(SecretValue),
    /// It changes.
    Live(Arc<dyn LiveSecret>),
    /// Each caller has one, from the login of this name: a call brings its own.
    OfCaller(Arc<str>),
}

/// The secrets that one call brings, by the names of their logins: those of its caller alone.
#[derive(Clone, Default)]
pub struct CallLogins(Vec<(Arc<str>, Arc<dyn LiveSecret>)>);

impl CallLogins {
    /// Adds the caller's secret from the login of this name.
    pub fn add(&mut self, login: &str, secret: Arc<dyn LiveSecret>) {
        self.0.push((login.into(), secret));
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn of(&self, login: &str) -> Option<&Arc<dyn LiveSecret>> {
        self.0.iter().find(|(name, _)| &**name == login).map(|(_, secret)| secret)
    }
}

impl HeldSecret {
    /// The value that was read at load.
    pub(crate) const fn fixed(&self) -> Option<&SecretValue> {
        match self {
            Self::Fixed(value) => Some(value),
            Self::Live(_) | Self::OfCaller(_) => None,
        }
    }

    /// All values that may appear in a response.
    pub(crate) fn known(&self) -> Vec<SecretValue> {
        match self {
            Self::Fixed(value) => vec![value.clone()],
            Self::Live(live) => live.known(),
            // A call searches for its caller's.
            Self::OfCaller(_) => Vec::new(),
        }
    }

    pub(crate) fn version(&self) -> u64 {
        match self {
            Self::Fixed(_) | Self::OfCaller(_) => 0,
            Self::Live(live) => live.version(),
        }
    }
}
