//! HTTP: each part of a rule, the request that arrives and the response that comes back, redirects,
//! proxies, and rules that are refused at load.
//!
//! Promise: a request goes where its rule says.
//! Promise: a redirect grants nothing.
//! Promise: the environment's proxies are ignored.

use serde_json::{Value, json};
use toolcell_tests::loopback::{HttpServer, NameServer, Named};
use toolcell_tests::{Command, TestHost};

use super::{Denied, assert_denied, assert_refused, came_to, folder, host};

const FIXTURE: &str = "reach_http";

/// The error that the guest gets for a request that no rule allows.
const REFUSED: &str = "response: ErrorCode::HttpRequestDenied";

/// All names of the tests. Each resolves to this machine's loopback address.
fn names() -> NameServer {
    let here = [Named::at(&["127.0.0.1"])];
    let names = [
        "method.example",
        "exact.example",
        "sub.exact.example",
        "exact.example.evil.example",
        "evilexact.example",
        "wild.example",
        "a.wild.example",
        "a.b.wild.example",
        "evilwild.example",
        "path.example",
        "one.example",
        "scheme.example",
        "port.example",
        "other.example",
    ];
    let script: Vec<(&str, &[Named])> = names.iter().map(|name| (*name, &here[..])).collect();
    NameServer::answering(&script)
}

/// Tables that grant these rules, at these name servers, with the server's address.
fn tables(rules: &[String], names: &NameServer, server: &HttpServer) -> String {
    let rules: Vec<String> = rules.iter().map(|rule| format!("{rule:?}")).collect();
    format!(
        "[server]\ndns = [\"{}\"]\n\n[{{c}}.network]\nhttp = [{}]\nprivate = [\"{}\"]\n",
        names.address(),
        rules.join(", "),
        server.address(),
    )
}

fn get(url: impl Into<String>) -> Value {
    json!({"url": url.into()})
}

#[test]
fn each_part_of_a_rule_decides() {
    let server = HttpServer::start();
    let names = names();
    let p = server.port();
    let rules = [
        format!("GET http://method.example:{p}"),
        format!("GET,POST http://one.example:{p}/only"),
        format!("http://exact.example:{p}"),
        format!("http://*.wild.example:{p}"),
        format!("http://path.example:{p}/v1/*"),
        format!("https://scheme.example:{p}"),
        "http://port.example".to_owned(),
        format!("http://127.0.0.1:{p}/by-address"),
    ];
    let mut host = host(FIXTURE, &tables(&rules, &names, &server));
    let rows: [(&str, &str, bool); 59] = [
        ("GET", "http://method.example:{p}/any/path?and=query", true),
        ("HEAD", "http://method.example:{p}/", false),
        ("POST", "http://method.example:{p}/", false),
        ("get", "http://method.example:{p}/", false),
        ("GET", "http://one.example:{p}/only", true),
        ("POST", "http://one.example:{p}/only", true),
        ("PUT", "http://one.example:{p}/only", false),
        ("GET", "http://one.example:{p}/only/", false),
        ("GET", "http://one.example:{p}/only?query", true),
        ("GET", "http://one.example:{p}/onlymore", false),
        ("GET", "http://one.example:{p}", false),
        ("DELETE", "http://exact.example:{p}/x", true),
        ("PROPFIND", "http://exact.example:{p}/x", true),
        ("GET", "http://EXACT.Example:{p}/x", true),
        ("GET", "http://exact.example.:{p}/x", true),
        ("GET", "http://sub.exact.example:{p}/x", false),
        ("GET", "http://exact.example.evil.example:{p}/x", false),
        ("GET", "http://evilexact.example:{p}/x", false),
        ("CONNECT", "http://exact.example:{p}/x", false),
        ("TRACE", "http://exact.example:{p}/x", false),
        ("GET", "http://user@exact.example:{p}/x", false),
        ("GET", "http://user:word@exact.example:{p}/x", false),
        ("GET", "http://a.wild.example:{p}/", true),
        ("GET", "http://a.b.wild.example:{p}/", true),
        ("GET", "http://wild.example:{p}/", false),
        ("GET", "http://evilwild.example:{p}/", false),
        ("GET", "http://path.example:{p}/v1/x", true),
        ("GET", "http://path.example:{p}/v1/x/y", true),
        ("GET", "http://path.example:{p}/v1", false),
        ("GET", "http://path.example:{p}/v10/x", false),
        ("GET", "http://path.example:{p}//v1/x", false),
        ("GET", "http://path.example:{p}/v1/../v2", false),
        ("GET", "http://path.example:{p}/v1/%2e%2e/v2", false),
        ("GET", "http://path.example:{p}/v1/..%2fv2", false),
        ("GET", "http://path.example:{p}/v1/%252e%252e%252fv2", false),
        ("GET", "http://path.example:{p}/v1\\..\\v2", false),
        ("GET", "http://path.example:{p}/v1/..%3b/admin", false),
        ("GET", "http://path.example:{p}/v1/..;/admin", false),
        ("GET", "http://path.example:{p}/v1/%c0%ae%c0%ae/admin", false),
        ("GET", "http://path.example:{p}/v1/%c0%ae%c0%ae%c0%afadmin", false),
        ("GET", "http://path.example:{p}/v1/..%c0%afadmin", false),
        ("GET", "http://path.example:{p}/v1/..%e0%80%afadmin", false),
        ("GET", "http://path.example:{p}/v1/%252e%252e/admin", false),
        ("GET", "http://path.example:{p}/v1/..%255cadmin", false),
        ("GET", "http://path.example:{p}/v1/%ef%bc%8e%ef%bc%8e/admin", false),
        ("GET", "http://path.example:{p}/v1/..%ef%bc%8fadmin", false),
        ("GET", "http://path.example:{p}/v1/..%00/admin", false),
        ("GET", "http://path.example:{p}/v1/..%20/admin", false),
        ("GET", "http://path.example:{p}/v1/.../admin", false),
        ("GET", "http://path.example:{p}/v1/%f0%80%80%ae%f0%80%80%ae/admin", false),
        ("GET", "http://path.example:{p}/v1/%25c0%25ae%25c0%25ae/admin", false),
        ("GET", "http://path.example:{p}/v1/%c4%ae%c4%ae/admin", false),
        ("GET", "http://path.example:{p}/v1/%C3%A9/.well-known;a=b", true),
        ("GET", "http://scheme.example:{p}/", false),
        ("GET", "http://port.example:{p}/", false),
        ("GET", "http://other.example:{p}/", false),
        ("GET", "http://127.0.0.1:{p}/by-address", true),
        ("GET", "http://127.0.0.1:{p}/other", false),
        ("GET", "ftp://exact.example:{p}/x", false),
    ];
    for (method, url, is_allowed) in rows {
        let url = url.replace("{p}", &p.to_string());
        let before = server.seen().len();
        let connected = server.connections();
        let answer = host.call("http", json!({"method": method, "url": url}));
        let found = came_to(&answer);
        if is_allowed {
            assert_eq!(found.as_ref().map(|found| &found["status"]), Ok(&json!(200)), "{method} {url}");
            let seen = server.seen().pop().unwrap();
            assert_eq!((seen.method(), server.seen().len()), (method, before + 1), "{method} {url}");
            assert_eq!(answer.denials(), [""; 0], "{method} {url}");
        } else {
            assert!(found.is_err(), "{method} {url}: {found:?}");
            assert_eq!((server.seen().len(), server.connections()), (before, connected), "{method} {url} arrived");
        }
    }
    for denied in ["other.example", "wild.example", "evilwild.example", "sub.exact.example", "scheme.example"] {
        assert_eq!(names.asked_for(denied), 0, "{denied} was looked up");
    }
    host.still_works();
}

#[test]
fn a_denial_is_told_to_the_model_and_recorded_with_the_line_that_would_allow_it() {
    let server = HttpServer::start();
    let names = names();
    let p = server.port();
    let rules = [format!("GET http://path.example:{p}/v1/*")];
    let mut host = host(FIXTURE, &tables(&rules, &names, &server));
    let section = "components.reach_http.network";
    let rows = [
        (
            json!({"url": format!("http://other.example:{p}/a?key=word")}),
            format!("GET http://other.example:{p}/a"),
            "no rule of tool \"http\" allows it",
            format!("http = [\"GET http://other.example:{p}/a\"]"),
        ),
        (
            json!({"method": "POST", "url": format!("http://path.example:{p}/v1/x")}),
            format!("POST http://path.example:{p}/v1/x"),
            "no rule of tool \"http\" allows it",
            format!("http = [\"POST http://path.example:{p}/v1/x\"]"),
        ),
    ];
    for (arguments, asked, because, allow) in rows {
        let answer = host.call("http", arguments);
        assert_eq!(came_to(&answer), Err(REFUSED.to_owned()));
        let denied = Denied { capability: "http", asked: &asked, because, section, allow: &allow };
        assert_denied(&host, &answer, &denied);
    }
    // A guest's path never leads to a rule that allows more than it: no line is advised.
    for path in ["v1/..%2fv2", "other/*"] {
        let answer = host.call("http", json!({"url": format!("http://path.example:{p}/{path}")}));
        assert_eq!(came_to(&answer), Err(REFUSED.to_owned()));
        let ends = path.replace("%2f", "%2F");
        let asked = format!("GET http://path.example:{p}/{ends}");
        let record = host.recorded(&asked, |record| record["event"] == "call.denied" && record["asked"] == asked);
        assert!(record["section"].is_null() && record["allow"].is_null(), "{record}");
    }
    // A query may hold secrets that only the server may know.
    assert!(!host.audit().iter().any(|record| record.to_string().contains("key=word")));
}

#[test]
fn without_a_grant_no_request_is_made() {
    let server = HttpServer::start();
    let mut host = host(FIXTURE, "");
    let answer = host.call("http", get(server.url("/")));
    assert_eq!(came_to(&answer), Err(REFUSED.to_owned()));
    let asked = format!("GET {}", server.url("/"));
    let allow = format!("http = [\"GET {}\"]", server.url("/"));
    let because = "no rule of tool \"http\" allows it";
    let section = "components.reach_http.network";
    assert_denied(&host, &answer, &Denied { capability: "http", asked: &asked, because, section, allow: &allow });
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_rule_alone_does_not_lead_to_a_private_address() {
    let server = HttpServer::start();
    let rule = format!("[{{c}}.network]\nhttp = [\"http://127.0.0.1:{}\"]\n", server.port());
    let finished = Command::in_folder(&folder(FIXTURE, &rule), &["check"]).run();
    let said = finished.failed_with(1);
    assert!(
        said.contains("private") && said.contains("127.0.0.1"),
        "a rule that can never match is a load error: {said}"
    );
}

#[test]
fn what_the_guest_sends_arrives_and_what_the_server_says_comes_back() {
    let server = HttpServer::start();
    let names = names();
    let p = server.port();
    let mut host = host(FIXTURE, &tables(&[format!("http://exact.example:{p}")], &names, &server));
    let headers = json!([["X-One", "1"], ["x-two", "a, b"], ["X-One", "again"], ["Accept-Encoding", "gzip"]]);
    let sent = json!({"method": "PUT", "url": format!("http://exact.example:{p}/a%20b?c=d&e"), "headers": headers, "body": "héllo"});
    let found = came_to(&host.call("http", sent)).unwrap();
    let seen = server.only_seen();
    assert_eq!((seen.method(), seen.target()), ("PUT", "/a%20b?c=d&e"));
    assert_eq!(seen.body, "héllo".as_bytes());
    assert_eq!(seen.values("host"), [format!("exact.example:{p}")]);
    assert_eq!(seen.values("x-one"), ["1", "again"]);
    assert_eq!(seen.values("x-two"), ["a, b"]);
    assert_eq!(seen.values("accept-encoding"), ["gzip"]);
    for added in ["user-agent", "referer", "cookie", "authorization", "proxy-authorization", "via", "x-forwarded-for"] {
        assert_eq!(seen.values(added), [""; 0], "the host added {added}");
    }
    assert_eq!(found["status"], 200);
    let echoed: Value = serde_json::from_str(found["body"].as_str().unwrap()).unwrap();
    assert_eq!(echoed["body"], "héllo");
}

#[test]
fn a_request_whose_body_is_empty_or_at_hand_is_sent_without_chunks() {
    let server = HttpServer::start();
    let names = names();
    let url = server.url_as("exact.example", "/thing");
    let rule = format!("http://exact.example:{}", server.port());
    let mut host = host(FIXTURE, &tables(&[rule], &names, &server));
    /// The method, the body if there is one, and the headers that must stand in the request.
    type Row = (&'static str, Option<&'static str>, &'static [(&'static str, &'static str)]);
    let rows: [Row; 15] = [
        ("GET", None, &[]),
        ("GET", Some(""), &[]),
        ("HEAD", Some(""), &[]),
        ("DELETE", None, &[]),
        ("DELETE", Some(""), &[]),
        ("PROPFIND", Some(""), &[]),
        ("OPTIONS", Some(""), &[]),
        ("PATCH", None, &[("content-length", "0")]),
        ("PATCH", Some(""), &[("content-length", "0")]),
        ("POST", None, &[("content-length", "0")]),
        ("POST", Some(""), &[("content-length", "0")]),
        ("PUT", Some(""), &[("content-length", "0")]),
        ("PUT", Some("five!"), &[("content-length", "5")]),
        ("DELETE", Some("four"), &[("content-length", "4")]),
        ("PROPFIND", Some("<xml/>"), &[("content-length", "6")]),
    ];
    for (method, body, expected) in rows {
        let mut arguments = json!({"method": method, "url": url});
        if let Some(body) = body {
            arguments["body"] = body.into();
        }
        let answer = host.call("http", arguments);
        assert_eq!(came_to(&answer).unwrap()["status"], 200, "{method} {body:?}");
        let seen = server.seen().pop().unwrap();
        let framing = |(name, _): &(String, String)| name == "content-length" || name == "transfer-encoding";
        let framed: Vec<_> = seen.fields().into_iter().filter(framing).collect();
        let expected: Vec<_> = expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(framed, expected, "{method} {body:?}: {}", seen.head);
        assert_eq!(seen.body, body.unwrap_or_default().as_bytes(), "{method}");
    }
    let answer = host.call("http", json!({"method": "PUT", "url": url, "body_bytes": 20_000}));
    assert_eq!(came_to(&answer).unwrap()["status"], 200);
    let seen = server.seen().pop().unwrap();
    assert_eq!((seen.values("content-length"), seen.body.len()), (vec!["20000".to_owned()], 20_000));
}

#[test]
fn statuses_and_bodies_come_back_as_they_are() {
    let server = HttpServer::start();
    let names = names();
    let p = server.port();
    let mut host = host(FIXTURE, &tables(&[format!("http://exact.example:{p}")], &names, &server));
    let mut at = |path: &str| came_to(&host.call("http", get(format!("http://exact.example:{p}{path}"))));
    for status in [201, 404, 500, 503] {
        let found = at(&format!("/status/{status}")).unwrap();
        assert_eq!((&found["status"], &found["body"]), (&json!(status), &json!("as asked")));
    }
    assert_eq!(at("/bytes/50000").unwrap()["bytes"], 50_000);
    let compressed = at("/gzip").unwrap();
    assert!(compressed["headers"].as_array().unwrap().contains(&json!(["content-encoding", "gzip"])), "{compressed}");
    assert_ne!(compressed["body"], "slow and small", "the host does not decompress");
    assert_eq!(at("/early").unwrap()["body"], "late");
    assert_eq!(at("/switch"), Err("response: ErrorCode::HttpUpgradeFailed".to_owned()));
    let cut = at("/cut").unwrap();
    assert_eq!((&cut["bytes"], &cut["ended"]), (&json!(10), &json!("incomplete HTTP response")));
    let hop = at("/hop").unwrap();
    let names: Vec<&str> = hop["headers"].as_array().unwrap().iter().map(|pair| pair[0].as_str().unwrap()).collect();
    assert!(names.contains(&"x-end"), "{names:?}");
    for between in ["connection", "keep-alive", "proxy-authenticate", "upgrade", "transfer-encoding"] {
        assert!(!names.contains(&between), "{between} reached the guest");
    }
}

#[test]
fn a_redirect_comes_back_to_the_guest_and_is_checked_when_it_is_followed() {
    let server = HttpServer::start();
    let elsewhere = HttpServer::start();
    let names = names();
    let p = server.port();
    let rules = [format!("http://exact.example:{p}"), format!("http://path.example:{p}/v1/*")];
    let mut host = host(FIXTURE, &tables(&rules, &names, &server));
    let from = |goal: &str| format!("http://exact.example:{p}/redirect?{goal}");
    let found = came_to(&host.call("http", get(from("http://other.example/")))).unwrap();
    assert_eq!(found["status"], 302);
    assert!(found["headers"].as_array().unwrap().contains(&json!(["location", "http://other.example/"])), "{found}");
    assert_eq!(server.seen().len(), 1, "the host followed by itself");
    for goal in [
        format!("http://other.example:{p}/"),
        format!("http://path.example:{p}/v2/x"),
        elsewhere.url("/stolen"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        format!("http://[::1]:{p}/"),
        format!("http://127.0.0.1:{p}/"),
        "file:///etc/passwd".to_owned(),
    ] {
        let before = server.seen().len();
        let answer = host.call("http_follow", get(from(&goal)));
        assert!(came_to(&answer).is_err(), "{goal}");
        assert_eq!(server.seen().len(), before + 1, "{goal} was reached");
    }
    assert_eq!(elsewhere.connections(), 0);
    let followed = came_to(&host.call("http_follow", get(from(&format!("http://path.example:{p}/v1/x"))))).unwrap();
    assert_eq!(followed["status"], 200);
    assert_eq!(server.seen().pop().unwrap().target(), "/v1/x");
}

#[test]
fn proxies_from_the_environment_are_ignored() {
    let server = HttpServer::start();
    let proxy = HttpServer::start();
    let names = names();
    let p = server.port();
    let staged = folder(FIXTURE, &tables(&[format!("http://exact.example:{p}")], &names, &server));
    let url = proxy.url("");
    let variables = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
        .map(|name| (name, url.as_str()));
    let mut host = TestHost::recording_in(staged, &variables);
    let found = came_to(&host.call("http", get(format!("http://exact.example:{p}/direct")))).unwrap();
    assert_eq!(found["status"], 200);
    assert_eq!(proxy.connections(), 0);
    assert_eq!(server.only_seen().target(), "/direct");
}

#[test]
fn a_proxy_that_the_manifest_names_is_used() {
    let server = HttpServer::start();
    let proxy = HttpServer::start();
    let names = names();
    let p = server.port();
    let rules = tables(&[format!("http://exact.example:{p}")], &names, &server);
    let mut host = host(FIXTURE, &format!("{rules}proxy = \"http://{}\"\n", proxy.address()));
    let found = came_to(&host.call("http", get(format!("http://exact.example:{p}/by-proxy")))).unwrap();
    assert_eq!(found["status"], 200);
    assert_eq!(proxy.only_seen().target(), format!("http://exact.example:{p}/by-proxy"));
    assert_eq!(server.connections(), 0);
    let answer = host.call("http", get(format!("http://other.example:{p}/")));
    assert_eq!(came_to(&answer), Err(REFUSED.to_owned()));
    assert_eq!(proxy.seen().len(), 1, "the proxy was asked for what no rule allows");
}

#[test]
fn rules_that_cannot_be_or_can_never_match_are_load_errors() {
    for (line, word) in [
        ("http = [\"GET ftp://a.example\"]", "ftp"),
        ("http = [\"a.example\"]", "a.example"),
        ("http = [\"get https://a.example\"]", "get"),
        ("http = [\"GET, POST https://a.example\"]", "GET,"),
        ("http = [\"FETCH https://a.example\"]", "FETCH"),
        ("http = [\"https://a.*.example\"]", "*"),
        ("http = [\"https://a.example:0\"]", "port"),
        ("http = [\"https://a.example:70000\"]", "port"),
        ("http = [\"https://user@a.example\"]", "user"),
        ("http = [\"https://a.example/v1/../v2\"]", ".."),
        ("http = [\"https://a.example/v1?x=1\"]", "?"),
        ("http = \"https://a.example\"", "http"),
        ("http = [\"https://a.example\"]\nhtpp = []", "htpp"),
        ("http = [\"https://a.example\"]\nprivate = [\"10.0.0.0/8:0\"]", "private"),
        ("http = [\"https://a.example\"]\nca = [\"missing.pem\"]", "missing.pem"),
        ("http = [\"https://a.example\"]\nproxy = \"socks5://127.0.0.1:1\"", "socks5"),
    ] {
        assert_refused(&folder(FIXTURE, &format!("[{{c}}.network]\n{line}\n")), &[word, "toolcell.toml"]);
    }
}

#[test]
fn a_grant_of_http_to_a_component_without_http_is_a_load_error() {
    let staged = folder("reach_files", "[{c}.network]\nhttp = [\"https://a.example\"]\n");
    assert_refused(&staged, &["reach_files", "wasi:http", "toolcell.toml"]);
}

#[test]
fn check_shows_which_requests_a_tool_may_make() {
    let staged = folder(FIXTURE, "[{c}.network]\nhttp = [\"GET https://api.example/v1/*\"]\n");
    let finished = Command::in_folder(&staged, &["check"]).run();
    assert!(finished.succeeded().contains("GET https://api.example/v1/*"), "{}", finished.stdout);
}

#[test]
fn requests_of_one_call_share_a_connection_and_those_of_another_have_their_own() {
    let server = HttpServer::start();
    let tables = format!(
        "[{{c}}.network]\nhttp = [\"GET http://{address}\"]\nprivate = [\"{address}\"]\n",
        address = server.address()
    );
    let mut host = host(FIXTURE, &tables);
    for call in 1..=2 {
        let answer = host.call("http_again", json!({"url": server.url("/bytes/7"), "times": 5, "text": "said"}));
        assert_eq!(answer.text(), "said: 5 came, 35 bytes");
        assert_eq!((server.connections(), server.seen().len()), (call, 5 * call));
    }
}
