//! A hostile guest tries to put a second request, another host or its own framing onto the wire.
//!
//! Promise: no request is smuggled.

use serde_json::{Value, json};
use toolcell_tests::loopback::{Authority, Http2Server, HttpServer, NameServer, Named};
use toolcell_tests::{Folder, TestHost};

use super::{came_to, folder, host};

const FIXTURE: &str = "smuggle";

/// Number of tricks that the guest tries at least.
const TRICKS_MIN: usize = 100;

fn tried(host: &mut TestHost, url: &str) -> Vec<Value> {
    let found = came_to(&host.call("smuggle", json!({"url": url}))).unwrap();
    let found = found.as_array().unwrap().clone();
    assert!(found.len() >= TRICKS_MIN, "{}", found.len());
    assert!(found.iter().any(|row| row["came_to"]["ok"]["status"] == 200), "some of it is harmless");
    found
}

#[test]
fn a_request_on_the_wire_is_exactly_the_one_that_was_decided_on() {
    let server = HttpServer::start();
    let address = server.address();
    let tables = format!(
        "[{{c}}.network]\nhttp = [\"http://{address}/echo\"]\nprivate = [\"{address}\"]\n\n[{{c}}.limits]\nhttp_requests = 1_000\n"
    );
    let mut host = host(FIXTURE, &tables);
    let found = tried(&mut host, &server.url("/echo"));
    let arrived = found.iter().filter(|row| row["came_to"]["ok"].is_object()).count();
    // Besides the answered requests, only some were begun. Their bodies ended before their length.
    let cut = server.seen().len() - arrived;
    assert!(cut <= 3, "{cut} more requests arrived than were answered");
    for seen in server.seen() {
        let head = &seen.head;
        assert_eq!(head.lines().next().unwrap().rsplit(' ').next(), Some("HTTP/1.1"), "{head}");
        assert_eq!(seen.target().split('?').next(), Some("/echo"), "{head}");
        assert_eq!(seen.values("host"), [address.to_string()], "{head}");
        let lower = head.to_ascii_lowercase();
        for never in
            ["smuggled", "evil.example", "\nupgrade:", "http2-settings", "proxy-", "keep-alive", "\nte:", "\ntrailer:"]
        {
            assert!(!lower.contains(never), "{never:?} in {head}");
        }
        assert!(!["CONNECT", "TRACE"].contains(&seen.method()), "{head}");
        let framed = seen.values("content-length").len() + seen.values("transfer-encoding").len();
        assert!(framed <= 1, "two ways to find the end of the body: {head}");
        assert!(!head.contains('\0') && !head.replace("\r\n", "").contains(['\r', '\n']), "{head:?}");
    }
    host.still_works();
}

#[test]
fn the_same_over_http_2() {
    let authority = Authority::new();
    let server = Http2Server::start(&authority.identity(&["secure.example"]));
    let names = NameServer::answering(&[("secure.example", &[Named::at(&["127.0.0.1"])])]);
    let p = server.port();
    let tables = format!(
        "[server]\ndns = [\"{}\"]\n\n[{{c}}.network]\nhttp = [\"https://secure.example:{p}/echo\"]\nprivate = [\"127.0.0.1:{p}\"]\nca = [\"ca.pem\"]\n\n[{{c}}.limits]\nhttp_requests = 1_000\n",
        names.address()
    );
    let staged: Folder = folder(FIXTURE, &tables);
    staged.write("ca.pem", authority.pem());
    let mut host = TestHost::recording_in(staged, &[]);
    let found = tried(&mut host, &server.url_as("secure.example", "/echo"));
    let arrived = found.iter().filter(|row| row["came_to"]["ok"].is_object()).count();
    assert!(server.seen().len() >= arrived);
    for seen in server.seen() {
        let text = format!("{} {} {}", seen["method"], seen["uri"], seen["headers"]).to_ascii_lowercase();
        for never in ["smuggled", "evil.example", "proxy-", "http2-settings"] {
            assert!(!text.contains(never), "{never:?} in {seen}");
        }
        let uri = seen["uri"].as_str().unwrap();
        assert!(uri.starts_with(&format!("https://secure.example:{p}/echo")), "{uri}");
    }
    host.still_works();
}
