//! A sandbox process that does what an honest one never does.
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use toolcell_wall::doors::Opening;
use toolcell_wall::doors::http::{BodyEnd, RequestHead, RequestWaits};
use toolcell_wall::encoding::encode;
use toolcell_walls::door::{framed_data, framed_message};

use super::servers::{Server, read_head};
use super::support::{Call, Granted, get};
use crate::testing::TestDoors;

fn doors(call: &Call) -> &TestDoors {
    &call.doors
}

/// The end of a whole body.
fn whole() -> Vec<u8> {
    framed_message(&encode(&BodyEnd::Whole).unwrap())
}

fn version() -> u8 {
    encode(&()).unwrap()[0]
}

/// The first frame of a POST to this address, with a body of this length.
fn posting(url: &str, fields: &[(&str, &str)], body_bytes: Option<u64>) -> Vec<u8> {
    let mut request = Request::builder().method("POST").uri(url);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(Empty::<Bytes>::new().boxed()).unwrap();
    let head = RequestHead::new(&request, RequestWaits::default(), body_bytes);
    framed_message(&encode(&Opening::Http(Box::new(head))).unwrap())
}

/// Everything that the host sends until it closes the door.
async fn rest(mut door: UnixStream) -> Vec<u8> {
    let mut all = Vec::new();
    let _ = door.read_to_end(&mut all).await;
    all
}

#[tokio::test]
async fn what_is_no_opening_closes_the_door_and_is_told_once() {
    let server = Server::echo().await;
    let call = Granted::to(server.address).call();
    let garbage: [&[u8]; 5] =
        [&[0; 16], &[0xff; 64], &framed_message(&[0xee; 100]), &framed_data(b"data"), b"tw!\0\0\0\0\0\0\0\0\0\0\0\0\0"];
    for bytes in garbage {
        let mut door = doors(&call).knock();
        door.write_all(bytes).await.unwrap();
        assert!(rest(door).await.is_empty());
    }
    assert_eq!(doors(&call).misuse().len(), 1, "{:?}", doors(&call).misuse());
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_head_that_wasi_http_never_makes_reaches_no_server() {
    let server = Server::echo().await;
    let url = server.url("/");
    let rows: [(&str, Vec<u8>); 4] = [
        ("two lengths", posting(&url, &[("content-length", "1"), ("content-length", "9")], None)),
        ("no length", posting(&url, &[("content-length", "+1")], None)),
        ("a forbidden field", posting(&url, &[("transfer-encoding", "chunked")], None)),
        ("another host", posting("http://192.0.2.1/", &[], None)),
    ];
    for (name, opening) in rows {
        let call = Granted::to(server.address).call();
        let mut door = doors(&call).knock();
        door.write_all(&opening).await.unwrap();
        let _ = rest(door).await;
        assert_eq!(server.connections(), 0, "{name}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_what_was_told_is_no_request() {
    let rows: [(&str, Option<u64>, Vec<u8>); 5] = [
        ("longer", Some(2), [framed_data(b"abc"), whole()].concat()),
        ("shorter", Some(9), [framed_data(b"abc"), whole()].concat()),
        ("no end that there is", None, [framed_data(b"abc"), framed_message(&[version(), 9])].concat()),
        ("a frame too long", None, [framed_data(b"abc"), b"tw=\0\xff\xff\xff\x7f\0\0\0\0\0\0\0\0".to_vec()].concat()),
        ("a malformed trailer", None, framed_message(&[version(), 1, 1, 2, b':', b' ', 1, b'x'])),
    ];
    for (name, body_bytes, body) in rows {
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
        let call = Granted::to(server.address).call();
        let mut door = doors(&call).knock();
        door.write_all(&posting(&server.url("/"), &[], body_bytes)).await.unwrap();
        door.write_all(&body).await.unwrap();
        let _ = rest(door).await;
        let whole = sent.recv().await.unwrap();
        assert!(!whole.ends_with("0\r\n\r\n") && !whole.ends_with("\r\n\r\nab"), "{name}: {whole:?}");
        assert_eq!(doors(&call).misuse().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn thousands_of_doors_are_refused_and_the_next_call_is_served() {
    let server = Server::echo().await;
    let granted = Granted::to(server.address);
    let call = granted.call();
    let open: Vec<_> = (0..2_000).map(|_| doors(&call).knock_plainly()).collect();
    // A refused one is closed at once.
    let left = open.iter().filter(|door| std::io::Read::read(&mut &**door, &mut [0]).is_err()).count();
    assert!((60..=120).contains(&left), "{left} doors are open");
    assert_eq!(doors(&call).misuse(), ["more doors were opened than the call may have"]);
    granted.call().get(&server.url("/")).await.unwrap();
}

#[tokio::test]
async fn a_response_that_nobody_reads_is_held_back_and_let_go_when_time_is_up() {
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
    let call = Granted::to(server.address).limited("http_time = \"300ms\"").call();
    let mut door = doors(&call).knock();
    door.write_all(&posting(&server.url("/"), &[], Some(0))).await.unwrap();
    closed.recv().await.unwrap();
    let (_, received) = call.traffic_bytes();
    assert!(received <= 512 << 10, "{received} bytes were taken for a process that reads none");
}

#[tokio::test]
async fn a_door_that_is_closed_closes_the_servers_connection() {
    let (told, mut closed) = tokio::sync::mpsc::channel(1);
    let server = Server::raw(move |mut stream| {
        let told = told.clone();
        async move {
            read_head(&mut stream).await;
            // Sends nothing, and notices that its client goes.
            assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
            told.send(()).await.unwrap();
        }
    })
    .await;
    let mut call = Granted::to(server.address).call();
    let mut asked = call.begin(get(&server.url("/")), None);
    while server.connections() == 0 {
        let _ = futures_poll(&mut asked).await;
        tokio::task::yield_now().await;
    }
    drop(asked);
    closed.recv().await.unwrap();
    assert!(doors(&call).misuse().is_empty());
}

#[tokio::test]
async fn the_end_of_a_call_closes_its_doors_and_connections() {
    let (told, mut closed) = tokio::sync::mpsc::channel(1);
    let server = Server::raw(move |mut stream| {
        let told = told.clone();
        async move {
            read_head(&mut stream).await;
            assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
            told.send(()).await.unwrap();
        }
    })
    .await;
    let call = Granted::to(server.address).call();
    let mut door = doors(&call).knock();
    door.write_all(&posting(&server.url("/"), &[], Some(0))).await.unwrap();
    while server.connections() == 0 {
        tokio::task::yield_now().await;
    }
    doors(&call).calls.close();
    closed.recv().await.unwrap();
    assert!(rest(door).await.is_empty());
    // And no new one is served.
    assert!(rest(doors(&call).knock()).await.is_empty());
}

async fn futures_poll<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
    std::future::poll_fn(|context| std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context))).await
}

/// The first bytes of an answer that came through a door.
async fn answered(door: &mut UnixStream) -> Vec<u8> {
    let mut bytes = vec![0; 64 << 10];
    let came = door.read(&mut bytes).await.unwrap();
    bytes.truncate(came);
    bytes
}

fn next(url: &str) -> Vec<u8> {
    let request = Request::builder().uri(url).body(Empty::<Bytes>::new()).unwrap();
    framed_message(&encode(&RequestHead::new(&request, RequestWaits::default(), Some(0))).unwrap())
}

#[tokio::test]
async fn what_follows_a_response_is_a_request_that_is_decided_on_or_closes_the_door() {
    let server = Server::echo().await;
    let granted = Granted::to(server.address).limited("http_requests = 3");
    let url = server.url("/");
    let rows: [(&str, Vec<u8>, usize, usize); 6] = [
        ("a request that no rule allows", next("http://192.0.2.1/"), 0, 1),
        ("requests past the limit", next(&url).repeat(4), 0, 0),
        ("data", framed_data(b"abc"), 1, 0),
        ("an end of a body", whole(), 1, 0),
        ("another opening", posting(&url, &[], Some(0)), 1, 0),
        ("half a request", next(&url)[..20].to_vec(), 0, 0),
    ];
    for (name, then, misuse, denied) in rows {
        let call = granted.call();
        let mut door = doors(&call).knock();
        door.write_all(&posting(&url, &[], Some(0))).await.unwrap();
        assert!(!answered(&mut door).await.is_empty(), "{name}");
        door.write_all(&then).await.unwrap();
        door.shutdown().await.unwrap();
        let _ = rest(door).await;
        assert_eq!((doors(&call).misuse().len(), call.denied().len()), (misuse, denied), "{name}");
    }
}

/// The tests above write what is read.
#[tokio::test]
async fn a_request_that_is_written_by_hand_is_answered() {
    let server = Server::echo().await;
    let call = Granted::to(server.address).call();
    let mut door = doors(&call).knock();
    door.write_all(&posting(&server.url("/hand"), &[], None)).await.unwrap();
    door.write_all(&[framed_data(b"abc"), whole()].concat()).await.unwrap();
    let answer = answered(&mut door).await;
    assert!(String::from_utf8_lossy(&answer).contains("POST /hand "), "{answer:?}");
    assert!(doors(&call).misuse().is_empty());
}
