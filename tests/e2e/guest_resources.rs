//! Resources that components declare: listed, read by running them, pinned, and never another's.

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, LEGACY_REVISIONS, MODERN_REVISION, Saving, TestHost, manifest_of};

const UPDATED: &str = "notifications/resources/updated";

fn uris<'r>(reply: &'r Value, list: &str, uri: &str) -> Vec<&'r str> {
    let resources = reply["result"][list].as_array().unwrap_or_else(|| panic!("no {list} in {reply}"));
    resources.iter().map(|resource| resource[uri].as_str().unwrap()).collect()
}

fn listed(host: &mut TestHost) -> Vec<String> {
    let reply = host.request("resources/list", json!({}));
    uris(&reply, "resources", "uri").into_iter().map(str::to_owned).collect()
}

fn read(host: &mut TestHost, uri: &str) -> Value {
    host.request("resources/read", json!({"uri": uri}))
}

fn text(reply: &Value) -> &str {
    reply["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {reply}"))
}

/// The manifest of these fixtures, with walls or without.
fn walled(walls: &str, fixtures: &[&str]) -> String {
    let server = format!("version = 1\n[server]\nwalls = \"{walls}\"\n");
    manifest_of(fixtures).replace("version = 1\n", &server)
}

#[test]
fn resources_of_a_component_are_listed_and_read_in_every_revision() {
    for revision in LEGACY_REVISIONS.into_iter().chain([MODERN_REVISION]) {
        for walls in ["best", "none"] {
            let mut host = TestHost::recording(&walled(walls, &["resources"]));
            if revision != MODERN_REVISION {
                let capabilities = host.initialize(revision)["capabilities"].clone();
                assert_eq!(capabilities["resources"], json!({"listChanged": true, "subscribe": true}), "{revision}");
            }
            let reply = host.request("resources/list", json!({}));
            let own = ["index", "picture", "asks", "large", "badly", "fails", "loops"];
            assert_eq!(uris(&reply, "resources", "uri"), own.map(|name| format!("own:///{name}")));
            let index = &reply["result"]["resources"][0];
            assert_eq!((&index["name"], &index["description"]), (&json!("index"), &json!("All topics.")));
            assert_eq!((&index["size"], &index["mimeType"]), (&json!(5), &json!("text/plain")), "{revision}");
            let since =
                |member: &str, first: &str| assert_eq!(index.get(member).is_some(), revision >= first, "{member}");
            since("title", "2025-06-18");
            since("_meta", "2025-06-18");
            since("icons", "2025-11-25");
            let templates = host.request("resources/templates/list", json!({}));
            let addresses = uris(&templates, "resourceTemplates", "uriTemplate");
            assert_eq!(addresses, ["own:///topics/{topic}", "own:///found/{+path}"]);
            let reply = read(&mut host, "own:///index");
            let contents = &reply["result"]["contents"][0];
            assert_eq!(contents["text"], "disk\n", "{revision} {reply}");
            assert_eq!(contents["mimeType"], "text/plain", "that of its definition");
            let meta = (revision >= "2025-06-18").then(|| json!({"example/of": "index"}));
            assert_eq!(contents.get("_meta"), meta.as_ref(), "without the protocol's own keys");
            let picture = read(&mut host, "own:///picture")["result"]["contents"].clone();
            assert_eq!(picture[0], json!({"uri": "own:///picture", "mimeType": "image/png", "blob": "iVBORw=="}));
            assert_eq!(
                (&picture[1]["uri"], &picture[1]["text"]),
                (&json!("own:///picture#caption"), &json!("A disk."))
            );
            assert_eq!(text(&read(&mut host, "own:///topics/disk")), "read own:///topics/disk");
            assert_eq!(text(&read(&mut host, "own:///found/a/b")), "read own:///found/a/b");
            let code = if revision == MODERN_REVISION { -32602 } else { -32002 };
            for uri in ["own:///other", "own:///topics/a/b", "own:///topics/", "own:///found/", "resources/resources"] {
                let error = read(&mut host, uri)["error"].clone();
                assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(code), &json!(uri)), "{revision} {error}");
            }
            let call = host
                .request("tools/call", json!({"name": "resources/resources", "arguments": {"uri": "own:///index"}}));
            assert_eq!(call["error"]["message"], "Unknown tool: resources/resources", "what reads them is no tool");
            let records = host.audit();
            let started = records.iter().filter(|record| record["event"] == "call.started").collect::<Vec<_>>();
            assert_eq!(started.len(), 4, "what is not declared runs nothing");
            assert_eq!(
                (&started[0]["tool"], &started[0]["component"]),
                (&json!("resources/resources"), &json!("resources"))
            );
        }
    }
}

#[test]
fn a_reading_that_fails_says_why_and_limits_hold() {
    for walls in ["best", "none"] {
        let manifest = walled(walls, &["resources"]).replace("memory = \"16MiB\"", "memory = \"64MiB\"");
        let mut host = TestHost::with_manifest(&manifest.replace("fuel = 20_000_000", "fuel = 500_000_000"));
        for (name, part) in [
            ("fails", "the well is dry"),
            ("loops", "(limit \"fuel\")"),
            ("badly", "meta-json of content item 0 is not a JSON object"),
            ("large", "(limit \""),
        ] {
            let error = read(&mut host, &format!("own:///{name}"))["error"].clone();
            let message = error["message"].as_str().unwrap_or_else(|| panic!("{name} {walls}: no error"));
            assert!(message.starts_with("Resource cannot be read: ") && message.contains(part), "{name} {error}");
            assert_eq!(error["code"], -32603, "it exists: {error}");
        }
        assert_eq!(text(&read(&mut host, "own:///index")), "disk\n");
    }
}

#[test]
fn a_reading_asks_as_a_tool_does() {
    let mut host = TestHost::serving(&["resources"]);
    let capabilities = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}});
    let mut params = json!({"uri": "own:///asks", "_meta": capabilities});
    let first = host.request("resources/read", params.clone());
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    params["requestState"] = first["result"]["requestState"].clone();
    params["inputResponses"] = json!({"topic": {"action": "accept", "content": {"topic": "tea"}}});
    assert!(text(&host.request("resources/read", params)).contains("tea"));
}

#[test]
fn variables_are_completed_from_the_definition_and_by_the_component() {
    let mut host = TestHost::serving(&["resources"]);
    for revision in ["2025-11-25", MODERN_REVISION] {
        if revision != MODERN_REVISION {
            host.initialize(revision);
        }
        let mut complete = |uri: &str, name: &str| {
            let of = json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": name, "value": "d"}});
            host.request("completion/complete", of)
        };
        let known = complete("own:///topics/{topic}", "topic")["result"]["completion"].clone();
        assert_eq!(known, json!({"values": ["disk", "dns"], "total": 2, "hasMore": false}), "{revision}");
        let found = complete("own:///found/{+path}", "path")["result"]["completion"]["values"].clone();
        assert_eq!(found, json!(["d/found"]), "{revision}");
        assert_eq!(complete("own:///found/{+path}", "other")["error"]["code"], -32602);
        assert_eq!(complete("own:///none/{+path}", "path")["error"]["code"], -32602);
    }
}

#[test]
fn ten_thousand_declared_resources_are_refused_and_fewer_are_listed_page_by_page() {
    let manifest = manifest_of(&["list_resources"]).replace("fuel = 20_000_000", "fuel = 2_000_000_000");
    let refused = Command::in_folder(&Folder::with_manifest(&manifest), &["check"]).run();
    let said = format!("{refused:?}");
    assert!(said.contains("lists 10000 tools, prompts and resources; a component may list 1000"), "{said}");
    let mut host = TestHost::with_manifest(&format!("{manifest}[components.list_resources.load]\ntools = 10_000\n"));
    let mut cursor = Value::Null;
    let mut all = 0;
    let mut pages = 0;
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        let reply = host.request("resources/list", params);
        let page = uris(&reply, "resources", "uri").len();
        (all, pages) = (all + page, pages + 1);
        assert!(page > 0 && serde_json::to_vec(&reply).unwrap().len() < 512 << 10, "{page}");
        cursor = reply["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(all, 9_997, "and three templates");
    assert!(pages > 1);
}

/// A component declares addresses of another one, and of the manifest.
#[test]
fn nobody_reads_another_address_because_of_what_a_component_declares() {
    let mut manifest = manifest_of(&["resources", "list_resources", "conformance"]);
    manifest = manifest.replace("fuel = 20_000_000", "fuel = 2_000_000_000");
    manifest.push_str("[components.list_resources.load]\ntools = 10_000\n");
    manifest.push_str("[components.conformance.resources]\n\"note:///{name}\" = { tool = \"read_resource\" }\n");
    let mut host = TestHost::with_manifest(&manifest);
    host.initialize("2025-11-25");
    let all = listed(&mut host);
    assert!(!all.contains(&"own:///index".to_owned()), "two components declare it, so it is neither's");
    assert!(all.contains(&"own:///picture".to_owned()));
    for uri in ["own:///index", "own:///picture", "own:///topics/disk"] {
        let error = read(&mut host, uri)["error"].clone();
        assert_eq!(error["code"], -32002, "{uri}: {error}");
    }
    let manifests = read(&mut host, "note:///index").to_string();
    assert!(!manifests.contains("forged"), "the manifest's template comes first: {manifests}");
    assert_eq!(text(&read(&mut host, "note:///deep/er")), "forged note:///deep/er", "nobody else's");
}

#[test]
fn a_running_call_tells_of_its_own_addresses_and_of_no_others() {
    for revision in ["2025-11-25", MODERN_REVISION] {
        for walls in ["best", "none"] {
            let mut manifest =
                walled(walls, &["resources", "good"]).replace("fuel = 20_000_000", "fuel = 5_000_000_000");
            manifest
                .push_str("[components.good.resources]\n\"note:///{x}\" = { tool = \"echo\", argument = \"text\" }\n");
            let mut host = TestHost::with_manifest(&manifest);
            let watched = ["own:///index", "own:///topics/7", "note:///x", "other:///x"];
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
            for other in ["note:///x", "other:///x", "", &"own:///topics/".repeat(300)] {
                let _ = host.call("touch", json!({"uri": other}));
            }
            let _ = host.call("touch", json!({"uri": "own:///topics/%37"}));
            assert_eq!(host.next_of(UPDATED)["params"]["uri"], "own:///topics/7", "{revision} {walls}");
            // A loop: far more than is reported one by one. Every address of the component is
            // reported, once in a while, and nobody else's is.
            let _ = host.call("touch", json!({"uri": "own:///topics/NUMBER", "times": 100_000}));
            let mut told = vec![host.next_of(UPDATED)["params"]["uri"].clone()];
            told.push(host.next_of(UPDATED)["params"]["uri"].clone());
            told.sort_by_key(Value::to_string);
            assert_eq!(told, [json!("own:///index"), json!("own:///topics/7")], "{revision} {walls}");
            host.still_works();
            let kept = host.kept();
            let of_others = kept.iter().filter(|frame| frame["method"] == UPDATED);
            let of_others = of_others.filter(|frame| !frame["params"]["uri"].as_str().unwrap().starts_with("own:"));
            assert_eq!(of_others.count(), 0, "{revision} {walls}");
        }
    }
}

#[test]
fn callers_read_a_components_resources_where_they_may_call_all_of_its_tools() {
    let callers =
        "\n[http]\ntokens = \"tokens.jsonl\"\n[callers.ann]\ntools = [\"*\"]\n[callers.bob]\ntools = [\"echo\"]\n";
    let folder = Folder::with_manifest(&format!("{}{callers}", manifest_of(&["resources", "good"])));
    let bearer = |name: &str| {
        let made = Command::in_folder(&folder, &["token", "new", name]).run();
        format!("Bearer {}", made.succeeded().trim())
    };
    let ann = bearer("ann");
    let bob = bearer("bob");
    let host = WebHost::in_folder(folder.clone(), &["--http", "127.0.0.1:0"]);
    let ask = |token: &str, method: &str, uri: Option<&str>| {
        let params = uri.map_or(json!({}), |uri| json!({"uri": uri}));
        let ask = Ask::modern(3, method, params).with("authorization", token);
        let ask = uri.into_iter().fold(ask, |ask, uri| ask.with("mcp-name", uri));
        host.ask(&ask).frame()
    };
    assert_eq!(text(&ask(&ann, "resources/read", Some("own:///index"))), "disk\n");
    let list = ask(&ann, "resources/list", None);
    assert_eq!(uris(&list, "resources", "uri").len(), 7);
    assert_eq!(list["result"]["cacheScope"], "private");
    assert_eq!(uris(&ask(&bob, "resources/list", None), "resources", "uri"), [""; 0]);
    assert_eq!(uris(&ask(&bob, "resources/templates/list", None), "resourceTemplates", "uriTemplate"), [""; 0]);
    assert_eq!(ask(&bob, "resources/read", Some("own:///index"))["error"]["code"], -32602);
}

#[test]
fn declared_resources_are_pinned_and_shown() {
    let folder = Folder::with_manifest(&manifest_of(&["resources"]));
    let _ = Command::in_folder(&folder, &["lock"]).run().succeeded();
    let lock = folder.read("toolcell.lock");
    for part in ["resources/resources", "own:///topics/{topic}", "example/kind"] {
        assert!(lock.contains(part), "{part} is not in {lock}");
    }
    let inspected = Command::in_folder(&folder, &["inspect", "components/resources.wasm"]).run();
    let inspected = inspected.succeeded();
    let part = "\nresources\n  own:///index\n      Index (text/plain)\n  own:///picture\n      picture (text/plain)\n";
    assert!(inspected.contains(part), "{inspected}");
    assert!(
        inspected.contains("\n  own:///topics/{topic}\n      topic (text/plain)\n      variable  topic: disk, dns\n"),
        "{inspected}"
    );
    let inspected = Command::in_folder(&folder, &["inspect", "components/resources.wasm", "--json"]).run().json();
    let topics = inspected["resources"].as_array().unwrap().iter().find(|one| one["name"] == "topic").unwrap();
    assert_eq!(
        *topics,
        json!({
            "uri": "own:///topics/{topic}", "name": "topic", "title": null, "description": null,
            "mimeType": "text/plain", "values": {"topic": ["disk", "dns"]},
        })
    );
    let listed = Command::in_folder(&folder, &["list"]).run();
    assert!(listed.succeeded().contains("  Index [resource of resources]\n"), "{listed:?}");
}

#[test]
fn a_component_that_drifts_keeps_the_resources_that_are_pinned() {
    let folder = Folder::with_manifest(
        &manifest_of(&["resources", "good"]).replace("[components.resources]", "[components.mine]"),
    );
    let _ = Command::in_folder(&folder, &["lock"]).run().succeeded();
    let mut host = TestHost::with_options(folder, &["--locked"]);
    host.initialize("2025-11-25");
    assert_eq!(text(&read(&mut host, "own:///index")), "disk\n");
    host.folder().save(Saving::RenamedOver, "components/resources.wasm", toolcell_tests::fixture_bytes("prompts"));
    let _ = host.reload();
    assert_eq!(host.status()["quarantined"][0]["component"], "mine");
    assert_eq!(text(&read(&mut host, "own:///index")), "disk\n", "the pinned one reads");
    assert_eq!(listed(&mut host).len(), 7);
}

#[test]
fn a_reload_that_declares_others_tells_that_the_list_changed() {
    let mut host = TestHost::serving(&["resources"]);
    host.initialize("2025-11-25");
    assert_eq!(host.request("resources/subscribe", json!({"uri": "own:///index"}))["result"], json!({}));
    host.folder().save(Saving::RenamedOver, "components/resources.wasm", toolcell_tests::fixture_bytes("good"));
    host.next_of("notifications/resources/list_changed");
    assert_eq!(host.next_of(UPDATED)["params"]["uri"], "own:///index", "it is gone");
    assert_eq!(listed(&mut host), [""; 0]);
}
