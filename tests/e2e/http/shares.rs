//! One caller takes as much as it can of a resource. Past its share it is refused, and other
//! callers are served as if it did not exist.
//!
//! Promise: one caller does not shut out others.
//! Promise: unread answers take bounded memory.
//! Promise: costly requests leave others theirs.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use serde_json::json;
use toolcell_tests::http2::{self, END_HEADERS, Frame, PREFACE, kind};
use toolcell_tests::loopback::{Algorithm, HttpServer, Issuer, SigningKey};
use toolcell_tests::web::{Ask, Reply, WebHost, Wire};
use toolcell_tests::{Command, Folder, alone, manifest_of, patience};

/// The status and the error code for a caller past its share.
const SHARE: (u16, i64) = (429, -32603);

/// A manifest whose tool has fuel and memory to give a megabyte back.
fn with_room() -> String {
    let manifest = manifest_of(&["good"]).replace("fuel = 20_000_000", "fuel = 20_000_000_000");
    let manifest = manifest.replace("memory = \"16MiB\"", "memory = \"64MiB\"");
    manifest.replace("output = \"64KiB\"", "output = \"1MiB\"")
}

/// A host whose callers have tokens, and header values with those of two callers.
fn host(limits: &str) -> (WebHost, [String; 2]) {
    let manifest = format!("{}\n[http]\ntokens = \"tokens.jsonl\"\n{limits}\n", with_room());
    let folder = Folder::with_manifest(&manifest);
    let bearers = ["ann", "bob"].map(|name| {
        let made = Command::in_folder(&folder, &["token", "new", name]).run();
        format!("Bearer {}", made.succeeded().trim())
    });
    (WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]), bearers)
}

fn of(bearer: &str, ask: Ask) -> Ask {
    ask.with("authorization", bearer)
}

fn echo(bearer: &str) -> Ask {
    of(bearer, Ask::call("echo", json!({"text": "x"})))
}

/// A request whose body never comes whole. Only `bytes` of it are sent.
fn slow(ask: &Ask, bytes: usize) -> Vec<u8> {
    let mut sent = ask.framed("content-length: 65536\r\n\r\n");
    sent.extend(vec![b' '; bytes]);
    sent
}

/// Asks until the answer has this status.
fn until(what: &str, ask: impl Fn() -> Reply, status: u16) -> Reply {
    let end = Instant::now() + patience();
    loop {
        let reply = ask();
        if reply.status() == status {
            return reply;
        }
        assert!(Instant::now() < end, "{what}: still {}", reply.status());
    }
}

/// Holds requests whose bodies never come, until one is refused. Returns the number held, which is
/// the share. A request is known to be held once the server asks for its body.
fn fill(held: &mut Vec<Wire>, connect: impl Fn() -> Wire, ask: &Ask) -> usize {
    let begun = ask.framed("expect: 100-continue\r\ncontent-length: 65536\r\n\r\n");
    for count in 0..10_000 {
        let mut wire = connect();
        wire.send(&begun);
        match wire.head().status() {
            100 => held.push(wire),
            429 => return count,
            other => panic!("request {count} is answered with {other}"),
        }
    }
    panic!("there is no share");
}

/// Opens that many requests on one connection. Each body is one byte and never ends.
fn open_bodies(host: &WebHost, ask: &Ask, count: u32) -> TcpStream {
    let mut stream = TcpStream::connect(host.address()).unwrap();
    stream.set_read_timeout(Some(patience())).unwrap();
    let head = http2::head(&ask.fields("http"));
    let mut frames = vec![Frame::settings(&[])];
    for place in 0..count {
        frames.push(Frame::new(kind::HEADERS, END_HEADERS, 2 * place + 1, &head));
        frames.push(Frame::new(kind::DATA, 0, 2 * place + 1, b"{"));
    }
    stream.write_all(&[PREFACE, &http2::bytes(&frames)].concat()).unwrap();
    stream
}

#[test]
fn one_caller_holds_its_share_of_requests_and_others_are_answered() {
    let _alone = alone("shares of its own connections, requests and memory");
    let (host, [ann, bob]) = host("");
    assert_eq!(host.ask(&echo(&bob)).status(), 200);
    let before = host.process().resident_bytes();
    let opened: Vec<_> = (0..42).map(|_| open_bodies(&host, &echo(&ann), 120)).collect();
    // Five thousand requests are on their way, in any order. This fills the rest of the share.
    let mut held = Vec::new();
    fill(&mut held, || host.connect(), &echo(&ann));
    let refused = host.ask(&echo(&ann));
    assert_eq!(refused.status(), 429);
    assert_eq!((refused.error(), refused.field("retry-after")), (SHARE, Some("1")));
    let text = refused.frame()["error"]["message"].as_str().unwrap().to_owned();
    assert!(text.starts_with("The caller has its share of what this server does at once"), "{text}");
    for _ in 0..20 {
        assert_eq!(host.ask(&echo(&bob)).status(), 200);
    }
    let more = host.process().resident_bytes().saturating_sub(before);
    assert!(more < 64 << 20, "a thousand requests that wait took {more} bytes");
    drop((opened, held));
    until("the share is given back", || host.ask(&echo(&ann)), 200);
}

#[test]
fn a_share_gets_smaller_with_what_it_is_a_share_of() {
    let _alone = alone("shares of its own connections, requests and memory");
    let (host, [ann, bob]) = host("requests = 8");
    let mut held = Vec::new();
    assert_eq!(fill(&mut held, || host.connect(), &echo(&ann)), 2, "a quarter of eight");
    assert_eq!(host.ask(&echo(&ann)).error(), SHARE);
    assert_eq!(host.ask(&echo(&bob)).status(), 200);
    drop(held);
    until("the share is given back", || host.ask(&echo(&ann)), 200);
}

#[test]
fn one_caller_s_bodies_leave_room_for_those_of_others() {
    let _alone = alone("shares of its own connections, requests and memory");
    let (host, [ann, bob]) = host("body = \"64KiB\"\nbodies = \"256KiB\"");
    let mut held = host.connect();
    held.send(&slow(&echo(&ann), 65_000));
    let text = "y".repeat(60_000);
    let large = |bearer: &str| of(bearer, Ask::call("echo", json!({"text": text})));
    assert_eq!(until("a second body", || host.ask(&large(&ann)), 429).error(), SHARE);
    // A quarter is room for one body of the greatest length, so other callers have room for three.
    for _ in 0..3 {
        let reply = host.ask(&large(&bob));
        assert_eq!(reply.frame()["result"]["content"][0]["text"], text.as_str());
    }
    drop(held);
    until("the share is given back", || host.ask(&large(&ann)), 200);
}

#[test]
fn one_caller_s_streams_leave_room_for_those_of_others() {
    let _alone = alone("shares of its own connections, requests and memory");
    let (host, [ann, bob]) = host("streams = 8");
    let initialize = |bearer: &str| {
        let reply = host.ask(&of(bearer, Ask::initialize("2025-11-25")));
        reply.field("mcp-session-id").unwrap().to_owned()
    };
    let get = |bearer: &str, session: &str| {
        of(bearer, Ask::bare("GET", "/mcp").with("accept", "text/event-stream")).of_session(session)
    };
    // One stream of each era.
    let mut modern = host.connect();
    modern.send(&of(&ann, Ask::listen(1)).bytes());
    assert_eq!(modern.head().status(), 200);
    modern.event().unwrap();
    let session = initialize(&ann);
    let mut legacy = host.connect();
    legacy.send(&get(&ann, &session).bytes());
    assert_eq!(legacy.head().status(), 200);
    assert_eq!(host.ask(&of(&ann, Ask::listen(2))).error(), SHARE);
    assert_eq!(host.ask(&get(&ann, &initialize(&ann))).error(), SHARE);
    assert_eq!(host.ask(&echo(&ann)).status(), 200, "calls are no streams");
    let mut hers = host.connect();
    hers.send(&get(&bob, &initialize(&bob)).bytes());
    assert_eq!(hers.head().status(), 200);
    drop((modern, legacy));
    let end = Instant::now() + patience();
    loop {
        let mut again = host.connect();
        again.send(&of(&ann, Ask::listen(3)).bytes());
        if again.head().status() == 200 {
            break;
        }
        assert!(Instant::now() < end, "the share is never given back");
    }
}

#[test]
fn one_caller_s_sessions_end_its_own_and_nobody_else_s() {
    let _alone = alone("shares of its own connections, requests and memory");
    let (host, [ann, bob]) = host("sessions = 12");
    let ping =
        |bearer: &str, session: &str| host.ask(&of(bearer, Ask::request(1, "ping", json!({}))).of_session(session));
    let open = |bearer: &str| {
        let reply = host.ask(&of(bearer, Ask::initialize("2025-11-25")));
        assert_eq!(reply.status(), 200, "{reply:?}");
        reply.field("mcp-session-id").unwrap().to_owned()
    };
    let hers = open(&bob);
    let own: Vec<String> = (0..100).map(|_| open(&ann)).collect();
    assert_eq!(ping(&bob, &hers).status(), 200, "the oldest of all, and not the flooder's");
    let alive = own.iter().filter(|session| ping(&ann, session).status() == 200).count();
    assert_eq!(alive, 3, "a quarter of twelve");
    assert_eq!(ping(&ann, own.last().unwrap()).status(), 200);
    // Sessions in use cannot be dropped to make room. The caller is refused, and others can open
    // theirs.
    let streams: Vec<Wire> = own[97..]
        .iter()
        .map(|session| {
            let mut wire = host.connect();
            let ask = of(&ann, Ask::bare("GET", "/mcp").with("accept", "text/event-stream")).of_session(session);
            wire.send(&ask.bytes());
            assert_eq!(wire.head().status(), 200);
            wire
        })
        .collect();
    assert_eq!(host.ask(&of(&ann, Ask::initialize("2025-11-25"))).error(), SHARE);
    let _ = open(&bob);
    drop(streams);
}

#[test]
fn one_caller_s_connections_leave_room_for_others() {
    let _alone = alone("shares of its own connections, requests and memory");
    let (host, [ann, bob]) = host("connections = 8");
    let mut held = Vec::new();
    assert_eq!(fill(&mut held, || host.connect(), &echo(&ann)), 4, "half of eight");
    assert_eq!(host.ask(&echo(&ann)).error(), SHARE);
    // Connections without a request are dropped to make room, whichever caller they belong to.
    let _silent: Vec<Wire> = (0..20).map(|_| host.connect()).collect();
    for _ in 0..5 {
        assert_eq!(host.ask(&echo(&bob)).status(), 200);
    }
    drop(held);
    until("the share is given back", || host.ask(&echo(&ann)), 200);
}

/// A connection whose client takes little before it reads: by itself, a kernel takes megabytes.
fn unread_by_its_client(host: &WebHost) -> Wire {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    set_socket_recv_buffer_size(&socket, 16 << 10).unwrap();
    connect(&socket, &host.address()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(patience())).unwrap();
    Wire::over(stream)
}

/// The status and the code of an answer that was not kept.
const NOT_KEPT: (u16, i64) = (200, -32603);

#[test]
fn a_caller_who_leaves_answers_unread_is_refused_and_others_are_answered() {
    let _alone = alone("shares of its own connections, requests and memory");
    let (host, [ann, bob]) = host("answers_per_caller = \"4MiB\"");
    let text = "z".repeat(900_000);
    let large = |bearer: &str| of(bearer, Ask::call("echo", json!({"text": text})));
    assert_eq!(host.ask(&large(&bob)).status(), 200);
    let before = host.process().resident_bytes();
    // Nothing of what is answered here is read. One caller may begin sixteen calls at once.
    let mut unread: Vec<Wire> = (0..40).map(|_| unread_by_its_client(&host)).collect();
    for wire in &mut unread {
        wire.send(&large(&ann).bytes());
    }
    let refused = until("the share is full", || host.ask(&echo(&ann)), 429);
    assert_eq!((refused.error(), refused.field("retry-after")), (SHARE, Some("1")));
    let message = "Not carried out: the caller leaves too many bytes of answers unread. Read them before you ask again";
    assert_eq!(refused.frame()["error"]["message"], message);
    for _ in 0..20 {
        assert_eq!(host.ask(&large(&bob)).frame()["result"]["content"][0]["text"], text.as_str());
    }
    let more = host.process().resident_bytes().saturating_sub(before);
    assert!(more < 64 << 20, "forty answers that nobody reads took {more} bytes");
    let mut whole = 0;
    for mut wire in unread {
        let reply = wire.reply();
        match reply.status() {
            429 => assert_eq!(reply.error(), SHARE),
            _ if reply.frame()["error"].is_object() => assert_eq!(reply.error(), NOT_KEPT),
            _ => {
                assert_eq!(reply.frame()["result"]["content"][0]["text"], text.as_str());
                whole += 1;
            }
        }
    }
    assert!(whole >= 4, "four of these answers fit into the share, and {whole} came whole");
    until("the share is given back", || host.ask(&large(&ann)), 200);
}

#[test]
fn answers_that_nobody_reads_are_bounded_for_all_together() {
    let _alone = alone("shares of its own connections, requests and memory");
    let host = WebHost::with_manifest(&format!("{}\n[http]\nanswers = \"4MiB\"\n", with_room()));
    let large = Ask::call("echo", json!({"text": "z".repeat(900_000)}));
    // A stream is bounded as a whole answer is.
    let streamed = large.clone().with("accept", "text/event-stream");
    let mut unread: Vec<Wire> = (0..40).map(|_| unread_by_its_client(&host)).collect();
    for (place, wire) in unread.iter_mut().enumerate() {
        wire.send(&if place % 2 == 0 { &large } else { &streamed }.bytes());
    }
    let ask = Ask::call("echo", json!({"text": "x"}));
    let refused = until("all of it is full", || host.ask(&ask), 503);
    let message = "Not carried out: clients leave too many bytes of answers unread. Try again in a second";
    assert_eq!(refused.frame()["error"]["message"], message);
    drop(unread);
    until("what nobody will read is given back", || host.ask(&ask), 200);
}

#[test]
fn one_caller_sends_its_share_of_bytes_in_a_minute_and_others_send_theirs() {
    let _alone = alone("shares of its own connections, requests and memory");
    let (host, [ann, bob]) = host("body = \"1MiB\"\nsent_per_minute = \"4MiB\"");
    let text = "z".repeat(900_000);
    let large = |bearer: &str| of(bearer, Ask::call("echo", json!({"text": text})));
    let begun = Instant::now();
    let statuses: Vec<u16> = (0..6).map(|_| host.ask(&large(&ann)).status()).collect();
    assert_eq!(statuses[..4], [200; 4]);
    // On a busy machine, a part of its share comes back meanwhile.
    let share = 4.0 * 1024.0 * 1024.0 * (1.0 + begun.elapsed().as_secs_f64() / 60.0);
    let taken = statuses.iter().filter(|&&status| status == 200).count();
    assert!(taken * text.len() <= share as usize, "{statuses:?} of {share} bytes");
    let refused = until("its share is spent", || host.ask(&large(&ann)), 429);
    assert_eq!(refused.error(), SHARE);
    let message = refused.frame()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("The caller sends more than 4194304 bytes in a minute: try again in "), "{message}");
    let wait: u64 = refused.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=14).contains(&wait) && message.ends_with(&format!("try again in {wait} s")), "{wait}: {message}");
    assert_eq!(host.ask(&echo(&ann)).status(), 200, "what is short still goes through");
    assert_eq!(host.ask(&large(&bob)).status(), 200);
}

#[test]
fn long_requests_of_one_caller_leave_others_their_turn() {
    let _alone = alone("shares of its own connections, requests and memory");
    let (host, [ann, bob]) = host("");
    // Numbers that are costly to read, of one byte each.
    let zeros = format!("[0{}]", ",0".repeat(450_000));
    let costly = of(&ann, Ask::call("echo", json!({"text": "costly", "more": "ZEROS"})));
    let body = costly.body().replace("\"ZEROS\"", &zeros);
    let costly = costly.saying(&body);
    let mut begun: Vec<Wire> = (0..24).map(|_| host.connect()).collect();
    for wire in &mut begun {
        wire.send(&costly.bytes());
    }
    let sent = Instant::now();
    let mut slowest = Duration::ZERO;
    for number in 0..20 {
        let asked = Instant::now();
        let text = number.to_string();
        let reply = host.ask(&of(&bob, Ask::call("echo", json!({"text": text}))));
        assert_eq!(reply.frame()["result"]["content"][0]["text"], text.as_str());
        assert_eq!(host.ask(&Ask::bare("GET", "/healthz")).status(), 200);
        slowest = slowest.max(asked.elapsed());
    }
    for mut wire in begun {
        let reply = wire.reply();
        let frame = reply.frames().pop().unwrap();
        assert!(frame["result"]["content"][0]["text"].is_string(), "{frame}");
    }
    let whole = sent.elapsed();
    assert!(slowest * 2 < whole, "bob waited {slowest:?} of {whole:?}");
}

#[test]
fn what_is_longer_than_any_tool_takes_is_refused_before_it_is_read() {
    let _alone = alone("shares of its own connections, requests and memory");
    let (host, [ann, _]) = host("");
    // No JSON at all: who reads it says so.
    let broken = of(&ann, Ask::call("echo", json!({"text": "x"})));
    let long = format!("{}{}", broken.body().trim_end_matches('}'), " ".repeat(3_000_000));
    let refused = host.ask(&broken.clone().saying(&long));
    assert_eq!((refused.status(), &refused.frame()["id"]), (413, &json!(1)));
    let message = refused.frame()["error"]["message"].as_str().unwrap().to_owned();
    // 1 MiB of arguments, eight answers of 64 KiB, and 1 MiB more.
    assert_eq!(message, format!("The body is longer than {} bytes", (2 << 20) + (8 << 16)));
    let short = format!("{}{}", broken.body().trim_end_matches('}'), " ".repeat(1_000_000));
    assert_eq!(host.ask(&broken.saying(&short)).error(), (400, -32700));
}

/// A connection from this address of the machine, which differs from that of all other clients.
fn from(address: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from((address, 0))).unwrap();
    connect(&socket, &to).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(patience())).unwrap();
    stream
}

#[test]
fn where_nobody_says_who_they_are_an_address_has_a_share() {
    let _alone = alone("shares of its own connections, requests and memory");
    let host = WebHost::with_manifest(&format!("{}\n[http]\nrequests = 8\n", manifest_of(&["good"])));
    let echo = Ask::call("echo", json!({"text": "x"}));
    let connect = || Wire::over(from([127, 0, 0, 2], host.address()));
    let ask = || connect().ask(&echo);
    let mut held = Vec::new();
    assert_eq!(fill(&mut held, connect, &echo), 2, "a quarter of eight");
    assert_eq!(ask().error(), SHARE);
    assert_eq!(Wire::over(from([127, 0, 0, 3], host.address())).ask(&echo).status(), 200, "another address");
    host.still_works();
    drop(held);
    until("the share is given back", ask, 200);
}

#[test]
fn callers_who_cannot_be_found_out_at_once_take_no_place_of_those_who_are_known() {
    let _alone = alone("shares of its own connections, requests and memory");
    let key = SigningKey::new("first", Algorithm::ES256);
    let hostile = HttpServer::start();
    let issuer = Issuer::start(&[&key]);
    let resource = "https://tools.example.com/mcp";
    let manifest = format!(
        "{}\n[http]\ntokens = \"tokens.jsonl\"\nrequests = 2\n[http.oauth]\nresource = \"{resource}\"\n\
         [http.oauth.issuers.corp]\nissuer = \"{}\"\njwks = \"{}\"\n",
        manifest_of(&["good"]),
        issuer.name(),
        hostile.url("/silent"),
    );
    let folder = Folder::with_manifest(&manifest);
    let made = Command::in_folder(&folder, &["token", "new", "bob"]).run();
    let bob = format!("Bearer {}", made.succeeded().trim());
    let host = WebHost::in_folder(folder, &["--http", "127.0.0.1:0"]);
    let unknown = echo(&format!("Bearer {}", key.token(&issuer.claims("eve", resource, "tools"))));
    let mut waiting: Vec<Wire> = (0..5).map(|_| host.connect()).collect();
    for wire in &mut waiting {
        wire.send(&unknown.bytes());
    }
    for _ in 0..20 {
        assert_eq!(host.ask(&echo(&bob)).status(), 200, "who is known is answered meanwhile");
    }
    let said = waiting.iter_mut().map(|wire| {
        let reply = wire.reply();
        assert_eq!(reply.error(), (503, -32603));
        reply.frame()["error"]["message"].as_str().unwrap().starts_with("The server is busy")
    });
    assert_eq!(said.filter(|is_busy| *is_busy).count(), 3, "two wait, and no more");
}

#[test]
fn shares_that_are_none_are_load_errors() {
    for (section, said) in [
        ("requests = 8\nrequests_per_caller = 9", "requests_per_caller is more than requests"),
        ("sessions_per_caller = 0", "sessions_per_caller must be between 1 and 1_000_000"),
        ("body = \"1MiB\"\nbodies_per_caller = \"64KiB\"", "bodies_per_caller is less than body"),
    ] {
        let manifest = format!("{}\n[http]\n{section}\n", manifest_of(&["good"]));
        let folder = Folder::with_manifest(&manifest);
        let checked = Command::in_folder(&folder, &["check"]).run();
        assert!(checked.code() == 1 && checked.stderr.contains(said), "{section}: {checked:?}");
    }
}
