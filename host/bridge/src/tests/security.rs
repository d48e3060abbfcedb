//! Security schemes, and the tables that a manifest gets.
use serde_json::{Value, json};

use super::{bridge, document, options, with};
use crate::{Bridge, BridgeOptions};

fn secured(schemes: Value, required: Value, operation: Value) -> Value {
    let document = document(json!({"/x": {"get": operation}}));
    with(with(document, "components", json!({"securitySchemes": schemes})), "security", required)
}

#[test]
fn keys_and_tokens_are_secrets_of_the_host() {
    let schemes = json!({
        "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
        "part": {"type": "apiKey", "in": "query", "name": "appid"},
        "token": {"type": "http", "scheme": "Bearer"},
        "unused": {"type": "http", "scheme": "basic"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    });
    let required = json!([{"cookie": []}, {"key": [], "part": [], "token": []}, {"unused": []}]);
    let parameters = json!({"parameters": [
        {"name": "x-api-key", "in": "header", "required": true},
        {"name": "appid", "in": "query", "required": true},
    ]});
    let bridge = bridge(&secured(schemes, required, parameters));
    assert_eq!(bridge.definitions.tools[0].input["properties"], json!({}));
    assert_eq!(
        bridge.grants.tables("pets"),
        r#"[components."pets".network]
http = [
    "GET https://api.example.com/v1/x",
]

[components."pets".secrets]
PETS_KEY = { from = "env:PETS_KEY", header = "X-Api-Key", for = "https://api.example.com/v1/*" }
PETS_PART = { from = "env:PETS_PART", query = "appid", for = "https://api.example.com/v1/*" }
PETS_TOKEN = { from = "env:PETS_TOKEN", header = "Authorization", value = "Bearer {}", for = "https://api.example.com/v1/*" }
"#
    );
    assert_eq!(bridge.notes, ["the security scheme \"cookie\" is a cookie, and is left out"]);
}

#[test]
fn two_schemes_for_one_header_do_not_meet() {
    let schemes = json!({"a": {"type": "http", "scheme": "basic"}, "b": {"type": "http", "scheme": "bearer"}});
    let bridge = bridge(&secured(schemes, json!([{"a": [], "b": []}]), json!({})));
    let names: Vec<&str> = bridge.grants.secrets.iter().map(|secret| secret.name.as_str()).collect();
    assert_eq!(names, ["PETS_A"]);
    assert_eq!(bridge.notes, ["the security scheme \"b\" is left out: \"a\" has its place"]);
}

#[test]
fn a_login_needs_a_client_and_has_the_scopes_of_its_operations() {
    let flow = json!({"authorizationUrl": "https://login.example.com/a", "tokenUrl": "https://login.example.com/t", "scopes": {}});
    let schemes = json!({"sign in": {"type": "oauth2", "flows": {"authorizationCode": flow}}});
    let document = secured(schemes, json!([]), json!({"security": [{"sign in": ["write", "read"]}]}));
    let without = bridge(&document);
    assert_eq!((without.grants.secrets.len(), without.grants.login), (0, None));
    assert_eq!(without.notes, ["the login \"sign in\" is left out: --client-id names the client that you registered"]);
    let options = BridgeOptions { client_id: Some("desk".to_owned()), ..options() };
    let tables = Bridge::of(&document, &options, |_| Ok(())).unwrap().grants.tables("pets");
    let expected = r#"PETS_SIGN_IN = { from = "oauth:pets", header = "Authorization", value = "Bearer {}", for = "https://api.example.com/v1/*" }

[oauth.pets]
authorize = "https://login.example.com/a"
token = "https://login.example.com/t"
client_id = "desk"
scopes = ["read", "write"]
"#;
    assert!(tables.ends_with(expected), "{tables}");
}

#[test]
fn texts_of_a_document_end_no_text_of_the_manifest() {
    let evil = "a\"\n[components.evil]\nsource = \"x";
    let schemes = json!({
        "k\"]\n[x": {"type": "apiKey", "in": "query", "name": "a"},
        "q": {"type": "apiKey", "in": "query", "name": evil},
    });
    let bridge = bridge(&secured(schemes, json!([{"q": []}, {"k\"]\n[x": []}]), json!({})));
    let tables = bridge.grants.tables("pets");
    assert!(tables.contains(r#"PETS_K_X = { from = "env:PETS_K_X", query = "a", "#), "{tables}");
    assert!(!tables.contains("evil"), "{tables}");
}

/// A document with these operations, which need these schemes: of each its name and its `security`.
fn operations(schemes: &Value, operations: &[(&str, Value)]) -> Value {
    let paths = operations
        .iter()
        .map(|(name, required)| (format!("/{name}"), json!({"get": {"operationId": name, "security": required}})));
    let document = document(Value::Object(paths.collect()));
    with(document, "components", json!({"securitySchemes": schemes}))
}

fn names(bridge: &Bridge) -> Vec<&str> {
    bridge.definitions.tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[test]
fn a_place_in_requests_has_the_scheme_that_most_operations_need() {
    let schemes = json!({
        "admin": {"type": "http", "scheme": "bearer"},
        "key": {"type": "http", "scheme": "bearer"},
    });
    let document = operations(
        &schemes,
        &[
            ("one", json!([{"key": []}])),
            ("two", json!([{"key": []}])),
            ("keys", json!([{"admin": []}])),
            ("both", json!([{"admin": []}, {"key": []}])),
            ("maybe", json!([{"admin": []}, {}])),
        ],
    );
    let bridge = bridge(&document);
    assert_eq!(names(&bridge), ["one", "two", "both", "maybe"]);
    assert_eq!(bridge.left_out[0].operation, "GET /keys");
    let reason = "needs \"admin\", and a request has one place for it and \"key\": add it by itself with --only";
    assert_eq!(bridge.left_out[0].reason, reason);
    let tables = bridge.grants.tables("pets");
    let expected = r#"
[components."pets".secrets]
PETS_KEY = { from = "env:PETS_KEY", header = "Authorization", value = "Bearer {}", for = "https://api.example.com/v1/*" }

[components."pets".tools."maybe"]
secrets = []
"#;
    assert!(tables.ends_with(expected), "{tables}");
    let only = BridgeOptions { only: vec!["pets_keys".to_owned()], ..options() };
    let admin = Bridge::of(&document, &only, |_| Ok(())).unwrap();
    assert_eq!((names(&admin), admin.grants.secrets[0].name.as_str()), (vec!["keys"], "PETS_ADMIN"));
}

#[test]
fn a_request_carries_only_what_its_operation_asks_for() {
    let schemes = json!({
        "a": {"type": "apiKey", "in": "header", "name": "X-A"},
        "a-": {"type": "apiKey", "in": "query", "name": "b"},
    });
    let bridge = bridge(&operations(
        &schemes,
        &[("all", json!([{"a": [], "a-": []}])), ("one", json!([{"a-": []}])), ("login", json!([]))],
    ));
    let tables = bridge.grants.tables("pets");
    assert!(tables.contains("PETS_A_2 = { from = \"env:PETS_A_2\", query = \"b\""), "{tables}");
    let expected = r#"
[components."pets".tools."one"]
secrets = ["PETS_A_2"]

[components."pets".tools."login"]
secrets = []
"#;
    assert!(tables.ends_with(expected), "{tables}");
}

#[test]
fn a_parameter_stays_unless_a_secret_of_its_operation_fills_it() {
    let schemes = json!({
        "key": {"type": "apiKey", "in": "query", "name": "token"},
        "unused": {"type": "apiKey", "in": "header", "name": "X-Key"},
    });
    let token = json!([
        {"name": "token", "in": "query", "required": true},
        {"name": "x-key", "in": "header", "required": true},
        {"name": "Authorization", "in": "header", "required": true},
    ]);
    let mut document = operations(&schemes, &[("verify", json!([])), ("me", json!([{"key": []}]))]);
    document["paths"]["/verify"]["get"]["parameters"] = token.clone();
    document["paths"]["/me"]["get"]["parameters"] = token;
    let bridge = bridge(&document);
    let required: Vec<&Value> = bridge.definitions.tools.iter().map(|tool| &tool.input["required"]).collect();
    assert_eq!(required, [&json!(["token", "x-key"]), &json!(["x-key"])]);
    let note = "verify: the required header \"Authorization\" is left out: OpenAPI wants a security scheme for it; a \
                secret of the manifest can be it";
    assert_eq!(bridge.notes[0], note);
}

#[test]
fn a_key_is_taken_where_the_login_before_it_has_no_client() {
    let flow = json!({"authorizationUrl": "https://a.example/a", "tokenUrl": "https://a.example/t", "scopes": {}});
    let schemes = json!({
        "o": {"type": "oauth2", "flows": {"authorizationCode": flow}},
        "k": {"type": "apiKey", "in": "header", "name": "X-Key"},
    });
    let document = secured(schemes, json!([{"o": ["read all", "read"]}, {"k": []}]), json!({}));
    assert_eq!(bridge(&document).grants.secrets[0].name, "PETS_K");
    let client = BridgeOptions { client_id: Some("desk".to_owned()), ..options() };
    let bridge = Bridge::of(&document, &client, |_| Ok(())).unwrap();
    assert_eq!((bridge.grants.secrets.len(), bridge.grants.secrets[0].name.as_str()), (1, "PETS_O"));
    assert_eq!(bridge.grants.login.unwrap().scopes, ["read"]);
    assert_eq!(bridge.notes, ["the scope \"read all\" is left out: it has characters that no scope has"]);
}

#[test]
fn a_scheme_that_no_manifest_takes_is_left_out() {
    for (scheme, note) in [
        (json!({"type": "apiKey", "in": "query", "name": "key[]"}), "no secret can be the query \"key[]\""),
        (json!({"type": "apiKey", "in": "header", "name": "Host"}), "no secret can be the header \"Host\""),
        (json!({"type": "apiKey", "in": "header", "name": "x".repeat(257)}), "no secret can be the header \"xxxx"),
    ] {
        let bridge = bridge(&secured(json!({"s": scheme}), json!([{"s": []}]), json!({})));
        assert_eq!((bridge.grants.secrets.len(), bridge.definitions.tools.len()), (0, 1));
        let note = format!("the security scheme \"s\" is left out: {note}");
        assert!(bridge.notes[0].starts_with(&note), "{:?}", bridge.notes);
    }
    for address in ["https://a.example/a\"b", "https://a.example/#x", "https://u:p@a.example/a", "https:///a"] {
        let flow = json!({"authorizationUrl": address, "tokenUrl": "https://a.example/t", "scopes": {}});
        let schemes = json!({"s": {"type": "oauth2", "flows": {"authorizationCode": flow}}});
        let bridge = bridge(&secured(schemes, json!([{"s": []}]), json!({})));
        let expected = ["the security scheme \"s\" has no proper authorizationUrl, and is left out"];
        assert_eq!(bridge.notes, expected, "{address}");
    }
}
