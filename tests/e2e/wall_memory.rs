//! The memory of all sandbox processes together.

use serde_json::json;
use toolcell_tests::TestHost;

use crate::walls::manifest;

/// The tool of it that fills memory, behind the prefix of its component.
const FILLS: &str = "fill_and_hold";

/// A component that fills memory, in processes of its own.
fn hungry(name: &str) -> String {
    format!(
        "[components.{name}]\nsource = \"components/hungry.wasm\"\nprefix = \"{name}_\"\nwall = \"own\"\n\
         limits = {{ memory = \"500MiB\", fuel = 1_000_000_000_000_000, deadline = \"1h\", concurrency = 1 }}\n"
    )
}

#[test]
fn of_groups_that_take_too_much_memory_together_the_largest_is_ended_and_nothing_else() {
    let text = manifest(&["small", "large"].map(hungry).concat());
    let text = text.replace("walls = \"best\"", "walls = \"best\"\nwall_memory = \"512MiB\"");
    let mut host = TestHost::recording(&text);
    host.still_works();
    let large = host.start_call(&format!("large_{FILLS}"), json!({"mib": 400}));
    let small = host.start_call(&format!("small_{FILLS}"), json!({"mib": 120}));
    assert_eq!(
        host.answer_to(&large).error_text(),
        "the sandbox was ended: all processes of components together took more memory than 512 MiB, and its process \
         the most"
    );
    let ended = host.recorded("the end", |record| record["outcome"] == "sandbox_ended");
    assert_eq!((&ended["event"], &ended["tool"]), (&json!("call.finished"), &json!(format!("large_{FILLS}"))));
    host.still_works();
    host.cancel(&small);
    let end = host.recorded("the other's end", |record| {
        record["event"] == "call.finished" && record["tool"] == format!("small_{FILLS}")
    });
    assert_eq!(end["outcome"], "cancelled", "its process lived on");
    assert!(!host.call("large_grow_and_settle", json!({"mib": 1})).is_error(), "another process serves");
}
