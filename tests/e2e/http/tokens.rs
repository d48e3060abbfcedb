//! Callers with tokens: only they are let in, each is told apart, and a revoked token is invalid.
//!
//! Promise: web pages and other machines are kept out.
//! Promise: a session cannot be guessed or taken over.
//! Promise: a caller's token reaches no guest.

use serde_json::json;
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, alone, manifest_of, patience};

fn with_tokens() -> (Folder, String, String) {
    let folder =
        Folder::with_manifest(&format!("{}\n[http]\ntokens = \"tokens.jsonl\"\n", manifest_of(&["good", "nosy"])));
    let token = |name: &str| {
        let made = Command::in_folder(&folder, &["token", "new", name, "--scope", "read"]).run();
        made.succeeded().trim().to_owned()
    };
    let ann = token("ann");
    let bob = token("bob");
    (folder, ann, bob)
}

fn echo() -> Ask {
    Ask::call("echo", json!({"text": "x"}))
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[test]
fn tokens_are_made_listed_and_revoked_and_kept_as_hashes() {
    let (folder, ann, bob) = with_tokens();
    assert!(ann.starts_with("toolcell_") && ann.len() == 9 + 64 && ann != bob, "{ann}");
    let kept = folder.read("tokens.jsonl");
    assert!(!kept.contains(&ann[9..]) && kept.contains("sha256:"), "{kept}");
    let mode = std::fs::metadata(folder.path().join("tokens.jsonl")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    let run = |arguments: &[&str]| Command::in_folder(&folder, arguments).run();
    assert_eq!(run(&["token", "list"]).succeeded(), "ann\tread\nbob\tread\n");
    for refused in [["token", "new", "local"], ["token", "new", "a b"], ["token", "revoke", "nobody"]] {
        assert!(!run(&refused).failed_with(1).is_empty(), "{refused:?}");
    }
    assert_eq!(run(&["token", "revoke", "ann"]).succeeded(), "the token of ann is revoked\n");
    assert_eq!(run(&["token", "list"]).succeeded(), "bob\tread\n");
}

#[test]
fn scopes_may_stand_with_commas_between_them() {
    let (folder, ..) = with_tokens();
    let made = ["token", "new", "eve", "--scope", "read,write", "--scope", "admin"];
    let _ = Command::in_folder(&folder, &made).run().succeeded();
    assert!(folder.read("tokens.jsonl").contains("\"scopes\":[\"read\",\"write\",\"admin\"]"));
}

#[test]
fn a_tokens_file_that_is_full_is_not_written_and_the_server_serves_on() {
    let _alone = alone("each replica has its own file of tokens");
    let (folder, ann, bob) = with_tokens();
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]);
    let folder = host.process().folder();
    let lines = folder.read("tokens.jsonl");
    let another = "{\"name\":\"someone\",\"hash\":\"sha256:00\"}\n";
    let full = format!("{lines}{}", another.repeat((1024 * 1024 - lines.len()) / another.len()));
    folder.write("tokens.jsonl", &full);
    let run = |arguments: &[&str]| Command::in_folder(folder, arguments).run();
    let refused = run(&["token", "new", "eve", "--scope", "read"]);
    let reason = "tokens.jsonl would be larger than 1MiB: first revoke tokens that nobody uses any more";
    assert!(refused.failed_with(1).contains(reason), "{refused:?}");
    assert!(folder.read("tokens.jsonl") == full, "it is as it was");
    let becomes = |token: &str, status: u16| {
        let end = std::time::Instant::now() + patience();
        while host.ask(&echo().with("authorization", &bearer(token))).status() != status {
            assert!(std::time::Instant::now() < end, "never {status}");
        }
    };
    assert_eq!(run(&["token", "revoke", "bob"]).succeeded(), "the token of bob is revoked\n");
    becomes(&bob, 401);
    let eve = run(&["token", "new", "eve", "--scope", "read"]).succeeded().trim().to_owned();
    becomes(&eve, 200);
    becomes(&ann, 200);
}

#[test]
fn a_scope_that_no_rule_can_name_is_refused() {
    let (folder, ..) = with_tokens();
    let lines = folder.read("tokens.jsonl");
    for scope in ["dev read", "", "dev\tread", "read,"] {
        let refused = Command::in_folder(&folder, &["token", "new", "eve", "--scope", scope]).run();
        assert!(refused.failed_with(1).contains("is not a scope: write 1 to 320"), "{scope:?}: {refused:?}");
    }
    assert_eq!(folder.read("tokens.jsonl"), lines);
}

#[test]
fn a_caller_has_two_tokens_while_one_takes_the_place_of_the_other() {
    let _alone = alone("each replica has its own file of tokens");
    let (folder, old, _) = with_tokens();
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]);
    let run = |arguments: &[&str]| Command::in_folder(host.process().folder(), arguments).run();
    let made = run(&["token", "new", "ann"]);
    let new = made.succeeded().trim().to_owned();
    assert!(made.stderr.contains("`toolcell token revoke ann --older`"), "{made:?}");
    assert!(run(&["token", "new", "ann"]).failed_with(1).contains("`toolcell token revoke ann --older`"));
    let becomes = |token: &str, status: u16| {
        let end = std::time::Instant::now() + patience();
        while host.ask(&echo().with("authorization", &bearer(token))).status() != status {
            assert!(std::time::Instant::now() < end, "never {status}");
        }
    };
    becomes(&new, 200);
    becomes(&old, 200);
    // What the message said.
    assert_eq!(run(&["token", "revoke", "ann", "--older"]).succeeded(), "the older token of ann is revoked\n");
    becomes(&old, 401);
    becomes(&new, 200);
    assert!(run(&["token", "revoke", "ann", "--older"]).failed_with(1).contains("ann has no older token"));
    let _ = run(&["token", "new", "ann"]).succeeded();
    assert_eq!(run(&["token", "revoke", "ann"]).succeeded(), "2 tokens of ann are revoked\n");
    becomes(&new, 401);
}

#[test]
fn only_callers_with_a_token_get_in() {
    let (folder, ann, _) = with_tokens();
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]);
    for (what, ask, challenge) in [
        ("none", echo(), "Bearer realm=\"toolcell\""),
        ("another scheme", echo().with("authorization", &format!("Basic {ann}")), "Bearer realm=\"toolcell\""),
        ("no scheme", echo().with("authorization", &ann), "Bearer realm=\"toolcell\""),
        (
            "an unknown one",
            echo().with("authorization", &bearer("toolcell_00")),
            "Bearer realm=\"toolcell\", error=\"invalid_token\"",
        ),
        (
            "its hash",
            echo().with("authorization", &bearer("sha256:00")),
            "Bearer realm=\"toolcell\", error=\"invalid_token\"",
        ),
    ] {
        let reply = host.ask(&ask);
        assert_eq!(reply.error(), (401, -32600), "{what}");
        assert_eq!(reply.field("www-authenticate"), Some(challenge), "{what}");
    }
    assert_eq!(host.ask(&echo().with("authorization", &bearer(&ann))).status(), 200);
    assert_eq!(host.ask(&Ask::bare("GET", "/healthz")).status(), 200, "whoever runs it needs none");
    let revoked = Command::in_folder(host.process().folder(), &["token", "revoke", "ann"]).run();
    assert_eq!(revoked.succeeded(), "the token of ann is revoked\n");
    let end = std::time::Instant::now() + patience();
    while host.ask(&echo().with("authorization", &bearer(&ann))).status() != 401 {
        assert!(std::time::Instant::now() < end, "a revoked token is still let in");
    }
}

#[test]
fn who_shows_two_tokens_is_refused() {
    let _alone = alone("a balancer refuses these itself");
    let (folder, ann, _) = with_tokens();
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]);
    let reply = host.ask(&echo().with("authorization", &bearer(&ann)).and("authorization", "x y"));
    assert_eq!(reply.error(), (401, -32600));
    assert_eq!(reply.field("www-authenticate"), Some("Bearer realm=\"toolcell\""));
}

#[test]
fn a_session_belongs_to_the_caller_who_opened_it() {
    let (folder, ann, bob) = with_tokens();
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]);
    let opened = host.ask(&Ask::initialize("2025-11-25").with("authorization", &bearer(&ann)));
    let session = opened.field("mcp-session-id").unwrap().to_owned();
    let ping = |token: &str| {
        let ask = Ask::request(1, "ping", json!({})).of_session(&session).with("authorization", &bearer(token));
        host.ask(&ask).status()
    };
    assert_eq!((ping(&ann), ping(&bob)), (200, 404), "to others there is no such session");
    let end = Ask::bare("DELETE", "/mcp").of_session(&session).with("authorization", &bearer(&bob));
    assert_eq!(host.ask(&end).status(), 404);
    assert_eq!(ping(&ann), 200);
}

#[test]
fn a_token_never_reaches_a_guest() {
    let (folder, ann, _) = with_tokens();
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--log", "debug"]);
    for tool in ["request", "clocks"] {
        let reply = host.ask(&Ask::call(tool, json!({})).with("authorization", &bearer(&ann)));
        let said = String::from_utf8_lossy(reply.body()).into_owned();
        assert!(
            reply.status() == 200 && !said.contains(&ann[9..]) && !said.to_lowercase().contains("bearer"),
            "{said}"
        );
    }
    assert!(!host.process().said().contains(&ann[9..]));
}

#[test]
fn a_public_address_is_served_to_callers_with_tokens() {
    let _alone = alone("its own address");
    let (folder, ann, _) = with_tokens();
    let host = WebHost::in_folder(folder, &["--http", "0.0.0.0:0"]);
    assert!(host.process().said().contains("callers with a token"));
    let port = host.address().port();
    let ask = echo().with("host", &format!("127.0.0.1:{port}"));
    assert_eq!(host.ask(&ask).status(), 401);
    assert_eq!(host.ask(&ask.with("authorization", &bearer(&ann))).status(), 200);
}
