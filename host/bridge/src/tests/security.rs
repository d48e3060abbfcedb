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
    assert_eq!(bridge.notes, ["the security scheme \"b\" is left out: PETS_A has its place"]);
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
    let schemes =
        json!({"k\"]\n[x": {"type": "apiKey", "in": "query", "name": "a\"\n[components.evil]\nsource = \"x"}});
    let bridge = bridge(&secured(schemes, json!([{"k\"]\n[x": []}]), json!({})));
    let tables = bridge.grants.tables("pets");
    assert!(
        tables.contains(r#"PETS_K_X = { from = "env:PETS_K_X", query = "a\"\n[components.evil]\nsource = \"x", "#),
        "{tables}"
    );
}
