//! Decisions on requests, and the servers that they reach.
//!
//! Promise: a request goes where its rule says.
//! Promise: no rebinding.
//! Promise: a redirect grants nothing.
//! Promise: no request is smuggled.
use std::net::{IpAddr, SocketAddr};

use wasmtime_wasi_http::Error;

use super::servers::Server;
use super::support::{Call, Granted, get, request};
use crate::testing::name_server::NameServer;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A call that may ask `name:port` for everything, with this name server, and reach `private`.
fn named(name: &str, port: u16, server: &NameServer, private: &str) -> Call {
    let lines = format!("http = [\"http://{name}:{port}\"]\nprivate = [{private}]\n");
    Granted { name_servers: vec![server.address], ..Granted::network(lines) }.call()
}

#[tokio::test]
async fn a_permitted_request_arrives_with_the_hosts_own_name_and_nothing_added() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).call();
    let got =
        call.fetch(request("POST", &server.url("/v1/now?city=K%C3%B6ln&x=%2F"), &[("x-mine", "1")], "hello")).await;
    let got = got.unwrap();
    assert_eq!(got.status, 200);
    let expected = format!(
        "POST /v1/now?city=K%C3%B6ln&x=%2F HTTP/1.1\nx-mine: 1\nhost: {}\ncontent-length: 5\n\nhello",
        server.address
    );
    assert_eq!(got.body, expected);
    assert!(call.denied().is_empty());
}

#[tokio::test]
async fn a_request_that_no_rule_allows_is_denied_and_told_and_reaches_nobody() {
    let server = Server::echo().await;
    let lines = format!("http = [\"GET http://{0}/v1/*\"]\nprivate = [\"{0}\"]\n", server.address);
    let mut call = Granted::network(lines).call();
    let refused = [
        ("GET", server.url("/v2/now")),
        ("GET", server.url("/v1/../v2/now")),
        ("GET", server.url("/v1/..%2fv2/now")),
        ("POST", server.url("/v1/now")),
        ("CONNECT", server.url("/v1/now")),
        ("TRACE", server.url("/v1/now")),
        ("get", server.url("/v1/now")),
        ("GET", format!("https://{}/v1/now", server.address)),
        ("GET", format!("http://127.0.0.1:{}/v1/now", server.port() ^ 1)),
        ("GET", format!("http://user@{}/v1/now", server.address)),
        ("GET", format!("http://{}@192.0.2.1/v1/now", server.address)),
        ("GET", "http://localhost/v1/now".to_owned()),
    ];
    for (method, url) in &refused {
        let error = call.fetch(request(method, url, &[], "")).await.unwrap_err();
        assert!(matches!(error, Error::HttpRequestDenied), "{method} {url}: {error}");
    }
    let denied = call.denied();
    assert_eq!(denied.len(), refused.len(), "{denied:?}");
    assert!(denied[0].starts_with(&format!("denied: GET {} — no rule", server.url("/v2/now"))), "{}", denied[0]);
    assert_eq!(server.connections(), 0);
    call.get(&server.url("/v1/now")).await.unwrap();
}

#[tokio::test]
async fn an_address_in_disguise_is_the_address_that_it_is() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).call();
    for host in ["2130706433", "0x7f.1", "0177.0.0.1", "127.1"] {
        let got = call.get(&format!("http://{host}:{}/", server.port())).await.unwrap();
        assert!(got.body.contains(&format!("host: {}\n", server.address)), "{host}: {}", got.body);
    }
    for host in ["127.0.0.2", "[::ffff:127.0.0.1]", "[::1]", "0", "[::]"] {
        let error = call.get(&format!("http://{host}:{}/", server.port())).await.unwrap_err();
        assert!(matches!(error, Error::HttpRequestDenied), "{host}: {error}");
    }
}

#[tokio::test]
async fn an_address_that_is_not_public_is_refused_unless_it_is_named() {
    let server = Server::echo().await;
    let names = NameServer::start(|_, _| Some(vec![ip("127.0.0.1")])).await;
    let mut call = named("inner.example", server.port(), &names, "");
    let url = format!("http://inner.example:{}/", server.port());
    assert!(matches!(call.get(&url).await, Err(Error::HttpRequestDenied)));
    let denied = call.denied();
    assert!(denied[0].contains("its address is not public"), "{denied:?}");
    assert!(!denied[0].contains("127.0.0.1"), "a model is not told where a name leads: {denied:?}");
    assert_eq!(server.connections(), 0);
    let mut call = named("inner.example", server.port(), &names, &format!("\"127.0.0.1:{}\"", server.port()));
    assert!(call.get(&url).await.unwrap().body.contains("host: inner.example:"));
}

#[tokio::test]
async fn a_name_that_leads_elsewhere_the_second_time_is_checked_the_second_time() {
    // Closes each connection, so that the next request needs another.
    let server = Server::saying("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi").await;
    let inner = Server::raw_at(SocketAddr::new(ip("127.0.0.2"), server.port()), |_| async {}).await;
    let names =
        NameServer::start(|_, time| Some(vec![if time == 0 { ip("127.0.0.1") } else { ip("127.0.0.2") }])).await;
    let mut call = named("rebind.example", server.port(), &names, &format!("\"127.0.0.1:{}\"", server.port()));
    let url = format!("http://rebind.example:{}/", server.port());
    assert_eq!(call.get(&url).await.unwrap().body, "hi");
    assert!(matches!(call.get(&url).await, Err(Error::HttpRequestDenied)));
    assert_eq!((names.asked(), inner.connections()), (2, 0));
    assert_eq!(call.denied().len(), 1);
}

#[tokio::test]
async fn of_a_names_addresses_only_the_permitted_ones_are_connected_to() {
    let server = Server::echo().await;
    let inner = Server::raw_at(SocketAddr::new(ip("127.0.0.2"), server.port()), |_| async {}).await;
    let names =
        NameServer::start(|_, _| Some(vec![ip("127.0.0.2"), ip("169.254.169.254"), ip("127.0.0.1"), ip("10.0.0.1")]))
            .await;
    let mut call = named("mixed.example", server.port(), &names, &format!("\"127.0.0.1:{}\"", server.port()));
    let got = call.get(&format!("http://mixed.example:{}/", server.port())).await.unwrap();
    assert_eq!(got.status, 200);
    assert_eq!((server.connections(), inner.connections()), (1, 0));
    assert!(call.denied().is_empty(), "nothing was refused to the guest");
}

#[tokio::test]
async fn of_two_permitted_addresses_the_one_that_answers_is_used() {
    let server = Server::echo().await;
    let port = server.port();
    // No server listens there.
    let names = NameServer::start(|_, _| Some(vec![ip("127.0.0.3"), ip("127.0.0.1")])).await;
    let mut call = named("two.example", port, &names, "\"127.0.0.0/8\"");
    assert_eq!(call.get(&format!("http://two.example:{port}/")).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_redirect_comes_back_untouched_and_is_decided_on_when_it_is_followed() {
    let elsewhere = Server::echo().await;
    let location = elsewhere.url("/secret");
    let answer = format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
    let server = Server::saying(answer).await;
    let mut call = Granted::to(server.address).call();
    let got = call.get(&server.url("/")).await.unwrap();
    assert_eq!((got.status.as_u16(), got.headers["location"].to_str().unwrap()), (302, location.as_str()));
    assert!(matches!(call.get(&location).await, Err(Error::HttpRequestDenied)));
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn headers_that_are_not_the_guests_are_refused() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).call();
    let forged = [
        ("host", "evil.example"),
        ("connection", "close"),
        ("keep-alive", "1"),
        ("proxy-authorization", "x"),
        ("te", "trailers"),
        ("trailer", "x"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
    ];
    for header in forged {
        let error = call.fetch(request("GET", &server.url("/"), &[header], "")).await.unwrap_err();
        assert!(matches!(error, Error::HttpRequestDenied), "{header:?}: {error}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn names_that_lead_nowhere_say_so() {
    let names = NameServer::start(|name, _| (name == "empty.example").then(Vec::new)).await;
    let mut call = named("*.example", 80, &names, "");
    for (host, expected) in [("missing.example", "NXDOMAIN"), ("empty.example", "NODATA")] {
        match call.get(&format!("http://{host}/")).await {
            Err(Error::DnsError { rcode: Some(rcode), .. }) => assert_eq!(rcode, expected),
            other => panic!("{host}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_from_one_that_is_not_permitted() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut call = Granted::to(address).call();
    assert!(matches!(call.send(get(&format!("http://{address}/")), None).await, Err(Error::ConnectionRefused)));
}
