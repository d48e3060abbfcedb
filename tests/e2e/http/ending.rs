//! The end of a server: it accepts nothing new, finishes running calls, and ends streams properly.

use std::time::Instant;

use serde_json::json;
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Folder, alone, manifest_of};

#[test]
fn calls_are_finished_and_streams_end_with_their_result() {
    let _alone = alone("the end of its own process");
    let host = WebHost::serving(&["good"]);
    let session = host.session("2025-11-25");
    let mut listening = host.connect();
    let mut told = host.connect();
    let mut calling = host.connect();
    listening.send(&Ask::listen(7).bytes());
    listening.head();
    listening.event().unwrap();
    told.send(&Ask::bare("GET", "/mcp").with("accept", "text/event-stream").of_session(&session).bytes());
    told.head();
    let idle = host.connect();
    let mut ask = json!({"name": "slow", "arguments": {"steps": 2, "step_ms": 300}});
    ask["_meta"] = toolcell_tests::modern_meta();
    ask["_meta"]["progressToken"] = json!(1);
    let body = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": ask}).to_string();
    calling.send(&Ask::call("slow", json!({})).saying(&body).bytes());
    calling.head();
    calling.event().unwrap();
    host.process().terminate();
    let result = listening.event().unwrap();
    assert_eq!((&result["id"], &result["result"]["resultType"]), (&json!(7), &json!("complete")));
    assert_eq!(listening.event(), None);
    assert_eq!(told.event(), None);
    let frames: Vec<_> = std::iter::from_fn(|| calling.event()).collect();
    assert_eq!(frames.last().unwrap()["result"]["content"][0]["text"], "2 steps done");
    { idle }.is_closed();
    let ended = host.into_process().ends();
    assert!(ended.status.success(), "{}", ended.stderr);
}

#[test]
fn a_call_that_goes_on_is_cancelled_when_the_time_is_up() {
    let _alone = alone("the end of its own process");
    let manifest = manifest_of(&["good", "loops"]).replace("deadline = \"5s\"", "deadline = \"1h\"");
    let folder = Folder::with_manifest(&format!("{manifest}\n[http]\ndrain = \"200ms\"\n"));
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"]);
    let mut wire = host.connect();
    wire.send(&Ask::call("sleep_hour", json!({})).bytes());
    host.begins("sleep_hour");
    let began = Instant::now();
    host.process().terminate();
    assert_eq!(wire.reply().frame()["result"]["isError"], true);
    let audit = host.process().folder().path().join("audit.jsonl");
    let kept = std::fs::read_to_string(&audit).unwrap();
    assert!(kept.contains("\"outcome\":\"cancelled\""), "{kept}");
    assert!(host.into_process().ends().status.success());
    assert!(began.elapsed() < toolcell_tests::patience(), "{:?}", began.elapsed());
}
