//! The bytes that callers may send in a minute: a longer request takes longer to read. Must not
//! hold: bytes that wait.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::quota::Owner;

/// Time in which a whole allowance comes back.
const WHOLE_AFTER: Duration = Duration::from_secs(60);

/// Owners that something is known of before those whose allowance is whole again are forgotten.
const OWNERS_MAX: usize = 10_000;

/// Bytes that each caller may send, all at once or little by little. They come back evenly.
pub(super) struct SentBytes {
    per_minute: usize,
    by_owner: Mutex<HashMap<Owner, Instant>>,
}

impl SentBytes {
    pub(super) fn new(per_minute: usize) -> Self {
        Self { per_minute: per_minute.max(1), by_owner: Mutex::default() }
    }

    /// Takes these bytes from the owner's allowance. Something longer than the whole of it passes
    /// where that is whole.
    ///
    /// # Errors
    /// Less is left. The time after which it is enough.
    pub(super) fn take(&self, owner: &Owner, bytes: usize) -> Result<(), Duration> {
        if !owner.has_share() {
            return Ok(());
        }
        let now = Instant::now();
        let mut by_owner = self.by_owner.lock().unwrap_or_else(PoisonError::into_inner);
        if by_owner.len() >= OWNERS_MAX {
            by_owner.retain(|_, whole| *whole > now);
        }
        let whole = by_owner.get(owner).copied().filter(|whole| *whole > now).unwrap_or(now);
        let cost = self.cost(bytes);
        let then = whole + cost;
        let late = then.saturating_duration_since(now).saturating_sub(WHOLE_AFTER);
        if !late.is_zero() {
            return Err(late);
        }
        by_owner.insert(owner.clone(), then);
        Ok(())
    }

    /// The time in which these bytes come back; never more than all of them do.
    fn cost(&self, bytes: usize) -> Duration {
        let part = WHOLE_AFTER.as_nanos() * bytes.min(self.per_minute) as u128 / self.per_minute as u128;
        u64::try_from(part).map_or(WHOLE_AFTER, Duration::from_nanos)
    }

    /// The bytes of a whole allowance.
    pub(super) const fn per_minute(&self) -> usize {
        self.per_minute
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> Owner {
        Owner::Caller(name.into())
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_come_back_evenly_and_to_nobody_else() {
        let sent = SentBytes::new(600);
        let (ann, bob) = (caller("ann"), caller("bob"));
        assert_eq!(sent.take(&ann, 500), Ok(()));
        assert_eq!(sent.take(&ann, 101), Err(Duration::from_millis(100)));
        assert_eq!(sent.take(&ann, 100), Ok(()));
        assert_eq!(sent.take(&ann, 10), Err(Duration::from_secs(1)));
        assert_eq!(sent.take(&bob, 600), Ok(()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(sent.take(&ann, 10), Ok(()));
        assert_eq!(sent.take(&ann, 1), Err(Duration::from_millis(100)));
        assert_eq!(sent.take(&Owner::Machine, usize::MAX), Ok(()), "it has no share");
    }

    #[tokio::test(start_paused = true)]
    async fn one_body_longer_than_all_passes_alone() {
        let sent = SentBytes::new(600);
        let ann = caller("ann");
        assert_eq!(sent.take(&ann, 5_000), Ok(()));
        assert_eq!(sent.take(&ann, 1), Err(Duration::from_millis(100)));
        tokio::time::advance(WHOLE_AFTER).await;
        assert_eq!(sent.take(&ann, 5_000), Ok(()));
    }
}
