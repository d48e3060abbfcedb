//! Another MCP server that wants a login: it lists and calls its tools with it.

use serde_json::{Value, json};
use toolcell_tests::loopback::{HttpServer, McpEra, McpScript, Scripted, Seen, result};
use toolcell_tests::{Command, Folder};

use super::browser::Browser;
use super::server::AuthorizationServer;
use super::{Login, STORED};

/// Where a protected resource says who lets in.
const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// A server with one tool, for those whom this authorization server sends.
fn guarded(issuer: &str) -> HttpServer {
    let list = |_: &Value| json!({"tools": [{"name": "notes", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]});
    let call = |call: &Value| result(call, &json!({"content": [{"type": "text", "text": "three"}]}));
    let metadata = json!({"resource": "https://notes.example/mcp", "authorization_servers": [issuer], "scopes_supported": ["openid", "notes.read"]});
    let gate = move |seen: &Seen| {
        if seen.target() == METADATA {
            return Some(Scripted::Whole(200, "application/json", metadata.to_string()));
        }
        let is_sent = seen.values("authorization").iter().any(|shown| shown.starts_with("Bearer "));
        (!is_sent).then(|| Scripted::Bytes(401, vec![("www-authenticate", "Bearer".to_owned())], Vec::new()))
    };
    McpScript { era: McpEra::Session, list, call }.start_behind(gate)
}

#[test]
fn a_server_that_wants_a_login_is_listed_and_called_with_it() {
    let authorization = AuthorizationServer::start();
    let issuer = authorization.issuer();
    let server = guarded(issuer);
    let folder = Folder::with_manifest("version = 1\n");
    let bridge = concat!(env!("CARGO_MANIFEST_DIR"), "/../guest-examples/components/bridge.wasm");
    let url = server.url("/mcp");
    let add = |more: &[&str]| {
        let arguments = ["add", "--mcp", &url, "--name", "far", "--yes", "--bridge", bridge];
        Command::in_folder(&folder, &[&arguments[..], more].concat()).run()
    };
    // It says what it wants, and the lines for it.
    let refused = add(&[]);
    let lines = format!(
        "[oauth.mcp]\nissuer = \"{issuer}\"\nclient_id = \"…\"\nscopes = [\"openid\", \"notes.read\"]\n\
         resource = \"https://notes.example/mcp\"\n"
    );
    assert!(refused.failed_with(1).contains(&lines), "{refused:?}");

    let login = "[oauth.notes]\nissuer = \"{issuer}\"\nclient_id = \"desk\"\nscopes = [\"openid\", \"notes.read\"]\n";
    folder.write("toolcell.toml", format!("version = 1\n\n{}", login.replace("{issuer}", issuer)));
    let header = ["--header", "Authorization=Bearer oauth:notes"];
    let before = server.seen().len();
    let refused = add(&header);
    assert!(refused.failed_with(1).contains("toolcell secret login notes"), "{refused:?}");
    assert_eq!(server.seen().len(), before);

    let login = Login::begin(&folder, &[]);
    Browser::default().open(&login.address);
    login.succeeds();
    let added = add(&header);
    let _ = added.succeeded();
    let stored: Value = serde_json::from_str(&folder.read(STORED)).unwrap();
    let token = stored["access_token"].as_str().unwrap();
    let called = Command::in_folder(&folder, &["call", "far_notes"]).run();
    assert!(called.succeeded().contains("three"), "{called:?}");
    let seen = server.seen().split_off(before);
    assert!(seen.iter().all(|seen| seen.values("authorization") == [format!("Bearer {token}")]), "{seen:?}");
    let outdated = Command::in_folder(&folder, &["outdated"]).run();
    let _ = outdated.succeeded();
    let everything =
        format!("{added:?}{called:?}{outdated:?}{}{}", folder.read("toolcell.toml"), folder.read("toolcell.lock"));
    assert!(!everything.contains(token), "{everything}");
}
