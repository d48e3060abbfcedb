//! Access that is closed by default: hosts, origins, responses to other origins, and addresses that
//! other machines reach.
//!
//! Promise: web pages and other machines are kept out.

use serde_json::json;
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Command, Folder, alone, manifest_of};

#[test]
fn a_page_that_was_made_to_point_here_is_refused_by_its_host_and_origin() {
    let _alone = alone("a balancer reads these names itself");
    let host = WebHost::serving(&["good"]);
    let port = host.address().port();
    let own = format!("localhost:{port}");
    let echo = || Ask::call("echo", json!({"text": "x"}));
    for (what, ask, status) in [
        ("the address itself", echo().with("host", &format!("127.0.0.1:{port}")), 200),
        ("its name", echo().with("host", &own), 200),
        ("its name without a port", echo().with("host", "localhost"), 200),
        ("a name that points here", echo().with("host", "evil.example.com"), 403),
        ("the same with the port", echo().with("host", &format!("evil.example.com:{port}")), 403),
        ("a name that ends like it", echo().with("host", "evil.localhost"), 403),
        ("another address", echo().with("host", "192.168.0.1"), 403),
        ("no host", echo().without("host"), 400),
        ("two hosts", echo().and("host", "evil.example.com"), 400),
        (
            "an absolute target elsewhere",
            Ask::bare("GET", "http://evil.example.com/mcp").with("host", "localhost"),
            400,
        ),
        ("its own page", echo().with("host", &own).with("origin", &format!("http://{own}")), 200),
        ("another page of this machine", echo().with("host", &own).with("origin", "http://localhost:1"), 403),
        ("a page elsewhere", echo().with("origin", "https://evil.example.com"), 403),
        ("a page without an origin", echo().with("origin", "null"), 403),
        ("two origins", echo().with("host", &own).with("origin", &format!("http://{own}")).and("origin", "null"), 403),
        ("what a page may send without asking", echo().with("content-type", "text/plain"), 415),
        ("a form", echo().with("content-type", "application/x-www-form-urlencoded"), 415),
        ("a compressed body", echo().with("content-encoding", "gzip"), 415),
        ("nothing that could be the answer", echo().with("accept", "text/html"), 406),
        (
            "a preflight of a page elsewhere",
            Ask::bare("OPTIONS", "/mcp").with("origin", "https://evil.example.com"),
            403,
        ),
    ] {
        let reply = host.ask(&ask);
        assert_eq!(reply.status(), status, "{what}: {reply:?}");
        assert_eq!(reply.field("access-control-allow-origin"), None, "{what}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(host.ask(&Ask::bare("GET", path).with("host", "10.1.2.3")).status(), 200, "{path}");
    }
    host.still_works();
}

#[test]
fn listed_pages_may_ask_and_read() {
    let settings = "[http]\norigins = [\"https://app.example.com\"]\nhosts = [\"tools.example.com\"]\n";
    let host = WebHost::with_manifest(&format!("{}\n{settings}", manifest_of(&["good"])));
    let page = "https://app.example.com";
    let from_page = |ask: Ask| ask.with("host", "tools.example.com").with("origin", page);
    let preflight = Ask::bare("OPTIONS", "/mcp").with("access-control-request-method", "POST");
    let preflight = preflight.with("access-control-request-headers", "content-type, mcp-param-region, x-other");
    let told = host.ask(&from_page(preflight));
    assert_eq!(told.status(), 204);
    assert_eq!(told.field("access-control-allow-origin"), Some(page));
    assert_eq!(told.field("access-control-allow-methods"), Some("POST, GET, DELETE, OPTIONS"));
    assert_eq!(told.field("allow"), Some("POST, GET, DELETE, OPTIONS"));
    let headers = told.field("access-control-allow-headers").unwrap();
    assert!(headers.contains("mcp-session-id") && headers.ends_with(", mcp-param-region"), "{headers}");
    let answered = host.ask(&from_page(Ask::call("echo", json!({"text": "x"}))));
    assert_eq!(answered.status(), 200);
    assert_eq!(answered.field("access-control-allow-origin"), Some(page));
    assert_eq!(answered.field("access-control-expose-headers"), Some("mcp-session-id, www-authenticate"));
    assert_eq!(answered.field("vary"), Some("origin"));
    assert_eq!(answered.field("access-control-allow-credentials"), None);
    let elsewhere = host.ask(&from_page(Ask::call("echo", json!({}))).with("origin", "https://other.example.com"));
    assert_eq!((elsewhere.status(), elsewhere.field("access-control-allow-origin")), (403, None));
}

#[test]
fn an_address_that_others_reach_is_not_opened_to_strangers() {
    let _alone = alone("its own address");
    let folder = Folder::with_manifest(&manifest_of(&["good"]));
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let said = Command::in_folder(&folder, &["serve", "--http", address]).run();
        let said = said.failed_with(1);
        assert!(said.contains("can be reached from other machines") && said.contains("--insecure-public"), "{said}");
    }
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.2:0"]);
    assert_eq!(host.ask(&Ask::call("echo", json!({"text": "x"})).with("host", "127.0.0.2")).status(), 200);
}
