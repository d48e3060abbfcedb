//! Times that the parts of a request may take, and their end with the call.
//!
//! Promise: a server cannot take memory or time.
//! Promise: connections belong to one call.
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use wasmtime_wasi_http::{Error, RequestOptions};

use super::servers::{Server, read_head};
use super::support::{Granted, get, read};
use crate::testing::name_server::NameServer;

/// A server that accepts a request and sends nothing.
async fn silent() -> Server {
    Server::raw(|mut stream| async move {
        read_head(&mut stream).await;
        std::future::pending::<()>().await;
    })
    .await
}

/// A server that sends this, and then nothing.
async fn stuck_after(sent: &'static str) -> Server {
    Server::raw(move |mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(sent.as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
    })
    .await
}

#[tokio::test]
async fn a_server_that_never_answers_is_waited_for_as_long_as_the_limit_says() {
    let server = silent().await;
    let mut call = Granted::to(server.address).limited("http_first_byte = \"50ms\"").call();
    assert!(matches!(call.get(&server.url("/")).await, Err(Error::HttpResponseTimeout)));
}

#[tokio::test]
async fn headers_that_dribble_in_do_not_extend_the_wait() {
    let server = Server::raw(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
        let mut tick = tokio::time::interval(Duration::from_millis(5));
        while stream.write_all(b"x: 1\r\n").await.is_ok() {
            tick.tick().await;
        }
    })
    .await;
    let mut call = Granted::to(server.address).limited("http_first_byte = \"50ms\"").call();
    assert!(matches!(call.get(&server.url("/")).await, Err(Error::HttpResponseTimeout)));
}

#[tokio::test]
async fn a_body_that_dribbles_in_does_not_extend_the_request() {
    let server = Server::raw(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let mut tick = tokio::time::interval(Duration::from_millis(5));
        while stream.write_all(b"x").await.is_ok() {
            tick.tick().await;
        }
    })
    .await;
    let mut call = Granted::to(server.address).limited("http_time = \"80ms\"").call();
    assert!(matches!(call.get(&server.url("/")).await, Err(Error::HttpResponseTimeout)));
}

#[tokio::test]
async fn a_body_that_stops_ends_with_the_request() {
    let server = stuck_after("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe").await;
    let mut call = Granted::to(server.address).limited("http_time = \"50ms\"").call();
    assert!(matches!(call.get(&server.url("/")).await, Err(Error::HttpResponseTimeout)));
}

#[tokio::test]
async fn a_guest_may_wait_less_than_the_limits_and_never_longer() {
    let server = silent().await;
    let hour = Some(Duration::from_secs(3600));
    let patient = RequestOptions { connect_timeout: hour, first_byte_timeout: hour, between_bytes_timeout: hour };
    let mut call = Granted::to(server.address).limited("http_first_byte = \"50ms\"").call();
    let error = call.send(get(&server.url("/")), Some(patient)).await.unwrap_err();
    assert!(matches!(error, Error::HttpResponseTimeout), "{error}");

    let soon = Some(Duration::from_millis(20));
    let options = RequestOptions { first_byte_timeout: soon, ..patient };
    let mut call = Granted::to(server.address).call();
    let error = call.send(get(&server.url("/")), Some(options)).await.unwrap_err();
    assert!(matches!(error, Error::HttpResponseTimeout), "{error}");

    let server = stuck_after("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe").await;
    let mut call = Granted::to(server.address).call();
    let options = RequestOptions { between_bytes_timeout: soon, ..patient };
    let response = call.send(get(&server.url("/")), Some(options)).await.unwrap();
    assert!(matches!(read(response).await, Err(Error::ConnectionReadTimeout)));

    let server = Server::raw(|stream| async move {
        let _held = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let lines = format!("http = [\"https://{0}\"]\nprivate = [\"{0}\"]", server.address);
    let options = RequestOptions { connect_timeout: soon, ..patient };
    let error = Granted::network(lines).call().send(get(&format!("https://{}/", server.address)), Some(options)).await;
    assert!(matches!(error, Err(Error::ConnectionTimeout)), "{:?}", error.err());
}

#[tokio::test]
async fn a_handshake_that_never_ends_counts_as_connecting() {
    let server = Server::raw(|mut stream| async move {
        let mut hello = [0; 64];
        let _ = stream.read(&mut hello).await;
        std::future::pending::<()>().await;
    })
    .await;
    let lines = format!("http = [\"https://{0}\"]\nprivate = [\"{0}\"]", server.address);
    let mut call = Granted::network(lines).limited("http_connect = \"400ms\"").call();
    let error = call.get(&format!("https://{}/", server.address)).await.unwrap_err();
    assert!(matches!(error, Error::ConnectionTimeout), "{error}");
}

#[tokio::test]
async fn a_silent_name_server_counts_as_connecting() {
    let names = NameServer::silent().await;
    let granted = Granted { name_servers: vec![names.address], ..Granted::network("http = [\"http://slow.example\"]") };
    let mut call = granted.limited("http_connect = \"50ms\"").call();
    let error = call.get("http://slow.example/").await.unwrap_err();
    assert!(matches!(error, Error::ConnectionTimeout | Error::DnsTimeout), "{error}");
}

/// A server that signals when its client is gone.
async fn watched(answer: &'static str) -> (Server, tokio::sync::mpsc::Receiver<&'static str>) {
    let (told, heard) = tokio::sync::mpsc::channel(4);
    let server = Server::raw(move |mut stream| {
        let told = told.clone();
        async move {
            read_head(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
            told.send("asked").await.unwrap();
            let _ = stream.read(&mut [0; 1]).await;
            told.send("gone").await.unwrap();
        }
    })
    .await;
    (server, heard)
}

#[tokio::test]
async fn a_call_that_ends_closes_its_connections_at_once_whatever_they_are_doing() {
    // Waiting for an answer, reading one, leaving one unread, and waiting for the next request.
    let (waiting, mut waiting_heard) = watched("").await;
    let (stuck, mut stuck_heard) = watched("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe").await;
    let (idle, mut idle_heard) = watched("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
    let addresses = [waiting.address, stuck.address, idle.address].map(|address| format!("\"{address}\""));
    let rules = [&waiting, &stuck, &idle].map(|server| format!("\"{}\"", server.url("/*")));
    let lines = format!("http = [{}]\nprivate = [{}]", rules.join(", "), addresses.join(", "));
    let mut call = Granted::network(lines).call();
    assert_eq!(call.get(&idle.url("/")).await.unwrap().body, "hi");
    let unread = call.open(&stuck.url("/")).await.unwrap();
    let pending = tokio::spawn(call.begin(get(&waiting.url("/")), None));
    for heard in [&mut waiting_heard, &mut stuck_heard, &mut idle_heard] {
        assert_eq!(heard.recv().await, Some("asked"));
    }
    drop(call);
    for heard in [&mut waiting_heard, &mut stuck_heard, &mut idle_heard] {
        assert_eq!(heard.recv().await, Some("gone"));
    }
    assert!(matches!(pending.await.unwrap().err(), Some(Error::ConnectionTerminated)));
    assert!(read(unread).await.is_err());
}

#[tokio::test]
async fn a_response_that_is_dropped_unread_closes_its_connection() {
    let (server, mut heard) = watched("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe").await;
    let mut call = Granted::to(server.address).call();
    drop(call.open(&server.url("/")).await.unwrap());
    assert_eq!((heard.recv().await, heard.recv().await), (Some("asked"), Some("gone")));
}
