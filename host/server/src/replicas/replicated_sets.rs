//! Short entries in replicated sets of the state that replicas share. Each replica has a copy of
//! them, so looking one up asks nobody.
//!
//! An entry is a tag under `state_key`: somebody with access to the state's server can remove
//! entries, but cannot forge one.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use toolcell_mcp::StateKey;
use toolcell_shared::{Away, Bus, News, SharedState, Subscription};

use crate::owned_task::OwnedTask;
use crate::replicas::bus::publish;

/// Each set is read again after this long in any case: notifications of changes may be lost.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Pause before the unreachable state is asked again.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Changes that wait for the state to come back: twice a full set.
const WAITING_MAX: usize = 8_192;

/// The channel on which replicas announce changed sets.
const CHANNEL: &str = "replicated-sets";

/// Separates a tag from the suffix that distinguishes entries with equal parts, and an owner's tag
/// from an entry's.
const SEPARATOR: char = ':';

/// Digits of an owner's tag: 128 bits, so that an entry with both fits its limit.
const OWNER_DIGITS: usize = 32;

/// A replicated set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReplicatedSetName {
    /// Tokens that were revoked.
    Revoked,
    /// Consents to requests without a rule, for more than one call.
    Consents,
    /// Components that a person approved.
    Approvals,
    /// Crashes of sandbox processes, by component.
    Ends,
}

impl ReplicatedSetName {
    const ALL: [Self; 4] = [Self::Revoked, Self::Consents, Self::Approvals, Self::Ends];

    const fn name(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::Consents => "consents",
            Self::Approvals => "approvals",
            Self::Ends => "ends",
        }
    }

    const fn place(self) -> usize {
        match self {
            Self::Revoked => 0,
            Self::Consents => 1,
            Self::Approvals => 2,
            Self::Ends => 3,
        }
    }
}

/// Called after each reading of a set.
type BoardReader = Box<dyn Fn() + Send + Sync>;

/// The replicated sets, as this replica knows them.
pub struct ReplicatedSets {
    inner: Arc<BoardsInner>,
    _tasks: [OwnedTask; 3],
}

struct BoardsInner {
    key: StateKey,
    state: Arc<dyn SharedState>,
    bus: Arc<dyn Bus>,
    runtime: Handle,
    copies: [ReplicatedSetCopy; ReplicatedSetName::ALL.len()],
    /// Notified when a set must be read.
    stale: Notify,
    /// Changes that wait until the state responds: the end of each entry, or `None` to remove it.
    waiting: Mutex<BTreeMap<(ReplicatedSetName, String), Option<Instant>>>,
    has_waiting: Notify,
    /// Counter for distinguishing entries.
    numbers: AtomicU64,
    random: u64,
}

/// A copy of one set.
#[derive(Default)]
struct ReplicatedSetCopy {
    /// Entries, with the time at which each ends.
    entries: RwLock<BTreeMap<String, Instant>>,
    count: AtomicUsize,
    /// Counts changes made here. A reading that overlaps one is outdated.
    changes: AtomicU64,
    /// Counts all changes of the entries.
    version: AtomicU64,
    is_stale: AtomicBool,
    is_read: AtomicBool,
    first_read: Notify,
    readers: Mutex<Vec<BoardReader>>,
}

impl ReplicatedSets {
    /// Starts following the sets. `None` if the machine has no randomness.
    pub fn start(key: StateKey, state: Arc<dyn SharedState>, bus: Arc<dyn Bus>, runtime: &Handle) -> Option<Arc<Self>> {
        let random = getrandom::u64().ok()?;
        key.tag(&[])?;
        let _inside = runtime.enter();
        let heard = bus.subscribe(&[CHANNEL]);
        let inner = Arc::new(BoardsInner {
            key,
            state,
            bus,
            runtime: runtime.clone(),
            copies: Default::default(),
            stale: Notify::new(),
            waiting: Mutex::default(),
            has_waiting: Notify::new(),
            numbers: AtomicU64::new(0),
            random,
        });
        ReplicatedSetName::ALL.into_iter().for_each(|set| inner.make_stale(set));
        let tasks = [
            runtime.spawn(Arc::clone(&inner).listen(heard)),
            runtime.spawn(Arc::clone(&inner).read_stale()),
            runtime.spawn(Arc::clone(&inner).change_waiting()),
        ]
        .map(OwnedTask);
        Some(Arc::new(Self { inner, _tasks: tasks }))
    }

    /// True if these parts are in the set, as far as this replica knows.
    pub fn has(&self, set: ReplicatedSetName, parts: &[&str]) -> bool {
        self.count(set, parts, 1) > 0
    }

    /// Entries of these parts, counted up to `most`.
    pub fn count(&self, set: ReplicatedSetName, parts: &[&str], most: usize) -> usize {
        let copy = self.inner.copy(set);
        if copy.count.load(Ordering::Acquire) == 0 {
            return 0;
        }
        self.inner.tag(set, parts).map_or(0, |tag| copy.count_under(&tag, most))
    }

    /// True if these parts are in the set under this owner.
    pub fn has_of(&self, set: ReplicatedSetName, owner: &str, parts: &[&str]) -> bool {
        let copy = self.inner.copy(set);
        if copy.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let entry = self.inner.owner_tag(set, owner).zip(self.inner.tag(set, parts));
        entry.is_some_and(|(owner, tag)| copy.count_under(&(owner + &tag), 1) > 0)
    }

    /// The time until the entry with these parts ends.
    pub fn left(&self, set: ReplicatedSetName, parts: &[&str]) -> Option<Duration> {
        let tag = self.inner.tag(set, parts)?;
        let entries = self.inner.copy(set).entries.read();
        entries.get(&tag).map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// A number that changes with every change of this set.
    pub fn version(&self, set: ReplicatedSetName) -> u64 {
        self.inner.copy(set).version.load(Ordering::Acquire)
    }

    /// True if the set was read once, and its readers were notified.
    pub fn has_read(&self, set: ReplicatedSetName) -> bool {
        self.inner.copy(set).is_read.load(Ordering::Acquire)
    }

    /// Waits until the set was read once. False if that takes longer.
    pub async fn was_read(&self, set: ReplicatedSetName, within: Duration) -> bool {
        let copy = self.inner.copy(set);
        let is_read = async {
            loop {
                let read = copy.first_read.notified();
                if copy.is_read.load(Ordering::Acquire) {
                    return;
                }
                read.await;
            }
        };
        timeout(within, is_read).await.is_ok()
    }

    /// Calls this after each reading of the set, on the thread that drives connections.
    pub fn on_read(&self, set: ReplicatedSetName, reader: impl Fn() + Send + Sync + 'static) {
        self.inner.copy(set).readers.lock().push(Box::new(reader));
        self.inner.make_stale(set);
    }

    /// Adds these parts for a time; all replicas know them a moment later. False if the set is
    /// full.
    ///
    /// # Errors
    ///
    /// [`Away`]. The entry may have been added.
    pub async fn post(&self, set: ReplicatedSetName, parts: &[&str], time: Duration) -> Result<bool, Away> {
        let Some(tag) = self.inner.tag(set, parts) else { return Ok(false) };
        self.inner.post(set, &tag, time).await
    }

    /// As [`post`](Self::post), under an owner who has at most `most` entries. If several replicas
    /// post at the same moment, the owner may get more.
    ///
    /// # Errors
    /// [`Away`].
    pub async fn post_of(
        &self,
        set: ReplicatedSetName,
        owner: &str,
        most: usize,
        parts: &[&str],
        time: Duration,
    ) -> Result<bool, Away> {
        let Some((owner, tag)) = self.inner.owner_tag(set, owner).zip(self.inner.tag(set, parts)) else {
            return Ok(false);
        };
        if self.inner.copy(set).count_under(&owner, most) >= most {
            return Ok(false);
        }
        self.inner.post(set, &(owner + &tag), time).await
    }

    /// As [`post`](Self::post), from a thread that drives nothing.
    ///
    /// # Errors
    /// [`Away`].
    pub fn post_waiting(&self, set: ReplicatedSetName, parts: &[&str], time: Duration) -> Result<bool, Away> {
        self.inner.runtime.block_on(self.post(set, parts, time))
    }

    /// Adds these parts once the state responds.
    pub fn post_later(&self, set: ReplicatedSetName, parts: &[&str], time: Duration) {
        if let Some(tag) = self.inner.tag(set, parts) {
            self.inner.change_later(set, tag, Some(Instant::now() + time));
        }
    }

    /// As [`post_later`](Self::post_later), in addition to entries with the same parts.
    pub fn post_one_more(&self, set: ReplicatedSetName, parts: &[&str], time: Duration) {
        if let Some(tag) = self.inner.tag(set, parts) {
            let number = self.inner.numbers.fetch_add(1, Ordering::Relaxed);
            let entry = format!("{tag}{SEPARATOR}{:016x}-{number:x}", self.inner.random);
            self.inner.change_later(set, entry, Some(Instant::now() + time));
        }
    }

    /// Removes all known entries of a set, once the state responds.
    pub fn clear_later(&self, set: ReplicatedSetName) {
        let copy = self.inner.copy(set);
        let entries: Vec<String> = copy.entries.read().keys().cloned().collect();
        for entry in entries {
            copy.change(&entry, None);
            self.inner.change_later(set, entry, None);
        }
    }

    /// Removes these parts once the state responds.
    pub fn take_down_later(&self, set: ReplicatedSetName, parts: &[&str]) {
        if let Some(tag) = self.inner.tag(set, parts) {
            self.inner.change_later(set, tag, None);
        }
    }
}

impl BoardsInner {
    fn copy(&self, set: ReplicatedSetName) -> &ReplicatedSetCopy {
        let [revoked, consents, approvals, ends] = &self.copies;
        [revoked, consents, approvals, ends].get(set.place()).copied().unwrap_or(revoked)
    }

    fn tag(&self, set: ReplicatedSetName, parts: &[&str]) -> Option<String> {
        let mut all = vec!["set", set.name()];
        all.extend(parts);
        self.key.tag(&all)
    }

    /// The prefix of each entry under an owner.
    fn owner_tag(&self, set: ReplicatedSetName, owner: &str) -> Option<String> {
        let mut tag = self.tag(set, &["owner", owner])?;
        tag.truncate(OWNER_DIGITS);
        tag.push(SEPARATOR);
        Some(tag)
    }

    async fn post(&self, set: ReplicatedSetName, entry: &str, time: Duration) -> Result<bool, Away> {
        let is_posted = self.state.post(set.name(), entry, time).await?;
        if is_posted {
            self.copy(set).change(entry, Some(Instant::now() + time));
            self.notify(set);
        }
        Ok(is_posted)
    }

    async fn take_down(&self, set: ReplicatedSetName, entry: &str) -> Result<(), Away> {
        self.state.take_down(set.name(), entry).await?;
        self.copy(set).change(entry, None);
        self.notify(set);
        Ok(())
    }

    /// Announces that a set has changed, without waiting.
    fn notify(&self, set: ReplicatedSetName) {
        let bus = Arc::clone(&self.bus);
        drop(self.runtime.spawn(async move {
            if let Err(error) = publish(&*bus, CHANNEL, set.name().as_bytes()).await {
                tracing::debug!("other replicas read a replicated set again in a minute, and not now: {error}");
            }
        }));
    }

    fn make_stale(&self, set: ReplicatedSetName) {
        self.copy(set).is_stale.store(true, Ordering::Release);
        self.stale.notify_one();
    }

    fn change_later(&self, set: ReplicatedSetName, entry: String, until: Option<Instant>) {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= WAITING_MAX && !waiting.contains_key(&(set, entry.clone())) {
            drop(waiting);
            tracing::warn!("other replicas are not notified of everything: too much waits ({})", set.name());
            return;
        }
        waiting.insert((set, entry), until);
        drop(waiting);
        self.has_waiting.notify_one();
    }

    /// Receives announcements of changed sets, forever.
    async fn listen(self: Arc<Self>, mut heard: Subscription) {
        loop {
            let changed = match timeout(READ_AGAIN_AFTER, heard.next()).await {
                Ok(News::Message(name)) => {
                    ReplicatedSetName::ALL.iter().filter(|set| set.name().as_bytes() == name).copied().collect()
                }
                // Some may have been missed.
                Ok(News::Listening) | Err(_) => ReplicatedSetName::ALL.to_vec(),
            };
            changed.into_iter().for_each(|set| self.make_stale(set));
        }
    }

    /// Reads sets that may have changed, forever. However often one changes meanwhile, it is read
    /// once more.
    async fn read_stale(self: Arc<Self>) {
        loop {
            self.stale.notified().await;
            for set in ReplicatedSetName::ALL {
                while self.copy(set).is_stale.swap(false, Ordering::AcqRel) {
                    if let Err(away) = self.read(set).await {
                        tracing::debug!("a replicated set is not read: {}", away.internal());
                        self.make_stale(set);
                        sleep(TRY_AGAIN_AFTER).await;
                        break;
                    }
                }
            }
        }
    }

    async fn read(&self, set: ReplicatedSetName) -> Result<(), Away> {
        let copy = self.copy(set);
        let changes = copy.changes.load(Ordering::Acquire);
        let now = Instant::now();
        let posted = self.state.posted(set.name()).await?;
        let posted = posted.into_iter().map(|posted| (posted.entry, now + posted.left)).collect();
        if !copy.take_over(posted, changes) {
            self.make_stale(set);
            return Ok(());
        }
        copy.readers.lock().iter().for_each(|reader| reader());
        copy.is_read.store(true, Ordering::Release);
        copy.first_read.notify_waiters();
        Ok(())
    }

    /// Makes the waiting changes, forever.
    async fn change_waiting(self: Arc<Self>) {
        loop {
            let next = self.waiting.lock().first_key_value().map(|(change, until)| (change.clone(), *until));
            let Some(((set, entry), until)) = next else {
                self.has_waiting.notified().await;
                continue;
            };
            let done = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => Ok(()),
                Some(left) => self.post(set, &entry, left).await.map(|is_posted| {
                    if !is_posted {
                        tracing::warn!("other replicas are not notified of everything: no room ({})", set.name());
                    }
                }),
                None => self.take_down(set, &entry).await,
            };
            if done.is_err() {
                sleep(TRY_AGAIN_AFTER).await;
                continue;
            }
            let mut waiting = self.waiting.lock();
            // A later change of the same entry keeps waiting.
            if waiting.get(&(set, entry.clone())) == Some(&until) {
                waiting.remove(&(set, entry));
            }
        }
    }
}

impl ReplicatedSetCopy {
    /// Current entries with this prefix, counted up to `most`.
    fn count_under(&self, beginning: &str, most: usize) -> usize {
        let entries = self.entries.read();
        let now = Instant::now();
        let own = entries.range(beginning.to_owned()..).take_while(|(entry, _)| entry.starts_with(beginning));
        own.filter(|(_, until)| **until > now).take(most).count()
    }

    /// Applies a change that was made here: the end of an entry, or `None` if it was removed.
    fn change(&self, entry: &str, until: Option<Instant>) {
        let mut entries = self.entries.write();
        match until {
            Some(until) => _ = entries.insert(entry.to_owned(), until),
            None => _ = entries.remove(entry),
        }
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.version.fetch_add(1, Ordering::AcqRel);
        self.count.store(entries.len(), Ordering::Release);
    }

    /// Replaces the entries. False if they were read before a change that was made here.
    fn take_over(&self, posted: BTreeMap<String, Instant>, changes: u64) -> bool {
        let mut entries = self.entries.write();
        if self.changes.load(Ordering::Acquire) != changes {
            return false;
        }
        if !posted.keys().eq(entries.keys()) {
            self.version.fetch_add(1, Ordering::AcqRel);
        }
        self.count.store(posted.len(), Ordering::Release);
        *entries = posted;
        true
    }
}

#[cfg(test)]
pub mod tests {
    use toolcell_shared::{Embedded, EmbeddedBus};

    use super::ReplicatedSetName::{Consents, Ends, Revoked};
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    /// Two replicas with a key each.
    pub fn replicas(keys: [u8; 2]) -> [Arc<ReplicatedSets>; 2] {
        let state = Arc::<Embedded>::default();
        let bus = Arc::<EmbeddedBus>::default();
        keys.map(|key| {
            let state: Arc<dyn SharedState> = Arc::<Embedded>::clone(&state);
            let bus: Arc<dyn Bus> = Arc::<EmbeddedBus>::clone(&bus);
            ReplicatedSets::start(StateKey::of(&[key; 32]).unwrap(), state, bus, &Handle::current()).unwrap()
        })
    }

    pub async fn comes_true(what: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(Instant::now() < until, "not in time: {what}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn what_one_posts_all_know_until_it_is_taken_down_or_ends() {
        let [one, other] = replicas([1, 1]);
        assert!(other.was_read(Revoked, HOUR).await && !other.has(Revoked, &["a"]));
        assert_eq!(one.post(Revoked, &["a"], HOUR).await, Ok(true));
        assert!(one.has(Revoked, &["a"]), "at once where it was posted");
        comes_true("it is known", || other.has(Revoked, &["a"])).await;
        assert!(!other.has(Consents, &["a"]) && !other.has(Revoked, &["a", ""]) && !other.has(Revoked, &[]));
        other.take_down_later(Revoked, &["a"]);
        comes_true("it is down", || !one.has(Revoked, &["a"]) && !other.has(Revoked, &["a"])).await;
        other.post_later(Revoked, &["b"], Duration::from_secs(3));
        comes_true("it is known", || one.has(Revoked, &["b"])).await;
        comes_true("it ends without a word", || !one.has(Revoked, &["b"])).await;
    }

    #[tokio::test]
    async fn entries_of_the_same_parts_are_counted() {
        let [one, other] = replicas([1, 1]);
        for replica in [&one, &one, &other] {
            replica.post_one_more(Ends, &["a"], HOUR);
        }
        other.post_one_more(Ends, &["b"], HOUR);
        comes_true("both count", || [&one, &other].iter().all(|replica| replica.count(Ends, &["a"], 9) == 3)).await;
        assert_eq!(one.count(Ends, &["a"], 2), 2);
        one.clear_later(Ends);
        assert_eq!([one.count(Ends, &["a"], 9), one.count(Ends, &["b"], 9)], [0, 0]);
        comes_true("all know", || other.count(Ends, &["a"], 9) + other.count(Ends, &["b"], 9) == 0).await;
    }

    #[tokio::test]
    async fn an_owner_has_a_share_of_the_set() {
        let [one, other] = replicas([1, 1]);
        for number in 0..4 {
            let posted = one.post_of(Consents, "ann", 3, &[&number.to_string()], HOUR).await;
            assert_eq!(posted, Ok(number < 3));
        }
        assert_eq!(one.post_of(Consents, "bob", 3, &["0"], HOUR).await, Ok(true));
        comes_true("it is known", || other.has_of(Consents, "bob", &["0"])).await;
        assert_eq!(other.post_of(Consents, "ann", 3, &["3"], HOUR).await, Ok(false), "wherever they were posted");
        assert!(other.has_of(Consents, "ann", &["2"]) && !other.has_of(Consents, "bob", &["1"]));
        assert!(!other.has_of(Consents, "ann", &["3"]) && !other.has(Consents, &["0"]));
    }

    #[tokio::test]
    async fn who_has_another_key_posts_nothing_that_counts() {
        let [one, other] = replicas([1, 2]);
        assert_eq!(one.post(Consents, &["a"], HOUR).await, Ok(true));
        let copy = other.inner.copy(Consents);
        comes_true("it was heard", || copy.count.load(Ordering::Acquire) > 0).await;
        assert!(one.has(Consents, &["a"]) && !other.has(Consents, &["a"]));
    }

    #[tokio::test]
    async fn readers_hear_of_each_reading() {
        let [one, other] = replicas([1, 1]);
        let times = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&times);
        other.on_read(Revoked, move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        comes_true("at first", || times.load(Ordering::Relaxed) > 0).await;
        let before = times.load(Ordering::Relaxed);
        assert_eq!(one.post(Revoked, &["a"], HOUR).await, Ok(true));
        comes_true("after a change", || times.load(Ordering::Relaxed) > before).await;
    }

    #[test]
    fn what_waits_is_bounded() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        // Nothing is driven, so all of it waits.
        let [one, _] = runtime.block_on(async { replicas([1, 1]) });
        for number in 0..WAITING_MAX + 10 {
            one.post_one_more(Ends, &["a"], HOUR);
            assert!(one.inner.waiting.lock().len() <= WAITING_MAX, "{number}");
        }
    }
}
