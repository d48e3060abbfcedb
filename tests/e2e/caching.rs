//! Caching hints of 2026-07-28: `ttlMs` and `cacheScope` on lists, readings and discovery.

use serde_json::{Value, json};
use toolcell_tests::{MODERN_REVISION, TestHost, manifest_of};

use crate::resource_files::folder;

/// Everything that is listed and read: files, entries of state, resources of components and of
/// tools, and prompts.
fn manifest(more: &str) -> String {
    let served = manifest_of(&["reach_files", "reach_state", "resources", "conformance", "good"]);
    format!(
        "{served}[components.reach_files.filesystem]\n\"/docs\" = {{ path = \"docs\" }}\n\
         [components.reach_files.resources]\n\"file:///docs/{{+path}}\" = {{ mount = \"/docs\" }}\n\
         [components.reach_state.resources]\n\"kept:{{key}}\" = {{ keyvalue = \"default\" }}\n\
         [components.conformance.resources]\n\"test://static-text\" = {{ tool = \"read_resource\" }}\n\
         [prompts.greet]\ntext = \"Hello.\"\n{more}"
    )
    .replace("fuel = 20_000_000", "fuel = 2_000_000_000")
}

fn hints(reply: &Value) -> (Value, Value) {
    assert!(reply["result"].is_object(), "{reply}");
    (reply["result"]["ttlMs"].clone(), reply["result"]["cacheScope"].clone())
}

fn asked() -> Vec<(&'static str, Value, &'static str)> {
    let read = |uri: &str| json!({"uri": uri});
    vec![
        ("server/discover", json!({}), "public"),
        ("tools/list", json!({}), "shared"),
        ("prompts/list", json!({}), "shared"),
        // What tools embed for a client is in its list alone.
        ("resources/list", json!({}), "private"),
        ("resources/templates/list", json!({}), "shared"),
        ("resources/read", read("file:///docs/plain"), "shared"),
        ("resources/read", read("test://static-text"), "private"),
        ("resources/read", read("own:///index"), "private"),
        ("resources/read", read("note://one"), "private"),
    ]
}

#[test]
fn lists_readings_and_discovery_say_who_may_keep_them_and_nothing_else_does() {
    let state = |keys: &str| format!("[components.reach_state.keyvalue]\n{keys}\n");
    let callers = "[callers.local]\ntools = [\"*\"]\nprompts = [\"*\"]\n";
    for (more, shared, kept) in [
        (state(""), "public", "public"),
        (state("per_caller = true"), "public", "private"),
        (format!("{}{callers}", state("")), "private", "private"),
    ] {
        let mut host = TestHost::in_folder(folder(&manifest(&more)));
        let _ = host.call("every_kind", json!({}));
        let _ = host.call("keyvalue", json!({"op": "set", "key": "a", "value": "b"}));
        for (method, params, scope) in asked() {
            let expected = if scope == "shared" { shared } else { scope };
            let reply = host.request(method, params.clone());
            assert_eq!(hints(&reply), (json!(0), json!(expected)), "{method} {params}");
        }
        assert_eq!(hints(&host.request("resources/read", json!({"uri": "kept:a"}))), (json!(0), json!(kept)));
        let completing = json!({"ref": {"type": "ref/resource", "uri": "file:///docs/{+path}"},
                                "argument": {"name": "path", "value": ""}});
        for (method, params) in [
            ("tools/call", json!({"name": "echo", "arguments": {"text": "x"}})),
            ("prompts/get", json!({"name": "greet"})),
            ("completion/complete", completing),
        ] {
            assert_eq!(hints(&host.request(method, params)), (Value::Null, Value::Null), "{method}");
        }
        // Revisions before have no such hints.
        host.initialize("2025-11-25");
        for (method, params, _) in asked().into_iter().skip(1) {
            // A session has what its own calls embedded.
            if params != json!({"uri": "note://one"}) {
                assert_eq!(hints(&host.request(method, params)), (Value::Null, Value::Null), "{method}");
            }
        }
    }
    assert_eq!(MODERN_REVISION, "2026-07-28", "a newer one may have other hints");
}
