//! TCP, UDP and names: only to targets that a rule names, only to addresses from a look-up of this
//! call, and never listening.
//!
//! Promise: a socket goes where a rule says.

use serde_json::{Value, json};
use toolcell_tests::TestHost;
use toolcell_tests::loopback::{NameServer, Named, TcpEcho, UdpEcho};

use super::{Denied, assert_denied, assert_refused, came_to, folder, host};

const FIXTURE: &str = "reach_sockets";

fn names() -> NameServer {
    NameServer::answering(&[
        ("echo.example", &[Named::at(&["127.0.0.1"])]),
        ("a.wild.example", &[Named::at(&["127.0.0.1"])]),
        ("other.example", &[Named::at(&["127.0.0.1"])]),
        ("moves.example", &[Named::at(&["127.0.0.2"]), Named::at(&["127.0.0.1"])]),
        ("metadata.example", &[Named::at(&["169.254.169.254"])]),
        ("two.example", &[Named::at(&["127.0.0.1", "10.0.0.1"])]),
    ])
}

fn serving(names: &NameServer, network: &str, limits: &str) -> TestHost {
    let dns = names.address();
    host(FIXTURE, &format!("[server]\ndns = [\"{dns}\"]\n\n[{{c}}.network]\n{network}\n\n[{{c}}.limits]\n{limits}\n"))
}

fn is_refused(found: &Result<Value, String>) -> bool {
    found.as_ref().is_err_and(|error| error.contains("access-denied"))
}

#[test]
fn a_name_that_a_rule_names_is_connected_to() {
    let names = names();
    let server = TcpEcho::start();
    let p = server.address().port();
    let network = format!("tcp = [\"echo.example:{p}\", \"*.wild.example:{p}\"]\nprivate = [\"127.0.0.1:{p}\"]");
    let mut host = serving(&names, &network, "");
    for name in ["echo.example", "a.wild.example"] {
        let found = came_to(&host.call("tcp", json!({"name": name, "port": p, "send": "ping"})));
        assert_eq!(found, Ok(json!("ping")), "{name}");
    }
    assert_eq!(came_to(&host.call("resolve", json!({"name": "echo.example"}))), Ok(json!(["127.0.0.1"])));
    assert_eq!(server.connections(), 2);
}

#[test]
fn other_names_ports_and_addresses_are_denied() {
    let names = names();
    let server = TcpEcho::start();
    let beside = TcpEcho::start();
    let p = server.address().port();
    let q = beside.address().port();
    let network = format!("tcp = [\"echo.example:{p}\"]\nprivate = [\"127.0.0.1\"]");
    let mut host = serving(&names, &network, "");
    let rows = [
        ("tcp", json!({"name": "other.example", "port": p}), "lookup other.example"),
        ("tcp", json!({"name": "echo.example.evil.example", "port": p}), "lookup echo.example.evil.example"),
        ("tcp", json!({"name": "echo.example", "port": q}), "tcp 127.0.0.1:"),
        // The address of a name that this call has not looked up.
        ("tcp", json!({"addr": format!("127.0.0.1:{p}")}), "tcp 127.0.0.1:"),
        ("tcp", json!({"addr": format!("[::1]:{p}")}), "tcp [::1]:"),
        ("tcp", json!({"addr": format!("[::ffff:127.0.0.1]:{p}")}), "tcp "),
        ("resolve", json!({"name": "other.example"}), "lookup other.example"),
    ];
    for (tool, arguments, asked) in rows {
        let answer = host.call(tool, arguments.clone());
        let found = came_to(&answer);
        assert!(is_refused(&found), "{tool} {arguments}: {found:?}");
        let told = answer.denials().iter().any(|denial| denial.starts_with(&format!("denied: {asked}")));
        assert!(told, "{tool} {arguments}: {found:?} {:?}", answer.denials());
    }
    // Without a rule for UDP the guest cannot even create a socket, or, behind a wall, use it.
    let found = came_to(&host.call("udp", json!({"name": "echo.example", "port": p})));
    assert!(is_refused(&found), "{found:?}");
    assert_eq!((server.connections(), beside.connections()), (0, 0));
    assert_eq!(names.asked_for("other.example"), 0);
    host.still_works();
}

#[test]
fn a_denial_is_recorded_with_the_line_that_would_allow_it() {
    let names = names();
    let mut host = serving(&names, "tcp = [\"echo.example:1\"]\nprivate = [\"127.0.0.1:1\"]", "");
    let section = "components.reach_sockets.network";
    let answer = host.call("resolve", json!({"name": "other.example"}));
    let because = "no rule of tool \"resolve\" allows it";
    let record = host.recorded("the look-up", |record| {
        record["event"] == "call.denied" && record["asked"] == "lookup other.example"
    });
    assert_eq!((&record["capability"], &record["section"]), (&json!("lookup"), &json!(section)), "{record}");
    assert!(record["allow"].as_str().unwrap().contains("other.example"), "{record}");
    assert_eq!(answer.denials(), [format!("denied: lookup other.example — {because}").as_str()]);
    let answer = host.call("tcp", json!({"addr": "192.0.2.1:25"}));
    let because = "no rule of tool \"tcp\" allows it";
    let denied =
        Denied { capability: "tcp", asked: "tcp 192.0.2.1:25", because, section, allow: "tcp = [\"192.0.2.1:25\"]" };
    assert_denied(&host, &answer, &denied);
}

#[test]
fn a_range_of_addresses_is_connected_to_where_private_names_it_as_well() {
    let names = names();
    let server = TcpEcho::start();
    let p = server.address().port();
    let addr = server.address().to_string();
    let mut allowed = serving(&names, &format!("tcp = [\"127.0.0.0/30:{p}\"]\nprivate = [\"127.0.0.0/8\"]"), "");
    assert_eq!(came_to(&allowed.call("tcp", json!({"addr": addr}))), Ok(json!("hello")));
    let far = format!("127.0.0.9:{p}");
    assert!(is_refused(&came_to(&allowed.call("tcp", json!({"addr": far})))));
    let without = format!("[{{c}}.network]\ntcp = [\"127.0.0.0/30:{p}\"]\n");
    assert_refused(&folder(FIXTURE, &without), &["can never match", "private"]);
    assert_eq!(server.connections(), 1);
}

#[test]
fn an_address_is_its_names_only_within_the_call_that_looked_it_up() {
    let names = names();
    let server = TcpEcho::start();
    let p = server.address().port();
    let addr = server.address().to_string();
    let network = format!("tcp = [\"echo.example:{p}\", \"moves.example:{p}\"]\nprivate = [\"127.0.0.0/8:{p}\"]");
    let mut host = serving(&names, &network, "");
    assert_eq!(came_to(&host.call("tcp_later", json!({"name": "echo.example", "addr": addr}))), Ok(json!("hello")));
    assert!(is_refused(&came_to(&host.call("tcp", json!({"addr": addr})))), "another call's look-up counted");
    // In this call the name led to 127.0.0.2, so 127.0.0.1 belongs to no name.
    assert!(is_refused(&came_to(&host.call("tcp_later", json!({"name": "moves.example", "addr": addr})))));
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_name_that_leads_to_a_metadata_address_is_not_connected_to() {
    let names = names();
    let mut host = serving(&names, "tcp = [\"*.example:80\"]", "");
    for name in ["metadata.example", "echo.example", "two.example"] {
        let answer = host.call("tcp", json!({"name": name, "port": 80}));
        assert!(came_to(&answer).is_err(), "{name}");
        assert!(
            answer.denials().iter().any(|denial| denial.contains("is not public")),
            "{name}: {:?}",
            answer.denials()
        );
        assert!(!answer.everything().contains("169.254") && !answer.everything().contains("10.0.0.1"), "{name}");
    }
}

#[test]
fn datagrams_go_where_a_rule_says_and_nowhere_else() {
    let names = names();
    let server = UdpEcho::start();
    let beside = UdpEcho::start();
    let p = server.address().port();
    let q = beside.address().port();
    let mut host =
        serving(&names, &format!("udp = [\"echo.example:{p}\", \"127.0.0.1:{p}\"]\nprivate = [\"127.0.0.1\"]"), "");
    for each in [false, true] {
        let by_name = json!({"name": "echo.example", "port": p, "send": "ping", "each": each});
        assert_eq!(came_to(&host.call("udp", by_name)), Ok(json!("ping")), "{each}");
        let by_address = json!({"addr": server.address().to_string(), "send": "ping", "each": each});
        assert_eq!(came_to(&host.call("udp", by_address)), Ok(json!("ping")), "{each}");
        for arguments in [
            json!({"addr": beside.address().to_string(), "each": each}),
            json!({"name": "echo.example", "port": q, "each": each}),
            json!({"addr": "224.0.0.1:5353", "each": each}),
            json!({"addr": "255.255.255.255:9", "each": each}),
        ] {
            let found = came_to(&host.call("udp", arguments.clone()));
            assert!(is_refused(&found), "{arguments}: {found:?}");
        }
    }
    assert_eq!((server.datagrams(), beside.datagrams()), (4, 0));
    assert!(
        is_refused(&came_to(&host.call("tcp", json!({"name": "echo.example", "port": p})))),
        "a udp rule is not a tcp rule"
    );
}

#[test]
fn a_guest_never_listens() {
    let names = names();
    let mut host = serving(
        &names,
        "tcp = [\"127.0.0.1:1-65535\"]\nudp = [\"127.0.0.1:1-65535\"]\nprivate = [\"127.0.0.0/8\"]",
        "",
    );
    let answer = host.call("listen", json!({}));
    let found = came_to(&answer).unwrap();
    for way in ["tcp_bind", "tcp_listen", "udp_bind_to_port", "std_tcp", "std_udp"] {
        assert!(found[way]["error"].is_string(), "{way}: {found}");
    }
    assert!(
        answer.denials().iter().any(|denial| denial.ends_with("tools never bind or listen")),
        "{:?}",
        answer.denials()
    );
}

#[test]
fn sockets_and_look_ups_are_counted() {
    let names = names();
    let network = "tcp = [\"echo.example:80\"]\nudp = [\"echo.example:80\"]";
    let mut host = serving(&names, network, "sockets = 5\nlookups = 2");
    let found = came_to(&host.call("sockets_at_once", json!({"count": 10}))).unwrap();
    assert_eq!(found["tcp"].as_u64().unwrap() + found["udp"].as_u64().unwrap(), 5, "{found}");
    assert_eq!(found["stopped"].as_array().unwrap().len(), 15, "{found}");
    host.still_works();
}

#[test]
fn many_addresses_in_a_row_are_each_decided_on() {
    let names = names();
    let server = TcpEcho::start();
    let addr = server.address();
    let mut host = serving(&names, &format!("tcp = [\"{addr}\"]\nprivate = [\"{addr}\"]"), "");
    let p = addr.port();
    let addrs =
        [format!("127.0.0.1:{p}"), format!("127.0.0.2:{p}"), "127.0.0.1:1".to_owned(), format!("[::ffff:7f00:1]:{p}")];
    let found = came_to(&host.call("tcp_each", json!({"addrs": addrs}))).unwrap();
    assert_eq!(found[0], json!({"ok": "hello"}));
    for row in 1..4 {
        assert!(
            found[row]["error"].as_str().is_some_and(|error| error.contains("access-denied")
                || error.contains("invalid-argument")
                || error.contains("not-supported")),
            "{found}"
        );
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn without_a_grant_nothing_is_connected_to_sent_or_looked_up() {
    let tcp = TcpEcho::start();
    let udp = UdpEcho::start();
    let mut host = host(FIXTURE, "");
    for (tool, arguments) in [
        ("tcp", json!({"addr": tcp.address().to_string()})),
        ("udp", json!({"addr": udp.address().to_string()})),
        ("resolve", json!({"name": "localhost"})),
    ] {
        assert!(came_to(&host.call(tool, arguments)).is_err(), "{tool}");
    }
    assert_eq!((tcp.connections(), udp.datagrams()), (0, 0));
}

#[test]
fn rules_that_cannot_be_are_load_errors() {
    for (line, word) in [
        ("tcp = [\"db.example.com\"]", "db.example.com"),
        ("tcp = [\"db.example.com:0\"]", "db.example.com:0"),
        ("tcp = [\"tcp://db.example.com:1\"]", "tcp://"),
        ("tcp = [\"10.0.0.1/8:80\"]", "10.0.0.1/8"),
        ("udp = [\"a.*.b:53\"]", "a.*.b"),
        ("tcp = [\"127.0.0.1:80\"]", "private"),
        ("udp = [\"1.2.3.4:53\"]\nlisten = [\"0.0.0.0:80\"]", "listen"),
    ] {
        assert_refused(&folder(FIXTURE, &format!("[{{c}}.network]\n{line}\n")), &[word, "toolcell.toml"]);
    }
    assert_refused(&folder("reach_files", "[{c}.network]\ntcp = [\"db.example:1\"]\n"), &["wasi:sockets"]);
}
