//! Callers' own tokens, passed on to the one origin that the manifest names.
//!
//! Promise: a caller's token reaches no guest.

use serde_json::json;
use toolcell_tests::Command;
use toolcell_tests::loopback::HttpServer;

use super::callers::{ended, modern, shown};
use super::exchanged::{RESOURCE, Scene};
use super::{FIXTURE, assert_refused, folder};

/// The tables of a tool that may ask two servers, of which one gets its callers' tokens.
fn tables(issuer: &str, api: &HttpServer, other: &str, passed_to: &str) -> String {
    let address = api.address();
    format!(
        "[http.oauth]\nresource = \"{RESOURCE}\"\n[http.oauth.issuers.corp]\nissuer = \"{issuer}\"\n\
         [oauth.notes]\nof = \"caller\"\npassthrough = \"{passed_to}\"\nissuer = \"{issuer}\"\n\
         [{{c}}.network]\nhttp = [\"http://{address}\", \"http://{other}\"]\nprivate = [\"{address}\", \"{other}\"]\n\
         [{{c}}.secrets]\nNOTES = {{ from = \"oauth:notes\", header = \"Authorization\", \
         value = \"Bearer {{}}\", for = \"http://{address}/api/*\" }}\n"
    )
}

#[test]
fn a_caller_s_token_goes_to_the_origin_that_the_manifest_names_and_to_no_other() {
    let other = HttpServer::start();
    let elsewhere = other.address().to_string();
    let scene = Scene::serving(|issuer, api| tables(issuer, api, &elsewhere, &format!("http://{}", api.address())));
    let ann = scene.token("ann", "tools");
    let bob = scene.token("bob", "tools");
    let mut answers = String::new();
    // The one that the call showed, even if another of the same caller lives longer.
    let [long, short] = [3_600, 60].map(|seconds| scene.token_for("ann", "tools", seconds));
    for token in [&ann, &bob, &ann, &long, &short] {
        let frame = ended(&scene.host.ask(&shown(token, &scene.ask())));
        assert_eq!(&scene.last_token(), token);
        assert!(frame.to_string().contains("Bearer [redacted:NOTES]"), "{frame}");
        answers.push_str(&frame.to_string());
    }
    // Not to other paths, another port, or where a redirect of the API leads.
    let api = &scene.api;
    for url in [api.url("/other"), other.url("/api/echo"), api.url(&format!("/redirect?{}", other.url("/api/echo")))] {
        let frame = ended(&scene.host.ask(&shown(&ann, &modern(true, &url, &json!({})))));
        answers.push_str(&frame.to_string());
    }
    let sent: Vec<_> = api.seen().iter().map(|seen| (seen.target().to_owned(), seen.values("authorization"))).collect();
    assert!(sent.iter().all(|(target, values)| (target == "/api/echo") != values.is_empty()), "{sent:?}");
    let heads = |server: &HttpServer| server.seen().iter().map(|seen| seen.head.clone()).collect::<String>();
    let folder = scene.host.process().folder();
    let elsewhere = [
        answers,
        heads(&other),
        heads(&scene.issuer),
        scene.host.process().said(),
        folder.read("audit.jsonl"),
        scene.issuer.seen().iter().map(|seen| String::from_utf8_lossy(&seen.body).into_owned()).collect(),
    ];
    assert!(!other.seen().is_empty());
    for token in [&ann, &bob] {
        // Without its signature, a token says the same.
        let claims = token.split('.').nth(1).unwrap();
        assert!(elsewhere.iter().all(|text| !text.contains(claims)), "{elsewhere:?}");
    }
}

#[test]
fn the_origin_is_one_that_is_pinned_and_warned_of_and_no_secret_leaves_it() {
    let api = HttpServer::start();
    let named = format!("http://{}", api.address());
    let folder = folder(FIXTURE, &tables("https://login.example.com", &api, "127.0.0.1:9", &named));
    let checked = Command::in_folder(&folder, &["check"]).run();
    assert!(checked.stderr.contains(&format!("[oauth.notes] gives callers' own tokens to {named}")), "{checked:?}");
    assert!(checked.stderr.contains("MCP's specification forbids it"), "{checked:?}");
    let _ = Command::in_folder(&folder, &["lock"]).run().succeeded();
    assert!(
        folder
            .read("toolcell.lock")
            .contains(&format!("each caller's own token of https://login.example.com, given to {named}"))
    );
    let refused = Command::in_folder(&folder, &["secret", "login", "notes", "--caller", "ann"]).run();
    assert!(refused.code() == 1 && refused.stderr.contains("nobody logs in"), "{refused:?}");
    let manifest = folder.read("toolcell.toml");
    let with = |passed_to: &str| {
        manifest.replace(&format!("passthrough = \"{named}\""), &format!("passthrough = {passed_to}"))
    };
    folder.write("toolcell.toml", with("\"http://127.0.0.1:9\""));
    assert_refused(&folder, &["would give callers' own tokens to another server than http://127.0.0.1:9"]);
    for wrong in ["\"http://api.example.com\"", "\"https://*\"", "\"https://me@api.example.com\""] {
        folder.write("toolcell.toml", with(wrong));
        assert_refused(&folder, &["does not name one origin"]);
    }
    folder.write("toolcell.toml", with("true"));
    assert_refused(&folder, &["passthrough"]);
    // The same origin for another issuer's tokens is another grant.
    folder.write("toolcell.toml", manifest.replace("https://login.example.com", "https://other.example.com"));
    let differs = Command::in_folder(&folder, &["diff"]).run();
    assert!(differs.code() == 1 && differs.stdout.contains("https://other.example.com"), "{differs:?}");
}
