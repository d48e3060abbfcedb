//! One suite over each implementation of shared state: memory, and a real server; alone, behind
//! sentinels, and as a cluster.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod engine;
mod replica;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::eventually;
use replica::{HOUR, MINUTE, each_server, run};
use toolcell_shared::{
    AllowanceName, Begun, Claimed, Embedded, Pace, Posted, REPLICATED_SET_ENTRIES_MAX, REPLICATED_SET_ENTRY_BYTES_MAX,
    REQUEST_ANSWER_BYTES_MAX, Request, SharedState, Taken,
};

/// Two replicas of each implementation. Those in memory are one: it has one process.
fn each(test: impl AsyncFn(&dyn SharedState, &dyn SharedState)) {
    let embedded = Embedded::default();
    run(test(&embedded, &embedded));
    each_server(async |one, other| test(one, other).await);
}

fn rate(scope: &str, count: u64, per: Duration) -> AllowanceName<'_> {
    AllowanceName { scope, pace: Pace::new(count, per), callers_max: 100 }
}

/// Asserts that the allowance at this place refuses for about this time.
fn assert_refused(taken: Taken, at: usize, about: Duration) {
    let Taken::Refused { place, wait } = taken else { panic!("it was taken") };
    assert_eq!(place, at);
    assert!(wait <= about && wait + Duration::from_secs(5) > about, "{wait:?} is not about {about:?}");
}

#[test]
fn a_rate_is_one_for_all_replicas() {
    each(async |one, other| {
        let five = [rate("tool", 5, HOUR)];
        for number in 0..5 {
            let replica = if number % 2 == 0 { one } else { other };
            assert_eq!(replica.take("ann", &five).await, Ok(Taken::All), "{number}");
        }
        for replica in [one, other] {
            assert_refused(replica.take("ann", &five).await.unwrap(), 0, HOUR / 5);
        }
        assert_eq!(other.take("ben", &five).await, Ok(Taken::All), "another caller");
        assert_eq!(other.take("ann", &[rate("other tool", 5, HOUR)]).await, Ok(Taken::All), "another tool");
    });
}

#[test]
fn a_call_counts_against_all_of_its_allowances_or_none() {
    each(async |one, other| {
        let both = [rate("of the caller", 3, HOUR), rate("of the tool", 2, HOUR)];
        assert_eq!(one.take("ann", &both).await, Ok(Taken::All));
        assert_eq!(other.take("ann", &both).await, Ok(Taken::All));
        for _ in 0..4 {
            assert_refused(one.take("ann", &both).await.unwrap(), 1, HOUR / 2);
        }
        assert_eq!(other.take("ann", &both[..1]).await, Ok(Taken::All), "the refused calls took none of it");
        assert_refused(one.take("ann", &both).await.unwrap(), 0, HOUR / 3);
        assert_eq!(one.take("ann", &[]).await, Ok(Taken::All));
    });
}

#[test]
fn an_allowance_refills() {
    each(async |one, other| {
        let rapid = [rate("tool", 2, Duration::from_millis(200))];
        let began = Instant::now();
        let mut taken = 0_u32;
        while began.elapsed() < Duration::from_secs(1) {
            for replica in [one, other] {
                taken += u32::from(replica.take("ann", &rapid).await == Ok(Taken::All));
            }
        }
        let most = 2 + u32::try_from(began.elapsed().as_millis() / 100).unwrap();
        assert!((3..=most).contains(&taken), "{taken} of {most}");
    });
}

#[test]
fn a_name_is_used_once_anywhere() {
    each(async |one, other| {
        let claim = one.claim("ann", "chain", MINUTE).await.unwrap().now().unwrap();
        assert_eq!(one.claim("ann", "chain", MINUTE).await, Ok(Claimed::Before));
        assert_eq!(other.claim("ann", "chain", MINUTE).await, Ok(Claimed::Before));
        assert!(other.claim("ann", "another chain", MINUTE).await.unwrap().now().is_some());
        one.give_back(claim.clone()).await.unwrap();
        let again = other.claim("ann", "chain", MINUTE).await.unwrap().now().unwrap();
        assert_ne!(again, claim);
        one.give_back(claim).await.unwrap();
        assert_eq!(
            one.claim("ann", "chain", MINUTE).await,
            Ok(Claimed::Before),
            "the first use does not end the second"
        );
    });
}

#[test]
fn of_many_at_once_one_uses_a_name() {
    each(async |one, other| {
        for round in 0..20 {
            let name = format!("chain {round}");
            let claims = (0..24).map(|number| if number % 2 == 0 { one } else { other }.claim("ann", &name, MINUTE));
            let mut used = 0;
            for claim in join_all(claims.collect()).await {
                used += u32::from(claim.unwrap().now().is_some());
            }
            assert_eq!(used, 1, "{name}");
        }
    });
}

fn request<'a>(name: &'a str, what: &'a str) -> Request<'a> {
    Request { caller: "ann", name, what }
}

#[test]
fn a_request_runs_once_and_its_answer_is_kept_for_a_time() {
    each(async |one, other| {
        let begin = async |replica: &dyn SharedState, what| replica.begin(&request("key", what), MINUTE).await.unwrap();
        let Begun::Now(first) = begin(one, "add 1").await else { panic!("it is new") };
        for replica in [one, other] {
            assert_eq!(begin(replica, "add 1").await, Begun::Runs);
            assert_eq!(begin(replica, "add 2").await, Begun::Other);
        }
        let of_other = Request { caller: "ben", ..request("key", "add 2") };
        assert!(matches!(other.begin(&of_other, MINUTE).await, Ok(Begun::Now(_))), "another caller's key");
        one.end(first.clone(), "", MINUTE).await.unwrap();
        let Begun::Now(again) = begin(other, "add 2").await else { panic!("it began not") };
        one.end(first, "late", MINUTE).await.unwrap();
        assert_eq!(begin(one, "add 2").await, Begun::Runs, "who began it first ends it no more");
        let answer = "{\"é\": \"x\"}\n".repeat(10_000);
        other.end(again, &answer, MINUTE).await.unwrap();
        assert_eq!(begin(one, "add 2").await, Begun::Ended(answer));
        assert_eq!(begin(one, "add 1").await, Begun::Other);
        let short = Duration::from_millis(50);
        assert!(matches!(one.begin(&request("short", ""), short).await, Ok(Begun::Now(_))));
        let begins = async || matches!(other.begin(&request("short", ""), MINUTE).await, Ok(Begun::Now(_)));
        eventually("one that never ended begins again", begins).await;
    });
}

#[test]
fn so_many_requests_of_a_caller_are_known_and_so_many_bytes_of_answers() {
    each(async |one, other| {
        let short = Duration::from_secs(2);
        let mut numbers = 0..;
        let mut begin = async |replica: &dyn SharedState, time| {
            let name = numbers.next().map(|number: u32| number.to_string()).unwrap();
            replica.begin(&request(&name, ""), time).await.unwrap()
        };
        let answer = "x".repeat(REQUEST_ANSWER_BYTES_MAX);
        let began = Instant::now();
        let mut kept = 0;
        while let Begun::Now(claim) = begin(one, short).await {
            one.end(claim, &answer, short).await.unwrap();
            kept += 1;
        }
        // Where that took longer, the first of them are forgotten by now.
        assert!(kept == 64 || kept > 64 && began.elapsed() > short, "{kept} are kept");
        if began.elapsed() < short {
            assert_eq!(begin(other, MINUTE).await, Begun::NoRoom);
        }
        let mut begun = Vec::new();
        eventually("answers are forgotten, and then there is room for requests", async || {
            while let Begun::Now(claim) = begin(one, MINUTE).await {
                begun.push(claim);
            }
            begun.len() == 4_096
        })
        .await;
        assert_eq!(begin(one, MINUTE).await, Begun::NoRoom);
        let of_other = Request { caller: "ben", ..request("0", "") };
        assert!(matches!(other.begin(&of_other, MINUTE).await, Ok(Begun::Now(_))), "another caller has room");
        one.end(begun.remove(0), "", MINUTE).await.unwrap();
        assert!(matches!(begin(other, MINUTE).await, Begun::Now(_)));
    });
}

#[test]
fn calls_that_wait_for_a_place_get_it_in_their_order() {
    each_server(async |one, _| {
        let place = one.enter("tool", 1).await.unwrap().unwrap();
        let order = Mutex::new(Vec::new());
        let waits = (0..10).map(|number| {
            let order = &order;
            async move {
                let place = one.wait("tool", 1).await.unwrap();
                order.lock().unwrap().push(number);
                assert!(one.enter("tool", 1).await.unwrap().is_none(), "it is taken");
                drop(place);
            }
        });
        let given_up = async {
            // It joins the line and leaves it.
            let waited = tokio::time::timeout(Duration::from_millis(20), one.wait("tool", 1)).await;
            assert!(waited.is_err());
            assert!(one.enter("tool", 1).await.unwrap().is_none(), "others wait");
            drop(place);
        };
        tokio::join!(join_all(waits.collect()), given_up);
        assert_eq!(*order.lock().unwrap(), (0..10).collect::<Vec<_>>());
        eventually("it is left", async || one.enter("tool", 1).await.unwrap().is_some()).await;
    });
}

#[test]
fn replicas_take_turns_for_places_however_busy_they_are() {
    each_server(async |one, other| {
        let until = Instant::now() + Duration::from_secs(3);
        let taken = [AtomicU32::new(0), AtomicU32::new(0)];
        let longest_ms = AtomicU64::new(0);
        // Four calls of one replica are always there, and one at a time of the other.
        let calls = [one, one, one, one, other].map(|replica| {
            let count = &taken[usize::from(std::ptr::addr_eq(replica, other))];
            let longest = &longest_ms;
            async move {
                while Instant::now() < until {
                    let began = Instant::now();
                    let place = match replica.enter("tool", 2).await.unwrap() {
                        Some(place) => place,
                        None => replica.wait("tool", 2).await.unwrap(),
                    };
                    longest.fetch_max(u64::try_from(began.elapsed().as_millis()).unwrap(), Ordering::Relaxed);
                    count.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    drop(place);
                }
            }
        });
        join_all(calls.into_iter().collect()).await;
        let [of_one, of_other] = taken.map(AtomicU32::into_inner);
        assert!(of_one > 20 && of_other > 5, "{of_one} and {of_other}");
        let longest_ms = longest_ms.into_inner();
        assert!(longest_ms < 2_000, "{longest_ms}");
    });
}

#[test]
fn a_replica_that_waited_and_is_gone_holds_nobody_up_for_long() {
    each_server(async |one, other| {
        let place = one.enter("tool", 1).await.unwrap().unwrap();
        // Its line ends with the call, and it says so.
        assert!(tokio::time::timeout(Duration::from_millis(50), other.wait("tool", 1)).await.is_err());
        drop(place);
        eventually("nobody waits", async || one.enter("tool", 1).await.unwrap().is_some()).await;
    });
}

#[test]
fn a_use_and_a_note_end_with_their_time() {
    each(async |one, other| {
        let short = Duration::from_millis(50);
        assert!(one.claim("ann", "chain", short).await.unwrap().now().is_some());
        eventually("the use ends", async || other.claim("ann", "chain", MINUTE).await.unwrap().now().is_some()).await;
        one.note("what", short).await.unwrap();
        eventually("the note ends", async || !other.is_noted("what").await.unwrap()).await;
    });
}

#[test]
fn a_note_is_read_anywhere() {
    each(async |one, other| {
        assert_eq!(other.is_noted("what").await, Ok(false));
        one.note("what", MINUTE).await.unwrap();
        assert_eq!(other.is_noted("what").await, Ok(true));
        assert!(one.claim("ann", "what", MINUTE).await.unwrap().now().is_some(), "a note claims nothing");
        let long = "x".repeat(1_000_000);
        let odd = "a\nb\0 {c}é";
        for name in [long.as_str(), odd, ""] {
            assert_eq!(one.is_noted(name).await, Ok(false));
            one.note(name, MINUTE).await.unwrap();
            assert_eq!(other.is_noted(name).await, Ok(true));
        }
    });
}

#[test]
fn what_is_posted_is_read_anywhere_until_it_ends_or_is_taken_down() {
    each(async |one, other| {
        assert_eq!(other.posted("set").await, Ok(Vec::new()));
        let began = Instant::now();
        let short = Duration::from_secs(2);
        assert_eq!(one.post("set", "short", short).await, Ok(true));
        assert_eq!(one.post("set", "long", short).await, Ok(true));
        assert_eq!(other.post("set", "long", MINUTE).await, Ok(true), "the longer time counts");
        assert_eq!(other.post("set", "long", short).await, Ok(true), "the longer time counts");
        assert_eq!(one.post("set", "gone", HOUR).await, Ok(true));
        assert_eq!(one.post("another set", "other", MINUTE).await, Ok(true));
        let entries = async |replica: &dyn SharedState| {
            let mut posted = replica.posted("set").await.unwrap();
            posted.sort_by(|one, other| one.entry.cmp(&other.entry));
            posted
        };
        let names = |posted: &[Posted]| posted.iter().map(|posted| posted.entry.clone()).collect::<Vec<_>>();
        let posted = entries(other).await;
        let is_there = |name: &&str| *name != "short" || began.elapsed() < short;
        let expected: Vec<&str> = ["gone", "long", "short"].into_iter().filter(is_there).collect();
        assert!(names(&posted) == ["gone", "long", "short"] || names(&posted) == expected, "{posted:?}");
        other.take_down("set", "gone").await.unwrap();
        other.take_down("set", "never there").await.unwrap();
        eventually("the short one ends", async || names(&entries(one).await) == ["long"]).await;
        let left = entries(one).await[0].left;
        assert!(left > MINUTE - Duration::from_secs(20) && left <= MINUTE, "{left:?}");
        let longest = "x".repeat(REPLICATED_SET_ENTRY_BYTES_MAX);
        assert_eq!(one.post("set", &longest, MINUTE).await, Ok(true));
        assert_eq!(one.post("set", &format!("{longest}x"), MINUTE).await, Ok(false), "too long");
    });
}

#[test]
fn a_set_has_so_many_entries_and_those_that_end_make_room() {
    each(async |one, other| {
        let short = Duration::from_millis(100);
        assert_eq!(one.post("set", "short", HOUR).await, Ok(true));
        one.take_down("set", "short").await.unwrap();
        for number in 0..REPLICATED_SET_ENTRIES_MAX - 1 {
            assert_eq!(one.post("set", &number.to_string(), HOUR).await, Ok(true));
        }
        assert_eq!(one.post("set", "short", short).await, Ok(true));
        let began = Instant::now();
        assert!(!other.post("set", "another", HOUR).await.unwrap() || began.elapsed() > short);
        eventually("one makes room", async || other.post("set", "another", HOUR).await.unwrap()).await;
        assert_eq!(other.post("set", "one more", HOUR).await, Ok(false));
        assert_eq!(other.post("set", "7", HOUR).await, Ok(true), "one that is there needs no room");
        assert_eq!(one.posted("set").await.unwrap().len(), REPLICATED_SET_ENTRIES_MAX);
    });
}

/// Runs these in turns, as they become ready.
async fn join_all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in futures.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(value) = future.as_mut().poll(context) {
                *done = Some(value);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
