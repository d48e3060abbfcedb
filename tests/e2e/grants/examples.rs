//! The examples that use grants, as a person would run them: with the grant, without it, and at the
//! grant's boundary.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toolcell_tests::loopback::HttpServer;
use toolcell_tests::{Folder, TestHost};

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
    let (server, other) = (HttpServer::start(), HttpServer::start());
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
