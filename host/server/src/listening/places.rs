//! The places of connections to pages that anyone may reach: strangers never keep others out.
//!
//! A connection is a stranger's until it is kept: the console keeps those with the cookie of a
//! session, other pages those with a request. If strangers hold all their places, a new one
//! replaces a connection from the address range that holds the most. So every visitor is served,
//! and no network can block others.
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::AbortHandle;

use super::AddressRange;

/// How many connections have a place at a time.
#[derive(Clone, Copy, Debug)]
pub struct PlaceBounds {
    /// Those of strangers. A browser opens six for a page.
    pub strangers: usize,
    /// Those that are kept. Further ones count as strangers.
    pub kept: usize,
}

/// The places of a listener.
pub struct ConnectionPlaces {
    bounds: PlaceBounds,
    taken: Mutex<TakenPlaces>,
}

#[derive(Default)]
struct TakenPlaces {
    last: u64,
    kept: usize,
    /// By number: the oldest first.
    strangers: BTreeMap<u64, Stranger>,
}

struct Stranger {
    range: AddressRange,
    /// Ends the connection. `None` until it has begun.
    connection: Option<AbortHandle>,
}

/// The place of one connection, given back when dropped.
pub struct ConnectionPlace {
    places: Arc<ConnectionPlaces>,
    number: u64,
    is_kept: Mutex<bool>,
}

impl ConnectionPlaces {
    /// Places within these bounds.
    pub fn new(bounds: PlaceBounds) -> Arc<Self> {
        Arc::new(Self { bounds, taken: Mutex::default() })
    }

    /// Begins a connection from this address in its place. Another one may be ended for it.
    pub fn begin(self: &Arc<Self>, from: IpAddr, begin: impl FnOnce(Arc<ConnectionPlace>) -> AbortHandle) {
        let number = {
            let mut taken = self.taken.lock();
            taken.last += 1;
            let number = taken.last;
            taken.strangers.insert(number, Stranger { range: AddressRange::of(Some(from)), connection: None });
            taken.end_one(self.bounds.strangers);
            number
        };
        let place = ConnectionPlace { places: Arc::clone(self), number, is_kept: Mutex::new(false) };
        let connection = begin(Arc::new(place));
        // It may already have ended.
        if let Some(stranger) = self.taken.lock().strangers.get_mut(&number) {
            stranger.connection = Some(connection);
        }
    }
}

impl TakenPlaces {
    /// Ends one connection of a stranger, if there are more than this.
    fn end_one(&mut self, strangers_max: usize) {
        if self.strangers.len() <= strangers_max {
            return;
        }
        let mut shares: HashMap<AddressRange, usize> = HashMap::new();
        for stranger in self.strangers.values() {
            *shares.entry(stranger.range).or_default() += 1;
        }
        let most = shares.values().max().copied().unwrap_or_default();
        let oldest = self.strangers.iter().find(|(_, stranger)| shares.get(&stranger.range) == Some(&most));
        if let Some(stranger) = oldest.map(|(number, _)| *number).and_then(|number| self.strangers.remove(&number)) {
            stranger.connection.inspect(AbortHandle::abort);
        }
    }
}

impl ConnectionPlace {
    /// From now on it is never ended for others, if there is room.
    pub fn keep(&self) {
        let mut is_kept = self.is_kept.lock();
        let mut taken = self.places.taken.lock();
        let has_room = taken.kept < self.places.bounds.kept;
        if !*is_kept && has_room && taken.strangers.remove(&self.number).is_some() {
            taken.kept += 1;
            *is_kept = true;
        }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let is_kept = *self.is_kept.get_mut();
        let mut taken = self.places.taken.lock();
        if is_kept {
            taken.kept -= 1;
        } else {
            taken.strangers.remove(&self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::task::JoinHandle;

    use super::*;

    const STRANGERS_MAX: usize = 64;
    const KEPT_MAX: usize = 64;

    fn places() -> Arc<ConnectionPlaces> {
        ConnectionPlaces::new(PlaceBounds { strangers: STRANGERS_MAX, kept: KEPT_MAX })
    }

    impl ConnectionPlaces {
        /// Places that are kept, and those of strangers.
        fn taken_places(&self) -> (usize, usize) {
            let taken = self.taken.lock();
            (taken.kept, taken.strangers.len())
        }
    }

    /// A connection from this address that never ends by itself.
    fn connect(places: &Arc<ConnectionPlaces>, from: [u8; 4]) -> (JoinHandle<()>, Arc<ConnectionPlace>) {
        let mut begun = None;
        places.begin(IpAddr::from(from), |place| {
            let own = Arc::clone(&place);
            let task = tokio::spawn(async move {
                let _own = own;
                pending::<()>().await;
            });
            let abort = task.abort_handle();
            begun = Some((task, place));
            abort
        });
        begun.unwrap()
    }

    #[tokio::test]
    async fn strangers_give_way_to_whoever_comes_and_keep_no_operator_out() {
        let places = places();
        let (operator, place) = connect(&places, [203, 0, 113, 1]);
        place.keep();
        place.keep();
        let flood: Vec<_> = (0..STRANGERS_MAX).map(|_| connect(&places, [198, 51, 100, 7])).collect();
        let (newcomer, _place) = connect(&places, [192, 0, 2, 1]);
        let further: Vec<_> = (0..10 * STRANGERS_MAX).map(|_| connect(&places, [198, 51, 100, 9])).collect();
        // The oldest of the largest range end.
        let (oldest, newest) = further.split_at(further.len() - (STRANGERS_MAX - 1));
        let is_running = |(task, _): &(JoinHandle<()>, Arc<ConnectionPlace>)| !task.is_finished();
        while flood.iter().chain(oldest).any(is_running) {
            tokio::task::yield_now().await;
        }
        assert!(newest.iter().all(is_running) && !newcomer.is_finished() && !operator.is_finished());
        assert_eq!(places.taken_places(), (1, STRANGERS_MAX));
        drop((flood, further));
        operator.abort();
        assert!(operator.await.unwrap_err().is_cancelled());
        drop(place);
        assert_eq!(places.taken_places().0, 0);
    }

    #[tokio::test]
    async fn those_that_are_kept_have_a_bound_too() {
        let places = places();
        let all: Vec<_> = (0..KEPT_MAX + 5)
            .map(|_| {
                let connection = connect(&places, [203, 0, 113, 1]);
                connection.1.keep();
                connection
            })
            .collect();
        assert_eq!(places.taken_places(), (KEPT_MAX, 5));
        all.iter().for_each(|(task, _)| task.abort());
        for (task, place) in all {
            assert!(task.await.unwrap_err().is_cancelled());
            drop(place);
        }
        assert_eq!(places.taken_places(), (0, 0));
    }
}
