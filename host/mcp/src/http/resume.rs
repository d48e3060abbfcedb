//! Streams that a client of a session may resume, and the ids of their events (2025-11-25,
//! "Resumability and Redelivery").
//!
//! | id of the first event | its stream | GET with it as `Last-Event-ID` |
//! |---|---|---|
//! | `session.…` | the session's own | opens that stream anew: what was kept for it comes first |
//! | `answer.…` | the answer to one POST | goes on with that stream, while its answer is to come |
//!
//! No other event has an id. A client that resumes gets what was not yet sent. The process that had
//! a broken stream keeps it for as long as a client may leave a response unread.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName};

use super::mailbox::Mailbox;
use super::quota::QuotaGuard;
use crate::lock::lock;
use crate::mirrored::single;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The prefix of the id of an answer's stream.
const ANSWER: &str = "answer.";

/// The prefix of the id of a session's own stream.
const SESSION: &str = "session.";

/// The streams of a session's answers.
pub(super) struct AnswerStreams {
    /// The name of this process and connection, if several processes answer the session.
    address: Option<String>,
    state: Mutex<ResumeState>,
}

#[derive(Default)]
struct ResumeState {
    /// Number of streams so far, including the session's own.
    opened: u64,
    /// Streams that have begun and not ended.
    begun: HashMap<Box<str>, BegunStream>,
}

struct BegunStream {
    mailbox: Arc<Mailbox>,
    broken: Option<BrokenStream>,
}

/// A stream without a reader. It still counts as a request that is being answered.
struct BrokenStream {
    since: Instant,
    _guard: Option<QuotaGuard>,
}

impl AnswerStreams {
    pub(super) fn new(address: Option<String>) -> Self {
        Self { address, state: Mutex::default() }
    }

    /// The id of the first event on the session's own stream.
    pub(super) fn session_id(&self) -> Box<str> {
        self.name(SESSION, &mut lock(&self.state))
    }

    /// The stream of an answer begins. Returns the id of its first event.
    pub(super) fn begin(&self, mailbox: &Arc<Mailbox>) -> Box<str> {
        let mut state = lock(&self.state);
        let id = self.name(ANSWER, &mut state);
        let begun = BegunStream { mailbox: Arc::clone(mailbox), broken: None };
        state.begun.insert(id.clone(), begun);
        id
    }

    /// The connection of this reader broke. Its client may resume, or may have already.
    pub(super) fn broke(&self, id: &str, reader: u64, guard: Option<QuotaGuard>) {
        if let Some(begun) = lock(&self.state).begun.get_mut(id).filter(|begun| begun.mailbox.reader() == reader) {
            begun.broken = Some(BrokenStream { since: Instant::now(), _guard: guard });
        }
    }

    pub(super) fn ended(&self, id: &str) {
        lock(&self.state).begun.remove(id);
    }

    /// The stream of this id, for a new reader. An existing reader gets nothing more: its
    /// connection may be dead.
    pub(super) fn take_up(&self, id: &str) -> Option<Arc<Mailbox>> {
        let mut state = lock(&self.state);
        let begun = state.begun.get_mut(id)?;
        begun.broken = None;
        begun.mailbox.take_over();
        Some(Arc::clone(&begun.mailbox))
    }

    /// Closes streams that broke longer than this ago.
    pub(super) fn sweep(&self, kept: Duration) {
        let is_over = |begun: &BegunStream| begun.broken.as_ref().is_some_and(|broken| broken.since.elapsed() >= kept);
        let over: Vec<_> = lock(&self.state).begun.extract_if(|_, begun| is_over(begun)).collect();
        over.iter().for_each(|(_, begun)| begun.mailbox.close());
    }

    /// Removes every stream: the session has ended.
    pub(super) fn clear(&self) {
        let begun = std::mem::take(&mut lock(&self.state).begun);
        drop(begun);
    }

    fn name(&self, kind: &str, state: &mut ResumeState) -> Box<str> {
        state.opened += 1;
        let number = state.opened;
        let name = match &self.address {
            Some(address) => format!("{kind}{address}.{number}"),
            None => format!("{kind}{number}"),
        };
        name.into()
    }
}

/// The stream that a client wants to resume, if it names one.
pub(super) fn wanted(headers: &HeaderMap) -> Option<&str> {
    let id = single(headers, &LAST_EVENT_ID).ok().flatten()?.to_str().ok()?;
    id.starts_with(ANSWER).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::super::mailbox::{Next, ResponseEnd};
    use super::*;
    use crate::host::Outbox as _;

    fn mailbox() -> Arc<Mailbox> {
        Arc::new(Mailbox::new(true, 100, None))
    }

    #[test]
    fn a_stream_that_broke_goes_on_where_it_is_taken_up() {
        let streams = AnswerStreams::new(None);
        let mailbox = mailbox();
        let id = streams.begin(&mailbox);
        assert_eq!((&*id, &*streams.session_id()), ("answer.1", "session.2"));
        let reader = mailbox.reader();
        streams.broke(&id, reader, None);
        mailbox.queue(b"one".to_vec());
        let resumed = streams.take_up(&id).unwrap();
        assert!(Arc::ptr_eq(&resumed, &mailbox) && resumed.reader() != reader);
        streams.broke(&id, reader, None);
        streams.sweep(Duration::ZERO);
        assert!(!resumed.is_over(), "another reads it");
        resumed.answer(b"two".to_vec());
        assert!(matches!(resumed.try_next(), Some(Next::Event(frame)) if frame.bytes() == b"one"));
        assert!(matches!(resumed.try_next(), Some(Next::End(ResponseEnd::Answer(frame))) if frame.bytes() == b"two"));
        streams.ended(&id);
        assert!(streams.take_up(&id).is_none());
    }

    #[test]
    fn a_stream_is_kept_for_a_time_once_it_broke() {
        let streams = AnswerStreams::new(Some("ab.7".to_owned()));
        let open = mailbox();
        let broken = mailbox();
        let first = streams.begin(&open);
        let second = streams.begin(&broken);
        assert_eq!((&*first, &*second), ("answer.ab.7.1", "answer.ab.7.2"));
        streams.broke(&second, broken.reader(), None);
        streams.sweep(Duration::from_secs(60));
        assert!(!broken.is_over());
        streams.sweep(Duration::ZERO);
        assert!(broken.is_over() && !open.is_over());
        assert!(streams.take_up(&second).is_none() && streams.take_up(&first).is_some());
        streams.clear();
        assert!(streams.take_up(&first).is_none());
    }

    #[test]
    fn only_an_answers_stream_is_taken_up_by_its_id() {
        for (id, is_one) in [("answer.1", true), ("session.1", false), ("", false), ("42", false)] {
            let headers = HeaderMap::from_iter([(LAST_EVENT_ID, id.parse().unwrap())]);
            assert_eq!(wanted(&headers).is_some(), is_one, "{id}");
        }
        assert_eq!(wanted(&HeaderMap::new()), None);
    }
}
