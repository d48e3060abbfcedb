//! Several servers that are one: sentinels that name another main server, and a cluster.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod engine;
mod replica;

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::patience::patience;
use engine::{Access, Cluster, OPERATOR, Watched, eventually};
use replica::{HOUR, MINUTE, NOT_REACHED, WITHIN, behind, of, options, run};
use toolcell_shared::{
    AllowanceName, Arrangement, Begun, Bucket, Bus as _, Changed, Claimed, Creation, Kept, LostTask, NewTask, News,
    Pace, Quota, Request, SharedState, SharedTasks, Shelf, Shelved, Taken, TaskBounds, TaskChange, TaskStatus,
    Tasks as _, Valkey, ValkeyOptions,
};

fn at(options: ValkeyOptions) -> Arc<Valkey> {
    Arc::new(Valkey::new(options).unwrap())
}

/// Waits until each of these replicas gets its answers, and returns how long that took.
async fn all_answer(replicas: &[Arc<Valkey>], names: u32) -> Duration {
    let began = Instant::now();
    eventually("all answer", async || {
        for replica in replicas {
            for name in 0..names {
                if replica.note(&format!("noted {name}"), MINUTE).await.is_err() {
                    return false;
                }
            }
        }
        true
    })
    .await;
    began.elapsed()
}

#[test]
fn sentinels_that_name_another_main_server_are_followed() {
    for is_paused in [false, true] {
        let watched = Watched::start(&[]);
        run(async {
            let replicas = [at(behind(&watched)), at(behind(&watched))];
            let one = [AllowanceName { scope: "tool", pace: Pace::new(1, 60 * MINUTE), callers_max: 1 }];
            assert_eq!(replicas[0].take("ann", &one).await, Ok(Taken::All));
            assert!(replicas[1].claim("ann", "before", MINUTE).await.unwrap().now().is_some());
            // The copy has what it was sent: the server says so itself.
            assert_eq!(watched.main.ask(&["WAIT", "1", "5000"]), ":1");
            if is_paused {
                watched.main.pause()
            } else {
                watched.main.kill()
            }
            assert!(replicas[0].claim("ann", "chain", MINUTE).await.is_err());
            let took = all_answer(&replicas, 1).await;
            println!("another main server after {took:?}, the first was paused: {is_paused}");
            let is_named = async || watched.main_port() == watched.copy.port();
            eventually("the sentinels agree", is_named).await;
            for replica in &replicas {
                assert!(matches!(replica.take("ann", &one).await, Ok(Taken::Refused { .. })), "the rate is kept");
                assert_eq!(
                    replica.claim("ann", "before", MINUTE).await,
                    Ok(Claimed::Before),
                    "what was used stays used"
                );
            }
            assert!(replicas[0].claim("ann", "chain", MINUTE).await.unwrap().now().is_some());
            if is_paused {
                // The old main server still believes that it is one.
                watched.main.go_on();
                assert_eq!(replicas[1].claim("ann", "chain", MINUTE).await, Ok(Claimed::Before));
                let late = at(behind(&watched));
                assert_eq!(
                    late.claim("ann", "chain", MINUTE).await,
                    Ok(Claimed::Before),
                    "its sentinels say who it is"
                );
            }
        });
    }
}

#[test]
fn a_sentinel_that_is_away_or_stands_still_is_not_waited_for() {
    let watched = Watched::start(&[]);
    run(async {
        watched.sentinels[0].pause();
        watched.sentinels[1].kill();
        let began = Instant::now();
        let state = at(ValkeyOptions { within: NOT_REACHED, ..behind(&watched) });
        assert!(state.claim("ann", "chain", MINUTE).await.unwrap().now().is_some());
        assert!(began.elapsed() < NOT_REACHED);
        watched.sentinels[0].go_on();
    });
}

#[test]
fn sentinels_that_know_no_such_server_say_so_to_the_operator() {
    let watched = Watched::start(&[]);
    run(async {
        let main = Arrangement::Sentinels { main: "other".to_owned(), others: Vec::new(), user: None, password: None };
        let state = at(ValkeyOptions { arrangement: main, ..options(watched.sentinels[0].port()) });
        // A busy machine may not answer in time at first.
        eventually("the sentinel answers", async || {
            let away = state.is_noted("what").await.unwrap_err();
            away.internal().contains("no main server of this name")
        })
        .await;
    });
}

#[test]
fn a_main_server_without_its_copies_that_wants_some_is_away() {
    let watched = Watched::start(&["--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"]);
    run(async {
        let state = at(behind(&watched));
        all_answer(std::slice::from_ref(&state), 1).await;
        watched.copy.kill();
        eventually("it refuses", async || state.claim("ann", "chain", MINUTE).await.is_err()).await;
        let away = state.claim("ann", "another", MINUTE).await.unwrap_err();
        let says = ["NOREPLICAS", "a moment ago"].iter().any(|text| away.internal().contains(text));
        assert!(says, "{}", away.internal());
        watched.copy.start_again();
        all_answer(&[state], 1).await;
    });
}

#[test]
fn each_key_is_kept_by_its_node_and_one_node_that_is_away_is_the_only_one() {
    let cluster = Cluster::start(&["--cluster-require-full-coverage", "no", "--cluster-replica-no-failover", "yes"]);
    run(async {
        let replicas = [at(of(&cluster)), at(of(&cluster))];
        for number in 0..60 {
            let name = number.to_string();
            assert!(replicas[number % 2].claim("ann", &name, MINUTE).await.unwrap().now().is_some());
            assert_eq!(replicas[(number + 1) % 2].claim("ann", &name, MINUTE).await, Ok(Claimed::Before));
        }
        let kept = cluster.nodes.each_ref().map(|node| node.ask(&["DBSIZE"]));
        assert!(!kept.contains(&":0".to_owned()), "{kept:?}");
        cluster.nodes[2].kill();
        let began = Instant::now();
        let mut known = 0;
        let mut unknown = 0;
        for number in 0..60 {
            match replicas[0].claim("ann", &number.to_string(), MINUTE).await {
                Ok(claim) => {
                    assert_eq!(claim, Claimed::Before, "{number}");
                    known += 1;
                }
                Err(_) => unknown += 1,
            }
        }
        let lost: u32 = kept[2].trim_start_matches(':').parse().unwrap();
        assert_eq!((known, unknown), (60 - lost, lost), "the other nodes answer");
        assert!(
            began.elapsed() < 10 * WITHIN,
            "the node that is away is not waited for by each: {:?}",
            began.elapsed()
        );
        cluster.nodes[2].start_again();
        all_answer(&replicas, 30).await;
    });
}

#[test]
fn a_copy_that_becomes_a_main_node_of_a_cluster_is_found() {
    for is_paused in [false, true] {
        let cluster = Cluster::start(&[]);
        run(async {
            let replicas = [at(of(&cluster)), at(of(&cluster))];
            for number in 0..30 {
                assert!(replicas[0].claim("ann", &number.to_string(), MINUTE).await.unwrap().now().is_some());
            }
            assert_eq!(cluster.nodes[0].ask(&["WAIT", "1", "5000"]), ":1");
            if is_paused {
                cluster.nodes[0].pause()
            } else {
                cluster.nodes[0].kill()
            }
            let took = all_answer(&replicas, 30).await;
            println!("another main node after {took:?}, the first was paused: {is_paused}");
            for number in 0..30 {
                assert_eq!(
                    replicas[number % 2].claim("ann", &number.to_string(), MINUTE).await,
                    Ok(Claimed::Before),
                    "{number}"
                );
            }
            if is_paused {
                cluster.nodes[0].go_on();
                all_answer(&[at(of(&cluster)), at(of(&cluster))], 30).await;
            }
        });
    }
}

#[test]
fn slots_that_move_are_followed() {
    let cluster = Cluster::start(&[]);
    run(async {
        let one = at(of(&cluster));
        let other = at(of(&cluster));
        let slot = |key: &str| -> usize {
            cluster.nodes[0].ask(&["CLUSTER", "KEYSLOT", key]).trim_start_matches(':').parse().unwrap()
        };
        let rate = [AllowanceName { scope: "tool", pace: Pace::new(3, 60 * MINUTE), callers_max: 1 }];
        assert_eq!(one.take("ann", &rate).await, Ok(Taken::All));
        let [from, key] = cluster
            .nodes
            .iter()
            .enumerate()
            .find_map(|(number, node)| {
                let keys = node.whole_answer(&["KEYS", "*"]);
                keys.lines().nth(2).map(|key| [number.to_string(), key.to_owned()])
            })
            .unwrap();
        let slot = slot(&key);
        let from: usize = from.parse().unwrap();
        let to = &cluster.nodes[(from + 1) % 3];
        let from = &cluster.nodes[from];
        cluster.begin_to_move(slot, from, to);
        // A key that is still there is asked there; one that went ahead is asked where it went.
        assert_eq!(other.take("ann", &rate).await, Ok(Taken::All));
        let port = to.port().to_string();
        let moved = from.ask(&["MIGRATE", "127.0.0.1", &port, &key, "0", "5000", "AUTH2", OPERATOR, "any"]);
        assert_eq!(moved, "+OK");
        assert_eq!(to.ask(&["SCRIPT", "FLUSH"]), "+OK");
        assert_eq!(one.take("ann", &rate).await, Ok(Taken::All));
        assert!(matches!(other.take("ann", &rate).await, Ok(Taken::Refused { .. })));
        cluster.end_move(slot, from, to);
        for replica in [&one, &other, &at(of(&cluster))] {
            assert!(matches!(replica.take("ann", &rate).await, Ok(Taken::Refused { .. })));
        }
        assert_eq!(from.ask(&["EXISTS", &key]).split(' ').next(), Some("-MOVED"));
    });
}

#[test]
fn a_node_of_a_cluster_that_is_taken_for_a_server_says_so_to_the_operator() {
    let cluster = Cluster::start(&[]);
    run(async {
        let state = at(options(cluster.nodes[0].port()));
        let mut said = Vec::new();
        for number in 0..30 {
            said.extend(state.note(&number.to_string(), MINUTE).await.err().map(|away| away.internal().to_owned()));
        }
        assert!(said.len() > 10 && said.iter().all(|text| text.contains("is a node of a cluster")), "{said:?}");
    });
}

/// Every operation under an access list that allows what the page says and no more.
async fn each_operation(options: ValkeyOptions) {
    let user = Some("toolcell".to_owned());
    let password = Some("right".to_owned());
    let options = ValkeyOptions { user, password, ..options };
    let state = at(options.clone());
    each_question(&state).await;
    each_change(&Kept::new(options.clone()).unwrap()).await;
    each_step_of_a_task(&options).await;
    let shelf = Shelf::new(options).unwrap();
    let kept = Shelved { origin: "notes", uri: "a:/x", label: b"label".to_vec(), body: b"body".to_vec() };
    // The second takes the place of the first.
    for _ in 0..2 {
        shelf.keep("ann", "ann", std::slice::from_ref(&kept), MINUTE).await.unwrap();
    }
    assert_eq!(shelf.find("ann", "a:/x").await.unwrap(), Some(b"body".to_vec()));
    assert_eq!(shelf.list("ann", 0, 10).await.unwrap().len(), 1);
    shelf.forget("ann").await.unwrap();
    let mut heard = state.subscribe(&["all"]);
    let mut next = async || tokio::time::timeout(patience(), heard.next()).await.unwrap();
    assert_eq!(next().await, News::Listening);
    state.publish("all", b"news").await.unwrap();
    assert_eq!(next().await, News::Message(b"news".to_vec()));
}

async fn each_question(state: &Valkey) {
    let one = [AllowanceName { scope: "tool", pace: Pace::new(1, HOUR), callers_max: 1 }];
    assert_eq!(state.take("ann", &one).await, Ok(Taken::All));
    let claim = state.claim("ann", "chain", MINUTE).await.unwrap().now().unwrap();
    state.give_back(claim).await.unwrap();
    state.note("what", MINUTE).await.unwrap();
    assert_eq!(state.is_noted("what").await, Ok(true));
    assert_eq!(state.post("set", "entry", MINUTE).await, Ok(true));
    assert_eq!(state.posted("set").await.unwrap().len(), 1);
    state.take_down("set", "entry").await.unwrap();
    let place = state.enter("tool", 1).await.unwrap().unwrap();
    assert!(state.enter("tool", 1).await.unwrap().is_none());
    let given_up = tokio::time::timeout(Duration::from_millis(20), state.wait("tool", 1)).await;
    assert!(given_up.is_err());
    drop(place);
    drop(state.wait("tool", 1).await.unwrap());
    let short = Duration::from_millis(50);
    let request = |name| Request { caller: "ann", name, what: "what" };
    let begin = async |name, time| state.begin(&request(name), time).await.unwrap();
    let Begun::Now(first) = begin("key", MINUTE).await else { panic!("it is new") };
    state.end(first, "answer", MINUTE).await.unwrap();
    assert_eq!(begin("key", MINUTE).await, Begun::Ended("answer".to_owned()));
    let Begun::Now(brief) = begin("brief", short).await else { panic!("it is new") };
    state.end(brief, "answer", short).await.unwrap();
    let is_forgotten = async || matches!(begin("brief", MINUTE).await, Begun::Now(_));
    eventually("it is forgotten", is_forgotten).await;
}

async fn each_step_of_a_task(options: &ValkeyOptions) {
    let bounds = TaskBounds { caller_max: 2, all_max: 2, caller_bytes_max: 1_000, all_bytes_max: 1_000 };
    let lost = LostTask { body: "e{}", message: "lost" };
    let tasks = SharedTasks::new(options.clone(), bounds, lost, &tokio::runtime::Handle::current()).unwrap();
    let one = "1".repeat(32);
    let two = "2".repeat(32);
    for id in [&one, &two] {
        let new = NewTask { id, caller: "ann", ttl: MINUTE, bytes: 1 };
        assert_eq!(tasks.create(&new).await, Ok(Creation::Created));
    }
    let asked = [("a".to_owned(), "{}".to_owned())];
    assert_eq!(tasks.change(&one, TaskChange::Asks(&asked)).await, Ok(Changed::Done));
    assert_eq!(tasks.list("ann", 0, 10).await.unwrap().len(), 2);
    assert_eq!(tasks.answer("ann", &one, &asked).await, Ok(true));
    assert_eq!(tasks.pull(&one).await, Ok(Some(asked.to_vec())));
    let ends = TaskChange::Ends { status: TaskStatus::Completed, body: "r{}", message: "" };
    assert_eq!(tasks.change(&one, ends).await, Ok(Changed::Done));
    assert!(tasks.cancel("ann", &two, "no more").await.unwrap().is_some());
    tasks.forget(&two).await.unwrap();
    tasks.leave().await.unwrap();
    assert_eq!(tasks.find("ann", &one).await.unwrap().unwrap().status, TaskStatus::Completed);
    tasks.forget(&one).await.unwrap();
}

async fn each_change(kept: &Arc<Kept>) {
    let bucket = Bucket { component: "notes", namespace: "", name: "default" };
    let quota = Quota { bytes: 1_000, entries: 10, value_bytes: 100, namespaces: 2 };
    let both = [("a", b"1".to_vec()), ("b", b"2".to_vec())].map(|(key, value)| (key.to_owned(), value));
    kept.set_all(bucket, quota, both.to_vec()).await.unwrap();
    assert_eq!(kept.add(bucket, quota, "a".to_owned(), 2).await.unwrap(), 3);
    assert_eq!(kept.get(bucket, "a", 100).await.unwrap(), Some(b"3".to_vec()));
    assert!(kept.exists(bucket, "b").await.unwrap());
    let keys = ["a", "b", "c"].map(str::to_owned);
    let values = kept.get_all(bucket, &keys, 100).await.unwrap();
    assert_eq!(values, [Some(b"3".to_vec()), Some(b"2".to_vec()), None]);
    assert_eq!(kept.keys_after(bucket, 0, 10).await.unwrap().len(), 2);
    kept.delete_all(bucket, quota, keys.to_vec()).await.unwrap();
    assert!(!kept.exists(bucket, "b").await.unwrap());
}

#[test]
fn an_access_list_need_not_allow_more_than_the_page_says() {
    let access = Access::documented();
    let of_prefix = |rule: &String| match rule.as_str() {
        "~*" => "~test:*".to_owned(),
        "&*" => "&test:*".to_owned(),
        _ => rule.clone(),
    };
    let alone: Vec<String> = access.alone.iter().map(of_prefix).collect();
    let with = |further: &[String]| {
        let beginning = ["ACL", "SETUSER", "toolcell", "on", ">right"].map(str::to_owned);
        [&beginning[..], &alone, further].concat()
    };
    let watched = Watched::start(&[]);
    let cluster = Cluster::start(&[]);
    for (engine, further) in [(&watched.main, &[][..]), (&watched.copy, &[])]
        .into_iter()
        .chain(cluster.nodes.iter().map(|node| (node, &access.further_in_cluster[..])))
    {
        let command = with(further);
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        assert_eq!(engine.ask(&command), "+OK");
    }
    run(async {
        each_operation(ValkeyOptions { copies: 1, ..options(watched.main.port()) }).await;
        assert_eq!(watched.main.ask(&["FLUSHALL"]), "+OK");
        each_operation(behind(&watched)).await;
        each_operation(of(&cluster)).await;
    });
}
