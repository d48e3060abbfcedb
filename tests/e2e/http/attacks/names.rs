//! Names that let a page reach a server of this machine (DNS rebinding). Every form of a host and
//! of an origin is tried: in `Host`, in the target, and in HTTP/2's `:authority`.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::json;
use toolcell_tests::http2::{self, END_HEADERS, Fate, Frame, PREFACE, head, kind};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{alone, patience};

fn echo() -> Ask {
    Ask::call("echo", json!({"text": "x"}))
}

/// Forms of a host in a request, and the status of a call to it. `PORT` stands for the server's
/// port.
const HOSTS: [(&str, u16); 40] = [
    ("localhost", 200),
    ("localhost:PORT", 200),
    ("LOCALHOST", 200),
    ("LocalHost:PORT", 200),
    ("localhost:1", 200),
    ("127.0.0.1:PORT", 200),
    ("127.0.0.2", 200),
    ("[::1]", 200),
    ("[::1]:PORT", 200),
    ("[0:0:0:0:0:0:0:1]", 200),
    ("localhost.", 403),
    ("localhost.:PORT", 403),
    ("a.localhost", 403),
    ("localhost.evil.example.com", 403),
    ("localhost.localdomain", 403),
    ("localtest.example.com:PORT", 403),
    ("127.0.0.1.", 403),
    ("127.0.0.1.evil.example.com", 403),
    ("127.1", 403),
    ("0177.0.0.1", 403),
    ("0x7f000001", 403),
    ("2130706433", 403),
    ("0.0.0.0", 403),
    ("0", 403),
    ("192.168.0.1", 403),
    ("169.254.169.254", 403),
    ("[::]", 403),
    ("[::ffff:127.0.0.1]", 403),
    ("[::ffff:7f00:1]", 403),
    ("[fe80::1]", 403),
    ("user@localhost", 400),
    ("localhost@evil.example.com", 400),
    ("localhost:PORT@evil.example.com", 400),
    ("localhost:", 400),
    ("localhost:port", 400),
    ("localhost:99999", 400),
    ("localhost:80:80", 400),
    ("localhost,evil.example.com", 403),
    ("localhost/evil", 400),
    ("localhost#evil", 400),
];

/// Forms of an origin, sent to a server under the name `localhost:PORT`.
const ORIGINS: [(&str, u16); 22] = [
    ("http://localhost:PORT", 200),
    ("http://LOCALHOST:PORT", 200),
    ("https://localhost:PORT", 200),
    ("http://localhost", 403),
    ("http://localhost:1", 403),
    ("http://localhost.:PORT", 403),
    ("http://127.0.0.1:PORT", 403),
    ("http://[::1]:PORT", 403),
    ("http://user@localhost:PORT", 403),
    ("http://localhost:PORT@evil.example.com", 403),
    ("http://localhost:PORT/", 403),
    ("http://localhost:PORT.evil.example.com", 403),
    ("http://evil.example.com", 403),
    ("http://evil.example.com:PORT", 403),
    ("http://localhost.evil.example.com:PORT", 403),
    ("http://localhost:PORT, http://evil.example.com", 403),
    ("localhost:PORT", 403),
    ("//localhost:PORT", 403),
    ("null", 403),
    ("", 403),
    ("file://", 403),
    ("chrome-extension://abcdefghijklmnop", 403),
];

fn with_port(form: &str, host: &WebHost) -> String {
    form.replace("PORT", &host.address().port().to_string())
}

#[test]
fn every_form_of_a_host_is_let_in_or_not() {
    let _alone = alone("a balancer reads these names itself");
    let host = WebHost::serving(&["good"]);
    let mut neighbour = host.connect();
    for (form, status) in HOSTS {
        let form = with_port(form, &host);
        assert_eq!(host.ask(&echo().with("host", &form)).status(), status, "{form}");
        assert_eq!(neighbour.ask(&echo()).status(), 200, "after {form}");
    }
    for (what, lines, status) in [
        ("none", "", 400),
        ("an empty one", "host: \r\n", 400),
        ("two", "host: localhost\r\nhost: evil.example.com\r\n", 400),
        ("two that are equal", "host: localhost\r\nhost: localhost\r\n", 400),
        ("one that is not ASCII", "host: l\u{f6}calhost\r\n", 400),
        ("one with a tab around it", "host:\tlocalhost\t\r\n", 200),
        ("one with a space in it", "host: local host\r\n", 400),
    ] {
        let ask = echo().without("host");
        let bytes = ask.framed(&format!("{lines}content-length: {}\r\n\r\n{}", ask.body().len(), ask.body()));
        let mut wire = host.connect();
        wire.send(&bytes);
        assert_eq!(wire.reply().status(), status, "{what}");
        assert_eq!(neighbour.ask(&echo()).status(), 200, "after {what}");
    }
}

#[test]
fn a_target_and_a_host_must_mean_the_same() {
    let _alone = alone("a balancer reads these names itself");
    let host = WebHost::serving(&["good"]);
    let mut neighbour = host.connect();
    for (target, named, status) in [
        ("http://localhost/mcp", "localhost", 200),
        ("http://LOCALHOST/mcp", "localhost", 200),
        ("http://localhost:PORT/mcp", "localhost:PORT", 200),
        ("https://localhost/mcp", "localhost", 200),
        ("http://localhost/mcp", "localhost:PORT", 400),
        ("http://localhost/mcp", "127.0.0.1", 400),
        ("http://evil.example.com/mcp", "localhost", 400),
        ("http://localhost/mcp", "evil.example.com", 400),
        ("http://evil.example.com/mcp", "evil.example.com", 403),
        ("http://localhost@evil.example.com/mcp", "evil.example.com", 400),
        ("http://evil.example.com@localhost/mcp", "localhost", 400),
        ("http:///mcp", "localhost", 400),
        ("http://localhost:99999/mcp", "localhost", 400),
        ("//evil.example.com/mcp", "localhost", 404),
        ("/mcp?http://evil.example.com", "localhost", 200),
        ("mcp", "localhost", 400),
    ] {
        let target = with_port(target, &host);
        let named = with_port(named, &host);
        let ask = echo().with("host", &named).to(&target);
        assert_eq!(host.ask(&ask).status(), status, "{target} of {named}");
        assert_eq!(neighbour.ask(&echo()).status(), 200, "after {target} of {named}");
    }
}

#[test]
fn every_form_of_an_origin_is_let_in_or_not() {
    let _alone = alone("a balancer reads these names itself");
    let host = WebHost::serving(&["good"]);
    let mut neighbour = host.connect();
    let asked = with_port("localhost:PORT", &host);
    for (form, status) in ORIGINS {
        let form = with_port(form, &host);
        let reply = host.ask(&echo().with("host", &asked).with("origin", &form));
        assert_eq!(reply.status(), status, "{form}");
        assert_eq!(reply.field("access-control-allow-origin"), None, "{form}");
        assert_eq!(neighbour.ask(&echo()).status(), 200, "after {form}");
    }
}

/// The fate of a call over HTTP/2 that has these names in place of its authority.
fn over_http2(host: &WebHost, names: &[(&str, String)]) -> Fate {
    let ask = echo().without("host");
    let mut fields = ask.fields("http");
    fields.extend(names.iter().cloned());
    fields.sort_by_key(|(name, _)| !name.starts_with(':'));
    let mut stream = TcpStream::connect(host.address()).unwrap();
    stream.set_read_timeout(Some(patience())).unwrap();
    let asks = [
        Frame::settings(&[]),
        Frame::new(kind::HEADERS, END_HEADERS, 1, &head(&fields)),
        Frame::new(kind::DATA, http2::END_STREAM, 1, ask.body().as_bytes()),
    ];
    stream.write_all(&[PREFACE, &http2::bytes(&asks)].concat()).unwrap();
    http2::fate(&mut stream, 1)
}

#[test]
fn an_authority_is_a_host_like_any_other() {
    let _alone = alone("a balancer reads these names itself");
    const PROTOCOL_ERROR: u32 = 1;
    let host = WebHost::serving(&["good"]);
    let mut neighbour = host.connect();
    for (form, status) in HOSTS {
        let form = with_port(form, &host);
        let fate = over_http2(&host, &[(":authority", form.clone())]);
        // A value that cannot be an authority is refused with its stream, before the host looks at
        // it.
        let is_refused = status == 400 && fate == Fate::Reset(PROTOCOL_ERROR);
        assert!(is_refused || fate == Fate::Status(status), "{form}: {fate:?}");
        assert_eq!(neighbour.ask(&echo()).status(), 200, "after {form}");
    }
    let localhost = || "localhost".to_owned();
    let evil = || "evil.example.com".to_owned();
    for (names, status) in [
        (vec![("host", localhost())], 200),
        (vec![("host", evil())], 403),
        (vec![(":authority", localhost()), ("host", localhost())], 200),
        (vec![(":authority", localhost()), ("host", evil())], 400),
        (vec![(":authority", evil()), ("host", localhost())], 400),
        (vec![(":authority", localhost()), ("host", localhost()), ("host", evil())], 400),
        (vec![], 400),
    ] {
        assert_eq!(over_http2(&host, &names), Fate::Status(status), "{names:?}");
        assert_eq!(neighbour.ask(&echo()).status(), 200, "after {names:?}");
    }
}
