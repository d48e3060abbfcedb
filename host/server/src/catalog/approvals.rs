//! Approvals that persons gave, over all generations. Must not hold: how a person is asked.
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::consents::Consents;

/// Most approvals remembered, and most used rounds remembered. A person gives a few in an hour.
const REMEMBERED_MAX: usize = 4_096;

/// Approvals that persons gave, over all generations.
#[derive(Debug, Default)]
pub struct Approvals {
    state: Mutex<State>,
    /// Consents to requests that no rule allows.
    pub consents: Consents,
}

#[derive(Debug, Default)]
struct State {
    /// Time until which an approval holds for further calls, by caller, tool, code and policy.
    remembered: HashMap<String, Instant>,
    /// Rounds of calls whose approval was used, with the time until which one could come again.
    used: HashMap<String, Instant>,
}

impl Approvals {
    /// Makes the approval of these rounds usable again.
    pub fn give_back(&self, chain: &str) {
        self.state().used.remove(chain);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn holds(&self, what: &str) -> bool {
        self.state().remembered.get(what).is_some_and(|until| *until > Instant::now())
    }

    /// Remembers an approval. Without room it is not remembered, and the person is asked again.
    pub fn remember(&self, what: String, time: Duration) {
        insert(&mut self.state().remembered, what, time);
    }

    /// Uses the approval of these rounds. False if it was used before, or cannot be noted as used.
    pub fn claim(&self, chain: &str, time: Duration) -> bool {
        let mut state = self.state();
        let used = state.used.get(chain).is_some_and(|until| *until > Instant::now());
        !used && insert(&mut state.used, chain.to_owned(), time)
    }
}

/// Notes an entry for a time. False if there is no room.
fn insert(noted: &mut HashMap<String, Instant>, what: String, time: Duration) -> bool {
    let now = Instant::now();
    if noted.len() >= REMEMBERED_MAX {
        noted.retain(|_, until| *until > now);
    }
    let room = noted.len() < REMEMBERED_MAX || noted.contains_key(&what);
    if room {
        noted.insert(what, now + time);
    }
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded_and_forgotten() {
        let approvals = Approvals::default();
        approvals.remember("past".to_owned(), Duration::ZERO);
        assert!(!approvals.holds("past"));
        for number in 0..REMEMBERED_MAX + 10 {
            approvals.remember(number.to_string(), Duration::from_secs(60));
        }
        assert!(approvals.holds("0") && !approvals.holds(&(REMEMBERED_MAX + 5).to_string()));
        assert!(approvals.state().remembered.len() <= REMEMBERED_MAX);
    }
}
