//! The bus of one process.
use async_trait::async_trait;

use super::{Bus, MESSAGE_BYTES_MAX, PublishError, Subscribers, Subscription};

/// The bus of one process.
#[derive(Debug, Default)]
pub struct EmbeddedBus {
    subscribers: Subscribers,
}

#[async_trait]
impl Bus for EmbeddedBus {
    async fn publish(&self, channel: &str, message: &[u8]) -> Result<(), PublishError> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(PublishError::TooLong(message.len()));
        }
        self.subscribers.pass_on(channel, message);
        Ok(())
    }

    fn subscribe(&self, channels: &[&str]) -> Subscription {
        let subscription = self.subscribers.add(channels);
        self.subscribers.begin(|_| true);
        subscription
    }
}
