//! Who used how much: `toolcell usage` from the audit, and metrics by caller where the manifest
//! asks for them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, manifest_of};

#[test]
fn each_caller_s_calls_fuel_and_bytes_are_added_up_by_day() {
    let manifest = format!(
        "{}calls = ['echo']\n[metrics]\ncallers = 1\n[http]\ntokens = \"tokens.jsonl\"\n",
        manifest_of(&["good", "calls"])
    );
    let folder = Folder::with_manifest(&manifest);
    let token = |name: &str| {
        let made = Command::in_folder(&folder, &["token", "new", name]).run();
        format!("Bearer {}", made.succeeded().trim())
    };
    let tokens = ["ann", "bob"].map(token);
    let host =
        WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl", "--metrics", "127.0.0.1:0"]);
    let call = |token: &str, tool: &str, arguments: Value| {
        host.ask(&Ask::call(tool, arguments).with("authorization", token)).frame()
    };
    for _ in 0..3 {
        call(&tokens[0], "echo", json!({"text": "x"}));
    }
    call(&tokens[0], "relay", json!({"tool": "echo", "arguments": {"text": "x"}}));
    call(&tokens[1], "echo", json!({"text": 5}));
    let is_last = |record: &Value| record["event"] == "call.finished" && record["outcome"] == "invalid_input";
    let _ = host.process().recorded("the last end", is_last);
    let figures = host.process().figures();
    assert_eq!(figures.values_of("caller"), BTreeSet::from(["(other)", "ann"]));
    for (caller, calls, failed) in [("ann", 5.0, 0.0), ("(other)", 1.0, 1.0)] {
        assert_eq!(figures.get("toolcell_caller_calls_total", &[("caller", caller)]), calls);
        assert_eq!(figures.get("toolcell_caller_failed_calls_total", &[("caller", caller)]), failed);
    }
    assert!(figures.get("toolcell_caller_fuel_total", &[("caller", "ann")]) > 0.0);
    let folder = host.process().folder();
    let usage = |arguments: &[&str]| Command::in_folder(folder, &[&["usage", "audit.jsonl"], arguments].concat()).run();
    let rows = usage(&["--json"]).json();
    let rows = rows.as_array().unwrap();
    let of = |caller: &str| rows.iter().find(|row| row["caller"] == caller).unwrap();
    // The call that a tool made is its caller's.
    assert_eq!((&of("ann")["calls"], &of("ann")["failed"]), (&json!(5), &json!(0)), "{rows:#?}");
    assert_eq!((&of("bob")["calls"], &of("bob")["failed"]), (&json!(1), &json!(1)), "{rows:#?}");
    assert!(of("ann")["fuel"].as_u64() > Some(0) && of("ann")["message_bytes"].as_u64() > Some(30), "{rows:#?}");
    assert_eq!(of("ann")["day"].as_str().map(str::len), Some("2026-01-12".len()));
    let only = usage(&["--json", "--caller", "bob", "--since", "1h"]).json();
    assert_eq!(only.as_array().map(Vec::len), Some(1), "{only}");
    assert_eq!(usage(&["--json", "--since", "2100-01-01"]).json(), json!([]));
    let table = usage(&[]);
    let lines: Vec<&str> = table.succeeded().lines().collect();
    assert!(lines[0].starts_with("DAY (UTC)") && lines.len() == 3 && lines[1].contains("ann"), "{lines:#?}");
}
