//! Requests to the host through doors.
use serde_json::{Value, json};
use toolcell_tests::Answer;

use crate::row::End::Answers;
use crate::row::{Row, call, errors, head, holds, of_own, row, sealed};
use crate::site::{OWN_SECRET, Site};

/// Asks through a new door, and reads what comes first.
fn want(kind: &str, of: &str) -> Value {
    let reads = call("read", json!([{"answer": 0}, {"room": 4096}, 4096]));
    json!(["door", {"want": {"door": {"answer": 0}, "kind": kind, "of": of}}, reads])
}

/// Bytes through a new door.
fn raw(bytes: &[u8]) -> Value {
    let reads = call("read", json!([{"answer": 0}, {"room": 64}, 64]));
    json!(["door", call("write", json!([{"answer": 0}, {"bytes": bytes}, bytes.len()])), reads])
}

/// The mark of a message.
const MESSAGE: &[u8; 3] = b"tw\x01";

/// The mark of data.
const DATA: &[u8; 3] = b"tw=";

/// A frame with this mark.
fn framed(mark: &[u8; 3], content: &[u8]) -> Vec<u8> {
    [head(mark, 0, u32::try_from(content.len()).unwrap(), 0), content.to_vec()].concat()
}

/// No server saw anything, and the denial is reported.
fn is_denied(site: &Site, answer: &Answer) -> bool {
    is_nothing(site, answer) && answer.denials().len() == 1
}

/// No server saw anything.
fn is_nothing(site: &Site, answer: &Answer) -> bool {
    !answer.is_error() && site.server.connections() == 0 && site.other.connections() == 0
}

/// Nothing came of it, and the operator sees what no honest process does.
fn is_misuse(site: &Site, answer: &Answer) -> bool {
    let told = || site.host.will_say("its sandbox process broke the rules of a door: ");
    is_nothing(site, answer) && {
        told();
        true
    }
}

/// The attacks.
pub const ROWS: &[Row] = &[
    row(
        "ask for what is granted",
        |s| want("http", &s.server.url("/allowed/x")),
        Answers(|site, answer| {
            // It comes back without the secret that the host has put in.
            let seen = site.server.only_seen();
            !answer.is_error()
                && seen.target() == "/allowed/x"
                && seen.values("authorization") == [format!("Bearer {OWN_SECRET}")]
        }),
    ),
    sealed("ask for it without any grant", |s| want("http", &s.server.url("/allowed/x")), Answers(is_denied)),
    row("ask for another path", |s| want("http", &s.server.url("/secret")), Answers(is_denied)),
    row("ask for another path by dots", |s| want("http", &s.server.url("/allowed/../secret")), Answers(is_denied)),
    row(
        "ask for another path by escaped dots",
        |s| want("http", &s.server.url("/allowed/%2e%2e/secret")),
        Answers(is_denied),
    ),
    row("ask another component's server", |s| want("http", &s.other.url("/echo")), Answers(is_denied)),
    row("ask another port of the machine", |_| want("http", "http://127.0.0.1:22/"), Answers(is_denied)),
    row(
        "ask for the machine's own metadata",
        |_| want("http", "http://169.254.169.254/latest/meta-data/"),
        Answers(is_denied),
    ),
    row(
        "ask by another scheme",
        |s| want("http", &format!("https://{}/allowed/x", s.server.address())),
        Answers(is_denied),
    ),
    row(
        "ask by a name that leads there",
        |s| want("http", &format!("http://localhost:{}/allowed/x", s.server.port())),
        Answers(is_denied),
    ),
    row("connect to the server", |s| want("tcp", &s.server.address().to_string()), Answers(is_denied)),
    row(
        "connect to it by a mapped address",
        |s| want("tcp", &format!("[::ffff:127.0.0.1]:{}", s.server.port())),
        Answers(is_denied),
    ),
    row("connect to another's server", |s| want("tcp", &s.other.address().to_string()), Answers(is_denied)),
    row("connect to the machine's shell", |_| want("tcp", "127.0.0.1:22"), Answers(is_denied)),
    row("send packets", |s| want("udp", &s.server.address().to_string()), Answers(is_nothing)),
    row("look a name up", |_| want("lookup", "told.example"), Answers(is_denied)),
    row(
        "open the state of the component, which has none",
        |_| json!(["door", {"want": {"door": {"answer": 0}, "kind": "state", "of": ""}}]),
        Answers(is_nothing),
    ),
    row("have a person asked", |s| want("consent", &s.other.address().to_string()), Answers(is_nothing)),
    row("call another tool without a right to any", |_| want("calling", "sealed_attack"), Answers(is_misuse)),
    of_own(
        "call a tool that its rule does not name",
        "calls = ['sealed_attack']",
        |_| want("calling", "attack"),
        Answers(is_denied),
    ),
    of_own(
        "make more calls at once than it may make",
        "calls = ['sealed_attack']",
        |_| want("calling too often", "sealed_attack"),
        Answers(is_misuse),
    ),
    row("announce a frame of four gigabytes", |_| raw(&head(MESSAGE, 0, u32::MAX, 0)), Answers(is_misuse)),
    row("announce an empty frame", |_| raw(&head(MESSAGE, 0, 0, 0)), Answers(is_misuse)),
    row("send a frame of no known kind", |_| raw(&framed(b"xxx", &[7])), Answers(is_misuse)),
    row("begin with data", |_| raw(&framed(DATA, &[7])), Answers(is_misuse)),
    row("begin with what is not a message", |_| raw(&framed(MESSAGE, &[0xff, 0xff])), Answers(is_misuse)),
    row("announce a descriptor through a door", |_| raw(&head(MESSAGE, 1, 1, 0)), Answers(is_misuse)),
    row("say that a message lies in shared memory", |_| raw(&head(MESSAGE, 0, 1, 1)), Answers(is_misuse)),
    row("wake the host through a door", |_| raw(&head(b"tw!", 0, 0, 0)), Answers(is_misuse)),
    row(
        "say half of what it wants",
        |_| {
            let half = framed(MESSAGE, &[0; 9])[..20].to_vec();
            json!(["door", call("write", json!([{"answer": 0}, {"bytes": half}, 20]))])
        },
        Answers(is_nothing),
    ),
    row("close a door at once", |_| json!(["door", call("close", json!([{"answer": 0}]))]), Answers(is_nothing)),
    row("open more doors than it may", |_| json!(vec!["door"; 400]), Answers(is_misuse)),
];

#[test]
fn the_host_decides_whatever_a_process_asks() {
    holds(ROWS);
}

#[test]
fn a_door_that_is_kept_leads_nowhere_once_its_call_has_ended() {
    let mut site = Site::new();
    let kept = site.attack("attack", &json!(["door"]));
    let door = kept.structured()["answers"][0]["answer"].as_i64().unwrap();
    let asks = json!({"want": {"door": door, "kind": "http", "of": site.server.url("/allowed/x")}});
    let late = site.attack("attack", &json!([asks, call("read", json!([door, {"room": 64}, 64]))]));
    let answers = late.structured()["answers"].clone();
    // It was closed before the request was written, or with the request unread in it. The host
    // gives up a door with the call's answer, and a task of its own closes it.
    let is_closed = answers[0]["error"] == errors::PIPE;
    let is_unread = answers[1]["error"] == errors::CONNRESET || answers[1]["answer"] == 0;
    assert!(is_closed || is_unread, "{}", late.everything());
    assert_eq!(site.server.connections(), 0);
    site.holds();
}
