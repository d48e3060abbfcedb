//! Hostile clients: each has its exact answer, and other clients are served meanwhile.
//!
//! Promise: clients are bounded.

mod bytes;
mod frames;
mod names;
mod sessions;

use std::io::Read;
use std::time::{Duration, Instant};

use serde_json::json;
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Folder, alone, manifest_of};

/// A host with short times and small sizes, so that tests need not wait.
fn impatient(limits: &str) -> WebHost {
    WebHost::with_manifest(&format!("{}\n[http]\n{limits}\n", manifest_of(&["good"])))
}

#[test]
fn a_head_that_never_ends_is_cut_off() {
    let _alone = alone("its own connections, and its own time for them");
    let host = impatient("head_time = \"300ms\"");
    let mut slow: Vec<_> = (0..20).map(|_| host.connect()).collect();
    for wire in &mut slow {
        wire.send(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-slow: ");
    }
    host.still_works();
    let began = Instant::now();
    let trickling = slow.pop().unwrap();
    let mut trickling = trickling;
    while trickling.try_send(b"a") && began.elapsed() < Duration::from_secs(20) {
        let mut byte = [0];
        trickling.stream().set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        if matches!(trickling.stream().read(&mut byte), Ok(0)) {
            break;
        }
    }
    assert!(began.elapsed() < Duration::from_secs(20), "a byte now and then keeps nothing open");
    slow.iter_mut().for_each(toolcell_tests::web::Wire::is_closed);
    host.still_works();
}

#[test]
fn a_body_that_never_ends_is_given_up() {
    let _alone = alone("its own connections, and its own time for them");
    let host = impatient("body_time = \"300ms\"");
    let mut wire = host.connect();
    wire.send(
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
    );
    assert_eq!(wire.reply().error(), (408, -32600));
    host.still_works();
}

#[test]
fn a_connection_that_asks_nothing_is_closed() {
    let _alone = alone("its own connections, and its own time for them");
    let host = impatient("idle = \"2s\"");
    let mut silent = host.connect();
    let mut used = host.connect();
    assert_eq!(used.ask(&Ask::bare("GET", "/healthz")).status(), 200);
    silent.is_closed();
    used.is_closed();
    let mut listening = host.connect();
    listening.send(&Ask::listen(1).bytes());
    listening.head();
    listening.event().unwrap();
    host.connect().is_closed();
    listening.stream().set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let still = listening.stream().read(&mut [0]).unwrap_err();
    assert_eq!(still.kind(), std::io::ErrorKind::WouldBlock, "a stream is a request");
}

#[test]
fn what_is_too_long_is_refused_before_it_is_kept() {
    let _alone = alone("its own connections, and its own time for them");
    let host = impatient("body = \"64KiB\"\nhead = \"8KiB\"");
    let mut declared = host.connect();
    declared.send(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n");
    assert_eq!(declared.reply().error(), (413, -32600));

    let mut chunked = host.connect();
    chunked.send(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
    for _ in 0..5 {
        chunked.send(&[b"4000\r\n", &[b' '; 0x4000][..], b"\r\n"].concat());
    }
    assert_eq!(chunked.reply().error(), (413, -32600));

    let mut bomb = host.connect();
    bomb.send(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n");
    bomb.send(&[b' '; 0x11000]);
    assert_eq!(bomb.reply().error(), (413, -32600));

    let long = "x".repeat(9 * 1024);
    assert_eq!(host.ask(&Ask::bare("GET", "/healthz").with("x-long", &long)).status(), 431);
    let mut many = Ask::bare("GET", "/healthz");
    for place in 0..200 {
        many = many.with(&format!("x-{place}"), "1");
    }
    assert_eq!(host.ask(&many).status(), 431);
    host.still_works();
}

#[test]
fn idle_connections_make_room_for_new_ones() {
    let _alone = alone("its own connections, and its own time for them");
    let host = impatient("connections = 8");
    let mut idle: Vec<_> = (0..50).map(|_| host.connect()).collect();
    host.still_works();
    idle.truncate(40);
    idle.iter_mut().for_each(toolcell_tests::web::Wire::is_closed);
    host.still_works();
}

#[test]
fn where_every_connection_is_in_use_one_more_is_told_to_come_again() {
    let _alone = alone("its own connections, and its own time for them");
    let host = impatient("connections = 3");
    let mut streams: Vec<_> = (0..3).map(|_| host.connect()).collect();
    for wire in &mut streams {
        wire.send(&Ask::listen(1).bytes());
        wire.head();
        wire.event().unwrap();
    }
    let refused = host.connect().reply();
    assert_eq!((refused.status(), refused.field("retry-after")), (503, Some("1")));
    drop(streams);
    let end = Instant::now() + toolcell_tests::patience();
    while host.connect().ask(&Ask::bare("GET", "/healthz")).status() != 200 {
        assert!(Instant::now() < end, "there was never room again");
    }
}

#[test]
fn streams_and_requests_past_the_most_are_told_to_come_again() {
    let _alone = alone("its own connections, and its own time for them");
    let manifest = format!("{}\n[http]\nstreams = 1\nrequests = 1\n", manifest_of(&["good"]));
    let folder = Folder::with_manifest(&manifest);
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"]);
    let mut stream = host.connect();
    stream.send(&Ask::listen(1).bytes());
    stream.head();
    stream.event().unwrap();
    assert_eq!(host.ask(&Ask::listen(2)).error(), (503, -32603));
    let mut busy = host.connect();
    busy.send(&Ask::call("slow", json!({"steps": 1, "step_ms": 4_000})).bytes());
    host.begins("slow");
    let end = Instant::now() + toolcell_tests::patience();
    let ping = Ask::modern(1, "tools/list", json!({}));
    let refused =
        std::iter::repeat_with(|| host.ask(&ping)).find(|reply| reply.status() != 200 || Instant::now() > end);
    assert_eq!(refused.unwrap().error(), (503, -32603));
    assert_eq!(busy.reply().status(), 200);
    host.still_works();
}
