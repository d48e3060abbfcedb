//! Limits of HTTP: each is exceeded once and met once.
//!
//! Promise: a server cannot take memory or time.

use serde_json::{Value, json};
use toolcell_tests::TestHost;
use toolcell_tests::loopback::{HttpServer, NameServer, Named};

use super::{came_to, host};

const FIXTURE: &str = "reach_http";

/// A host whose guest may send any request to this server, under these limits.
fn limited(server: &HttpServer, limits: &str) -> TestHost {
    let address = server.address();
    host(
        FIXTURE,
        &format!(
            "[{{c}}.network]\nhttp = [\"http://{address}\"]\nprivate = [\"{address}\"]\n\n[{{c}}.limits]\n{limits}\n"
        ),
    )
}

/// The outcome of one request.
fn fetched(host: &mut TestHost, url: String) -> Result<Value, String> {
    came_to(&host.call("http", json!({"url": url, "read_max": 50_000_000})))
}

#[test]
fn requests_of_a_call_are_counted() {
    let server = HttpServer::start();
    let mut host = limited(&server, "http_requests = 3");
    let requests: Vec<Value> = (0..5).map(|number| json!({"url": server.url(&format!("/{number}"))})).collect();
    for round in 1..=2 {
        let found = came_to(&host.call("http_each", json!({"requests": requests}))).unwrap();
        let refused = json!({"error": "response: ErrorCode::ConnectionLimitReached"});
        assert_eq!((&found[2]["ok"]["status"], &found[3], &found[4]), (&json!(200), &refused, &refused));
        assert_eq!(server.seen().len(), 3 * round, "each call has its own");
    }
}

#[test]
fn what_the_host_keeps_of_a_request_is_bounded_before_it_is_sent() {
    let server = HttpServer::start();
    let mut host = limited(&server, "");
    let url = server.url("/");
    let longest = "a".repeat(8 << 10);
    let longer = format!("{longest}a");
    let longest_path = format!("/{}", "a".repeat(65_533));
    // The part after the `#` is not sent.
    let longer_path = format!("/#{}", "a".repeat(65_533));
    let authority = |text: &str| json!({"scheme": "http", "authority": text, "path": "/"});
    let path = |text: &str| json!({"scheme": "http", "authority": server.address().to_string(), "path": text});
    let rows = [
        (authority(&longest), authority(&longer), "set-authority: refused"),
        (json!({"url": url, "method": longest}), json!({"url": url, "method": longer}), "set-method: refused"),
        (path(&longest_path), path(&longer_path), "set-path-with-query: refused"),
    ];
    for (kept, refused, error) in rows {
        assert_ne!(came_to(&host.call("http", kept)), Err(error.to_owned()));
        assert_eq!(came_to(&host.call("http", refused)), Err(error.to_owned()));
    }
    host.still_works();
}

#[test]
fn requests_at_once_wait_their_turn_and_no_longer_than_for_a_connection() {
    let server = HttpServer::start();
    let mut host =
        limited(&server, "http_concurrency = 2\nhttp_connect = \"1s\"\nhttp_first_byte = \"5s\"\ndeadline = \"20s\"");
    let found = came_to(&host.call("http_at_once", json!({"url": server.url("/silent"), "count": 4}))).unwrap();
    let taken = found["taken"].as_array().unwrap();
    let count = |what: &str| taken.iter().filter(|outcome| **outcome == what).count();
    assert_eq!(count("ErrorCode::HttpResponseTimeout"), 2, "{found}");
    assert_eq!(count("ErrorCode::ConnectionLimitReached"), 2, "{found}");
    assert_eq!(server.connections(), 2);
    let found = came_to(&host.call("http_at_once", json!({"url": server.url("/echo"), "count": 2}))).unwrap();
    assert_eq!(found["taken"], json!(["200", "200"]));
}

#[test]
fn bytes_sent_are_counted() {
    let server = HttpServer::start();
    let mut host = limited(&server, "egress = \"16KiB\"");
    let mut posted =
        |bytes: u64| {
            came_to(&host.call(
                "http",
                json!({"method": "POST", "url": server.url("/echo"), "body_bytes": bytes, "read_max": 10}),
            ))
        };
    assert_eq!(posted(15_000).unwrap()["status"], 200);
    let refused = posted(40_000).unwrap_err();
    assert!(refused.starts_with("response: ErrorCode::HttpRequestBodySize"), "{refused}");
    let longest = server.seen().into_iter().map(|seen| seen.body.len()).max().unwrap();
    assert!(longest <= 16 * 1024, "{longest}");
}

#[test]
fn bytes_received_are_counted_however_they_come() {
    let server = HttpServer::start();
    let mut host = limited(&server, "ingress = \"64KiB\"");
    assert_eq!(fetched(&mut host, server.url("/bytes/60000")).unwrap()["ended"], "end");
    for path in ["/bytes/100000", "/endless"] {
        let found = fetched(&mut host, server.url(path)).unwrap();
        assert!(
            found["ended"].as_str().unwrap().starts_with("HTTP response body size exceeds limit"),
            "{path}: {found}"
        );
        assert!(found["bytes"].as_u64().unwrap() <= 64 * 1024, "{path}: {found}");
    }
    host.still_works();
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let server = HttpServer::start();
    let mut host = limited(&server, "http_first_byte = \"300ms\"");
    for path in ["/silent", "/slow-head"] {
        assert_eq!(
            fetched(&mut host, server.url(path)),
            Err("response: ErrorCode::HttpResponseTimeout".to_owned()),
            "{path}"
        );
    }
    host.still_works();
}

#[test]
fn a_body_that_never_ends_is_given_up() {
    let server = HttpServer::start();
    let mut host = limited(&server, "http_time = \"2s\"");
    let found = fetched(&mut host, server.url("/dribble")).unwrap();
    assert_eq!(found["ended"], "HTTP response timeout", "{found}");
    assert!(found["bytes"].as_u64().unwrap() < 200, "{found}");
}

#[test]
fn a_guest_can_wait_less_and_not_longer_than_the_manifest_lets_it() {
    let server = HttpServer::start();
    let mut host = limited(&server, "http_first_byte = \"500ms\"\ndeadline = \"20s\"");
    for first_byte_ms in [50, 3_600_000] {
        let started = std::time::Instant::now();
        let found = came_to(&host.call("http", json!({"url": server.url("/silent"), "first_byte_ms": first_byte_ms})));
        assert_eq!(found, Err("response: ErrorCode::HttpResponseTimeout".to_owned()));
        assert!(started.elapsed() < std::time::Duration::from_secs(15), "{first_byte_ms}: {:?}", started.elapsed());
    }
}

#[test]
fn the_calls_deadline_ends_a_request() {
    let server = HttpServer::start();
    let mut host = limited(&server, "deadline = \"400ms\"");
    for path in ["/silent", "/dribble"] {
        let answer = host.call("http", json!({"url": server.url(path), "read_max": 1_000_000_000_u64}));
        let text = answer.result()["content"][0]["text"].as_str().unwrap();
        assert!(answer.is_error() && text.contains("deadline"), "{path}: {text}");
    }
    host.still_works();
}

#[test]
fn a_cancelled_call_gives_its_request_up() {
    let server = HttpServer::start();
    let mut host = limited(&server, "");
    let id = host.start_call("http", json!({"url": server.url("/silent")}));
    let end = std::time::Instant::now() + toolcell_tests::patience();
    while server.seen().is_empty() {
        assert!(std::time::Instant::now() < end, "no request came");
        std::thread::yield_now();
    }
    host.cancel(&id);
    let _ = host.recorded("the end of the call", |record| {
        record["event"] == "call.finished" && record["outcome"] == "cancelled"
    });
    host.still_works();
}

#[test]
fn header_fields_are_counted_on_the_way_out() {
    let server = HttpServer::start();
    let mut host = limited(&server, "http_headers = 10\nhttp_header_bytes = \"1KiB\"");
    let mut asked =
        |headers: Value| came_to(&host.call("http", json!({"url": server.url("/echo"), "headers": headers})));
    let fields = |count: usize| Value::from_iter((0..count).map(|number| json!([format!("X-{number}"), "v"])));
    assert_eq!(asked(fields(10)).unwrap()["status"], 200);
    let seen = server.seen().len();
    for (headers, step) in [(fields(11), "11 fields"), (json!([["X-Long", "v".repeat(2000)]]), "2000 bytes")] {
        let refused = asked(headers).unwrap_err();
        assert!(refused.contains("ErrorCode::HttpRequestHeaderSectionSize"), "{step}: {refused}");
    }
    assert_eq!(server.seen().len(), seen);
}

#[test]
fn header_bombs_are_refused_on_the_way_in() {
    let server = HttpServer::start();
    let mut host = limited(&server, "http_headers = 20\nhttp_header_bytes = \"2KiB\"");
    for path in ["/fields/10", "/field-bytes/1500"] {
        assert_eq!(fetched(&mut host, server.url(path)).unwrap()["status"], 200, "{path}");
    }
    for path in ["/fields/30", "/fields/20000", "/field-bytes/3000", "/field-bytes/5000000"] {
        let refused = fetched(&mut host, server.url(path)).unwrap_err();
        assert!(refused.starts_with("response: ErrorCode::HttpResponseHeaderSectionSize"), "{path}: {refused}");
    }
    host.still_works();
}

#[test]
fn a_name_server_that_never_answers_is_given_up() {
    let server = HttpServer::start();
    let names = NameServer::answering(&[("slow.example", &[Named::Silent])]);
    let p = server.port();
    let tables = format!(
        "[server]\ndns = [\"{}\"]\n\n[{{c}}.network]\nhttp = [\"http://slow.example:{p}\"]\n\n[{{c}}.limits]\nhttp_connect = \"300ms\"\n",
        names.address()
    );
    let mut host = host(FIXTURE, &tables);
    let found = fetched(&mut host, format!("http://slow.example:{p}/")).unwrap_err();
    assert!(
        ["response: ErrorCode::DnsTimeout", "response: ErrorCode::ConnectionTimeout"].contains(&found.as_str()),
        "{found}"
    );
}
