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
}

impl HeldSecret {
    /// The value that was read at load.
    pub(crate) const fn fixed(&self) -> Option<&SecretValue> {
        match self {
            Self::Fixed(value) => Some(value),
            Self::Live(_) => None,
        }
    }

    /// All values that may appear in a response.
    pub(crate) fn known(&self) -> Vec<SecretValue> {
        match self {
            Self::Fixed(value) => vec![value.clone()],
            Self::Live(live) => live.known(),
        }
    }

    pub(crate) fn version(&self) -> u64 {
        match self {
            Self::Fixed(_) => 0,
            Self::Live(live) => live.version(),
        }
    }
}
