//! A real server: its clock, its loss, its pause, its passwords and certificates.
#![expect(clippy::unwrap_used, reason = "tests")]

mod engine;
mod replica;

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::patience::patience;
use engine::{Cluster, Engine, MAIN, Watched, eventually};
use redis::Script;
use replica::{HOUR, MINUTE, NOT_REACHED, WITHIN, options, run};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use toolcell_shared::{
    Allowance, AllowanceName, Arrangement, Claimed, Pace, SharedState, Taken, Valkey, ValkeyOptions,
};

fn replica(engine: &Engine) -> Arc<Valkey> {
    Arc::new(Valkey::new(options(engine.port())).unwrap())
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
fn the_script_decides_as_the_allowance_in_memory() {
    let engine = Engine::start(&[]);
    let clock = "redis.call('TIME')";
    let text = include_str!("../src/valkey/rates.lua");
    assert_eq!(text.matches(clock).count(), 1);
    let script = Script::new(&text.replace(clock, "{ARGV[3], ARGV[4]}"));
    let mut connection = redis::Client::open(("127.0.0.1", engine.port())).unwrap().get_connection().unwrap();
    let mut numbers = Numbers(1);
    let mut taken = 0;
    let mut refused = 0;
    for round in 0..60 {
        let per = [1, 60, 3_600][usize::try_from(numbers.below(3)).unwrap()];
        let most = [5, 1_000, 1_000_000][usize::try_from(numbers.below(3)).unwrap()];
        let count = 1 + numbers.below(most);
        let per = Duration::from_secs(per);
        let mut allowance = Allowance::new(Pace::new(count, per));
        let interval = u64::try_from((per / u32::try_from(count).unwrap()).as_nanos()).unwrap();
        let start = Instant::now();
        let mut now_us = 0;
        for step in 0..50 {
            now_us += numbers.below(4) * numbers.below(interval / 500 + 2);
            let since_1970_us = 1_800_000_000_999_000 + now_us;
            let (place, wait_ns): (u64, u64) = script
                .key(format!("{{round}} {round}"))
                .arg(interval)
                .arg(interval * (count - 1))
                .arg(since_1970_us / 1_000_000)
                .arg(since_1970_us % 1_000_000)
                .invoke(&mut connection)
                .unwrap();
            let expected = allowance.take(start + Duration::from_micros(now_us));
            let answer = if place == 0 { Ok(()) } else { Err(Duration::from_nanos(wait_ns)) };
            assert_eq!(answer, expected, "{count} in {per:?}, step {step}");
            taken += u32::from(answer.is_ok());
            refused += u32::from(answer.is_err());
        }
    }
    assert!(taken > 500 && refused > 100, "{taken} taken, {refused} refused");
}

#[test]
fn what_is_kept_ends_by_itself() {
    let engine = Engine::start(&[]);
    run(async {
        let state = replica(&engine);
        state
            .take("ann", &[AllowanceName { scope: "tool", pace: Pace::new(2, MINUTE), callers_max: 1 }])
            .await
            .unwrap();
        state.claim("ann", "chain", MINUTE).await.unwrap().now().unwrap();
        state.note("what", MINUTE).await.unwrap();
        assert_eq!(engine.ask(&["DBSIZE"]), ":3");
        let without_end = "return #redis.pcall('KEYS', '*') - #redis.pcall('KEYS', 'test:1:*')";
        assert_eq!(engine.ask(&["EVAL", without_end, "0"]), ":0", "each key begins with the prefix");
        let soon = "local n = 0 for _, key in ipairs(redis.call('KEYS', '*')) do \
                    local ttl = redis.call('PTTL', key) if ttl > 0 and ttl <= 60001 then n = n + 1 end end return n";
        assert_eq!(engine.ask(&["EVAL", soon, "0"]), ":3", "each key has its time");
    });
}

#[test]
fn so_many_places_are_taken_over_all_replicas_and_come_free_when_they_are_left() {
    let engine = Engine::start(&[]);
    run(async {
        let one = replica(&engine);
        let other = replica(&engine);
        let first = one.enter("tool", 2).await.unwrap();
        let second = other.enter("tool", 2).await.unwrap();
        assert!(first.is_some() && second.is_some());
        for replica in [&one, &other] {
            assert!(replica.enter("tool", 2).await.unwrap().is_none());
            assert!(replica.enter("another tool", 2).await.unwrap().is_some());
        }
        drop(first);
        let mut third = None;
        eventually("the place is left", async || {
            third = other.enter("tool", 2).await.unwrap();
            third.is_some()
        })
        .await;
        assert!(one.enter("tool", 2).await.unwrap().is_none(), "it is taken again");
        drop((second, third));
        eventually("all are left", async || engine.ask(&["KEYS", "test:1:run:*"]) == "*0").await;
    });
}

#[test]
fn a_place_to_spare_serves_the_next_call_and_is_given_to_others_soon() {
    let engine = Engine::start(&[]);
    let taken = || engine.ask(&["EVAL", "return #redis.call('KEYS', 'test:1:run:*')", "0"]);
    run(async {
        let one = replica(&engine);
        let other = replica(&engine);
        eventually("it is kept for a moment", async || {
            drop(one.enter("tool", 8).await.unwrap().unwrap());
            taken() == ":1"
        })
        .await;
        assert_eq!(engine.ask(&["CONFIG", "RESETSTAT"]), "+OK");
        for _ in 0..100 {
            drop(one.enter("tool", 8).await.unwrap().unwrap());
        }
        let stats = engine.whole_answer(&["INFO", "commandstats"]);
        let asked = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")?.split(',').next());
        assert!(asked.is_none_or(|asked| asked.parse::<u32>().unwrap() < 50), "{stats}");
        let mut all = Vec::new();
        for _ in 0..8 {
            let place = tokio::time::timeout(patience(), other.wait("tool", 8)).await;
            all.push(place.unwrap().unwrap());
        }
        assert!(one.enter("tool", 8).await.unwrap().is_none(), "it has none any more");
        drop(all);
        eventually("all are left", async || taken() == ":0").await;
    });
}

#[test]
fn a_place_that_is_not_taken_again_comes_free_with_its_time() {
    let engine = Engine::start(&[]);
    let clock = "redis.call('TIME')";
    let text = include_str!("../src/valkey/enter.lua");
    assert_eq!(text.matches(clock).count(), 1);
    let script = Script::new(&text.replace(clock, "{ARGV[6], ARGV[7]}"));
    let mut connection = redis::Client::open(("127.0.0.1", engine.port())).unwrap().get_connection().unwrap();
    let mut ask = |holder: &str, most: u64, replica: &str, at_ms: u64| {
        let s = at_ms / 1_000;
        let us = at_ms % 1_000 * 1_000;
        let mut script = script.key("run");
        script.key("wait").arg(holder).arg(most).arg(10_000).arg(replica).arg(60_000).arg(s).arg(us);
        script.invoke::<i64>(&mut connection).unwrap() >= 0
    };
    assert!(ask("a", 2, "", 1_000) && ask("b", 2, "", 2_000));
    assert!(!ask("c", 2, "", 10_999), "both run");
    assert!(ask("b", 2, "", 10_999), "who has a place keeps it, and for longer");
    assert!(ask("c", 2, "", 11_000), "a was not heard of for ten seconds");
    assert!(!ask("a", 2, "", 20_998));
    assert!(ask("a", 1 << 50, "", 20_998), "a call that runs on has a place, however many do");
    assert!(!ask("d", 2, "", 20_999), "b is gone, c and a run");
    assert!(ask("d", 2, "", 21_000));
    assert!(!ask("e", 2, "first", 21_000) && !ask("f", 2, "second", 21_100) && !ask("e", 2, "first", 21_900));
    assert!(!ask("f", 2, "second", 30_998), "a is gone, and the first replica waits for the place that is free");
    assert!(!ask("g", 2, "", 30_998), "others wait");
    assert!(ask("e", 2, "first", 30_999) && !ask("f", 2, "second", 30_999));
    assert!(!ask("g", 2, "", 31_000), "d is gone, and the second replica waits");
    assert!(ask("g", 3, "", 31_000), "of two places that are free, one is kept for who waits");
    assert!(!ask("h", 1, "", 90_999), "all are gone, and the second replica may still be there");
    assert!(ask("h", 1, "", 91_000), "it has not asked for a minute");
}

/// A version that writes another form would have each caller's rate twice during a roll.
#[test]
fn what_another_version_took_from_a_rate_counts() {
    let engine = Engine::start(&[]);
    let three = [AllowanceName { scope: "tool", pace: Pace::new(3, 3 * HOUR), callers_max: 1 }];
    run(async {
        let state = replica(&engine);
        for (spent_hours, behind, passes) in [(1, "", 2), (2, "", 1), (2, " 9 later", 1), (3, "", 0), (1, "0", 0)] {
            assert_eq!(state.take("ann", &three).await, Ok(Taken::All));
            let keys = engine.whole_answer(&["KEYS", "test:1:rate:*"]);
            let [_, _, key] = keys.lines().collect::<Vec<_>>()[..] else { panic!("{keys:?}") };
            let value = engine.whole_answer(&["GET", key]);
            let value = value.lines().nth(1).unwrap();
            let numbers: Vec<u64> = value.split(' ').map(|number| number.parse().unwrap()).collect();
            let [s, us, 3_600_000_000_000] = numbers.as_slice() else { panic!("{value}") };
            let written = format!("{s} {us} {}{behind}", spent_hours * 3_600_000_000_000_u64);
            assert_eq!(engine.ask(&["SET", key, &written]), "+OK");
            for _ in 0..passes {
                assert_eq!(state.take("ann", &three).await, Ok(Taken::All), "{written}");
            }
            let refused = state.take("ann", &three).await.unwrap();
            assert!(matches!(refused, Taken::Refused { place: 0, .. }), "{written}: {refused:?}");
            assert_eq!(engine.ask(&["DEL", key]), ":1");
        }
    });
}

#[test]
fn a_clock_that_is_set_back_costs_no_more_than_what_was_spent() {
    let engine = Engine::start(&[]);
    let clock = "redis.call('TIME')";
    let script = Script::new(&include_str!("../src/valkey/rates.lua").replace(clock, "{ARGV[3], ARGV[4]}"));
    let mut connection = redis::Client::open(("127.0.0.1", engine.port())).unwrap().get_connection().unwrap();
    // Three calls in a minute.
    let interval = 20_000_000_000_u64;
    let ahead = 40_000_000_000_u64;
    let mut take = |at_ms: u64| {
        let s = at_ms / 1_000;
        let us = at_ms % 1_000 * 1_000;
        let mut script = script.key("rate");
        script.arg(interval).arg(ahead).arg(s).arg(us);
        let (place, wait): (u64, u64) = script.invoke(&mut connection).unwrap();
        if place == 0 { Ok(()) } else { Err(wait / 1_000_000) }
    };
    let begin = 1_800_000_000_000;
    for (at, expected) in
        [(begin, Ok(())), (begin, Ok(())), (begin, Ok(())), (begin, Err(20_000)), (begin + 1_000, Err(19_000))]
    {
        assert_eq!(take(at), expected);
    }
    let back = begin - 600_000;
    assert_eq!(take(back), Err(20_000), "all that was spent is spent still");
    assert_eq!(take(back + 5_000), Err(15_000), "time passes by the clock as it is");
    assert_eq!(take(back + 19_999), Err(1));
    assert_eq!(take(back + 20_000), Ok(()));
    assert_eq!(take(back + 20_000), Err(20_000), "one came back");
    // Again and again, by less than what has passed and by more.
    assert_eq!(take(back + 15_000), Err(20_000));
    assert_eq!(take(back - 1), Err(20_000));
    assert_eq!(take(back + 19_999), Ok(()));
    let ahead_ms = back + 86_400_000;
    for expected in [Ok(()), Ok(()), Ok(()), Err(20_000)] {
        assert_eq!(take(ahead_ms), expected, "a clock that is set forward gives the whole allowance");
    }
    assert_eq!(take(begin), Err(20_000), "nobody is locked out once it is set right");
    assert_eq!(take(begin + 20_000), Ok(()));
}

#[test]
fn places_of_before_a_clock_was_set_back_come_free_in_their_time() {
    let engine = Engine::start(&[]);
    let clock = "redis.call('TIME')";
    let script = Script::new(&include_str!("../src/valkey/enter.lua").replace(clock, "{ARGV[6], ARGV[7]}"));
    let mut connection = redis::Client::open(("127.0.0.1", engine.port())).unwrap().get_connection().unwrap();
    let mut ask = |holder: &str, replica: &str, at_ms: u64| {
        let s = at_ms / 1_000;
        let us = at_ms % 1_000 * 1_000;
        let mut script = script.key("run");
        script.key("wait").arg(holder).arg(2).arg(10_000).arg(replica).arg(60_000).arg(s).arg(us);
        script.invoke::<i64>(&mut connection).unwrap() >= 0
    };
    assert!(ask("a", "", 900_000) && ask("b", "", 900_000) && !ask("c", "first", 900_000));
    assert!(!ask("d", "", 300_000), "both run");
    assert!(!ask("d", "", 309_999));
    assert!(ask("d", "", 310_000), "neither was heard of for ten seconds");
    assert!(ask("e", "", 310_000), "who waited before the change has not asked again");
    assert!(!ask("f", "", 310_000));
}

#[test]
fn scripts_and_keys_that_were_flushed_are_made_again() {
    let engine = Engine::start(&[]);
    run(async {
        let state = replica(&engine);
        let claim = state.claim("ann", "chain", MINUTE).await.unwrap().now().unwrap();
        engine.flush();
        assert!(state.claim("ann", "chain", MINUTE).await.unwrap().now().is_some(), "its use is forgotten");
        assert_eq!(state.give_back(claim).await, Ok(()));
        assert_eq!(state.claim("ann", "chain", MINUTE).await, Ok(Claimed::Before));
    });
}

#[test]
fn a_server_that_is_gone_is_away_and_comes_back_without_anything_else() {
    let engine = Engine::start(&[]);
    run(async {
        let state = Valkey::new(ValkeyOptions { within: NOT_REACHED, ..options(engine.port()) }).unwrap();
        assert_eq!(state.is_noted("what").await, Ok(false));
        engine.kill();
        let began = Instant::now();
        let away = state.is_noted("what").await.unwrap_err();
        assert!(began.elapsed() < 2 * NOT_REACHED);
        assert_eq!(away.to_string(), "the state that replicas share cannot be reached; try again");
        assert!(away.internal().contains(&engine.port().to_string()), "{}", away.internal());
        let began = Instant::now();
        assert!(state.claim("ann", "chain", MINUTE).await.is_err());
        assert!(began.elapsed() < NOT_REACHED, "while it is away, calls do not wait for it each");
        engine.start_again();
        eventually("it answers again", async || state.is_noted("what").await.is_ok()).await;
        assert!(state.claim("ann", "chain", MINUTE).await.unwrap().now().is_some());
    });
}

#[test]
fn a_server_that_is_not_there_yet_is_away_until_it_is() {
    let engine = Engine::start(&[]);
    engine.kill();
    run(async {
        let state = replica(&engine);
        assert!(state.is_noted("what").await.is_err());
        engine.start_again();
        eventually("it answers", async || state.is_noted("what").await.is_ok()).await;
    });
}

#[test]
fn a_server_that_was_started_again_between_two_calls_fails_neither() {
    let engine = Engine::start(&[]);
    run(async {
        let state = replica(&engine);
        for _ in 0..5 {
            assert_eq!(state.is_noted("what").await, Ok(false));
            engine.kill();
            engine.start_again();
        }
    });
}

#[test]
fn a_server_that_does_not_answer_is_away_in_time_and_nothing_is_used_twice() {
    let engine = Engine::start(&[]);
    run(async {
        let one = replica(&engine);
        let other = replica(&engine);
        assert_eq!(one.is_noted("what").await, Ok(false));
        engine.pause();
        let began = Instant::now();
        let unknown = one.claim("ann", "chain", MINUTE).await;
        let waited = began.elapsed();
        engine.go_on();
        assert!(unknown.is_err() && waited >= WITHIN && waited < patience(), "{unknown:?} after {waited:?}");
        eventually("it answers again", async || one.is_noted("what").await.is_ok()).await;
        // The server may have done what nobody waited for. If not, the first of the two does now.
        let first = other.claim("ann", "chain", MINUTE).await.unwrap();
        let second = one.claim("ann", "chain", MINUTE).await.unwrap();
        assert_eq!(second, Claimed::Before, "after {first:?}");
    });
}

#[test]
fn a_wrong_password_is_away_and_says_so_to_the_operator_alone() {
    let engine = Engine::start(&[]);
    assert_eq!(engine.ask(&["ACL", "SETUSER", "default", "resetpass", ">right"]), "+OK");
    run(async {
        for (user, password, answers) in [
            (None, Some("right"), true),
            (Some("default"), Some("right"), true),
            (None, Some("wrong"), false),
            (None, None, false),
            (Some("nobody"), Some("right"), false),
        ] {
            let options = ValkeyOptions {
                user: user.map(str::to_owned),
                password: password.map(str::to_owned),
                ..options(engine.port())
            };
            let state = Valkey::new(options).unwrap();
            let answer = state.is_noted("what").await;
            assert_eq!(answer.is_ok(), answers, "{user:?} {password:?}: {answer:?}");
            assert!(!format!("{state:?}{answer:?}").contains("right"), "{state:?}");
            let began = Instant::now();
            eventually("the pause ends", async || began.elapsed() > Duration::from_millis(250)).await;
            assert_eq!(state.is_noted("what").await.is_ok(), answers);
        }
    });
}

#[test]
fn a_full_server_is_away_for_writes() {
    let engine = Engine::start(&["--maxmemory-policy", "noeviction"]);
    run(async {
        let state = replica(&engine);
        state.note("what", MINUTE).await.unwrap();
        assert_eq!(engine.ask(&["CONFIG", "SET", "maxmemory", "1"]), "+OK");
        let full = state.claim("ann", "chain", MINUTE).await.unwrap_err();
        assert!(full.internal().contains("memory"), "{}", full.internal());
        assert_eq!(engine.ask(&["CONFIG", "SET", "maxmemory", "0"]), "+OK");
        eventually("there is room", async || state.claim("ann", "chain", MINUTE).await.is_ok()).await;
    });
}

/// Speaks TLS with this certificate in front of a server, and returns the port. Valkey is seldom
/// built with TLS for tests.
async fn with_tls(certificate: CertificateDer<'static>, key: Vec<u8>, server: u16) -> u16 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::try_from(key).unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            drop(tokio::spawn(async move {
                // A client that does not trust it, or speaks no TLS, gets no further.
                let Ok(mut client) = acceptor.accept(client).await else { return };
                let mut server = tokio::net::TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }));
        }
    }));
    port
}

#[test]
fn tls_trusts_the_authority_that_is_named_and_no_other() {
    let authority = |name: &str| {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let certificate = params.self_signed(&key).unwrap();
        (certificate.pem(), rcgen::Issuer::new(params, key))
    };
    let (trusted, issuer) = authority("trusted");
    let (other, _) = authority("other");
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().der().clone();
    let engine = Engine::start(&[]);
    let node = Cluster::of_one();
    run(async {
        let tls = async |port| with_tls(certificate.clone(), key.serialize_der(), port).await;
        let port = tls(engine.port()).await;
        // Sentinels and nodes name the port of the server that speaks TLS.
        let sentinel = Watched::sentinel_that_names(port);
        let sentinels =
            Arrangement::Sentinels { main: MAIN.to_owned(), others: Vec::new(), user: None, password: None };
        let of_node = tls(node.port()).await;
        assert_eq!(node.ask(&["CONFIG", "SET", "cluster-announce-port", &of_node.to_string()]), "+OK");
        for (port, arrangement) in [
            (port, Arrangement::Alone),
            (tls(sentinel.port()).await, sentinels),
            (of_node, Arrangement::Cluster { others: Vec::new() }),
        ] {
            let options = || ValkeyOptions { port, arrangement: arrangement.clone(), ..options(engine.port()) };
            for (authority, answers) in [(&trusted, true), (&other, false)] {
                let pem = Some(authority.clone().into_bytes());
                let options = ValkeyOptions { tls: true, authorities_pem: pem, ..options() };
                let answer = Valkey::new(options).unwrap().is_noted("what").await;
                assert_eq!(answer.is_ok(), answers, "{answer:?}");
            }
            let plain = Valkey::new(options()).unwrap().is_noted("what").await;
            assert!(plain.is_err(), "a server of TLS is not spoken to without it");
        }
    });
}
