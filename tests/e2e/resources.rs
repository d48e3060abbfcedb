//! Resources. One that a tool embeds in its result can be read again for as long as it is kept,
//! only by the caller who got it. One that the manifest declares is read by a call of a tool.
//!
//! Promise: embedded resources are read by their receiver alone.
//! Promise: kept resources are bounded.

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, LEGACY_REVISIONS, MODERN_REVISION, Saving, TestHost, alone, manifest_of};

/// The resource that the fixture's tool `every_kind` embeds twice, under one address.
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

/// A modern request that reads this resource.
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

/// The fixture component that embeds any address, served twice under two prefixes.
fn two_that_label() -> TestHost {
    let manifest = manifest_of(&["labels"]);
    let source = manifest.lines().find(|line| line.starts_with("source")).unwrap();
    let forger = format!("{manifest}prefix = \"a_\"\n[components.forger]\n{source}\nprefix = \"b_\"\n");
    let mut host = TestHost::with_manifest(&forger);
    host.initialize("2025-11-25");
    host
}

#[test]
fn no_component_replaces_a_resource_of_another() {
    let mut host = two_that_label();
    let _ = host.call("a_label", json!({"first": 1, "body": 5}));
    let read = |host: &mut TestHost| host.request("resources/read", json!({"uri": "label:1"}));
    let text = |reply: &Value| reply["result"]["contents"][0]["text"].as_str().map_or(0, str::len);
    assert_eq!(text(&read(&mut host)), 5);
    // The other component embeds the same address. It is now ambiguous and stands for neither
    // resource, also in the list.
    let _ = host.call("b_label", json!({"first": 0, "count": 2, "body": 7}));
    let answer = read(&mut host);
    assert_eq!(answer["error"]["code"], -32002, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("two components"), "{answer}");
    assert_eq!(uris(&host.request("resources/list", json!({}))), ["label:0"]);
    // However many resources the other component embeds, none of this one's is dropped for them.
    for first in (0..320).step_by(32) {
        let _ = host.call("b_label", json!({"first": 1_000 + first, "count": 32}));
    }
    let answer = read(&mut host);
    assert_eq!(text(&answer), 5, "{answer}");
}

#[test]
fn a_session_has_its_own_and_takes_them_along() {
    let host = WebHost::serving(&["good"]);
    let one = host.session("2025-11-25");
    let two = host.session("2025-11-25");
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

/// The addresses on all pages of the list, and the length of each page in bytes.
fn pages(host: &mut TestHost) -> (Vec<String>, Vec<usize>) {
    let mut found = Vec::new();
    let mut lengths = Vec::new();
    let mut cursor = None::<String>;
    loop {
        let page = match &cursor {
            Some(cursor) => host.request("resources/list", json!({"cursor": cursor})),
            None => host.request("resources/list", json!({})),
        };
        found.extend(uris(&page).into_iter().map(str::to_owned));
        lengths.push(page.to_string().len());
        match page["result"]["nextCursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return (found, lengths),
        }
    }
}

/// A host whose results may have the default size.
fn labelling() -> TestHost {
    let mut host =
        TestHost::with_manifest(&manifest_of(&["labels"]).replace("output = \"64KiB\"", "output = \"1MiB\""));
    host.initialize("2025-11-25");
    host
}

/// Largest size of one page in bytes, with the rest of the answer.
const PAGE_BYTES: usize = 300 << 10;

#[test]
fn every_member_of_what_is_kept_counts_and_no_answer_is_larger_than_a_page() {
    for member in ["mime_type", "last_modified", "uri"] {
        // One letter takes one byte, the other takes six in JSON.
        for letter in ["x", "\u{1}"] {
            let mut host = labelling();
            let before = host.resident_bytes();
            for first in 0..20 {
                let _ = host.call("label", json!({"first": first, member: 1_000_000, "letter": letter}));
            }
            let (found, lengths) = pages(&mut host);
            assert_eq!((found.len(), lengths.len()), (0, 1), "{member}: what no page holds is not kept");
            assert!(lengths[0] < PAGE_BYTES, "{member}: {lengths:?}");
            let more = host.resident_bytes().saturating_sub(before);
            assert!(more < 64 << 20, "{member}: {more} bytes more");
        }
    }
    // The longest members that are kept: many pages, each bounded, nothing twice and nothing left
    // out.
    let mut host = labelling();
    for first in (0..320).step_by(32) {
        let _ = host.call("label", json!({"first": first, "count": 32, "mime_type": 12_000, "roles": 10}));
    }
    let (found, lengths) = pages(&mut host);
    let expected: Vec<String> = (64..320).map(|place| format!("label:{place}")).collect();
    assert_eq!(found, expected, "the last 256, the oldest first");
    assert!(lengths.len() > 10 && lengths.iter().all(|length| *length < PAGE_BYTES), "{lengths:?}");
    // Bodies count as well: a client may have sixteen of almost half a megabyte.
    for first in 0..40 {
        let _ = host.call("label", json!({"first": first, "body": 490_000, "mime_type": 12_000}));
    }
    let (found, _) = pages(&mut host);
    assert_eq!((found.len(), found[0].as_str(), found[15].as_str()), (16, "label:24", "label:39"));
    assert_eq!(host.request("resources/read", json!({"uri": "label:39"}))["error"], Value::Null);
}

#[test]
fn a_page_goes_on_where_the_last_one_ended_whatever_is_kept_meanwhile() {
    let manifest = manifest_of(&["labels"]).replacen("\n\n", "\n\n[server]\npage_size = 3\n\n", 1);
    let mut host = TestHost::with_manifest(&manifest);
    host.initialize("2025-11-25");
    let _ = host.call("label", json!({"first": 0, "count": 5}));
    let first = host.request("resources/list", json!({}));
    assert_eq!(uris(&first), ["label:0", "label:1", "label:2"]);
    let next = |cursor: &Value| json!({"cursor": cursor});
    // A listed resource moves to the end, and others are added. Nothing is left out.
    let _ = host.call("label", json!({"first": 1}));
    let _ = host.call("label", json!({"first": 5}));
    let second = host.request("resources/list", next(&first["result"]["nextCursor"]));
    assert_eq!(uris(&second), ["label:3", "label:4", "label:1"]);
    let third = host.request("resources/list", next(&second["result"]["nextCursor"]));
    assert_eq!((uris(&third), &third["result"]["nextCursor"]), (vec!["label:5"], &Value::Null));
    for cursor in [json!("x"), json!(7), json!(format!("{}k1", "0".repeat(16)))] {
        assert_eq!(host.request("resources/list", next(&cursor))["error"]["code"], -32602, "{cursor}");
    }
    let empty = host.request("resources/list", next(&json!("")));
    let absent = host.request("resources/list", json!({}));
    assert_eq!(empty["result"], absent["result"], "an empty cursor is an absent one");
    assert_eq!(host.request("resources/templates/list", json!({"cursor": "x"}))["error"]["code"], -32602);
}

#[test]
fn a_list_is_whole_in_a_revision_that_leaves_long_members_out() {
    let mut host =
        TestHost::with_manifest(&manifest_of(&["labels"]).replace("output = \"64KiB\"", "output = \"1MiB\""));
    // It has no last_modified.
    host.initialize("2024-11-05");
    for first in (0..64).step_by(32) {
        let _ = host.call("label", json!({"first": first, "count": 32, "last_modified": 12_000}));
    }
    let expected: Vec<String> = (0..64).map(|place| format!("label:{place}")).collect();
    assert_eq!(pages(&mut host).0, expected);
}

#[test]
fn without_a_session_a_caller_has_its_own_and_anybody_has_none() {
    let folder = Folder::with_manifest(&format!("{}\n[http]\ntokens = \"tokens.jsonl\"\n", manifest_of(&["good"])));
    let bearer = |name: &str| {
        let made = Command::in_folder(&folder, &["token", "new", name]).run();
        format!("Bearer {}", made.succeeded().trim())
    };
    let ann = bearer("ann");
    let bob = bearer("bob");
    let host = WebHost::in_folder(folder.clone(), &["--http", "127.0.0.1:0"]);
    assert_eq!(host.ask(&embedding().with("authorization", &ann)).status(), 200);
    let hers = host.ask(&reading(NOTE).with("authorization", &ann));
    assert_eq!(hers.frame()["result"]["contents"], contents(), "over another connection");
    let list = Ask::modern(4, "resources/list", json!({}));
    assert_eq!(uris(&host.ask(&list.clone().with("authorization", &ann)).frame()), [NOTE]);
    assert_eq!(host.ask(&reading(NOTE).with("authorization", &bob)).error(), (200, -32602));
    assert_eq!(uris(&host.ask(&list.clone().with("authorization", &bob)).frame()), [""; 0]);
    let open = WebHost::serving(&["good"]);
    assert_eq!(open.ask(&embedding()).status(), 200);
    assert_eq!(open.ask(&reading(NOTE)).error(), (200, -32602), "who is not told from others has none");
    assert_eq!(uris(&open.ask(&list).frame()), [""; 0]);
}

#[test]
fn without_shared_state_another_process_does_not_hold_it_and_says_so() {
    let _alone = alone("two processes without shared state");
    let folder = Folder::with_manifest(&format!("{}\n[http]\ntokens = \"tokens.jsonl\"\n", manifest_of(&["good"])));
    let made = Command::in_folder(&folder, &["token", "new", "ann"]).run();
    let ann = format!("Bearer {}", made.succeeded().trim());
    let [one, other] =
        [(); 2].map(|()| WebHost::in_folder(folder.clone(), &["--http", "127.0.0.1:0", "--control", "off"]));
    assert_eq!(one.ask(&embedding().with("authorization", &ann)).status(), 200);
    assert_eq!(one.ask(&reading(NOTE).with("authorization", &ann)).frame()["result"]["contents"], contents());
    assert_eq!(other.ask(&reading(NOTE).with("authorization", &ann)).error(), (200, -32602));
}

/// The fixture of the conformance suite, with resources that one of its tools reads. `more` holds
/// further lines.
fn declaring(more: &str) -> String {
    format!(
        "{}prefix = \"my_\"\n[components.conformance.resources]\n\
         \"test://static-text\" = {{ tool = \"read_resource\", title = \"A text\", description = \"As it is.\" }}\n\
         \"test://static-binary\" = {{ tool = \"read_resource\", name = \"pixel\", mime_type = \"image/png\" }}\n\
         \"test://template/{{id}}/data\" = {{ tool = \"read_resource\", mime_type = \"application/json\" }}\n{more}",
        manifest_of(&["conformance"])
    )
}

#[test]
fn what_the_manifest_declares_is_listed_and_read_by_a_call_of_its_tool() {
    for revision in LEGACY_REVISIONS.into_iter().chain([MODERN_REVISION]) {
        let mut host = TestHost::recording(&declaring(""));
        if revision != MODERN_REVISION {
            host.initialize(revision);
        }
        let listed = host.request("resources/list", json!({}));
        assert_eq!(uris(&listed), ["test://static-text", "test://static-binary"]);
        let titled = ["2025-06-18", "2025-11-25", MODERN_REVISION].contains(&revision);
        let mut expected =
            json!({"uri": "test://static-text", "name": "static-text", "title": "A text", "description": "As it is."});
        if !titled {
            expected.as_object_mut().unwrap().remove("title");
        }
        assert_eq!(listed["result"]["resources"][0], expected, "{revision}");
        let templates = host.request("resources/templates/list", json!({}))["result"]["resourceTemplates"].clone();
        let template = json!({"uriTemplate": "test://template/{id}/data", "name": "my_read_resource", "mimeType": "application/json"});
        assert_eq!(templates, json!([template]), "{revision}");
        let mut read = |uri: &str| host.request("resources/read", json!({"uri": uri}));
        let text = "This is the content of the static text resource.";
        let piece = json!({"uri": "test://static-text", "mimeType": "text/plain", "text": text});
        assert_eq!(read("test://static-text")["result"]["contents"], json!([piece]), "a text");
        let pixel = read("test://static-binary")["result"]["contents"][0].clone();
        assert_eq!((&pixel["uri"], &pixel["mimeType"]), (&json!("test://static-binary"), &json!("image/png")));
        assert!(pixel["blob"].as_str().unwrap().starts_with("iVBORw0KGgo"), "a picture: {pixel}");
        let data = read("test://template/7/data")["result"]["contents"][0].clone();
        assert_eq!((&data["uri"], &data["mimeType"]), (&json!("test://template/7/data"), &json!("application/json")));
        assert!(data["text"].as_str().unwrap().contains("\"id\":\"7\""), "what it embeds: {data}");
        let code = if revision == MODERN_REVISION { -32602 } else { -32002 };
        assert_eq!(read("test://template/7/8/data")["error"]["code"], code, "no template stands for it");
        let calls = host.audit().iter().filter(|record| record["event"] == "call.finished").count();
        assert_eq!(calls, 3, "each read is a call, in the audit as any other");
    }
}

#[test]
fn what_is_declared_is_listed_on_the_command_line() {
    let folder = Folder::with_manifest(&declaring(""));
    let listed = Command::in_folder(&folder, &["list"]).run();
    let line = "test://template/{id}/data  my_read_resource [my_read_resource]\n";
    assert!(listed.succeeded().ends_with(line), "{listed:?}");
    assert!(listed.stdout.contains("\n\ntest://static-text         A text [my_read_resource]\n"), "{listed:?}");
    let json = Command::in_folder(&folder, &["list", "--json"]).run().json();
    let first = json!({"uri": "test://static-text", "template": false, "name": "static-text", "tool": "my_read_resource", "argument": "uri"});
    assert_eq!(json["resources"][0], first);
}

#[test]
fn a_manifest_that_is_saved_changes_what_can_be_read() {
    let mut host = TestHost::with_manifest(&manifest_of(&["conformance"]));
    assert_eq!(uris(&host.request("resources/list", json!({}))), [""; 0]);
    host.folder().save(Saving::RenamedOver, "toolcell.toml", declaring(""));
    host.serves_generation(2);
    assert_eq!(uris(&host.request("resources/list", json!({}))).len(), 2);
    let without = declaring("").replace("\"test://static-text\" = { tool", "\"test://other-text\" = { tool");
    host.folder().save(Saving::RenamedOver, "toolcell.toml", without);
    host.serves_generation(3);
    assert_eq!(host.request("resources/read", json!({"uri": "test://static-text"}))["error"]["code"], -32602);
}

#[test]
fn a_tool_that_fails_to_read_says_why_and_its_limits_hold() {
    let none = "\"other:{+x}\" = { tool = \"read_resource\" }\n[components.conformance.limits]\nrate = \"2/min\"\n";
    let mut host = TestHost::with_manifest(&declaring(none));
    let mut read = |uri: &str| host.request("resources/read", json!({"uri": uri}))["error"].clone();
    let refused = read("other:thing");
    assert_eq!((&refused["code"], &refused["data"]["uri"]), (&json!(-32603), &json!("other:thing")), "the tool failed");
    assert_eq!(refused["message"], "Resource cannot be read: there is no such resource");
    let _ = read("other:thing");
    assert!(read("other:thing")["message"].as_str().unwrap().contains("rate"), "the tool's own limits");
}

#[test]
fn resources_that_no_tool_reads_are_load_errors() {
    let base = manifest_of(&["good", "conformance"]);
    for (lines, words) in [
        ("\"test://x\" = { tool = \"read_resorce\" }", "did you mean \"read_resource\"?"),
        ("\"test://x\" = { tool = \"read_resource\", argument = \"url\" }", "takes no argument \"url\""),
        ("\"test://x\" = {}", "nothing says which tool reads test://x"),
        ("\"x\" = { tool = \"read_resource\" }", "must begin with a scheme"),
        ("\"test://{x\" = { tool = \"read_resource\" }", "has a { without a }"),
        ("\"test://{x*}\" = { tool = \"read_resource\" }", "has a variable other than {name} and {+name}"),
        ("\"test://x\" = { tool = \"read_resource\", mime_type = \"text\" }", "is not a MIME type"),
    ] {
        let manifest = format!("{base}\n[components.conformance.resources]\n{lines}\n");
        let checked = Command::in_folder(&Folder::with_manifest(&manifest), &["check"]).run();
        assert!(checked.failed_with(1).contains(words), "no {words:?} in {checked:?}");
    }
    let two = format!("{base}\n[components.good.resources]\n\"test://x\" = {{ tool = \"add\", argument = \"a\" }}\n");
    let checked = Command::in_folder(&Folder::with_manifest(&two), &["check"]).run();
    let words = "tool \"add\" asks for \"b\" as well, so it cannot read test://x";
    assert!(checked.failed_with(1).contains(words), "no {words:?} in {checked:?}");
}

#[test]
fn any_replica_reads_what_is_declared_and_only_for_callers_of_the_tool() {
    let rules = "[http]\ntokens = \"tokens.jsonl\"\n[callers.readers]\nnames = [\"ann\"]\ntools = [\"my_read_resource\"]\n\
                 [callers.others]\nnames = [\"bob\"]\ntools = [\"my_test_simple_text\"]\n";
    let folder = Folder::with_manifest(&declaring(rules));
    let bearer = |name: &str| {
        let made = Command::in_folder(&folder, &["token", "new", name]).run();
        format!("Bearer {}", made.succeeded().trim())
    };
    let ann = bearer("ann");
    let bob = bearer("bob");
    let list = Ask::modern(4, "resources/list", json!({}));
    for _ in 0..2 {
        let host = WebHost::in_folder(folder.clone(), &["--http", "127.0.0.1:0", "--control", "off"]);
        let read = host.ask(&reading("test://static-text").with("authorization", &ann)).frame();
        assert_eq!(read["result"]["contents"][0]["mimeType"], "text/plain", "{read}");
        assert_eq!(uris(&host.ask(&list.clone().with("authorization", &ann)).frame()).len(), 2);
        let refused = host.ask(&reading("test://static-text").with("authorization", &bob));
        assert_eq!(refused.error(), (200, -32602), "who may not call the tool may not read by it");
        assert_eq!(uris(&host.ask(&list.clone().with("authorization", &bob)).frame()), [""; 0]);
        let other = reading("test://static-text").with("mcp-name", "test://static-binary");
        assert_eq!(host.ask(&other.with("authorization", &ann)).error(), (400, -32020));
    }
}

#[test]
fn a_read_that_a_person_confirms_asks_in_both_eras() {
    let confirmed = declaring("").replace("prefix = ", "approval = \"always\"\nprefix = ");
    let mut host = TestHost::with_manifest(&confirmed);
    let capable = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    let mut params = json!({"uri": "test://static-text", "_meta": capable});
    let asked = host.request("resources/read", params.clone());
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = json!({"toolcell.approval": {"action": "accept", "content": {}}});
    let read = host.request("resources/read", params);
    assert_eq!(read["result"]["contents"][0]["uri"], "test://static-text", "{read}");
    let mut host = TestHost::with_manifest(&confirmed);
    host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    let id = host.start("resources/read", json!({"uri": "test://static-text"}));
    let question = host.next_of("elicitation/create");
    host.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
    let refused = host.reply_to(&id);
    assert_eq!(refused["error"]["code"], -32603, "it exists");
    assert!(refused["error"]["message"].as_str().unwrap().contains("the person declined"), "{refused}");
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
