//! Notifications of a changed list by several replicas with the same clients: each listener is
//! notified once, when all replicas have the same list.
//!
//! A notified client asks any replica. One that still has the old list would answer with it, and
//! nothing would notify the client again. So each replica announces which list it has, and waits
//! for the others before it notifies its own listeners: for [`AGREED_WITHIN`], and longer for one
//! that says that it is loading. If a replica changes later, listeners are notified again.
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use toolcell_mcp::{Host, McpServer};
use toolcell_shared::{Bus, News, Subscription};

use crate::owned_task::OwnedTask;
use crate::replicas::random_name;

/// Longest wait for a replica that says nothing. Replicas see a change of their files within a
/// second or two.
const AGREED_WITHIN: Duration = Duration::from_secs(5);

/// Longest wait for replicas that say that they are loading: as long as one component may compile
/// (`compile_time` by default). A component of 10 MB takes 8 to 20 s.
const LOADED_WITHIN: Duration = Duration::from_mins(2);

/// A loading replica says so this often. One that is gone says nothing more, and is not waited for.
const LOADING_EVERY: Duration = Duration::from_secs(1);

/// Other replicas that are tracked.
const OTHERS_MAX: usize = 256;

/// Longest message, in bytes. Messages have about 100.
const MESSAGE_BYTES_MAX: usize = 256;

const CHANNEL: &str = "lists";

/// Notifies listeners of changed lists, together with other replicas.
pub struct Announcements {
    voice: Arc<Voice>,
    own: Arc<OwnState>,
    task: OwnedTask,
}

/// What the reload thread says about this replica.
#[derive(Default)]
struct OwnState {
    changed: Notify,
    /// True while it may soon have another list.
    loads: AtomicBool,
}

/// While it lives, this replica may soon have another list, and the others wait for it.
pub struct LoadingNotice(Arc<OwnState>);

impl LoadingNotice {
    fn begin(own: &Arc<OwnState>) -> Self {
        own.loads.store(true, Ordering::Relaxed);
        own.changed.notify_one();
        Self(Arc::clone(own))
    }
}

impl Drop for LoadingNotice {
    fn drop(&mut self) {
        self.0.loads.store(false, Ordering::Relaxed);
        self.0.changed.notify_one();
    }
}

/// The sender of this replica's messages.
struct Voice {
    name: String,
    bus: Arc<dyn Bus>,
}

#[derive(Serialize, Deserialize)]
struct ListsNote {
    #[serde(rename = "f")]
    from: String,
    #[serde(rename = "n")]
    news: ListNews,
}

/// Lists are identified by digests in hexadecimal digits.
#[derive(Serialize, Deserialize)]
enum ListNews {
    /// The sender has this list.
    Is(String),
    /// The sender has this list, and asks others for theirs.
    Asks(String),
    /// The sender may soon have another list. Replicas of earlier versions ignore it.
    Loading,
    /// The sender ends.
    Left,
}

impl Announcements {
    /// Starts. `None` if the machine has no randomness.
    pub fn start<H>(server: &Arc<McpServer<H>>, current: &Arc<H>, bus: Arc<dyn Bus>, runtime: &Handle) -> Option<Self>
    where
        H: Host<Catalog: CatalogLists>,
    {
        let name = random_name()?;
        let _inside = runtime.enter();
        let heard = bus.subscribe(&[CHANNEL]);
        let voice = Arc::new(Voice { name, bus });
        let own = Arc::<OwnState>::default();
        let told = current.snapshot();
        let announcer = Announcer {
            server: Arc::clone(server),
            current: Arc::clone(current),
            voice: Arc::clone(&voice),
            own: Arc::clone(&own),
            loading: None,
            known: KnownLists { agreement: Agreement::new(told.lists()), told },
        };
        let task = OwnedTask(runtime.spawn(announcer.run(heard)));
        Some(Self { voice, own, task })
    }

    /// This replica has another catalog. Returns true if listeners will be notified.
    pub fn changed<C: CatalogLists>(&self, old: &C, new: &C) -> bool {
        self.own.changed.notify_one();
        old.lists() != new.lists()
    }

    /// An attempt to load another catalog begins. It is over when the notice is dropped.
    pub fn loading(&self) -> LoadingNotice {
        LoadingNotice::begin(&self.own)
    }

    /// Notifies others that this replica ends.
    pub async fn leave(&self) {
        self.task.0.abort();
        self.voice.send(ListNews::Left).await;
    }
}

impl Voice {
    /// Sends this to all replicas. A lost message is asked for again when replicas reconnect.
    async fn send(&self, news: ListNews) {
        let note = ListsNote { from: self.name.clone(), news };
        if let Ok(message) = serde_json::to_vec(&note)
            && let Err(error) = self.bus.publish(CHANNEL, &message).await
        {
            tracing::debug!("other replicas are not notified of the list: {error}");
        }
    }
}

struct Announcer<H: Host> {
    server: Arc<McpServer<H>>,
    current: Arc<H>,
    voice: Arc<Voice>,
    own: Arc<OwnState>,
    /// When this replica says again that it is loading. `None` if it is not.
    loading: Option<Instant>,
    known: KnownLists<H::Catalog>,
}

impl<H: Host<Catalog: CatalogLists>> Announcer<H> {
    async fn run(mut self, mut heard: Subscription) {
        loop {
            let own = Arc::clone(&self.own);
            tokio::select! {
                news = heard.next() => self.receive(news).await,
                () = own.changed.notified() => self.check().await,
                () = at(self.loading) => self.say_loading().await,
                () = at(self.known.agreement.due()) => {}
            }
            if self.known.agreement.is_due(Instant::now()) {
                self.notify();
            }
        }
    }

    async fn receive(&mut self, news: News) {
        // Its own list first: others may already have it.
        self.check().await;
        let agreement = &mut self.known.agreement;
        match news {
            News::Listening => {
                self.voice.send(ListNews::Asks(agreement.own_text())).await;
                self.say_loading_again().await;
            }
            News::Message(message) => {
                let Some(note) = read(&message).filter(|note| note.from != self.voice.name) else { return };
                let now = Instant::now();
                match note.news {
                    ListNews::Is(list) => agreement.learn(&note.from, &list, now),
                    ListNews::Asks(list) => {
                        agreement.learn(&note.from, &list, now);
                        self.voice.send(ListNews::Is(agreement.own_text())).await;
                        self.say_loading_again().await;
                    }
                    ListNews::Loading => agreement.loads(&note.from, now),
                    ListNews::Left => agreement.left(&note.from, now),
                }
            }
        }
    }

    /// Checks this replica's own list, and whether it is loading another one.
    async fn check(&mut self) {
        let loads = self.own.loads.load(Ordering::Relaxed);
        let is_over = !loads && self.loading.take().is_some();
        self.known.agreement.own_loads = loads;
        if self.known.compare(self.current.snapshot(), Instant::now()) || is_over {
            self.voice.send(ListNews::Is(self.known.agreement.own_text())).await;
            self.say_loading_again().await;
        } else if loads && self.loading.is_none() {
            self.say_loading().await;
        }
    }

    /// [`ListNews::Is`] and [`ListNews::Asks`] say that the sender has loaded its list.
    async fn say_loading_again(&mut self) {
        if self.known.agreement.own_loads {
            self.say_loading().await;
        }
    }

    async fn say_loading(&mut self) {
        self.voice.send(ListNews::Loading).await;
        self.loading = Some(Instant::now() + LOADING_EVERY);
    }

    fn notify(&mut self) {
        let new = self.current.snapshot();
        let lists = Some(self.known.agreement.lists());
        let old = self.known.notify(&new);
        if new.lists() == old.lists() {
            // The list of another replica has changed, in unknown ways.
            self.server.catalog_changed(lists);
        } else {
            self.server.catalog_replaced_by(&old, &new, lists);
        }
    }
}

/// Waits until this instant, or forever.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// A catalog, as far as its lists are concerned.
pub trait CatalogLists {
    /// A digest of its lists, equal across replicas.
    fn lists(&self) -> u64;

    /// True if callers see less than these lists, until the next generation serves.
    fn is_narrowed(&self) -> bool;
}

struct KnownLists<C> {
    /// The catalog that listeners know.
    told: Arc<C>,
    agreement: Agreement,
}

impl<C: CatalogLists> KnownLists<C> {
    /// Notes this replica's catalog. Returns true if its lists have changed: then the other
    /// replicas must be notified.
    fn compare(&mut self, new: Arc<C>, now: Instant) -> bool {
        // Listeners are notified of narrowed lists with the generation that has the new rules.
        if Arc::ptr_eq(&new, &self.told) || new.is_narrowed() {
            return false;
        }
        let differs = self.agreement.own_is(new.lists(), now);
        if !differs && self.agreement.since.is_none() {
            self.told = new;
        }
        differs
    }

    /// Notifies listeners of this catalog. Returns the one that they knew before.
    fn notify(&mut self, new: &Arc<C>) -> Arc<C> {
        if new.is_narrowed() {
            return Arc::clone(&self.told);
        }
        std::mem::replace(&mut self.told, Arc::clone(new))
    }
}

/// The lists of all replicas.
struct Agreement {
    own: u64,
    /// True while this replica may soon have another list.
    own_loads: bool,
    others: BTreeMap<Box<str>, OtherList>,
    /// The first change that listeners are not yet notified of.
    since: Option<Instant>,
    /// True if they are not notified before [`AGREED_WITHIN`].
    waits: bool,
}

struct OtherList {
    list: Box<str>,
    /// True if it had not followed when listeners were notified. It may be gone, so it is not
    /// waited for.
    lags: bool,
    /// It is loading, and counts as gone if it does not say so again before.
    loads_until: Option<Instant>,
}

impl OtherList {
    const fn of(list: Box<str>) -> Self {
        Self { list, lags: false, loads_until: None }
    }
}

impl Agreement {
    const fn new(own: u64) -> Self {
        Self { own, own_loads: false, others: BTreeMap::new(), since: None, waits: false }
    }

    fn own_text(&self) -> String {
        format!("{:016x}", self.own)
    }

    /// A digest of the lists that a client may get, equal on all replicas that know of each other.
    fn lists(&self) -> u64 {
        let own = self.own_text();
        let mut lists: Vec<&str> = self.others.values().map(|other| &*other.list).collect();
        lists.push(&own);
        // Kept as a multiset: a replica that catches up changes it without a new list.
        lists.sort_unstable();
        // If all agree, their number does not matter: some may not know all others yet.
        if lists.iter().all(|list| *list == own) {
            lists.truncate(1);
        }
        let mut hasher = DefaultHasher::new();
        lists.hash(&mut hasher);
        hasher.finish()
    }

    /// Sets this replica's list. Returns true if it has changed.
    fn own_is(&mut self, list: u64, now: Instant) -> bool {
        let differs = std::mem::replace(&mut self.own, list) != list;
        if differs {
            self.change(now);
        }
        differs
    }

    /// Sets another replica's list.
    fn learn(&mut self, from: &str, list: &str, now: Instant) {
        let differs = match self.others.get(from) {
            Some(known) => *known.list != *list,
            None if self.others.len() >= OTHERS_MAX => return,
            None => *list != *self.own_text(),
        };
        self.others.insert(from.into(), OtherList::of(list.into()));
        if differs {
            self.change(now);
        }
    }

    /// Another replica may soon have another list. One that is not known says which list it has
    /// first.
    fn loads(&mut self, from: &str, now: Instant) {
        if let Some(other) = self.others.get_mut(from) {
            other.lags = false;
            other.loads_until = Some(now + AGREED_WITHIN);
        }
    }

    /// Another replica has ended. After a moment, its clients connect to others, where they are
    /// notified that the list may differ.
    fn left(&mut self, from: &str, now: Instant) {
        let left = self.others.remove(from);
        if left.is_some_and(|left| *left.list != *self.own_text()) {
            self.change(now);
            self.waits = true;
        }
    }

    fn change(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Replicas that have another list, and may follow.
    fn behind(&self) -> impl Iterator<Item = &OtherList> {
        let own = self.own_text();
        self.others.values().filter(move |other| !other.lags && *other.list != *own)
    }

    /// When listeners are notified, even without agreement.
    fn due(&self) -> Option<Instant> {
        let since = self.since?;
        let until = since + LOADED_WITHIN;
        let loaded = self.behind().filter_map(|other| other.loads_until).max();
        let own_loaded = (self.own_loads && self.behind().next().is_some()).then_some(until);
        Some(loaded.max(own_loaded).unwrap_or(since).clamp(since + AGREED_WITHIN, until))
    }

    /// True if listeners are to be notified now.
    fn is_due(&mut self, now: Instant) -> bool {
        let Some(due) = self.due() else { return false };
        let agreed = self.behind().next().is_none();
        if now < due && (self.waits || !agreed) {
            return false;
        }
        let own = self.own_text();
        for other in self.others.values_mut().filter(|other| *other.list != *own) {
            other.lags = true;
        }
        (self.since, self.waits) = (None, false);
        true
    }
}

fn read(message: &[u8]) -> Option<ListsNote> {
    let note: ListsNote = serde_json::from_slice(message.get(..MESSAGE_BYTES_MAX.min(message.len()))?).ok()?;
    (note.from.len() <= 64).then_some(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A_WHILE: Duration = Duration::from_secs(1);

    fn text(list: u64) -> String {
        format!("{list:016x}")
    }

    /// A replica with list 1, as two others have it.
    fn agreed() -> (Agreement, Instant) {
        let mut agreement = Agreement::new(1);
        let now = Instant::now();
        for other in ["b", "c"] {
            agreement.learn(other, &text(1), now);
        }
        assert!(!agreement.is_due(now + 10 * AGREED_WITHIN), "nothing has changed");
        (agreement, now)
    }

    /// A generation with these lists.
    struct Generation {
        lists: u64,
        narrowed: bool,
    }

    impl CatalogLists for Generation {
        fn lists(&self) -> u64 {
            self.lists
        }

        fn is_narrowed(&self) -> bool {
            self.narrowed
        }
    }

    /// Listeners are notified of the difference between two catalogs. The narrowed one does not
    /// differ from the one that follows.
    #[test]
    fn a_replica_that_hears_another_one_while_rights_are_narrowed_still_tells_its_listeners() {
        let now = Instant::now();
        let old = Arc::new(Generation { lists: 1, narrowed: false });
        let narrowed = Arc::new(Generation { lists: 1, narrowed: true });
        let new = Arc::new(Generation { lists: 2, narrowed: false });
        for is_due_meanwhile in [false, true] {
            let mut known = KnownLists { told: Arc::clone(&old), agreement: Agreement::new(1) };
            assert!(!known.compare(Arc::clone(&narrowed), now));
            if is_due_meanwhile {
                known.agreement.learn("b", &text(2), now);
                assert!(known.agreement.is_due(now + AGREED_WITHIN));
                assert!(Arc::ptr_eq(&known.notify(&narrowed), &old));
            }
            assert!(known.compare(Arc::clone(&new), now), "the others hear of it");
            assert!(known.agreement.is_due(now + AGREED_WITHIN));
            assert!(Arc::ptr_eq(&known.notify(&new), &old), "so the difference is told");
            assert!(!known.compare(Arc::clone(&new), now) && known.agreement.since.is_none(), "once");
            assert!(Arc::ptr_eq(&known.told, &new));
        }
    }

    #[test]
    fn listeners_are_told_once_when_all_agree() {
        for order in [["a", "b", "c"], ["b", "a", "c"], ["c", "b", "a"]] {
            let (mut agreement, now) = agreed();
            for (number, replica) in order.into_iter().enumerate() {
                match replica {
                    "a" => assert!(agreement.own_is(2, now)),
                    other => agreement.learn(other, &text(2), now),
                }
                assert_eq!(agreement.is_due(now), number == 2, "{order:?} {replica}");
            }
            for replica in ["b", "c"] {
                agreement.learn(replica, &text(2), now);
            }
            assert!(!agreement.own_is(2, now));
            assert!(!agreement.is_due(now + 10 * AGREED_WITHIN), "{order:?}");
        }
    }

    #[test]
    fn nobody_waits_for_long_and_one_that_comes_later_is_another_change() {
        let (mut agreement, now) = agreed();
        assert!(agreement.own_is(2, now));
        agreement.learn("b", &text(2), now);
        assert!(!agreement.is_due(now + AGREED_WITHIN - A_WHILE));
        assert!(agreement.is_due(now + AGREED_WITHIN));
        assert!(!agreement.is_due(now + 10 * AGREED_WITHIN), "once");
        let later = now + 10 * AGREED_WITHIN;
        agreement.learn("c", &text(2), later);
        assert!(agreement.is_due(later), "all agree now, so a client that was told before is told again");
    }

    #[test]
    fn a_replica_that_is_gone_is_waited_for_once() {
        let (mut agreement, now) = agreed();
        assert!(agreement.own_is(2, now));
        agreement.learn("b", &text(2), now);
        assert!(agreement.is_due(now + AGREED_WITHIN));
        agreement.learn("b", &text(3), now);
        assert!(!agreement.is_due(now));
        assert!(agreement.own_is(3, now));
        assert!(agreement.is_due(now), "c is waited for no more");
    }

    #[test]
    fn a_replica_that_loads_is_waited_for_until_it_has_loaded() {
        for list in [1, 2] {
            let (mut agreement, now) = agreed();
            assert!(agreement.own_is(2, now));
            agreement.learn("b", &text(2), now);
            let mut later = now;
            for _ in 0..30 {
                agreement.loads("c", later);
                assert!(!agreement.is_due(later), "it still loads");
                later += LOADING_EVERY;
            }
            agreement.learn("c", &text(list), later);
            assert!(agreement.is_due(later), "it has loaded, or has failed to: list {list}");
            assert!(!agreement.is_due(later + 10 * LOADED_WITHIN), "once");
        }
    }

    #[test]
    fn a_replica_that_loads_waits_for_itself() {
        let (mut agreement, now) = agreed();
        agreement.own_loads = true;
        for other in ["b", "c"] {
            agreement.learn(other, &text(2), now);
        }
        let later = now + LOADED_WITHIN - A_WHILE;
        assert!(!agreement.is_due(later));
        assert!(agreement.own_is(2, later));
        assert!(agreement.is_due(later), "all agree, and the next attempt is another change");
    }

    #[test]
    fn nobody_waits_for_one_that_loads_forever_or_is_gone() {
        let (mut agreement, now) = agreed();
        assert!(agreement.own_is(2, now));
        agreement.learn("b", &text(2), now);
        agreement.loads("c", now + A_WHILE);
        assert!(!agreement.is_due(now + AGREED_WITHIN));
        assert!(agreement.is_due(now + A_WHILE + AGREED_WITHIN), "it was killed while it loaded");

        assert!(agreement.own_is(3, now));
        agreement.learn("b", &text(3), now);
        agreement.loads("c", now);
        agreement.left("c", now);
        agreement.loads("c", now);
        assert!(!agreement.others.contains_key("c"), "one that left is not known");
        assert!(agreement.is_due(now + AGREED_WITHIN));

        agreement.learn("c", &text(3), now);
        assert!(agreement.own_is(4, now) && !agreement.is_due(now));
        agreement.learn("b", &text(4), now);
        agreement.loads("c", now + LOADED_WITHIN - A_WHILE);
        assert!(!agreement.is_due(now + LOADED_WITHIN - A_WHILE));
        assert!(agreement.is_due(now + LOADED_WITHIN), "it loads for too long");
        let later = now + 2 * LOADED_WITHIN;
        agreement.loads("c", later);
        agreement.learn("c", &text(4), later);
        assert!(agreement.is_due(later), "another change");
    }

    #[test]
    fn a_change_elsewhere_alone_reaches_listeners() {
        let (mut agreement, now) = agreed();
        agreement.learn("b", &text(2), now);
        assert!(!agreement.is_due(now));
        assert!(agreement.is_due(now + AGREED_WITHIN));
        let mut joined = Agreement::new(1);
        joined.learn("new", &text(1), now);
        assert!(!joined.is_due(now + AGREED_WITHIN), "the list of one that joins is known");
        joined.learn("newer", &text(2), now);
        assert!(joined.is_due(now + AGREED_WITHIN));
    }

    #[test]
    fn clients_of_one_that_left_are_told_once_they_have_come() {
        let (mut agreement, now) = agreed();
        agreement.left("b", now);
        agreement.left("unknown", now);
        assert!(!agreement.is_due(now + 10 * AGREED_WITHIN), "it had the same list");
        agreement.learn("b", &text(2), now);
        assert!(agreement.is_due(now + AGREED_WITHIN));
        agreement.left("b", now);
        assert!(!agreement.is_due(now + A_WHILE), "all agree, and its clients are on their way");
        assert!(agreement.is_due(now + AGREED_WITHIN));
    }

    #[test]
    fn messages_and_replicas_are_bounded() {
        let (mut agreement, now) = agreed();
        for number in 0..10 * OTHERS_MAX {
            agreement.learn(&number.to_string(), &text(1), now);
        }
        assert_eq!(agreement.others.len(), OTHERS_MAX);
        let long =
            serde_json::to_vec(&ListsNote { from: "a".to_owned(), news: ListNews::Is("b".repeat(1_000)) }).unwrap();
        assert!(read(&long).is_none());
        for strange in ["", "{}", "null", "[1]", r#"{"f":"a","n":"Unknown"}"#] {
            assert!(read(strange.as_bytes()).is_none(), "{strange}");
        }
        assert!(matches!(read(br#"{"f":"a","n":"Loading"}"#), Some(ListsNote { news: ListNews::Loading, .. })));
        let note = serde_json::to_vec(&ListsNote { from: "a".repeat(32), news: ListNews::Asks(text(7)) }).unwrap();
        assert!(matches!(read(&note), Some(ListsNote { news: ListNews::Asks(list), .. }) if list == text(7)));
    }
}
