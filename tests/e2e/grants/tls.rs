//! TLS: the certificate must be for the name in the rule, from roots that the manifest or the
//! platform trusts, over HTTP/1.1 and HTTP/2.
//!
//! Promise: a server proves its name.

use serde_json::{Value, json};
use toolcell_tests::loopback::{Authority, Http2Server, HttpServer, Identity, NameServer, Named};
use toolcell_tests::{Folder, TestHost};

use super::{assert_refused, came_to, folder};

const FIXTURE: &str = "reach_http";
const NAME: &str = "secure.example";

fn names() -> NameServer {
    NameServer::answering(&[(NAME, &[Named::at(&["127.0.0.1"])])])
}

fn staged(names: &NameServer, port: u16, ca: Option<&Authority>) -> Folder {
    let line = if ca.is_some() { "ca = [\"certs/ca.pem\"]" } else { "" };
    let staged = folder(
        FIXTURE,
        &format!(
            "[server]\ndns = [\"{}\"]\n\n[{{c}}.network]\nhttp = [\"https://{NAME}:{port}\", \"https://127.0.0.1:{port}\"]\nprivate = [\"127.0.0.1:{port}\"]\n{line}\n",
            names.address()
        ),
    );
    if let Some(ca) = ca {
        staged.write("certs/ca.pem", ca.pem());
    }
    staged
}

fn fetched(identity: &Identity, ca: Option<&Authority>, host: &str) -> (Result<Value, String>, HttpServer) {
    let server = HttpServer::secure(identity);
    let names = names();
    let mut serving = TestHost::recording_in(staged(&names, server.port(), ca), &[]);
    let found = came_to(&serving.call("http", json!({"url": server.url_as(host, "/echo")})));
    serving.still_works();
    (found.map(|found| found["status"].clone()), server)
}

#[test]
fn a_server_that_proves_its_name_is_talked_to() {
    let authority = Authority::new();
    let (found, server) = fetched(&authority.identity(&[NAME]), Some(&authority), NAME);
    assert_eq!(found, Ok(json!(200)));
    assert_eq!(server.only_seen().values("host"), [format!("{NAME}:{}", server.port())]);
    let (found, _) = fetched(&authority.identity(&["127.0.0.1"]), Some(&authority), "127.0.0.1");
    assert_eq!(found, Ok(json!(200)));
}

#[test]
fn a_server_that_does_not_is_not_told_a_byte() {
    let authority = Authority::new();
    let other = Authority::new();
    let rows = [
        ("another name", authority.identity(&["other.example"]), Some(&authority), NAME),
        ("a name above", authority.identity(&["example"]), Some(&authority), NAME),
        ("its address, asked by name", authority.identity(&["127.0.0.1"]), Some(&authority), NAME),
        ("its name, asked by address", authority.identity(&[NAME]), Some(&authority), "127.0.0.1"),
        ("expired", authority.expired_identity(&[NAME]), Some(&authority), NAME),
        ("an authority that nobody trusts", authority.identity(&[NAME]), None, NAME),
        ("an authority that is not the one", authority.identity(&[NAME]), Some(&other), NAME),
    ];
    for (what, identity, ca, name) in rows {
        let (found, server) = fetched(&identity, ca, name);
        let error = found.unwrap_err();
        assert!(error.contains("TlsCertificateError") || error.contains("TlsProtocolError"), "{what}: {error}");
        assert_eq!(server.seen(), [], "{what}");
    }
}

#[test]
fn a_server_without_tls_is_not_talked_to_by_https() {
    let authority = Authority::new();
    let plain = HttpServer::start();
    let names = names();
    let staged = staged(&names, plain.port(), Some(&authority));
    let manifest = staged.read("toolcell.toml");
    // The server takes the handshake for an unfinished request and waits for its end.
    staged.write("toolcell.toml", manifest + "\n[components.reach_http.limits]\nhttp_connect = \"500ms\"\n");
    let mut host = TestHost::recording_in(staged, &[]);
    let found = came_to(&host.call("http", json!({"url": format!("https://{NAME}:{}/", plain.port())})));
    assert_eq!(found, Err("response: ErrorCode::ConnectionTimeout".to_owned()));
    assert_eq!(plain.seen(), []);
}

#[test]
fn http_2_is_spoken_where_the_server_offers_it() {
    let authority = Authority::new();
    let names = names();
    let server = Http2Server::start(&authority.identity(&[NAME]));
    let mut host = TestHost::recording_in(staged(&names, server.port(), Some(&authority)), &[]);
    let url = server.url_as(NAME, "/echo?q=1");
    let sent = json!({"method": "POST", "url": url, "headers": [["X-One", "1"]], "body": "over two"});
    let found = came_to(&host.call("http", sent)).unwrap();
    assert_eq!(found["status"], 200);
    let seen = server.seen().pop().unwrap();
    assert_eq!(
        (&seen["version"], &seen["method"], &seen["body"]),
        (&json!("HTTP/2.0"), &json!("POST"), &json!("over two"))
    );
    assert_eq!(seen["uri"], url);
    assert!(seen["headers"].as_array().unwrap().contains(&json!(["x-one", "1"])), "{seen}");
    let found = came_to(&host.call("http", json!({"url": server.url_as(NAME, "/bytes/40000"), "read_max": 1_000_000})))
        .unwrap();
    assert_eq!((&found["bytes"], &found["ended"]), (&json!(40_000), &json!("end")));
}

#[test]
fn roots_of_one_component_are_not_another_components() {
    let authority = Authority::new();
    let names = names();
    let server = HttpServer::secure(&authority.identity(&[NAME]));
    let p = server.port();
    let staged = staged(&names, p, Some(&authority));
    let manifest = staged.read("toolcell.toml");
    let other = format!(
        "\n[components.other]\nsource = \"components/reach_http.wasm\"\nprefix = \"other_\"\n\n[components.other.network]\nhttp = [\"https://{NAME}:{p}\"]\nprivate = [\"127.0.0.1:{p}\"]\n"
    );
    staged.write("toolcell.toml", format!("{manifest}{other}"));
    let mut host = TestHost::recording_in(staged, &[]);
    let url = json!({"url": server.url_as(NAME, "/echo")});
    assert!(came_to(&host.call("http", url.clone())).is_ok());
    assert!(came_to(&host.call("other_http", url)).unwrap_err().contains("Tls"));
}

#[test]
fn a_file_that_holds_no_root_is_a_load_error() {
    let authority = Authority::new();
    let names = names();
    for text in ["not a certificate", "", &authority.pem()[..200]] {
        let staged = staged(&names, 443, Some(&authority));
        staged.write("certs/ca.pem", text);
        assert_refused(&staged, &["certs/ca.pem"]);
    }
}
