//! A server that is away in other ways than by ending: paused, slow, silent, cut off.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod engine;
mod replica;

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::patience::patience;
use engine::{Disturbance, DisturbedWay, Engine, eventually};
use replica::{HOUR, MINUTE, WITHIN, options, run};
use toolcell_shared::{AllowanceName, Begun, Claim, Claimed, Pace, Request, SharedState, Taken, Valkey, ValkeyOptions};

fn replica(port: u16) -> Arc<Valkey> {
    Arc::new(Valkey::new(options(port)).unwrap())
}

/// Time for one operation where answers are late but in time.
const LATE: Duration = Duration::from_secs(5);

/// Claims of one name by each of these replicas at once: how many got it, and how many got no
/// answer.
async fn claims(replicas: &[Arc<Valkey>; 2], name: &str) -> (u32, u32) {
    let [one, other] = replicas;
    let (first, second) = tokio::join!(one.claim("ann", name, MINUTE), other.claim("ann", name, MINUTE));
    let answers = [first, second];
    let used = answers.iter().filter(|answer| matches!(answer, Ok(Claimed::Now(_)))).count();
    let unknown = answers.iter().filter(|answer| answer.is_err()).count();
    (u32::try_from(used).unwrap(), u32::try_from(unknown).unwrap())
}

/// Two replicas claim name after name while their server stands still for a time in between.
fn a_pause_of(pause: Duration) {
    let engine = Engine::start(&[]);
    run(async {
        let replicas = [replica(engine.port()), replica(engine.port())];
        let mut names = 0;
        let mut claim_until = async |until: Instant| {
            let mut used = 0;
            let mut unknown = 0;
            let mut longest = Duration::ZERO;
            while Instant::now() < until {
                names += 1;
                let began = Instant::now();
                let (got, unanswered) = claims(&replicas, &names.to_string()).await;
                longest = longest.max(began.elapsed());
                assert!(got <= 1, "{names}: one name was used twice");
                assert!(got == 1 || unanswered > 0, "{names}: a name that nobody had was refused to both");
                (used, unknown) = (used + got, unknown + unanswered);
                tokio::task::yield_now().await;
            }
            (used, unknown, longest)
        };
        let soon = || Instant::now() + Duration::from_millis(200);
        let (used, unknown, _) = claim_until(soon()).await;
        assert!(used > 10 && unknown == 0, "{used} used, {unknown} unanswered");
        engine.pause();
        let (used, unknown, longest) = claim_until(Instant::now() + pause).await;
        engine.go_on();
        println!("paused for {pause:?}: {used} used, {unknown} refused, at most {longest:?} for one");
        assert!(longest < patience(), "an operation took {longest:?}");
        assert!(unknown > 0 && used <= 1, "{used} used, {unknown} unanswered");
        eventually("it answers again", async || {
            replicas[0].is_noted("what").await.is_ok() && replicas[1].is_noted("what").await.is_ok()
        })
        .await;
        let (used, unknown, _) = claim_until(soon()).await;
        assert!(used > 10 && unknown == 0, "{used} used, {unknown} unanswered");
    });
}

#[test]
fn a_server_that_stands_still_for_a_second_uses_no_name_twice() {
    a_pause_of(Duration::from_secs(1));
}

#[test]
fn a_server_that_stands_still_for_ten_seconds_uses_no_name_twice() {
    a_pause_of(Duration::from_secs(10));
}

#[test]
fn an_answer_that_was_lost_with_its_connection_is_had_again() {
    let engine = Engine::start(&[]);
    run(async {
        let way = DisturbedWay::to(engine.port());
        let far = replica(way.port());
        let near = replica(engine.port());
        assert!(far.claim("ann", "before", MINUTE).await.unwrap().now().is_some());
        way.set(Disturbance::AnswersCutIt);
        let claiming = tokio::spawn(async move { far.claim("ann", "chain", MINUTE).await });
        // The server has done it, while its answer was lost.
        eventually("the server has it", async || engine.ask(&["DBSIZE"]) == ":2").await;
        way.set(Disturbance::Nothing);
        let claim: Option<Claim> = claiming.await.unwrap().unwrap().now();
        assert!(claim.is_some(), "who asks again gets the same answer");
        assert_eq!(near.claim("ann", "chain", MINUTE).await, Ok(Claimed::Before));
        near.give_back(claim.unwrap()).await.unwrap();
        assert!(near.claim("ann", "chain", MINUTE).await.unwrap().now().is_some());
    });
}

#[test]
fn a_network_that_loses_what_is_sent_is_a_server_that_is_away() {
    for (lost, takes_place) in [(Disturbance::QuestionsAreLost, false), (Disturbance::AnswersAreLost, true)] {
        let engine = Engine::start(&[]);
        run(async {
            let way = DisturbedWay::to(engine.port());
            let far = replica(way.port());
            let near = replica(engine.port());
            let two = [AllowanceName { scope: "tool", pace: Pace::new(2, 60 * MINUTE), callers_max: 1 }];
            assert_eq!(far.take("ann", &two).await, Ok(Taken::All));
            assert_eq!(far.claim("ann", "before", MINUTE).await.map(|claim| claim.now().is_some()), Ok(true));
            way.set(lost);
            let began = Instant::now();
            assert!(far.claim("ann", "chain", MINUTE).await.is_err());
            let took = began.elapsed();
            assert!(took >= WITHIN && took < patience(), "{lost:?}: {took:?}");
            assert!(far.take("ann", &two).await.is_err());
            // The other side of the split goes on, and knows what the first side may have done.
            assert_eq!(near.claim("ann", "chain", MINUTE).await.unwrap().now().is_none(), takes_place, "{lost:?}");
            assert_eq!(near.claim("ann", "before", MINUTE).await, Ok(Claimed::Before));
            assert_eq!(near.take("ann", &two).await, Ok(Taken::All));
            way.set(Disturbance::Nothing);
            eventually("it answers again", async || far.is_noted("what").await.is_ok()).await;
            assert_eq!(far.claim("ann", "chain", MINUTE).await, Ok(Claimed::Before), "{lost:?}");
            assert!(matches!(far.take("ann", &two).await, Ok(Taken::Refused { .. })), "{lost:?}");
        });
    }
}

#[test]
fn a_slow_server_answers_as_long_as_it_is_in_time() {
    let engine = Engine::start(&[]);
    run(async {
        let way = DisturbedWay::to(engine.port());
        let state = Arc::new(Valkey::new(ValkeyOptions { within: LATE, ..options(way.port()) }).unwrap());
        assert!(state.claim("ann", "before", MINUTE).await.unwrap().now().is_some());
        way.set(Disturbance::AnswersTake(LATE / 5));
        let began = Instant::now();
        let many = (0..40).map(|number| {
            let state = Arc::clone(&state);
            tokio::spawn(async move { state.claim("ann", &number.to_string(), MINUTE).await })
        });
        let many: Vec<_> = many.collect();
        for claim in many {
            assert!(claim.await.unwrap().unwrap().now().is_some());
        }
        let took = began.elapsed();
        assert!(took >= LATE / 5 && took < patience(), "those that wait at once wait together: {took:?}");
        way.set(Disturbance::AnswersTake(8 * LATE));
        let began = Instant::now();
        assert!(state.claim("ann", "chain", MINUTE).await.is_err());
        assert!(began.elapsed() < patience());
        way.set(Disturbance::Nothing);
        eventually("it is fast again", async || state.is_noted("what").await.is_ok()).await;
        assert_eq!(state.claim("ann", "chain", MINUTE).await, Ok(Claimed::Before), "what came too late took place");
    });
}

#[test]
fn a_request_that_was_refused_as_the_server_was_away_runs_with_the_next_try() {
    let engine = Engine::start(&[]);
    let way = DisturbedWay::to(engine.port());
    run(async {
        let one = replica(way.port());
        let other = replica(engine.port());
        let request = Request { caller: "ann", name: "key", what: "{}" };
        assert_eq!(one.is_noted("what").await, Ok(false));
        for lost in [Disturbance::AnswersAreLost, Disturbance::QuestionsAreLost] {
            way.set(lost);
            assert!(one.begin(&request, HOUR).await.is_err());
            way.set(Disturbance::Nothing);
            let mut begun = None;
            eventually("the request runs at another replica", async || {
                begun = Some(other.begin(&request, HOUR).await.unwrap());
                matches!(begun, Some(Begun::Now(_)))
            })
            .await;
            // What takes it back comes twice, and takes nothing from who runs it now.
            let Some(Begun::Now(claim)) = begun else { unreachable!() };
            assert!(matches!(one_back(&one, &request).await, Begun::Runs));
            other.end(claim, "", HOUR).await.unwrap();
        }
    });
}

/// The answer to a request once the server is reached again.
async fn one_back(replica: &Arc<Valkey>, request: &Request<'_>) -> Begun {
    let mut begun = None;
    eventually("it answers again", async || {
        begun = replica.begin(request, HOUR).await.ok();
        begun.is_some()
    })
    .await;
    begun.unwrap()
}

#[test]
fn an_answer_that_the_server_was_not_told_is_kept_once_it_is_back() {
    let engine = Engine::start(&[]);
    let way = DisturbedWay::to(engine.port());
    run(async {
        let one = replica(way.port());
        let other = replica(engine.port());
        let request = Request { caller: "ann", name: "key", what: "{}" };
        let Begun::Now(claim) = one.begin(&request, HOUR).await.unwrap() else { panic!("it runs already") };
        way.set(Disturbance::QuestionsAreLost);
        assert!(one.end(claim, "an answer", HOUR).await.is_err());
        way.set(Disturbance::Nothing);
        eventually("another replica has the answer", async || {
            matches!(other.begin(&request, HOUR).await.unwrap(), Begun::Ended(answer) if answer == "an answer")
        })
        .await;
    });
}
