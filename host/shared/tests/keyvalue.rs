//! State of tools on a real server: quotas, numbers and listings over replicas, requests that come
//! twice, and the server's loss.
//!
//! Promise: state is bounded.
//! Promise: state and files hold nobody up.
#![expect(clippy::unwrap_used, reason = "tests")]

mod engine;
mod replica;

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::patience::patience;
use engine::{Engine, eventually};
use redis::Script;
use replica::{WITHIN, options, run};
use toolcell_shared::{Bucket, Kept, NotKept, Quota, ValkeyOptions};

const ROOMY: Quota = Quota { bytes: 64 << 20, entries: 100_000, value_bytes: 1 << 20, namespaces: 1_000 };
const NOTES: Bucket<'_> = Bucket { component: "notes", namespace: "", name: "default" };

fn replica(engine: &Engine) -> Arc<Kept> {
    replica_with(engine, WITHIN)
}

fn replica_with(engine: &Engine, within: Duration) -> Arc<Kept> {
    Kept::new(ValkeyOptions { within, ..options(engine.port()) }).unwrap()
}

async fn set(kept: &Arc<Kept>, quota: Quota, key: &str, value: &[u8]) -> Result<(), NotKept> {
    kept.set_all(NOTES, quota, vec![(key.to_owned(), value.to_vec())]).await
}

/// A connection for the test itself.
fn own(engine: &Engine) -> redis::Connection {
    redis::Client::open(engine.operator_url()).unwrap().get_connection().unwrap()
}

/// The keys of the server that match, sorted.
fn keys(connection: &mut redis::Connection, pattern: &str) -> Vec<String> {
    let mut keys: Vec<String> = redis::cmd("KEYS").arg(pattern).query(connection).unwrap();
    keys.sort();
    keys
}

/// Asserts that the accounts say what the entries of one namespace come to, and that each entry has
/// its place in the order.
fn assert_counted(engine: &Engine) {
    let connection = &mut own(engine);
    let mut bytes = 0;
    let mut count = 0;
    for key in keys(connection, "test:1:kv:*:entries:*") {
        let entries: Vec<(Vec<u8>, Vec<u8>)> = redis::cmd("HGETALL").arg(&key).query(connection).unwrap();
        count += entries.len();
        bytes += entries.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        let ordered: usize = redis::cmd("ZCARD").arg(key.replace("entries", "order")).query(connection).unwrap();
        assert_eq!(ordered, entries.len());
    }
    let mut accounts: Vec<String> = Vec::new();
    for key in keys(connection, "test:1:kv:*:accounts") {
        accounts.extend(redis::cmd("HVALS").arg(key).query::<Vec<String>>(connection).unwrap());
    }
    let expected = if count == 0 { Vec::new() } else { vec![format!("{bytes} {count}")] };
    assert_eq!(accounts, expected);
}

/// Numbers that do not change from run to run (Knuth's generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[test]
fn a_quota_is_one_for_all_replicas() {
    let engine = Engine::start(&[]);
    run(async {
        let replicas = [replica(&engine), replica(&engine), replica(&engine)];
        let ten = Quota { entries: 10, ..ROOMY };
        let tasks: Vec<_> = (0..24)
            .map(|number| {
                let kept = Arc::clone(&replicas[number % 3]);
                tokio::spawn(async move { set(&kept, ten, &format!("k{number}"), b"v").await })
            })
            .collect();
        let mut done = 0;
        for task in tasks {
            match task.await.unwrap() {
                Ok(()) => done += 1,
                Err(refused) => assert_eq!(refused, NotKept::Entries { wanted: 11 }),
            }
        }
        assert_eq!(done, 10);
        assert_eq!(replicas[0].keys_after(NOTES, 0, 100).await.unwrap().len(), 10);
        assert_counted(&engine);
    });
}

#[test]
fn increments_of_all_replicas_are_counted() {
    let engine = Engine::start(&[]);
    run(async {
        let tasks: Vec<_> = (0..6)
            .map(|_| {
                let kept = replica(&engine);
                tokio::spawn(async move {
                    for _ in 0..200 {
                        kept.add(NOTES, ROOMY, "n".to_owned(), 1).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(replica(&engine).get(NOTES, "n", 100).await.unwrap().unwrap(), b"1200");
    });
}

#[test]
fn numbers_are_added_to_the_last_of_64_bits() {
    let engine = Engine::start(&[]);
    run(async {
        let kept = replica(&engine);
        let mut numbers = Numbers(7);
        for round in 0..400 {
            let mut wide = || (numbers.below(1 << 31) << 33 | numbers.below(1 << 33)) >> numbers.below(64);
            let held = wide();
            let delta = wide();
            let text = if round % 2 == 0 { held.to_string() } else { format!("{held:020}") };
            set(&kept, ROOMY, "n", text.as_bytes()).await.unwrap();
            let sum = kept.add(NOTES, ROOMY, "n".to_owned(), delta).await;
            let expected = held.checked_add(delta).ok_or(NotKept::Overflow);
            assert_eq!(sum, expected, "{held} + {delta}");
            let expected = expected.map_or(text, |sum| sum.to_string());
            assert_eq!(kept.get(NOTES, "n", 100).await.unwrap().unwrap(), expected.as_bytes());
        }
        assert_counted(&engine);
    });
}

#[test]
fn accounts_say_what_entries_come_to_after_any_operations() {
    let engine = Engine::start(&[]);
    run(async {
        let kept = replica(&engine);
        let mut numbers = Numbers(3);
        let tight = Quota { bytes: 400, entries: 12, value_bytes: 100, namespaces: 1 };
        let mut done = 0;
        let mut refused = 0;
        for round in 0..1_500 {
            let key = |numbers: &mut Numbers| format!("k{}", numbers.below(30));
            let result = match numbers.below(4) {
                0 => {
                    let keys = (0..numbers.below(5)).map(|_| key(&mut numbers)).collect();
                    kept.delete_all(NOTES, tight, keys).await
                }
                1 => kept.add(NOTES, tight, key(&mut numbers), 1).await.map(drop),
                _ => {
                    let count = numbers.below(6);
                    let pairs = (0..count).map(|_| (key(&mut numbers), vec![b'7'; numbers.below(60) as usize]));
                    kept.set_all(NOTES, tight, pairs.collect()).await
                }
            };
            match result {
                Ok(()) => done += 1,
                Err(NotKept::Bytes { .. } | NotKept::Entries { .. } | NotKept::NoNumber) => refused += 1,
                Err(error) => panic!("round {round}: {error:?}"),
            }
            if round % 50 == 0 {
                assert_counted(&engine);
            }
        }
        assert_counted(&engine);
        assert!(done > 300 && refused > 300, "{done} were done, {refused} were refused");
    });
}

#[test]
fn a_request_that_comes_twice_is_done_once() {
    let engine = Engine::start(&[]);
    let connection = &mut own(&engine);
    let write = Script::new(include_str!("../src/valkey/keyvalue_write.lua"));
    let mut ask = |request: &str, parts: &[&str]| -> Vec<String> {
        let mut script = write.prepare_invoke();
        for key in ["{x}entries", "{x}order", "{x}accounts", "{x}serial", request] {
            script.key(key);
        }
        script.arg(parts[0]).arg("n").arg(1_000).arg(10).arg(10).arg(100).arg(60_000);
        for part in &parts[1..] {
            script.arg(part);
        }
        script.invoke(connection).unwrap()
    };
    for _ in 0..3 {
        assert_eq!(ask("{x}1", &["add", "n", "5"]), ["done", "5"]);
    }
    assert_eq!(ask("{x}2", &["set", "k", "first"]), ["done", ""]);
    assert_eq!(ask("{x}3", &["set", "k", "second"]), ["done", ""]);
    assert_eq!(ask("{x}2", &["set", "k", "first"]), ["done", ""], "the answer to the first comes again");
    assert_eq!(ask("{x}4", &["add", "k", "1"]), ["no_number"], "and changes nothing");
    assert_eq!(ask("{x}5", &["delete", "k"]), ["done", ""]);
    assert_eq!(ask("{x}6", &["set", "k", "third"]), ["done", ""]);
    assert_eq!(ask("{x}5", &["delete", "k"]), ["done", ""]);
    assert_eq!(redis::cmd("HGET").arg("{x}entries").arg("k").query::<String>(connection).unwrap(), "third");
    let known_ms: i64 = redis::cmd("PTTL").arg("{x}6").query(connection).unwrap();
    assert!((1..=60_000).contains(&known_ms), "{known_ms}");
}

#[test]
fn a_full_server_takes_nothing_more_and_gives_back() {
    let engine = Engine::start(&["--maxmemory", "8mb", "--maxmemory-policy", "noeviction"]);
    run(async {
        let kept = replica(&engine);
        let mut stored = 0;
        let full = loop {
            match set(&kept, ROOMY, &format!("k{stored}"), &vec![b'v'; 100_000]).await {
                Ok(()) => stored += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(&full, NotKept::Away(away) if away.internal().contains("OOM")), "{full:?}");
        assert!(stored > 10, "{stored}");
        assert_counted(&engine);
        // For a moment after that nobody asks.
        eventually("it is read", async || kept.exists(NOTES, "k0").await == Ok(true)).await;
        kept.delete_all(NOTES, ROOMY, vec!["k0".to_owned(), "k1".to_owned()]).await.unwrap();
        assert_counted(&engine);
        set(&kept, ROOMY, "k0", b"there is room again").await.unwrap();
    });
}

#[test]
fn a_server_that_is_away_is_said_to_be_and_used_once_it_is_back() {
    let engine = Engine::start(&[]);
    run(async {
        let kept = replica(&engine);
        set(&kept, ROOMY, "k", b"v").await.unwrap();
        engine.pause();
        let began = Instant::now();
        assert!(kept.get(NOTES, "k", 100).await.is_err());
        assert!(matches!(set(&kept, ROOMY, "k", b"w").await, Err(NotKept::Away(_))));
        assert!(began.elapsed() < patience());
        engine.go_on();
        eventually("it goes on", async || kept.get(NOTES, "k", 100).await.is_ok()).await;
        engine.kill();
        assert!(matches!(kept.add(NOTES, ROOMY, "n".to_owned(), 1).await, Err(NotKept::Away(_))));
        engine.start_again();
        eventually("it is back", async || kept.add(NOTES, ROOMY, "n".to_owned(), 1).await.is_ok()).await;
        assert_eq!(kept.get(NOTES, "k", 100).await, Ok(None), "it had nothing on a disk");
    });
}

#[test]
fn what_is_kept_is_there_after_a_restart_where_the_server_writes_a_log() {
    let engine = Engine::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    run(async {
        // A busy disk takes its time.
        let kept = replica_with(&engine, Duration::from_secs(10));
        for number in 1..=50 {
            assert_eq!(kept.add(NOTES, ROOMY, "n".to_owned(), 1).await, Ok(number));
        }
        engine.kill();
        engine.start_again();
        eventually("it is back", async || kept.get(NOTES, "n", 100).await.is_ok()).await;
        assert_eq!(kept.get(NOTES, "n", 100).await.unwrap().unwrap(), b"50");
        assert_counted(&engine);
    });
}

#[test]
fn nothing_that_is_kept_ends_by_itself() {
    let engine = Engine::start(&[]);
    run(async {
        set(&replica(&engine), ROOMY, "k", b"v").await.unwrap();
        let connection = &mut own(&engine);
        for key in keys(connection, "*") {
            let ttl: i64 = redis::cmd("PTTL").arg(&key).query(connection).unwrap();
            assert_eq!(ttl > 0, key.contains(":change:"), "{key}: {ttl}");
        }
    });
}

#[test]
fn short_operations_go_on_beside_the_largest() {
    let engine = Engine::start(&[]);
    run(async {
        // Nothing is late on a busy machine.
        let kept = replica_with(&engine, Duration::from_secs(10));
        set(&kept, ROOMY, "k", b"v").await.unwrap();
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let kept = Arc::clone(&kept);
                let bucket = Bucket { name: ["a", "b", "c", "d", "e", "f", "g", "h"][writer], ..NOTES };
                tokio::spawn(async move {
                    for _ in 0..3 {
                        let pairs = (0..10_000).map(|key| (key.to_string(), vec![b'v'; 100])).collect();
                        kept.set_all(bucket, ROOMY, pairs).await.unwrap();
                    }
                })
            })
            .collect();
        let mut reads = 0_u32;
        while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
            assert_eq!(kept.get(NOTES, "k", 100).await.unwrap().unwrap(), b"v");
            reads += 1;
        }
        for writer in writers {
            writer.await.unwrap();
        }
        assert!(reads >= 24, "{reads} reads while 24 batches were written: each waits for one at the most");
    });
}
