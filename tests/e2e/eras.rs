//! Both eras and every revision: the content of each handshake, the form of tools and results, and
//! the messages that each may be sent.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolcell_tests::{LEGACY_REVISIONS, MODERN_REVISION, TestHost, manifest_of};

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn set<'a>(keys: &[&'a str]) -> BTreeSet<&'a str> {
    keys.iter().copied().collect()
}

/// A host that serves `good`, and speaks this revision with its client.
fn speaking(revision: &str) -> TestHost {
    let mut host = TestHost::serving(&["good"]);
    if revision != MODERN_REVISION {
        host.initialize(revision);
    }
    host
}

fn revisions() -> impl Iterator<Item = &'static str> {
    LEGACY_REVISIONS.into_iter().chain([MODERN_REVISION])
}

#[test]
fn a_handshake_agrees_on_the_revision_asked_for() {
    for revision in LEGACY_REVISIONS {
        let mut host = TestHost::serving(&["good"]);
        let result = host.initialize(revision);
        assert_eq!(result["protocolVersion"], revision);
        let resources = json!({"listChanged": true, "subscribe": true});
        let offered = json!({"logging": {}, "resources": resources, "tools": {"listChanged": true}});
        assert_eq!(result["capabilities"], offered);
        assert_eq!(result["serverInfo"]["name"], "toolcell");
        assert_eq!(host.request("ping", json!({}))["result"], json!({}));
    }
}

#[test]
fn a_handshake_for_an_unknown_revision_offers_the_newest_legacy_one() {
    for revision in ["1999-01-01", "2099-01-01", MODERN_REVISION, ""] {
        let mut host = TestHost::serving(&["good"]);
        assert_eq!(host.initialize(revision)["protocolVersion"], "2025-11-25", "asked for {revision:?}");
    }
}

#[test]
fn a_modern_client_discovers_without_a_handshake() {
    let mut host = TestHost::serving(&["good"]);
    let reply = host.request("server/discover", json!({}));
    let result = &reply["result"];
    assert_eq!(result["resultType"], "complete");
    let supported: BTreeSet<&str> =
        result["supportedVersions"].as_array().unwrap().iter().map(|version| version.as_str().unwrap()).collect();
    assert!(supported.contains(MODERN_REVISION), "{result}");
    assert_eq!(result["ttlMs"], 0, "a reload may add resources, a new start change title and instructions");
    assert!(["public", "private"].contains(&result["cacheScope"].as_str().unwrap()), "{result}");
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolcell");
}

#[test]
fn the_server_is_described_as_far_as_the_revision_knows() {
    let described = "[server]\nname = \"acme\"\ntitle = \"Acme\"\ndescription = \"Stock and orders.\"\nwebsite = \
                     \"https://acme.example/tools\"\nicons = [{ src = \"https://acme.example/i.png\", mime_type = \
                     \"image/png\", sizes = [\"48x48\"], theme = \"dark\" }, { src = \"data:image/svg+xml,x\" }]\n";
    let first = ["name", "version"];
    for (revision, known) in [
        ("2025-03-26", first.to_vec()),
        ("2025-06-18", [&first[..], &["title"]].concat()),
        ("2025-11-25", [&first[..], &["title", "description", "websiteUrl", "icons"]].concat()),
        (MODERN_REVISION, [&first[..], &["title", "description", "websiteUrl", "icons"]].concat()),
    ] {
        let mut host = TestHost::with_manifest(&format!("{}\n{described}", manifest_of(&["good"])));
        let info = if revision == MODERN_REVISION {
            host.request("server/discover", json!({}))["result"]["_meta"]["io.modelcontextprotocol/serverInfo"].clone()
        } else {
            host.initialize(revision)["serverInfo"].clone()
        };
        assert_eq!(keys(&info), set(&known), "{revision}");
        if known.contains(&"icons") {
            let icon = json!({
                "src": "https://acme.example/i.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"
            });
            assert_eq!(info["icons"], json!([icon, {"src": "data:image/svg+xml,x"}]));
            assert_eq!(
                (&info["description"], &info["websiteUrl"]),
                (&json!("Stock and orders."), &json!("https://acme.example/tools"))
            );
        }
    }
}

#[test]
fn every_modern_result_is_complete_and_names_the_server() {
    let mut host = TestHost::serving(&["good"]);
    let replies = [
        host.request("server/discover", json!({})),
        host.request("tools/list", json!({})),
        host.request("tools/call", json!({"name": "echo", "arguments": {"text": "x"}})),
        host.request("tools/call", json!({"name": "echo", "arguments": {}})),
    ];
    for reply in replies {
        assert_eq!(reply["result"]["resultType"], "complete", "{reply}");
        assert_eq!(reply["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolcell", "{reply}");
    }
}

#[test]
fn a_definition_has_only_what_the_revision_knows() {
    let first = ["name", "description", "inputSchema"];
    let hints = ["annotations"];
    let structured = ["title", "outputSchema", "_meta"];
    for (revision, known) in [
        ("2024-11-05", [&first[..]].concat()),
        ("2025-03-26", [&first[..], &hints].concat()),
        ("2025-06-18", [&first[..], &hints, &structured].concat()),
        ("2025-11-25", [&first[..], &hints, &structured, &["icons"]].concat()),
        (MODERN_REVISION, [&first[..], &hints, &structured, &["icons"]].concat()),
    ] {
        let tools = speaking(revision).list();
        let add = tools.iter().find(|tool| tool["name"] == "add").unwrap();
        assert_eq!(keys(add), set(&known), "{revision}");
        assert_eq!(add["inputSchema"]["required"], json!(["a", "b"]), "{revision}");
        if revision == MODERN_REVISION {
            assert_eq!(add["title"], "Add");
            assert_eq!(add["_meta"], json!({"example.com/kind": "sum"}));
            let icon = json!({
                "src": "data:image/png;base64,iVBORw0KGgo=", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"
            });
            assert_eq!(add["icons"], json!([icon]));
            let hints = json!({
                "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false
            });
            assert_eq!(add["annotations"], hints);
        }
    }
}

#[test]
fn the_order_of_the_list_is_the_same_each_time() {
    let names = |tools: Vec<Value>| -> Vec<String> { tools.iter().map(|tool| tool["name"].to_string()).collect() };
    let mut host = TestHost::serving(&["good", "nosy", "liar"]);
    let first = names(host.list());
    assert_eq!(names(host.list()), first);
    let mut other = TestHost::serving(&["good", "nosy", "liar"]);
    other.initialize("2025-06-18");
    assert_eq!(names(other.list()), first, "another process, another era");
}

#[test]
fn a_structured_result_is_mirrored_as_text_and_sent_where_the_revision_knows_it() {
    for revision in revisions() {
        let mut host = speaking(revision);
        let knows_objects = revision >= "2025-06-18";
        let sum = host.call("add", json!({"a": 2, "b": 3}));
        assert_eq!(sum.text(), r#"{"sum":5}"#, "{revision}");
        let expected = knows_objects.then(|| json!({"sum": 5}));
        assert_eq!(sum.result().get("structuredContent"), expected.as_ref(), "{revision}");

        let numbers = host.call("list_of_numbers", json!({}));
        assert_eq!(numbers.text(), "[1,2,3]", "{revision}");
        let expected = (revision == MODERN_REVISION).then(|| json!([1, 2, 3]));
        assert_eq!(numbers.result().get("structuredContent"), expected.as_ref(), "{revision}");
        let tools = host.list();
        let definition = tools.iter().find(|tool| tool["name"] == "list_of_numbers").unwrap();
        assert_eq!(definition.get("outputSchema").is_some(), revision == MODERN_REVISION, "{revision}");
    }
}

#[test]
fn every_kind_of_content_is_encoded() {
    let mut host = speaking(MODERN_REVISION);
    let result = host.call("every_kind", json!({})).result().clone();
    let annotations =
        json!({"audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2026-01-12T15:00:58Z"});
    let expected = json!([
        {"type": "text", "text": "said", "annotations": annotations, "_meta": {"example.com/part": 1}},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png", "annotations": annotations},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav", "annotations": annotations},
        {
            "type": "resource_link", "uri": "note://two", "name": "two", "title": "Note two",
            "description": "The second note.", "mimeType": "text/plain", "size": 12, "annotations": annotations
        },
        {
            "type": "resource", "annotations": annotations,
            "resource": {"uri": "note://one", "mimeType": "text/plain", "text": "first note"}
        },
        {
            "type": "resource", "annotations": annotations,
            "resource": {"uri": "note://one", "mimeType": "text/plain", "blob": "AP9/"}
        }
    ]);
    assert_eq!(result["content"], expected);
    assert_eq!(result["_meta"]["example.com/whole"], true);
}

#[test]
fn content_of_a_kind_that_the_revision_does_not_know_is_not_sent() {
    for (revision, unknown) in [
        ("2024-11-05", vec!["audio", "resource_link"]),
        ("2025-03-26", vec!["resource_link"]),
        ("2025-06-18", vec![]),
        ("2025-11-25", vec![]),
    ] {
        let content = speaking(revision).call("every_kind", json!({})).result()["content"].clone();
        let kinds: BTreeSet<&str> =
            content.as_array().unwrap().iter().map(|part| part["type"].as_str().unwrap()).collect();
        for kind in unknown {
            assert!(!kinds.contains(kind), "{revision}: {kinds:?}");
        }
        for kind in ["text", "image", "resource"] {
            assert!(kinds.contains(kind), "{revision}: {kinds:?}");
        }
        let dated = content.as_array().unwrap().iter().any(|part| part["annotations"].get("lastModified").is_some());
        assert_eq!(dated, revision >= "2025-06-18", "{revision}: `lastModified` came with 2025-06-18");
    }
}

#[test]
fn a_page_has_the_size_that_the_manifest_sets() {
    let mut host = TestHost::with_manifest(&format!("{}\n[server]\npage_size = 2\n", manifest_of(&["good"])));
    let mut whole = TestHost::serving(&["good"]);
    assert_eq!(host.list(), whole.list());

    let first = host.request("tools/list", json!({}));
    assert_eq!(first["result"]["tools"].as_array().unwrap().len(), 2);
    let cursor = first["result"]["nextCursor"].clone();
    let second = host.request("tools/list", json!({"cursor": cursor}));
    assert_eq!(second["result"]["ttlMs"], first["result"]["ttlMs"]);
    assert_eq!(second["result"]["cacheScope"], first["result"]["cacheScope"]);
    assert_ne!(second["result"]["tools"], first["result"]["tools"]);
    assert_eq!(host.request("tools/list", json!({"cursor": cursor}))["result"], second["result"], "a cursor lasts");
}

#[test]
fn a_cursor_that_the_host_did_not_give_is_refused() {
    let mut host = TestHost::serving(&["good"]);
    for cursor in [json!("0"), json!("AAAA"), json!("../../etc"), json!(7), json!({})] {
        let reply = host.request("tools/list", json!({"cursor": cursor}));
        assert_eq!(reply["error"]["code"], -32602, "{cursor}: {reply}");
    }
    host.still_works();
}

#[test]
fn arguments_that_do_not_fit_name_each_place_and_rule() {
    for revision in revisions() {
        let mut host = speaking(revision);
        let answer = host.call("add", json!({"a": "two", "b": 2000, "c": 1}));
        let mut lines: Vec<&str> = answer.error_text().lines().collect();
        lines[1..].sort_unstable();
        let expected = [
            "The arguments do not fit the input schema of add:",
            "- (root): \"c\" is not expected here",
            "- /a: must be of type integer",
            "- /b: must be at most 1000",
        ];
        assert_eq!(lines, expected, "{revision}");
        let answer = host.call("add", json!({"a": 1}));
        let expected = "The arguments do not fit the input schema of add:\n- (root): \"b\" is required";
        assert_eq!(answer.error_text(), expected, "{revision}");
    }
}

#[test]
fn a_call_that_is_none_is_a_protocol_error() {
    for revision in revisions() {
        let mut host = speaking(revision);
        let unknown = host.request("tools/call", json!({"name": "no_such_tool", "arguments": {}}));
        assert_eq!(unknown["error"], json!({"code": -32602, "message": "Unknown tool: no_such_tool"}), "{revision}");
        let rows = [
            json!({}),
            json!({"name": 7}),
            json!({"name": null, "arguments": {}}),
            json!({"name": "echo", "arguments": []}),
            json!({"name": "echo", "arguments": "x"}),
        ];
        for params in rows {
            let reply = host.request("tools/call", params.clone());
            assert_eq!(reply["error"]["code"], -32602, "{revision} {params}: {reply}");
        }
        host.still_works();
    }
}

#[test]
fn absent_arguments_are_an_empty_object() {
    for revision in revisions() {
        let reply = speaking(revision).request("tools/call", json!({"name": "says_error"}));
        assert_eq!(reply["result"]["content"], json!([{"type": "text", "text": "the shop is closed"}]), "{revision}");
        assert_eq!(reply["result"]["isError"], true);
    }
}

#[test]
fn methods_that_are_not_offered_are_not_found() {
    for revision in revisions() {
        let mut host = speaking(revision);
        for method in ["prompts/list", "prompts/get", "completion/complete", "tools/delete", "x"] {
            let reply = host.request(method, json!({}));
            assert_eq!(reply["error"]["code"], -32601, "{revision} {method}: {reply}");
        }
        host.still_works();
    }
}

#[test]
fn what_one_era_took_away_the_other_does_not_get() {
    let mut modern = speaking(MODERN_REVISION);
    for method in ["initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        assert_eq!(modern.request(method, json!({}))["error"]["code"], -32601, "{method}");
    }
    let mut legacy = speaking("2025-11-25");
    for method in ["server/discover", "subscriptions/listen"] {
        assert_eq!(legacy.request(method, json!({}))["error"]["code"], -32601, "{method}");
    }
}

#[test]
fn a_modern_request_of_another_version_names_those_supported() {
    let mut host = TestHost::serving(&["good"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2099-01-01", "io.modelcontextprotocol/clientCapabilities": {}
    });
    let reply = host.request("tools/list", json!({"_meta": meta}));
    assert_eq!(reply["error"]["code"], -32022, "{reply}");
    assert_eq!(reply["error"]["data"]["requested"], "2099-01-01");
    let discovered = host.request("server/discover", json!({}));
    assert_eq!(reply["error"]["data"]["supported"], discovered["result"]["supportedVersions"], "one list");
    // A request that names a legacy revision is not told to try again with it.
    for revision in LEGACY_REVISIONS {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": revision, "io.modelcontextprotocol/clientCapabilities": {}
        });
        let reply = host.request("tools/list", json!({"_meta": meta}));
        let data = json!({"supported": [MODERN_REVISION], "requested": revision});
        assert_eq!((&reply["error"]["code"], &reply["error"]["data"]), (&json!(-32022), &data));
    }
    host.still_works();
}

#[test]
fn a_request_of_no_era_names_the_missing_meta() {
    let mut host = TestHost::serving(&["good"]);
    for method in ["tools/list", "tools/call", "server/discover", "no/such/method"] {
        host.send(&json!({"jsonrpc": "2.0", "id": method, "method": method}));
        let reply = host.reply_to(&json!(method));
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(message.contains("io.modelcontextprotocol/protocolVersion"), "{message}");
    }
    host.still_works();
}

#[test]
fn both_eras_are_spoken_in_one_process() {
    let mut host = TestHost::serving(&["good"]);
    let modern = host.request("server/discover", json!({}));
    assert_eq!(modern["result"]["resultType"], "complete");
    assert_eq!(host.initialize("2025-03-26")["protocolVersion"], "2025-03-26");
    assert_eq!(host.call("echo", json!({"text": "legacy"})).result().get("resultType"), None);
    let meta = toolcell_tests::modern_meta();
    let modern = host.request("tools/call", json!({"name": "echo", "arguments": {"text": "modern"}, "_meta": meta}));
    assert_eq!(modern["result"]["resultType"], "complete", "{modern}");
}

#[test]
fn a_second_handshake_begins_anew() {
    let mut host = speaking("2025-03-26");
    let client = json!({"name": "again", "version": "1"});
    let again = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    assert_eq!(host.request("initialize", again)["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(host.call("add", json!({"a": 1, "b": 1})).result()["structuredContent"], json!({"sum": 2}));
}

#[test]
fn a_tool_is_told_what_its_caller_sent_along_and_no_more() {
    let meta = json!({
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "vendor=1",
        "baggage": "user=me",
        "example.com/own": {"deep": [1, 2]},
        "progressToken": "secret-token"
    });
    for revision in revisions() {
        let mut host = speaking(revision);
        let params = json!({"name": "request", "arguments": {}, "_meta": meta});
        let reply = host.request("tools/call", params);
        let seen: Value = serde_json::from_str(reply["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(seen["trace"]["traceparent"], meta["traceparent"], "{revision}");
        assert_eq!(seen["trace"]["tracestate"], "vendor=1", "{revision}");
        assert_eq!(seen["trace"]["baggage"], "user=me", "{revision}");
        assert_eq!(seen["meta"]["example.com/own"], json!({"deep": [1, 2]}), "{revision}");
        for hidden in ["progressToken", "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientInfo"]
        {
            assert_eq!(seen["meta"].get(hidden), None, "{revision}");
        }
    }
}
