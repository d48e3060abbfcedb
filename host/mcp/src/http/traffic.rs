//! Counters of the transport, for operators.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;

/// The least status of a response, and the number of statuses.
const STATUS_FIRST: u16 = 100;
const STATUSES: usize = 500;

/// The current load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HttpLoad {
    /// Connections that are open.
    pub connections: usize,
    /// Requests that are being answered, without open streams.
    pub requests: usize,
    /// Streams that stay open to tell clients of changes.
    pub streams: usize,
    /// Legacy sessions.
    pub sessions: usize,
}

/// The counters of the transport. One for the life of a server.
pub struct Traffic {
    statuses: [AtomicU64; STATUSES],
    turned_away: AtomicU64,
    load: OnceLock<Box<dyn Fn() -> HttpLoad + Send + Sync>>,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            statuses: [const { AtomicU64::new(0) }; STATUSES],
            turned_away: AtomicU64::new(0),
            load: OnceLock::new(),
        }
    }
}

impl Traffic {
    /// The number of responses with each status that occurred.
    pub fn statuses(&self) -> impl Iterator<Item = (u16, u64)> {
        let counts = self.statuses.iter().map(|count| count.load(Ordering::Relaxed));
        (STATUS_FIRST..).zip(counts).filter(|(_, count)| *count > 0)
    }

    /// Connections that were refused because the server was full.
    #[must_use]
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// The current load; zero before and after serving.
    #[must_use]
    pub fn load(&self) -> HttpLoad {
        self.load.get().map(|load| load()).unwrap_or_default()
    }

    pub(super) fn answered(&self, status: StatusCode) {
        let place = usize::from(status.as_u16().saturating_sub(STATUS_FIRST));
        if let Some(count) = self.statuses.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn count_turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the source of the current load.
    pub(super) fn set_load_source(&self, load: impl Fn() -> HttpLoad + Send + Sync + 'static) {
        // If two servers share counters, the first one's load is reported.
        let _ = self.load.set(Box::new(load));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_counted_by_their_status() {
        let traffic = Traffic::default();
        for status in [200, 202, 200, 599, 999] {
            traffic.answered(StatusCode::from_u16(status).unwrap());
        }
        assert_eq!(traffic.statuses().collect::<Vec<_>>(), [(200, 2), (202, 1), (599, 1)]);
        assert_eq!(traffic.load(), HttpLoad::default());
    }
}
