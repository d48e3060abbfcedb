//! The figures of the view "Now".
use serde_json::json;

use super::{Operator, unhurried};

/// The tile of this name.
fn tile(name: &str, value: u64) -> String {
    format!("<dt>{name}</dt><dd>{value}</dd>")
}

#[test]
fn calls_that_wait_errors_and_denials_of_the_last_minute_are_counted() {
    let manifest = unhurried(&["reach_http", "good"]);
    let mut operator = Operator::of(&format!("{manifest}\n[components.good.limits]\nconcurrency = 1\n"));
    operator.host.initialize("2025-11-25");
    let page = operator.page("/");
    for name in ["Running", "Waiting", "Errors", "Denials"] {
        assert!(page.contains(&tile(name, 0)), "{name}: {page}");
    }
    let _ = operator.host.call("http", json!({"url": "http://127.0.0.1:9/x"}));
    let page = operator.page_with("/", &tile("Denials", 1));
    assert!(page.contains(&tile("Errors", 0)), "{page}");
    let _ = operator.host.call("says_error", json!({}));
    let page = operator.page_with("/", &tile("Errors", 1));
    assert!(page.contains(&tile("Denials", 1)), "{page}");
    let slow = json!({"steps": u32::MAX, "step_ms": 20});
    let calls = [operator.host.start_call("slow", slow.clone()), operator.host.start_call("slow", slow)];
    // A call waits for a moment before it runs, so both figures come to be.
    operator.page_with("/", &tile("Running", 1));
    operator.page_with("/", &tile("Waiting", 1));
    calls.iter().for_each(|id| operator.host.cancel(id));
    let page = operator.page_with("/", "No call runs.");
    assert!(page.contains(&tile("Running", 0)) && page.contains(&tile("Waiting", 0)), "{page}");
    operator.host.still_works();
}

#[test]
fn a_call_that_asks_is_measured_by_the_time_for_asking_and_that_is_no_time_of_its_own() {
    let manifest = unhurried(&["good"]).replace("version = 1\n", "version = 1\n[server]\napprove_in = [\"console\"]\n");
    let mut operator =
        Operator::of(&format!("{manifest}approval = \"always\"\n\n[components.good.limits]\nask_wait = \"9m\"\n"));
    operator.host.initialize("2025-11-25");
    let id = operator.host.start_call("echo", json!({"text": "a"}));
    let page = operator.page_with("/", "<span class=\"chip ask\">asks</span>");
    assert!(page.contains(" of 9 min") && !page.contains(" of 1 h"), "{page}");
    let key = Operator::key(&operator.page("/approvals"), "/approvals/answer");
    let _ = operator.decides("/approvals/answer", &format!("key={key}&answer=allow"));
    assert_eq!(operator.host.answer_to(&id).text(), "a");
    let page = operator.page_with("/audit/calls/now.1", "instantiate");
    let places = ["asked", "queue", "instantiate"].map(|part| page.find(&format!(">{part}<")));
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}: {page}");
}

#[test]
fn a_guest_that_waits_is_shown_with_what_it_took_before() {
    let mut operator = Operator::of(&unhurried(&["good"]));
    operator.host.initialize("2025-11-25");
    let id = operator.host.start_call("slow", json!({"steps": 1_000, "step_ms": 3_000}));
    operator.shows_use_of_call_1();
    operator.host.cancel(&id);
    operator.page_with("/", "No call runs.");
}
