//! News of resources: sessions and subscriptions that watch them hear of each change, and of
//! changed lists.

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost, Wire};
use toolcell_tests::{MODERN_REVISION, Saving, TestHost, manifest_of};

use crate::resource_files::{folder, manifest};

const UPDATED: &str = "notifications/resources/updated";
const LIST_CHANGED: &str = "notifications/resources/list_changed";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const PLAIN: &str = "file:///docs/plain";

/// Subscribes in the host's era. Returns the acknowledgement, if there is one.
fn watch(host: &mut TestHost, revision: &str, uris: &[&str]) -> Value {
    if revision == MODERN_REVISION {
        let wanted = json!({"resourceSubscriptions": uris, "resourcesListChanged": true});
        host.start("subscriptions/listen", json!({"notifications": wanted}));
        return host.next_of(ACKNOWLEDGED);
    }
    host.initialize(revision);
    for uri in uris {
        assert_eq!(host.request("resources/subscribe", json!({"uri": uri}))["result"], json!({}));
    }
    Value::Null
}

#[test]
fn a_file_that_is_written_is_told_to_those_who_watch_it_and_a_new_one_changes_the_list() {
    for revision in ["2024-11-05", "2025-11-25", MODERN_REVISION] {
        let mut host = TestHost::in_folder(folder(&manifest("")));
        let acknowledged = watch(&mut host, revision, &[PLAIN, "file:///docs/later"]);
        if revision == MODERN_REVISION {
            let honoured = &acknowledged["params"]["notifications"];
            let uris = json!(["file:///docs/later", PLAIN]);
            assert_eq!(*honoured, json!({"resourcesListChanged": true, "resourceSubscriptions": uris}));
        }
        host.folder().write("docs/deep/other", "nobody watches it");
        host.next_of(LIST_CHANGED);
        host.folder().write(PLAIN.trim_start_matches("file:///"), "other text");
        let updated = host.next_of(UPDATED);
        assert_eq!(updated["params"]["uri"], PLAIN, "{revision}");
        let tag = &updated["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        let expected = &acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(tag, expected);
        let read = host.request("resources/read", json!({"uri": PLAIN}));
        assert_eq!(read["result"]["contents"][0]["text"], "other text");
        // One that was not there when it was watched.
        host.folder().write("docs/later", "x");
        assert_eq!(host.next_of(UPDATED)["params"]["uri"], "file:///docs/later");
        host.next_of(LIST_CHANGED);
        assert!(host.kept().iter().all(|frame| frame["method"] != UPDATED), "nothing of the other file");
    }
}

#[test]
fn a_session_hears_no_more_of_what_it_watches_no_more() {
    let mut host = TestHost::in_folder(folder(&manifest("")));
    watch(&mut host, "2025-11-25", &[PLAIN, "file:///docs/in"]);
    assert_eq!(host.request("resources/unsubscribe", json!({"uri": PLAIN}))["result"], json!({}));
    host.folder().write("docs/plain", "both addresses lead to it");
    // The link's own file has changed as well.
    assert_eq!(host.next_of(UPDATED)["params"]["uri"], "file:///docs/in");
    host.still_works();
    assert!(host.kept().iter().all(|frame| frame["method"] != UPDATED));
}

#[test]
fn what_is_watched_is_bounded_by_session_by_caller_and_in_length() {
    let bounds = "\n[server]\nwatched_max = 2\ncaller_watched_max = 3\n";
    let mut host = TestHost::in_folder(folder(&format!("{}{bounds}", manifest(""))));
    watch(&mut host, "2025-11-25", &["a:1", "a:2", "a:2"]);
    let refused = host.request("resources/subscribe", json!({"uri": "a:3"}));
    let text = "At most 2 resources may be watched at once: unsubscribe from one first";
    assert_eq!(refused["error"], json!({"code": -32603, "message": text}));
    for (params, code) in
        [(json!({}), -32602), (json!({"uri": 7}), -32602), (json!({"uri": "a".repeat(2_049)}), -32602)]
    {
        assert_eq!(host.request("resources/subscribe", params)["error"]["code"], code);
    }
    host.request("resources/unsubscribe", json!({"uri": "a:1"}));
    assert_eq!(host.request("resources/subscribe", json!({"uri": "a:3"}))["result"], json!({}));
    // Over stdio both eras are one caller's.
    let modern = |uris: Value| {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
                          "io.modelcontextprotocol/clientCapabilities": {}});
        json!({"jsonrpc": "2.0", "id": 900, "method": "subscriptions/listen",
               "params": {"_meta": meta, "notifications": {"resourceSubscriptions": uris}}})
    };
    host.send(&modern(json!(["a:1", "a:2"])));
    let refused = host.reply_to(&json!(900));
    assert_eq!(refused["error"]["message"], "This caller watches as many resources as it may");
    host.send(&modern(json!(["a:1"])));
    host.next_of(ACKNOWLEDGED);
}

/// The stream that a session opens with GET.
fn stream_of(host: &WebHost, session: &str) -> Wire {
    let mut stream = host.connect();
    stream.send(&Ask::bare("GET", "/mcp").with("accept", "text/event-stream").of_session(session).bytes());
    assert_eq!(stream.head().status(), 200);
    stream
}

fn next_of(stream: &mut Wire, method: &str) -> Value {
    loop {
        let event = stream.event().expect("the stream ended");
        if event["method"] == method {
            return event;
        }
    }
}

#[test]
fn over_http_a_session_hears_on_its_stream_and_a_subscription_on_its_own() {
    let host = WebHost::in_folder(folder(&manifest("")), &["--http", "127.0.0.1:0"]);
    let session = host.session("2025-11-25");
    let subscribe = Ask::request(2, "resources/subscribe", json!({"uri": PLAIN})).of_session(&session);
    assert_eq!(host.ask(&subscribe).frame()["result"], json!({}));
    let wanted = json!({"notifications": {"resourceSubscriptions": [PLAIN]}});
    let mut listening = host.connect();
    listening.send(&Ask::modern(7, "subscriptions/listen", wanted).bytes());
    assert_eq!(listening.head().status(), 200);
    let acknowledged = next_of(&mut listening, ACKNOWLEDGED);
    assert_eq!(acknowledged["params"]["notifications"], json!({"resourceSubscriptions": [PLAIN]}));
    host.process().folder().write("docs/plain", "other text");
    assert_eq!(next_of(&mut listening, UPDATED)["params"]["uri"], PLAIN);
    // Until its stream is open, the session's news are kept.
    let mut stream = stream_of(&host, &session);
    assert_eq!(next_of(&mut stream, UPDATED)["params"]["uri"], PLAIN);
    host.process().folder().write("docs/plain", "a third text");
    for stream in [&mut stream, &mut listening] {
        assert_eq!(next_of(stream, UPDATED)["params"]["uri"], PLAIN);
    }
}

#[test]
fn what_a_tool_embeds_changes_the_list_and_what_is_watched() {
    for revision in ["2025-11-25", MODERN_REVISION] {
        let mut host = TestHost::serving(&["good"]);
        watch(&mut host, revision, &["note://one"]);
        let _ = host.call("every_kind", json!({}));
        host.next_of(LIST_CHANGED);
        assert_eq!(host.next_of(UPDATED)["params"]["uri"], "note://one", "{revision}");
        // The list is the same from now on.
        let _ = host.call("every_kind", json!({}));
        host.next_of(UPDATED);
        assert!(host.kept().iter().all(|frame| frame["method"] != LIST_CHANGED), "{revision}");
    }
}

#[test]
fn a_reload_tells_of_other_resources_and_of_those_that_other_code_reads() {
    let declares = |uri: &str, more: &str| {
        format!(
            "{}{more}[components.conformance.resources]\n\"{uri}\" = {{ tool = \"read_resource\" }}\n",
            manifest_of(&["conformance"])
        )
    };
    for revision in ["2025-11-25", MODERN_REVISION] {
        let mut host = TestHost::with_manifest(&declares("test://static-text", ""));
        watch(&mut host, revision, &["test://static-text"]);
        host.folder().save(Saving::RenamedOver, "toolcell.toml", declares("test://static-text", "prewarm = 0\n"));
        assert_eq!(host.next_of(UPDATED)["params"]["uri"], "test://static-text", "{revision}");
        assert!(host.kept().iter().all(|frame| frame["method"] != LIST_CHANGED), "the list is the same");
        host.folder().save(Saving::RenamedOver, "toolcell.toml", declares("test://static-binary", ""));
        host.next_of(LIST_CHANGED);
        assert_eq!(host.next_of(UPDATED)["params"]["uri"], "test://static-text", "it is gone");
    }
}
