//! The bytes that callers may send in a minute: a longer request takes longer to read.
//!
//! Promise: costly requests leave others theirs.

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
        self.take_at(Instant::now(), owner, bytes)
    }

    fn take_at(&self, now: Instant, owner: &Owner, bytes: usize) -> Result<(), Duration> {
        if !owner.has_share() {
            return Ok(());
        }
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

    #[test]
    fn bytes_come_back_evenly_and_to_nobody_else() {
        let sent = SentBytes::new(600);
        let ann = caller("ann");
        let bob = caller("bob");
        let start = Instant::now();
        assert_eq!(sent.take_at(start, &ann, 500), Ok(()));
        assert_eq!(sent.take_at(start, &ann, 101), Err(Duration::from_millis(100)));
        assert_eq!(sent.take_at(start, &ann, 100), Ok(()));
        assert_eq!(sent.take_at(start, &ann, 10), Err(Duration::from_secs(1)));
        assert_eq!(sent.take_at(start, &bob, 600), Ok(()));
        let later = start + Duration::from_secs(1);
        assert_eq!(sent.take_at(later, &ann, 10), Ok(()));
        assert_eq!(sent.take_at(later, &ann, 1), Err(Duration::from_millis(100)));
        assert_eq!(sent.take_at(later, &Owner::Machine, usize::MAX), Ok(()), "it has no share");
    }

    #[test]
    fn one_body_longer_than_all_passes_alone() {
        let sent = SentBytes::new(600);
        let ann = caller("ann");
        let start = Instant::now();
        assert_eq!(sent.take_at(start, &ann, 5_000), Ok(()));
        assert_eq!(sent.take_at(start, &ann, 1), Err(Duration::from_millis(100)));
        assert_eq!(sent.take_at(start + WHOLE_AFTER, &ann, 5_000), Ok(()));
    }

    #[test]
    fn who_has_all_of_its_bytes_again_is_forgotten() {
        let sent = SentBytes::new(600);
        let start = Instant::now();
        for number in 0..OWNERS_MAX {
            assert_eq!(sent.take_at(start, &caller(&number.to_string()), 1), Ok(()));
        }
        assert_eq!(sent.take_at(start + WHOLE_AFTER, &caller("another"), 1), Ok(()));
        assert_eq!(sent.by_owner.lock().unwrap().len(), 1);
    }
}
