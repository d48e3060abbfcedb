//! Writes that wait for copies of the server: done where the copies have them, an error where they
//! do not, and nobody else waits.
#![expect(clippy::unwrap_used, reason = "tests")]

mod engine;
mod replica;

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::patience::patience;
use engine::{Cluster, Engine, Watched, eventually};
use replica::{MINUTE, WITHIN, behind, of, options, run};
use toolcell_shared::{
    AllowanceName, Begun, Bucket, Claimed, Kept, NotKept, Pace, Quota, Request, SharedState, Taken, Valkey,
    ValkeyOptions,
};

const QUOTA: Quota = Quota { bytes: 10 << 20, entries: 1_000, value_bytes: 5 << 20, namespaces: 2 };

fn with_copy(options: ValkeyOptions) -> ValkeyOptions {
    ValkeyOptions { copies: 1, ..options }
}

/// A server, and a copy of it that has its state.
fn copied() -> [Engine; 2] {
    let main = Engine::start(&[]);
    let copy = Engine::start(&["--replicaof", "127.0.0.1", &main.port().to_string()]);
    let until = Instant::now() + patience();
    while main.ask(&["WAIT", "1", "1000"]) != ":1" || main.ask(&["INCR", "warm"]).starts_with('-') {
        assert!(Instant::now() < until, "the copy does not follow");
    }
    [main, copy]
}

fn bucket() -> Bucket<'static> {
    Bucket { component: "notes", namespace: "", name: "default" }
}

/// Every write that a caller relies on. Returns those that succeeded.
async fn writes(state: &Valkey, kept: &Arc<Kept>, name: &str) -> Vec<&'static str> {
    let mut done = Vec::new();
    let mut note = |what, went| done.extend(Some(what).filter(|_| went));
    let request = Request { caller: "ann", name, what: "what" };
    let begun = state.begin(&request, MINUTE).await;
    note("begin", begun.is_ok());
    if let Ok(Begun::Now(request)) = begun {
        note("end", state.end(request, "answer", MINUTE).await.is_ok());
    }
    note("claim", state.claim("ann", name, MINUTE).await.is_ok());
    note("note", state.note(name, MINUTE).await.is_ok());
    note("post", state.post("set", name, MINUTE).await.is_ok());
    note("take down", state.take_down("set", name).await.is_ok());
    let pair = |bytes| vec![(name.to_owned(), vec![b'1'; bytes])];
    note("set", kept.set_all(bucket(), QUOTA, pair(1)).await.is_ok());
    note("add", kept.add(bucket(), QUOTA, name.to_owned(), 1).await.is_ok());
    note("large", kept.set_all(bucket(), QUOTA, pair(2 << 20)).await.is_ok());
    note("delete", kept.delete_all(bucket(), QUOTA, vec![name.to_owned()]).await.is_ok());
    done
}

const ALL: [&str; 10] = ["begin", "end", "claim", "note", "post", "take down", "set", "add", "large", "delete"];

#[test]
fn a_write_is_done_once_copies_have_it_and_may_have_been_done_where_they_do_not() {
    let [main, copy] = copied();
    run(async {
        // Nothing is late on a busy machine.
        let within = 4 * WITHIN;
        let options = || ValkeyOptions { within, ..with_copy(options(main.port())) };
        let state = Valkey::new(options()).unwrap();
        let kept = Kept::new(options()).unwrap();
        assert_eq!(writes(&state, &kept, "one").await, ALL);
        for told in ["test:1:used:", "test:1:noted:", "test:1:kv:"] {
            let keys = copy.whole_answer(&["KEYS", &format!("{told}*")]);
            assert_ne!(keys.lines().next(), Some("*0"), "{told}: the copy has it");
        }
        copy.pause();
        let began = Instant::now();
        let away = state.claim("ann", "two", MINUTE).await.unwrap_err();
        assert!(away.internal().ends_with("too few copies have it in time - Client: 0 of 1"), "{}", away.internal());
        assert!(began.elapsed() >= within / 3 && began.elapsed() < within, "{:?}", began.elapsed());
        assert_eq!(writes(&state, &kept, "three").await, [""; 0]);
        let refused = kept.set_all(bucket(), QUOTA, vec![("four".to_owned(), Vec::new())]).await;
        assert!(matches!(refused, Err(NotKept::Away(_))), "{refused:?}");
        // It was done all the same.
        assert_eq!(kept.get(bucket(), "four", 10).await.unwrap(), Some(Vec::new()));
        copy.go_on();
        eventually("the copy follows", async || state.note("five", MINUTE).await.is_ok()).await;
        assert_eq!(
            state.claim("ann", "two", MINUTE).await,
            Ok(Claimed::Before),
            "it was used, though nobody was told so"
        );
        assert_eq!(writes(&state, &kept, "six").await, ALL);
    });
}

#[test]
fn what_nobody_is_told_of_waits_for_no_copy() {
    let [main, copy] = copied();
    run(async {
        let state = Arc::new(Valkey::new(with_copy(options(main.port()))).unwrap());
        let kept = Kept::new(with_copy(options(main.port()))).unwrap();
        eventually("the copy follows", async || writes(&state, &kept, "before").await == ALL).await;
        copy.pause();
        // Many writes wait all the time.
        let waiting: Vec<_> = (0..8)
            .map(|number| {
                let state = Arc::clone(&state);
                tokio::spawn(async move {
                    for round in 0..4 {
                        let _ = state.note(&format!("{number} {round}"), MINUTE).await;
                    }
                })
            })
            .collect();
        let often = [AllowanceName { scope: "tool", pace: Pace::new(1_000_000, MINUTE), callers_max: 1 }];
        let began = Instant::now();
        for _ in 0..100 {
            assert_eq!(state.take("ann", &often).await, Ok(Taken::All));
            assert_eq!(state.is_noted("before").await, Ok(true));
            drop(state.enter("tool", 10).await.unwrap().unwrap());
            assert_eq!(kept.exists(bucket(), "before").await, Ok(false));
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert!(!waiting.iter().all(tokio::task::JoinHandle::is_finished) || began.elapsed() > WITHIN);
        copy.go_on();
        for task in waiting {
            task.await.unwrap();
        }
    });
}

#[test]
fn what_was_told_is_known_after_a_failover() {
    let watched = Watched::start(&[]);
    run(async {
        let state = Valkey::new(with_copy(behind(&watched))).unwrap();
        let mut told = Vec::new();
        for number in 0..200 {
            if number == 100 {
                watched.main.kill();
            }
            if let Ok(Claimed::Now(_)) = state.claim("ann", &number.to_string(), MINUTE).await {
                told.push(number);
            }
        }
        assert!(told.len() >= 50, "{told:?}");
        let unwaited = Valkey::new(behind(&watched)).unwrap();
        eventually("another main server", async || unwaited.note("again", MINUTE).await.is_ok()).await;
        for number in told {
            assert_eq!(
                unwaited.claim("ann", &number.to_string(), MINUTE).await,
                Ok(Claimed::Before),
                "{number} was used"
            );
        }
        // The server that is left has no copy.
        assert!(state.claim("ann", "last", MINUTE).await.is_err());
    });
}

#[test]
fn of_a_cluster_the_node_that_has_a_copy_takes_writes() {
    let cluster = Cluster::start(&[]);
    run(async {
        let state = Valkey::new(with_copy(of(&cluster))).unwrap();
        let mut told = 0;
        let mut behind = 0;
        for number in 0..30 {
            match state.claim("ann", &number.to_string(), MINUTE).await {
                Ok(claim) => {
                    assert!(claim.now().is_some(), "{number}");
                    told += 1;
                }
                Err(away) => {
                    assert!(away.internal().contains("too few copies"), "{}", away.internal());
                    behind += 1;
                }
            }
        }
        // One of the three nodes has a copy.
        assert!(told > 2 && behind > 8, "{told} and {behind}");
    });
}
