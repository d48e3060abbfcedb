//! Replicas of tests, and how their tests run.
#![allow(dead_code, reason = "each test crate uses a part of it")]
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use toolcell_shared::{Arrangement, Valkey, ValkeyOptions};

use super::engine::patience::patience;
use super::engine::{Cluster, Engine, MAIN, Watched};

pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(3_600);

/// Time for one operation, where a test waits for its end.
pub const WITHIN: Duration = Duration::from_millis(500);

/// Time for one operation, where a test shows that nothing waits for its end: a busy machine does
/// not take as long.
pub const NOT_REACHED: Duration = Duration::from_secs(10);

/// A server at this port.
pub fn options(port: u16) -> ValkeyOptions {
    ValkeyOptions { prefix: "test".to_owned(), within: WITHIN, ..ValkeyOptions::at("127.0.0.1", port) }
}

/// The server that these sentinels name.
pub fn behind(watched: &Watched) -> ValkeyOptions {
    let main = MAIN.to_owned();
    let others = addresses(&watched.sentinels[1..]);
    let arrangement = Arrangement::Sentinels { main, others, user: None, password: None };
    ValkeyOptions { arrangement, ..options(watched.sentinels[0].port()) }
}

/// A cluster.
pub fn of(cluster: &Cluster) -> ValkeyOptions {
    let arrangement = Arrangement::Cluster { others: addresses(&cluster.nodes[1..]) };
    ValkeyOptions { arrangement, ..options(cluster.nodes[0].port()) }
}

fn addresses(engines: &[Engine]) -> Vec<(String, u16)> {
    engines.iter().map(|engine| ("127.0.0.1".to_owned(), engine.port())).collect()
}

/// Runs a test on two threads.
pub fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test);
}

/// Servers that all tests of this process share, as they take seconds to start. They end with the
/// last test that uses them.
struct Servers {
    alone: Engine,
    watched: Watched,
    cluster: Cluster,
}

static SERVERS: Mutex<Weak<Servers>> = Mutex::new(Weak::new());

fn servers() -> Arc<Servers> {
    let mut running = SERVERS.lock().unwrap();
    running.upgrade().unwrap_or_else(|| {
        let alone = Engine::start(&[]);
        let watched = Watched::start(&[]);
        let cluster = Cluster::start(&[]);
        let servers = Arc::new(Servers { alone, watched, cluster });
        *running = Arc::downgrade(&servers);
        servers
    })
}

/// Runs a test of two replicas at each kind of server.
pub fn each_server(test: impl AsyncFn(&Valkey, &Valkey)) {
    static TESTS: AtomicU32 = AtomicU32::new(0);
    let number = TESTS.fetch_add(1, Ordering::Relaxed);
    let servers = servers();
    for options in [options(servers.alone.port()), behind(&servers.watched), of(&servers.cluster)] {
        let prefix = format!("test{number}");
        let within = patience();
        let options = ValkeyOptions { prefix, within, ..options };
        let replica = || Valkey::new(options.clone()).unwrap();
        run(async { test(&replica(), &replica()).await });
    }
}
