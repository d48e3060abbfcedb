//! Limits: the places where each may be set, the setting that wins, and values just within and just
//! beyond.
//!
//! Promise: calls see nothing of each other.
//! Promise: memory comes back.

use serde_json::json;
use toolcell_tests::TestHost;

use crate::walls::own_bytes;

#[test]
fn the_most_specific_limit_wins() {
    let mut host = TestHost::with_manifest(
        r#"
        version = 1
        [defaults.limits]
        fuel = 10_000_000
        [components.one]
        source = "components/loops.wasm"
        prefix = "one_"
        [components.two]
        source = "components/loops.wasm"
        prefix = "two_"
        [components.two.limits]
        fuel = 20_000_000
        [components.two.tools.spin.limits]
        fuel = 30_000_000
        [components.good]
        source = "components/good.wasm"
        "#,
    );
    let rows = [("one_spin", "10_000_000"), ("two_ignore_cancel", "20_000_000"), ("two_spin", "30_000_000")];
    for (tool, units) in rows {
        let expected = format!("out of fuel: the call used its whole budget of {units} units (limit \"fuel\")");
        assert_eq!(host.call(tool, json!({})).error_text(), expected);
    }
    host.still_works();
}

#[test]
fn a_limit_holds_to_the_byte() {
    let mut host = TestHost::with_manifest(
        r#"
        version = 1
        [components.hungry]
        source = "components/hungry.wasm"
        [components.hungry.limits]
        output = "1KiB"
        output_items = 3
        random = "1KiB"
        handles = 100
        [components.good]
        source = "components/good.wasm"
        [components.good.tools.echo.limits]
        arguments = "1KiB"
        "#,
    );
    assert_eq!(host.call("long_text", json!({"bytes": 1024})).text().len(), 1024);
    let answer = host.call("long_text", json!({"bytes": 1025}));
    assert_eq!(answer.error_text(), "the result is larger than 1KiB (limit \"output\")");

    assert_eq!(host.call("many_items", json!({"items": 3})).result()["content"].as_array().unwrap().len(), 3);
    let answer = host.call("many_items", json!({"items": 4}));
    assert_eq!(answer.error_text(), "the result has more than 3 content items (limit \"output_items\")");

    assert_eq!(host.call("random", json!({"bytes": 1024})).text(), "1024");
    let answer = host.call("random", json!({"bytes": 1025}));
    assert_eq!(
        answer.error_text(),
        "too many random bytes at once: the tool asked for more than 1KiB (limit \"random\")"
    );

    // A timer takes two handles: the pollable and its timer.
    assert_eq!(host.call("pollables", json!({"pollables": 50})).text(), "50 pollables kept");
    let answer = host.call("pollables", json!({"pollables": 51}));
    assert_eq!(answer.error_text(), "too many handles: the tool held more than 100 at once (limit \"handles\")");

    // {"text":""} is 11 bytes.
    let just_fits = "x".repeat(1013);
    assert_eq!(host.call("echo", json!({"text": just_fits})).text(), just_fits);
    let answer = host.call("echo", json!({"text": "x".repeat(1014)}));
    assert_eq!(answer.error_text(), "the arguments are larger than 1KiB (limit \"arguments\")");
}

#[test]
fn memory_that_is_refused_can_be_survived() {
    let mut host = TestHost::with_manifest(
        r#"
        version = 1
        [components.hungry]
        source = "components/hungry.wasm"
        [components.hungry.limits]
        memory = "8MiB"
        "#,
    );
    assert_eq!(host.call("grow_and_settle", json!({"mib": 3})).text(), "3");
    let settled: u64 = host.call("grow_and_settle", json!({"mib": 100})).text().parse().unwrap();
    assert!((4..8).contains(&settled), "{settled} MiB of at most 8");
}

#[test]
fn the_memory_of_a_call_is_gone_with_it() {
    let mut host = TestHost::serving(&["good", "hungry"]);
    host.call("grow_steadily", json!({}));
    let before = own_bytes(&host);
    for _ in 0..50 {
        assert!(host.call("grow_steadily", json!({})).is_error());
    }
    // Read at once: a process that rests with much memory is ended.
    let grown = own_bytes(&host).saturating_sub(before);
    assert!(grown < 48 << 20, "fifty calls of 16 MiB each left {grown} bytes behind");
}

#[test]
fn a_call_cannot_see_what_another_left_in_memory() {
    let mut host = TestHost::serving(&["good"]);
    let first = host.call("clocks", json!({}));
    assert_eq!(first.structured()["random_differs"], true);
    for number in 0..20 {
        let text = format!("call {number}");
        assert_eq!(host.call("echo", json!({"text": text})).text(), text);
    }
}
