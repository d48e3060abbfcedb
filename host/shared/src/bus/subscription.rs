//! Subscribers with their queues, and the format of messages on the wire.
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::MESSAGE_BYTES_MAX;

/// Messages that wait for one subscriber. 1,024: a busy second.
const QUEUED_MAX: usize = 1_024;

/// Bytes that wait for one subscriber. 16 MiB: eight of the longest messages.
const QUEUED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Numbers of recent messages to recognise duplicates by, 16 bytes each. A duplicate comes within
/// the time of one operation.
const REMEMBERED_MAX: usize = 8_192;

/// Version of the message format.
const VERSION: u8 = 1;

/// Length of a message's number.
const NUMBER_BYTES: usize = 16;

/// What a subscriber gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// All messages that are published from now on arrive; earlier ones may be lost. Comes first,
    /// after each loss of the connection, and when the queue was full.
    Listening,
    /// A message.
    Message(Vec<u8>),
}

/// A subscription. Ends when dropped.
#[derive(Debug)]
pub struct Subscription {
    queue: Arc<SubscriptionQueue>,
}

#[derive(Debug, Default)]
struct SubscriptionQueue {
    channels: BTreeSet<String>,
    /// The server has confirmed it.
    listens: AtomicBool,
    waiting: Mutex<WaitingMessages>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct WaitingMessages {
    began: bool,
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// All subscriptions of this process.
#[derive(Debug, Default)]
pub struct Subscribers {
    queues: Mutex<Vec<Weak<SubscriptionQueue>>>,
    seen: Mutex<SeenMessage>,
}

/// The numbers of recent messages.
#[derive(Debug, Default)]
struct SeenMessage {
    numbers: HashSet<u128>,
    order: VecDeque<u128>,
}

/// A message as sent over the wire.
struct WireMessage<'a> {
    number: u128,
    message: &'a [u8],
}

impl Subscription {
    /// The next item.
    pub async fn next(&mut self) -> News {
        loop {
            if let Some(news) = self.queue.take() {
                return news;
            }
            // A message in between has left a permit.
            self.queue.ready.notified().await;
        }
    }
}

impl SubscriptionQueue {
    fn take(&self) -> Option<News> {
        let mut waiting = self.waiting.lock();
        if std::mem::take(&mut waiting.began) {
            return Some(News::Listening);
        }
        let message = waiting.messages.pop_front()?;
        waiting.bytes -= message.len();
        Some(News::Message(message))
    }

    fn push(&self, message: &[u8]) {
        let mut waiting = self.waiting.lock();
        if waiting.messages.len() >= QUEUED_MAX || waiting.bytes + message.len() > QUEUED_BYTES_MAX {
            // A subscriber that reads too slowly starts over.
            *waiting = WaitingMessages { began: true, ..WaitingMessages::default() };
        }
        waiting.bytes += message.len();
        waiting.messages.push_back(message.to_vec());
        drop(waiting);
        self.ready.notify_one();
    }

    fn begin(&self) {
        if !self.listens.swap(true, Ordering::AcqRel) {
            self.waiting.lock().began = true;
            self.ready.notify_one();
        }
    }
}

impl Subscribers {
    /// Adds a subscription. [`begin`](Self::begin) notifies it once its channels are confirmed.
    pub fn add(&self, channels: &[&str]) -> Subscription {
        let channels = channels.iter().map(|channel| (*channel).to_owned()).collect();
        let queue = Arc::new(SubscriptionQueue { channels, ..SubscriptionQueue::default() });
        self.queues.lock().push(Arc::downgrade(&queue));
        Subscription { queue }
    }

    /// The channels of all subscriptions.
    pub fn channels(&self) -> BTreeSet<String> {
        self.held().iter().flat_map(|queue| queue.channels.clone()).collect()
    }

    /// Notifies new subscriptions, if all of their channels are confirmed, that messages arrive
    /// from now on.
    pub fn begin(&self, is_heard: impl Fn(&str) -> bool) {
        let held = self.held();
        let heard = held.iter().filter(|queue| queue.channels.iter().all(|channel| is_heard(channel)));
        heard.for_each(|queue| queue.begin());
    }

    /// Notes that messages no longer arrive.
    pub fn lose(&self) {
        self.held().iter().for_each(|queue| queue.listens.store(false, Ordering::Release));
    }

    /// Passes a message to the subscriptions of its channel.
    pub fn pass_on(&self, channel: &str, message: &[u8]) {
        for queue in self.held().iter().filter(|queue| queue.channels.contains(channel)) {
            queue.push(message);
        }
    }

    /// Passes on a message from the wire. Duplicates, and messages that are too long or of another
    /// version, are dropped.
    pub fn pass_on_wire(&self, channel: &str, bytes: &[u8]) {
        let Some(WireMessage { number, message }) = from_wire(bytes) else { return };
        if self.seen.lock().is_new(number) {
            self.pass_on(channel, message);
        }
    }

    fn held(&self) -> Vec<Arc<SubscriptionQueue>> {
        let mut queues = self.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.iter().filter_map(Weak::upgrade).collect()
    }
}

impl SeenMessage {
    fn is_new(&mut self, number: u128) -> bool {
        if !self.numbers.insert(number) {
            return false;
        }
        self.order.push_back(number);
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.numbers.remove(&oldest);
        }
        true
    }
}

/// A message as sent over the wire: version, number, bytes.
pub fn as_wire(number: u128, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + NUMBER_BYTES + message.len());
    bytes.push(VERSION);
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.extend_from_slice(message);
    bytes
}

fn from_wire(bytes: &[u8]) -> Option<WireMessage<'_>> {
    let (version, rest) = bytes.split_first()?;
    let (number, message) = rest.split_first_chunk::<NUMBER_BYTES>()?;
    let fits = *version == VERSION && message.len() <= MESSAGE_BYTES_MAX;
    fits.then(|| WireMessage { number: u128::from_be_bytes(*number), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_comes_twice_is_passed_on_once_and_foreign_ones_never() {
        let subscribers = Subscribers::default();
        let subscription = subscribers.add(&["all"]);
        for number in [7, 7, 8, 7] {
            subscribers.pass_on_wire("all", &as_wire(number, &[u8::try_from(number).unwrap()]));
        }
        let mut newer = as_wire(9, b"newer");
        newer[0] = VERSION + 1;
        for foreign in
            [&b""[..], &[VERSION], &[VERSION; NUMBER_BYTES], &newer, &as_wire(10, &vec![0; MESSAGE_BYTES_MAX + 1])]
        {
            subscribers.pass_on_wire("all", foreign);
        }
        subscribers.pass_on_wire("another", &as_wire(11, b"x"));
        let items: Vec<_> = std::iter::from_fn(|| subscription.queue.take()).collect();
        assert_eq!(items, [News::Message(vec![7]), News::Message(vec![8])]);
    }

    #[test]
    fn who_reads_too_slowly_is_told_and_holds_a_bounded_number_of_bytes() {
        let subscribers = Subscribers::default();
        let subscription = subscribers.add(&["all"]);
        for _ in 0..=QUEUED_MAX {
            subscribers.pass_on("all", b"x");
        }
        assert_eq!(subscription.queue.take(), Some(News::Listening));
        assert_eq!(subscription.queue.take(), Some(News::Message(b"x".to_vec())));
        assert_eq!(subscription.queue.take(), None);
        let long = vec![0; MESSAGE_BYTES_MAX];
        for _ in 0..100 {
            subscribers.pass_on("all", &long);
            assert!(subscription.queue.waiting.lock().bytes <= QUEUED_BYTES_MAX);
        }
        assert_eq!(subscription.queue.take(), Some(News::Listening));
    }

    #[test]
    fn numbers_are_remembered_up_to_a_bound() {
        let mut seen = SeenMessage::default();
        assert!((0..10 * REMEMBERED_MAX as u128).all(|number| seen.is_new(number)));
        assert_eq!((seen.numbers.len(), seen.order.len()), (REMEMBERED_MAX, REMEMBERED_MAX));
    }
}
