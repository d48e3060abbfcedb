//! What tools embed in their results can be read once more: by whoever got it, for as long as it is kept, and by nobody
//! else.

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, LEGACY_REVISIONS, MODERN_REVISION, TestHost, manifest_of};

/// What the tool `every_kind` of the fixture embeds, twice under one address.
const NOTE: &str = "note://one";

fn uris(reply: &Value) -> Vec<&str> {
    let resources = reply["result"]["resources"].as_array().unwrap_or_else(|| panic!("no resources in {reply}"));
    resources.iter().map(|resource| resource["uri"].as_str().unwrap()).collect()
}

fn contents() -> Value {
    let head = json!({"uri": NOTE, "mimeType": "text/plain"});
    let with = |key: &str, value: &str| {
        let mut part = head.clone();
        part[key] = json!(value);
        part
    };
    json!([with("text", "first note"), with("blob", "AP9/")])
}

/// A modern request for this resource.
fn reading(uri: &str) -> Ask {
    Ask::modern(3, "resources/read", json!({"uri": uri})).with("mcp-name", uri)
}

fn embedding() -> Ask {
    Ask::call("every_kind", json!({}))
}

#[test]
fn what_a_result_embedded_is_listed_and_read_in_every_revision() {
    for revision in LEGACY_REVISIONS.into_iter().chain([MODERN_REVISION]) {
        let mut host = TestHost::serving(&["good"]);
        if revision != MODERN_REVISION {
            host.initialize(revision);
        }
        assert_eq!(uris(&host.request("resources/list", json!({}))), [""; 0], "{revision}");
        let missing = host.request("resources/read", json!({"uri": NOTE}));
        let code = if revision == MODERN_REVISION { -32602 } else { -32002 };
        assert_eq!((&missing["error"]["code"], &missing["error"]["data"]["uri"]), (&json!(code), &json!(NOTE)));
        let _ = host.call("every_kind", json!({}));
        let listed = host.request("resources/list", json!({}));
        assert_eq!(uris(&listed), [NOTE], "{revision}");
        let entry = &listed["result"]["resources"][0];
        assert_eq!(
            (&entry["name"], &entry["mimeType"], &entry["size"]),
            (&json!("one"), &json!("text/plain"), &json!(13))
        );
        let read = host.request("resources/read", json!({"uri": NOTE}));
        assert_eq!(read["result"]["contents"], contents(), "{revision}: {read}");
        if revision == MODERN_REVISION {
            let result = &read["result"];
            assert_eq!(
                (&result["resultType"], &result["cacheScope"], &result["ttlMs"]),
                (&json!("complete"), &json!("private"), &json!(0))
            );
        }
        let templates = host.request("resources/templates/list", json!({}));
        assert_eq!(templates["result"]["resourceTemplates"], json!([]), "{revision}");
        for (method, params) in [
            ("resources/read", json!({})),
            ("resources/read", json!({"uri": 7})),
            ("resources/list", json!({"cursor": "x"})),
        ] {
            assert_eq!(host.request(method, params)["error"]["code"], -32602, "{revision} {method}");
        }
    }
}

#[test]
fn a_session_has_its_own_and_takes_them_along() {
    let host = WebHost::serving(&["good"]);
    let (one, two) = (host.session("2025-11-25"), host.session("2025-11-25"));
    let call = json!({"name": "every_kind", "arguments": {}});
    let _ = host.ask(&Ask::request(1, "tools/call", call).of_session(&one));
    let read = Ask::request(2, "resources/read", json!({"uri": NOTE}));
    assert_eq!(host.ask(&read.clone().of_session(&one)).frame()["result"]["contents"], contents());
    assert_eq!(host.ask(&read.clone().of_session(&two)).error(), (200, -32002), "another session's");
    assert_eq!(host.ask(&reading(NOTE)).error(), (200, -32602), "anybody's");
    assert_eq!(host.ask(&Ask::bare("DELETE", "/mcp").of_session(&one)).status(), 204);
    let three = host.session("2025-11-25");
    assert_eq!(host.ask(&read.of_session(&three)).error(), (200, -32002), "gone with its session");
}

#[test]
fn without_a_session_a_caller_has_its_own_and_anybody_has_none() {
    let folder = Folder::with_manifest(&format!("{}\n[http]\ntokens = \"tokens.jsonl\"\n", manifest_of(&["good"])));
    let bearer = |name: &str| {
        let made = Command::in_folder(&folder, &["token", "new", name]).run();
        format!("Bearer {}", made.succeeded().trim())
    };
    let (ann, bob) = (bearer("ann"), bearer("bob"));
    let [host, replica] =
        [(); 2].map(|()| WebHost::in_folder(folder.clone(), &["--http", "127.0.0.1:0", "--control", "off"]));
    assert_eq!(host.ask(&embedding().with("authorization", &ann)).status(), 200);
    let hers = host.ask(&reading(NOTE).with("authorization", &ann));
    assert_eq!(hers.frame()["result"]["contents"], contents(), "over another connection");
    let list = Ask::modern(4, "resources/list", json!({}));
    assert_eq!(uris(&host.ask(&list.clone().with("authorization", &ann)).frame()), [NOTE]);
    assert_eq!(host.ask(&reading(NOTE).with("authorization", &bob)).error(), (200, -32602));
    assert_eq!(uris(&host.ask(&list.clone().with("authorization", &bob)).frame()), [""; 0]);
    let elsewhere = replica.ask(&reading(NOTE).with("authorization", &ann));
    assert_eq!(elsewhere.error(), (200, -32602), "a replica that does not hold it says so");
    let open = WebHost::serving(&["good"]);
    assert_eq!(open.ask(&embedding()).status(), 200);
    assert_eq!(open.ask(&reading(NOTE)).error(), (200, -32602), "who is not told from others has none");
    assert_eq!(uris(&open.ask(&list).frame()), [""; 0]);
}

#[test]
fn where_no_tool_embeds_anything_resources_are_not_offered() {
    let mut host = TestHost::serving(&["drawings"]);
    let result = host.initialize("2025-11-25");
    assert_eq!(result["capabilities"], json!({"logging": {}, "tools": {"listChanged": true}}));
    for method in ["resources/list", "resources/read", "resources/templates/list"] {
        assert_eq!(host.request(method, json!({"uri": NOTE}))["error"]["code"], -32601, "{method}");
    }
}
