//! Servers: variables, addresses relative to the document's, and other hosts.
use serde_json::{Value, json};

use super::{document, options, with};
use crate::{Bridge, BridgeOptions};

/// The first rule for these servers; the problem if there is none.
fn rule(servers: &Value, address: Option<&str>, server: Option<&str>) -> Result<String, String> {
    let document = with(document(json!({"/x": {"get": {}}})), "servers", servers.clone());
    let options = BridgeOptions { address: address.map(str::to_owned), server: server.map(str::to_owned), ..options() };
    let bridge = Bridge::of(&document, &options, |_| Ok(())).map_err(|error| error.problem)?;
    Ok(bridge.grants.http.concat().replace("GET ", ""))
}

#[test]
fn servers_have_variables_and_may_be_relative() {
    let at = Some("https://docs.example.com/api/v2/openapi.json?x=y");
    let variables = json!([{"url": "https://{region}.Example.com:{port}/{base}", "variables": {
        "region": {"default": "eu", "enum": ["eu", "us"]}, "port": {"default": 443}, "base": {"default": "v1/"},
    }}]);
    for (servers, address, expected) in [
        (variables, None, Ok("https://eu.example.com/v1/x")),
        (json!([{"url": "/v1"}]), at, Ok("https://docs.example.com/v1/x")),
        (json!([{"url": "v1"}]), at, Ok("https://docs.example.com/api/v2/v1/x")),
        (json!([{"url": "./v1/"}]), at, Ok("https://docs.example.com/api/v2/v1/x")),
        (json!([{"url": "//cdn.example.com"}]), at, Ok("https://cdn.example.com/x")),
        (json!([]), at, Ok("https://docs.example.com/x")),
        (json!([{"url": "http://[::1]:8080"}]), None, Ok("http://[::1]:8080/x")),
        (json!([{"url": "/v1"}]), None, Err("the document's server \"/v1\" has no host, and a file has none either")),
        (json!([{"url": "../v1"}]), at, Ok("https://docs.example.com/api/v1/x")),
        (json!([{"url": "../../../../v1/./a"}]), at, Ok("https://docs.example.com/v1/a/x")),
        (json!([{"url": "."}]), at, Ok("https://docs.example.com/api/v2/x")),
        (json!([{"url": "/a/../b"}]), at, Ok("https://docs.example.com/b/x")),
        (json!([{"url": "//cdn.example.com"}]), None, Ok("https://cdn.example.com/x")),
        (json!([{"url": "/v1"}, {"url": "https://a.example"}]), None, Ok("https://a.example/x")),
        (json!([{"url": "/v1"}, {"url": "https://a.example"}]), at, Ok("https://docs.example.com/v1/x")),
        (json!([{"url": "https://{host}/"}]), None, Err("the server \"https://{host}/\" has no default for \"host\"")),
        (json!([{"url": "https://{host"}]), None, Err("the server \"https://{host\" is cut off")),
        (
            json!([{"url": "https://user:key@example.com"}]),
            None,
            Err("\"https://user:key@example.com\" has no proper host"),
        ),
        (
            json!([{"url": "ftp://example.com"}]),
            None,
            Err("\"ftp://example.com\" is not the address of an HTTP server"),
        ),
        (json!([{"url": "https://*"}]), None, Err("\"https://*\" has no proper host")),
        (json!([{"url": "https://example.com:0"}]), None, Err("\"https://example.com:0\" has no proper host")),
        (
            json!([{"url": "https://example.com/a?b"}]),
            None,
            Err("\"https://example.com/a?b\" has a path that servers may read in several ways, or a query"),
        ),
        (
            json!([{"url": "https://example.com/*"}]),
            None,
            Err("\"https://example.com/*\" has a path that servers may read in several ways, or a query"),
        ),
    ] {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(rule(&servers, address, None), expected, "{servers}");
    }
    let named = rule(&json!([{"url": "/v1"}]), None, Some("https://own.example.com/"));
    assert_eq!(named.as_deref(), Ok("https://own.example.com/x"));
}

#[test]
fn a_person_hears_where_requests_go() {
    let document = with(document(json!({"/x": {"get": {}}})), "servers", json!([{"url": "http://other.example"}]));
    let options = BridgeOptions { address: Some("https://docs.example.com/openapi.json".to_owned()), ..options() };
    let notes = Bridge::of(&document, &options, |_| Ok(())).unwrap().notes;
    assert_eq!(
        notes,
        [
            "requests to http://other.example are not encrypted",
            "requests go to http://other.example, which is not where the document is",
        ]
    );
}
