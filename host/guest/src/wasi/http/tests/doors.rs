//! Doors that carry one request after the other, and what each costs a call.
//!
//! Promise: a request goes where its rule says.
//! Promise: connections belong to one call.
use bytes::Bytes;
use http_body::Frame;
use tokio::io::AsyncWriteExt as _;
use wasmtime_wasi_http::Error;

use super::bodies::post;
use super::servers::{Server, read_head};
use super::support::{Beginning, Granted, get, read, request};

#[tokio::test]
async fn requests_of_one_call_share_a_door_one_after_the_other() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).call();
    for _ in 0..2 {
        assert!(call.get(&server.url("/1")).await.unwrap().body.starts_with("GET /1 "));
        let posted = call.fetch(request("POST", &server.url("/2"), &[], "a body")).await.unwrap();
        assert!(posted.body.ends_with("a body"), "{}", posted.body);
        // More than is held, so its length is not known and its end is a message.
        let piece = || Ok(Frame::data(Bytes::from(vec![b'x'; 64 << 10])));
        let posted = call.fetch(post(&server.url("/3"), None, vec![piece(), piece(), piece(), piece(), piece()])).await;
        assert!(posted.unwrap().body.len() > 5 << 16);
        assert!(call.fetch(request("HEAD", &server.url("/4"), &[], "")).await.unwrap().body.is_empty());
    }
    assert_eq!(call.doors.opened(), 1);
    assert!(call.doors.misuse().is_empty());
}

#[tokio::test]
async fn calls_share_no_door() {
    let server = Server::echo().await;
    let granted = Granted::to(server.address);
    for _ in 0..3 {
        let mut call = granted.call();
        call.get(&server.url("/")).await.unwrap();
        assert_eq!(call.doors.opened(), 1);
    }
}

#[tokio::test]
async fn a_door_whose_response_was_not_read_is_not_used_again() {
    let server = Server::raw(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nh").await.unwrap();
        read_head(&mut stream).await;
    })
    .await;
    let mut call = Granted::to(server.address).call();
    for opened in 1..=3 {
        drop(call.open(&server.url("/")).await.unwrap());
        assert_eq!(call.doors.opened(), opened);
    }
}

#[tokio::test]
async fn a_door_that_waits_for_the_next_request_keeps_no_turn_from_others() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).limited("http_concurrency = 1").call();
    for round in 0..3 {
        // The door of the last round was kept, and a request beside it opens another.
        let first = call.begin(get(&server.url("/1")), None);
        let second = call.begin(get(&server.url("/2")), None);
        let body = async |asked: Beginning| read(asked.await.unwrap().0).await.unwrap().body;
        let (first, second) = tokio::join!(body(first), body(second));
        assert!(first.starts_with("GET /1 ") && second.starts_with("GET /2 "), "{round}");
        call.get(&server.url("/3")).await.unwrap();
    }
}

#[tokio::test]
async fn each_request_through_a_door_is_decided_on_and_counted() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).limited("http_requests = 4").call();
    call.get(&server.url("/")).await.unwrap();
    assert!(matches!(call.get("http://192.0.2.1/").await, Err(Error::HttpRequestDenied)));
    assert_eq!(call.denied().len(), 1);
    call.get(&server.url("/")).await.unwrap();
    call.get(&server.url("/")).await.unwrap();
    assert!(matches!(call.get(&server.url("/")).await, Err(Error::ConnectionLimitReached)));
    assert_eq!(server.connections(), 1);
}
