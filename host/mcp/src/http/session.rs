//! Legacy sessions: their ids, their owners, the stream that a client opens with GET, and their
//! end.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::executor::DrivingExecutor;
use super::limits::HttpLimits;
use super::mailbox::{Mailbox, ResponseEnd};
use super::quota::{Owner, QuotaError};
use super::resume::AnswerStreams;
use crate::caller::Caller;
use crate::connection::ClientConnection;
use crate::host::{Host, Outbox};
use crate::lock::lock;

/// Frames that are kept while a client has no open stream, without duplicates and besides one for
/// each resource that the session may watch. 8: there are three lists.
const KEPT_FRAMES_BESIDES: usize = 8;

/// One legacy session.
pub(super) struct LegacySession<H: Host> {
    pub(super) connection: ClientConnection<H>,
    pub(super) driving: Arc<DrivingExecutor>,
    pub(super) outbox: Arc<SessionOutbox>,
    pub(super) answers: AnswerStreams,
    caller: Caller,
    began: Instant,
    /// Its longest life.
    time: Duration,
    /// Nanoseconds from `began` to the last use. Nanoseconds, since several uses may fall into one
    /// millisecond, and their order decides which session is ended.
    used: AtomicU64,
    uses: AtomicUsize,
}

/// The outbox for messages that belong to no request. They go to the client's open stream, or are
/// kept for the next one.
pub(super) struct SessionOutbox {
    kept_max: usize,
    unsent: Mutex<UnsentFrames>,
}

#[derive(Default)]
struct UnsentFrames {
    stream: Option<Arc<Mailbox>>,
    kept: VecDeque<Vec<u8>>,
    /// The name of the stream among replicas.
    name: Option<StreamName>,
    /// The name of another replica's stream. That replica sends what this one would keep.
    elsewhere: Option<String>,
    /// The last change that the client has been, or will be, notified of.
    told: Option<u64>,
}

/// Messages that were kept for a stream, and the last change that was sent on it.
pub(super) struct KeptFrames {
    pub(super) frames: Vec<String>,
    pub(super) told: Option<u64>,
}

/// The name of a stream among replicas.
struct StreamName {
    name: String,
    /// Dropped once all replicas know of it, so that streams are ordered.
    unconfirmed: Option<oneshot::Sender<()>>,
    /// True until another replica's kept frames were sent on it.
    adopts: bool,
}

impl SessionOutbox {
    /// The outbox of a session that may watch this many resources.
    pub(super) fn new(watched_max: usize) -> Self {
        Self { kept_max: watched_max.saturating_add(KEPT_FRAMES_BESIDES), unsent: Mutex::default() }
    }

    /// Sends frames to this stream from now on. An earlier one ends: a client reads one stream.
    /// `name` is its name among replicas, if there are any. The receiver completes once all of them
    /// know of it, or another stream replaces it.
    pub(super) fn open(&self, stream: &Arc<Mailbox>, name: Option<&str>) -> oneshot::Receiver<()> {
        let (sender, known) = oneshot::channel();
        let before = {
            let mut unsent = lock(&self.unsent);
            let adopts = unsent.kept.is_empty();
            unsent.kept.drain(..).for_each(|frame| stream.queue(frame));
            unsent.name = name.map(|name| StreamName { name: name.to_owned(), unconfirmed: Some(sender), adopts });
            unsent.elsewhere = None;
            unsent.stream.replace(Arc::clone(stream))
        };
        if let Some(before) = before {
            before.end(ResponseEnd::Nothing);
        }
        known
    }

    /// All replicas know of the stream of this name.
    pub(super) fn confirm(&self, name: &str) {
        if let Some(own) = lock(&self.unsent).name.as_mut().filter(|own| own.name == name) {
            own.unconfirmed = None;
        }
    }

    /// Another replica has the stream from now on. Returns the frames that were kept for it, and
    /// the last change sent here. A stream that was opened here since is newer, and stays.
    pub(super) fn moved(&self, name: &str) -> Option<KeptFrames> {
        let (before, kept, told) = {
            let mut unsent = lock(&self.unsent);
            let is_open = unsent.stream.as_ref().is_some_and(|stream| !stream.is_over());
            if is_open && unsent.name.as_ref().is_some_and(|own| own.unconfirmed.is_some()) {
                return None;
            }
            unsent.elsewhere = Some(name.to_owned());
            unsent.name = None;
            (unsent.stream.take(), std::mem::take(&mut unsent.kept), unsent.told)
        };
        let had_stream = before.is_some();
        if let Some(before) = before {
            before.end(ResponseEnd::Nothing);
        }
        let frames: Vec<String> = kept.into_iter().filter_map(|frame| String::from_utf8(frame).ok()).collect();
        (had_stream || !frames.is_empty()).then_some(KeptFrames { frames, told })
    }

    /// Another replica's stream of this name has ended.
    pub(super) fn closed_elsewhere(&self, name: &str) {
        let mut unsent = lock(&self.unsent);
        if unsent.elsewhere.as_deref() == Some(name) {
            unsent.elsewhere = None;
        }
    }

    /// Forgets streams of other replicas without recent messages.
    pub(super) fn forget_elsewhere(&self) {
        let mut unsent = lock(&self.unsent);
        unsent.elsewhere = None;
        if let Some(own) = &mut unsent.name {
            own.unconfirmed = None;
        }
    }

    /// Sends frames that another replica kept for the stream of this name, unless that was done.
    /// All replicas keep the same ones.
    pub(super) fn adopt(&self, name: &str, kept: KeptFrames) {
        let mut unsent = lock(&self.unsent);
        let KeptFrames { frames, told } = kept;
        let Some(own) = unsent.name.as_mut().filter(|own| own.name == name) else { return };
        let is_new = !frames.is_empty() && std::mem::take(&mut own.adopts);
        let knows = told.is_some() && unsent.told == told;
        if is_new
            && !knows
            && let Some(stream) = &unsent.stream
        {
            frames.into_iter().take(self.kept_max).for_each(|frame| stream.queue(frame.into_bytes()));
        }
        unsent.told = told.or(unsent.told);
    }

    /// Ends the stream, if there is one.
    pub(super) fn end(&self) {
        if let Some(stream) = lock(&self.unsent).stream.take() {
            stream.end(ResponseEnd::Nothing);
        }
    }
}

impl Outbox for SessionOutbox {
    fn queue(&self, frame: Vec<u8>) {
        lock(&self.unsent).queue(frame, self.kept_max);
    }

    fn announce(&self, frames: Vec<Vec<u8>>, lists: Option<u64>) {
        let mut unsent = lock(&self.unsent);
        // Another replica has already notified the client of the same change.
        if lists.is_some() && std::mem::replace(&mut unsent.told, lists) == lists {
            return;
        }
        frames.into_iter().for_each(|frame| unsent.queue(frame, self.kept_max));
    }
}

impl UnsentFrames {
    fn queue(&mut self, frame: Vec<u8>, kept_max: usize) {
        if let Some(stream) = self.stream.as_ref().filter(|stream| !stream.is_over()) {
            return stream.queue(frame);
        }
        self.stream = None;
        if self.elsewhere.is_none() && !self.kept.contains(&frame) && self.kept.len() < kept_max {
            self.kept.push_back(frame);
        }
    }
}

impl<H: Host> LegacySession<H> {
    pub(super) fn new(
        connection: ClientConnection<H>,
        driving: Arc<DrivingExecutor>,
        outbox: Arc<SessionOutbox>,
        caller: Caller,
        time: Duration,
    ) -> Arc<Self> {
        let used = AtomicU64::new(0);
        let uses = AtomicUsize::new(0);
        let answers = AnswerStreams::new(connection.address());
        Arc::new(Self { connection, driving, outbox, answers, caller, began: Instant::now(), time, used, uses })
    }

    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Time until it expires.
    pub(super) fn left(&self) -> Duration {
        self.time.saturating_sub(self.began.elapsed())
    }

    /// Ends everything that belongs to the session.
    fn end(&self) {
        self.outbox.end();
        self.connection.abandon();
        self.answers.clear();
    }

    /// Since when the session is idle; `None` while it is in use.
    fn idle_since(&self) -> Option<Instant> {
        let used = Duration::from_nanos(self.used.load(Ordering::Acquire));
        (self.uses.load(Ordering::Acquire) == 0).then(|| self.began + used)
    }
}

/// A session while a request or a stream uses it.
pub(super) struct SessionUse<H: Host>(Arc<LegacySession<H>>);

impl<H: Host> SessionUse<H> {
    pub(super) fn of(session: Arc<LegacySession<H>>) -> Self {
        session.uses.fetch_add(1, Ordering::AcqRel);
        Self(session)
    }
}

impl<H: Host> std::ops::Deref for SessionUse<H> {
    type Target = LegacySession<H>;

    fn deref(&self) -> &LegacySession<H> {
        &self.0
    }
}

impl<H: Host> Drop for SessionUse<H> {
    fn drop(&mut self) {
        let now = u64::try_from(self.0.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.0.used.store(now, Ordering::Release);
        self.0.uses.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The open sessions.
pub(super) struct LegacySessions<H: Host>(Mutex<SessionTable<H>>);

struct SessionTable<H: Host> {
    by_id: HashMap<Box<str>, SessionEntry<H>>,
    /// The sessions of each owner that has any.
    by_owner: HashMap<Owner, LastUses>,
    /// Number of ended sessions.
    ended: u64,
}

/// The last known use of each session. The real one may be later.
type LastUses = BTreeSet<(Instant, Box<str>)>;

struct SessionEntry<H: Host> {
    session: Arc<LegacySession<H>>,
    owner: Owner,
    /// Its key among the owner's.
    used: Instant,
}

impl<H: Host> Default for LegacySessions<H> {
    fn default() -> Self {
        Self(Mutex::new(SessionTable { by_id: HashMap::new(), by_owner: HashMap::new(), ended: 0 }))
    }
}

impl<H: Host> SessionTable<H> {
    fn insert(&mut self, id: &str, session: Arc<LegacySession<H>>, owner: &Owner) {
        let used = Instant::now();
        self.by_owner.entry(owner.clone()).or_default().insert((used, id.into()));
        self.by_id.insert(id.into(), SessionEntry { session, owner: owner.clone(), used });
    }

    fn remove(&mut self, id: &str) -> Option<Arc<LegacySession<H>>> {
        let (id, entry) = self.by_id.remove_entry(id)?;
        if let Some(uses) = self.by_owner.get_mut(&entry.owner) {
            uses.remove(&(entry.used, id));
            if uses.is_empty() {
                self.by_owner.remove(&entry.owner);
            }
        }
        Some(entry.session)
    }

    /// Makes room for one more session of this owner, and returns the evicted one. An owner at its
    /// share loses one of its own. At the total, the owner with the most sessions loses one. It is
    /// always the one idle for longest.
    fn make_room(&mut self, owner: &Owner, limits: &HttpLimits) -> Result<Option<Arc<LegacySession<H>>>, QuotaError> {
        let own = self.by_owner.get(owner).map_or(0, BTreeSet::len);
        if owner.has_share() && own >= limits.per_caller.sessions_max {
            return self.evict(owner).map(Some).ok_or(QuotaError::Share);
        }
        if self.by_id.len() < limits.sessions_max {
            return Ok(None);
        }
        let mut holders: Vec<(usize, Owner)> =
            self.by_owner.iter().map(|(owner, uses)| (uses.len(), owner.clone())).collect();
        holders.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let evicted = holders.iter().find_map(|(_, holder)| self.evict(holder));
        evicted.map(Some).ok_or(QuotaError::Whole)
    }

    /// Removes the owner's session that was idle for longest; `None` if none is idle. Examines each
    /// at most once.
    fn evict(&mut self, owner: &Owner) -> Option<Arc<LegacySession<H>>> {
        let now = Instant::now();
        let uses = self.by_owner.get_mut(owner)?;
        for _ in 0..uses.len() {
            let (looked, id) = uses.pop_first()?;
            let Some(entry) = self.by_id.get_mut(&id) else { continue };
            let used = entry.session.idle_since().unwrap_or(now);
            if used <= looked && looked < now {
                if uses.is_empty() {
                    self.by_owner.remove(owner);
                }
                return self.by_id.remove(&id).map(|entry| entry.session);
            }
            // It was used meanwhile: others may have been idle for longer.
            entry.used = used.max(looked);
            uses.insert((entry.used, id));
        }
        None
    }
}

impl<H: Host> LegacySessions<H> {
    /// Registers a session of this owner, unless it is known. At the owner's share, or at the
    /// total, an idle session ends. Returns false if more than `ended` sessions have ended by now:
    /// one that another replica began may be among them.
    ///
    /// # Errors
    /// No session that could make room is idle.
    pub(super) fn enter(
        &self,
        id: &str,
        session: Arc<LegacySession<H>>,
        owner: &Owner,
        limits: &HttpLimits,
        ended: Option<u64>,
    ) -> Result<bool, QuotaError> {
        let evicted = {
            let mut kept = lock(&self.0);
            if ended.is_some_and(|ended| ended != kept.ended) {
                return Ok(false);
            }
            if kept.by_id.contains_key(id) {
                return Ok(true);
            }
            let evicted = kept.make_room(owner, limits)?;
            kept.insert(id, session, owner);
            evicted
        };
        if let Some(evicted) = evicted {
            evicted.end();
        }
        Ok(true)
    }

    /// True if there is a session of this id.
    pub(super) fn knows(&self, id: &str) -> bool {
        lock(&self.0).by_id.contains_key(id)
    }

    /// The ids of all sessions.
    pub(super) fn keys(&self) -> Vec<Box<str>> {
        lock(&self.0).by_id.keys().cloned().collect()
    }

    /// The session of this id, for any caller.
    pub(super) fn of_key(&self, id: &str) -> Option<Arc<LegacySession<H>>> {
        lock(&self.0).by_id.get(id).map(|entry| Arc::clone(&entry.session))
    }

    /// The number of sessions that were ended so far.
    pub(super) fn ended(&self) -> u64 {
        lock(&self.0).ended
    }

    /// The session of this id, if it belongs to this caller with unchanged scopes. With others, the
    /// caller begins a new one.
    pub(super) fn find(&self, id: &str, caller: &Caller) -> Option<SessionUse<H>> {
        let kept = lock(&self.0);
        let session = kept.by_id.get(id).map(|entry| &entry.session);
        // Marked as used before the lock is released, so that it does not look idle.
        session.filter(|session| session.caller == *caller).cloned().map(SessionUse::of)
    }

    /// Ends the session of this id.
    pub(super) fn end(&self, id: &str) {
        let removed = {
            let mut kept = lock(&self.0);
            kept.ended += 1;
            kept.remove(id)
        };
        if let Some(session) = removed {
            session.end();
        }
    }

    /// Ends sessions that are too old or were idle for too long, and broken streams that were not
    /// resumed.
    pub(super) fn sweep(&self, limits: &HttpLimits) {
        let over = |session: &LegacySession<H>| {
            session.began.elapsed() > session.time
                || session.idle_since().is_some_and(|since| since.elapsed() > limits.session_idle)
        };
        let ended: Vec<_> = {
            let mut kept = lock(&self.0);
            let ids: Vec<Box<str>> =
                kept.by_id.iter().filter(|(_, entry)| over(&entry.session)).map(|(id, _)| id.clone()).collect();
            ids.iter().filter_map(|id| kept.remove(id)).collect()
        };
        ended.iter().for_each(|session| session.end());
        self.all().iter().for_each(|session| session.answers.sweep(limits.write_time));
    }

    /// The number of sessions.
    pub(super) fn count(&self) -> usize {
        lock(&self.0).by_id.len()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<LegacySession<H>>> {
        lock(&self.0).by_id.values().map(|entry| Arc::clone(&entry.session)).collect()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot::error::TryRecvError;

    use super::super::mailbox::Next;
    use super::*;

    const NEWS: &[u8] = b"the list has changed";

    fn stream() -> Arc<Mailbox> {
        Arc::new(Mailbox::new(true, 1_000, None))
    }

    /// The number of frames on a stream, and true if it has ended.
    fn read(stream: &Mailbox) -> (usize, bool) {
        let mut frames = 0;
        loop {
            match stream.try_next() {
                Some(Next::Event(_)) => frames += 1,
                Some(Next::End(_)) => return (frames, true),
                None => return (frames, false),
            }
        }
    }

    fn kept(lists: Option<u64>) -> KeptFrames {
        KeptFrames { frames: vec![String::from_utf8(NEWS.to_vec()).unwrap()], told: lists }
    }

    #[test]
    fn a_replica_without_the_stream_hands_over_what_it_kept_and_keeps_nothing_more() {
        let outbox = SessionOutbox::new(256);
        outbox.announce(vec![NEWS.to_vec()], Some(1));
        let handed = outbox.moved("b.1").unwrap();
        assert_eq!((handed.frames.len(), handed.told), (1, Some(1)));
        outbox.announce(vec![NEWS.to_vec()], Some(2));
        let own = stream();
        let mut known = outbox.open(&own, Some("a.1"));
        assert_eq!(read(&own), (0, false), "the other replica has told it");
        assert!(outbox.moved("c.1").is_none(), "the own stream is the later one until all know of it");
        outbox.confirm("a.0");
        assert!(outbox.moved("c.1").is_none());
        assert_eq!(known.try_recv(), Err(TryRecvError::Empty));
        outbox.confirm("a.1");
        assert_eq!(known.try_recv(), Err(TryRecvError::Closed));
        assert!(outbox.moved("c.2").unwrap().frames.is_empty());
        assert_eq!(read(&own), (0, true));
    }

    #[test]
    fn messages_are_kept_again_once_the_other_stream_has_ended() {
        for end in [|outbox: &SessionOutbox| outbox.closed_elsewhere("b.1"), SessionOutbox::forget_elsewhere] {
            let outbox = SessionOutbox::new(256);
            assert!(outbox.moved("b.1").is_none());
            outbox.closed_elsewhere("b.0");
            outbox.announce(vec![NEWS.to_vec()], Some(1));
            end(&outbox);
            outbox.announce(vec![NEWS.to_vec()], Some(2));
            let own = stream();
            drop(outbox.open(&own, Some("a.1")));
            assert_eq!(read(&own), (1, false));
        }
    }

    #[test]
    fn a_change_is_told_once_whoever_kept_it() {
        let outbox = SessionOutbox::new(256);
        let own = stream();
        drop(outbox.open(&own, Some("a.1")));
        outbox.adopt("a.0", kept(Some(1)));
        assert_eq!(read(&own), (0, false), "it was for an earlier stream");
        outbox.adopt("a.1", kept(Some(1)));
        outbox.adopt("a.1", kept(Some(1)));
        outbox.announce(vec![NEWS.to_vec()], Some(1));
        assert_eq!(read(&own), (1, false));
        outbox.announce(vec![NEWS.to_vec()], Some(2));
        outbox.announce(vec![NEWS.to_vec()], Some(1));
        assert_eq!(read(&own), (2, false), "a list that comes back is another change");

        let outbox = SessionOutbox::new(256);
        let own = stream();
        drop(outbox.open(&own, Some("a.1")));
        outbox.announce(vec![NEWS.to_vec()], Some(1));
        outbox.adopt("a.1", kept(Some(1)));
        assert_eq!(read(&own), (1, false), "this replica was the first");

        let outbox = SessionOutbox::new(256);
        let own = stream();
        drop(outbox.open(&own, Some("a.1")));
        outbox.adopt("a.1", KeptFrames { frames: Vec::new(), told: Some(1) });
        outbox.announce(vec![NEWS.to_vec()], Some(1));
        assert_eq!(read(&own), (0, false), "it was told on the stream before");
    }

    #[test]
    fn as_many_changes_are_kept_as_resources_may_be_watched() {
        for watched_max in [1, 256, 1_000] {
            let outbox = SessionOutbox::new(watched_max);
            outbox.announce(vec![NEWS.to_vec()], None);
            for change in 0..watched_max {
                outbox.queue(format!("{change}").into_bytes());
            }
            let own = Arc::new(Mailbox::new(true, 100_000, None));
            drop(outbox.open(&own, None));
            assert_eq!(read(&own), (watched_max + 1, false));
            for other in 0..2 * watched_max + 100 {
                outbox.queue(format!("{other}").into_bytes());
                assert!(lock(&outbox.unsent).kept.len() <= watched_max + KEPT_FRAMES_BESIDES);
            }
        }
    }

    #[test]
    fn without_replicas_each_change_is_told() {
        let outbox = SessionOutbox::new(256);
        let own = stream();
        outbox.announce(vec![NEWS.to_vec()], None);
        outbox.announce(vec![NEWS.to_vec()], None);
        drop(outbox.open(&own, None));
        outbox.announce(vec![NEWS.to_vec()], None);
        outbox.announce(vec![NEWS.to_vec()], None);
        assert_eq!(read(&own), (3, false), "one was kept");
    }
}
