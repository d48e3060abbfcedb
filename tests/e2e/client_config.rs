//! The output of `toolcell client-config`: it has each client's form, and it starts or finds a
//! server.

use serde_json::{Value, json};
use toolcell_tests::{Command, Finished, Folder, manifest_of, toolcell};

/// Each client, with the key of its table of servers.
const CLIENTS: [(&str, &str); 7] = [
    ("claude", "mcpServers"),
    ("claude-desktop", "mcpServers"),
    ("vscode", "servers"),
    ("cursor", "mcpServers"),
    ("windsurf", "mcpServers"),
    ("zed", "context_servers"),
    ("gemini", "mcpServers"),
];

const URL: &str = "http://127.0.0.1:8080/mcp";

fn printed(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, &[&["client-config"], arguments].concat()).run()
}

/// The only entry, in a client's JSON.
fn entry(finished: &Finished, key: &str) -> Value {
    let config: Value = serde_json::from_str(finished.succeeded()).unwrap();
    let servers = config[key].as_object().unwrap_or_else(|| panic!("no {key} in {config}"));
    assert_eq!((config.as_object().unwrap().len(), servers.len()), (1, 1), "{config}");
    servers["toolcell"].clone()
}

/// The lines below the table's head in Codex's TOML. Its texts and lists are written as in JSON.
fn lines(finished: &Finished) -> Value {
    let (head, rest) = finished.succeeded().split_once('\n').unwrap();
    assert_eq!(head, "[mcp_servers.toolcell]");
    let pairs = rest.lines().map(|line| {
        let (key, value) = line.split_once(" = ").unwrap_or_else(|| panic!("no key and value: {line}"));
        (key.to_owned(), serde_json::from_str(value).unwrap())
    });
    Value::Object(pairs.collect())
}

/// Starts the entry's command as a client does, and asks for its tools.
fn starts_a_server(entry: &Value) {
    assert_eq!(entry["command"], toolcell().display().to_string());
    let arguments: Vec<&str> = entry["args"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    let client = json!({"name": "client", "version": "1"});
    let frames = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ];
    let input: String = frames.iter().map(|frame| format!("{frame}\n")).collect();
    let elsewhere = Folder::with_manifest("");
    std::fs::remove_file(elsewhere.manifest()).unwrap();
    let talked = Command::in_folder(&elsewhere, &arguments).with_input(input).run();
    assert!(talked.succeeded().contains("\"name\":\"echo\""), "{talked:?}");
}

#[test]
fn each_client_is_told_how_to_start_the_server() {
    let folder = Folder::with_manifest(&manifest_of(&["good"]));
    for (client, key) in CLIENTS {
        let found = entry(&printed(&folder, &[client]), key);
        starts_a_server(&found);
        assert_eq!(found.get("type"), (client == "vscode").then_some(&json!("stdio")), "{client}");
    }
    starts_a_server(&lines(&printed(&folder, &["codex"])));
}

#[test]
fn each_client_is_told_where_the_server_is() {
    let folder = Folder::with_manifest("");
    let table = [
        ("claude", json!({"type": "http", "url": URL})),
        ("claude-desktop", json!({"command": "npx", "args": ["-y", "mcp-remote", URL]})),
        ("vscode", json!({"type": "http", "url": URL})),
        ("cursor", json!({"url": URL})),
        ("windsurf", json!({"serverUrl": URL})),
        ("zed", json!({"url": URL})),
        ("gemini", json!({"httpUrl": URL})),
    ];
    for ((client, expected), (_, key)) in table.into_iter().zip(CLIENTS) {
        assert_eq!(entry(&printed(&folder, &[client, "--url", URL]), key), expected, "{client}");
        let with_token = entry(&printed(&folder, &[client, "--url", URL, "--token"]), key);
        assert!(with_token.to_string().contains("Bearer YOUR_TOKEN"), "{client}: {with_token}");
    }
    assert_eq!(lines(&printed(&folder, &["codex", "--url", URL])), json!({"url": URL}));
    let with_token = lines(&printed(&folder, &["codex", "--url", URL, "--token"]));
    assert_eq!(with_token, json!({"url": URL, "bearer_token_env_var": "TOOLCELL_TOKEN"}));
}

/// Each argument of an entry's command, without its blanks where there are any.
fn arguments(entry: &Value) -> Vec<&str> {
    entry["args"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn the_bridge_of_claude_desktop_has_no_blank_in_an_argument_and_may_use_plain_http_where_it_must() {
    let folder = Folder::with_manifest("");
    for (url, may) in [
        ("http://127.0.0.1:8080/mcp", false),
        ("http://localhost:8080/mcp", false),
        ("https://tools.lan/mcp", false),
        ("http://tools.lan:8080/mcp", true),
        ("http://[::1]:8080/mcp", true),
        ("http://127.0.0.2/mcp", true),
        ("HTTP://tools.lan/mcp", true),
    ] {
        let plain = entry(&printed(&folder, &["claude-desktop", "--url", url]), "mcpServers");
        assert_eq!(arguments(&plain).contains(&"--allow-http"), may, "{plain}");
        assert_eq!(plain.get("env"), None);
        let with_token = entry(&printed(&folder, &["claude-desktop", "--url", url, "--token"]), "mcpServers");
        let given = arguments(&with_token);
        assert_eq!(given.contains(&"--allow-http"), may, "{with_token}");
        assert!(given.iter().all(|argument| !argument.contains(' ')), "{with_token}");
        assert_eq!(given[given.len() - 2..], ["--header", "Authorization:${AUTH_HEADER}"]);
        assert_eq!(with_token["env"], json!({"AUTH_HEADER": "Bearer YOUR_TOKEN"}));
    }
}

#[test]
fn paths_are_printed_without_detours() {
    let folder = Folder::with_manifest(&manifest_of(&["good"]));
    let elsewhere = Folder::with_manifest("");
    std::fs::create_dir_all(folder.path().join("sub/deeper")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("sub/out")).unwrap();
    let own = folder.manifest();
    let other = elsewhere.manifest().canonicalize().unwrap();
    for (written, clean) in [
        ("toolcell.toml", &own),
        ("./toolcell.toml", &own),
        ("sub/../toolcell.toml", &own),
        ("sub/./deeper/../../toolcell.toml", &own),
        // The folder above the one that the link leads to.
        ("sub/out/../toolcell.toml", &other.parent().unwrap().with_file_name("toolcell.toml")),
    ] {
        for (client, key) in CLIENTS {
            let found = entry(&printed(&folder, &[client, "--manifest", written]), key);
            assert_eq!(arguments(&found), ["serve", "--manifest", &clean.to_string_lossy()], "{client} {written}");
        }
        let codex = lines(&printed(&folder, &["codex", "--manifest", written]));
        assert_eq!(arguments(&codex)[2], clean.to_string_lossy());
    }
}

#[test]
fn where_it_belongs_and_the_command_that_does_the_same_are_told_aside() {
    let folder = Folder::with_manifest("");
    for (arguments, words) in [
        (&["claude", "--url", URL][..], "claude mcp add --transport http toolcell http://127.0.0.1:8080/mcp\n"),
        (&["claude", "--name", "mine"], "claude mcp add mine -- "),
        (&["codex", "--url", URL], "codex mcp add toolcell --url http://127.0.0.1:8080/mcp\n"),
        (&["vscode"], "into .vscode/mcp.json of a workspace"),
    ] {
        let told = printed(&folder, arguments);
        assert_eq!(told.code(), 0, "{told:?}");
        assert!(told.stderr.contains(words), "no {words:?} in {}", told.stderr);
    }
    for name in ["", "a b", "-x", "a\"b"] {
        let option = format!("--name={name}");
        assert_eq!(printed(&folder, &["claude", &option]).code(), 2, "{name:?}");
    }
    assert_eq!(printed(&folder, &["claude", "--token"]).code(), 2, "a server that the client starts wants none");
}
