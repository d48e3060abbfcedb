//! Connections that are reused, and the calls that use them.
//!
//! Promise: connections belong to one call.
use tokio::io::AsyncWriteExt as _;

use super::servers::{Certificate, Server, read_head};
use super::support::{Granted, get, read, request};

#[tokio::test]
async fn requests_of_one_call_to_one_server_share_a_connection_one_after_the_other() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).call();
    for number in 0..5 {
        let got = call.fetch(request("POST", &server.url(&format!("/{number}")), &[], "body")).await.unwrap();
        assert!(got.body.starts_with(&format!("POST /{number} ")), "{}", got.body);
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn calls_share_no_connection() {
    let server = Server::echo().await;
    let granted = Granted::to(server.address);
    for _ in 0..3 {
        granted.call().get(&server.url("/")).await.unwrap();
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn servers_share_no_connection() {
    let one = Server::echo().await;
    let other = Server::echo().await;
    let lines =
        format!("http = [\"http://{0}\", \"http://{1}\"]\nprivate = [\"{0}\", \"{1}\"]", one.address, other.address);
    let mut call = Granted::network(lines).call();
    for server in [&one, &other, &one, &other] {
        assert!(call.get(&server.url("/")).await.unwrap().body.contains(&format!("host: {}\n", server.address)));
    }
    assert_eq!((one.connections(), other.connections()), (1, 1));
}

#[tokio::test]
async fn requests_at_once_have_connections_of_their_own() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).call();
    let first = call.begin(get(&server.url("/1")), None);
    let second = call.begin(get(&server.url("/2")), None);
    let (first, second) = tokio::join!(first, second);
    let first = read(first.unwrap().0).await.unwrap();
    let second = read(second.unwrap().0).await.unwrap();
    assert!(first.body.starts_with("GET /1 ") && second.body.starts_with("GET /2 "));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_short_response_gives_its_connection_back_before_it_is_read() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).call();
    let first = call.open(&server.url("/1")).await.unwrap();
    let second = call.open(&server.url("/2")).await.unwrap();
    let first = read(first).await.unwrap();
    let second = read(second).await.unwrap();
    assert!(first.body.starts_with("GET /1 ") && second.body.starts_with("GET /2 "));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_connection_that_was_closed_while_it_waited_is_replaced() {
    // Announces that it keeps the connection, but closes it.
    let server = Server::saying("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
    let mut call = Granted::to(server.address).call();
    for _ in 0..5 {
        assert_eq!(call.get(&server.url("/")).await.unwrap().body, "hi");
    }
    assert_eq!(server.connections(), 5);
}

#[tokio::test]
async fn what_a_server_says_without_being_asked_answers_no_later_request() {
    let server = Server::raw(|mut stream| async move {
        read_head(&mut stream).await;
        let unasked = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi{unasked}");
        stream.write_all(answer.as_bytes()).await.unwrap();
        read_head(&mut stream).await;
    })
    .await;
    let mut call = Granted::to(server.address).call();
    for _ in 0..3 {
        assert_eq!(call.get(&server.url("/")).await.unwrap().body, "hi");
    }
}

#[tokio::test]
async fn http2_carries_requests_of_one_call_over_one_connection_also_at_once() {
    let certificate = Certificate::of(&["127.0.0.1"]);
    let server = Server::echo_tls(&certificate, &[b"h2", b"http/1.1"]).await;
    let lines = format!("http = [\"https://{0}\"]\nprivate = [\"{0}\"]\nca = [\"ca.pem\"]", server.address);
    let mut call = Granted { ca_pem: certificate.authority_pem, ..Granted::network(lines) }.call();
    let url = |path: &str| format!("https://{}{path}", server.address);
    let first = call.open(&url("/1")).await.unwrap();
    let second = call.begin(get(&url("/2")), None);
    let third = call.begin(get(&url("/3")), None);
    let (second, third) = tokio::join!(second, third);
    for (response, path) in [(first, "/1"), (second.unwrap().0, "/2"), (third.unwrap().0, "/3")] {
        let got = read(response).await.unwrap();
        assert!(got.body.starts_with(&format!("GET {} HTTP/2.0\n", url(path))), "{}", got.body);
    }
    // Abandoning one does not affect the others.
    drop(call.open(&url("/4")).await.unwrap());
    call.get(&url("/5")).await.unwrap();
    assert_eq!(server.connections(), 1);
}
