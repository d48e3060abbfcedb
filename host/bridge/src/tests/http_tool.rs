//! Requests of a manifest, and what becomes of them.
use serde_json::{Value, json};

use crate::{Bridge, BridgeError, HttpToolRequest};

fn of(method: &str, url: &str, input: Value) -> Result<Bridge, BridgeError> {
    let description = "Finds places.";
    Bridge::of_http_tool(&HttpToolRequest {
        name: "places",
        method,
        url,
        description,
        input: input.as_object().unwrap(),
    })
}

fn input(names: &[&str], required: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

#[test]
fn an_address_becomes_the_line_of_one_request() {
    let url = "https://API.example.com/v1/{country}/places?units=metric&q={text}&lang={lang}";
    let bridge = of("POST", url, input(&["country", "text", "lang", "body"], &["country"])).unwrap();
    assert_eq!(bridge.grants.http, ["POST https://api.example.com/v1/{}/places"]);
    let bytes = bridge.definitions.bytes();
    let lines: Vec<Value> =
        bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    assert_eq!(lines[0], json!({"format": 1, "origin": "https://api.example.com"}));
    assert_eq!(
        lines[1],
        json!({
            "tool": "places", "method": "POST", "path": "/v1/{country}/places?units=metric",
            "parameters": [
                {"name": "country", "argument": "country", "place": "path", "style": "simple", "explode": false},
                {"name": "q", "argument": "text", "place": "query", "style": "form", "explode": true},
                {"name": "lang", "argument": "lang", "place": "query", "style": "form", "explode": true},
            ],
            "body": {"argument": "body", "media": "application/json", "form": "json"},
            "accept": "application/json, */*;q=0.5", "output": "free",
        })
    );
    assert_eq!((&lines[2]["name"], &lines[2]["description"]), (&json!("places"), &json!("Finds places.")));
}

#[test]
fn what_cannot_be_asked_is_refused() {
    for (method, url, names, problem) in [
        ("GET", "api.example.com/x", &[][..], "\"api.example.com/x\" is not an address"),
        ("GET", "ftp://a.example/x", &[], "\"ftp://a.example\" is not the address of an HTTP server"),
        (
            "GET",
            "https://a.example/../x",
            &[],
            "\"https://a.example/../x\" has a path that servers may read in several ways",
        ),
        (
            "GET",
            "https://a.example/{b",
            &[],
            "\"https://a.example/{b\" has a path that servers may read in several ways",
        ),
        (
            "GET",
            "https://a.example/b#c",
            &[],
            "\"https://a.example/b#c\" has a path that servers may read in several ways",
        ),
        ("GET", "https://a.example/{b}", &[], "the address has {b}, which is not an argument of input"),
        (
            "GET",
            "https://a.example/{b}",
            &["b"],
            "the argument \"b\" is a part of the path, and a call may leave it out",
        ),
        ("GET", "https://a.example/?q=x{b}", &["b"], "the part \"q=x{b}\" of the query is neither"),
        ("GET", "https://a.example/?q=a b", &[], "the part \"q=a b\" of the query is neither"),
        ("GET", "https://a.example/", &["b"], "the argument \"b\" of input stands nowhere in the request"),
        ("GET", "https://a.example/", &["body"], "a request with GET has no body, and input has \"body\""),
    ] {
        let refused = of(method, url, input(names, &[])).unwrap_err();
        assert!(refused.problem.starts_with(problem), "{url}: {refused:?}");
    }
}
