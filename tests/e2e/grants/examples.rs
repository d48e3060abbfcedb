//! The examples that use grants, as a person would run them: with the grant, without it, and at the
//! grant's boundary.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::{Folder, TestHost, patience};

/// A folder with this example's component, and a manifest that serves it with these tables.
fn example(name: &str, tables: &str) -> Folder {
    let manifest = format!(
        "version = 1\n\n[components.{name}]\nsource = \"{name}.wasm\"\n\n{}",
        tables.replace("{c}", &format!("components.{name}"))
    );
    let folder = Folder::with_manifest(&manifest);
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-examples/components").join(format!("{name}.wasm"));
    fs::copy(&built, folder.path().join(format!("{name}.wasm")))
        .unwrap_or_else(|error| panic!("{}: {error}; run `make guests`", built.display()));
    folder
}

fn error_of(host: &mut TestHost, tool: &str, arguments: Value) -> String {
    let answer = host.call(tool, arguments);
    assert!(answer.is_error(), "{}", answer.everything());
    let content = answer.result()["content"].as_array().unwrap().clone();
    content.iter().map(|piece| piece["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

#[test]
fn file_search_finds_what_the_mount_holds() {
    let folder = example("file_search", "[{c}.filesystem]\n\"/files\" = { path = \"docs\" }\n");
    folder.write("docs/tea.md", "# Tea\n\nThe kettle is blue.\n");
    folder.write("docs/sub/more.md", "no such word\nkettle, twice\n");
    folder.write("beside.md", "kettle outside\n");
    folder.link("docs/out", "..");
    folder.link("docs/out.md", "../beside.md");
    let mut host = TestHost::recording_in(folder, &[]);
    let answer = host.call("file_search", json!({"pattern": "kettle"}));
    let places: Vec<String> = answer.structured()["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| format!("{}:{}", hit["path"].as_str().unwrap(), hit["line"]))
        .collect();
    assert_eq!(places, ["sub/more.md:2", "tea.md:3"]);
    let error = error_of(&mut host, "file_search", json!({"pattern": "kettle", "path": "out"}));
    assert!(error.contains("there is no \"out\""), "{error}");
}

#[test]
fn file_search_says_what_is_missing_without_its_mount() {
    let mut host = TestHost::recording_in(example("file_search", ""), &[]);
    let error = error_of(&mut host, "file_search", json!({"pattern": "kettle"}));
    assert!(
        error.starts_with("there is no folder to search: the server's manifest gives this tool none at /files"),
        "{error}"
    );
}

const NOTES: &str = r#"
[{c}.filesystem]
"/notes" = { path = "notes", access = "write", quota = "16KiB", files = 3, create = true }

[{c}.tools.notes_read]
filesystem = { "/notes" = { access = "read" } }
"#;

#[test]
fn file_notes_keeps_notes_as_files() {
    let mut host = TestHost::recording_in(example("file_notes", NOTES), &[]);
    assert_eq!(host.call("notes_write", json!({"note": "tea", "text": "green\n"})).text(), "\"tea\" holds 6 bytes.");
    assert_eq!(host.call("notes_append", json!({"note": "tea", "text": "black\n"})).text(), "\"tea\" holds 12 bytes.");
    assert_eq!(host.call("notes_read", json!({"note": "tea"})).text(), "green\nblack\n");
    assert_eq!(host.folder().read("notes/tea.md"), "green\nblack\n");
    assert_eq!(host.call("notes_list", json!({})).structured(), &json!({"notes": [{"note": "tea", "bytes": 12}]}));
    assert_eq!(host.call("notes_delete", json!({"note": "tea"})).text(), "\"tea\" is deleted.");
    assert_eq!(host.folder().tree("notes").len(), 1, "{:?}", host.folder().tree("notes"));
}

#[test]
fn file_notes_says_that_it_is_full_and_loses_nothing() {
    let mut host = TestHost::recording_in(example("file_notes", NOTES), &[]);
    let long = "n".repeat(15_000);
    assert!(!host.call("notes_write", json!({"note": "long", "text": long})).is_error());
    for tool in ["notes_write", "notes_append"] {
        let error = error_of(&mut host, tool, json!({"note": "long", "text": "m".repeat(9_000)}));
        assert!(error.starts_with("there is no room left to keep \"long\""), "{error}");
        assert_eq!(host.folder().read("notes/long.md"), long, "{tool}");
        assert_eq!(host.folder().tree("notes").len(), 2, "a draft was left: {:?}", host.folder().tree("notes"));
    }
}

#[test]
fn file_notes_says_what_is_missing_without_its_mount() {
    let mut host = TestHost::recording_in(example("file_notes", ""), &[]);
    for tool in ["notes_list", "notes_read"] {
        let error =
            error_of(&mut host, tool, json!(if tool == "notes_list" { json!({}) } else { json!({"note": "tea"}) }));
        assert!(error.starts_with("there is no folder for notes"), "{tool}: {error}");
    }
}

#[test]
fn fetch_page_reads_what_its_rules_allow() {
    let server = HttpServer::start();
    let address = server.address();
    let tables = format!("[{{c}}.network]\nhttp = [\"GET http://{address}/*\"]\nprivate = [\"{address}\"]\n");
    let mut host = TestHost::recording_in(example("fetch_page", &tables), &[]);
    let answer = host.call("fetch_page", json!({"url": server.url("/some/page?q=1")}));
    assert!(
        answer.result()["content"][0]["text"].as_str().unwrap().contains("\"target\":\"/some/page?q=1\""),
        "{}",
        answer.everything()
    );
    assert_eq!(answer.structured()["status"], 200);
    let moved = host.call("fetch_page", json!({"url": server.url("/redirect?/there")}));
    assert_eq!(moved.structured()["url"], server.url("/there"));
    let error = error_of(&mut host, "fetch_page", json!({"url": server.url("/status/404")}));
    assert!(error.contains("as asked"), "{error}");
}

#[test]
fn fetch_page_tells_the_model_what_it_may_not_fetch() {
    let server = HttpServer::start();
    let other = HttpServer::start();
    let address = server.address();
    let tables = format!("[{{c}}.network]\nhttp = [\"GET http://{address}/docs/*\"]\nprivate = [\"{address}\"]\n");
    let mut host = TestHost::recording_in(example("fetch_page", &tables), &[]);
    for url in [
        server.url("/private"),
        other.url("/docs/x"),
        server.url(&format!("/docs/../redirect?{}", other.url("/stolen"))),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ] {
        let error = error_of(&mut host, "fetch_page", json!({"url": url}));
        assert!(
            error.contains("denied: GET http://") && error.contains("no rule of tool \"fetch_page\" allows it"),
            "{url}: {error}"
        );
    }
    assert_eq!((server.connections(), other.connections()), (0, 0));
}

const TEA: &str = "library:///tea.md";

fn card(host: &mut TestHost, uri: &str) -> Value {
    let read = host.request("resources/read", json!({"uri": uri}));
    assert!(read.get("error").is_none(), "{read}");
    read["result"]["contents"][0]["text"].clone()
}

#[test]
fn library_keeps_cards_tells_of_them_and_indexes_as_a_task() {
    let tables = "task = \"0ms\"\n[{c}.filesystem]\n\"/library\" = { path = \"docs\" }\n[{c}.keyvalue]\n";
    let folder = example("library", tables);
    folder.write("docs/tea.md", "# Tea\n\nThe kettle is blue.\n");
    folder.write("docs/how to/descale.md", "# Descale\n");
    let mut host = TestHost::recording_in(folder, &[]);
    host.start("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [TEA]}}));
    host.next_of("notifications/subscriptions/acknowledged");
    // A client that cannot take a task waits for the call, and hears how far it is.
    let call = json!({"name": "library_index", "arguments": {}, "_meta": {"progressToken": "index"}});
    let answer = host.request("tools/call", call);
    assert_eq!(answer["result"]["structuredContent"]["added"], json!(["how to/descale.md", "tea.md"]), "{answer}");
    let told: Vec<Value> =
        (0..2).map(|_| host.next_of("notifications/progress")["params"]["message"].clone()).collect();
    assert_eq!(told, ["1 of 2: how to/descale.md", "2 of 2: tea.md"]);
    assert_eq!(host.next_of("notifications/resources/updated")["params"]["uri"], TEA);
    assert_eq!(card(&mut host, TEA), "# Tea\n\ntea.md, 5 words\n\n- Tea\n");
    assert_eq!(
        card(&mut host, "library:///how%20to/descale.md"),
        "# Descale\n\nhow to/descale.md, 1 word\n\n- Descale\n"
    );
    let list = card(&mut host, "library:///");
    assert!(list.as_str().unwrap().contains("- [Descale](library:///how%20to/descale.md), 1 word\n"), "{list}");
    // As a task.
    host.folder().write("docs/tea.md", "# Green tea\n");
    let declared =
        json!({"io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}});
    let begun = host.request("tools/call", json!({"name": "library_index", "arguments": {}, "_meta": declared}));
    let task = begun["result"]["taskId"].clone();
    assert!(task.is_string(), "{begun}");
    let until = Instant::now() + patience();
    let done = loop {
        let now = host.request("tasks/get", json!({"taskId": task, "_meta": declared}))["result"].clone();
        // One that is as short as this may end before it says anything.
        let said = now["statusMessage"].as_str().unwrap_or_default();
        assert!(said.is_empty() || now["status"] != "working" || said.contains(" of 2: "), "{now}");
        if now["status"] != "working" {
            break now;
        }
        assert!(Instant::now() < until, "{now}");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["structuredContent"]["changed"], json!(["tea.md"]), "{done}");
    assert_eq!(host.next_of("notifications/resources/updated")["params"]["uri"], TEA);
    assert_eq!(card(&mut host, TEA), "# Green tea\n\ntea.md, 2 words\n\n- Green tea\n");
}

#[test]
fn library_has_a_prompt_whose_arguments_are_completed() {
    let tables = "[{c}.filesystem]\n\"/library\" = { path = \"docs\" }\n[{c}.keyvalue]\n";
    let folder = example("library", tables);
    folder.write("docs/tea.md", "# Tea\n\nThe kettle is blue.\n");
    folder.write("secret.md", "# Secret\n");
    let mut host = TestHost::recording_in(folder, &[]);
    let _ = host.call("library_index", json!({})).structured();
    let mut complete = |of: Value, name: &str, typed: &str| {
        let typed = json!({"ref": of, "argument": {"name": name, "value": typed}});
        host.request("completion/complete", typed)["result"]["completion"]["values"].clone()
    };
    let prompt = json!({"type": "ref/prompt", "name": "study"});
    assert_eq!(complete(prompt.clone(), "document", "T"), json!(["tea.md"]));
    assert_eq!(complete(prompt, "reader", "a c"), json!(["a child"]));
    assert_eq!(complete(json!({"type": "ref/resource", "uri": "library:///{+path}"}), "path", ""), json!(["tea.md"]));
    let mut get = |document: &str| {
        host.request("prompts/get", json!({"name": "study", "arguments": {"document": document, "reader": "a child"}}))
    };
    let got = get("tea.md");
    let messages = got["result"]["messages"].as_array().unwrap_or_else(|| panic!("{got}"));
    assert_eq!(messages[0]["content"]["resource"]["uri"], TEA);
    assert_eq!(messages[1]["content"]["text"], "# Tea\n\nThe kettle is blue.\n");
    assert!(messages[2]["content"]["text"].as_str().unwrap().contains("to a child"), "{got}");
    for other in ["milk.md", "../secret.md", "/secret.md"] {
        assert_eq!(get(other)["error"]["code"], -32602, "{other}");
    }
}

#[test]
fn library_says_which_grant_is_missing() {
    let mounted = "[{c}.filesystem]\n\"/library\" = { path = \"docs\" }\n";
    for (tables, part) in [("", "gives this tool no folder at /library"), (mounted, "lets this tool keep no cards")] {
        let folder = example("library", tables);
        folder.write("docs/tea.md", "# Tea\n");
        let mut host = TestHost::recording_in(folder, &[]);
        let error = error_of(&mut host, "library_index", json!({}));
        assert!(error.contains(part), "{error}");
    }
}
