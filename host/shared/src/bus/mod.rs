//! The bus: messages between replicas. Must not hold: what they mean.
mod embedded;
mod subscription;

use std::fmt;

use async_trait::async_trait;

use crate::Away;
pub use embedded::EmbeddedBus;
pub use subscription::{News, Subscription};
pub(crate) use subscription::{Subscribers, as_wire};

/// Longest message, in bytes. 2 MiB: the longest answer of a client twice.
pub const MESSAGE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Carries messages between replicas. A subscriber gets each message once, in the order of its
/// sender. Messages are not stored: a subscriber gets only what is published while it listens, and
/// [`News::Listening`] says that it may have missed some.
#[async_trait]
pub trait Bus: fmt::Debug + Send + Sync {
    /// Publishes a message to all subscribers of this channel, this process included.
    ///
    /// # Errors
    ///
    /// [`PublishError`]. The message may have arrived all the same.
    async fn publish(&self, channel: &str, message: &[u8]) -> Result<(), PublishError>;

    /// Subscribes to these channels, until the subscription is dropped. Must be called within a
    /// tokio runtime.
    fn subscribe(&self, channels: &[&str]) -> Subscription;
}

/// A message was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// It is too long.
    #[error("the message has {0} bytes, and at most {MESSAGE_BYTES_MAX} are sent")]
    TooLong(usize),
    /// The server could not be reached.
    #[error(transparent)]
    Away(#[from] Away),
}
