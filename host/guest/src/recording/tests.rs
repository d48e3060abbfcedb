//! Calls of small components, recorded and replayed in a real sandbox.
#![allow(clippy::unwrap_used, clippy::panic)]
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use toolcell_policy::Limits;
use toolcell_wall::caller::NoCaller;
use toolcell_wall::contract::GuestResult;
use toolcell_wall::failure::{CallFailure, ReplayEnd, ReplayQuestion};
use toolcell_wall::load::facts::GuestEngine;
use toolcell_wall::pool_sizes::SandboxOptions;
use toolcell_wall::report::CallReport;
use toolcell_wall::tape::{self, DROP, TapeEntry, TapeUse};

use super::{RecordingLink, TapedCall, relay};
use crate::{CallInput, GuestGrants, InstanceSource, Sandbox, ToolComponent};

static SANDBOX: LazyLock<Sandbox> =
    LazyLock::new(|| Sandbox::new(SandboxOptions { calls_max: 4, ..SandboxOptions::default() }).unwrap());

/// What the component imports.
const IMPORTS: [&str; 3] = ["wasi:io/poll@0.2.3", "wasi:clocks/monotonic-clock@0.2.0", "wasi:random/random@0.2.0"];

static RELAY: LazyLock<ToolComponent> =
    LazyLock::new(|| ToolComponent::load(&SANDBOX, &relay(GuestEngine::Sync, &IMPORTS).unwrap()).unwrap());

/// A component that waits for a clock, reads the time, and asks for this many random bytes.
fn component(random: u32) -> ToolComponent {
    component_that(1_000, random, "")
}

/// The same, which waits this long, and does this at its end.
fn component_that(nanoseconds: u64, random: u32, ends: &str) -> ToolComponent {
    let text = format!(
        r#"(component
        (import "wasi:io/poll@0.2.3" (instance $poll
            (export "pollable" (type $p (sub resource)))
            (export "[method]pollable.ready" (func (param "self" (borrow $p)) (result bool)))
            (export "poll" (func (param "in" (list (borrow $p))) (result (list u32))))))
        (alias export $poll "pollable" (type $pollable))
        (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
            (alias outer 1 $pollable (type $p)) (export "pollable" (type $own (eq $p)))
            (export "now" (func (result u64)))
            (export "subscribe-duration" (func (param "when" u64) (result (own $own))))))
        (import "wasi:random/random@0.2.0" (instance $random
            (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
        (core module $memory
            (memory (export "memory") 2)
            (global $next (mut i32) (i32.const 4096))
            (func (export "realloc") (param i32 i32 i32 i32) (result i32)
                (global.get $next)
                (global.set $next (i32.and (i32.add (i32.add (global.get $next) (local.get 3)) (i32.const 15)) (i32.const -16)))))
        (core instance $m (instantiate $memory))
        (core func $ready (canon lower (func $poll "[method]pollable.ready")))
        (core func $wait (canon lower (func $poll "poll") (memory $m "memory") (realloc (func $m "realloc"))))
        (core func $now (canon lower (func $clock "now")))
        (core func $subscribe (canon lower (func $clock "subscribe-duration")))
        (core func $bytes (canon lower (func $random "get-random-bytes") (memory $m "memory") (realloc (func $m "realloc"))))
        (core func $drop (canon resource.drop $pollable))
        (core module $main
            (import "m" "memory" (memory 1))
            (import "h" "ready" (func $ready (param i32) (result i32)))
            (import "h" "poll" (func $poll (param i32 i32 i32)))
            (import "h" "now" (func $now (result i64)))
            (import "h" "subscribe" (func $subscribe (param i64) (result i32)))
            (import "h" "bytes" (func $bytes (param i64 i32)))
            (import "h" "drop" (func $drop (param i32)))
            (func (export "go") (result i64) (local i32)
                (local.set 0 (call $subscribe (i64.const {nanoseconds})))
                (i32.store (i32.const 16) (local.get 0))
                (call $poll (i32.const 16) (i32.const 1) (i32.const 32))
                (drop (call $ready (local.get 0)))
                (call $drop (local.get 0))
                (call $bytes (i64.const {random}) (i32.const 48))
                (i64.xor (i64.load (i32.load (i32.const 48))) (call $now))
                {ends}))
        (core instance $i (instantiate $main (with "m" (instance $m)) (with "h" (instance
            (export "ready" (func $ready)) (export "poll" (func $wait)) (export "now" (func $now))
            (export "subscribe" (func $subscribe)) (export "bytes" (func $bytes)) (export "drop" (func $drop))))))
        (func (export "go") (result u64) (canon lift (core func $i "go"))))"#
    );
    ToolComponent::load(&SANDBOX, &wat::parse_str(text).unwrap()).unwrap()
}

async fn call(component: &ToolComponent, source: InstanceSource<'_>) -> CallReport<GuestResult> {
    let limits = Limits::default();
    let capabilities = GuestGrants::sealed("");
    let caller = Arc::new(NoCaller);
    let input = CallInput {
        tool: "go",
        arguments_json: "{}",
        program: None,
        limits: &limits,
        capabilities: &capabilities,
        caller,
        source,
    };
    component.call_tool(input).await.report
}

async fn record(component: &ToolComponent) -> (CallReport<GuestResult>, Vec<TapeEntry>) {
    let link = RecordingLink::recording(RELAY.pre(), component.pre().component()).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    let taped = TapedCall::new(Arc::new(link), Arc::new(file.try_clone().unwrap()), TapeUse::Record);
    let report = call(component, InstanceSource::Taped(&taped)).await;
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    (report, tape::read(&bytes).unwrap())
}

/// The functions of a tape whose call goes on, once it has this many.
async fn functions_of(tape: &File, count: usize) -> Vec<String> {
    loop {
        let mut bytes = vec![0; usize::try_from(tape.metadata().unwrap().len()).unwrap()];
        tape.read_exact_at(&mut bytes, 0).unwrap();
        let entries = tape::read(&bytes).unwrap();
        if entries.len() >= count {
            return entries.into_iter().map(|entry| entry.function).collect();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn played(entries: &[TapeEntry]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    entries.iter().for_each(|entry| file.write_all(&tape::line(entry)).unwrap());
    file
}

async fn replay(component: &ToolComponent, entries: &[TapeEntry], does: TapeUse) -> CallReport<GuestResult> {
    let link = RecordingLink::replaying(component.pre().component()).unwrap();
    let taped = TapedCall::new(Arc::new(link), Arc::new(played(entries)), does);
    call(component, InstanceSource::Taped(&taped)).await
}

fn answer(report: &CallReport<GuestResult>) -> String {
    report.outcome.clone().unwrap_or_else(|failure| panic!("{failure:?}")).structured_json.unwrap()
}

fn difference(report: CallReport<GuestResult>) -> (String, String) {
    match report.outcome {
        Err(CallFailure::Replayed(ReplayEnd::Differs { asked, expected })) => {
            (asked.unwrap_or_default(), expected.unwrap_or_default())
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_recorded_call_answers_as_before_with_the_same_fuel_a_hundred_times() {
    let component = component(8);
    let plain = call(&component, InstanceSource::Fresh).await;
    let (recorded, entries) = record(&component).await;
    assert_eq!(recorded.usage.fuel, plain.usage.fuel, "a recording costs its guest nothing");
    let functions: Vec<&str> = entries.iter().map(|entry| entry.function.as_str()).collect();
    let expected = [
        "wasi:clocks/monotonic-clock#subscribe-duration",
        "wasi:io/poll#poll",
        "wasi:io/poll#[method]pollable.ready",
        DROP,
        "wasi:random/random#get-random-bytes",
        "wasi:clocks/monotonic-clock#now",
    ];
    assert_eq!(functions, expected);
    for _ in 0..100 {
        let replayed = replay(&component, &entries, TapeUse::Replay).await;
        assert_eq!(answer(&replayed), answer(&recorded));
        assert_eq!(replayed.usage.fuel, recorded.usage.fuel);
    }
    let compared = replay(&component, &entries, TapeUse::Compare).await;
    assert_eq!(answer(&compared), answer(&recorded));
}

#[tokio::test]
async fn a_call_that_never_ends_has_on_its_tape_what_it_called_before_it_waits_or_computes() {
    let waits = component_that(u64::MAX, 8, "");
    let computes = component_that(1_000, 8, "(loop $ever (br $ever))");
    for (component, count) in [(waits, 1), (computes, 6)] {
        let link = RecordingLink::recording(RELAY.pre(), component.pre().component()).unwrap();
        let file = Arc::new(tempfile::tempfile().unwrap());
        let taped = TapedCall::new(Arc::new(link), Arc::clone(&file), TapeUse::Record);
        let functions = tokio::select! {
            report = call(&component, InstanceSource::Taped(&taped)) => panic!("{:?}", report.outcome),
            functions = functions_of(&file, count) => functions,
        };
        // Its process is killed now: nobody writes the rest.
        assert_eq!(functions.len(), count, "{functions:?}");
        assert_eq!(functions[0], "wasi:clocks/monotonic-clock#subscribe-duration");
    }
}

#[tokio::test]
async fn numbers_of_the_host_are_recorded_as_through_the_relay() {
    let component = component(8);
    let (_, entries) = record(&component).await;
    let now = &entries[5];
    assert_eq!((now.counted, now.fuel), (1, 0));
    assert!(now.results[0].as_u64().is_some_and(|time| time > 0), "{now:?}");
    assert!(now.arguments.is_empty());
}

#[tokio::test]
async fn a_replay_ends_where_its_guest_asks_for_something_else() {
    let recorded_component = component(8);
    let (_, entries) = record(&recorded_component).await;
    let other = component(9);
    let nine = r#"{"call":"wasi:random/random#get-random-bytes","with":[9]}"#;
    let (asked, expected) = difference(replay(&other, &entries, TapeUse::Replay).await);
    assert_eq!(asked, nine);
    assert!(expected.starts_with(r#"{"call":"wasi:random/random#get-random-bytes","with":[8]"#), "{expected}");
    let compared = replay(&other, &entries, TapeUse::Compare).await;
    let question = ReplayQuestion { name: None, is_new: false, asked: nine.to_owned() };
    assert_eq!(compared.outcome.unwrap_err(), CallFailure::Replayed(ReplayEnd::Asks(vec![question])));
    // Less than was recorded, and more.
    let longer = [entries.as_slice(), &entries[5..]].concat();
    assert_eq!(difference(replay(&recorded_component, &longer, TapeUse::Replay).await).0, "");
    assert_eq!(difference(replay(&recorded_component, &entries[..5], TapeUse::Replay).await).1, "");
    // In another order.
    let mut turned = entries.clone();
    turned.swap(4, 5);
    difference(replay(&recorded_component, &turned, TapeUse::Replay).await);
    answer(&replay(&recorded_component, &turned, TapeUse::Compare).await);
}

#[tokio::test]
async fn a_recording_that_lies_ends_its_replay_alone() {
    let component = component(8);
    let (_, entries) = record(&component).await;
    let lies: [(usize, serde_json::Value); 7] = [
        (0, serde_json::json!({"handle": 7_000_000_000_u64})),
        (0, serde_json::json!({"handle": "7"})),
        (1, serde_json::json!([-1])),
        (1, serde_json::json!({"ok": []})),
        (2, serde_json::json!("yes")),
        (4, serde_json::json!({"base64": "!"})),
        (5, serde_json::json!(1.5)),
    ];
    for (place, lie) in lies {
        let mut changed = entries.clone();
        changed[place].results = vec![lie.clone()];
        let report = replay(&component, &changed, TapeUse::Replay).await;
        assert!(matches!(report.outcome, Err(CallFailure::Trapped { .. })), "{lie}: {:?}", report.outcome);
    }
    let mut none = entries.clone();
    none[5].results.clear();
    assert!(replay(&component, &none, TapeUse::Replay).await.outcome.is_err());
    let mut costly = entries;
    costly[5].fuel = u64::MAX;
    costly[5].counted = u64::MAX;
    assert!(matches!(replay(&component, &costly, TapeUse::Replay).await.outcome, Err(CallFailure::OverLimit { .. })));
}
