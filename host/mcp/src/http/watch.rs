//! The open connections. For each: its state, its deadlines, and its end. For all: their number,
//! and which one makes room.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::ReadBuf;
use tokio::time::{Instant, sleep_until};
use toolcell_framing::StreamCheck;

use super::limits::HttpLimits;
use super::line_endings::RequestLines;
use super::mailbox::Mailbox;
use super::quota::{Owner, OwnerQuota, QuotaError, QuotaGuard};

use crate::lock::lock;

/// Requests of one connection that the client may abandon in excess of the answered ones. Only an
/// attack abandons more.
const GIVEN_UP_MAX: usize = 256;

/// Least bytes per second that a client must read of a response, not counting its time without
/// reading. 64 KiB: the worst of mobile networks. A shut HTTP/2 window stalls no socket, so this is
/// the only bound against it.
const TAKEN_PER_SECOND_MIN: usize = 64 * 1024;

/// Time that a connection has to close once it is asked to.
const LEAVES_WITHIN: Duration = Duration::from_secs(1);

/// The state of one connection. Times are in milliseconds since its start; 0 means none.
pub(super) struct ConnectionWatch {
    started: Instant,
    connections: Arc<Connections>,
    place: AtomicU64,
    open: AtomicUsize,
    answered: AtomicUsize,
    given_up: AtomicUsize,
    /// True if several requests may be interleaved, so that the bytes of one head cannot be
    /// measured.
    multiplexed: AtomicBool,
    idle_since: AtomicU64,
    head_since: AtomicU64,
    stalled_since: AtomicU64,
    leaving_since: AtomicU64,
    waker: Mutex<Option<Waker>>,
    unread: Mutex<UnreadResponses>,
    /// The callers that use the connection, each with its part of the quota. Nearly always one.
    callers: Mutex<Vec<Weak<QuotaGuard>>>,
}

/// The responses that the client has not read yet.
#[derive(Default)]
struct UnreadResponses {
    sequence: u64,
    /// The deadline of each whole response, with its number.
    whole: BTreeSet<(u64, u64)>,
    /// Streams of events, which may have something for the client.
    streams: Vec<(u64, Weak<Mailbox>)>,
}

impl ConnectionWatch {
    pub(super) fn new(connections: &Arc<Connections>) -> Arc<Self> {
        let watch = Arc::new(Self {
            started: Instant::now(),
            connections: Arc::clone(connections),
            place: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
            given_up: AtomicUsize::new(0),
            multiplexed: AtomicBool::new(false),
            idle_since: AtomicU64::new(1),
            head_since: AtomicU64::new(0),
            stalled_since: AtomicU64::new(0),
            leaving_since: AtomicU64::new(0),
            waker: Mutex::default(),
            unread: Mutex::default(),
            callers: Mutex::default(),
        });
        watch.place.store(connections.mark_idle(&watch), Ordering::Release);
        watch
    }

    /// Waits until the connection is asked to close.
    pub(super) async fn asked_to_leave(&self) {
        poll_fn(|context| if self.is_leaving(context) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Asks it to close.
    pub(super) fn leave(&self) {
        let _ = self.leaving_since.compare_exchange(0, self.now(), Ordering::AcqRel, Ordering::Acquire);
        let waker = lock(&self.waker).take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// A request has come.
    pub(super) fn begin(self: &Arc<Self>, multiplexed: bool) -> RequestWatch {
        if multiplexed {
            self.multiplexed.store(true, Ordering::Release);
        }
        if self.open.fetch_add(1, Ordering::AcqRel) == 0 {
            self.connections.mark_busy(self.place.load(Ordering::Acquire));
        }
        self.head_since.store(0, Ordering::Release);
        RequestWatch { watch: Arc::clone(self), done: false, unread: ResponseState::NotYet, _caller: None }
    }

    /// The part of the quota that this caller holds for the connection, shared by all its requests
    /// on it.
    fn guard_of(&self, owner: &Owner, places: &Arc<OwnerQuota>) -> Result<Arc<QuotaGuard>, QuotaError> {
        let mut callers = lock(&self.callers);
        callers.retain(|place| place.strong_count() > 0);
        let known = callers.iter().filter_map(Weak::upgrade).find(|place| place.owner() == owner);
        if let Some(place) = known {
            return Ok(place);
        }
        let place = Arc::new(places.take(owner)?);
        callers.push(Arc::downgrade(&place));
        Ok(place)
    }

    pub(super) fn closed(&self) {
        self.connections.mark_busy(self.place.load(Ordering::Acquire));
        self.connections.leave();
    }

    fn end(self: &Arc<Self>, done: bool) {
        if done {
            self.answered.fetch_add(1, Ordering::Relaxed);
        } else {
            let given_up = self.given_up.fetch_add(1, Ordering::Relaxed);
            if given_up > self.answered.load(Ordering::Relaxed) + GIVEN_UP_MAX {
                self.leave();
            }
        }
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.head_since.store(0, Ordering::Release);
            self.idle_since.store(self.now(), Ordering::Release);
            self.place.store(self.connections.mark_idle(self), Ordering::Release);
        }
    }

    fn received(&self) {
        let quiet = self.open.load(Ordering::Acquire) == 0 && !self.multiplexed.load(Ordering::Acquire);
        if quiet && self.head_since.load(Ordering::Acquire) == 0 {
            self.head_since.store(self.now(), Ordering::Release);
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    /// The deadline of the current state.
    fn deadline(&self, limits: &HttpLimits) -> Instant {
        let at = |since: &AtomicU64, time: Duration| match since.load(Ordering::Acquire) {
            0 => None,
            since => Some(self.started + Duration::from_millis(since) + time),
        };
        let quiet = self.open.load(Ordering::Acquire) == 0;
        let idle = at(&self.idle_since, limits.idle_time).filter(|_| quiet);
        let head = at(&self.head_since, limits.head_time).filter(|_| quiet);
        let stalled = at(&self.stalled_since, limits.write_time);
        let leaving = at(&self.leaving_since, LEAVES_WITHIN);
        let unread = if quiet { None } else { self.unread_deadline(limits.write_time) };
        let first = [idle, head, stalled, leaving, unread].into_iter().flatten().min();
        first.unwrap_or_else(|| Instant::now() + limits.idle_time)
    }

    /// The deadline for the client to read its responses. With streams there always is one: a
    /// closed window that blocks an event causes no wake-up.
    fn unread_deadline(&self, write_time: Duration) -> Option<Instant> {
        let unread = lock(&self.unread);
        let whole = unread.whole.first().map(|(until, _)| self.started + Duration::from_millis(*until));
        let since = unread.streams.iter().filter_map(|(_, mailbox)| mailbox.upgrade()?.unread_since()).min();
        let streams = (!unread.streams.is_empty()).then(|| since.unwrap_or_else(Instant::now) + write_time);
        [whole, streams].into_iter().flatten().min()
    }

    fn is_leaving(&self, context: &Context<'_>) -> bool {
        if self.leaving_since.load(Ordering::Acquire) != 0 {
            return true;
        }
        let mut waker = lock(&self.waker);
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        self.leaving_since.load(Ordering::Acquire) != 0
    }
}

/// A request whose response is not read yet.
pub(super) struct RequestWatch {
    watch: Arc<ConnectionWatch>,
    done: bool,
    unread: ResponseState,
    /// The caller's part of the quota, held while this lives.
    _caller: Option<Arc<QuotaGuard>>,
}

/// The kind of a response, and its entry among the unread ones.
enum ResponseState {
    NotYet,
    Whole(u64, u64),
    Stream(u64),
}

impl RequestWatch {
    /// Assigns the request to a caller. It uses the connection until its response is read.
    pub(super) fn assign_to(&mut self, owner: &Owner, places: &Arc<OwnerQuota>) -> Result<(), QuotaError> {
        self._caller = Some(self.watch.guard_of(owner, places)?);
        Ok(())
    }

    /// The whole response was passed on.
    pub(super) fn done(&mut self) {
        self.done = true;
    }

    /// Registers a response of this length. The client has `write_time` for it, and more for long
    /// ones.
    pub(super) fn answers(&mut self, bytes: usize, write_time: Duration) {
        let time = write_time + Duration::from_secs((bytes / TAKEN_PER_SECOND_MIN) as u64);
        let until = self.watch.now().saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let mut unread = lock(&self.watch.unread);
        unread.sequence += 1;
        let number = unread.sequence;
        unread.whole.insert((until, number));
        drop(unread);
        self.unread = ResponseState::Whole(until, number);
    }

    /// Registers a response that streams from this mailbox.
    pub(super) fn streams(&mut self, mailbox: &Arc<Mailbox>) {
        let mut unread = lock(&self.watch.unread);
        unread.sequence += 1;
        let number = unread.sequence;
        unread.streams.push((number, Arc::downgrade(mailbox)));
        drop(unread);
        self.unread = ResponseState::Stream(number);
    }
}

impl Drop for RequestWatch {
    fn drop(&mut self) {
        match self.unread {
            ResponseState::NotYet => {}
            ResponseState::Whole(until, number) => {
                lock(&self.watch.unread).whole.remove(&(until, number));
            }
            ResponseState::Stream(number) => lock(&self.watch.unread).streams.retain(|(known, _)| *known != number),
        }
        self.watch.end(self.done);
    }
}

/// A connection of hyper that can be asked to take no further requests.
pub(super) trait HttpConnection: Future {
    fn finish(self: Pin<&mut Self>);
}

/// Drives a connection to its end, within its deadlines. `ends` completes when serving ends.
pub(super) async fn drive(
    served: impl HttpConnection,
    watch: &Arc<ConnectionWatch>,
    limits: &HttpLimits,
    ends: impl Future<Output = ()>,
) {
    let mut served = pin!(served);
    let mut ends = pin!(ends);
    let mut timer = pin!(sleep_until(watch.deadline(limits)));
    let mut finishing = false;
    poll_fn(|context| {
        if !finishing && (watch.is_leaving(context) || ends.as_mut().poll(context).is_ready()) {
            finishing = true;
            served.as_mut().finish();
        }
        if served.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        loop {
            let deadline = watch.deadline(limits);
            if deadline < timer.deadline() {
                timer.as_mut().reset(deadline);
            }
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            if deadline <= Instant::now() {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
    })
    .await;
}

/// The open connections.
pub(super) struct Connections {
    max: usize,
    state: Mutex<ConnectionTable>,
}

#[derive(Default)]
struct ConnectionTable {
    open: usize,
    sequence: u64,
    /// Connections without a request, the longest idle one first.
    idle: BTreeMap<u64, Arc<ConnectionWatch>>,
}

impl Connections {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, state: Mutex::default() })
    }

    /// Counts one more. At the limit, the connection idle for longest is asked to close; false if
    /// none is idle.
    pub(super) fn enter(&self) -> bool {
        let mut state = lock(&self.state);
        if state.open >= self.max {
            let Some((_, oldest)) = state.idle.pop_first() else { return false };
            state.open += 1;
            drop(state);
            oldest.leave();
            return true;
        }
        state.open += 1;
        true
    }

    /// The number of open connections.
    pub(super) fn open(&self) -> usize {
        lock(&self.state).open
    }

    pub(super) fn leave(&self) {
        let mut state = lock(&self.state);
        state.open = state.open.saturating_sub(1);
    }

    /// Marks the connection as idle. Returns its number among the idle ones.
    pub(super) fn mark_idle(&self, watch: &Arc<ConnectionWatch>) -> u64 {
        let mut state = lock(&self.state);
        state.sequence += 1;
        let place = state.sequence;
        state.idle.insert(place, Arc::clone(watch));
        place
    }

    /// Marks the connection of this number as busy.
    pub(super) fn mark_busy(&self, place: u64) {
        lock(&self.state).idle.remove(&place);
    }
}

/// Notes reads and writes of a connection, and checks the lines of its requests.
pub(super) struct WatchedLines {
    pub(super) lines: RequestLines,
    pub(super) watch: Arc<ConnectionWatch>,
}

impl StreamCheck for WatchedLines {
    fn read(&mut self, buffer: &mut ReadBuf<'_>, start: usize) -> io::Result<()> {
        if buffer.filled().len() > start {
            self.watch.received();
        }
        self.lines.read(buffer, start)
    }

    fn written(&mut self, ready: bool) {
        let stalled = &self.watch.stalled_since;
        if ready {
            stalled.store(0, Ordering::Release);
        } else {
            let _ = stalled.compare_exchange(0, self.watch.now(), Ordering::AcqRel, Ordering::Acquire);
        }
    }
}
