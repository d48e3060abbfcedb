//! Entries of tools' state as resources, and completion of addresses by the host itself.

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, MODERN_REVISION, TestHost, manifest_of};

use crate::resource_files;

const UPDATED: &str = "notifications/resources/updated";

/// The fixture that keeps state, with entries of it as resources; `state` holds keys of its grant.
fn manifest(walls: &str, state: &str) -> String {
    let server = format!("version = 1\n[server]\nwalls = \"{walls}\"\n");
    let served = manifest_of(&["reach_state"]).replace("version = 1\n", &server);
    let served = served.replace("fuel = 20_000_000", "fuel = 2_000_000_000");
    format!(
        "{served}[components.reach_state.keyvalue]\n{state}\n[components.reach_state.resources]\n\
         \"note:///{{+key}}\" = {{ keyvalue = \"default\", mime_type = \"text/markdown\" }}\n\
         \"topic:{{key}}\" = {{ keyvalue = \"topics\" }}\n\
         \"the:index\" = {{ keyvalue = \"default\", key = \"index\", title = \"Index\" }}\n"
    )
}

fn read(host: &mut TestHost, uri: &str) -> Value {
    host.request("resources/read", json!({"uri": uri}))
}

fn set(host: &mut TestHost, bucket: &str, key: &str, value: &str) {
    let set = host.call("keyvalue", json!({"op": "set", "bucket": bucket, "key": key, "value": value}));
    assert!(!set.is_error(), "{set:?}");
}

#[test]
fn entries_of_state_are_read_and_their_changes_told() {
    for revision in ["2025-06-18", "2025-11-25", MODERN_REVISION] {
        for walls in ["best", "none"] {
            let mut host = TestHost::recording(&manifest(walls, ""));
            let watched = ["note:///a%2fb", "note:///a/b", "the:index", "topic:x%2Fy", "note:///other"];
            if revision == MODERN_REVISION {
                let wanted = json!({"notifications": {"resourceSubscriptions": watched}});
                host.start("subscriptions/listen", wanted);
                host.next_of("notifications/subscriptions/acknowledged");
            } else {
                host.initialize(revision);
                for uri in watched {
                    assert_eq!(host.request("resources/subscribe", json!({"uri": uri}))["result"], json!({}));
                }
            }
            let listed = host.request("resources/list", json!({}));
            assert_eq!(listed["result"]["resources"][0]["uri"], "the:index", "{listed}");
            let templates = host.request("resources/templates/list", json!({}))["result"]["resourceTemplates"].clone();
            assert_eq!(templates[0]["uriTemplate"], "note:///{+key}");
            let code = if revision == MODERN_REVISION { -32602 } else { -32002 };
            assert_eq!(read(&mut host, "note:///a/b")["error"]["code"], code, "nothing is kept yet");
            set(&mut host, "default", "a/b", "# Note");
            assert_eq!(host.next_of(UPDATED)["params"]["uri"], "note:///a/b", "{revision} {walls}");
            let contents = read(&mut host, "note:///a/b")["result"].clone();
            let expected = json!([{"uri": "note:///a/b", "mimeType": "text/markdown", "text": "# Note"}]);
            assert_eq!(contents["contents"], expected);
            if revision == MODERN_REVISION {
                assert_eq!((&contents["cacheScope"], &contents["ttlMs"]), (&json!("public"), &json!(0)));
            }
            set(&mut host, "topics", "x/y", "in a bucket of its own");
            assert_eq!(host.next_of(UPDATED)["params"]["uri"], "topic:x%2Fy");
            assert_eq!(read(&mut host, "topic:x%2Fy")["result"]["contents"][0]["mimeType"], "text/plain");
            set(&mut host, "default", "index", "all");
            assert_eq!(host.next_of(UPDATED)["params"]["uri"], "the:index");
            assert_eq!(read(&mut host, "the:index")["result"]["contents"][0]["text"], "all");
            let _ = host.call("keyvalue", json!({"op": "delete", "bucket": "default", "key": "a/b"}));
            assert_eq!(host.next_of(UPDATED)["params"]["uri"], "note:///a/b");
            for uri in ["note:///a/b", "note:///a%2Fb", "note:///index?x", "topic:index", "note:///%ff"] {
                assert_eq!(read(&mut host, uri)["error"]["code"], code, "{uri}");
            }
            // One batch changes more than is reported one by one: any of them may have changed.
            let batch = json!({"op": "set_many", "count": 300, "bytes": 1, "times": 1});
            let _ = host.call("keyvalue_batch", batch);
            let mut told: Vec<Value> = (0..4).map(|_| host.next_of(UPDATED)["params"]["uri"].clone()).collect();
            told.sort_by_key(Value::to_string);
            assert!(told.contains(&json!("note:///other")), "{told:?}");
            let records = host.audit();
            let reads = records.iter().filter(|record| record["event"] == "resource.read").count();
            assert!(reads >= 8, "{reads}");
        }
    }
}

#[test]
fn each_caller_reads_and_hears_of_its_own_entries() {
    let callers =
        "\n[http]\ntokens = \"tokens.jsonl\"\n[callers.ann]\ntools = [\"*\"]\n[callers.bob]\ntools = [\"*\"]\n";
    let folder = Folder::with_manifest(&format!("{}{callers}", manifest("best", "per_caller = true")));
    let bearer = |name: &str| {
        let made = Command::in_folder(&folder, &["token", "new", name]).run();
        format!("Bearer {}", made.succeeded().trim())
    };
    let ann = bearer("ann");
    let bob = bearer("bob");
    let host = WebHost::in_folder(folder.clone(), &["--http", "127.0.0.1:0"]);
    let mut streams: Vec<_> = [&ann, &bob]
        .into_iter()
        .map(|token| {
            let mut stream = host.connect();
            let wanted = json!({"notifications": {"resourceSubscriptions": ["note:///mine", "note:///last"]}});
            stream.send(&Ask::modern(7, "subscriptions/listen", wanted).with("authorization", token).bytes());
            assert_eq!(stream.head().status(), 200);
            assert_eq!(stream.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
            stream
        })
        .collect();
    let set = |token: &str, key: &str, value: &str| {
        let arguments = json!({"op": "set", "bucket": "default", "key": key, "value": value});
        host.ask(&Ask::call("keyvalue", arguments).with("authorization", token)).frame()
    };
    let read = |token: &str| {
        let uri = "note:///mine";
        let ask = Ask::modern(3, "resources/read", json!({"uri": uri})).with("mcp-name", uri);
        host.ask(&ask.with("authorization", token)).frame()
    };
    set(&ann, "mine", "ann's");
    assert_eq!(streams[0].event().unwrap()["params"]["uri"], "note:///mine");
    assert_eq!(read(&ann)["result"]["contents"][0]["text"], "ann's");
    assert_eq!(read(&ann)["result"]["cacheScope"], "private");
    assert_eq!(read(&bob)["error"]["code"], -32602, "he keeps nothing");
    set(&bob, "last", "bob's");
    assert_eq!(streams[1].event().unwrap()["params"]["uri"], "note:///last", "the first that he hears of");
}

#[test]
fn rules_for_entries_that_can_never_apply_are_refused() {
    let with = |rule: &str| {
        let manifest = manifest("none", "").replace("\"topic:{key}\" = { keyvalue = \"topics\" }", rule);
        format!("{:?}", Command::in_folder(&Folder::with_manifest(&manifest), &["check"]).run())
    };
    for (rule, part) in [
        ("\"t:{key}/more\" = { keyvalue = \"a\" }", "does not say which key"),
        ("\"t:{a}{b}\" = { keyvalue = \"a\" }", "does not say which key"),
        ("\"t:x\" = { keyvalue = \"a\" }", "does not say which key"),
        ("\"t:{key}\" = { keyvalue = \"a\", key = \"k\" }", "does not say which key"),
        ("\"t:{key}\" = { keyvalue = \"a b\" }", "is not a bucket name"),
        ("\"t:{key}\" = { keyvalue = \"a\", argument = \"uri\" }", "argument with keyvalue can never apply"),
        ("\"t:{key}\" = { tool = \"keyvalue\", key = \"k\" }", "key without keyvalue can never apply"),
    ] {
        assert!(with(rule).contains(part), "{rule}: {}", with(rule));
    }
}

fn completing(host: &mut TestHost, uri: &str, name: &str, value: &str) -> Value {
    let of = json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": name, "value": value}});
    host.request("completion/complete", of)["result"]["completion"].clone()
}

#[test]
fn paths_of_listed_files_are_completed_and_of_no_others() {
    let folder = resource_files::folder(&resource_files::manifest(""));
    folder.write("docs/100%.md", "a template cannot say it");
    folder.write("docs/deep/Plainer.md", "x");
    let mut host = TestHost::in_folder(folder);
    for revision in ["2025-11-25", MODERN_REVISION] {
        if revision != MODERN_REVISION {
            host.initialize(revision);
        }
        let mut complete = |typed: &str| completing(&mut host, "file:///docs/{+path}", "path", typed);
        let all = json!(["a b.md", "deep/Plainer.md", "deep/raw.bin", "in", "plain"]);
        assert_eq!(complete(""), json!({"values": all, "total": 5, "hasMore": false}), "{revision}");
        assert_eq!(complete("deep/p")["values"], json!(["deep/Plainer.md"]), "case does not count");
        for typed in [".", ".env", "out", "../", "/", "secret", "deep/../"] {
            assert_eq!(complete(typed)["values"], json!([]), "{typed}");
        }
    }
    // Files that are not listed are not completed either.
    let mut host = TestHost::in_folder(resource_files::folder(&resource_files::manifest(", files = 1")));
    host.initialize("2025-11-25");
    assert_eq!(completing(&mut host, "file:///docs/{+path}", "path", "")["values"], json!(["a b.md"]));
}

/// The schema of the tool that reads a template names the addresses there are: `enum` or `const`.
#[test]
fn addresses_that_a_schema_names_are_completed() {
    let rules = "[components.resources.resources]\n\"topic:///{topic}\" = { tool = \"look_at_some\" }\n\
                 \"only:///{+path}\" = { tool = \"look_at_one\" }\n\"none:///{topic}\" = { tool = \"touch\" }\n";
    for walls in ["best", "none"] {
        let server = format!("version = 1\n[server]\nwalls = \"{walls}\"\n");
        let manifest = manifest_of(&["resources"]).replace("version = 1\n", &server);
        let mut host = TestHost::recording(&format!("{manifest}{rules}"));
        for revision in ["2025-11-25", MODERN_REVISION] {
            if revision != MODERN_REVISION {
                host.initialize(revision);
            }
            let mut complete = |uri: &str, name: &str, typed: &str| completing(&mut host, uri, name, typed);
            let both = json!({"values": ["disk", "dns"], "total": 2, "hasMore": false});
            assert_eq!(complete("topic:///{topic}", "topic", ""), both, "{revision}: no other address fits");
            assert_eq!(complete("topic:///{topic}", "topic", "DN")["values"], json!(["dns"]), "case does not count");
            assert_eq!(complete("topic:///{topic}", "topic", "a")["values"], json!([]), "it holds a slash");
            assert_eq!(complete("only:///{+path}", "path", "o")["values"], json!(["one/two"]), "{revision}");
            assert_eq!(complete("topic:///{topic}", "other", ""), Value::Null);
        }
        let runs = host.audit().iter().filter(|record| record["event"] == "call.started").count();
        assert_eq!(runs, 0, "the host alone answered");
        // Where the schema names none, the component is asked.
        assert_eq!(completing(&mut host, "none:///{topic}", "topic", "x")["values"], json!(["x/found"]));
        let read = read(&mut host, "topic:///dns");
        assert_eq!(read["result"]["contents"][0]["text"], "look_at_some topic:///dns", "{read}");
        let refused = self::read(&mut host, "topic:///other")["error"].clone();
        assert_eq!(refused["code"], -32002, "the schema refuses others: {refused}");
    }
}

#[test]
fn callers_complete_paths_of_files_that_they_see() {
    let rules = "\n[callers.local]\ntools = [\"echo\"]\n";
    let mut host = TestHost::in_folder(resource_files::folder(&format!("{}{rules}", resource_files::manifest(""))));
    host.initialize("2025-11-25");
    let of = json!({"ref": {"type": "ref/resource", "uri": "file:///docs/{+path}"},
                    "argument": {"name": "path", "value": ""}});
    let error = host.request("completion/complete", of)["error"].clone();
    assert_eq!(error["message"], "Unknown resource template: file:///docs/{+path}");
}
