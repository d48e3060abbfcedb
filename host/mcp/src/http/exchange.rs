//! Legacy sessions that several replicas answer: the messages between them, and their effects.
//!
//! | message | to | effect |
//! |---|---|---|
//! | `Ended` | all | The session ends: its stream, its calls, its record. |
//! | `Opened` | all | The client's stream is open at the sender. Others end theirs, and hand over what they kept for it. |
//! | `Closed` | all | That stream has ended: others keep messages for the next one again. |
//! | `Kept` | one | Messages that were kept for the stream, and the change of the list that the client was notified of last. |
//! | `Answer` | one | The client's answer to a request of that replica. |
//! | `Heard` | one | An answer that the recipient passed on, by this number, was heard. |
//! | `Cancel` | all | The client cancels a request that the sender does not have. |
//! | `Level` | all | The client sets its log level. |
//! | `Watch` | all | The client watches a resource, or no more. |
//! | `Watched` | one | The resources that the session watches. |
//!
//! Messages are sealed under the server's key, so only replicas write and read them.
//!
//! Promise: neither clients nor components speak to replicas.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::replicas::{Recipient, ReplicaItem, Replicas, ReplicasAway};
use super::session::{KeptFrames, LegacySessions};
use crate::asking::ReplyText;
use crate::caller::Caller;
use crate::connection::{CancelKnown, Elsewhere, Passed};
use crate::frame::{RequestId, json_text};
use crate::host::Host;
use crate::lock::lock;
use crate::meta::ClientLogLevel;
use crate::sealing::{Purpose, StateKey};

/// Longest answer of a client that is passed on, in bytes. 1 MiB: the most that a manifest allows.
/// For a longer one, only its length is passed on.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Largest assumed difference between the clocks of two replicas: the end of a session is
/// remembered for as long as any of them accepts its id.
const CLOCKS_DIFFER_MAX: Duration = Duration::from_secs(5 * 60);

/// Pause after a check that nobody answered. Sessions remain in use meanwhile.
const POLL_EVERY: Duration = Duration::from_millis(250);

/// Longest wait until all replicas know of a stream, or of a watched resource. 1 s: a message
/// between replicas takes under a millisecond, and a client waits meanwhile.
pub(super) const KNOWN_WITHIN: Duration = Duration::from_secs(1);

/// Longest wait until a message is confirmed. Meanwhile it is sent again: messages are lost while a
/// replica reconnects. A second copy has no effect.
const ANSWER_WITHIN: Duration = Duration::from_millis(1_500);
const SENT_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The exchange with the other replicas.
pub(super) struct ReplicaExchange {
    pub(super) replicas: Arc<dyn Replicas>,
    key: StateKey,
    /// Requests that wait until all replicas know what a session watches. Open requests bound their
    /// number.
    unknown: Mutex<Vec<UnknownWatch>>,
    /// Unconfirmed messages, by number. Open requests bound their number.
    unheard: Mutex<HashMap<u64, oneshot::Sender<()>>>,
    /// Messages passed on so far.
    passed: AtomicU64,
    /// Streams opened here so far.
    opened: AtomicU64,
}

/// A request that is answered once this replica receives its own message: then the others have it
/// too.
struct UnknownWatch {
    session: String,
    uri: String,
    known: oneshot::Sender<()>,
}

/// A message about one session.
#[derive(Debug, Serialize, Deserialize)]
struct SessionNote {
    #[serde(rename = "f")]
    from: String,
    #[serde(rename = "s")]
    session: String,
    #[serde(rename = "n")]
    news: SessionNews,
}

/// A session, as replicas name it, and its caller's name.
#[derive(Clone, Copy)]
pub(super) struct SessionName<'s> {
    pub(super) key: &'s str,
    pub(super) caller: &'s str,
}

/// What happened to a session. Names of streams are unique.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum SessionNews {
    Ended,
    Opened(String),
    Closed(String),
    Kept(String, Vec<String>, Option<u64>),
    Answer { address: String, number: u64, reply: ReplyText, passed: u64 },
    Heard(u64),
    Cancel(String, u64),
    Level(String),
    Watch(String, bool),
    Watched(Vec<String>),
}

impl ReplicaExchange {
    pub(super) fn new(replicas: Arc<dyn Replicas>, key: StateKey) -> Arc<Self> {
        Arc::new(Self {
            replicas,
            key,
            unknown: Mutex::default(),
            unheard: Mutex::default(),
            passed: AtomicU64::new(0),
            opened: AtomicU64::new(0),
        })
    }

    /// Sends news of a session of this caller. Without randomness nothing can be sealed, or sent.
    pub(super) fn send(&self, to: Recipient<'_>, session: SessionName<'_>, news: SessionNews) {
        let SessionName { key, caller } = session;
        let note = SessionNote { from: self.replicas.name().to_owned(), session: key.to_owned(), news };
        let sealed = serde_json::to_vec(&note).ok().and_then(|text| self.key.seal(Purpose::Message, text));
        if let Some(sealed) = sealed {
            self.replicas.send(to, caller, sealed);
        }
    }

    /// Waits until this replica receives its own message about a resource.
    fn await_watch(&self, session: &str, uri: &str) -> oneshot::Receiver<()> {
        let (known, heard) = oneshot::channel();
        let mut unknown = lock(&self.unknown);
        // Removes waits that were given up.
        unknown.retain(|watch| !watch.known.is_closed());
        unknown.push(UnknownWatch { session: session.to_owned(), uri: uri.to_owned(), known });
        heard
    }

    /// All replicas have received this one's message about a resource.
    fn confirm_watch(&self, session: &str, uri: &str) {
        let mut unknown = lock(&self.unknown);
        // Dropping the sender completes the wait.
        unknown.retain(|watch| watch.session != session || watch.uri != uri);
    }

    /// The message of this number was confirmed.
    fn confirm_heard(&self, passed: u64) {
        if let Some(known) = lock(&self.unheard).remove(&passed) {
            // If the wait was given up, it has already answered.
            let _ = known.send(());
        }
    }

    /// The name of a new stream.
    pub(super) fn stream_name(&self) -> String {
        format!("{}.{}", self.replicas.name(), self.opened.fetch_add(1, Ordering::Relaxed))
    }

    /// The address at which the connection of this number asks.
    pub(super) fn address(&self, number: u64) -> String {
        format!("{}.{number}", self.replicas.name())
    }

    /// Ends a session of a caller everywhere: it is recorded for a time, then announced.
    pub(super) async fn end(&self, session: SessionName<'_>, time: Duration) -> Result<(), ReplicasAway> {
        self.replicas.note_ended(session.key, time.saturating_add(CLOCKS_DIFFER_MAX)).await?;
        self.send(Recipient::All, session, SessionNews::Ended);
        Ok(())
    }
}

/// The other replicas, for the connection of one session.
#[derive(Clone)]
pub(super) struct SessionElsewhere {
    exchange: Arc<ReplicaExchange>,
    session: String,
    caller: Arc<str>,
}

impl SessionElsewhere {
    pub(super) fn new(exchange: &Arc<ReplicaExchange>, session: &str, caller: &Caller) -> Self {
        Self { exchange: Arc::clone(exchange), session: session.to_owned(), caller: caller.shared_name() }
    }

    pub(super) fn send(&self, to: Recipient<'_>, news: SessionNews) {
        self.exchange.send(to, SessionName { key: &self.session, caller: &self.caller }, news);
    }

    /// Sends a client's message repeatedly until its recipients confirm it. False if they do not in
    /// time. Without a replica it goes to all: any of them may have what it is about.
    fn pass_on(&self, replica: Option<String>, news: impl FnOnce(u64) -> SessionNews) -> Passed {
        let passed = self.exchange.passed.fetch_add(1, Ordering::Relaxed);
        let news = news(passed);
        let own = self.clone();
        Box::pin(async move {
            let (known, mut heard) = oneshot::channel();
            lock(&own.exchange.unheard).insert(passed, known);
            let to = replica.as_deref().map_or(Recipient::All, Recipient::Replica);
            let send = async {
                loop {
                    own.send(to, news.clone());
                    sleep(SENT_AGAIN_AFTER).await;
                }
            };
            let is_heard = tokio::select! {
                biased;
                heard = &mut heard => heard.is_ok(),
                () = send => false,
                () = sleep(ANSWER_WITHIN) => false,
            };
            lock(&own.exchange.unheard).remove(&passed);
            is_heard
        })
    }
}

impl Elsewhere for SessionElsewhere {
    fn answer(&self, address: &str, number: u64, reply: Result<&str, &str>) -> Option<Passed> {
        // The client chooses the text, so only a valid name of a replica is accepted.
        let (replica, _) = address.split_once('.').filter(|(replica, _)| is_name(replica))?;
        if replica == self.exchange.replicas.name() {
            return None;
        }
        let text = reply.unwrap_or_else(|error| error);
        let reply = if text.len() > ANSWER_BYTES_MAX { ReplyText::TooLong(text.len()) } else { ReplyText::of(reply) };
        let address = address.to_owned();
        Some(self.pass_on(Some(replica.to_owned()), |passed| SessionNews::Answer { address, number, reply, passed }))
    }

    fn cancel(&self, id: &RequestId) -> Option<Passed> {
        let text = json_text(|out| id.push(out));
        Some(self.pass_on(None, |passed| SessionNews::Cancel(text, passed)))
    }

    fn watch(&self, uri: &str, watches: bool) -> CancelKnown {
        let heard = self.exchange.await_watch(&self.session, uri);
        self.send(Recipient::All, SessionNews::Watch(uri.to_owned(), watches));
        // If the others are unreachable, this replica's clients are still served.
        Box::pin(async move { drop(timeout(KNOWN_WITHIN, heard).await) })
    }

    fn set_log_level(&self, level: ClientLogLevel) {
        self.send(Recipient::All, SessionNews::Level(level.name().to_owned()));
    }
}

fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Receives messages of the other replicas, forever.
pub(super) async fn hear<H: Host>(exchange: Arc<ReplicaExchange>, sessions: Arc<LegacySessions<H>>) {
    let mut looking = JoinSet::new();
    loop {
        match exchange.replicas.hear().await {
            ReplicaItem::Listening => {
                looking.abort_all();
                looking.spawn(look_again(Arc::clone(&exchange), Arc::clone(&sessions)));
            }
            ReplicaItem::Message(mut sealed) => {
                let note = exchange.key.open(Purpose::Message, &mut sealed);
                if let Some(note) = note.and_then(|text| serde_json::from_slice::<SessionNote>(text).ok()) {
                    take(&exchange, &sessions, note);
                }
            }
        }
        while looking.try_join_next().is_some() {}
    }
}

/// Checks for each session if it has ended: the announcement may have been lost.
async fn look_again<H: Host>(exchange: Arc<ReplicaExchange>, sessions: Arc<LegacySessions<H>>) {
    for key in sessions.keys() {
        if let Some(session) = sessions.of_key(&key) {
            session.outbox.forget_elsewhere();
        }
        let has_ended = loop {
            match exchange.replicas.has_ended(&key).await {
                Ok(has_ended) => break has_ended,
                Err(ReplicasAway) => sleep(POLL_EVERY).await,
            }
        };
        if has_ended {
            sessions.end(&key);
        }
    }
}

fn take<H: Host>(exchange: &ReplicaExchange, sessions: &LegacySessions<H>, note: SessionNote) {
    let SessionNote { from, session: key, news } = note;
    let is_own = from == exchange.replicas.name();
    if matches!(news, SessionNews::Ended) {
        return sessions.end(&key);
    }
    let session = sessions.of_key(&key);
    match news {
        SessionNews::Heard(passed) => return exchange.confirm_heard(passed),
        // This is our own message, so all listeners have received it as well.
        SessionNews::Cancel(_, passed) if is_own => return exchange.confirm_heard(passed),
        SessionNews::Answer { passed, .. } if !is_own => {
            // This does not depend on the outcome of the answer.
            let caller = session.as_ref().map_or("", |session| session.caller().name());
            exchange.send(Recipient::Replica(&from), SessionName { key: &key, caller }, SessionNews::Heard(passed));
        }
        _ => {}
    }
    let Some(session) = session else { return };
    let name = SessionName { key: &key, caller: session.caller().name() };
    match news {
        SessionNews::Opened(stream) if is_own => session.outbox.confirm(&stream),
        SessionNews::Opened(stream) => {
            let watched = session.connection.watched();
            if !watched.is_empty() {
                let news = SessionNews::Watched(watched);
                exchange.send(Recipient::Replica(&from), name, news);
            }
            if let Some(KeptFrames { frames, told }) = session.outbox.moved(&stream) {
                let news = SessionNews::Kept(stream, frames, told);
                exchange.send(Recipient::Replica(&from), name, news);
            }
        }
        SessionNews::Watch(uri, _) if is_own => exchange.confirm_watch(&key, &uri),
        _ if is_own => {}
        SessionNews::Ended | SessionNews::Heard(_) => {}
        SessionNews::Closed(stream) => session.outbox.closed_elsewhere(&stream),
        SessionNews::Kept(stream, frames, told) => session.outbox.adopt(&stream, KeptFrames { frames, told }),
        SessionNews::Answer { address, number, reply, .. } => session.connection.take_answer(&address, number, reply),
        SessionNews::Cancel(id, _) => {
            if let Some(id) = RequestId::parse(&id) {
                session.connection.take_cancel(&id);
            }
        }
        SessionNews::Watch(uri, watches) => session.connection.take_watch(&uri, watches),
        SessionNews::Watched(uris) => uris.iter().for_each(|uri| session.connection.take_watch(uri, true)),
        SessionNews::Level(level) => {
            if let Some(level) = ClientLogLevel::named(&level) {
                session.connection.take_log_level(level);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_replicas_become_recipients() {
        for (text, is) in [("0af3", true), ("", false), ("all", false), ("0a:b", false), ("0A", false), ("a.b", false)]
        {
            assert_eq!(is_name(text), is, "{text}");
        }
        assert!(!is_name(&"a".repeat(65)));
    }

    #[test]
    fn the_longest_answer_fits_a_message() {
        let text = format!("\"{}\"", "\\\"".repeat(ANSWER_BYTES_MAX / 2 - 1));
        let reply = ReplyText::of(Ok(&text));
        let news = SessionNews::Answer { address: "a".repeat(128), number: u64::MAX, reply, passed: u64::MAX };
        let note = SessionNote { from: "a".repeat(64), session: "a".repeat(64), news };
        let written = serde_json::to_vec(&note).unwrap();
        assert!(written.len() <= ANSWER_BYTES_MAX + 1_024, "{}", written.len());
        let read: SessionNote = serde_json::from_slice(&written).unwrap();
        let SessionNews::Answer { number: u64::MAX, reply: ReplyText::Result(reply), .. } = read.news else {
            panic!("{:?}", read.news)
        };
        assert_eq!(reply.get(), text);
    }
}
