//! A cluster of three nodes and a copy of the first.
use super::{Engine, Kind, OPERATOR, in_time};

/// Slots of a cluster.
const SLOTS: usize = 16_384;

/// A running cluster.
pub struct Cluster {
    /// The main nodes: each has a third of the slots.
    pub nodes: [Engine; 3],
    /// A copy of the first.
    pub copy: Engine,
}

impl Cluster {
    /// Starts it, and waits until each node knows all.
    pub fn start(options: &[&str]) -> Self {
        let node = || Engine::start_as(Kind::Node, options);
        let cluster = Self { nodes: [node(), node(), node()], copy: node() };
        let all = || cluster.nodes.iter().chain([&cluster.copy]);
        for (number, node) in cluster.nodes.iter().enumerate() {
            let first = SLOTS * number / 3;
            let last = SLOTS * (number + 1) / 3 - 1;
            let taken = node.ask(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            assert_eq!(taken, "+OK");
        }
        for node in all().skip(1) {
            let bus = node.ask(&["CONFIG", "GET", "cluster-port"]);
            assert_eq!(bus, "*2");
            let bus = node.whole_answer(&["CONFIG", "GET", "cluster-port"]).lines().nth(4).unwrap().to_owned();
            let met = cluster.nodes[0].ask(&["CLUSTER", "MEET", "127.0.0.1", &node.port().to_string(), &bus]);
            assert_eq!(met, "+OK");
        }
        in_time("each node knows all", || {
            all().all(|node| {
                let info = node.whole_answer(&["CLUSTER", "INFO"]);
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:4")
            })
        });
        let copies = || cluster.copy.ask(&["CLUSTER", "REPLICATE", &cluster.nodes[0].node_id()]) == "+OK";
        in_time("the copy copies", copies);
        in_time("the copy is whole and known", || {
            let id = cluster.copy.node_id();
            let is_known = |node: &Engine| {
                let nodes = node.whole_answer(&["CLUSTER", "NODES"]);
                nodes.lines().any(|line| line.starts_with(&id) && line.contains("slave"))
            };
            cluster.copy.whole_answer(&["INFO", "replication"]).contains("master_link_status:up") && all().all(is_known)
        });
        cluster
    }

    /// A node that has all slots.
    pub fn of_one() -> Engine {
        let node = Engine::start_as(Kind::Node, &[]);
        assert_eq!(node.ask(&["CLUSTER", "ADDSLOTSRANGE", "0", &(SLOTS - 1).to_string()]), "+OK");
        in_time("it has its slots", || node.whole_answer(&["CLUSTER", "INFO"]).contains("cluster_state:ok"));
        node
    }

    /// Begins to move a slot: its new keys are made by `to`, which is asked for them.
    pub fn begin_to_move(&self, slot: usize, from: &Engine, to: &Engine) {
        let slot = slot.to_string();
        assert_eq!(to.ask(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from.node_id()]), "+OK");
        assert_eq!(from.ask(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to.node_id()]), "+OK");
    }

    /// Moves the keys of a slot that is being moved, and then the slot.
    pub fn end_move(&self, slot: usize, from: &Engine, to: &Engine) {
        let slot = slot.to_string();
        loop {
            let keys = from.whole_answer(&["CLUSTER", "GETKEYSINSLOT", &slot, "1"]);
            let Some(key) = keys.lines().nth(2) else { break };
            let port = to.port().to_string();
            let moved = from.ask(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000", "AUTH2", OPERATOR, "any"]);
            assert_eq!(moved, "+OK");
        }
        for node in [to, from] {
            assert_eq!(node.ask(&["CLUSTER", "SETSLOT", &slot, "NODE", &to.node_id()]), "+OK");
        }
    }
}

impl Engine {
    /// Its name in the cluster.
    fn node_id(&self) -> String {
        self.whole_answer(&["CLUSTER", "MYID"]).lines().nth(1).unwrap().to_owned()
    }
}
