//! A bound on alerts that strangers can cause: a few per minute, and one for all others.
use std::time::{Duration, Instant};

/// How often the count starts again.
const MINUTE: Duration = Duration::from_secs(60);

/// Alerts per [`MINUTE`] that name their subject. Naming more attacking ranges would not help.
pub(super) const NAMED_MAX: u32 = 10;

/// The alerts of the current minute.
#[derive(Default)]
pub(super) struct Flood {
    began: Option<Instant>,
    raised: u32,
}

/// The subject that an alert may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// Its own.
    Named,
    /// All others of the minute, which share this alert.
    Others,
}

impl Flood {
    /// Takes one. `None` if the alert for all others has already been raised.
    pub(super) fn take(&mut self, now: Instant) -> Option<Share> {
        if self.began.is_none_or(|began| now.saturating_duration_since(began) >= MINUTE) {
            *self = Self { began: Some(now), raised: 0 };
        }
        if self.raised > NAMED_MAX {
            return None;
        }
        self.raised += 1;
        Some(if self.raised > NAMED_MAX { Share::Others } else { Share::Named })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_a_few_alerts_and_one_for_all_others() {
        let mut flood = Flood::default();
        let now = Instant::now();
        for minute in 0..3 {
            let mut take = || flood.take(now + minute * MINUTE);
            assert!((0..NAMED_MAX).all(|_| take() == Some(Share::Named)));
            assert_eq!([take(), take(), take()], [Some(Share::Others), None, None]);
        }
    }
}
