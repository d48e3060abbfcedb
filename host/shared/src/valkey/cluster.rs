//! A cluster: which node has the slot of a key, and a connection to each node.
//!
//! The client's own cluster support does not suffice. It loads a script on every node or on none,
//! so that one unreachable node would fail the scripts of all. It would also have `rand` built with
//! other features, and `wasmtime-wasi` with it.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::{ErrorKind, FromRedisValue, RedisError, RedisResult, Value};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::connection::{Connection, Failed, Operation};
use super::options::{Address, BadAddress, Opener};
use super::slot::{SLOTS, slot_of};
use crate::Away;

/// Most nodes, as Valkey's documentation recommends.
const NODES_MAX: usize = 1_000;

/// Most redirects of one operation. One happens while a slot moves, two if it has moved since.
const REDIRECTS_MAX: usize = 5;

/// How many nodes are asked at once for the slot table: some may be unreachable.
const ASKED_AT_ONCE: usize = 3;

/// A slot without a known node.
const NOBODY: u16 = u16::MAX;

/// Nodes of one cluster.
pub struct Cluster {
    opener: Arc<Opener>,
    within: Duration,
    /// Nodes that the operator named.
    named: Vec<Arc<Connection>>,
    table: Mutex<SlotTable>,
    /// Held during a look-up of slots: others wait for its outcome.
    looking_up: tokio::sync::Mutex<()>,
    /// Number of look-ups, so that each starts with other nodes.
    look_ups: AtomicUsize,
}

/// The nodes, and which of them has which slot.
struct SlotTable {
    nodes: Vec<Arc<Connection>>,
    /// For each slot the index of its node in `nodes`, or [`NOBODY`].
    slots: Vec<u16>,
    /// A node that failed. It is not asked for slots: it may not know that it lost them.
    failed: Option<Address>,
}

impl Cluster {
    pub fn new(places: &[Address], opener: Opener, within: Duration) -> Result<Self, BadAddress> {
        let opener = Arc::new(opener);
        let named = places.iter().map(|place| Connection::to(place, &opener, within).map(Arc::new));
        Ok(Self {
            named: named.collect::<Result<_, _>>()?,
            opener,
            within,
            table: Mutex::new(SlotTable { nodes: Vec::new(), slots: vec![NOBODY; SLOTS], failed: None }),
            looking_up: tokio::sync::Mutex::default(),
            look_ups: AtomicUsize::new(0),
        })
    }

    /// Runs one operation at the node of its key.
    pub async fn run<T: FromRedisValue>(&self, operation: Operation<'_>, longer: Duration) -> Result<T, Away> {
        let until = Instant::now() + self.within + longer;
        let slot = slot_of(&operation.key().await);
        let mut node = self.node_of(slot, until).await?;
        let mut is_asking = false;
        for _ in 0..REDIRECTS_MAX {
            match node.try_until(operation, is_asking, until).await {
                Ok(answer) => return Ok(answer),
                Err(Failed::LeftAlone(away) | Failed::Behind(away)) => return Err(away),
                Err(Failed::Away(away)) => {
                    self.forget(&node);
                    return Err(away);
                }
                Err(Failed::Elsewhere { place, is_moved }) => {
                    node = self.node_at(&place)?;
                    is_asking = !is_moved;
                    if is_moved {
                        self.give(slot, &node);
                    }
                }
            }
        }
        Err(Away::new(format!("slot {slot} is sent from node to node")))
    }

    /// The node of a slot. Looks it up if it is not known.
    async fn node_of(&self, slot: u16, until: Instant) -> Result<Arc<Connection>, Away> {
        if let Some(node) = self.table.lock().node_of(slot) {
            return Ok(node);
        }
        let looked_up = tokio::time::timeout_at(until, async {
            let _turn = self.looking_up.lock().await;
            let known = self.table.lock().node_of(slot);
            match known {
                Some(node) => Ok(node),
                None => self.look_up(slot).await,
            }
        });
        looked_up.await.unwrap_or_else(|_| Err(Away::new("no node answered in time which node has which slots")))
    }

    /// Asks some nodes for the slot table, and takes the first answer.
    async fn look_up(&self, slot: u16) -> Result<Arc<Connection>, Away> {
        let first = self.look_ups.fetch_add(1, Ordering::Relaxed);
        let (known, failed) = self.known();
        let mut asked: Vec<_> = known.iter().filter(|node| failed.as_ref() != Some(node.place())).collect();
        if asked.is_empty() {
            asked = known.iter().collect();
        }
        let mut answers = JoinSet::new();
        for node in asked.iter().cycle().skip(first % asked.len().max(1)).take(ASKED_AT_ONCE.min(asked.len())) {
            answers.spawn(slots_known_to(Arc::clone(node)));
        }
        let mut problem = Away::new("no node of the cluster is known");
        while let Some(answer) = answers.join_next().await {
            match answer {
                Ok(Ok(ranges)) => {
                    self.take_over(&ranges)?;
                    let node = self.table.lock().node_of(slot);
                    return node.ok_or_else(|| Away::new(format!("no node of the cluster has slot {slot}")));
                }
                Ok(Err(away)) => problem = away,
                Err(_) => (),
            }
        }
        Err(problem)
    }

    /// All nodes, each once, and the one that failed.
    fn known(&self) -> (Vec<Arc<Connection>>, Option<Address>) {
        let table = self.table.lock();
        let named = self.named.iter().filter(|named| !table.nodes.iter().any(|node| node.place() == named.place()));
        (table.nodes.iter().chain(named).map(Arc::clone).collect(), table.failed.clone())
    }

    /// Sets the slots. Nodes that stay keep their connections.
    fn take_over(&self, ranges: &[SlotRange]) -> Result<(), Away> {
        let mut nodes: Vec<Arc<Connection>> = Vec::new();
        let mut slots = vec![NOBODY; SLOTS];
        for range in ranges {
            let place = match nodes.iter().position(|node| *node.place() == range.place) {
                Some(place) => place,
                None => {
                    nodes.push(self.node_at(&range.place)?);
                    nodes.len() - 1
                }
            };
            let number = u16::try_from(place).ok().filter(|_| place < NODES_MAX);
            let number = number.ok_or_else(|| Away::new(format!("the cluster has more than {NODES_MAX} nodes")))?;
            if let Some(slots) = slots.get_mut(usize::from(range.first)..=usize::from(range.last)) {
                slots.fill(number);
            }
        }
        let mut table = self.table.lock();
        (table.nodes, table.slots, table.failed) = (nodes, slots, None);
        Ok(())
    }

    /// A connection for listening, to another node each time, since some may be unreachable.
    pub async fn listening(&self, push: impl AsyncPushSender) -> RedisResult<MultiplexedConnection> {
        let nodes: Vec<_> = self.table.lock().nodes.iter().chain(&self.named).map(Arc::clone).collect();
        let turn = self.look_ups.fetch_add(1, Ordering::Relaxed) % nodes.len().max(1);
        match nodes.get(turn) {
            Some(node) => node.listening(push).await,
            None => Err(RedisError::from((ErrorKind::Io, "no node is known"))),
        }
    }

    /// The connection to this node.
    fn node_at(&self, place: &Address) -> Result<Arc<Connection>, Away> {
        let found =
            self.table.lock().nodes.iter().chain(&self.named).find(|node| node.place() == place).map(Arc::clone);
        match found {
            Some(node) => Ok(node),
            None => Connection::to(place, &self.opener, self.within)
                .map(Arc::new)
                .map_err(|problem| Away::new(format!("{place}: {problem}"))),
        }
    }

    /// Assigns a slot to a node, after a redirect.
    fn give(&self, slot: u16, node: &Arc<Connection>) {
        let mut table = self.table.lock();
        let known = table.nodes.iter().position(|known| known.place() == node.place());
        let place = known.unwrap_or(table.nodes.len());
        if place >= NODES_MAX {
            return;
        }
        if known.is_none() {
            table.nodes.push(Arc::clone(node));
        }
        if let (Ok(number), Some(owner)) = (u16::try_from(place), table.slots.get_mut(usize::from(slot))) {
            *owner = number;
        }
    }

    /// Removes all slots of a node that failed: another may have them now.
    fn forget(&self, node: &Connection) {
        let mut table = self.table.lock();
        table.failed = Some(node.place().clone());
        let place = table.nodes.iter().position(|known| known.place() == node.place());
        if let Some(number) = place.and_then(|place| u16::try_from(place).ok()) {
            table.slots.iter_mut().filter(|owner| **owner == number).for_each(|owner| *owner = NOBODY);
        }
    }
}

impl SlotTable {
    fn node_of(&self, slot: u16) -> Option<Arc<Connection>> {
        let number = self.slots.get(usize::from(slot))?;
        self.nodes.get(usize::from(*number)).map(Arc::clone)
    }
}

/// A range of slots of one node.
#[derive(Debug, PartialEq, Eq)]
struct SlotRange {
    first: u16,
    last: u16,
    place: Address,
}

async fn slots_known_to(node: Arc<Connection>) -> Result<Vec<SlotRange>, Away> {
    let mut question = redis::cmd("CLUSTER");
    question.arg("SLOTS");
    let answer: Value = node.run(Operation::Command(&question), Duration::ZERO).await?;
    ranges(&answer, node.place()).ok_or_else(|| Away::new(format!("{}: no table of slots", node.place())))
}

/// Parses the answer to `CLUSTER SLOTS`: each range with its ends, its primary, and replicas of
/// that.
fn ranges(answer: &Value, asked: &Address) -> Option<Vec<SlotRange>> {
    let Value::Array(entries) = answer else { return None };
    if entries.len() > SLOTS {
        return None;
    }
    entries.iter().map(|entry| range(entry, asked)).collect()
}

fn range(entry: &Value, asked: &Address) -> Option<SlotRange> {
    let Value::Array(parts) = entry else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(node), ..] = parts.as_slice() else { return None };
    let [host, Value::Int(port), ..] = node.as_slice() else { return None };
    // A node without a host of its own has the host that was asked.
    let host = match host {
        Value::BulkString(host) => std::str::from_utf8(host).ok().filter(|host| !host.is_empty() && *host != "?"),
        _ => None,
    };
    let host = host.unwrap_or(&asked.host).to_owned();
    let place = Address { host, port: u16::try_from(*port).ok()? };
    Some(SlotRange { first: u16::try_from(*first).ok()?, last: u16::try_from(*last).ok()?, place })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(host: &str, port: u16) -> Address {
        Address { host: host.to_owned(), port }
    }

    fn entry(first: i64, last: i64, host: Value, port: i64) -> Value {
        let node = Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec())]);
        let copy = Value::Array(vec![Value::BulkString(b"copy".to_vec()), Value::Int(1)]);
        Value::Array(vec![Value::Int(first), Value::Int(last), node, copy])
    }

    #[test]
    fn a_table_of_slots_is_read_or_refused_whole() {
        let asked = place("a.example.com", 6_379);
        let text = |host: &str| Value::BulkString(host.as_bytes().to_vec());
        let table = Value::Array(vec![
            entry(0, 100, text("10.0.0.1"), 7_000),
            entry(101, 16_383, Value::Nil, 7_001),
            entry(5, 5, text(""), 7_002),
        ]);
        let range = |first, last, place| SlotRange { first, last, place };
        let expected = vec![
            range(0, 100, place("10.0.0.1", 7_000)),
            range(101, 16_383, place("a.example.com", 7_001)),
            range(5, 5, place("a.example.com", 7_002)),
        ];
        assert_eq!(ranges(&table, &asked), Some(expected));
        for wrong in [
            Value::Nil,
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![entry(0, 70_000, Value::Nil, 1)]),
            Value::Array(vec![entry(-1, 5, Value::Nil, 1)]),
            Value::Array(vec![entry(0, 5, Value::Nil, 70_000)]),
            Value::Array((0..=SLOTS).map(|_| entry(0, 5, Value::Nil, 1)).collect()),
        ] {
            assert_eq!(ranges(&wrong, &asked), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_table_that_lies_gives_nobody_more_than_there_is() {
        let opener =
            Opener { tls: false, authorities_pem: None, user: None, password: None, database: 0, copies: None };
        let cluster = Cluster::new(&[place("127.0.0.1", 1)], opener, Duration::from_secs(1)).unwrap();
        let beyond = SlotRange { first: 16_000, last: 60_000, place: place("127.0.0.1", 2) };
        let backwards = SlotRange { first: 9, last: 3, place: place("127.0.0.1", 2) };
        cluster.take_over(&[beyond, backwards]).unwrap();
        assert!(cluster.table.lock().slots.iter().all(|owner| *owner == NOBODY));
        let many = (0..1_001).map(|port| SlotRange { first: port, last: port, place: place("127.0.0.1", port) });
        assert!(cluster.take_over(&many.collect::<Vec<_>>()).unwrap_err().internal().contains("1000"));
    }
}
