//! Views of tools' results (MCP Apps): their documents, what they may reach, the tools that name
//! them, and the text that each result needs besides them.

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, LEGACY_REVISIONS, MODERN_REVISION, Saving, TestHost, manifest_of};

/// A change of a folder, before a case.
type Change<'c> = &'c dyn Fn(&Folder);

const PAGE: &str = "<!doctype html><title>A page</title>";
const VIEW: &str = "ui://views/page";
const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// `picture_and_text`, `picture_alone`, `value_alone`, `blank` and `fails` name a view of a file.
/// `names_its_own` names one that the tool `page` reads.
const APPS: &str = r#"
[apps."ui://views/page"]
file = "page.html"
title = "Page"
csp = { connect_domains = ["https://api.example.com"] }
permissions = ["clipboard-write"]
prefers_border = true
[apps."ui://views/own"]
csp = { resource_domains = ["https://cdn.example.com"] }
[components.views.resources]
"ui://views/own" = { tool = "page", argument = "uri", mime_type = "text/html;profile=mcp-app" }
[components.views.tools]
picture_and_text = { app = "ui://views/page", visibility = ["app"] }
picture_alone = { app = "ui://views/page" }
value_alone = { app = "ui://views/page" }
blank = { app = "ui://views/page" }
fails = { app = "ui://views/page" }
"#;

fn folder(more: &str) -> Folder {
    let folder = Folder::with_manifest(&format!("{}{APPS}{more}", manifest_of(&["good", "views"])));
    folder.write("page.html", PAGE);
    folder
}

fn definition<'t>(tools: &'t [Value], name: &str) -> &'t Value {
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name} in {tools:?}"))
}

#[test]
fn a_view_is_named_by_its_tools_and_read_with_what_it_may_reach() {
    for revision in LEGACY_REVISIONS.into_iter().chain([MODERN_REVISION]) {
        let mut host = TestHost::in_folder(folder(""));
        let greeting = match revision {
            MODERN_REVISION => host.request("server/discover", json!({})),
            legacy => host.initialize(legacy),
        };
        let capabilities = &greeting.get("result").unwrap_or(&greeting)["capabilities"];
        assert_eq!(capabilities["extensions"], json!({"io.modelcontextprotocol/ui": {}}), "{revision} {greeting}");
        let tools = host.list();
        // Revisions up to 2025-03-26 have no `_meta` of definitions and contents.
        let has_meta = revision >= "2025-06-18";
        let ui = |name: &str| definition(&tools, name)["_meta"]["ui"].clone();
        if has_meta {
            assert_eq!(ui("picture_and_text"), json!({"resourceUri": VIEW, "visibility": ["app"]}), "{revision}");
            assert_eq!(ui("picture_alone"), json!({"resourceUri": VIEW}));
            assert_eq!(ui("names_its_own"), json!({"resourceUri": "ui://views/own"}), "by the guest's definition");
        }
        let read = host.request("resources/read", json!({"uri": VIEW}));
        let contents = &read["result"]["contents"][0];
        assert_eq!((&contents["text"], &contents["mimeType"]), (&json!(PAGE), &json!(MIME_TYPE)), "{read}");
        let reach = json!({
            "csp": {"connectDomains": ["https://api.example.com"]},
            "permissions": {"clipboardWrite": {}},
            "prefersBorder": true,
        });
        assert_eq!(contents.get("_meta"), has_meta.then_some(&json!({"ui": reach})), "{revision} {read}");
        let listed = host.request("resources/list", json!({}));
        let listed = listed["result"]["resources"].as_array().unwrap();
        let page = listed.iter().find(|resource| resource["uri"] == VIEW).unwrap();
        assert_eq!((&page["name"], &page["mimeType"]), (&json!("page"), &json!(MIME_TYPE)), "{listed:?}");
        let own = host.request("resources/read", json!({"uri": "ui://views/own"}));
        let own = &own["result"]["contents"][0];
        assert_eq!(own["mimeType"], MIME_TYPE, "{own}");
        assert!(own["text"].as_str().unwrap().contains("By a tool"), "{own}");
        let reach = json!({"ui": {"csp": {"resourceDomains": ["https://cdn.example.com"]}}});
        assert_eq!(own.get("_meta"), has_meta.then_some(&reach), "the manifest says what it may reach");
    }
}

#[test]
fn a_tool_with_a_view_answers_with_a_text_as_well() {
    for walls in ["best", "none"] {
        let folder = folder("");
        let walled = folder
            .read("toolcell.toml")
            .replace("version = 1\n", &format!("version = 1\n[server]\nwalls = \"{walls}\"\n"));
        folder.write("toolcell.toml", walled);
        let mut host = TestHost::in_folder(folder);
        for (tool, is_error) in
            [("picture_and_text", false), ("value_alone", false), ("picture_alone", true), ("blank", true)]
        {
            let answer = host.call(tool, json!({}));
            let result = &answer.reply()["result"];
            assert_eq!(result["isError"] == true, is_error, "{walls} {tool} {result}");
            let texts = result["content"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
            assert!(texts.clone().any(|text| !text.trim().is_empty()), "{walls} {tool} {result}");
            if is_error {
                assert!(texts.clone().any(|text| text.contains("its result needs a text")), "{result}");
            }
        }
        let failed = host.call("fails", json!({}));
        assert_eq!(failed.reply()["result"]["content"][0]["type"], "image", "an error is shown as it is");
        assert_eq!(host.call("names_none", json!({})).reply()["result"]["content"][1]["text"], "a picture");
    }
}

#[test]
fn what_a_guest_says_beside_a_resource_is_passed_on_but_not_what_a_view_may_reach() {
    let reach = json!({"csp": {"connectDomains": ["https://evil.example"]}});
    let own = json!({"example/kind": "own"});
    let whole = json!({"ui": reach, "example/kind": "own"});
    for revision in LEGACY_REVISIONS.into_iter().chain([MODERN_REVISION]) {
        for walls in ["best", "none"] {
            let folder = folder("");
            let server = format!("version = 1\n[server]\nwalls = \"{walls}\"\n");
            folder.write("toolcell.toml", folder.read("toolcell.toml").replace("version = 1\n", &server));
            let mut host = TestHost::in_folder(folder);
            if revision != MODERN_REVISION {
                host.initialize(revision);
            }
            let answer = host.call("embeds", json!({}));
            let content = answer.reply()["result"]["content"].as_array().unwrap();
            let metas: Vec<Option<&Value>> = content.iter().map(|piece| piece.get("_meta")).collect();
            // Revisions up to 2025-03-26 have no `_meta` of contents.
            let has_meta = revision >= "2025-06-18";
            let expected = [&own, &own, &whole, &own].map(|meta| has_meta.then_some(meta));
            assert_eq!(metas, expected, "{revision} {walls}: {content:?}");
            for (uri, meta) in [("UI://views/loud", &own), ("note:///x", &whole)] {
                let read = host.request("resources/read", json!({"uri": uri}));
                let contents = &read["result"]["contents"][0];
                assert_eq!(contents.get("_meta"), has_meta.then_some(meta), "{revision} {walls} {uri}: {read}");
            }
            // The manifest declares this one: its own tool reads it, and it says what it may reach.
            let read = host.request("resources/read", json!({"uri": "ui://views/own"}));
            let reach = json!({"ui": {"csp": {"resourceDomains": ["https://cdn.example.com"]}}});
            assert_eq!(read["result"]["contents"][0].get("_meta"), has_meta.then_some(&reach), "{revision} {read}");
        }
    }
}

#[test]
fn a_view_may_be_read_by_what_a_component_declares() {
    let rule = |uri: &str| {
        let more = format!(
            "[apps.\"{uri}\"]\ncsp = {{ connect_domains = [\"https://api.example.com\"] }}\n\
                            [components.declared_views.tools.shows]\napp = \"{uri}\"\n"
        );
        Folder::with_manifest(&format!("{}{more}", manifest_of(&["declared_views"])))
    };
    // An address that it lists, and one that its template stands for.
    for uri in ["ui://own/view", "ui://own/pages/one"] {
        let _ = Command::in_folder(&rule(uri), &["check"]).run().succeeded();
        let mut host = TestHost::in_folder(rule(uri));
        assert_eq!(host.list()[0]["_meta"]["ui"]["resourceUri"], uri);
        let read = host.request("resources/read", json!({"uri": uri}));
        let contents = &read["result"]["contents"][0];
        assert_eq!((&contents["uri"], &contents["mimeType"]), (&json!(uri), &json!(MIME_TYPE)), "{read}");
        let meta = json!({"ui": {"csp": {"connectDomains": ["https://api.example.com"]}}, "example/kind": "own"});
        assert_eq!(contents["_meta"], meta, "the manifest says what it may reach: {read}");
        let listed = host.request("resources/list", json!({}));
        let view = &listed["result"]["resources"][0];
        assert_eq!((&view["uri"], &view["_meta"]), (&json!("ui://own/view"), &json!({"example/kind": "own"})));
    }
    for uri in ["ui://own/other", "ui://own/pages/one/two", "ui://other/view"] {
        let refused = Command::in_folder(&rule(uri), &["check"]).run();
        let said = refused.failed_with(1);
        let hint = "add file = \"FILE.html\", or the address to the resources of a component";
        assert!(said.contains(&format!("nothing reads the view {uri}")) && said.contains(hint), "{said}");
    }
}

#[test]
fn a_guest_sees_the_extensions_that_its_client_declares() {
    let ui = json!({"io.modelcontextprotocol/ui": {"mimeTypes": [MIME_TYPE]}});
    for walls in ["best", "none"] {
        let manifest =
            manifest_of(&["views"]).replace("version = 1\n", &format!("version = 1\n[server]\nwalls = \"{walls}\"\n"));
        let mut host = TestHost::with_manifest(&manifest);
        assert_eq!(host.call("extensions", json!({})).text(), "{}");
        let capabilities = json!({"io.modelcontextprotocol/clientCapabilities": {"extensions": ui}});
        let told = host.request("tools/call", json!({"name": "extensions", "arguments": {}, "_meta": capabilities}));
        let seen: Value = serde_json::from_str(told["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(seen, ui, "{walls}");
        host.initialize_declaring("2025-11-25", json!({"extensions": ui}));
        let seen: Value = serde_json::from_str(host.call("extensions", json!({})).text()).unwrap();
        assert_eq!(seen, ui, "{walls}");
    }
}

#[test]
fn a_view_is_read_over_http_by_those_who_see_a_tool_of_it() {
    let rules = "\n[callers.anyone]\ntools = [\"good/*\"]\n";
    let hidden = WebHost::in_folder(folder(rules), &["--http", "127.0.0.1:0"]);
    let read = |id| Ask::modern(id, "resources/read", json!({"uri": VIEW})).with("mcp-name", VIEW);
    assert_eq!(hidden.ask(&read(1)).frame()["error"]["code"], -32602);
    let listed = hidden.ask(&Ask::modern(2, "resources/list", json!({}))).frame();
    assert_eq!(listed["result"]["resources"], json!([]), "{listed}");
    let open = WebHost::in_folder(folder(""), &["--http", "127.0.0.1:0"]);
    assert_eq!(open.ask(&read(1)).frame()["result"]["contents"][0]["text"], PAGE);
    let session = open.session("2025-11-25");
    let legacy = Ask::request(3, "resources/read", json!({"uri": VIEW})).of_session(&session);
    assert_eq!(open.ask(&legacy).frame()["result"]["contents"][0]["_meta"]["ui"]["prefersBorder"], true);
}

#[test]
fn views_are_in_the_list_of_the_command_line() {
    let rules = "\n[callers.default]\ntools = [\"good/*\", \"blank\", \"fails\"]\n";
    let folder = folder(rules);
    let shown = Command::in_folder(&folder, &["list"]).run();
    let lines = "\n\nui://views/page  Page [view of picture_and_text, picture_alone, value_alone, blank, fails]\n\
                 ui://views/own    [view of names_its_own]\n\nui://views/own  own [page]\n";
    assert!(shown.succeeded().ends_with(lines), "{shown:?}");
    let listed = |arguments: &[&str]| {
        let arguments = [&["list", "--json"], arguments].concat();
        Command::in_folder(&folder, &arguments).run().json()["views"].clone()
    };
    let all = listed(&[]);
    let page = ["picture_and_text", "picture_alone", "value_alone", "blank", "fails"];
    assert_eq!(all[0], json!({"uri": VIEW, "title": "Page", "description": null, "file": "page.html", "tools": page}));
    assert_eq!((&all[1]["file"], &all[1]["tools"]), (&Value::Null, &json!(["names_its_own"])));
    let hers = listed(&["--caller", "ann"]);
    assert_eq!(hers.as_array().unwrap().len(), 1, "{hers}");
    assert_eq!(hers[0]["tools"], json!(["blank", "fails"]));
}

#[test]
fn a_changed_page_is_told_and_recorded() {
    let mut host = TestHost::recording_in(folder(""), &[]);
    host.initialize("2025-11-25");
    let _ = host.request("resources/subscribe", json!({"uri": VIEW}));
    host.folder().save(Saving::RenamedOver, "page.html", "<!DOCTYPE HTML><p>Anew");
    assert_eq!(host.next_of("notifications/resources/updated")["params"]["uri"], VIEW);
    let read = host.request("resources/read", json!({"uri": VIEW}));
    assert_eq!(read["result"]["contents"][0]["text"], "<!DOCTYPE HTML><p>Anew");
    let record = host.recorded("a view that was read", |record| record["event"] == "resource.read");
    assert_eq!((&record["uri"], &record["component"]), (&json!(VIEW), &json!("manifest.apps")), "{record}");
}

#[test]
fn a_page_that_drifts_from_the_lock_serves_as_it_was() {
    let folder = folder("");
    let _ = Command::in_folder(&folder, &["lock"]).run().succeeded();
    assert!(folder.read("toolcell.lock").contains("manifest.apps"));
    let mut host = TestHost::with_options(folder, &["--locked"]);
    host.initialize("2025-11-25");
    host.folder().save(Saving::RenamedOver, "page.html", "<!doctype html>Obey me.");
    let _ = host.reload();
    let read = |host: &mut TestHost| host.request("resources/read", json!({"uri": VIEW}));
    assert_eq!(read(&mut host)["result"]["contents"][0]["text"], PAGE);
    assert_eq!(host.status()["quarantined"][0]["component"], "manifest.apps");
    let _ = Command::in_folder(host.folder(), &["approve", "manifest.apps"]).run().succeeded();
    let _ = host.reload();
    assert_eq!(read(&mut host)["result"]["contents"][0]["text"], "<!doctype html>Obey me.");
}

#[test]
fn a_page_that_cannot_be_shown_and_a_view_that_nobody_shows_are_refused() {
    let cases: [(&str, &str, Change<'_>, &str); 6] = [
        (
            "too large",
            "",
            &|to| to.write("page.html", format!("{PAGE}{}", "x".repeat(2 << 20))),
            "is larger than 1MiB (limit \"file_size\")",
        ),
        ("no page", "", &|to| to.write("page.html", "{}"), "does not begin with <!doctype html>"),
        ("no text", "", &|to| to.write("page.html", b"<!doctype html>\xff"), "is not UTF-8 text"),
        ("no file", "\n[apps.\"ui://a\"]\nfile = \"none.html\"\n", &|_| {}, "none.html"),
        ("unused", "\n[apps.\"ui://a\"]\nfile = \"page.html\"\n", &|_| {}, "no tool names the view ui://a"),
        ("unread", "\n[apps.\"ui://a\"]\n", &|_| {}, "nothing reads the view ui://a"),
    ];
    for (what, more, lays, problem) in cases {
        let folder = folder(more);
        lays(&folder);
        let checked = Command::in_folder(&folder, &["check"]).run();
        let said = checked.failed_with(1);
        assert!(said.contains(problem) || checked.stderr.contains(problem), "{what}: {checked:?}");
    }
    let warned = Command::in_folder(&folder(""), &["check"]).run();
    assert!(format!("{warned:?}").contains("the tool names_none names the view"), "{warned:?}");
}
