//! TLS: which servers are trusted.
//!
//! Promise: a server proves its name.
use std::net::IpAddr;

use wasmtime_wasi_http::Error;

use super::servers::{Certificate, Server};
use super::support::{Granted, request};
use crate::testing::name_server::NameServer;

/// The grants of a tool that asks this name over HTTPS and trusts that authority.
async fn granted(names: &NameServer, server: &Server, authority_pem: &str) -> Granted {
    let port = server.port();
    let lines = format!("http = [\"https://api.example:{port}\"]\nprivate = [\"127.0.0.1:{port}\"]\nca = [\"ca.pem\"]");
    Granted { name_servers: vec![names.address], ca_pem: authority_pem.to_owned(), ..Granted::network(lines) }
}

async fn loopback() -> NameServer {
    NameServer::start(|_, _| Some(vec![IpAddr::from([127, 0, 0, 1])])).await
}

#[tokio::test]
async fn a_server_that_proves_the_name_is_asked_over_the_best_protocol_it_speaks() {
    let names = loopback().await;
    let certificate = Certificate::of(&["api.example"]);
    let protocols: [(&[&[u8]], &str); 3] =
        [(&[b"h2", b"http/1.1"], "HTTP/2.0"), (&[b"http/1.1"], "HTTP/1.1"), (&[], "HTTP/1.1")];
    for (spoken, version) in protocols {
        let server = Server::echo_tls(&certificate, spoken).await;
        let mut call = granted(&names, &server, &certificate.authority_pem).await.call();
        let url = format!("https://api.example:{}/x?q=1", server.port());
        let got = call.fetch(request("POST", &url, &[("x-mine", "1")], "hello")).await.unwrap();
        assert!(got.body.contains(&format!(" {version}\n")), "{version}: {}", got.body);
        assert!(got.body.contains("x-mine: 1\n") && got.body.ends_with("\n\nhello"), "{}", got.body);
    }
}

#[tokio::test]
async fn a_server_that_proves_another_name_is_not_asked() {
    let names = loopback().await;
    let certificate = Certificate::of(&["other.example", "127.0.0.1"]);
    let server = Server::echo_tls(&certificate, &[b"h2"]).await;
    let mut call = granted(&names, &server, &certificate.authority_pem).await.call();
    let error = call.get(&format!("https://api.example:{}/", server.port())).await.unwrap_err();
    assert!(matches!(error, Error::TlsCertificateError), "{error}");
}

#[tokio::test]
async fn an_authority_that_the_component_does_not_name_proves_nothing() {
    let names = loopback().await;
    let certificate = Certificate::of(&["api.example"]);
    let other = Certificate::of(&["api.example"]);
    let server = Server::echo_tls(&certificate, &[b"h2"]).await;
    let mut call = granted(&names, &server, &other.authority_pem).await.call();
    let error = call.get(&format!("https://api.example:{}/", server.port())).await.unwrap_err();
    assert!(matches!(error, Error::TlsCertificateError), "{error}");
}

#[tokio::test]
async fn a_server_without_tls_is_not_asked_in_the_clear() {
    let names = loopback().await;
    let server = Server::echo().await;
    let certificate = Certificate::of(&["api.example"]);
    let mut call = granted(&names, &server, &certificate.authority_pem).await.call();
    let error = call.get(&format!("https://api.example:{}/", server.port())).await.unwrap_err();
    assert!(matches!(error, Error::TlsProtocolError | Error::ConnectionTerminated), "{error}");
}
