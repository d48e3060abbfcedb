//! `toolcell add --mcp`: the tools of another MCP server become a pinned component. What its server
//! lists later is seen before it is served.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use toolcell_tests::loopback::{HttpServer, McpEra, McpScript, Scripted, events, result};
use toolcell_tests::web::WebHost;
use toolcell_tests::{Command, Finished, Folder, TestHost};

/// A value that stands nowhere else.
pub(crate) const KEY: &str = "k3y-of-the-bridge-1234567890";

fn run(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, arguments).run()
}

/// The bridge that `make guests` builds.
pub(crate) fn bridge() -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("../guest-examples/components/bridge.wasm");
    path.to_str().unwrap().to_owned()
}

/// A folder without a manifest.
pub(crate) fn empty() -> Folder {
    let folder = Folder::with_manifest("");
    std::fs::remove_file(folder.manifest()).unwrap();
    folder
}

/// Adds the server at this address under the name `far`.
pub(crate) fn added(folder: &Folder, address: &str, more: &[&str]) -> Finished {
    let bridge = bridge();
    let arguments = ["add", "--mcp", address, "--name", "far", "--yes", "--bridge", bridge.as_str()];
    Command::in_folder(folder, &[&arguments[..], more].concat()).with_variable("FAR_TOKEN", KEY).run()
}

/// Takes the approval out of the manifest, with more lines for the component.
pub(crate) fn unasked(folder: &Folder, lines: &str) {
    let text = folder.read("toolcell.toml").replace("approval = \"destructive\"\n", lines);
    folder.write("toolcell.toml", text);
    let _ = Command::in_folder(folder, &["lock"]).with_variable("FAR_TOKEN", KEY).run().succeeded();
}

/// One tool that says what it was called with.
fn tool(name: &str, description: &str) -> Value {
    json!({
        "name": name, "description": description,
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "outputSchema": {"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]},
        "annotations": {"readOnlyHint": true},
    })
}

/// A server with one tool. The description is the second one once the switch is on.
fn echo(era: McpEra, is_second: &Arc<AtomicBool>) -> HttpServer {
    let is_second = Arc::clone(is_second);
    let list = move |_: &Value| {
        let description = if is_second.load(Ordering::SeqCst) { "Says it backwards." } else { "Says it." };
        json!({"tools": [tool("echo.say", description)], "resultType": "complete"})
    };
    McpScript { era, list, call: said }.start()
}

fn said(call: &Value) -> Scripted {
    let text = call["params"]["arguments"]["text"].clone();
    result(call, &json!({"content": [], "structuredContent": {"said": text}, "resultType": "complete"}))
}

#[test]
fn a_modern_server_becomes_a_component_that_calls_it_with_one_request() {
    let server = WebHost::serving(&["conformance"]);
    let folder = empty();
    let shown = added(&folder, &server.url(), &["--all"]);
    let shown = shown.succeeded();
    for words in ["with modern requests\n", "  tool     far_test_simple_text: ", "properties/"] {
        assert!(shown.contains(words), "no {words:?} in\n{shown}");
    }
    let text = folder.read("toolcell.toml");
    let expected = format!(
        "version = 1\n\n[components.far]\nsource = \"components/far.wasm\"\nprefix = \"far_\"\napproval = \"destructive\"\n\n\
         [components.far.network]\nhttp = [\n    \"POST {}\",\n]\nprivate = [\"{}\"]\n",
        server.url(),
        server.address()
    );
    assert_eq!(text, expected);
    unasked(&folder, "");
    let mut host = TestHost::in_folder(folder);
    host.initialize("2025-11-25");
    let mut content = |tool: &str| {
        let answer = host.call(tool, json!({}));
        let content = answer.result()["content"].as_array().unwrap().clone();
        let kinds: Vec<String> = content.iter().map(|piece| piece["type"].as_str().unwrap().to_owned()).collect();
        (answer.is_error(), kinds)
    };
    let kinds = |kinds: &[&str]| kinds.iter().map(|&kind| kind.to_owned()).collect::<Vec<_>>();
    assert_eq!(content("far_test_image_content"), (false, kinds(&["image"])));
    assert_eq!(content("far_test_audio_content"), (false, kinds(&["audio"])));
    assert_eq!(content("far_test_embedded_resource"), (false, kinds(&["resource"])));
    assert_eq!(content("far_test_multiple_content_types"), (false, kinds(&["text", "image", "resource"])));
    assert_eq!(content("far_test_error_handling"), (true, kinds(&["text"])));
    // Progress of the other side is progress of this call.
    let id = host.start(
        "tools/call",
        json!({"name": "far_test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": "p"}}),
    );
    let first = host.next_of("notifications/progress");
    assert_eq!(first["params"]["progressToken"], "p", "{first}");
    assert!(host.reply_to(&id)["result"]["content"][0]["text"].is_string());
    // What the other side would ask the caller for, it is not told that it can.
    let sampling = host.call("far_test_sampling", json!({"prompt": "x"}));
    assert!(sampling.is_error(), "{sampling:?}");
}

#[test]
fn a_server_with_sessions_gets_one_for_each_call_and_its_end() {
    let messages = |call: &Value| {
        let progress = |done: u32| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": call["params"]["_meta"]["progressToken"], "progress": done, "total": 2, "message": "on it"}});
        let asked = json!({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}});
        let answer = json!({"jsonrpc": "2.0", "id": call["id"], "result": {"content": [], "structuredContent": {"said": "done"}}});
        events(&[progress(1), asked, progress(2), answer])
    };
    let list = |params: &Value| match params["cursor"].as_str() {
        None => json!({"tools": [tool("one", "Says it.")], "nextCursor": "2"}),
        Some(_) => json!({"tools": [tool("two.more", "Says it too.")]}),
    };
    let server = McpScript { era: McpEra::Session, list, call: messages }.start();
    let folder = empty();
    let header = ["--header", "Authorization=Bearer env:FAR_TOKEN"];
    let shown = added(&folder, &server.url("/mcp"), &header);
    let shown = shown.succeeded();
    for words in [
        "  server   scripted 1 with a session for each call\n",
        "  tool     far_two_more: says that it only reads, there two.more\n",
        "  secret   FAR_TOKEN from env:FAR_TOKEN, header Authorization\n",
    ] {
        assert!(shown.contains(words), "no {words:?} in\n{shown}");
    }
    let text = folder.read("toolcell.toml");
    let url = server.url("/mcp");
    for line in [
        format!("    \"DELETE,POST {url}\",\n]\n"),
        format!(
            "FAR_TOKEN = {{ from = \"env:FAR_TOKEN\", header = \"Authorization\", value = \"Bearer {{}}\", for = \"{url}\" }}\n"
        ),
    ] {
        assert!(text.contains(&line), "no {line:?} in\n{text}");
    }
    let listing = server.seen().len();
    let mut host = TestHost::recording_in(folder, &[("FAR_TOKEN", KEY)]);
    host.initialize("2025-11-25");
    let params = json!({"name": "far_two_more", "arguments": {"text": "x"}, "_meta": {"progressToken": 7}});
    let id = host.start("tools/call", params);
    for done in [1.0, 2.0] {
        let params = &host.next_of("notifications/progress")["params"];
        assert_eq!((params["progress"].as_f64(), &params["message"]), (Some(done), &json!("on it")), "{params}");
    }
    let answer = host.reply_to(&id);
    assert_eq!(answer["result"]["structuredContent"], json!({"said": "done"}), "{answer}");
    assert!(!answer.to_string().contains(KEY));
    let seen = server.seen().split_off(listing);
    let said: Vec<String> = seen
        .iter()
        .map(|seen| {
            let body: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
            let what = body["method"].as_str().map_or_else(|| body["error"]["code"].to_string(), str::to_owned);
            format!("{} {what} {}", seen.method(), seen.values("mcp-session-id").concat())
        })
        .collect();
    assert_eq!(
        said,
        [
            "POST initialize ",
            "POST notifications/initialized session-of-the-test",
            "POST tools/call session-of-the-test",
            "POST -32601 session-of-the-test",
            "DELETE null session-of-the-test",
        ]
    );
    assert!(seen.iter().all(|seen| seen.values("authorization") == [format!("Bearer {KEY}")]), "{seen:?}");
}

#[test]
fn what_a_server_lists_later_is_said_shown_and_taken_by_a_person_alone() {
    let is_second = Arc::new(AtomicBool::new(false));
    let server = echo(McpEra::Modern, &is_second);
    let folder = empty();
    let _ = added(&folder, &server.url("/mcp"), &[]).succeeded();
    let component = |folder: &Folder| std::fs::read(folder.path().join("components/far.wasm")).unwrap();
    let lock = folder.read("toolcell.lock");
    let first = component(&folder);
    assert!(run(&folder, &["outdated"]).succeeded().is_empty());
    let bridge = bridge();
    let update = ["update", "far", "--bridge", bridge.as_str()];
    assert!(run(&folder, &update).succeeded().is_empty());

    is_second.store(true, Ordering::SeqCst);
    // The old definition is served, and calls go on.
    let called = run(&folder, &["call", "far_echo_say", "{\"text\":\"hi\"}", "--json"]);
    assert!(called.succeeded().replace(' ', "").contains("\"said\":\"hi\""), "{called:?}");
    let listed = run(&folder, &["list", "--json"]);
    assert!(listed.succeeded().contains("Says it."), "{listed:?}");
    let outdated = run(&folder, &["outdated"]);
    let said = format!("far: {} lists other tools now; `toolcell update far` shows them\n", server.url("/mcp"));
    assert_eq!(outdated.failed_with(1), "");
    assert_eq!(outdated.stdout, said);
    // Nobody can be asked here.
    let unasked = run(&folder, &update);
    assert!(unasked.stdout.contains("description was \"Says it.\", is \"Says it backwards.\""), "{unasked:?}");
    assert!(unasked.failed_with(2).contains("nobody can be asked"), "{unasked:?}");
    let planned: Value = serde_json::from_str(&run(&folder, &[&update[..], &["--json"]].concat()).stdout).unwrap();
    let differences = planned["changes"][0]["differences"].to_string();
    assert!(differences.contains("Says it backwards."), "{planned}");
    assert_eq!((component(&folder), folder.read("toolcell.lock")), (first.clone(), lock.clone()));
    assert!(!folder.path().join("components/far.new.wasm").exists());

    let taken = run(&folder, &[&update[..], &["--yes", "--json"]].concat()).json();
    assert_eq!(taken["updated"][0]["name"], "far", "{taken}");
    assert!(component(&folder) != first && folder.read("toolcell.lock") != lock);
    assert!(folder.read("toolcell.lock").contains("Says it backwards."));
    assert!(run(&folder, &["diff"]).succeeded().contains("nothing differs"));
    assert!(run(&folder, &["outdated"]).succeeded().is_empty());
}

#[test]
fn an_update_shows_every_text_of_tools_that_are_new_or_changed() {
    let is_second = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&is_second);
    let long = |end: &str| format!("{}{end}", "Works with every note in any language. ".repeat(100));
    let list = move |_: &Value| {
        if !now.load(Ordering::SeqCst) {
            return json!({"tools": [tool("say", &long("Ends here."))], "resultType": "complete"});
        }
        let mut fresh = tool("fresh", &long("Ends with <ONE>."));
        fresh["title"] = json!("A title with <TWO>");
        fresh["inputSchema"]["properties"]["text"]["description"] = json!("<THREE>");
        fresh["outputSchema"]["properties"]["said"]["description"] = json!("<FOUR>");
        json!({"tools": [fresh, tool("say", &long("Ends with <FIVE>."))], "resultType": "complete"})
    };
    let server = McpScript { era: McpEra::Modern, list, call: said }.start();
    let folder = empty();
    let _ = added(&folder, &server.url("/mcp"), &[]).succeeded();
    is_second.store(true, Ordering::SeqCst);
    let bridge = bridge();
    let unasked = run(&folder, &["update", "far", "--bridge", bridge.as_str()]);
    for words in ["<ONE>", "<TWO>", "<THREE>", "<FOUR>", "<FIVE>"] {
        assert!(unasked.stdout.contains(words), "no {words} in {unasked:?}");
    }
    let difference = unasked.stdout.lines().find(|line| line.contains("tool far_say: description was ")).unwrap();
    assert!(difference.contains("Ends here.\", is …") && difference.contains("Ends with <FIVE>."), "{difference}");
    let before = folder.read("toolcell.lock");
    let _ = run(&folder, &["update", "far", "--bridge", bridge.as_str(), "--yes"]).succeeded();
    folder.write("toolcell.lock", before);
    let differs = run(&folder, &["diff"]);
    assert!(differs.stdout.contains("Ends here.") && differs.stdout.contains("<FIVE>"), "{differs:?}");
}

#[test]
fn a_server_that_cannot_be_added_leaves_nothing() {
    let refused = |address: &str, options: &[&str], code: i32, words: &str| {
        let folder = empty();
        let finished = added(&folder, address, options);
        assert!(finished.failed_with(code).contains(words), "{words}: {finished:?}");
        assert!(!folder.manifest().exists());
    };
    let server = HttpServer::scripted(|seen| match seen.target() {
        "/closed" => Scripted::Whole(401, "text/plain", "no".to_owned()),
        "/moved" => Scripted::As("/redirect?https://elsewhere.example/mcp"),
        _ => Scripted::Whole(200, "text/html", "<p>".to_owned()),
    });
    refused(&server.url("/closed"), &[], 1, "answers with status 401\n\nhint: add --header Authorization=");
    refused(&server.url("/moved"), &[], 1, "leads to https://elsewhere.example/mcp");
    refused(&server.url("/page"), &[], 1, "answers with \"text/html\", and not with JSON or events");
    refused("http://10.0.0.1/mcp", &[], 1, "is not reached over https");
    refused(&server.url("/page"), &["--header", "Authorization=plain"], 2, "a header needs a name and a secret");
    refused(&server.url("/page"), &["--header", "X=env:NOT_SET_ANYWHERE"], 1, "no variable \"NOT_SET_ANYWHERE\"");
    let echo = echo(McpEra::Modern, &Arc::default());
    refused(&echo.url("/mcp"), &["--only", "say"], 1, "the server has no tool \"say\"");
    refused(&echo.url("/mcp?key=x"), &[], 2, "or a query");
    let folder = empty();
    let finished = run(&folder, &["add", "pets.json", "--header", "X=env:A"]);
    assert!(finished.failed_with(2).contains("--mcp"), "{finished:?}");
}

#[test]
fn a_server_that_answers_in_batches_and_with_nulls_is_listed_and_called() {
    let server = HttpServer::scripted(|seen| {
        let Ok(asked) = serde_json::from_slice::<Value>(&seen.body) else {
            return Scripted::Bytes(200, vec![], vec![]);
        };
        let answer = match asked["method"].as_str() {
            Some("initialize") => {
                json!({"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}})
            }
            Some("tools/list") => json!({"tools": [tool("one", "Says it.")], "nextCursor": ""}),
            Some("tools/call") => json!({
                "content": [{"type": "text", "text": "a", "annotations": {"audience": null}}],
                "structuredContent": {"said": "a"}, "isError": null,
            }),
            Some("server/discover") => return Scripted::Whole(400, "text/plain", "no".to_owned()),
            _ => return Scripted::Bytes(202, vec![], vec![]),
        };
        let told =
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}});
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer});
        Scripted::Whole(200, "application/json", json!([told, answer]).to_string())
    });
    let folder = empty();
    let _ = added(&folder, &server.url("/mcp"), &[]).succeeded();
    unasked(&folder, "");
    let called = run(&folder, &["call", "far_one", "{\"text\":\"a\"}", "--json"]);
    assert!(called.succeeded().contains("\"said\":\"a\"") || called.stdout.contains("\"said\": \"a\""), "{called:?}");
}
