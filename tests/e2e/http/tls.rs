//! TLS: HTTP/1.1 and HTTP/2 as the client offers, handshakes that are slow or missing, and a new
//! certificate without a restart. Also Unix sockets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use rustls::version::{TLS12, TLS13};
use rustls::{ProtocolVersion, SupportedProtocolVersion};
use serde_json::json;
use toolcell_tests::http2::{self, Fate, Frame, PREFACE};
use toolcell_tests::loopback::{Authority, TlsWire};
use toolcell_tests::web::{Ask, WebHost, Wire};
use toolcell_tests::{Command, Figures, Folder, alone, manifest_of};

/// The path of the host's certificate and key in its folder.
const CERTIFICATE: &str = "tls/certificate.pem";
const KEY: &str = "tls/key.pem";

/// A host that serves over TLS as `localhost`, with these further settings.
fn serving(authority: &Authority, settings: &str) -> WebHost {
    let manifest = manifest_of(&["good"]);
    let tls = format!("certificate = \"{CERTIFICATE}\"\nkey = \"{KEY}\"\n");
    let folder = Folder::with_manifest(&format!("{manifest}\n[http]\n{tls}{settings}\n"));
    show(&folder, authority);
    WebHost::in_folder(folder, &["--http", "127.0.0.1:0"])
}

/// Replaces the host's certificate with a new one of this authority.
fn show(folder: &Folder, authority: &Authority) {
    let identity = authority.identity(&["localhost"]);
    folder.write(KEY, identity.key_pem());
    folder.write(CERTIFICATE, identity.chain_pem());
}

fn echo(text: &str) -> Ask {
    Ask::call("echo", json!({"text": text}))
}

/// A connection over TLS, with these versions and these protocols offered.
fn connect(
    host: &WebHost,
    authority: &Authority,
    versions: &[&'static SupportedProtocolVersion],
    protocols: &[&str],
) -> std::io::Result<TlsWire> {
    let stream = TcpStream::connect(host.address()).unwrap();
    stream.set_read_timeout(Some(toolcell_tests::patience())).unwrap();
    authority.connect("localhost", stream, versions, protocols)
}

/// True if a new connection trusts the host's certificate.
fn is_trusted(host: &WebHost, authority: &Authority) -> bool {
    connect(host, authority, &[&TLS13], &[]).is_ok()
}

fn answers(wire: &mut Wire<TlsWire>, text: &str) {
    assert_eq!(wire.ask(&echo(text)).frame()["result"]["content"][0]["text"], text);
}

#[test]
fn both_versions_of_tls_carry_both_versions_of_http() {
    let _alone = alone("its own TLS, HTTP/2 and sockets");
    let authority = Authority::new();
    let host = serving(&authority, "");
    for (version, named) in [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)] {
        for (offered, agreed) in [
            (&["h2", "http/1.1"][..], Some("h2")),
            (&["http/1.1", "h2"], Some("h2")),
            (&["h2"], Some("h2")),
            (&["http/1.1"], Some("http/1.1")),
            (&[], None),
        ] {
            let mut stream = connect(&host, &authority, &[version], offered).unwrap();
            assert_eq!(stream.conn.protocol_version(), Some(named));
            let protocol = stream.conn.alpn_protocol().map(|name| std::str::from_utf8(name).unwrap().to_owned());
            assert_eq!(protocol.as_deref(), agreed, "of {offered:?}");
            let body = if agreed == Some("h2") {
                stream.write_all(&[PREFACE, &Frame::settings(&[]).bytes()].concat()).unwrap();
                let (status, body) = http2::ask(&mut stream, 1, &echo("over TLS"), "https");
                assert_eq!(status, 200);
                body
            } else {
                Wire::over(stream).ask(&echo("over TLS")).body().to_vec()
            };
            assert!(String::from_utf8(body).unwrap().contains(r#""text":"over TLS""#), "{named:?} {offered:?}");
        }
    }
    let stranger = connect(&host, &authority, &[&TLS13], &["spdy/3"]).unwrap_err();
    assert!(stranger.to_string().contains("NoApplicationProtocol"), "{stranger}");
}

#[test]
fn a_certificate_that_has_ended_is_in_the_figures_and_in_the_status() {
    let _alone = alone("its own TLS");
    let authority = Authority::new();
    let tls = format!("certificate = \"{CERTIFICATE}\"\nkey = \"{KEY}\"\n");
    let folder = Folder::with_manifest(&format!("{}\n[http]\n{tls}", manifest_of(&["good"])));
    let ended = authority.expired_identity(&["localhost"]);
    folder.write(KEY, ended.key_pem());
    folder.write(CERTIFICATE, ended.chain_pem());
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]);
    let folder = host.process().folder().clone();
    let file = folder.path().join(CERTIFICATE).display().to_string();
    let figures = host.process().figures();
    // The first second of 2002.
    assert_eq!(figures.get("toolcell_certificate_end", &[("file", &file)]), 1_009_843_200.0);
    assert_eq!(figures.get("toolcell_unhealthy", &[("part", "certificates")]), 1.0);
    let problems = || Command::in_folder(&folder, &["status", "--json"]).run().json()[0]["problems"].clone();
    let problem = &problems()[0];
    assert_eq!((&problem["part"], &problem["fails_calls"]), (&json!("certificates"), &json!(false)), "{problem}");
    let said = format!("the certificate in {file} ended on 2002-01-01: clients refuse it");
    assert_eq!(problem["text"], said);
    show(&folder, &authority);
    let is_well = |figures: &Figures| figures.get("toolcell_unhealthy", &[("part", "certificates")]) == 0.0;
    let _ = host.process().figures_when("well", is_well);
    assert_eq!(problems(), json!([]));
}

#[test]
fn http2_is_spoken_without_tls_where_the_client_begins_with_it() {
    let _alone = alone("its own TLS, HTTP/2 and sockets");
    let host = WebHost::serving(&["good"]);
    let mut stream = TcpStream::connect(host.address()).unwrap();
    stream.set_read_timeout(Some(toolcell_tests::patience())).unwrap();
    stream.write_all(&[PREFACE, &Frame::settings(&[]).bytes()].concat()).unwrap();
    for (at, text) in [(1, "one"), (3, "two")] {
        let (status, body) = http2::ask(&mut stream, at, &echo(text), "http");
        let frame: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, &frame["result"]["content"][0]["text"]), (200, &json!(text)));
    }
    let (status, body) = http2::ask(&mut stream, 5, &Ask::initialize("2025-11-25"), "http");
    let frame: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, &frame["result"]["protocolVersion"]), (200, &json!("2025-11-25")));
}

#[test]
fn requests_of_one_connection_are_answered_as_they_are_done() {
    let _alone = alone("its own TLS, HTTP/2 and sockets");
    let host = WebHost::serving(&["good"]);
    let mut stream = TcpStream::connect(host.address()).unwrap();
    stream.set_read_timeout(Some(toolcell_tests::patience())).unwrap();
    let slow = Ask::call("slow", json!({"steps": 1, "step_ms": 1_000}));
    let mut frames = vec![Frame::settings(&[])];
    frames.extend(http2::request(1, &slow.with("accept", "application/json"), "http"));
    frames.extend(http2::request(3, &echo("meanwhile"), "http"));
    stream.write_all(&[PREFACE, &http2::bytes(&frames)].concat()).unwrap();
    let order: Vec<u32> = std::iter::from_fn(|| http2::receive(&mut stream))
        .filter(|frame| frame.kind == http2::kind::HEADERS)
        .map(|frame| frame.stream)
        .take(2)
        .collect();
    assert_eq!(order, [3, 1], "the short one does not wait for the long one");
}

#[test]
fn a_stream_that_is_reset_cancels_its_call_and_no_other() {
    let _alone = alone("its own TLS, HTTP/2 and sockets");
    let folder =
        Folder::with_manifest(&manifest_of(&["good", "loops"]).replace("deadline = \"5s\"", "deadline = \"1h\""));
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0", "--audit", "audit.jsonl"]);
    let mut stream = TcpStream::connect(host.address()).unwrap();
    stream.set_read_timeout(Some(toolcell_tests::patience())).unwrap();
    let mut frames = vec![Frame::settings(&[])];
    frames.extend(http2::request(1, &Ask::call("sleep_hour", json!({})), "http"));
    stream.write_all(&[PREFACE, &http2::bytes(&frames)].concat()).unwrap();
    host.begins("sleep_hour");
    let cancel = 8_u32;
    let reset = Frame::new(http2::kind::RST_STREAM, 0, 1, &cancel.to_be_bytes());
    stream.write_all(&reset.bytes()).unwrap();
    assert_eq!(host.outcome("sleep_hour"), "cancelled");
    assert_eq!(http2::ask(&mut stream, 3, &echo("x"), "http").0, 200);
}

#[test]
fn an_http2_connection_ends_with_its_calls_done_and_its_streams_ended() {
    let _alone = alone("its own TLS, HTTP/2 and sockets");
    let host = WebHost::serving(&["good"]);
    let mut stream = TcpStream::connect(host.address()).unwrap();
    stream.set_read_timeout(Some(toolcell_tests::patience())).unwrap();
    let mut frames = vec![Frame::settings(&[])];
    frames.extend(http2::request(1, &Ask::listen(7), "http"));
    frames.extend(http2::request(3, &Ask::call("slow", json!({"steps": 2, "step_ms": 300})), "http"));
    stream.write_all(&[PREFACE, &http2::bytes(&frames)].concat()).unwrap();
    assert_eq!(http2::fate(&mut stream, 1), Fate::Status(200));
    host.process().terminate();
    let mut texts = [String::new(), String::new()];
    let mut went_away = false;
    while let Some(frame) = http2::receive(&mut stream) {
        went_away |= frame.kind == http2::kind::GOAWAY && frame.payload[4..8] == [0; 4];
        if frame.kind == http2::kind::DATA {
            texts[usize::from(frame.stream == 3)].push_str(std::str::from_utf8(&frame.payload).unwrap());
        }
    }
    assert!(went_away, "it says that it goes, and that nothing is wrong");
    assert!(texts[0].contains(r#""resultType":"complete""#), "{texts:?}");
    assert!(texts[1].contains("2 steps done"), "{texts:?}");
    assert!(host.into_process().ends().status.success());
}

#[test]
fn another_certificate_is_shown_to_new_connections_and_old_ones_go_on() {
    let _alone = alone("its own TLS, HTTP/2 and sockets");
    let old = Authority::new();
    let new = Authority::new();
    let host = serving(&old, "");
    let folder = host.process().folder().clone();
    let mut before = Wire::over(connect(&host, &old, &[&TLS13], &["http/1.1"]).unwrap());
    answers(&mut before, "with the old one");
    assert!(!is_trusted(&host, &new));
    show(&folder, &new);
    host.process().will_say("TLS shows the certificate");
    let end = std::time::Instant::now() + toolcell_tests::patience();
    while !is_trusted(&host, &new) {
        assert!(std::time::Instant::now() < end, "the new one is never shown");
    }
    assert!(!is_trusted(&host, &old));
    answers(&mut before, "still with the old one");
    answers(&mut Wire::over(connect(&host, &new, &[&TLS12], &[]).unwrap()), "with the new one");
}

#[test]
fn what_cannot_be_shown_leaves_the_certificate_that_is() {
    let _alone = alone("its own TLS, HTTP/2 and sockets");
    let authority = Authority::new();
    for (what, file, text) in [
        ("no certificate", CERTIFICATE, "-----BEGIN CERTIFICATE-----\n".to_owned()),
        ("nothing", CERTIFICATE, String::new()),
        ("a key of another", KEY, authority.identity(&["localhost"]).key_pem()),
        ("no key", KEY, authority.pem().to_owned()),
    ] {
        let host = serving(&authority, "");
        host.process().folder().write(file, &text);
        host.process().will_say("TLS keeps the certificate it had");
        assert!(is_trusted(&host, &authority), "{what}");
        show(host.process().folder(), &authority);
        host.process().will_say("TLS shows the certificate");
        assert!(is_trusted(&host, &authority), "{what}, and then a good one");
    }
}

#[test]
fn who_does_not_shake_hands_is_let_go() {
    let _alone = alone("its own TLS, HTTP/2 and sockets");
    let authority = Authority::new();
    let host = serving(&authority, "head_time = \"2s\"");
    let mut neighbour = Wire::over(connect(&host, &authority, &[&TLS13], &["http/1.1"]).unwrap());
    let mut hello = hello(&authority);
    let whole = hello.clone();
    hello.truncate(40);
    // The start of an alert: record layer, version 3.3, fatal. The last byte says unexpected
    // message, or the exact error.
    for (what, bytes, alert) in [
        ("nothing", vec![], None),
        ("half a greeting", hello, None),
        ("a greeting and no more", whole, None),
        ("plain HTTP", Ask::bare("GET", "/healthz").bytes(), Some(&[21, 3, 3, 0, 2, 2][..])),
        ("plain HTTP/2", [PREFACE, &Frame::settings(&[]).bytes()].concat(), Some(&[21, 3, 3, 0, 2, 2])),
        ("garbage", vec![0xff; 64], Some(&[21, 3, 3, 0, 2, 2])),
        (
            "a greeting of 1999",
            [&[22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 1][..], &[7; 32], &[0, 0, 2, 0, 10, 1, 0]].concat(),
            Some(&[21, 3, 3, 0, 2, 2]),
        ),
    ] {
        let mut stream = TcpStream::connect(host.address()).unwrap();
        stream.set_read_timeout(Some(toolcell_tests::patience())).unwrap();
        stream.write_all(&bytes).unwrap();
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        if let Some(alert) = alert {
            assert_eq!(said.get(..6), Some(alert), "{what}: {said:02x?}");
            assert_eq!(said.len(), 7, "{what}: {said:02x?}");
        } else {
            assert!(!said.windows(4).any(|window| window == b"HTTP"), "{what}: {said:02x?}");
        }
        answers(&mut neighbour, what);
    }
}

/// The first message of a client.
fn hello(authority: &Authority) -> Vec<u8> {
    let (client, server) = UnixStream::pair().unwrap();
    server.set_read_timeout(Some(toolcell_tests::patience())).unwrap();
    client.set_read_timeout(Some(std::time::Duration::from_millis(1))).unwrap();
    let shaken = authority.connect("localhost", client, &[&TLS13], &[]);
    assert!(shaken.is_err(), "nobody answered");
    let mut said = Vec::new();
    let mut server = server;
    server.read_to_end(&mut said).unwrap();
    said
}

#[test]
fn a_unix_socket_is_served_and_removed_at_the_end() {
    let _alone = alone("its own TLS, HTTP/2 and sockets");
    let folder = Folder::with_manifest(&format!(
        "{}\n[http]\nlisten = [\"127.0.0.1:0\", \"unix:web.sock\"]\n",
        manifest_of(&["good"])
    ));
    let host = WebHost::in_folder(folder, &["--http"]);
    let path = host.process().folder().path().join("web.sock");
    host.process().will_say("web.sock");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "only this user may ask");
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(&Ask::call("echo", json!({"text": "over a file"})).with("connection", "close").bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.contains("over a file"), "{reply}");
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(&[PREFACE, &Frame::settings(&[]).bytes()].concat()).unwrap();
    assert_eq!(http2::ask(&mut stream, 1, &echo("in frames"), "http").0, 200);
    host.process().terminate();
    assert!(host.into_process().ends().status.success());
    assert!(!path.exists());
}
