//! Legacy sessions: their ids, their owners, the stream that a client opens with GET, and their
//! end.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::executor::DrivingExecutor;
use super::limits::HttpLimits;
use super::mailbox::{Ending, Mailbox};
use super::quota::{Owner, QuotaError};
use crate::caller::Caller;
use crate::connection::Connection;
use crate::host::{Host, Outbox};

/// Random bytes of an id: beyond guessing.
const ID_BYTES: usize = 16;

/// Frames kept while a client has no stream open. A server's only such message is that its list
/// changed.
const KEPT_FRAMES_MAX: usize = 8;

/// One legacy session.
pub(super) struct Session<H: Host> {
    pub(super) connection: Connection<H>,
    pub(super) driving: Arc<DrivingExecutor>,
    pub(super) outbox: Arc<SessionOutbox>,
    caller: Caller,
    began: Instant,
    /// Nanoseconds from `began` to the last use. Several uses may fall into one millisecond, and
    /// their order decides which session makes room.
    used: AtomicU64,
    uses: AtomicUsize,
}

/// The outbox for messages that belong to no request. They go to the client's open stream, or are
/// kept for the next one.
#[derive(Default)]
pub(super) struct SessionOutbox(Mutex<UnsentFrames>);

#[derive(Default)]
struct UnsentFrames {
    stream: Option<Arc<Mailbox>>,
    kept: VecDeque<Vec<u8>>,
}

impl SessionOutbox {
    /// Sends frames to this stream from now on. The one before it ends: one client reads one
    /// stream.
    pub(super) fn open(&self, stream: &Arc<Mailbox>) {
        let before = {
            let mut unsent = self.unsent();
            unsent.kept.drain(..).for_each(|frame| stream.queue(frame));
            unsent.stream.replace(Arc::clone(stream))
        };
        if let Some(before) = before {
            before.end(Ending::Nothing);
        }
    }

    /// Ends the stream, if there is one.
    pub(super) fn end(&self) {
        if let Some(stream) = self.unsent().stream.take() {
            stream.end(Ending::Nothing);
        }
    }

    fn unsent(&self) -> MutexGuard<'_, UnsentFrames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outbox for SessionOutbox {
    fn queue(&self, frame: Vec<u8>) {
        let mut unsent = self.unsent();
        if let Some(stream) = unsent.stream.as_ref().filter(|stream| !stream.is_over()) {
            return stream.queue(frame);
        }
        unsent.stream = None;
        if !unsent.kept.contains(&frame) && unsent.kept.len() < KEPT_FRAMES_MAX {
            unsent.kept.push_back(frame);
        }
    }
}

impl<H: Host> Session<H> {
    pub(super) fn new(
        connection: Connection<H>,
        driving: Arc<DrivingExecutor>,
        outbox: Arc<SessionOutbox>,
        caller: Caller,
    ) -> Arc<Self> {
        let (used, uses) = (AtomicU64::new(0), AtomicUsize::new(0));
        Arc::new(Self { connection, driving, outbox, caller, began: Instant::now(), used, uses })
    }

    /// Ends everything that belongs to the session.
    fn end(&self) {
        self.outbox.end();
        self.connection.abandon();
    }

    /// The time since which the session is idle; `None` while it is in use.
    fn idle_since(&self) -> Option<Instant> {
        let used = Duration::from_nanos(self.used.load(Ordering::Acquire));
        (self.uses.load(Ordering::Acquire) == 0).then(|| self.began + used)
    }
}

/// A session while a request or a stream uses it.
pub(super) struct SessionUse<H: Host>(Arc<Session<H>>);

impl<H: Host> SessionUse<H> {
    pub(super) fn of(session: Arc<Session<H>>) -> Self {
        session.uses.fetch_add(1, Ordering::AcqRel);
        Self(session)
    }
}

impl<H: Host> std::ops::Deref for SessionUse<H> {
    type Target = Session<H>;

    fn deref(&self) -> &Session<H> {
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
pub(super) struct Sessions<H: Host>(Mutex<SessionTable<H>>);

struct SessionTable<H: Host> {
    by_id: HashMap<Box<str>, SessionEntry<H>>,
    /// The sessions of each owner that has any.
    by_owner: HashMap<Owner, LastUses>,
}

/// The last known use of each session. The real one may be later.
type LastUses = BTreeSet<(Instant, Box<str>)>;

struct SessionEntry<H: Host> {
    session: Arc<Session<H>>,
    owner: Owner,
    /// Its key among the owner's.
    used: Instant,
}

impl<H: Host> Default for Sessions<H> {
    fn default() -> Self {
        Self(Mutex::new(SessionTable { by_id: HashMap::new(), by_owner: HashMap::new() }))
    }
}

impl<H: Host> SessionTable<H> {
    fn insert(&mut self, id: &str, session: Arc<Session<H>>, owner: &Owner) {
        let used = Instant::now();
        self.by_owner.entry(owner.clone()).or_default().insert((used, id.into()));
        self.by_id.insert(id.into(), SessionEntry { session, owner: owner.clone(), used });
    }

    fn remove(&mut self, id: &str) -> Option<Arc<Session<H>>> {
        let (id, entry) = self.by_id.remove_entry(id)?;
        if let Some(uses) = self.by_owner.get_mut(&entry.owner) {
            uses.remove(&(entry.used, id));
            if uses.is_empty() {
                self.by_owner.remove(&entry.owner);
            }
        }
        Some(entry.session)
    }

    /// Makes room for one more session of this owner, and returns the session that must go. An
    /// owner at its share gives one of its own. At the total, the owner with the most sessions
    /// gives one. It is always the longest idle one.
    fn make_room(&mut self, owner: &Owner, limits: &HttpLimits) -> Result<Option<Arc<Session<H>>>, QuotaError> {
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

    /// Takes out the owner's longest idle session; `None` if none is idle. Looks at each one once
    /// at most.
    fn evict(&mut self, owner: &Owner) -> Option<Arc<Session<H>>> {
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
            // It was used since: others may be idle for longer.
            entry.used = used.max(looked);
            uses.insert((entry.used, id));
        }
        None
    }
}

impl<H: Host> Sessions<H> {
    /// Registers a session of this owner and returns its id. At the owner's share, or at the total,
    /// an idle session ends.
    ///
    /// # Errors
    /// No session that could make room is idle, or the machine has no randomness.
    pub(super) fn enter(
        &self,
        session: Arc<Session<H>>,
        owner: &Owner,
        limits: &HttpLimits,
    ) -> Result<String, QuotaError> {
        let id = random_id().ok_or(QuotaError::Whole)?;
        let evicted = {
            let mut kept = self.kept();
            let evicted = kept.make_room(owner, limits)?;
            kept.insert(&id, session, owner);
            evicted
        };
        if let Some(evicted) = evicted {
            evicted.end();
        }
        Ok(id)
    }

    /// The session of this id, if it belongs to this caller with unchanged scopes. With others, the
    /// caller begins a new one.
    pub(super) fn find(&self, id: &str, caller: &Caller) -> Option<SessionUse<H>> {
        let kept = self.kept();
        let session = kept.by_id.get(id).map(|entry| &entry.session);
        // Marked as used before the lock is released, so that the next look does not find it idle.
        session.filter(|session| session.caller == *caller).cloned().map(SessionUse::of)
    }

    /// Ends the session of this id.
    pub(super) fn remove(&self, id: &str) {
        let removed = self.kept().remove(id);
        if let Some(session) = removed {
            session.end();
        }
    }

    /// Ends sessions that are too old, or were unused for too long.
    pub(super) fn sweep(&self, limits: &HttpLimits) {
        let over = |session: &Session<H>| {
            session.began.elapsed() > limits.session_time
                || session.idle_since().is_some_and(|since| since.elapsed() > limits.session_idle)
        };
        let ended: Vec<_> = {
            let mut kept = self.kept();
            let ids: Vec<Box<str>> =
                kept.by_id.iter().filter(|(_, entry)| over(&entry.session)).map(|(id, _)| id.clone()).collect();
            ids.iter().filter_map(|id| kept.remove(id)).collect()
        };
        ended.iter().for_each(|session| session.end());
    }

    /// The number of sessions.
    pub(super) fn count(&self) -> usize {
        self.kept().by_id.len()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<Session<H>>> {
        self.kept().by_id.values().map(|entry| Arc::clone(&entry.session)).collect()
    }

    fn kept(&self) -> MutexGuard<'_, SessionTable<H>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An unguessable id in hexadecimal digits.
fn random_id() -> Option<String> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
