//! The parts of a message: lengths, trailers, malformed responses.
//!
//! Promise: no request is smuggled.
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use wasmtime_wasi_http::{Error, WasiBody};

use super::servers::{Server, read_head};
use super::support::Granted;

/// A body of these frames, whose size is not known before.
struct Frames(std::vec::IntoIter<Result<Frame<Bytes>, Error>>);

impl Body for Frames {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Poll::Ready(self.0.next())
    }
}

pub(super) fn post(url: &str, declared: Option<u64>, frames: Vec<Result<Frame<Bytes>, Error>>) -> Request<WasiBody> {
    let mut request = Request::builder().method("POST").uri(url);
    if let Some(bytes) = declared {
        request = request.header("content-length", bytes);
    }
    request.body(Frames(frames.into_iter()).boxed_unsync()).unwrap()
}

fn data(text: &'static str) -> Result<Frame<Bytes>, Error> {
    Ok(Frame::data(Bytes::from_static(text.as_bytes())))
}

#[tokio::test]
async fn a_body_must_have_the_length_that_it_says() {
    let server = Server::echo().await;
    let url = server.url("/");
    let mut call = Granted::to(server.address).call();
    assert!(call.fetch(post(&url, Some(5), vec![data("he"), data("llo")])).await.unwrap().body.ends_with("\n\nhello"));
    for frames in [vec![data("hell")], vec![data("hello!")]] {
        let error = call.fetch(post(&url, Some(5), frames)).await.unwrap_err();
        assert!(matches!(error, Error::HttpRequestBodySize(Some(4 | 6))), "{error}");
    }
    let error = call.fetch(post(&url, None, vec![data("he"), Err(Error::HttpProtocolError)])).await.unwrap_err();
    assert!(matches!(error, Error::HttpProtocolError), "a body that its guest gives up is not whole: {error}");
}

#[tokio::test]
async fn nothing_that_a_guest_declares_makes_two_requests_of_one() {
    let (told, mut sent) = tokio::sync::mpsc::channel(1);
    let server = Server::raw(move |mut stream| {
        let told = told.clone();
        async move {
            let mut all = Vec::new();
            let _ = stream.read_to_end(&mut all).await;
            told.send(String::from_utf8(all).unwrap()).await.unwrap();
        }
    })
    .await;
    let mut call = Granted::to(server.address).limited("http_first_byte = \"100ms\"").call();
    let smuggled = data("GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n");
    let _ = call.fetch(post(&server.url("/"), Some(0), vec![smuggled])).await.unwrap_err();
    let all = sent.recv().await.unwrap();
    assert!(!all.contains("smuggled"), "{all}");
}

#[tokio::test]
async fn trailers_pass_and_are_bounded() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n2\r\nhi\r\n0\r\n";
    let server = Server::saying(format!("{chunked}x-sum: 1\r\n\r\n")).await;
    let got = Granted::to(server.address).call().get(&server.url("/")).await.unwrap();
    assert_eq!((got.body.as_str(), got.trailers.unwrap()["x-sum"].to_str().unwrap()), ("hi", "1"));
    let many: String = (0..60).map(|number| format!("x-{number}: 1\r\n")).collect();
    let server = Server::saying(format!("{chunked}{many}\r\n")).await;
    let mut call = Granted::to(server.address).limited("http_headers = 50").call();
    assert!(call.get(&server.url("/")).await.is_err());

    let mut trailers = HeaderMap::new();
    for number in 0..101 {
        let name = http::HeaderName::from_bytes(format!("x-{number}").as_bytes()).unwrap();
        trailers.insert(name, HeaderValue::from_static("1"));
    }
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).call();
    let error =
        call.fetch(post(&server.url("/"), None, vec![data("hi"), Ok(Frame::trailers(trailers))])).await.unwrap_err();
    assert!(matches!(error, Error::HttpRequestTrailerSectionSize(Some(_))), "{error}");
}

#[tokio::test]
async fn a_response_that_can_be_read_in_two_ways_is_not_read() {
    let malformed = [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi!",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: 1\r\n folded\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx : 1\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx\0: 1\r\ncontent-length: 0\r\n\r\n",
        "hello",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhi\r\n0\r\n\r\n",
    ];
    for answer in malformed {
        let server = Server::saying(answer).await;
        let outcome = Granted::to(server.address).call().get(&server.url("/")).await;
        assert!(outcome.is_err(), "{answer:?} was read as {outcome:?}");
    }
}

#[tokio::test]
async fn a_response_that_ends_early_is_no_whole_one() {
    for answer in ["HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello", "HTTP/1.1 200 OK\r\ncontent-le"] {
        let server = Server::saying(answer).await;
        let error = Granted::to(server.address).call().get(&server.url("/")).await.unwrap_err();
        assert!(matches!(error, Error::HttpResponseIncomplete), "{answer:?}: {error}");
    }
}

#[tokio::test]
async fn a_server_cannot_change_the_protocol() {
    let server =
        Server::saying("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nraw").await;
    let error = Granted::to(server.address).call().get(&server.url("/")).await.unwrap_err();
    assert!(matches!(error, Error::HttpUpgradeFailed), "{error}");
}

#[tokio::test]
async fn a_compressed_body_arrives_as_it_was_sent() {
    let server = Server::saying("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\n\x1f~z").await;
    let got = Granted::to(server.address).call().get(&server.url("/")).await.unwrap();
    assert_eq!((got.body.as_str(), got.headers["content-encoding"].to_str().unwrap()), ("\x1f~z", "gzip"));
}

#[tokio::test]
async fn a_body_may_be_sent_while_the_response_is_read() {
    let server = Server::raw(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await.unwrap();
    })
    .await;
    let mut call = Granted::to(server.address).call();
    let got = call.fetch(post(&server.url("/"), None, vec![data("one"), data("two")])).await.unwrap();
    assert_eq!(got.body, "hi");
}

/// The fields of a request that determine its length, as the echo server got them.
fn framed_by(echoed: &str) -> Vec<&str> {
    let head = echoed.split("\n\n").next().unwrap_or_default();
    let says = |line: &&str| line.starts_with("content-length:") || line.starts_with("transfer-encoding:");
    head.lines().filter(says).collect()
}

#[tokio::test]
async fn a_body_that_is_ended_at_once_goes_out_with_its_length() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).call();
    let empty: [(&str, &[&str]); 8] = [
        ("GET", &[]),
        ("HEAD", &[]),
        ("DELETE", &[]),
        ("OPTIONS", &[]),
        ("PROPFIND", &[]),
        ("POST", &["content-length: 0"]),
        ("PUT", &["content-length: 0"]),
        ("PATCH", &["content-length: 0"]),
    ];
    for (method, expected) in empty {
        let taken = Frames(Vec::new().into_iter()).boxed_unsync();
        let left = http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
        for body in [taken, left] {
            let request = Request::builder().method(method).uri(server.url("/")).body(body).unwrap();
            let got = call.fetch(request).await.unwrap();
            if method != "HEAD" {
                assert_eq!(framed_by(&got.body), expected, "{method}");
            }
        }
        let mut whole = post(&server.url("/"), None, vec![data("he"), data("llo")]);
        *whole.method_mut() = method.parse().unwrap();
        let got = call.fetch(whole).await.unwrap();
        if method != "HEAD" {
            assert_eq!(framed_by(&got.body), ["content-length: 5"], "{method}");
            assert!(got.body.ends_with("\n\nhello"), "{method}: {}", got.body);
        }
    }
}

#[tokio::test]
async fn a_body_of_several_frames_of_the_door_arrives_whole() {
    let server = Server::echo().await;
    let piece = "0123456789abcdef".repeat(4096).leak();
    let frames = || (0..3).map(|_| data(piece)).chain([data("end")]).collect();
    let mut call = Granted::to(server.address).call();
    let got = call.fetch(post(&server.url("/"), None, frames())).await.unwrap();
    assert_eq!(framed_by(&got.body), [format!("content-length: {}", 3 * piece.len() + 3)]);
    assert!(got.body.ends_with(&format!("\n\n{piece}{piece}{piece}end")));
}

#[tokio::test]
async fn a_body_that_is_long_or_comes_late_goes_out_in_chunks() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).call();
    let piece = "x".repeat(64 << 10).leak();
    let long = (0..5).map(|_| data(piece)).collect();
    let got = call.fetch(post(&server.url("/"), None, long)).await.unwrap();
    assert_eq!(framed_by(&got.body), ["transfer-encoding: chunked"]);
    assert!(got.body.ends_with(&piece.repeat(5)));

    // The end is sent once the head has arrived, which must not wait for it.
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let (told, mut heads) = tokio::sync::mpsc::channel(1);
    let end = std::sync::Mutex::new(Some(end));
    let server = Server::raw(move |mut stream| {
        let told = told.clone();
        let end = end.lock().unwrap().take();
        async move {
            told.send(read_head(&mut stream).await).await.unwrap();
            drop(end);
            let mut rest = Vec::new();
            while !rest.ends_with(b"0\r\n\r\n") {
                rest.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
    })
    .await;
    let late = Late { first: Some(data("he")), ended };
    let request = Request::builder().method("POST").uri(server.url("/")).body(late.boxed_unsync()).unwrap();
    let got = Granted::to(server.address).call().fetch(request).await.unwrap();
    assert_eq!(got.status, 200);
    assert!(heads.recv().await.unwrap().contains("transfer-encoding: chunked"));
}

#[tokio::test]
async fn a_body_as_long_as_was_declared_is_sent_before_its_end_comes() {
    let server = Server::echo().await;
    let mut call = Granted::to(server.address).call();
    for _ in 0..3 {
        let (_end, ended) = tokio::sync::oneshot::channel::<()>();
        let late = Late { first: Some(data("he")), ended };
        let request = Request::builder().method("POST").uri(server.url("/")).header("content-length", "2");
        let got = call.fetch(request.body(late.boxed_unsync()).unwrap()).await.unwrap();
        assert_eq!(framed_by(&got.body), ["content-length: 2"]);
    }
    assert_eq!(server.connections(), 1);
}

/// A body of one frame that ends on command.
struct Late {
    first: Option<Result<Frame<Bytes>, Error>>,
    ended: tokio::sync::oneshot::Receiver<()>,
}

impl Body for Late {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => Pin::new(&mut self.ended).poll(context).map(|_| None),
        }
    }
}
