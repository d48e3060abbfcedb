//! The outbox of one HTTP response or stream. Frames come in from any thread, and go out as the
//! connection is driven.
//!
//! Promise: unread answers take bounded memory.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use tokio::time::Instant;

use super::quota::{QuotaError, QuotaGuard};
use super::refusal::unread_error;
use super::unread::UnreadFrame;
use crate::frame::{ErrorCode, RequestId, error_frame};
use crate::host::{Audience, Outbox, SharedFrame};
use crate::lock::lock;
use crate::meta::TraceContext;
use crate::mirrored::Mirrored;

/// Frames for one response.
pub(super) struct Mailbox {
    mirrored: Option<Mirrored>,
    trace: Option<TraceContext>,
    /// True if the client accepts events, and not only the answer.
    takes_events: bool,
    bytes_max: usize,
    /// The bytes that its client may leave unread in total.
    share: Option<QuotaGuard>,
    /// The id of the request, if a single one is answered here.
    id: Option<RequestId>,
    state: Mutex<MailboxState>,
}

#[derive(Default)]
struct MailboxState {
    events: VecDeque<UnreadFrame>,
    bytes: usize,
    /// The bytes counted for an answer that is not complete yet.
    held: Option<QuotaGuard>,
    /// Events that were passed to a connection, but are not sent yet.
    going_out: usize,
    ending: Option<ResponseEnd>,
    /// Since when something is unread.
    unread_since: Option<Instant>,
    /// True if nobody reads any more.
    closed: bool,
    /// The number of the current reader: each takes over from the one before.
    reader: u64,
    waker: Option<Waker>,
    /// Woken once nobody reads any more.
    gone: Option<Waker>,
}

/// The last item of a response.
pub(super) enum ResponseEnd {
    Answer(UnreadFrame),
    Refusal(Vec<u8>, ErrorCode),
    /// No answer: a notification was taken, a call was cancelled, or a stream ends.
    Nothing,
    /// The client's response did not reach the replica that waits for it.
    NotTaken,
}

/// The next item for the client.
pub(super) enum Next {
    Event(UnreadFrame),
    End(ResponseEnd),
}

impl Mailbox {
    /// A mailbox that ends once more than `bytes_max` bytes of events are unread.
    pub(super) fn new(takes_events: bool, bytes_max: usize, mirrored: Option<Mirrored>) -> Self {
        Self { mirrored, trace: None, takes_events, bytes_max, share: None, id: None, state: Mutex::default() }
    }

    /// Counts what is unread against this share. `id` is of the request that is answered.
    pub(super) fn counted(self, share: QuotaGuard, id: Option<RequestId>) -> Self {
        Self { share: Some(share), id, ..self }
    }

    /// Adds the trace context of the request.
    pub(super) fn traced(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }

    pub(super) fn takes_events(&self) -> bool {
        self.takes_events
    }

    /// The next item for this reader. If another has taken over, this one gets the end.
    pub(super) fn poll_next(&self, reader: u64, context: &Context<'_>) -> Poll<Next> {
        let mut state = lock(&self.state);
        if state.reader != reader {
            return Poll::Ready(Next::End(ResponseEnd::Nothing));
        }
        if let Some(next) = state.next() {
            return Poll::Ready(next);
        }
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            state.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }

    /// The next item, if there is one.
    pub(super) fn try_next(&self) -> Option<Next> {
        lock(&self.state).next()
    }

    /// Ends the mailbox, unless it has ended.
    pub(super) fn end(&self, ending: ResponseEnd) {
        let wakers = {
            let mut state = lock(&self.state);
            if state.closed || state.ending.is_some() {
                return;
            }
            state.ending = Some(ending);
            state.is_unread();
            state.wakers()
        };
        wakers.for_each(Waker::wake);
    }

    /// Drops everything from now on: nobody reads any more.
    pub(super) fn close(&self) {
        let gone = {
            let mut state = lock(&self.state);
            let gone = state.gone.take();
            *state = MailboxState {
                closed: true,
                reader: state.reader,
                going_out: state.going_out,
                ..MailboxState::default()
            };
            gone
        };
        gone.into_iter().for_each(Waker::wake);
    }

    /// True if it has ended without an answer, and holds nothing.
    pub(super) fn ends_with_nothing(&self) -> bool {
        let state = lock(&self.state);
        state.events.is_empty() && matches!(state.ending, Some(ResponseEnd::Nothing))
    }

    pub(super) fn reader(&self) -> u64 {
        lock(&self.state).reader
    }

    /// Makes room for another reader, which gets the full time for the next item.
    pub(super) fn take_over(&self) {
        let waker = {
            let mut state = lock(&self.state);
            state.reader += 1;
            state.unread_since = state.unread_since.map(|_| Instant::now());
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Puts an unsent event back, in front of the others.
    pub(super) fn put_back(&self, frame: UnreadFrame) {
        let mut state = lock(&self.state);
        if !state.closed {
            state.bytes += frame.len();
            state.events.push_front(frame);
        }
    }

    /// True if nobody reads any more, or nothing more will come.
    pub(super) fn is_over(&self) -> bool {
        let state = lock(&self.state);
        state.closed || state.ending.is_some()
    }

    pub(super) fn unread_since(&self) -> Option<Instant> {
        lock(&self.state).unread_since
    }

    /// An event is being sent, in pieces.
    pub(super) fn goes_out(&self) {
        let mut state = lock(&self.state);
        state.going_out += 1;
        state.unread_since = Some(Instant::now());
    }

    /// The client has read a piece of an event, so the time limit restarts.
    pub(super) fn is_read(&self) {
        let mut state = lock(&self.state);
        state.unread_since = state.unread_since.map(|_| Instant::now());
    }

    /// All pieces of an event are sent, or given up.
    pub(super) fn has_gone_out(&self) {
        let mut state = lock(&self.state);
        state.going_out = state.going_out.saturating_sub(1);
        state.note_unread();
    }

    /// Accepts the answer. If its client has left too much unread, it becomes an error.
    fn take_answer(&self, mut frame: UnreadFrame) {
        let held = lock(&self.state).held.take();
        if let Err(full) = self.count(&mut frame, held) {
            frame = error_frame(self.id.as_ref(), &unread_error(full, true)).into();
        }
        self.end(ResponseEnd::Answer(frame));
    }

    fn count(&self, frame: &mut UnreadFrame, held: Option<QuotaGuard>) -> Result<(), QuotaError> {
        let Some(share) = &self.share else { return Ok(()) };
        frame.count(held.unwrap_or_else(|| share.empty()))
    }
}

impl MailboxState {
    /// Wakes the reader, and at the end also the one who waits for that.
    fn wakers(&mut self) -> impl Iterator<Item = Waker> + use<> {
        let gone = self.gone.take_if(|_| self.closed || self.ending.is_some());
        self.waker.take().into_iter().chain(gone)
    }

    fn is_unread(&mut self) {
        self.unread_since.get_or_insert_with(Instant::now);
    }

    fn next(&mut self) -> Option<Next> {
        let next = if let Some(event) = self.events.pop_front() {
            self.bytes = self.bytes.saturating_sub(event.len());
            Some(Next::Event(event))
        } else {
            self.ending.take().map(Next::End)
        };
        self.note_unread();
        next
    }

    /// The client has read something, so the time limit restarts for the rest.
    fn note_unread(&mut self) {
        let is_more = !self.events.is_empty() || self.ending.is_some() || self.going_out > 0;
        self.unread_since = is_more.then(Instant::now);
    }
}

impl Outbox for Mailbox {
    fn queue(&self, frame: Vec<u8>) {
        let mut frame = UnreadFrame::from(frame);
        if !self.takes_events || self.is_over() {
            return;
        }
        let is_kept = self.count(&mut frame, None).is_ok();
        let wakers = {
            let mut state = lock(&self.state);
            if state.closed || state.ending.is_some() {
                return;
            }
            state.bytes += frame.len();
            state.events.push_back(frame);
            state.is_unread();
            if !is_kept || state.bytes > self.bytes_max {
                // A client that does not read must start over: keeping its events would take
                // unbounded memory.
                state.events.clear();
                state.bytes = 0;
                state.ending = Some(ResponseEnd::Nothing);
            }
            state.wakers()
        };
        wakers.for_each(Waker::wake);
    }

    fn answer(&self, frame: Vec<u8>) {
        self.take_answer(frame.into());
    }

    fn answer_shared(&self, frame: SharedFrame) {
        self.take_answer(frame.into());
    }

    fn keeps(&self, bytes: usize) -> bool {
        let Some(share) = &self.share else { return true };
        let mut state = lock(&self.state);
        state.held.get_or_insert_with(|| share.empty()).extend_past(bytes).is_ok()
    }

    fn refuse(&self, frame: Vec<u8>, code: ErrorCode) {
        self.end(ResponseEnd::Refusal(frame, code));
    }

    fn unanswered(&self) {
        self.end(ResponseEnd::Nothing);
    }

    fn not_taken(&self) {
        self.end(ResponseEnd::NotTaken);
    }

    fn congested(&self) -> bool {
        lock(&self.state).bytes > self.bytes_max / 2
    }

    fn audience(&self) -> Audience {
        match self.takes_events {
            false => Audience::AnswerOnly,
            true if self.is_over() => Audience::Gone,
            true => Audience::Client,
        }
    }

    fn poll_gone(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = lock(&self.state);
        if state.closed || state.ending.is_some() {
            return Poll::Ready(());
        }
        state.gone = Some(context.waker().clone());
        Poll::Pending
    }

    fn mirrored(&self) -> Option<&Mirrored> {
        self.mirrored.as_ref()
    }

    fn trace(&self) -> Option<TraceContext> {
        self.trace.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use super::super::limits::HttpLimits;
    use super::super::quota::{Owner, OwnerQuota, Quotas};
    use super::*;

    fn context() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    #[test]
    fn events_come_before_the_end_and_none_after_it() {
        let mailbox = Mailbox::new(true, 100, None);
        mailbox.queue(b"one".to_vec());
        mailbox.answer(b"two".to_vec());
        mailbox.queue(b"three".to_vec());
        mailbox.answer(b"four".to_vec());
        assert!(matches!(mailbox.try_next(), Some(Next::Event(frame)) if frame.bytes() == b"one"));
        assert!(matches!(mailbox.try_next(), Some(Next::End(ResponseEnd::Answer(frame))) if frame.bytes() == b"two"));
        assert!(mailbox.poll_next(0, &context()).is_pending());
        mailbox.take_over();
        assert!(matches!(mailbox.poll_next(0, &context()), Poll::Ready(Next::End(ResponseEnd::Nothing))));
        assert!(mailbox.poll_next(1, &context()).is_pending());
    }

    #[tokio::test]
    async fn the_end_wakes_the_one_who_waits_for_it() {
        let over: [fn(&Mailbox); 3] = [Mailbox::close, Mailbox::unanswered, |mailbox| mailbox.queue(vec![b'a'; 11])];
        for ends in over {
            let mailbox = Arc::new(Mailbox::new(true, 10, None));
            let waiting = Arc::clone(&mailbox);
            let gone = tokio::spawn(poll_fn(move |context| waiting.poll_gone(context)));
            tokio::task::yield_now().await;
            mailbox.queue(b"one".to_vec());
            assert!(mailbox.audience() == Audience::Client, "an event does not end it");
            ends(&mailbox);
            gone.await.unwrap();
        }
    }

    #[test]
    fn one_that_is_not_read_ends_with_nothing() {
        let mailbox = Mailbox::new(true, 10, None);
        mailbox.queue(vec![b'a'; 6]);
        assert!(mailbox.congested());
        mailbox.queue(vec![b'b'; 6]);
        assert!(matches!(mailbox.try_next(), Some(Next::End(ResponseEnd::Nothing))));
    }

    fn counted(share: usize) -> (Mailbox, Arc<OwnerQuota>) {
        let quota = OwnerQuota::new(usize::MAX, share);
        let share = quota.empty_guard(&Owner::Caller("ann".into()));
        let id = RequestId::parse("7");
        (Mailbox::new(true, 1_000_000, None).counted(share, id), quota)
    }

    #[test]
    fn an_answer_past_the_share_becomes_an_error_under_its_id() {
        let (mailbox, quota) = counted(10_000);
        let mut other = quota.empty_guard(&Owner::Caller("ann".into()));
        other.extend(10_000).unwrap();
        mailbox.answer(vec![b'x'; 1_000]);
        assert_eq!(quota.taken(), 10_000);
        let Some(Next::End(ResponseEnd::Answer(frame))) = mailbox.try_next() else { panic!("no answer") };
        let frame: serde_json::Value = serde_json::from_slice(&frame.bytes()).unwrap();
        assert_eq!((&frame["id"], &frame["error"]["code"]), (&7.into(), &(-32603).into()));
        let message = "The request was carried out, and its answer is not kept: the caller leaves too many bytes of \
                       answers unread. Read them before you ask again";
        assert_eq!(frame["error"]["message"], message);
    }

    #[test]
    fn a_short_answer_is_kept_where_others_leave_unread_all_that_the_host_keeps() {
        let limits = HttpLimits::default();
        let quotas = Quotas::new(&limits);
        let mut greedy = quotas.answers.empty_guard(&Owner::Machine);
        greedy.extend(limits.answers_bytes_max).unwrap();
        let answered = |bytes: usize| {
            let share = quotas.answers.empty_guard(&Owner::Caller("ann".into()));
            let mailbox = Mailbox::new(true, 1_000_000, None).counted(share, RequestId::parse("7"));
            mailbox.answer(vec![b'x'; bytes]);
            let Some(Next::End(ResponseEnd::Answer(frame))) = mailbox.try_next() else { panic!("no answer") };
            frame.bytes() == vec![b'x'; bytes]
        };
        assert!(answered(10) && answered(60 * 1024), "the answer is what was said");
        assert!(!answered(64 * 1024), "with what a frame takes, it is more than is kept for each");
        assert_eq!(quotas.answers.taken(), limits.answers_bytes_max, "all that was read is given back");
    }

    #[test]
    fn an_event_past_the_share_ends_the_stream_and_gives_its_bytes_back() {
        let (mailbox, quota) = counted(5_000);
        mailbox.queue(vec![b'x'; 8_000]);
        assert!(quota.taken() > 8_000, "the last one may be longer than what was left");
        mailbox.queue(vec![b'x']);
        assert!(matches!(mailbox.try_next(), Some(Next::End(ResponseEnd::Nothing))));
        assert_eq!(quota.taken(), 0);
    }

    #[test]
    fn parts_of_an_answer_count_before_it_is_whole() {
        let (mailbox, quota) = counted(5_000);
        assert!(mailbox.keeps(3_000) && mailbox.keeps(3_000));
        assert!(!mailbox.keeps(1), "the share is taken");
        assert_eq!(quota.taken(), 6_000);
        mailbox.unanswered();
        mailbox.close();
        assert_eq!(quota.taken(), 0);
    }

    #[test]
    fn a_client_that_takes_no_events_gets_the_answer_alone() {
        let mailbox = Mailbox::new(false, 100, None);
        assert!(!mailbox.congested(), "its call is begun");
        mailbox.queue(b"one".to_vec());
        mailbox.answer(b"two".to_vec());
        assert!(matches!(mailbox.try_next(), Some(Next::End(ResponseEnd::Answer(frame))) if frame.bytes() == b"two"));
    }
}
