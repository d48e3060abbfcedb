//! Resources that tools embedded, which any replica lists and reads: bounded for each origin, each
//! caller and in all, and forgotten with their time.
#![expect(clippy::unwrap_used, reason = "tests")]

mod engine;
mod replica;

use std::time::Duration;

use engine::{Cluster, Engine, eventually};
use replica::{MINUTE, of, options, run};
use toolcell_shared::{Shelf, Shelved, ValkeyOptions};

/// Two replicas at a server, and at a cluster.
fn each(test: impl AsyncFn(&Shelf, &Shelf)) {
    let engine = Engine::start(&[]);
    let cluster = Cluster::start(&[]);
    for options in [options(engine.port()), of(&cluster)] {
        let options = ValkeyOptions { within: Duration::from_secs(5), ..options };
        run(async {
            let replicas = [(); 2].map(|()| Shelf::new(options.clone()).unwrap());
            test(&replicas[0], &replicas[1]).await;
        });
    }
}

#[derive(Clone, Copy)]
struct Holder<'a> {
    caller: &'a str,
    session: &'a str,
}

const ANN: Holder<'_> = Holder { caller: "ann", session: "session 1" };
const ANN_ELSEWHERE: Holder<'_> = Holder { caller: "ann", session: "session 2" };
const BOB: Holder<'_> = Holder { caller: "bob", session: "session 3" };

async fn keep(shelf: &Shelf, of: Holder<'_>, origin: &str, uri: &str, body: &[u8]) {
    let label = format!("label of {uri}");
    shelf
        .keep(of.caller, of.session, &[Shelved { origin, uri, label: label.into_bytes(), body: body.to_vec() }], MINUTE)
        .await
        .unwrap();
}

async fn addresses(shelf: &Shelf, holder: &str) -> Vec<String> {
    let labels = shelf.list(holder, 0, 10_000).await.unwrap();
    assert!(labels.is_sorted_by_key(|(number, _)| *number));
    labels.into_iter().map(|(_, label)| String::from_utf8(label).unwrap().replace("label of ", "")).collect()
}

#[test]
fn any_replica_lists_and_reads_what_another_kept() {
    each(async |one, other| {
        assert_eq!(other.find(ANN.session, "a:/x").await, Ok(None));
        let both = ["a:/x", "a:/y"].map(|uri| Shelved {
            origin: "notes",
            uri,
            label: b"label of it".to_vec(),
            body: b"old".to_vec(),
        });
        one.keep(ANN.caller, ANN.session, &both, MINUTE).await.unwrap();
        keep(one, BOB, "notes", "a:/x", b"his").await;
        keep(other, ANN, "notes", "a:/x", b"new\0\xff").await;
        assert_eq!(one.find(ANN.session, "a:/x").await, Ok(Some(b"new\0\xff".to_vec())));
        assert_eq!(other.find(BOB.session, "a:/x").await, Ok(Some(b"his".to_vec())));
        assert_eq!(one.find(BOB.session, "a:/y").await, Ok(None));
        let listed = other.list(ANN.session, 0, 10).await.unwrap();
        assert_eq!(
            listed.iter().map(|(_, label)| label.as_slice()).collect::<Vec<_>>(),
            [&b"label of it"[..], b"label of a:/x"]
        );
        assert_eq!(other.list(ANN.session, listed[0].0, 10).await.unwrap(), listed[1..]);
        assert_eq!(other.list(ANN.session, 0, 1).await.unwrap(), listed[..1]);
        other.forget(ANN.session).await.unwrap();
        assert_eq!(one.find(ANN.session, "a:/x").await, Ok(None));
        assert_eq!(addresses(one, ANN.session).await, [""; 0]);
        assert_eq!(addresses(one, BOB.session).await, ["a:/x"]);
    });
}

#[test]
fn an_address_of_two_origins_is_neithers_until_one_is_gone() {
    each(async |one, other| {
        keep(one, ANN, "notes", "a:/x", b"true").await;
        keep(one, ANN, "forger", "a:/y", b"y").await;
        keep(other, BOB, "forger", "a:/x", b"another's").await;
        assert_eq!(other.find(ANN.session, "a:/x").await, Ok(Some(b"true".to_vec())));
        keep(other, ANN, "forger", "a:/x", b"forged").await;
        assert_eq!(one.find(ANN.session, "a:/x").await, Ok(None));
        assert_eq!(addresses(one, ANN.session).await, ["a:/y"]);
        // Once the forger's own make room, the address means one thing again.
        for number in 0..300 {
            keep(one, ANN, "forger", &format!("b:/{number}"), b"").await;
        }
        assert_eq!(other.find(ANN.session, "a:/x").await, Ok(Some(b"true".to_vec())));
        let listed = addresses(one, ANN.session).await;
        assert_eq!((listed.len(), listed[0].as_str(), listed[1].as_str()), (257, "a:/x", "b:/44"));
    });
}

#[test]
fn one_caller_has_so_many_bytes_whatever_its_sessions_and_origins() {
    each(async |one, other| {
        keep(one, BOB, "notes", "a:/his", b"his").await;
        let megabyte = vec![b'x'; 1 << 20];
        for number in 0..40 {
            let holder = if number % 2 == 0 { ANN } else { ANN_ELSEWHERE };
            let origin = format!("origin {}", number % 4);
            keep(one, holder, &origin, &format!("a:/{number}"), &megabyte).await;
        }
        let own = addresses(other, ANN.session).await.len() + addresses(other, ANN_ELSEWHERE.session).await.len();
        assert_eq!(own, 15, "16 MiB, with what each takes besides");
        keep(one, ANN, "notes", "a:/too large", &vec![b'x'; 9 << 20]).await;
        assert_eq!(other.find(ANN.session, "a:/too large").await, Ok(None));
        assert_eq!(addresses(other, ANN.session).await.last().map(String::as_str), Some("a:/38"));
        assert_eq!(other.find(BOB.session, "a:/his").await, Ok(Some(b"his".to_vec())), "others keep theirs");
    });
}

#[test]
fn all_callers_together_have_so_many_and_accounts_add_up() {
    let engine = Engine::start(&[]);
    run(async {
        let shelf = Shelf::new(ValkeyOptions { within: Duration::from_secs(10), ..options(engine.port()) }).unwrap();
        let body = vec![b'x'; 4 << 20];
        for number in 0..80 {
            let caller = number.to_string();
            let uri = format!("a:/{number}");
            keep(&shelf, Holder { caller: &caller, session: &caller }, "notes", &uri, &body).await;
        }
        let memory = engine.whole_answer(&["INFO", "memory"]);
        let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
        // Allocations of the server are up to a quarter larger.
        assert!(used.parse::<u64>().unwrap() < 350 << 20, "{used}");
        assert_eq!(shelf.find("0", "a:/0").await, Ok(None), "the oldest made room");
        assert_eq!(shelf.find("79", "a:/79").await, Ok(Some(body)));
        for number in 0..80 {
            shelf.forget(&number.to_string()).await.unwrap();
        }
        keep(&shelf, ANN, "notes", "a:/last", b"x").await;
        let left = engine.whole_answer(&["GET", "test:1:res:{all}:bytes:all"]);
        assert_eq!(left.lines().nth(1), Some("1041"), "the last one alone: {left}");
        let keys = engine.whole_answer(&["KEYS", "*"]);
        assert!(!keys.contains("ann") && !keys.contains("a:/"), "{keys}");
        for key in keys.lines().filter(|line| line.starts_with("test:")) {
            let left = engine.ask(&["PTTL", key]);
            assert!(left.trim_start_matches(':').parse::<i64>().unwrap() > 0, "{key} ends: {left}");
        }
    });
}

#[test]
fn they_are_forgotten_with_their_time() {
    each(async |one, other| {
        let short = Duration::from_millis(300);
        let kept = Shelved { origin: "notes", uri: "a:/x", label: b"label of a:/x".to_vec(), body: b"x".to_vec() };
        one.keep(ANN.caller, ANN.session, &[kept], short).await.unwrap();
        assert_eq!(other.find(ANN.session, "a:/x").await, Ok(Some(b"x".to_vec())));
        eventually("it ends", async || other.find(ANN.session, "a:/x").await.unwrap().is_none()).await;
        assert_eq!(addresses(other, ANN.session).await, [""; 0]);
        keep(one, ANN, "other", "a:/x", b"another's").await;
        assert_eq!(other.find(ANN.session, "a:/x").await, Ok(Some(b"another's".to_vec())), "the first counts no more");
    });
}
