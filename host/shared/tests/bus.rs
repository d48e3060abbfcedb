//! One suite over each implementation of the bus, and what the loss of a server means for it.
#![expect(clippy::unwrap_used, reason = "tests")]

mod engine;
mod replica;

use std::time::Duration;

use engine::{Cluster, Engine, Watched, eventually};
use replica::{behind, each_server, of, options, run};
use toolcell_shared::{Bus, EmbeddedBus, MESSAGE_BYTES_MAX, News, PublishError, Subscription, Valkey, ValkeyOptions};

fn replica(engine: &Engine) -> Valkey {
    Valkey::new(options(engine.port())).unwrap()
}

/// Two replicas of each implementation. Those in memory are one: it has one process.
fn each(test: impl AsyncFn(&dyn Bus, &dyn Bus)) {
    let embedded = EmbeddedBus::default();
    run(test(&embedded, &embedded));
    each_server(async |one, other| test(one, other).await);
}

async fn next(subscription: &mut Subscription) -> News {
    // Another main server takes some seconds, and more on a busy machine.
    tokio::time::timeout(Duration::from_secs(60), subscription.next()).await.unwrap()
}

/// Listens on these channels, once it does. A channel that the replica listened on before may give
/// what was said until then.
async fn listening(bus: &dyn Bus, channels: &[&str]) -> Subscription {
    let mut subscription = bus.subscribe(channels);
    while next(&mut subscription).await != News::Listening {}
    subscription
}

fn message(text: &str) -> News {
    News::Message(text.as_bytes().to_vec())
}

#[test]
fn all_who_listen_get_each_message_once_and_in_order() {
    each(async |one, other| {
        let mut here = listening(one, &["all"]).await;
        let mut there = listening(other, &["all"]).await;
        let mut again = listening(other, &["all"]).await;
        for number in 0..500 {
            one.publish("all", number.to_string().as_bytes()).await.unwrap();
        }
        for subscription in [&mut here, &mut there, &mut again] {
            for number in 0..500 {
                assert_eq!(next(subscription).await, message(&number.to_string()));
            }
        }
    });
}

#[test]
fn a_message_goes_to_its_channel_alone() {
    each(async |one, other| {
        let mut both = listening(one, &["all", "of one"]).await;
        let mut single = listening(other, &["all"]).await;
        other.publish("of one", b"for one").await.unwrap();
        other.publish("of nobody", b"lost").await.unwrap();
        other.publish("all", b"for all").await.unwrap();
        assert_eq!(next(&mut both).await, message("for one"));
        assert_eq!(next(&mut both).await, message("for all"));
        assert_eq!(next(&mut single).await, message("for all"));
    });
}

#[test]
fn any_bytes_arrive_up_to_a_length() {
    each(async |one, other| {
        let mut there = listening(other, &["all"]).await;
        for bytes in [vec![], vec![0, 255, 10, 13], vec![7; MESSAGE_BYTES_MAX]] {
            one.publish("all", &bytes).await.unwrap();
            assert!(next(&mut there).await == News::Message(bytes));
        }
        let long = vec![7; MESSAGE_BYTES_MAX + 1];
        assert_eq!(one.publish("all", &long).await, Err(PublishError::TooLong(long.len())));
    });
}

#[test]
fn one_who_has_left_is_not_waited_for() {
    each(async |one, other| {
        let left = listening(one, &["all"]).await;
        let mut stays = listening(other, &["all"]).await;
        drop(left);
        one.publish("all", b"x").await.unwrap();
        assert_eq!(next(&mut stays).await, message("x"));
        let mut comes = listening(one, &["all", "more"]).await;
        other.publish("more", b"y").await.unwrap();
        // What was on its way to the one who left may reach the one who came since.
        let heard = next(&mut comes).await;
        let heard = if heard == message("x") { next(&mut comes).await } else { heard };
        assert_eq!(heard, message("y"));
    });
}

#[test]
fn who_listens_is_told_of_a_lost_connection_and_hears_again() {
    let engine = Engine::start(&[]);
    run(async {
        let one = replica(&engine);
        let other = replica(&engine);
        let mut there = listening(&other, &["all"]).await;
        engine.kill();
        assert!(matches!(one.publish("all", b"lost").await, Err(PublishError::Away(_))));
        engine.start_again();
        assert_eq!(next(&mut there).await, News::Listening);
        eventually("it publishes", async || one.publish("all", b"x").await.is_ok()).await;
        assert_eq!(next(&mut there).await, message("x"));
    });
}

/// Publishes until somebody there hears it.
async fn is_heard(by: &mut Subscription, one: &Valkey) {
    eventually("it is heard", async || {
        let _ = one.publish("all", b"x").await;
        let heard = async { while by.next().await != message("x") {} };
        tokio::time::timeout(Duration::from_millis(250), heard).await.is_ok()
    })
    .await;
}

#[test]
fn who_listens_hears_again_once_sentinels_name_another_main_server() {
    let watched = Watched::start(&[]);
    run(async {
        let one = Valkey::new(behind(&watched)).unwrap();
        let other = Valkey::new(behind(&watched)).unwrap();
        let mut there = listening(&other, &["all"]).await;
        watched.main.kill();
        assert_eq!(next(&mut there).await, News::Listening);
        is_heard(&mut there, &one).await;
    });
}

#[test]
fn who_listens_at_a_node_of_a_cluster_that_is_gone_hears_at_another() {
    let cluster = Cluster::start(&["--cluster-require-full-coverage", "no"]);
    run(async {
        let replicas = [(); 4].map(|()| Valkey::new(of(&cluster)).unwrap());
        let mut lines = Vec::new();
        for replica in &replicas {
            lines.push(listening(replica, &["all"]).await);
        }
        cluster.nodes[0].kill();
        for line in &mut lines {
            is_heard(line, &replicas[0]).await;
        }
    });
}

#[test]
fn a_server_that_stands_still_is_noticed() {
    let engine = Engine::start(&[]);
    run(async {
        let other = replica(&engine);
        let mut there = listening(&other, &["all"]).await;
        // It is tried every five seconds, for one second. A slow machine is later.
        for seconds in [8, 16, 32] {
            engine.pause();
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            engine.go_on();
            if tokio::time::timeout(Duration::from_secs(5), there.next()).await == Ok(News::Listening) {
                return;
            }
        }
        panic!("nobody noticed");
    });
}

#[test]
fn who_listens_before_the_server_is_there_hears_once_it_is() {
    let engine = Engine::start(&[]);
    engine.kill();
    run(async {
        let one = replica(&engine);
        let mut here = one.subscribe(&["all"]);
        engine.start_again();
        assert_eq!(next(&mut here).await, News::Listening);
        eventually("it publishes", async || one.publish("all", b"x").await.is_ok()).await;
        assert_eq!(next(&mut here).await, message("x"));
    });
}

#[test]
fn other_prefixes_and_other_writers_are_not_heard_and_one_connection_listens() {
    let engine = Engine::start(&[]);
    run(async {
        let one = replica(&engine);
        let stranger = Valkey::new(ValkeyOptions { prefix: "other".to_owned(), ..options(engine.port()) }).unwrap();
        let mut here = listening(&one, &["all"]).await;
        let _more = listening(&one, &["more"]).await;
        stranger.publish("all", b"of another group").await.unwrap();
        for text in ["", "x", "\u{1}0123456789abcde"] {
            assert!(engine.ask(&["PUBLISH", "test:1:bus:all", text]).starts_with(':'), "{text}");
        }
        one.publish("all", b"own").await.unwrap();
        assert_eq!(next(&mut here).await, message("own"));
        assert_eq!(engine.ask(&["PUBSUB", "NUMSUB", "test:1:bus:all"]), "*2");
        let clients = engine.whole_answer(&["CLIENT", "LIST", "TYPE", "PUBSUB"]);
        assert_eq!(clients.matches("id=").count(), 1, "{clients}");
    });
}
