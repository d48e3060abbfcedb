//! Messages to other replicas, over the shared state.
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use toolcell_mcp::http::{Recipient, ReplicaAnswer, ReplicaItem, Replicas, ReplicasAway};
use toolcell_shared::{Bus, News, PublishError, SharedState, Subscription};

use crate::owned_task::OwnedTask;
use crate::replicas::random_name;

/// Messages that wait to be sent. 4,096: as many as requests that are answered at once.
const OUTGOING_MAX: usize = 4_096;

/// Bytes that wait to be sent. 16 MiB: sixteen of the longest answers.
const OUTGOING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The share of one caller, of messages and of bytes: a quarter, as for other state of clients.
const SHARE: usize = 4;

/// How long one message is tried. Later messages wait for it.
const TRIED_FOR: Duration = Duration::from_secs(10);

/// Pause between two tries.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// The channel of every replica.
const ALL: &str = "sessions";

/// The other replicas of this server.
pub struct SharedReplicas {
    name: String,
    state: Arc<dyn SharedState>,
    outgoing: Arc<OutgoingMessages>,
    heard: tokio::sync::Mutex<Subscription>,
    _sending: OwnedTask,
}

#[derive(Default)]
struct OutgoingMessages {
    waiting: Mutex<CallerMessages>,
    ready: Notify,
    /// True if the operator was notified of lost messages.
    is_told: AtomicBool,
}

/// Messages by caller. Callers take turns.
#[derive(Default)]
struct CallerMessages {
    callers: HashMap<Box<str>, MessagesOfCaller>,
    /// Callers with messages, the next one first.
    turns: VecDeque<Box<str>>,
    messages: usize,
    bytes: usize,
}

#[derive(Default)]
struct MessagesOfCaller {
    messages: VecDeque<(String, Vec<u8>)>,
    bytes: usize,
}

impl CallerMessages {
    fn push(&mut self, caller: &str, channel: String, message: Vec<u8>) -> bool {
        let (messages, bytes) = self.callers.get(caller).map_or((0, 0), |own| (own.messages.len(), own.bytes));
        let fits = |messages, bytes: usize, part| {
            messages < OUTGOING_MAX / part && bytes.saturating_add(message.len()) <= OUTGOING_BYTES_MAX / part
        };
        if !fits(messages, bytes, SHARE) || !fits(self.messages, self.bytes, 1) {
            return false;
        }
        if messages == 0 {
            self.turns.push_back(caller.into());
        }
        let own = self.callers.entry(caller.into()).or_default();
        own.bytes += message.len();
        self.bytes += message.len();
        self.messages += 1;
        own.messages.push_back((channel, message));
        true
    }

    fn pop(&mut self) -> Option<(String, Vec<u8>)> {
        let caller = self.turns.pop_front()?;
        let own = self.callers.get_mut(&caller)?;
        let (channel, message) = own.messages.pop_front()?;
        own.bytes -= message.len();
        self.bytes -= message.len();
        self.messages -= 1;
        if own.messages.is_empty() {
            self.callers.remove(&caller);
        } else {
            self.turns.push_back(caller);
        }
        Some((channel, message))
    }
}

impl SharedReplicas {
    /// A replica with a new name. `None` if the machine has no randomness.
    pub fn open(state: Arc<dyn SharedState>, bus: Arc<dyn Bus>, runtime: &Handle) -> Option<Self> {
        let name = random_name()?;
        let _inside = runtime.enter();
        let heard = tokio::sync::Mutex::new(bus.subscribe(&[ALL, &of_replica(&name)]));
        let outgoing = Arc::<OutgoingMessages>::default();
        let sending = OwnedTask(runtime.spawn(Arc::clone(&outgoing).send_all(bus)));
        Some(Self { name, state, outgoing, heard, _sending: sending })
    }
}

/// Sends a message. If that fails, it is tried again: other replicas would otherwise miss it.
pub async fn publish(bus: &dyn Bus, channel: &str, message: &[u8]) -> Result<(), PublishError> {
    let until = Instant::now() + TRIED_FOR;
    loop {
        match bus.publish(channel, message).await {
            Err(PublishError::Away(_)) if Instant::now() < until => sleep(TRY_AGAIN_AFTER).await,
            done => return done,
        }
    }
}

/// The channel of one replica.
fn of_replica(name: &str) -> String {
    format!("replica:{name}")
}

fn ended(session: &str) -> String {
    format!("session has ended: {session}")
}

impl OutgoingMessages {
    fn push(&self, caller: &str, channel: String, message: Vec<u8>) {
        let fits = self.waiting.lock().push(caller, channel, message);
        if fits {
            self.ready.notify_one();
        } else {
            self.report("too many messages wait for other replicas");
        }
    }

    /// Sends one message after the other, forever.
    async fn send_all(self: Arc<Self>, bus: Arc<dyn Bus>) {
        loop {
            let next = self.waiting.lock().pop();
            let Some((channel, message)) = next else {
                self.ready.notified().await;
                continue;
            };
            match publish(&*bus, &channel, &message).await {
                Ok(()) => self.is_told.store(false, Ordering::Relaxed),
                Err(error) => self.report(&error.to_string()),
            }
        }
    }

    fn report(&self, reason: &str) {
        if !self.is_told.swap(true, Ordering::Relaxed) {
            tracing::warn!("messages to other replicas are lost: {reason}");
        }
    }
}

impl Replicas for SharedReplicas {
    fn name(&self) -> &str {
        &self.name
    }

    fn send(&self, to: Recipient<'_>, caller: &str, message: Vec<u8>) {
        let channel = match to {
            Recipient::All => ALL.to_owned(),
            Recipient::Replica(name) => of_replica(name),
        };
        self.outgoing.push(caller, channel, message);
    }

    fn hear(&self) -> ReplicaAnswer<'_, ReplicaItem> {
        Box::pin(async {
            match self.heard.lock().await.next().await {
                News::Listening => ReplicaItem::Listening,
                News::Message(message) => ReplicaItem::Message(message),
            }
        })
    }

    fn note_ended<'r>(&'r self, session: &'r str, time: Duration) -> ReplicaAnswer<'r, Result<(), ReplicasAway>> {
        Box::pin(async move { self.state.note(&ended(session), time).await.map_err(|_away| ReplicasAway) })
    }

    fn has_ended<'r>(&'r self, session: &'r str) -> ReplicaAnswer<'r, Result<bool, ReplicasAway>> {
        Box::pin(async move { self.state.is_noted(&ended(session)).await.map_err(|_away| ReplicasAway) })
    }
}

#[cfg(test)]
mod tests {
    use toolcell_shared::{Embedded, EmbeddedBus};

    use super::*;

    #[tokio::test]
    async fn replicas_hear_each_other_and_know_ended_sessions() {
        let state = Arc::<Embedded>::default();
        let bus = Arc::<EmbeddedBus>::default();
        let [one, other] = [(); 2].map(|()| {
            let state: Arc<dyn SharedState> = Arc::<Embedded>::clone(&state);
            let bus: Arc<dyn Bus> = Arc::<EmbeddedBus>::clone(&bus);
            SharedReplicas::open(state, bus, &Handle::current()).unwrap()
        });
        assert_ne!(one.name(), other.name());
        for replica in [&one, &other] {
            assert_eq!(replica.hear().await, ReplicaItem::Listening);
        }
        one.send(Recipient::Replica(other.name()), "ann", b"to the other".to_vec());
        one.send(Recipient::All, "ann", b"to all".to_vec());
        assert_eq!(other.hear().await, ReplicaItem::Message(b"to the other".to_vec()));
        for replica in [&one, &other] {
            assert_eq!(replica.hear().await, ReplicaItem::Message(b"to all".to_vec()));
        }
        assert_eq!(other.has_ended("session").await, Ok(false));
        one.note_ended("session", Duration::from_secs(60)).await.unwrap();
        assert_eq!(other.has_ended("session").await, Ok(true));
        assert_eq!(other.has_ended("another").await, Ok(false));
    }

    #[test]
    fn what_waits_to_be_sent_is_bounded_and_callers_take_turns() {
        let mut waiting = CallerMessages::default();
        let mut push = |caller: &str, count: usize, bytes: usize| {
            (0..count).filter(|_| waiting.push(caller, caller.to_owned(), vec![0; bytes])).count()
        };
        assert_eq!(push("ann", 2 * OUTGOING_MAX, 1), OUTGOING_MAX / SHARE);
        assert_eq!(push("ben", 100, 1024 * 1024), 4);
        assert_eq!(push("cid", 1, 1), 1);
        let order: Vec<_> = std::iter::from_fn(|| waiting.pop()).map(|(channel, _)| channel).collect();
        assert_eq!(order[..7], ["ann", "ben", "cid", "ann", "ben", "ann", "ben"]);
        assert_eq!(order.len(), OUTGOING_MAX / SHARE + 5);
        assert_eq!((waiting.messages, waiting.bytes, waiting.callers.len(), waiting.turns.len()), (0, 0, 0, 0));
        for caller in 0..8 {
            assert_eq!(
                waiting.push(&caller.to_string(), "all".to_owned(), vec![0; OUTGOING_BYTES_MAX / 4]),
                caller < 4
            );
        }
    }
}
