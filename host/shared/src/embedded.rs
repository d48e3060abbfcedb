//! Shared state of one process, in memory.
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::local_replicated_sets::LocalReplicatedSets;
use crate::requests::Requests;
use crate::{AllowanceName, Allowances, Away, Begun, Claim, Claimed, Place, Posted, Request, SharedState, Taken};

/// Scopes with allowances. A manifest has one or two for each tool; those of former rates are
/// dropped once they are full.
const SCOPES_MAX: usize = 10_000;

/// Most names noted, and most names claimed: those of 64 callers who claim all they may.
const NAMES_MAX: usize = 16_384;

/// Most names that one caller may have claimed at once. A person gives a few approvals in an hour.
const OWN_NAMES_MAX: usize = 256;

/// Shared state of one process.
#[derive(Debug, Default)]
pub struct Embedded {
    rates: Mutex<EmbeddedRates>,
    noted: Mutex<HashMap<String, Instant>>,
    claimed: Mutex<EmbeddedClaims>,
    requests: Mutex<Requests>,
    claims: AtomicU64,
    sets: LocalReplicatedSets,
}

/// The claimed names of all callers.
#[derive(Debug, Default)]
struct EmbeddedClaims {
    by_caller: HashMap<Box<str>, HashMap<String, EmbeddedClaim>>,
    count: usize,
}

#[derive(Debug)]
struct EmbeddedClaim {
    holder: String,
    until: Instant,
}

/// The allowances of all callers, by scope.
#[derive(Debug, Default)]
struct EmbeddedRates {
    scopes: HashMap<Box<str>, Allowances>,
}

#[async_trait]
impl SharedState for Embedded {
    async fn take(&self, caller: &str, allowances: &[AllowanceName<'_>]) -> Result<Taken, Away> {
        Ok(self.rates.lock().take(caller, allowances, Instant::now()))
    }

    async fn enter(&self, _name: &str, _most: usize) -> Result<Option<Place>, Away> {
        Ok(Some(Place::default()))
    }

    async fn wait(&self, _name: &str, _most: usize) -> Result<Place, Away> {
        Ok(Place::default())
    }

    async fn claim(&self, caller: &str, name: &str, time: Duration) -> Result<Claimed, Away> {
        let holder = self.claims.fetch_add(1, Ordering::Relaxed).to_string();
        let claim = Claim { caller: caller.to_owned(), name: name.to_owned(), holder };
        Ok(self.claimed.lock().claim(claim, Instant::now(), time))
    }

    async fn give_back(&self, claim: Claim) -> Result<(), Away> {
        self.claimed.lock().give_back(&claim);
        Ok(())
    }

    async fn begin(&self, request: &Request<'_>, time: Duration) -> Result<Begun, Away> {
        let holder = self.claims.fetch_add(1, Ordering::Relaxed).to_string();
        Ok(self.requests.lock().begin(request, holder, Instant::now() + time))
    }

    async fn end(&self, request: Claim, answer: &str, time: Duration) -> Result<(), Away> {
        self.requests.lock().end(&request, answer, Instant::now() + time);
        Ok(())
    }

    async fn note(&self, name: &str, time: Duration) -> Result<(), Away> {
        let mut noted = self.noted.lock();
        let now = Instant::now();
        if noted.len() >= NAMES_MAX {
            noted.retain(|_, until| *until > now);
        }
        if noted.len() < NAMES_MAX || noted.contains_key(name) {
            noted.insert(name.to_owned(), now + time);
        }
        Ok(())
    }

    async fn is_noted(&self, name: &str) -> Result<bool, Away> {
        Ok(self.noted.lock().get(name).is_some_and(|until| *until > Instant::now()))
    }

    async fn post(&self, set: &str, entry: &str, time: Duration) -> Result<bool, Away> {
        Ok(self.sets.post(set, entry, time))
    }

    async fn take_down(&self, set: &str, entry: &str) -> Result<(), Away> {
        self.sets.take_down(set, entry);
        Ok(())
    }

    async fn posted(&self, set: &str) -> Result<Vec<Posted>, Away> {
        Ok(self.sets.posted(set))
    }
}

impl EmbeddedClaims {
    fn claim(&mut self, claim: Claim, now: Instant, time: Duration) -> Claimed {
        let own = self.by_caller.get(&*claim.caller);
        if own.and_then(|own| own.get(&claim.name)).is_some_and(|earlier| earlier.until > now) {
            return Claimed::Before;
        }
        let share = if claim.caller.is_empty() { NAMES_MAX } else { OWN_NAMES_MAX };
        if own.is_some_and(|own| own.len() >= share) || self.count >= NAMES_MAX {
            self.forget(now);
        }
        if self.count >= NAMES_MAX {
            return Claimed::NoRoom;
        }
        let own = self.by_caller.entry(claim.caller.as_str().into()).or_default();
        if own.len() >= share {
            return Claimed::NoRoom;
        }
        let kept = EmbeddedClaim { holder: claim.holder.clone(), until: now + time };
        self.count += usize::from(own.insert(claim.name.clone(), kept).is_none());
        Claimed::Now(claim)
    }

    /// Forgets claims whose time is over.
    fn forget(&mut self, now: Instant) {
        self.by_caller.retain(|_, own| {
            own.retain(|_, claim| claim.until > now);
            !own.is_empty()
        });
        self.count = self.by_caller.values().map(HashMap::len).sum();
    }

    fn give_back(&mut self, claim: &Claim) {
        let Some(own) = self.by_caller.get_mut(&*claim.caller) else { return };
        if own.get(&claim.name).is_some_and(|kept| kept.holder == claim.holder) {
            own.remove(&claim.name);
            self.count = self.count.saturating_sub(1);
        }
    }
}

impl EmbeddedRates {
    fn take(&mut self, caller: &str, names: &[AllowanceName<'_>], now: Instant) -> Taken {
        let missing = names.iter().enumerate().find_map(|(place, name)| {
            let wait = self.scopes.get_mut(name.scope)?.missing(caller, now)?;
            Some(Taken::Refused { place, wait })
        });
        if let Some(refused) = missing {
            return refused;
        }
        for name in names {
            if !self.scopes.contains_key(name.scope) {
                self.add(name, now);
            }
            // It has a call: it was checked above under the same lock.
            let _ = self.scopes.get_mut(name.scope).map(|allowances| allowances.take(caller, now));
        }
        Taken::All
    }

    fn add(&mut self, name: &AllowanceName<'_>, now: Instant) {
        if self.scopes.len() >= SCOPES_MAX {
            self.scopes.retain(|_, allowances| {
                allowances.forget_whole(now);
                !allowances.is_empty()
            });
        }
        self.scopes.insert(name.scope.into(), Allowances::new(name.pace, name.callers_max));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pace;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn scopes_that_are_whole_make_room() {
        fn one(scope: &str) -> [AllowanceName<'_>; 1] {
            [AllowanceName { scope, pace: Pace::new(1, SECOND), callers_max: 10 }]
        }
        let mut rates = EmbeddedRates::default();
        let now = Instant::now();
        for number in 0..SCOPES_MAX {
            let scope = number.to_string();
            assert_eq!(rates.take("ann", &one(&scope), now), Taken::All);
        }
        assert_eq!(rates.take("ann", &one("7"), now), Taken::Refused { place: 0, wait: SECOND });
        assert_eq!(rates.take("ann", &one("one more"), now + SECOND), Taken::All);
        assert_eq!(rates.scopes.len(), 1);
    }

    #[tokio::test]
    async fn names_are_bounded_and_forgotten() {
        let state = Embedded::default();
        let minute = Duration::from_secs(60);
        state.note("past", Duration::ZERO).await.unwrap();
        assert!(!state.is_noted("past").await.unwrap());
        for number in 0..NAMES_MAX + 10 {
            state.note(&number.to_string(), minute).await.unwrap();
            let claim = state.claim("", &number.to_string(), minute).await.unwrap();
            assert_eq!(claim.now().is_some(), number < NAMES_MAX, "{number}");
        }
        assert!(state.is_noted("0").await.unwrap());
        assert!(!state.is_noted(&(NAMES_MAX + 5).to_string()).await.unwrap());
        assert!(state.noted.lock().len() <= NAMES_MAX && state.claimed.lock().count <= NAMES_MAX);
    }

    #[tokio::test]
    async fn a_caller_claims_its_share_and_leaves_room_for_others() {
        let state = Embedded::default();
        let minute = Duration::from_secs(60);
        let claim = async |caller: &str, number: usize| state.claim(caller, &number.to_string(), minute).await.unwrap();
        let first = claim("eve", 0).await.now().unwrap();
        assert_eq!(claim("eve", 0).await, Claimed::Before);
        for number in 1..OWN_NAMES_MAX {
            assert!(claim("eve", number).await.now().is_some(), "{number}");
        }
        assert_eq!(claim("eve", OWN_NAMES_MAX).await, Claimed::NoRoom);
        assert!(claim("bob", 0).await.now().is_some());
        state.give_back(first).await.unwrap();
        assert!(claim("eve", OWN_NAMES_MAX).await.now().is_some());
        assert_eq!(state.claim("eve", "one more", minute).await, Ok(Claimed::NoRoom));
        // Names whose time is over take no room.
        for number in 0..2 * OWN_NAMES_MAX {
            let claimed = state.claim("ann", &number.to_string(), Duration::ZERO).await.unwrap();
            assert!(claimed.now().is_some(), "{number}");
        }
    }
}
