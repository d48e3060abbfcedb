//! Counts and sizes.
//!
//! Promise: a server cannot take memory or time.
use tokio::io::AsyncWriteExt as _;
use wasmtime_wasi_http::Error;

use super::servers::{Server, read_head};
use super::support::{Granted, get, request};

#[tokio::test]
async fn requests_are_counted_refused_ones_too() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).limited("http_requests = 3").call();
    call.get(&server.url("/")).await.unwrap();
    assert!(matches!(call.get("http://192.0.2.1/").await, Err(Error::HttpRequestDenied)));
    call.get(&server.url("/")).await.unwrap();
    assert!(matches!(call.get(&server.url("/")).await, Err(Error::ConnectionLimitReached)));
}

#[tokio::test]
async fn requests_at_once_wait_for_their_turn() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).limited("http_concurrency = 1").call();
    let first = call.open(&server.url("/1")).await.unwrap();
    let mut second = call.begin(get(&server.url("/2")), None);
    for _ in 0..100 {
        tokio::select! {
            biased;
            _ = &mut second => panic!("it did not wait"),
            () = tokio::task::yield_now() => {}
        }
    }
    drop(first);
    assert_eq!(second.await.unwrap().0.status(), 200);
}

#[tokio::test]
async fn a_turn_that_does_not_come_ends_the_waiting_with_the_time_to_connect() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).limited("http_concurrency = 1\nhttp_connect = \"50ms\"").call();
    let _first = call.open(&server.url("/1")).await.unwrap();
    assert!(matches!(call.open(&server.url("/2")).await, Err(Error::ConnectionLimitReached)));
}

#[tokio::test]
async fn a_request_body_beyond_the_budget_is_not_sent() {
    let server = Server::echo().await;
    let granted = Granted::to(server.address).limited("egress = \"4KiB\"");
    let mut call = granted.call();
    let body = "x".repeat(3 << 10);
    call.fetch(request("POST", &server.url("/"), &[], &body)).await.unwrap();
    // The second does not fit into the same call, but into another.
    let error = call.fetch(request("POST", &server.url("/"), &[], &body)).await.unwrap_err();
    assert!(matches!(error, Error::HttpRequestBodySize(Some(4096))), "{error}");
    assert_eq!(call.traffic_bytes().0, 4096);
    granted.call().fetch(request("POST", &server.url("/"), &[], &body)).await.unwrap();
}

#[tokio::test]
async fn an_endless_response_ends_at_the_budget() {
    let server = Server::raw(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
    })
    .await;
    let mut call = Granted::to(server.address).limited("ingress = \"64KiB\"").call();
    let error = call.get(&server.url("/")).await.unwrap_err();
    assert!(matches!(error, Error::HttpResponseBodySize(Some(65536))), "{error}");
    assert_eq!(call.traffic_bytes().1, 65536);
}

#[tokio::test]
async fn a_response_of_exactly_the_budget_passes() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 60000\r\n\r\n";
    let server = Server::saying(format!("{head}{}", "x".repeat(60_000))).await;
    let bytes = head.len() + 60_000;
    let mut call = Granted::to(server.address).limited(&format!("ingress = \"{bytes}B\"")).call();
    assert_eq!(call.get(&server.url("/")).await.unwrap().body.len(), 60_000);
    let mut call = Granted::to(server.address).limited(&format!("ingress = \"{}B\"", bytes - 1)).call();
    assert!(matches!(call.get(&server.url("/")).await, Err(Error::HttpResponseBodySize(_))));
}

#[tokio::test]
async fn header_bombs_are_refused() {
    let many: String = (0..101).map(|number| format!("x-{number}: 1\r\n")).collect();
    let large = format!("x: {}\r\n", "y".repeat(40 << 10));
    for fields in [many, large] {
        let server = Server::saying(format!("HTTP/1.1 200 OK\r\n{fields}content-length: 0\r\n\r\n")).await;
        let mut call = Granted::to(server.address).call();
        let error = call.get(&server.url("/")).await.unwrap_err();
        assert!(matches!(error, Error::HttpResponseHeaderSectionSize(_)), "{error}");
    }
    // One field less than too many.
    let many: String = (0..99).map(|number| format!("x-{number}: 1\r\n")).collect();
    let server = Server::saying(format!("HTTP/1.1 200 OK\r\n{many}content-length: 0\r\n\r\n")).await;
    assert_eq!(Granted::to(server.address).call().get(&server.url("/")).await.unwrap().headers.len(), 100);
}

#[tokio::test]
async fn a_header_line_without_end_is_refused() {
    let server = Server::raw(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await;
        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
    })
    .await;
    let mut call = Granted::to(server.address).call();
    let error = call.get(&server.url("/")).await.unwrap_err();
    assert!(matches!(error, Error::HttpResponseHeaderSectionSize(_)), "{error}");
    assert!(call.traffic_bytes().1 < 200 << 10, "{:?}", call.traffic_bytes());
}

#[tokio::test]
async fn informational_responses_without_end_are_charged_and_stopped() {
    let server = Server::raw(|mut stream| async move {
        read_head(&mut stream).await;
        while stream.write_all(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n").await.is_ok() {}
    })
    .await;
    let mut call = Granted::to(server.address).limited("ingress = \"64KiB\"").call();
    assert!(matches!(call.get(&server.url("/")).await, Err(Error::HttpResponseBodySize(Some(65536)))));
}

#[tokio::test]
async fn a_requests_own_headers_are_bounded() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).call();
    let names: Vec<String> = (0..101).map(|number| format!("x-{number}")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let large = "y".repeat(33 << 10);
    for fields in [many, vec![("x", large.as_str())]] {
        let error = call.fetch(request("GET", &server.url("/"), &fields, "")).await.unwrap_err();
        assert!(matches!(error, Error::HttpRequestHeaderSectionSize(Some(_))), "{error}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_server_that_sends_ahead_of_its_reader_is_held_back_and_let_go_when_time_is_up() {
    let (told, mut closed) = tokio::sync::mpsc::channel(1);
    let server = Server::raw(move |mut stream| {
        let told = told.clone();
        async move {
            read_head(&mut stream).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            while stream.write_all(&[b'x'; 64 << 10]).await.is_ok() {}
            told.send(()).await.unwrap();
        }
    })
    .await;
    let mut call = Granted::to(server.address).limited("http_time = \"300ms\"").call();
    let _unread = call.open(&server.url("/")).await.unwrap();
    closed.recv().await.unwrap();
    let (_, received) = call.traffic_bytes();
    assert!(received <= 256 << 10, "{received} bytes were taken for a guest that reads none");
}
