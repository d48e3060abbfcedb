//! Turns for costly work, shared fairly: the next turn goes to the owner whose work has cost least
//! so far.
//!
//! Promise: costly requests leave others theirs.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use crate::lock::lock;

/// The bounds of [`FairTurns`].
#[derive(Clone, Copy, Debug)]
pub struct TurnBounds {
    /// Concurrent turns of all owners together.
    pub all: usize,
    /// Concurrent turns of one owner.
    pub own: usize,
}

/// Turns for work of many owners. An owner with much work does not delay others (start-time fair
/// queuing; Goyal, Vin and Cheng, 1996).
#[derive(Debug)]
pub struct FairTurns<K: Eq + Hash + Clone> {
    bounds: TurnBounds,
    state: Mutex<Turns<K>>,
}

#[derive(Debug)]
struct Turns<K: Eq + Hash + Clone> {
    running: usize,
    by_owner: HashMap<K, Share>,
    /// Waiting owners, by the virtual time at which each begins, then in order of arrival.
    waiting: BTreeMap<(u64, u64), TurnWaiter<K>>,
    /// The virtual time at which the last one began.
    begun: u64,
    sequence: u64,
}

/// The work of one owner.
#[derive(Debug, Default)]
struct Share {
    running: usize,
    waiting: usize,
    /// The virtual time at which its next piece begins.
    next: u64,
}

#[derive(Debug)]
struct TurnWaiter<K> {
    owner: K,
    turn: oneshot::Sender<()>,
}

/// One turn. Ends when dropped.
#[derive(Debug)]
pub struct CallerTurn<K: Eq + Hash + Clone> {
    turns: Arc<FairTurns<K>>,
    owner: K,
}

/// A wait for a turn. Dropping it gives up the wait.
struct Wait<'t, K: Eq + Hash + Clone> {
    turns: &'t Arc<FairTurns<K>>,
    owner: K,
    place: (u64, u64),
    /// Open until the wait has left the queue, so that an arrived turn is noticed.
    came: oneshot::Receiver<()>,
    /// True once its turn has come and was accepted.
    is_taken: bool,
}

impl<K: Eq + Hash + Clone> FairTurns<K> {
    /// Turns within these bounds; at least one.
    #[must_use]
    pub fn new(bounds: TurnBounds) -> Arc<Self> {
        let turns = Turns { running: 0, by_owner: HashMap::new(), waiting: BTreeMap::new(), begun: 0, sequence: 0 };
        Arc::new(Self { bounds, state: Mutex::new(turns) })
    }

    /// Waits for a turn. `cost` is in any unit, the same for all.
    pub async fn take(self: &Arc<Self>, owner: &K, cost: u64) -> CallerTurn<K> {
        let (turn, came) = oneshot::channel();
        let place = {
            let mut state = lock(&self.state);
            let place = state.enter(owner, cost, turn);
            state.begin(self.bounds);
            place
        };
        let mut wait = Wait { turns: self, owner: owner.clone(), place, came, is_taken: false };
        // Its sender stays in the queue until the turn comes, or this is dropped.
        let _ = (&mut wait.came).await;
        wait.is_taken = true;
        CallerTurn { turns: Arc::clone(self), owner: owner.clone() }
    }

    fn end(&self, owner: &K) {
        let mut state = lock(&self.state);
        state.running = state.running.saturating_sub(1);
        if let Some(share) = state.by_owner.get_mut(owner) {
            share.running = share.running.saturating_sub(1);
        }
        state.forget(owner);
        state.begin(self.bounds);
    }
}

impl<K: Eq + Hash + Clone> Turns<K> {
    fn enter(&mut self, owner: &K, cost: u64, turn: oneshot::Sender<()>) -> (u64, u64) {
        self.sequence += 1;
        let share = self.by_owner.entry(owner.clone()).or_default();
        let begins = share.next.max(self.begun);
        share.next = begins.saturating_add(cost);
        share.waiting += 1;
        let place = (begins, self.sequence);
        self.waiting.insert(place, TurnWaiter { owner: owner.clone(), turn });
        place
    }

    /// Starts as many as there is room for.
    fn begin(&mut self, bounds: TurnBounds) {
        while self.running < bounds.all.max(1) {
            let has_room = |waiter: &TurnWaiter<K>| {
                self.by_owner.get(&waiter.owner).is_none_or(|share| share.running < bounds.own.max(1))
            };
            let next = self.waiting.iter().find(|(_, waiter)| has_room(waiter)).map(|(place, _)| *place);
            let Some((place, waiter)) = next.and_then(|place| Some((place, self.waiting.remove(&place)?))) else {
                return;
            };
            self.begun = self.begun.max(place.0);
            let share = self.by_owner.entry(waiter.owner.clone()).or_default();
            share.waiting = share.waiting.saturating_sub(1);
            // The receiver lives until it has left the queue, so this does not fail.
            if waiter.turn.send(()).is_ok() {
                share.running += 1;
                self.running += 1;
            }
            self.forget(&waiter.owner);
        }
    }

    /// Removes an owner without running or recent work.
    fn forget(&mut self, owner: &K) {
        let is_over = |share: &Share| share.running == 0 && share.waiting == 0;
        if self.by_owner.get(owner).is_some_and(is_over) {
            self.by_owner.remove(owner);
        }
    }
}

impl<K: Eq + Hash + Clone> Drop for Wait<'_, K> {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        let removed = {
            let mut state = lock(&self.turns.state);
            let removed = state.waiting.remove(&self.place).is_some();
            if removed && let Some(share) = state.by_owner.get_mut(&self.owner) {
                share.waiting = share.waiting.saturating_sub(1);
            }
            state.forget(&self.owner);
            removed
        };
        if !removed {
            // Its turn had come but was not accepted.
            self.turns.end(&self.owner);
        }
    }
}

impl<K: Eq + Hash + Clone> Drop for CallerTurn<K> {
    fn drop(&mut self) {
        self.turns.end(&self.owner);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Taking<'t> = Pin<Box<dyn Future<Output = CallerTurn<&'static str>> + 't>>;

    fn turns(all: usize, own: usize) -> Arc<FairTurns<&'static str>> {
        FairTurns::new(TurnBounds { all, own })
    }

    fn now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        match Pin::new(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    #[test]
    fn work_of_another_comes_before_the_rest_of_one_who_has_much() {
        let turns = turns(1, 1);
        let wants = [("much", 100), ("much", 100), ("much", 100), ("little", 10), ("little", 10), ("other", 300)];
        let mut waiting: Vec<(&str, Taking<'_>)> = Vec::new();
        for (owner, cost) in wants {
            let turns = &turns;
            waiting.push((owner, Box::pin(async move { turns.take(&owner, cost).await })));
        }
        // All come before the first has its turn: it is polled at once, and holds it.
        let mut order = Vec::new();
        let mut held = None;
        while !waiting.is_empty() {
            let mut next = None;
            for (place, (owner, taking)) in waiting.iter_mut().enumerate() {
                if let Some(turn) = now(taking) {
                    next = Some((place, *owner, turn));
                    break;
                }
            }
            let Some((place, owner, turn)) = next else {
                drop(held.take());
                continue;
            };
            drop(waiting.remove(place));
            order.push(owner);
            // Polls the others, so that they wait.
            waiting.iter_mut().for_each(|(_, taking)| assert!(now(taking).is_none()));
            held = Some(turn);
        }
        assert_eq!(order, ["much", "little", "other", "little", "much", "much"]);
        drop(held);
        assert!(lock(&turns.state).by_owner.is_empty() && lock(&turns.state).running == 0);
    }

    #[test]
    fn one_owner_has_its_share_of_the_turns_and_no_more() {
        let turns = turns(3, 2);
        let take = |owner: &'static str| now(&mut pin!(turns.take(&owner, 1)));
        let first = take("one").unwrap();
        let second = take("one").unwrap();
        assert!(take("one").is_none());
        let third = take("other").unwrap();
        assert!(take("third").is_none(), "all are taken");
        drop(first);
        let again = take("one").unwrap();
        drop((second, third, again));
        assert_eq!(lock(&turns.state).running, 0);
    }

    #[test]
    fn who_gives_up_leaves_the_turn_to_the_next() {
        let turns = turns(1, 1);
        let held = now(&mut pin!(turns.take(&"one", 1))).unwrap();
        let mut second: Taking<'_> = Box::pin(async { turns.take(&"two", 1).await });
        let mut third: Taking<'_> = Box::pin(async { turns.take(&"three", 1).await });
        assert!(now(&mut second).is_none() && now(&mut third).is_none());
        drop(held);
        // Its turn has come, and it does not look.
        drop(second);
        let turn = now(&mut third).unwrap();
        let mut fourth: Taking<'_> = Box::pin(async { turns.take(&"four", 1).await });
        assert!(now(&mut fourth).is_none());
        drop(fourth);
        drop(turn);
        let state = lock(&turns.state);
        assert!(state.waiting.is_empty() && state.by_owner.is_empty() && state.running == 0);
    }
}
