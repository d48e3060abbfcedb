//! Places among those that run at once, on the server. A place is leased and renewed while it is
//! held, so that those of a replica that died are released.
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::Script;

use super::keys::RunKeys;
use super::line::{LineQuestion, PlaceLines};
use super::operation::Operation;
use super::servers::Servers;
use crate::{Away, Place};

/// Length of a lease. Places of a replica that died are released after it.
const TAKEN_FOR: Duration = Duration::from_secs(10);

/// Interval of renewal: two may fail.
const AGAIN_EVERY: Duration = Duration::from_secs(3);

/// How long a replica passes a place from call to call without asking the server. Then other
/// replicas get their turn. It bounds how long they wait for an idle place.
const PASSED_ON_FOR: Duration = Duration::from_millis(100);

/// A waiting replica that does not ask again for this long is dropped from the queue.
const WAITS_FOR: Duration = Duration::from_secs(1);

/// Pause before a replica asks again for a place. It doubles each time.
const ASKS_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// The longest pause. A hundred replicas that wait for a tool then ask 2,000 times a second, a
/// fiftieth of what the server answers.
const ASKS_AGAIN_AFTER_MAX: Duration = Duration::from_millis(50);

/// Number of places when renewing: a call that runs is not ended.
const ANY: u64 = 1 << 50;

/// The places of this replica, and its calls that wait for one.
#[derive(Debug)]
pub(super) struct Places {
    servers: Arc<Servers>,
    enter: Script,
    state: Mutex<PlacesState>,
    /// Random name of this replica.
    process: String,
    holders: AtomicU64,
}

#[derive(Debug, Default)]
struct PlacesState {
    /// Places by the names of their holders.
    held: HashMap<String, HeldPlace>,
    lines: PlaceLines,
    /// Idle places for the next calls: their holders, by key.
    idle: HashMap<String, Vec<String>>,
    /// True while a task renews places.
    is_kept: bool,
    /// True while a task releases idle places.
    is_cleared: bool,
}

/// A place that is held or requested.
#[derive(Debug)]
struct HeldPlace {
    keys: RunKeys,
    /// When the server granted it. `None` while it is requested.
    since: Option<Instant>,
    /// True if three quarters of all places were free then, so that it may stay idle for a moment.
    is_spare: bool,
}

impl HeldPlace {
    fn may_be_passed_on(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() < PASSED_ON_FOR)
    }
}

impl Places {
    /// For the replica with this random name.
    pub(super) fn new(servers: Arc<Servers>, process: String) -> Arc<Self> {
        let enter = Script::new(include_str!("enter.lua"));
        let state = Mutex::default();
        let holders = AtomicU64::new(0);
        Arc::new(Self { servers, enter, state, process, holders })
    }

    /// Takes one of `most` places. `None` if all are taken, or if others wait.
    pub(super) async fn enter(self: &Arc<Self>, keys: RunKeys, most: usize) -> Result<Option<Place>, Away> {
        if self.state.lock().lines.is_waited_for(&keys.places) {
            return Ok(None);
        }
        match self.idle(&keys.places) {
            Some(place) => Ok(Some(place)),
            None => self.ask(&keys, most, false).await,
        }
    }

    /// Waits for one of `most` places. Calls of this replica are served in order; replicas take
    /// turns.
    pub(super) async fn wait(self: &Arc<Self>, keys: RunKeys, most: usize) -> Result<Place, Away> {
        if let Some(place) = self.idle(&keys.places) {
            return Ok(place);
        }
        let (receiver, is_first) = self.state.lock().lines.join(&keys.places, most);
        if is_first {
            drop(tokio::spawn(Arc::clone(self).ask_for_line(keys)));
        }
        receiver.await.unwrap_or_else(|_| Err(Away::new("the task that asks for places ended".to_owned())))
    }

    /// A place of this replica that no call uses.
    fn idle(self: &Arc<Self>, key: &str) -> Option<Place> {
        let mut state = self.state.lock();
        let holder = loop {
            let holder = state.idle.get_mut(key)?.pop()?;
            if state.held.get(&holder).is_some_and(HeldPlace::may_be_passed_on) {
                break holder;
            }
            // It is being released.
            drop(state);
            Arc::clone(self).give_back(&holder);
            state = self.state.lock();
        };
        drop(state);
        Some(self.place(holder))
    }

    /// Requests places for a line until it is empty.
    async fn ask_for_line(self: Arc<Self>, keys: RunKeys) {
        let mut pause = ASKS_AGAIN_AFTER;
        let mut waits_there = false;
        loop {
            let next = self.state.lock().lines.next(&keys.places);
            let Some(LineQuestion { most, left }) = next else { break };
            match self.ask(&keys, most, true).await {
                Ok(Some(place)) => {
                    (pause, waits_there) = (ASKS_AGAIN_AFTER, false);
                    self.give(&keys.places, place);
                }
                Ok(None) => {
                    waits_there = true;
                    // A released place is requested at once.
                    if tokio::time::timeout(pause, left.notified()).await.is_err() {
                        pause = (pause * 2).min(ASKS_AGAIN_AFTER_MAX);
                    }
                }
                Err(away) => self.refuse(&keys.places, &away),
            }
        }
        if waits_there {
            let mut command = redis::cmd("HDEL");
            command.arg(&keys.replicas).arg(&self.process);
            let _ = self.servers.run::<u64>(Operation::Command(&command)).await;
        }
    }

    /// Gives a place to the first call that still waits, or releases it.
    fn give(&self, key: &str, place: Place) {
        let mut place = Ok(place);
        loop {
            let Some(first) = self.state.lock().lines.leave(key) else { return };
            match first.send(place) {
                Ok(()) => return,
                Err(unwanted) => place = unwanted,
            }
        }
    }

    fn refuse(&self, key: &str, away: &Away) {
        let all = self.state.lock().lines.leave_all(key);
        for one in all {
            // The waiter may have given up.
            let _ = one.send(Err(away.clone()));
        }
    }

    async fn ask(self: &Arc<Self>, keys: &RunKeys, most: usize, waits: bool) -> Result<Option<Place>, Away> {
        let holder = format!("{}-{:x}", self.process, self.holders.fetch_add(1, Ordering::Relaxed));
        self.state.lock().held.insert(holder.clone(), HeldPlace { keys: keys.clone(), since: None, is_spare: false });
        // Also releases a place whose grant was lost, since the waiter may have given up.
        let place = self.place(holder.clone());
        let most = u64::try_from(most).unwrap_or(ANY);
        if let Some(free) = self.take(keys, &holder, most, waits).await? {
            self.hold(&holder, free >= most - most / 4);
            return Ok(Some(place));
        }
        self.state.lock().held.remove(&holder);
        place.forget();
        Ok(None)
    }

    /// Takes a place on the server. Returns how many are free then.
    async fn take(&self, keys: &RunKeys, holder: &str, most: u64, waits: bool) -> Result<Option<u64>, Away> {
        let mut script = self.enter.prepare_invoke();
        script.key(&keys.places).key(&keys.replicas).arg(holder).arg(most).arg(super::millis(TAKEN_FOR));
        script.arg(if waits { &self.process } else { "" }).arg(super::millis(WAITS_FOR));
        let free: i64 = self.servers.run(Operation::Script(&script)).await?;
        Ok(u64::try_from(free).ok())
    }

    fn place(self: &Arc<Self>, holder: String) -> Place {
        let this = Arc::clone(self);
        Place::new(move || this.leave(holder))
    }

    /// Records that the server granted this place.
    fn hold(self: &Arc<Self>, holder: &str, is_spare: bool) {
        let mut state = self.state.lock();
        if let Some(held) = state.held.get_mut(holder) {
            (held.since, held.is_spare) = (Some(Instant::now()), is_spare);
        }
        let was_kept = std::mem::replace(&mut state.is_kept, true);
        drop(state);
        if !was_kept {
            drop(tokio::spawn(Self::hold_on(Arc::downgrade(self))));
        }
    }

    /// Releases a place: to a call that waits here, to the next one, or on the server. Does not
    /// wait for that.
    fn leave(self: Arc<Self>, holder: String) {
        while let Some(next) = self.next_for(&holder) {
            match next.send(Ok(self.place(holder.clone()))) {
                Ok(()) => return,
                Err(unwanted) => unwanted.map(Place::forget).unwrap_or_default(),
            }
        }
        if self.keep(&holder) {
            return;
        }
        self.give_back(&holder);
    }

    /// Keeps a place for the next call, if it is spare.
    fn keep(self: &Arc<Self>, holder: &str) -> bool {
        // Without a runtime the process is ending.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return false };
        let mut state = self.state.lock();
        let held = state.held.get(holder).filter(|held| held.is_spare && held.may_be_passed_on());
        let Some(key) = held.map(|held| held.keys.places.clone()) else { return false };
        state.idle.entry(key).or_default().push(holder.to_owned());
        if !std::mem::replace(&mut state.is_cleared, true) {
            drop(runtime.spawn(Self::clear(Arc::downgrade(self))));
        }
        true
    }

    /// Releases places that are idle for long, until none is idle.
    async fn clear(this: Weak<Self>) {
        loop {
            tokio::time::sleep(PASSED_ON_FOR).await;
            let Some(this) = this.upgrade() else { return };
            let (over, is_over) = this.idle_for_long();
            over.iter().for_each(|holder| Arc::clone(&this).give_back(holder));
            if is_over {
                return;
            }
        }
    }

    /// The holders of places that are idle for long, and true if no others are idle.
    fn idle_for_long(&self) -> (Vec<String>, bool) {
        let mut state = self.state.lock();
        let PlacesState { held, idle, is_cleared, .. } = &mut *state;
        let mut over = Vec::new();
        idle.retain(|_, holders| {
            let is_long = |holder: &mut String| !held.get(holder).is_some_and(HeldPlace::may_be_passed_on);
            over.extend(holders.extract_if(.., is_long));
            !holders.is_empty()
        });
        *is_cleared = !idle.is_empty();
        (over, idle.is_empty())
    }

    /// Releases a place on the server.
    fn give_back(self: Arc<Self>, holder: &str) {
        let Some(HeldPlace { keys, .. }) = self.state.lock().held.remove(holder) else { return };
        let holder = holder.to_owned();
        // Without a runtime the process is ending, and its leases expire.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        drop(runtime.spawn(async move {
            self.leave_there(&keys, &holder).await;
            self.state.lock().lines.is_left(&keys.places);
        }));
    }

    /// The call to which this place is passed on.
    fn next_for(&self, holder: &str) -> Option<super::line::Sender> {
        let mut state = self.state.lock();
        let held = state.held.get(holder)?;
        let key = held.may_be_passed_on().then(|| held.keys.places.clone())?;
        state.lines.leave(&key)
    }

    /// If the server is unreachable, the lease expires.
    async fn leave_there(&self, keys: &RunKeys, holder: &str) {
        let mut command = redis::cmd("ZREM");
        command.arg(&keys.places).arg(holder);
        let _ = self.servers.run::<u64>(Operation::Command(&command)).await;
    }

    /// Renews places that are held for long, until none is held.
    async fn hold_on(this: Weak<Self>) {
        loop {
            tokio::time::sleep(AGAIN_EVERY).await;
            let Some(this) = this.upgrade() else { return };
            let Some(held) = this.held_for_long() else { return };
            for (holder, keys) in held {
                // If the server is unreachable, the next renewal may succeed.
                let _ = this.take(&keys, &holder, ANY, false).await;
                // A place that was released meanwhile is released again.
                let is_left = !this.state.lock().held.contains_key(&holder);
                if is_left {
                    this.leave_there(&keys, &holder).await;
                }
            }
        }
    }

    /// The places that were granted longer ago than the interval. `None` if none is held.
    fn held_for_long(&self) -> Option<Vec<(String, RunKeys)>> {
        let mut state = self.state.lock();
        state.is_kept = !state.held.is_empty();
        let is_long = |held: &HeldPlace| held.since.is_some_and(|since| since.elapsed() >= AGAIN_EVERY);
        let long = state.held.iter().filter(|(_, held)| is_long(held));
        let long = long.map(|(holder, held)| (holder.clone(), held.keys.clone())).collect();
        state.is_kept.then_some(long)
    }
}
