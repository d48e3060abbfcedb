//! Files of a mount as resources: listed, read, bounded, and read by those callers who may.

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, LEGACY_REVISIONS, MODERN_REVISION, TestHost, manifest_of};

/// Fixtures, one of which has a mount `/docs` whose files are resources; `more` holds further keys.
pub fn manifest(more: &str) -> String {
    let served = manifest_of(&["good", "reach_files"]).replace("fuel = 20_000_000\n", "fuel = 2_000_000_000\n");
    format!(
        "{served}[components.reach_files.filesystem]\n\"/docs\" = {{ path = \"docs\" }}\n\
         [components.reach_files.resources]\n\"file:///docs/{{+path}}\" = {{ mount = \"/docs\"{more} }}\n"
    )
}

/// A folder with this manifest and some files.
pub fn folder(manifest: &str) -> Folder {
    let folder = Folder::with_manifest(manifest);
    folder.make("docs/deep");
    folder.write("docs/a b.md", "# A");
    folder.write("docs/deep/raw.bin", b"\x00\xff");
    folder.write("docs/plain", "text");
    folder.write("docs/.env", "SECRET=1");
    folder.write("secret", "outside");
    folder.link("docs/out", "../secret");
    folder.link("docs/in", "plain");
    folder
}

fn uris(reply: &Value) -> Vec<&str> {
    let resources = reply["result"]["resources"].as_array().unwrap_or_else(|| panic!("no resources in {reply}"));
    resources.iter().map(|resource| resource["uri"].as_str().unwrap()).collect()
}

const LISTED: [&str; 4] =
    ["file:///docs/a%20b.md", "file:///docs/deep/raw.bin", "file:///docs/in", "file:///docs/plain"];

#[test]
fn files_of_a_mount_are_listed_and_read_in_every_revision() {
    for revision in LEGACY_REVISIONS.into_iter().chain([MODERN_REVISION]) {
        let more = ", title = \"Documents\", description = \"All of them.\"";
        let mut host = TestHost::recording_in(folder(&manifest(more)), &[]);
        if revision != MODERN_REVISION {
            let capabilities = host.initialize(revision)["capabilities"].clone();
            assert_eq!(capabilities["resources"], json!({"listChanged": true, "subscribe": true}));
        }
        let listed = host.request("resources/list", json!({}));
        assert_eq!(uris(&listed), LISTED, "{revision}");
        let first = json!({"uri": LISTED[0], "name": "a b.md", "mimeType": "text/markdown", "size": 3});
        assert_eq!(listed["result"]["resources"][0], first);
        let templates = host.request("resources/templates/list", json!({}));
        let template = &templates["result"]["resourceTemplates"][0];
        assert_eq!(template["uriTemplate"], "file:///docs/{+path}");
        assert_eq!((&template["name"], &template["description"]), (&json!("Documents"), &json!("All of them.")));
        let mut read = |uri: &str| host.request("resources/read", json!({"uri": uri}));
        for (uri, mime_type, key, content) in [
            (LISTED[0], "text/markdown", "text", "# A"),
            (LISTED[1], "application/octet-stream", "blob", "AP8="),
            (LISTED[2], "text/plain", "text", "text"),
            ("file:///docs/%70lain", "text/plain", "text", "text"),
        ] {
            let expected = json!([{"uri": uri, "mimeType": mime_type, key: content}]);
            let result = read(uri)["result"].clone();
            assert_eq!(result["contents"], expected, "{revision}");
            if revision == MODERN_REVISION {
                assert_eq!((&result["resultType"], &result["cacheScope"]), (&json!("complete"), &json!("public")));
                assert_eq!(result["ttlMs"], 0);
            }
        }
        let code = if revision == MODERN_REVISION { -32602 } else { -32002 };
        for rest in [
            "none",
            "out",
            "deep",
            ".env",
            "../secret",
            "%2e%2e/secret",
            "deep/../plain",
            "deep%2Fraw.bin",
            "..%2fsecret",
            "/plain",
            "plain/",
            "plain?x",
            "%00",
            "%",
            "",
        ] {
            let uri = format!("file:///docs/{rest}");
            let error = read(&uri)["error"].clone();
            assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(code), &json!(uri)), "{revision} {error}");
        }
        let records = host.audit();
        let outcomes: Vec<&str> = records
            .iter()
            .filter(|record| record["event"] == "resource.read" && record["component"] == "reach_files")
            .map(|record| record["outcome"].as_str().unwrap())
            .collect();
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == "read").count(), 4);
        assert!(outcomes.len() > 10, "each refusal is recorded as well: {outcomes:?}");
    }
}

#[test]
fn a_file_that_is_too_large_says_so_and_further_files_are_read_without_being_listed() {
    let host_folder = folder(&manifest(", file_size = \"3B\", files = 2"));
    let mut host = TestHost::in_folder(host_folder);
    host.initialize("2025-11-25");
    // Files of a folder come before those of the folders in it.
    assert_eq!(uris(&host.request("resources/list", json!({}))), [LISTED[0], LISTED[2]]);
    let error = host.request("resources/read", json!({"uri": LISTED[3]}))["error"].clone();
    let text = "Resource cannot be read: the file has more than 3 bytes (limit \"file_size\")";
    assert_eq!((&error["code"], &error["message"]), (&json!(-32603), &json!(text)), "it exists");
    assert_eq!(host.request("resources/read", json!({"uri": LISTED[0]}))["result"]["contents"][0]["text"], "# A");
}

#[test]
fn pages_of_files_follow_one_another_and_their_cursors_outlive_other_files() {
    let manifest = manifest("").replacen("\n\n", "\n\n[server]\npage_size = 2\n\n", 1);
    let mut host = TestHost::in_folder(folder(&manifest));
    host.initialize("2025-11-25");
    let first = host.request("resources/list", json!({}));
    assert_eq!(uris(&first), LISTED[..2]);
    let second = host.request("resources/list", json!({"cursor": first["result"]["nextCursor"]}));
    assert_eq!(uris(&second), LISTED[2..]);
    assert_eq!(second["result"]["nextCursor"], Value::Null);
}

#[test]
fn callers_read_files_where_they_may_call_every_tool_or_the_one_that_is_named() {
    let callers = "\n[http]\ntokens = \"tokens.jsonl\"\n[callers.ann]\ntools = [\"*\"]\n[callers.bob]\ntools = [\"stat\"]\n\
                   rate = \"2/h\"\n";
    for (more, bob_reads) in [("", false), (", tool = \"stat\"", true)] {
        let folder = folder(&format!("{}{callers}", manifest(more)));
        let bearer = |name: &str| {
            let made = Command::in_folder(&folder, &["token", "new", name]).run();
            format!("Bearer {}", made.succeeded().trim())
        };
        let ann = bearer("ann");
        let bob = bearer("bob");
        let host = WebHost::in_folder(folder.clone(), &["--http", "127.0.0.1:0"]);
        let read = |token: &str| {
            let uri = "file:///docs/plain";
            let ask = Ask::modern(3, "resources/read", json!({"uri": uri})).with("mcp-name", uri);
            host.ask(&ask.with("authorization", token)).frame()
        };
        let listed = |token: &str, method: &str| {
            host.ask(&Ask::modern(4, method, json!({})).with("authorization", token)).frame()["result"].clone()
        };
        assert_eq!(read(&ann)["result"]["contents"][0]["text"], "text");
        assert_eq!(read(&ann)["result"]["cacheScope"], "private", "it depends on the caller");
        assert_eq!(listed(&ann, "resources/templates/list")["cacheScope"], "private");
        let files = listed(&bob, "resources/list")["resources"].as_array().unwrap().len();
        let templates = listed(&bob, "resources/templates/list")["resourceTemplates"].as_array().unwrap().len();
        assert_eq!((files, templates), if bob_reads { (4, 1) } else { (0, 0) });
        if bob_reads {
            for _ in 0..2 {
                assert_eq!(read(&bob)["result"]["contents"][0]["text"], "text");
            }
            let refused = read(&bob);
            assert!(refused["error"]["message"].as_str().unwrap().contains("2/h"), "{refused}");
        } else {
            assert_eq!(read(&bob)["error"]["code"], -32602);
        }
    }
}

#[test]
fn a_listing_without_callers_is_public_where_nobody_keeps_resources() {
    let host = WebHost::in_folder(folder(&manifest("")), &["--http", "127.0.0.1:0"]);
    for method in ["resources/list", "resources/templates/list"] {
        let result = host.ask(&Ask::modern(1, method, json!({}))).frame()["result"].clone();
        assert_eq!((&result["cacheScope"], &result["ttlMs"]), (&json!("public"), &json!(0)), "{method}");
    }
}

#[test]
fn input_that_ends_at_once_still_has_its_files_answered() {
    let mut host = TestHost::in_folder(folder(&manifest("")));
    let id = host.start("resources/read", json!({"uri": "file:///docs/plain"}));
    host.close_input();
    let frames = host.ends().frames();
    let answer = frames.iter().find(|frame| frame["id"] == id).unwrap_or_else(|| panic!("{frames:?}"));
    assert_eq!(answer["result"]["contents"][0]["text"], "text");
}
